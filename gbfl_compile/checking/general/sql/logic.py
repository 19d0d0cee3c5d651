"""Truth in SQL: conditions over features that may be a number, NULL or NaN, kept apart until the very end.

A truth value is a pair of formulas, where it is true and where it is false; elsewhere it is NULL. Formulas have two
values and no NOT: a set of values has a complement, and so have AND and OR. Equal formulas are one object, so that
the same condition asked twice is seen to be the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias, TypeVar, assert_never, cast
from weakref import WeakValueDictionary

from gbfl_compile.checking.general.sql.engines import Nan
from gbfl_compile.checking.reading.conditions import Comparison
from gbfl_compile.checking.reading.nodes import pay
from gbfl_compile.ir.intervals import above, below

Ranges: TypeAlias = tuple[tuple[float, float], ...]
"""Closed ranges of doubles, ascending, with numbers between any two."""

EVERY_NUMBER: Ranges = ((-math.inf, math.inf),)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Among:
    """The value of a feature is one of these numbers, or NULL or NaN where it says so."""

    feature: int
    numbers: Ranges
    null: bool
    nan: bool
    low: bool
    """Whether it may be a NaN with its sign bit set; where an engine does not tell the two apart, as for any NaN."""
    order: int


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Both:
    """Every part holds; with no part it is true."""

    parts: tuple[Formula, ...]
    order: int


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Either:
    """At least one part holds; with no part it is false."""

    parts: tuple[Formula, ...]
    order: int


@dataclass(frozen=True, slots=True)
class Points:
    """A sum of integers: `bias`, and the points of each formula that holds."""

    bias: int
    terms: tuple[tuple[Formula, int], ...] = ()

    @property
    def largest(self) -> int:
        """No value is larger than this, whatever its sign."""
        return abs(self.bias) + sum(abs(worth) for _, worth in self.terms)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Sign:
    """Points compared with nought."""

    points: Points
    comparison: Comparison
    order: int


Formula: TypeAlias = Among | Both | Either | Sign

Made = TypeVar("Made", Among, Both, Either, Sign)

_known: WeakValueDictionary[tuple[object, ...], Among | Both | Either | Sign] = WeakValueDictionary()
_orders = count()


def among(
    feature: int, numbers: Iterable[tuple[float, float]], null: bool, nan: bool, low: bool | None = None
) -> Formula:
    """A feature's value is one of these; true or false where that says nothing or leaves nothing."""
    kept, low = tidy(numbers), nan if low is None else low
    if null == nan == low and kept in ((), EVERY_NUMBER) and bool(kept) == null:
        return TRUE if null else FALSE
    key = ("among", feature, kept, null, nan, low)
    return _one(key, lambda order: Among(feature, kept, null, nan, low, order))


def sign(points: Points, comparison: Comparison) -> Formula:
    """Points compared with nought."""
    return _one(("sign", points, comparison), lambda order: Sign(points, comparison, order))


def _one(key: tuple[object, ...], make: Callable[[int], Made]) -> Made:
    found = _known.get(key)
    if found is None:
        found = _known[key] = make(next(_orders))
    return cast(Made, found)  # a key names its kind


def tidy(ranges: Iterable[tuple[float, float]]) -> Ranges:
    """Ranges in order; those that touch are one."""
    made: list[tuple[float, float]] = []
    for least, most in sorted((a + 0.0, b + 0.0) for a, b in ranges if a <= b):
        if made and least <= above(made[-1][1]):
            made[-1] = (made[-1][0], max(made[-1][1], most))
        else:
            made.append((least, most))
    return tuple(made)


def outside(ranges: Ranges) -> Ranges:
    """All numbers but these."""
    made = []
    start = -math.inf
    for least, most in ranges:
        if least > start:
            made.append((start, below(least)))
        if most == math.inf:
            return tuple(made)
        start = above(most)
    return (*made, (start, math.inf))


def _overlap(a: Ranges, b: Ranges) -> Ranges:
    return tuple((max(p, r), min(q, s)) for p, q in a for r, s in b if max(p, r) <= min(q, s))


def both(parts: Iterable[Formula]) -> Formula:
    """Every part holds; all tests of one feature become one set of values."""
    return _join(parts, Both)


def either(parts: Iterable[Formula]) -> Formula:
    """At least one part holds."""
    return _join(parts, Either)


def _join(parts: Iterable[Formula], kind: type[Both] | type[Either]) -> Formula:
    values: dict[int, Among] = {}
    others: dict[Formula, None] = {}
    settles = FALSE if kind is Both else TRUE
    waiting = list(parts)[::-1]
    while waiting:
        pay(1)
        part = waiting.pop()
        if isinstance(part, kind):
            waiting += part.parts[::-1]
        elif isinstance(part, Among):
            met = _met(values[part.feature], part, kind) if part.feature in values else part
            if not isinstance(met, Among):  # nothing is left, or nothing is left out
                if met is settles:
                    return settles
                del values[part.feature]
            else:
                values[part.feature] = met
        else:
            others[part] = None
    kept = sorted((*values.values(), *others), key=lambda part: part.order)
    if settles in kept:
        return settles
    if len(kept) == 1:
        return kept[0]
    made = tuple(kept)
    key = (kind.__name__, *(id(part) for part in made))  # parts live as long as the formula does, and so their ids
    if kind is Both:
        return _one(key, lambda order: Both(made, order))
    return _one(key, lambda order: Either(made, order))


