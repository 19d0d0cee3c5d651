"""The columns of a table as it was learned from: names, kinds, and which text each code of an encoded row means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gbfl_compile.ir.kinds import Codebook
from gbfl_compile.ir.nodes import Kind, OneOf, Program

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Matrix


@dataclass(frozen=True, slots=True)
class Columns:
    """What is known of each column of a table that has words, dates or missing values."""

    features: tuple[str, ...]
    kinds: tuple[Kind, ...]
    book: Codebook
    """The known texts of each category, commonest first; their codes in a row are 1, 2, ..."""
    marks: tuple[tuple[str, ...], ...]
    """Texts that mean a missing value, as each category column has them."""
    whole: tuple[bool, ...]
    """Whether the values of a column are whole numbers; dates are."""

    @property
    def program_kinds(self) -> tuple[Kind, ...]:
        """The kinds as a program has them: none where all are numbers."""
        return () if set(self.kinds) == {"number"} else self.kinds

    def one_of(self, feature: int, texts: tuple[str, ...], *, negated: bool, if_missing: bool) -> OneOf:
        """An atom that answers a mark of a missing value as it answers a missing value: the table need not be cleaned.

        >>> Columns(("job",), ("category",), Codebook((("a", "b"),)), (("?",),), (False,)).one_of(
        ...     0, ("a",), negated=True, if_missing=False
        ... )
        OneOf(feature=0, values=('?', 'a'), negated=True, if_missing=False)
        """
        listed = (*texts, *self.marks[feature]) if negated != if_missing else texts
        return OneOf(feature, tuple(sorted(set(listed))), negated, if_missing)


@dataclass(frozen=True, slots=True)
class EncodedTable:
    """Rows of such a table as doubles: texts by their codes, NaN where a value is missing."""

    columns: Columns
    x: Matrix


def recorded_marks(program: Program) -> tuple[str, ...]:
    """The texts that meant a missing value in the table a program was mined from."""
    mining = program.metadata.get("mining")
    columns = mining.get("data", {}).get("columns", ()) if isinstance(mining, dict) else ()
    marks = [column.get("missing_texts", ()) for column in columns if isinstance(column, dict)]
    return tuple(sorted({str(mark) for each in marks for mark in each}))


def used_features(program: Program) -> tuple[bool, ...]:
    """Which features some clause asks about: a table need not have the others."""
    mentioned = {atom.feature for clause in program.clauses for atom in clause.atoms}
    return tuple(feature in mentioned for feature in range(len(program.features)))
