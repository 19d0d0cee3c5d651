"""Arithmetic as far as rules need it: constants, sums of points, and the exp and shares that make probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from gbfl_compile.check.readers.sql_engines import Engine
from gbfl_compile.check.readers.sql_logic import Points, top
from gbfl_compile.check.readers.sql_numbers import as_double
from gbfl_compile.check.readers.sql_points import fitting, minus, plus, times, total_of
from gbfl_compile.check.readers.sql_values import Constant, Logit, Share, Total, Value, Weights, mapped, said
from gbfl_compile.check.reading import Unread


def _whole(value: Value) -> int | None:
    if isinstance(value, Constant) and type(value.value) is int:
        return value.value
    return None


def _real(value: Value) -> float | None:
    if isinstance(value, Constant) and isinstance(value.value, float):
        return value.value
    return None


def _number(engine: Engine, value: Value) -> float | None:
    """A constant beside a double, which makes it one too."""
    if isinstance(value, Constant) and type(value.value) in (int, float, Decimal):
        assert isinstance(value.value, int | float | Decimal)  # noqa: S101 - asked in the line above
        return as_double(engine, value.value)
    return None


def negative(engine: Engine, value: Value) -> Value:
    """`-value`."""

    def of(end: Value) -> Value:
        match end:
            case Constant(None):
                return end
            case Constant(int() as number, wide) if not isinstance(number, bool):
                return Constant(-number, wide)
            case Constant(float() as number):
                return Constant(-number)
            case Constant(Decimal() as number):
                return Constant(number.copy_negate())  # `-number` would round to 28 digits
            case Total():
                return times(engine, Constant(-1), end)
            case _:
                raise Unread(f"minus {said(end)}")

    return mapped(value, of)


def added(engine: Engine, left: Value, right: Value) -> Value:
    """`left + right`."""
    a, b = _whole(left), _whole(right)
    if a is not None and b is not None:
        return _constant(engine, a + b, left, right)
    if isinstance(left, Weights) or isinstance(right, Weights):
        return Weights((*_weights(engine, left), *_weights(engine, right)))
    if _real(left) == 1.0 or _real(right) == 1.0:
        return Weights((*_weights(engine, left), *_weights(engine, right)))
    return plus(engine, left, right)


def _constant(engine: Engine, number: int, left: Value, right: Value) -> Value:
    wide = isinstance(left, Constant) and isinstance(right, Constant) and (left.wide or right.wide)
    fitting(engine, Points(number), wide)
    return Constant(number, wide)


def _weights(engine: Engine, value: Value) -> tuple[Logit | None, ...]:
    if isinstance(value, Weights):
        return value.parts
    if _number(engine, value) == 1.0:
        return (None,)
    raise Unread(f"{said(value)} in a sum of exps")


def subtracted(engine: Engine, left: Value, right: Value) -> Value:
    """`left - right`: always a sum of points, even of constants, for it may be on its way to EXP."""
    return minus(engine, left, right)


def multiplied(engine: Engine, left: Value, right: Value) -> Value:
    """`left * right`."""
    a, b = _whole(left), _whole(right)
    if a is not None and b is not None:
        return _constant(engine, a * b, left, right)
    if isinstance(left, Logit) or isinstance(right, Logit):
        logit, factor = (left, right) if isinstance(left, Logit) else (right, left)
        return _scaled(engine, logit, factor, 1)
    if (x := _real(left)) is not None and (y := _number(engine, right)) is not None:
        return _finite(x * y)
    if (y := _real(right)) is not None and (x := _number(engine, left)) is not None:
        return _finite(x * y)
    return times(engine, left, right)


def divided(engine: Engine, left: Value, right: Value) -> Value:
    """`left / right`: of doubles, of points by a power of two, of weights."""
    if isinstance(left, Logit):
        return _scaled(engine, left, right, -1)
    if isinstance(right, Weights):
        part = _weights(engine, left)
        if len(part) != 1:
            raise Unread("a sum of exps over another")
        return Share(part[0], right.parts)
    x, y = _number(engine, left), _number(engine, right)
    if x is None or not y or (_real(left) is None and _real(right) is None):
        raise Unread(f"{said(left)} divided by {said(right)}")
    return _finite(x / y)


def _finite(number: float) -> Constant:
    if not math.isfinite(number):
        raise Unread("constants that come to no number")
    return Constant(number + 0.0)


def _scaled(engine: Engine, logit: Value, factor: Value, sign: int) -> Logit:
    worth = _number(engine, factor)
    if not isinstance(logit, Logit) or logit.low is not None or logit.high is not None or not worth:
        raise Unread(f"{said(logit)} times {said(factor)}")
    mantissa, exponent = math.frexp(worth)
    if mantissa != 0.5:
        raise Unread(f"points are worth {worth!r}, which is no power of two")
    return replace(logit, scale=logit.scale - sign * (exponent - 1))


def extreme(engine: Engine, greatest: bool, parts: Sequence[Value]) -> Value:
    """GREATEST and LEAST: of sums, or of a logit and a bound."""
    logits = [part for part in parts if isinstance(part, Logit)]
    if not logits:
        if not greatest:
            raise Unread("the least of several sums")
        sums = [total_of(engine, part) for part in parts]
        if all(not each.points.terms for each in sums):
            return Constant(max(each.points.bias for each in sums), any(each.wide for each in sums))
        made = top([each.points for each in sums])
        return fitting(engine, Points(0, ((made, 1),)), any(each.wide for each in sums))
    bounds = [_number(engine, part) for part in parts if not isinstance(part, Logit)]
    if len(logits) != 1 or len(bounds) != 1 or bounds[0] is None:
        raise Unread("an extreme of something else than one number and its bound")
    (logit,), bound = logits, bounds[0]
    if (logit.low if greatest else logit.high) is not None:
        raise Unread("a number bounded twice on one side")
    return replace(logit, low=bound) if greatest else replace(logit, high=bound)


def exp_of(value: Value) -> Value:
    """EXP of points."""
    if not isinstance(value, Logit):
        raise Unread(f"EXP of {said(value)}")
    return Weights((value,))
