"""Conditions of the strict form: a clause that holds, or a clause that fails, and nothing else.

What is said of one feature is a `Span`: the numbers on which it is true, and whether it is true for NULL and for NaN.
Unknown counts as false, which is right because there is no NOT. A conjunction of spans of different features is a
clause that holds, a disjunction one that fails. NULL and NaN must be treated alike, feature by feature: an artifact is
then the same for every mixture of them, and one reading speaks for all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from gbfl_compile.checking.reading.nodes import And, Condition, Or, Test, Unread
from gbfl_compile.checking.strict.sql.lexis import Lexis
from gbfl_compile.checking.strict.sql.values import Case, Contest
from gbfl_compile.ir.intervals import Values, above, below

Range: TypeAlias = tuple[float, float]

EVERY: Range = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Span:
    """Where a condition on one feature is true."""

    numbers: tuple[Range, ...]
    """Closed ranges of doubles, ascending and apart."""
    null: bool
    high_nan: bool
    """For a NaN that is above every number, or that equals none."""
    low_nan: bool
    """For a NaN with its sign bit set, where that is below every number; elsewhere as `high_nan`."""


@dataclass(frozen=True, slots=True)
class Logic:
    """Spans of different features, all of which hold or any of which does. One span alone is both."""

    joined: Literal["all", "any"]
    spans: tuple[tuple[int, Span], ...]


TRUE = Logic("all", ())
FALSE = Logic("any", ())


@dataclass(frozen=True, slots=True)
class HeldClause:
    """A condition that an earlier stage has answered, by its number in the book."""

    condition: int


@dataclass(frozen=True, slots=True)
class LeafBelow:
    """`leaf < n`."""

    leaf: Case
    bound: float


@dataclass(frozen=True, slots=True)
class Contests:
    """Comparisons of points, all of which hold."""

    parts: tuple[Contest, ...]


Asked: TypeAlias = Logic | HeldClause | LeafBelow | Contests


def compare(lexis: Lexis, feature: int, sign: str, bound: float) -> Logic:
    """A feature compared with a literal, with NaN or with an infinity."""
    if math.isnan(bound):
        return _against_nan(lexis, feature, sign)
    if math.isinf(bound) and not lexis.infinities:
        raise Unread("a comparison with an infinity")
    bound += 0.0
    numbers: Range
    match sign:
        case "<":
            numbers = (-math.inf, below(bound)) if bound > -math.inf else (math.inf, -math.inf)
        case "<=":
            numbers = (-math.inf, bound)
        case ">":
            numbers = (above(bound), math.inf) if bound < math.inf else (math.inf, -math.inf)
        case ">=":
            numbers = (bound, math.inf)
        case _:
            raise Unread(f"a feature {sign} a number: equality is written as two bounds")
    upward = sign in (">", ">=")
    high = upward and lexis.nan in ("greatest", "total")
    low = not upward if lexis.nan == "total" else high
    return _single(feature, Span((numbers,) if numbers[0] <= numbers[1] else (), False, high, low))


def _against_nan(lexis: Lexis, feature: int, sign: str) -> Logic:
    if lexis.nan != "greatest" or sign not in ("=", "<>"):
        raise Unread(f"a comparison {sign} NaN, which {lexis.engine} does not answer for every NaN")
    return is_nan(feature) if sign == "=" else present(feature)


def is_nan(feature: int) -> Logic:
    """NaN, and not NULL."""
    return _single(feature, Span((), False, True, True))


def present(feature: int) -> Logic:
    """A number."""
    return _single(feature, Span((EVERY,), False, False, False))


def is_null(lexis: Lexis, feature: int, negated: bool) -> Logic:
    """NULL, or not; an engine without NaN has no other missing value."""
    if not negated:
        nan = lexis.nan == "none"
        return _single(feature, Span((), True, nan, nan))
    if lexis.nan != "none":
        raise Unread(f"IS NOT NULL, which in {lexis.engine} holds for NaN")
    return present(feature)


def _single(feature: int, span: Span) -> Logic:
    return Logic("all", ((feature, span),))


def both(left: Asked, right: Asked) -> Asked:
    """AND."""
    match left, right:
        case Contests(one), Contests(other):
            return Contests((*one, *other))
        case Logic() as one, Logic() as other:
            return _merge("all", one, other)
    raise Unread("AND between conditions of different kinds")


def either(left: Asked, right: Asked) -> Asked:
    """OR."""
    if not isinstance(left, Logic) or not isinstance(right, Logic):
        raise Unread("OR between what are no conditions on features")
    found = _merge("any", left, right)
    points = sum(least == most for _, span in found.spans for least, most in span.numbers)
    if points > 1:  # ClickHouse and DataFusion make it an IN, which compares bits and misses -0.0
        raise Unread("several single values joined by OR, which engines look up in their own ways")
    return found


def _merge(joined: Literal["all", "any"], left: Logic, right: Logic) -> Logic:
    neutral = TRUE if joined == "all" else FALSE
    if left == neutral or right == neutral:
        return right if left == neutral else left
    spans: dict[int, Span] = {}
    for part in (left, right):
        if not part.spans or (len(part.spans) > 1 and part.joined != joined):
            raise Unread("AND and OR of different features mixed: neither a clause that holds nor one that fails")
        for feature, span in part.spans:
            known = spans.get(feature)
            spans[feature] = span if known is None else _joined_spans(joined, known, span)
    return Logic(joined, tuple(sorted(spans.items())))


def _joined_spans(joined: Literal["all", "any"], one: Span, other: Span) -> Span:
    if joined == "all":
        pairs = ((max(a[0], b[0]), min(a[1], b[1])) for a in one.numbers for b in other.numbers)
        numbers = tuple(pair for pair in pairs if pair[0] <= pair[1])
        return Span(numbers, one.null and other.null, one.high_nan and other.high_nan, one.low_nan and other.low_nan)
    apart: list[Range] = []
    for least, most in sorted((*one.numbers, *other.numbers)):
        if apart and least <= above(apart[-1][1]):
            apart[-1] = (apart[-1][0], max(apart[-1][1], most))
        else:
            apart.append((least, most))
    return Span(tuple(apart), one.null or other.null, one.high_nan or other.high_nan, one.low_nan or other.low_nan)


def condition_of(logic: Logic, features: tuple[str, ...]) -> Condition:
    """A clause that holds or fails, as the prover takes it."""
    tests = tuple(Test(feature, _values(span, features[feature])) for feature, span in logic.spans)
    return And(tests) if logic.joined == "all" else Or(tests)


def _values(span: Span, name: str) -> tuple[Values, ...]:
    if not span.null == span.high_nan == span.low_nan:
        raise Unread(f"a condition on {name!r} that does not treat NULL and every NaN alike")
    if len(span.numbers) == 1:
        return (Values(*span.numbers[0], span.null),)
    ranges = [Values(least, most, False) for least, most in span.numbers]
    if span.null:
        ranges.append(Values(math.inf, -math.inf, True))
    return tuple(ranges) or (Values(math.inf, -math.inf, False),)
