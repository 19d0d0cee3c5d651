"""CASE and look-ups: on features, on the number of a leaf, or on points. Their ends are constants of one type."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql.logic import Asked, Contests, HeldClause, LeafBelow, Logic, condition_of
from gbfl_compile.checking.strict.sql.values import (
    Book,
    Case,
    Constant,
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
