"""What commands are given beside a program: rows of a table, triplets, names of columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gbfl_compile.errors import BadInput

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Matrix
    from gbfl_compile.ir.nodes import Program
    from gbfl_compile.triplets import Triplets


def rows_of(path: Path | None, program: Program) -> Matrix | None:
    """The features of a table's rows, in the program's order; None where no table is named."""
    if path is None:
        return None
    from gbfl_compile.tables import feature_matrix, read_table

    return feature_matrix(read_table(path), program.features, str(path))


def triplets_of(path: Path | None, program: Program) -> Triplets | None:
    """The triplets in a file, made for this program; None where no file is named."""
    if path is None:
        return None
    from gbfl_compile.triplets import load_triplets

    triplets = load_triplets(path)
    if triplets.features != program.features:
        raise BadInput(f"{path}: its features are not the program's, make triplets for this program")
    return triplets


def column_mapping(pairs: tuple[str, ...]) -> dict[str, str]:
    """`--column FEATURE=COLUMN`, as often as it was given."""
    made = {}
    for pair in pairs:
        feature, equals, column = pair.partition("=")
        if not equals or not feature or not column:
            raise BadInput(f"--column {pair!r}: write it as FEATURE=COLUMN")
        made[feature] = column
    return made
