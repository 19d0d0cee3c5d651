"""The unit of explaining: rows that the black box is asked about together, whoever does the asking.

Libraries for matrix products round a row differently in blocks of different sizes, so what a row is asked beside
decides the last bit of its answer. Units are cut at fixed places of the table: neither the number of workers nor how
many units one of them is given at a time changes what the black box is asked, and so no bit of what it answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from gbfl_compile.learn.explain_domain import Domain
from gbfl_compile.learn.explain_rows import Wanted

UNIT_ROWS = 1000
MANY_ROWS = 20_000
"""Beyond so many rows units are four times as large: the black box is asked in larger blocks, at less cost a row."""


@dataclass(frozen=True, slots=True, order=True)
class Unit:
    """The rows from `begin` up to `end`."""

    begin: int
    end: int

    @property
    def rows(self) -> slice:
        """Where they are."""
        return slice(self.begin, self.end)


def rows_in_a_unit(rows: int) -> int:
    """How many rows a unit of so large a table has."""
    return UNIT_ROWS if rows <= MANY_ROWS else 4 * UNIT_ROWS


def units_of(rows: int, unit_rows: int) -> tuple[Unit, ...]:
    """The units of a table; one, an empty one, where there are no rows.

    >>> units_of(5, 2)
    (Unit(begin=0, end=2), Unit(begin=2, end=4), Unit(begin=4, end=5))
    """
    return tuple(Unit(begin, min(rows, begin + unit_rows)) for begin in range(0, max(1, rows), unit_rows))


def in_chunks(units: Sequence[Unit], units_in_a_chunk: int) -> Iterator[tuple[Unit, ...]]:
    """Units, so many together."""
    for begin in range(0, len(units), units_in_a_chunk):
        yield tuple(units[begin : begin + units_in_a_chunk])


def explainable_now(
    explainer: Any, units: Sequence[Unit], spent: Mapping[Unit, int], domain: Domain
) -> tuple[Any, tuple[Unit, ...]]:
    """The next units that can be explained side by side, and the explainer to do so.

    Without a query budget these are all that are not in `spent`. A budget is spent in the order of rows, so side by
    side go only units that are sure to fit whole, whatever those before them cost at most. Where not even one is,
    the next goes alone with just what is left.
    """
    missing = tuple(unit for unit in units if unit not in spent)
    wanted = _wanted(explainer)
    if wanted is None or wanted.max_queries is None:
        return explainer, missing
    dearest, total, at_most, sure = wanted.dearest(domain), units[-1].end, 0, []
    for unit in units:
        rows = unit.end - unit.begin
        left = wanted.max_queries - at_most - (total - unit.end)  # a query for the class of each row still to come
        if unit in spent:
            at_most += spent[unit]
        elif left >= rows + rows * dearest:
            sure.append(unit)
            at_most += rows + rows * dearest
        elif sure:
            break
        else:
            return _with_queries(explainer, left), (unit,)
    return _with_queries(explainer, None), tuple(sure)


def _wanted(explainer: Any) -> Wanted | None:
    if not isinstance(explainer, partial):
        return None
    given = (*explainer.args, *explainer.keywords.values())
    return next((value for value in given if isinstance(value, Wanted)), None)


def _with_queries(explainer: Any, most: int | None) -> Any:
    def limited(value: Any) -> Any:
        return replace(value, max_queries=most) if isinstance(value, Wanted) else value

    arguments = {key: limited(value) for key, value in explainer.keywords.items()}
    return partial(explainer.func, *(limited(value) for value in explainer.args), **arguments)
