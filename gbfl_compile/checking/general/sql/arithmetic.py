"""Arithmetic as far as rules need it: constants, and sums of points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from gbfl_compile.checking.general.sql.engines import Engine
from gbfl_compile.checking.general.sql.finite import calculate
from gbfl_compile.checking.general.sql.logic import FALSE, TRUE, Formula, Points, Truth, both, either, opposite
from gbfl_compile.checking.general.sql.values import (
    UNIT,
    Constant,
    Fractions,
    Near,
    Pick,
    Total,
    Value,
    describe,
    ends,
    kinds_of,
    map_ends,
    number_of_truth,
    pick,
    picks,
)
from gbfl_compile.checking.reading.nodes import Unread


def total_of(engine: Engine, value: Value) -> Total:
    """A value as a sum of points: whole numbers, chosen or added up."""
    if isinstance(value, Truth):
        value = number_of_truth(engine, value)
    made: dict[int, Total] = {}

    def of(end: Value) -> Total:
        match end:
            case Pick():
                return made[id(end)]
            case Total():
                return end
            case Constant(int() as number, wide) if not isinstance(number, bool):
                return Total(Points(number), wide)
            case _:
                raise Unread(f"{describe(end)} in a sum of points")

    for node in picks(value):
        then, otherwise = of(node.then), of(node.otherwise)
        made[id(node)] = _pick(node.condition, then, otherwise)
    return of(value)


def _pick(condition: Formula, then: Total, otherwise: Total) -> Total:
    return Total(_pick_points(condition, then.points, otherwise.points), then.wide or otherwise.wide)


def _pick_points(condition: Formula, then: Points, otherwise: Points) -> Points:
    if not otherwise.terms:
        return _add(otherwise, _restrict(_add(then, otherwise, -1), condition), 1)
    return _add(then, _restrict(_add(otherwise, then, -1), opposite(condition)), 1)


def fractions_of(value: Value) -> Points:
    """A value as a sum of points in parts of UNIT; refused where it has more digits than are certain to be exact."""
    made: dict[int, Points] = {}

    def of(end: Value) -> Points:
        match end:
            case Pick():
                return made[id(end)]
            case Total(points):
                return _collect(points.bias * UNIT, {formula: worth * UNIT for formula, worth in points.terms})
            case Fractions(points):
                return points
            case Constant(int() | float() | Decimal() as number) if not isinstance(number, bool):
                parts = Fraction(number) * UNIT
                if parts.denominator != 1 or abs(parts) >= MOST_EXACT * UNIT:
                    raise Unread(f"{describe(end)} in a sum of points: it has too many digits")
                return Points(int(parts))
            case _:
                raise Unread(f"{describe(end)} in a sum of points")

    for node in picks(value):
        made[id(node)] = _pick_points(node.condition, of(node.then), of(node.otherwise))
    return of(value)


MOST_EXACT = 2**30
BITS = UNIT // 2**20


def add_fractions(left: Value, right: Value, times: int) -> Fractions:
    """A sum with digits after the point. Decimals are added exactly; doubles where each has at most twenty bits."""
    sides = fractions_of(left), fractions_of(right)
    points, is_double = _add(*sides, times), "double" in kinds_of(left) | kinds_of(right)
    numbers = [number for side in sides for number in (side.bias, *(worth for _, worth in side.terms))]
    if points.largest >= MOST_EXACT * UNIT or (is_double and any(number % BITS for number in numbers)):
        raise Unread("points with decimals that doubles cannot hold exactly: write them as whole numbers")
    return Fractions(points, "double" if is_double else "decimal")


def is_fractional(value: Value) -> bool:
    """Whether a value is a choice or sum of numbers, some with digits after the point."""
    kinds = kinds_of(value)
    return kinds <= {"whole", "decimal", "double"} and bool(kinds & {"decimal", "double"}) and not _has_column(value)


def _has_column(value: Value) -> bool:
    return any(not isinstance(end, Constant | Fractions | Total) for end in ends(value))


def _restrict(points: Points, condition: Formula) -> Points:
    """The points where the condition holds, none elsewhere."""
    terms: dict[Formula, int] = {}
    if points.bias:
        terms[condition] = points.bias
    for formula, worth in points.terms:
        if (joined := both((condition, formula))) is not FALSE:
            terms[joined] = terms.get(joined, 0) + worth
    return _collect(0, terms)


def _collect(bias: int, terms: dict[Formula, int]) -> Points:
    bias += terms.pop(TRUE, 0)
    kept = sorted(((f, worth) for f, worth in terms.items() if worth), key=lambda term: term[0].order)
    return Points(bias, tuple(kept))


def _add(a: Points, b: Points, times: int) -> Points:
    terms = dict(a.terms)
    for formula, worth in b.terms:
        terms[formula] = terms.get(formula, 0) + times * worth
    return _collect(a.bias + times * b.bias, terms)


def _sum(engine: Engine, left: Value, right: Value, times: int) -> Total:
    """One sum and another, or less another."""
    a, b = total_of(engine, left), total_of(engine, right)
    return fitting(engine, _add(a.points, b.points, times), a.wide or b.wide)


def times(engine: Engine, left: Value, right: Value) -> Total:
    """A sum multiplied by a whole number."""
    a, b = total_of(engine, left), total_of(engine, right)
    if a.points.terms and b.points.terms:
        raise Unread("two sums of points multiplied")
    if a.points.terms:
        a, b = b, a
    factor = a.points.bias
    terms = {formula: factor * worth for formula, worth in b.points.terms}
    return fitting(engine, _collect(factor * b.points.bias, terms), a.wide or b.wide)


def fitting(engine: Engine, points: Points, wide: bool) -> Total:
    """The sum, where its type holds it for every row."""
    narrow = engine.narrow_integers and not wide
    if points.largest >= (2**31 if narrow else 2**63):
        raise Unread(f"a sum of points past {32 if narrow else 64} bits: it would be an error for some rows")
    return Total(points, wide)


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
            case Near(low, high):
                return replace(end, low=-high, high=-low)
            case Fractions(points, kind):
                return Fractions(_add(Points(0), points, -1), kind)
            case _:
                raise Unread(f"minus {describe(end)}")

    return map_ends(number_of_truth(engine, value), of)


def add(engine: Engine, left: Value, right: Value) -> Value:
    """`left + right`."""
    return _arithmetic(engine, "+", left, right, _plus)


def minus(engine: Engine, left: Value, right: Value) -> Value:
    """`left - right`."""
    return _arithmetic(engine, "-", left, right, subtract)


def multiply(engine: Engine, left: Value, right: Value) -> Value:
    """`left * right`."""
    return _arithmetic(engine, "*", left, right, _product)


def divide(engine: Engine, left: Value, right: Value) -> Value:
    """`left / right`."""
    return _arithmetic(engine, "/", left, right, _quotient)


def _arithmetic(
    engine: Engine, sign: str, left: Value, right: Value, act: Callable[[Engine, Value, Value], Value]
) -> Value:
    """A sum of points where it is one, otherwise each of the numbers it can come to; NULL where a part is."""
    left, right = number_of_truth(engine, left), number_of_truth(engine, right)
    missing = either((where_null(left), where_null(right)))
    sides = (left, right) if missing is FALSE else (_fill_in(left), _fill_in(right))
    if all(isinstance(side, Constant) for side in sides):
        value = calculate(engine, sign, *sides)
    else:
        try:
            value = act(engine, *sides)
        except Unread as error:
            try:
                value = calculate(engine, sign, *sides)
            except Unread:
                raise error from None
    return pick(missing, Constant(None), value)


def where_null(value: Value) -> Formula:
    """Where a value is NULL because of a choice; not where a column is."""
    made: dict[int, Formula] = {}

    def of(end: Value) -> Formula:
        return made[id(end)] if isinstance(end, Pick) else (TRUE if end == Constant(None) else FALSE)

    for node in picks(value):
        then, otherwise = of(node.then), of(node.otherwise)
        made[id(node)] = either((both((node.condition, then)), both((opposite(node.condition), otherwise))))
    return of(value)


def _fill_in(value: Value) -> Value:
    return map_ends(value, lambda end: Constant(1) if end == Constant(None) else end)  # nothing is divided by nought


def _plus(engine: Engine, left: Value, right: Value) -> Value:
    if is_fractional(left) or is_fractional(right):
        return add_fractions(left, right, 1)
    return _sum(engine, left, right, 1)


def subtract(engine: Engine, left: Value, right: Value) -> Total | Fractions:
    """`left - right` as a sum of points."""
    if is_fractional(left) or is_fractional(right):
        return add_fractions(left, right, -1)
    return _sum(engine, left, right, -1)


def _product(engine: Engine, left: Value, right: Value) -> Value:
    return times(engine, left, right)


def _quotient(engine: Engine, left: Value, right: Value) -> Value:
    del engine
    raise Unread(f"{describe(left)} divided by {describe(right)}")
