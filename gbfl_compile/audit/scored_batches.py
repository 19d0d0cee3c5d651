"""What every kind of scored table is read as: batches of columns named as the features, with the labels as codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gbfl_compile.audit.labels import Found
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Program
from gbfl_compile.tables import some_names

LABEL_COLUMN = "label"
"""What `gbfl score` calls it."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The columns to read: for each feature its column, and the column of labels."""

    features: tuple[str, ...]
    columns: tuple[str, ...]
    label: str

    @property
    def distinct(self) -> list[str]:
        """Each column once: two features may stand in one, and the label in one of them."""
        return list(dict.fromkeys((*self.columns, self.label)))


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows. `table` is Arrow or pandas, its columns called as the features are."""

    first: int
    """How many rows came before."""
    count: int
    table: Any
    labels: Found


def part_of(batch: Batch, start: int, count: int) -> Batch:
    """Some rows of a batch, not copied."""
    count = min(count, batch.count - start)
    table = batch.table
    table = table.slice(start, count) if hasattr(table, "slice") else table.iloc[start : start + count]
    labels = Found(batch.labels.codes[start : start + count], batch.labels.distinct)
    return Batch(batch.first + start, count, table, labels)


def rows_of(batch: Batch, places: Any) -> Any:
    """The rows at some places, as a table of the same make."""
    return batch.table.take(places) if hasattr(batch.table, "slice") else batch.table.iloc[places]


def wanted_columns(
    features: Sequence[str], program: Program, label_column: str | None, columns: Mapping[str, str] | None
) -> Wanted:
    """The columns of these features. A mapping from what is no feature is a slip, and is named."""
    renamed = columns or {}
    if unknown := [name for name in renamed if name not in program.features]:
        raise BadInput(
            f"column of {unknown[0]!r}: the program has no such feature, it has {some_names(program.features)}"
        )
    label = LABEL_COLUMN if label_column is None else label_column
    return Wanted(tuple(features), tuple(renamed.get(feature, feature) for feature in features), label)


def refuse_absent(there: Sequence[str], wanted: Wanted, where: str) -> None:
    """Every wanted column is there once, or the error names those that are not and the way out."""
    if absent := [name for name in wanted.columns if name not in there]:
        raise BadInput(
            f"{where}: has no column {some_names(absent)}: it has {some_names(there)}; say which "
            "column holds a feature with --column FEATURE=COLUMN, or carry features along with gbfl score --key"
        )
    if wanted.label not in there:
        raise BadInput(
            f"{where}: has no column {wanted.label!r} of labels: it has {some_names(there)}; "
            "say which holds them with --label COLUMN"
        )
    if repeated := [name for name in wanted.distinct if list(there).count(name) > 1]:
        raise BadInput(f"{where}: the column {repeated[0]!r} stands {list(there).count(repeated[0])} times, rename one")
