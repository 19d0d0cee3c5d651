"""Rows of Python values in a table with columns of the right types, for a check in a private database.

Numbers go in bit for bit. Of the other columns each different value gets a number, and one CASE per column makes the
values from these. A text is made from its bytes in hexadecimal: the string literals of an artifact are what is checked.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gbfl_compile.backends.sql.dialect import Dialect, Spelling
from gbfl_compile.backends.sql.text import identifier
from gbfl_compile.ir.kinds import EPOCH, EPOCH_TIME, MICROSECOND, is_missing
from gbfl_compile.ir.nodes import Kind

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Matrix
    from gbfl_compile.ir.kinds import Value

MOST_VALUES = 400
"""Different values of one column that are made at once: a CASE of more WHENs is slow to plan."""


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows as numbers, and what the numbers of words and dates mean."""

    matrix: Matrix
    values: Mapping[int, tuple[Value, ...]]
    """Feature -> its different values; n in the matrix is the n-th of them, 0 a missing value."""


def blocks(dialect: Dialect, kinds: Sequence[Kind], rows: Sequence[Sequence[Value]]) -> Iterator[StagedRows]:
    """All rows, in blocks with few enough different values in each column."""
    others = [feature for feature, kind in enumerate(kinds) if kind != "number"]
    block: list[list[float]] = []
    seen: dict[int, dict[Value, int]] = {feature: {} for feature in others}
    for row in rows:
        if any(len(values) >= MOST_VALUES for values in seen.values()):
            yield _block(block, seen)
            block, seen = [], {feature: {} for feature in others}
        numbered: list[Value] = list(row)
        for feature, values in seen.items():
            value = row[feature]
            if is_missing(value):
                numbered[feature] = 0.0
            else:
                value = _possible(dialect.kinds[kinds[feature]], value)
                numbered[feature] = float(values.setdefault(value, len(values) + 1))
        block.append([float("nan") if value is None else float(value) for value in numbered])  # type: ignore[arg-type]
    yield _block(block, seen)


def _block(rows: list[list[float]], seen: Mapping[int, Mapping[Value, int]]) -> StagedRows:
    import numpy as np

    return StagedRows(np.array(rows, dtype=np.float64), {feature: tuple(values) for feature, values in seen.items()})


def _possible(spelling: Spelling, value: Value) -> Value:
    """A date beyond what the engine holds becomes the nearest that it holds: no bound lies between the two."""
    if spelling.holds_every_date or not isinstance(value, datetime.date):
        return value
    if not isinstance(value, datetime.datetime):
        return min(max(value, spelling.earliest), spelling.latest)
    first, last = (datetime.datetime.combine(day, datetime.time()) for day in (spelling.earliest, spelling.latest))
    return min(max(value, first), last)


def staged_column(dialect: Dialect, kind: Kind, values: Sequence[Value], column: str) -> str:
    """A column of numbers as the values they mean. The first WHEN never holds: it gives an empty column its type."""
    spelling = dialect.kinds[kind]
    name = identifier(dialect, column)
    whens = [
        f"WHEN {name} = {number} THEN {_value(spelling, kind, value)}"
        for number, value in enumerate((EXAMPLES[kind], *values), start=0)
    ]
    whens[0] = whens[0].replace(f"{name} = 0", f"{name} = -1", 1)
    return f"CASE {' '.join(whens)} ELSE NULL END AS {name}"


EXAMPLES: Mapping[Kind, Value] = {
    "category": "a",
    "boolean": True,
    "date": datetime.date(2000, 1, 1),
    "timestamp": datetime.datetime(2000, 1, 1, microsecond=1),
}


def _value(spelling: Spelling, kind: Kind, value: Value) -> str:
    if isinstance(value, str):
        return spelling.staged.format(hex=value.encode().hex(), text="", number="")
    if isinstance(value, datetime.datetime):
        number = (value - EPOCH_TIME) // MICROSECOND
        return spelling.staged.format(hex="", text=f"'{value}'", number=number)
    if isinstance(value, datetime.date):
        return spelling.staged.format(hex="", text=f"'{value}'", number=(value - EPOCH).days)
    return spelling.staged.format(hex="", text="", number=int(bool(value)))
