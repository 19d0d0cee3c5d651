"""Values asked and compared: `x >= 1`, `leaf = 3`, `points_1 > points_0`, IS NULL, and a value as a condition."""

from __future__ import annotations

from decimal import Decimal

from gbfl_compile.check.readers.conditions import MIRRORED, ON_NUMBERS, Comparison
from gbfl_compile.check.readers.sql_engines import Engine
from gbfl_compile.check.readers.sql_logic import UNKNOWN, Points, Truth, constant, known, sign, unknown
from gbfl_compile.check.readers.sql_nan import compared, compared_with_itself, is_null
from gbfl_compile.check.readers.sql_numbers import as_double, text_as_double
from gbfl_compile.check.readers.sql_points import minus
from gbfl_compile.check.readers.sql_values import (
    Column,
    Constant,
    Joined,
    Logit,
    Pick,
    Share,
    Total,
    Value,
    Weights,
    folded,
    number_of_truth,
    said,
)
from gbfl_compile.check.reading import Unread


def truth_of(engine: Engine, value: Value) -> Truth:
    """A value where a condition is asked for."""

    def of(end: Value) -> Truth:
        match end:
            case Truth():
                return end
            case Constant(None):
                return UNKNOWN
            case Constant(bool() as holds):
                return constant(holds)
            case Constant(int() as number) if engine.numbers_are_truths:
                return constant(number != 0)
            case _:
                raise Unread(f"{said(end)} where a condition is asked for")

    return folded(value, of)


def null_test(engine: Engine, value: Value) -> Truth:
    """IS NULL."""

    def of(end: Value) -> Truth:
        match end:
            case Column(feature):
                return is_null(engine.nan, feature)
            case Constant(content):
                return constant(content is None)
            case Truth():
                return known(unknown(end))
            case Total() | Logit() | Weights() | Share() | Joined():
                return constant(False)
            case _:
                raise Unread(f"{said(end)} IS NULL")

    return folded(value, of)


def comparison_of(engine: Engine, left: Value, comparison: Comparison, right: Value) -> Truth:
    """`left <comparison> right`."""
    if isinstance(left, Truth) or isinstance(right, Truth):
        left, right = number_of_truth(engine, left), number_of_truth(engine, right)
    if isinstance(left, Pick):
        return folded(left, lambda end: comparison_of(engine, end, comparison, right))
    if isinstance(right, Pick):
        return folded(right, lambda end: comparison_of(engine, left, comparison, end))
    match left, right:
        case (Constant(None), _) | (_, Constant(None)):
            return UNKNOWN
        case Column(feature), Constant():
            return compared(engine.nan, feature, comparison, _bound(engine, right))
        case Constant(), Column(feature):
            return compared(engine.nan, feature, MIRRORED[comparison], _bound(engine, left))
        case Column(feature), Column(other) if feature == other:
            return compared_with_itself(engine.nan, feature, comparison)
        case Constant(), Constant():
            return constant(_constants_compared(engine, left, comparison, right))
        case (Total() | Constant(), Total() | Constant()):
            return _sign(minus(engine, left, right).points, comparison)
        case _:
            raise Unread(f"{said(left)} compared with {said(right)}")


def _sign(points: Points, comparison: Comparison) -> Truth:
    if not points.terms:
        return constant(ON_NUMBERS[comparison](points.bias, 0))
    return known(sign(points, comparison))


def _bound(engine: Engine, constant_: Constant) -> float:
    value = constant_.value
    if isinstance(value, str) and engine.bare_texts:
        return text_as_double(engine, value)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise Unread(f"a feature compared with {said(constant_)}")
    return as_double(engine, value)


def _constants_compared(engine: Engine, left: Constant, comparison: Comparison, right: Constant) -> bool:
    a, b = left.value, right.value
    if isinstance(a, str) and isinstance(b, str) and comparison in ("==", "!="):
        if not engine.exact_texts:
            raise Unread(f"texts compared: {engine.name} may take different ones for equal")
        return (a == b) == (comparison == "==")
    if isinstance(a, bool) and isinstance(b, bool) and comparison in ("==", "!="):
        return (a == b) == (comparison == "==")
    if isinstance(a, bool | str) or isinstance(b, bool | str) or a is None or b is None:
        raise Unread(f"{said(left)} compared with {said(right)}")
    if isinstance(a, float) != isinstance(b, float):
        a, b = as_double(engine, a), as_double(engine, b)
    if a != a or b != b:
        raise Unread("NaN compared with a constant")
    return ON_NUMBERS[comparison](a, b)  # type: ignore[arg-type]  # decimals compare exactly too
