"""Choices have one type: the one that all their parts have together, those included that no row comes to.

`CASE WHEN FALSE THEN CAST(1 AS REAL) ELSE 0.4 END` is a REAL in most engines, and so is its 0.4. So every part is read,
and a number becomes what the widest of the parts makes of it. Parts that are not alike at all are refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from gbfl_compile.check.readers.sql_engines import Engine
from gbfl_compile.check.readers.sql_numbers import as_double
from gbfl_compile.check.readers.sql_values import Constant, Pick, Value, ends, kinds_of, mapped, said
from gbfl_compile.check.reading import Unread

NUMBERS = frozenset(["whole", "decimal", "double"])

MOST_TOGETHER = 38
"""Digits before and after the point that a common type of decimals is certain to have room for."""


def kinds_together(engine: Engine, parts: Iterable[Value]) -> frozenset[str]:
    """The kinds of all parts of a choice, NULL aside; refused where they have no type in common."""
    listed = list(parts)
    kinds = frozenset[str]().union(*map(kinds_of, listed)) - {"null"}
    numbers = NUMBERS | {"truth"} if engine.numbers_are_truths and not kinds & {"decimal", "double"} else NUMBERS
    if len(kinds) > 1 and not kinds <= numbers:
        raise Unread(f"a choice between values of different types ({', '.join(sorted(kinds))})")
    if "unknown" in kinds and len(listed) > 1:
        raise Unread("a choice with a column whose type is not known")
    if "decimal" in kinds and "double" not in kinds and engine.name != "postgres":
        _refuse_long_decimals(listed)
    return kinds


def _refuse_long_decimals(parts: Iterable[Value]) -> None:
    """Refuse decimals of which some engine would cut one to make room for another."""
    before = after = 0
    for part in parts:
        for end in ends(part):
            if not isinstance(end, Constant) or type(end.value) not in (int, Decimal):
                continue
            _, digits, exponent = Decimal(end.value).as_tuple()  # type: ignore[arg-type]  # asked in the line above
            assert isinstance(exponent, int)  # noqa: S101 - NaN and infinities are no literals
            before, after = max(before, len(digits) + exponent), max(after, -exponent)
    if before + after > MOST_TOGETHER:
        raise Unread(f"a choice between decimals that need {before + after} digits together")


def as_together(engine: Engine, value: Value, kinds: frozenset[str]) -> Value:
    """A value chosen from parts of these kinds, as their common type has it."""
    if kinds and kinds_of(value) == {"null"}:
        raise Unread("NULL for every row, of a type that other parts of the choice give it")
    if len(kinds) < 2:
        return value
    if "double" in kinds:
        return mapped(value, lambda end: _double(engine, end))
    if "decimal" in kinds:
        return mapped(value, _decimal)
    return value


def _double(engine: Engine, end: Value) -> Value:
    if isinstance(end, Constant) and type(end.value) in (int, Decimal):
        assert isinstance(end.value, int | Decimal)  # noqa: S101 - asked in the line above
        return Constant(as_double(engine, end.value))
    return _fitting(end, "double")


def _decimal(end: Value) -> Value:
    if isinstance(end, Constant) and type(end.value) is int:
        return Constant(Decimal(end.value))
    return _fitting(end, "decimal")


def _fitting(end: Value, kind: str) -> Value:
    if isinstance(end, Pick) or not kinds_of(end) <= {kind, "null"}:
        raise Unread(f"{said(end)} in a choice whose type is a {kind}")
    return end
