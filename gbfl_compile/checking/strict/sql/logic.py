"""Conditions of the strict form: a clause that holds, or a clause that fails, and nothing else.

The tests of one feature become a `Span`: the numbers on which it is true, and whether it is true for NULL and for NaN.
Unknown counts as false, which is right because there is no NOT. A conjunction of spans of different features is a
clause that holds, a disjunction one that fails. NULL and NaN must be treated alike, feature by feature: an artifact is
then the same for every mixture of them, and one reading speaks for all.

CASE and look-ups: on features, on the number of a leaf, or on points. Their ends are constants of one type.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from gbfl_compile.checking.reading.nodes import And, Condition, Or, Test, Unread
from gbfl_compile.checking.strict.sql.lexis import Lexis
from gbfl_compile.checking.strict.sql.values import (
    Book,
    Case,
    Constant,
    Contest,
    DoubtfulValue,
    LookUp,
    Number,
    Text,
    Truth,
    Value,
    Whole,
    ends_of,
    kind_of,
)
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
        raise Unread("OR between what are not conditions on features")
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


def choice(book: Book, features: tuple[str, ...], whens: Sequence[tuple[Asked, Value]], otherwise: Value) -> Value:
    """A CASE: on features, on a leaf's number, or on points."""
    if not whens or len({kind_of(each) for each in (otherwise, *(then for _, then in whens))}) != 1:
        raise Unread("a CASE without WHEN, or with values of different types")
    first = whens[0][0]
    if isinstance(first, LeafBelow):
        return _by_leaf(first.leaf, whens, otherwise)
    if isinstance(first, Contests):
        return _by_points(whens, otherwise)
    return Case(tuple((_condition(book, features, question), _end(then)) for question, then in whens), _end(otherwise))


def _condition(book: Book, features: tuple[str, ...], question: Asked) -> int:
    match question:
        case HeldClause(condition):
            return condition
        case Logic():
            return book.number_of(condition_of(question, features))
    raise Unread("a CASE that asks for features and for points")


def _end(found: Value) -> Case | Constant:
    if isinstance(found, Case | Number | Whole | Text | Truth) and not _is_no_number(found):
        return found
    raise Unread("a CASE on features whose values are not constants")


def _is_no_number(found: Value) -> bool:
    return isinstance(found, Number) and not math.isfinite(found.value)


def _by_leaf(leaf: Case, whens: Sequence[tuple[Asked, Value]], otherwise: Value) -> LookUp:
    """`CASE WHEN leaf < 4 THEN … END`, and such a CASE in it again: one constant from each bound to the next."""
    steps: list[tuple[float, Constant]] = []
    reached = -math.inf
    for question, then in (*whens, (LeafBelow(leaf, math.inf), otherwise)):
        if not isinstance(question, LeafBelow) or question.leaf is not leaf:
            raise Unread("a CASE that asks for the leaf and for something else")
        inner = _steps_of(leaf, then)
        if question.bound > reached:
            steps += [(min(bound, question.bound), end) for bound, end in _from(inner, reached, question.bound)]
            reached = question.bound
    return LookUp(leaf, tuple(steps))


def _from(steps: Sequence[tuple[float, Constant]], least: float, bound: float) -> Sequence[tuple[float, Constant]]:
    """The steps for the numbers from the least one up to the bound."""
    first = bisect.bisect_right(steps, least, key=lambda step: step[0])
    last = bisect.bisect_left(steps, bound, key=lambda step: step[0])
    return steps[first : last + 1]


def _steps_of(leaf: Case, found: Value) -> Sequence[tuple[float, Constant]]:
    if isinstance(found, LookUp) and found.leaf is leaf:
        return found.steps
    end = _end(found)
    if isinstance(end, Case):
        raise Unread("a look-up by leaf that asks for features again")
    return ((math.inf, end),)


def _by_points(whens: Sequence[tuple[Asked, Value]], otherwise: Value) -> DoubtfulValue:
    found = []
    for question, then in (*whens, (Contests(()), otherwise)):
        end = _end(then)
        if not isinstance(question, Contests) or isinstance(end, Case):
            raise Unread("a CASE that asks for points and for something else")
        found.append((question.parts, end))
    return DoubtfulValue(tuple(found[:-1]), found[-1][1])


def by_number(leaf: Case, values: Sequence[Value]) -> LookUp:
    """`[a, b, c][leaf + 1]`."""
    if kind_of(leaf) != "integer" or len({kind_of(each) for each in values}) != 1:
        raise Unread("a list with values of different types, or one that is not asked for the leaf")
    if not all(isinstance(end, Whole) and 0 <= end.value < len(values) for end in ends_of(leaf)):
        raise Unread("a list that is too short for the leaves")
    steps: list[tuple[float, Constant]] = []
    for number, found in enumerate(values, start=1):
        end = _end(found)
        if isinstance(end, Case):
            raise Unread("a list of something other than constants")
        steps.append((number if number < len(values) else math.inf, end))
    return LookUp(leaf, tuple(steps))
