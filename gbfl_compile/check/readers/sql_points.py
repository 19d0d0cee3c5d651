"""Sums of points: whole numbers chosen by conditions, added up, kept within what the engine's integers hold."""

from __future__ import annotations

from gbfl_compile.check.readers.sql_engines import Engine
from gbfl_compile.check.readers.sql_logic import FALSE, TRUE, Formula, Points, Top, Truth, both, opposite
from gbfl_compile.check.readers.sql_values import Constant, Pick, Total, Value, number_of_truth, picks, said
from gbfl_compile.check.reading import Unread


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
                raise Unread(f"{said(end)} in a sum of points")

    for node in picks(value):
        then, otherwise = of(node.then), of(node.otherwise)
        made[id(node)] = _picked(node.condition, then, otherwise)
    return of(value)


def _picked(condition: Formula, then: Total, otherwise: Total) -> Total:
    wide = then.wide or otherwise.wide
    if not otherwise.points.terms:
        more = _restricted(_added(then.points, otherwise.points, -1), condition)
        return Total(_added(otherwise.points, more, 1), wide)
    more = _restricted(_added(otherwise.points, then.points, -1), opposite(condition))
    return Total(_added(then.points, more, 1), wide)


def _restricted(points: Points, condition: Formula) -> Points:
    """The points where the condition holds, none elsewhere."""
    terms: dict[Formula | Top, int] = {}
    if points.bias:
        terms[condition] = points.bias
    for formula, worth in points.terms:
        if isinstance(formula, Top):
            raise Unread("the greatest of several sums, but only for some rows")
        if (joined := both((condition, formula))) is not FALSE:
            terms[joined] = terms.get(joined, 0) + worth
    return _collected(0, terms)


def _collected(bias: int, terms: dict[Formula | Top, int]) -> Points:
    bias += terms.pop(TRUE, 0)
    kept = sorted(((f, worth) for f, worth in terms.items() if worth), key=lambda term: term[0].order)
    return Points(bias, tuple(kept))


def _added(a: Points, b: Points, times: int) -> Points:
    terms = dict(a.terms)
    for formula, worth in b.terms:
        terms[formula] = terms.get(formula, 0) + times * worth
    return _collected(a.bias + times * b.bias, terms)


def plus(engine: Engine, left: Value, right: Value) -> Total:
    """Two sums added."""
    return _sum(engine, left, right, 1)


def minus(engine: Engine, left: Value, right: Value) -> Total:
    """One sum less another."""
    return _sum(engine, left, right, -1)


def _sum(engine: Engine, left: Value, right: Value, times: int) -> Total:
    a, b = total_of(engine, left), total_of(engine, right)
    return fitting(engine, _added(a.points, b.points, times), a.wide or b.wide)


def times(engine: Engine, left: Value, right: Value) -> Total:
    """A sum multiplied by a whole number."""
    a, b = total_of(engine, left), total_of(engine, right)
    if a.points.terms and b.points.terms:
        raise Unread("two sums of points multiplied")
    if a.points.terms:
        a, b = b, a
    factor = a.points.bias
    terms = {formula: factor * worth for formula, worth in b.points.terms}
    return fitting(engine, _collected(factor * b.points.bias, terms), a.wide or b.wide)


def fitting(engine: Engine, points: Points, wide: bool) -> Total:
    """The sum, where its type holds it for every row."""
    narrow = engine.narrow_integers and not wide
    if points.largest >= (2**31 if narrow else 2**63):
        raise Unread(f"a sum of points past {32 if narrow else 64} bits: it would be an error for some rows")
    return Total(points, wide)
