"""The one stored value of a table of parameters that would mend a view: read again with it and proved each time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from gbfl_compile.auditing.mend.spans import numbers_in
from gbfl_compile.auditing.region import exact_text
from gbfl_compile.auditing.story import Mend, TextLine
from gbfl_compile.auditing.verdict import Change
from gbfl_compile.auditing.view.domains import at_or_above
from gbfl_compile.checking.general.sql.relations import KnownTable, Tables
from gbfl_compile.databases.catalog import Column
from gbfl_compile.databases.views import Base

MOST_TRIED = 20


@dataclass(frozen=True, slots=True)
class StoredValue:
    """Another number in one row and column of a table."""

    base: Base
    row: int
    column: int
    value: float

    def tables(self, known: Tables) -> Tables:
        """What each name means to the reader, with this value stored."""

        def table(schema: str, name: str) -> KnownTable:
            facts = known(schema, name)
            if facts.key != self.base.key or facts.rows is None:
                return facts
            rows = [list(row) for row in facts.rows]
            rows[self.row][self.column] = _like(rows[self.row][self.column], self.value)
            return replace(facts, rows=tuple(map(tuple, rows)))

        return table


def _like(stored: Any, value: float) -> Any:
    """The number in the type of the one it replaces."""
    if isinstance(stored, Decimal):
        return Decimal(exact_text(value))
    return int(value) if isinstance(stored, int) else value


def find_stored_value(
    bases: Sequence[Base], known: Tables, changes: Sequence[Change], is_mended: Callable[[StoredValue], bool]
) -> Mend | None:
    """The first that mends it, of the numbers that the changes say are deployed and were approved otherwise."""
    for tried, (candidate, stored) in enumerate(_candidates(bases, known, changes)):
        if tried == MOST_TRIED:
            break
        if is_mended(candidate):
            names = [column.name for column in candidate.base.columns]
            facts = known(candidate.base.name.schema, candidate.base.name.name)
            row = (facts.rows or ())[candidate.row]
            text = ", ".join(f"{name} = {value}" for name, value in zip(names, row, strict=True))
            name = names[candidate.column]
            line = TextLine(candidate.row + 1, text, candidate.base.name.name, "row")
            return Mend(line, f"{name} = {stored}", f"{name} = {exact_text(candidate.value)}")
    return None


def _candidates(
    bases: Sequence[Base], known: Tables, changes: Sequence[Change]
) -> Iterator[tuple[StoredValue, int | float | Decimal]]:
    for base in bases:
        facts = known(base.name.schema, base.name.name)
        for number, row in enumerate(facts.rows or ()):
            for place, stored in enumerate(row):
                if isinstance(stored, bool) or not isinstance(stored, int | float | Decimal):
                    continue
                for value in _approved_numbers(changes, float(stored)):
                    if can_hold(base.columns[place], value):
                        yield StoredValue(base, number, place, value), stored


def _approved_numbers(changes: Sequence[Change], stored: float) -> Iterator[float]:
    """The numbers that were approved where a change has the stored one."""
    for change in changes:
        deployed = numbers_in(change.deployed)
        if stored in deployed:
            yield from (value for value in dict.fromkeys(numbers_in(change.approved)) if value not in deployed)


def can_hold(column: Column, value: float) -> bool:
    """Whether a column holds this very number."""
    return column.type.kind in ("integer", "decimal", "double") and at_or_above(column, value) == value