def _met(a: Among, b: Among, kind: type[Both] | type[Either]) -> Formula:
    if kind is Both:
        numbers = _overlap(a.numbers, b.numbers)
        return among(a.feature, numbers, a.null and b.null, a.nan and b.nan, a.low and b.low)
    return among(a.feature, (*a.numbers, *b.numbers), a.null or b.null, a.nan or b.nan, a.low or b.low)


TRUE: Formula = Both((), next(_orders))
FALSE: Formula = Either((), next(_orders))
_known["Both",] = TRUE
_known["Either",] = FALSE

OPPOSITE: dict[Comparison, Comparison] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def opposite(formula: Formula) -> Formula:
    """Holds where the formula does not."""
    pay(1)
    match formula:
        case Among(feature, numbers, null, nan, low):
            return among(feature, outside(numbers), not null, not nan, not low)
        case Both(parts):
            return either(opposite(part) for part in parts)
        case Either(parts):
            return both(opposite(part) for part in parts)
        case Sign(points, comparison):
            return sign(points, OPPOSITE[comparison])
        case _:
            assert_never(formula)


@dataclass(frozen=True, slots=True)
class Truth:
    """Where an expression is true and where it is false; it is NULL elsewhere."""

    true: Formula
    false: Formula


NEVER_TRUE = Truth(FALSE, TRUE)
ALWAYS_TRUE = Truth(TRUE, FALSE)
UNKNOWN = Truth(FALSE, FALSE)


def constant(holds: bool) -> Truth:
    """A truth value that is the same for every row."""
    return ALWAYS_TRUE if holds else NEVER_TRUE


def is_known(formula: Formula) -> Truth:
    """True where the formula holds and false elsewhere, never NULL."""
    return Truth(formula, opposite(formula))


def unknown(truth: Truth) -> Formula:
    """Where it is NULL."""
    return both((opposite(truth.true), opposite(truth.false)))


def negate(truth: Truth) -> Truth:
    """NOT: NULL stays NULL."""
    return Truth(truth.false, truth.true)


def conjunction(parts: Sequence[Truth]) -> Truth:
    """AND of three values: false where one part is, whatever the others."""
    return Truth(both(part.true for part in parts), either(part.false for part in parts))


def disjunction(parts: Sequence[Truth]) -> Truth:
    """OR of three values: true where one part is, whatever the others."""
    return Truth(either(part.true for part in parts), both(part.false for part in parts))


def choose(condition: Formula, then: Truth, otherwise: Truth) -> Truth:
    """`then` where the condition holds, `otherwise` where it does not."""
    failing = opposite(condition)
    return Truth(
        either((both((condition, then.true)), both((failing, otherwise.true)))),
        either((both((condition, then.false)), both((failing, otherwise.false)))),
    )


def compare(nan: Nan, feature: int, comparison: Comparison, bound: float) -> Truth:
    """`x <comparison> bound` as an engine with this order of NaN answers it."""
    if math.isnan(bound):
        return _compared_with_nan(nan, feature, comparison)
    numbers = _numbers(comparison, bound)
    others = outside(tidy(numbers))
    if nan == "none":
        return Truth(among(feature, numbers, False, False), among(feature, others, False, False))
    high = comparison == "!=" if nan == "ieee" else comparison in (">", ">=", "!=")
    low = comparison in ("<", "<=", "!=") if nan == "total" else high
    return Truth(among(feature, numbers, False, high, low), among(feature, others, False, not high, not low))


def _numbers(comparison: Comparison, bound: float) -> Ranges:
    less = () if bound == -math.inf else ((-math.inf, below(bound)),)
    more = () if bound == math.inf else ((above(bound), math.inf),)
    match comparison:
        case "<":
            return less
        case "<=":
            return ((-math.inf, bound),)
        case ">":
            return more
        case ">=":
            return ((bound, math.inf),)
        case "==":
            return ((bound, bound),)
        case "!=":
            return (*less, *more)


def _compared_with_nan(nan: Nan, feature: int, comparison: Comparison) -> Truth:
    if nan == "ieee":
        holds = comparison == "!="
        present = among(feature, EVERY_NUMBER, False, True)
        return Truth(present, FALSE) if holds else Truth(FALSE, present)
    numbers_hold = comparison in ("<", "<=", "!=")
    nan_holds = comparison in ("<=", ">=", "==")
    low_holds = numbers_hold if nan == "total" else nan_holds
    return Truth(
        among(feature, EVERY_NUMBER if numbers_hold else (), False, nan_holds, low_holds),
        among(feature, () if numbers_hold else EVERY_NUMBER, False, not nan_holds, not low_holds),
    )


def compared_with_itself(nan: Nan, feature: int, comparison: Comparison) -> Truth:
    """`x = x` and the like: only NULL and, in IEEE engines, NaN tell."""
    numbers_hold = comparison in ("<=", ">=", "==")
    nan_holds = comparison == "!=" if nan == "ieee" else numbers_hold
    has_nan = nan != "none"
    return Truth(
        among(feature, EVERY_NUMBER if numbers_hold else (), False, has_nan and nan_holds),
        among(feature, () if numbers_hold else EVERY_NUMBER, False, has_nan and not nan_holds),
    )


def is_null(nan: Nan, feature: int) -> Truth:
    """`x IS NULL`; an engine without NaN has stored NULL for it."""
    return is_known(among(feature, (), True, nan == "none"))
