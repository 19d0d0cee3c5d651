"""What a SQL expression can be for any row: a column, a constant, a choice of such, a truth value, a sum of points.

Choices may share their parts and be a thousand long, so nothing that follows them recurses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from gbfl_compile.check.readers.conditions import MIRRORED, ON_NUMBERS, Comparison
from gbfl_compile.check.readers.limits import pay
from gbfl_compile.check.readers.sql_engines import Engine
from gbfl_compile.check.readers.sql_logic import (
    FALSE,
    TRUE,
    UNKNOWN,
    Formula,
    Points,
    Top,
    Truth,
    both,
    chosen,
    compared,
    compared_with_itself,
    constant,
    is_null,
    known,
    opposite,
    sign,
    unknown,
)
from gbfl_compile.check.readers.sql_numbers import as_double, text_as_double
from gbfl_compile.check.reading import Unread

MOST_CHOICES = 200_000


@dataclass(frozen=True, slots=True)
class Column:
    """A feature, taken as a double."""

    feature: int


@dataclass(frozen=True, slots=True)
class Constant:
    """NULL, a truth value, a whole number, a double, a decimal or a text."""

    value: bool | int | float | Decimal | str | None
    wide: bool = False
    """A whole number of 64 bits."""


@dataclass(frozen=True, slots=True)
class Total:
    """A sum of points."""

    points: Points
    wide: bool


@dataclass(frozen=True, slots=True)
class Logit:
    """Points made a double, each worth 2**-scale, kept between two bounds where it says so."""

    points: Points
    scale: int = 0
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Weights:
    """A sum of exp of logits; None stands for 1."""

    parts: tuple[Logit | None, ...]


@dataclass(frozen=True, slots=True)
class Share:
    """One weight over a sum of weights: a probability."""

    part: Logit | None
    of: tuple[Logit | None, ...]


@dataclass(frozen=True, slots=True)
class Joined:
    """Texts one after the other."""

    parts: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Other:
    """A column that is none of the features: it may be handed on, and nothing else."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Pick:
    """`then` where the condition holds, `otherwise` where it does not."""

    condition: Formula
    then: Value
    otherwise: Value


Value: TypeAlias = Column | Constant | Total | Logit | Weights | Share | Joined | Other | Truth | Pick


def pick(condition: Formula, then: Value, otherwise: Value) -> Value:
    """A choice, or the side itself where there is nothing to choose."""
    if condition is TRUE or then is otherwise:
        return then
    if condition is FALSE:
        return otherwise
    if isinstance(then, Constant) and isinstance(otherwise, Constant) and same(then, otherwise):
        return then
    return Pick(condition, then, otherwise)


def same(a: Constant, b: Constant) -> bool:
    """Whether two constants are one: 1, 1.0 and true are three."""
    return a == b and type(a.value) is type(b.value)


def picks(value: Value) -> list[Pick]:
    """The choices of a value, each after those it leads to."""
    order: list[Pick] = []
    seen: set[int] = set()
    waiting: list[tuple[Value, bool]] = [(value, False)]
    while waiting:
        pay(1)
        node, done = waiting.pop()
        if not isinstance(node, Pick):
            continue
        if done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            if len(seen) > MOST_CHOICES:
                raise Unread(f"more than {MOST_CHOICES} choices")
            waiting += ((node, True), (node.otherwise, False), (node.then, False))
    return order


def mapped(value: Value, change: Callable[[Value], Value]) -> Value:
    """The value with each of its ends changed."""
    made: dict[int, Value] = {}

    def new(end: Value) -> Value:
        return made[id(end)] if isinstance(end, Pick) else change(end)

    for node in picks(value):
        made[id(node)] = pick(node.condition, new(node.then), new(node.otherwise))
    return new(value)


def ends(value: Value) -> list[Value]:
    """What a value can come to."""
    nodes = picks(value)
    if not nodes:
        return [value]
    return [end for node in nodes for end in (node.then, node.otherwise) if not isinstance(end, Pick)]


def folded(value: Value, truth: Callable[[Value], Truth]) -> Truth:
    """A truth value of each end, as one."""
    made: dict[int, Truth] = {}

    def of(end: Value) -> Truth:
        return made[id(end)] if isinstance(end, Pick) else truth(end)

    for node in picks(value):
        made[id(node)] = chosen(node.condition, of(node.then), of(node.otherwise))
    return of(value)


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


def number_of_truth(engine: Engine, value: Value) -> Value:
    """A truth value as 1, 0 or NULL, where the engine has it so; anything else as it is."""
    if not isinstance(value, Truth):
        return value
    if not engine.numbers_are_truths:
        return pick(value.true, Constant(True), pick(value.false, Constant(False), Constant(None)))
    return pick(value.true, Constant(1), pick(value.false, Constant(0), Constant(None)))


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


def said(value: Value) -> str:
    """A value in words, for a message."""
    match value:
        case Constant(None):
            return "NULL"
        case Constant(content):
            text = repr(content)
            return text if len(text) <= 40 else f"{text[:37]}..."
        case Column(feature):
            return f"feature {feature}"
        case Other(name):
            return f"the column {name!r}, which is no feature,"
        case _:
            return {"Total": "a sum of points", "Truth": "a condition", "Pick": "a choice"}.get(
                type(value).__name__, "an expression"
            )
