"""CASE and look-ups: on features, on the number of a leaf, or on points. Their ends are constants of one type."""

from __future__ import annotations

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
    """`CASE WHEN leaf < 4 THEN … END`, worked out for each number the leaf can have."""
    bounds: list[tuple[int, Value]] = []
    for question, then in whens:
        if not isinstance(question, LeafBelow) or question.leaf is not leaf:
            raise Unread("a CASE that asks for the leaf and for something else")
        bounds.append((question.bound, then))
    found: dict[int, Constant] = {}
    for number in _leaf_numbers(leaf):
        then = next((then for bound, then in bounds if number < bound), otherwise)
        if isinstance(then, LookUp) and then.leaf is leaf:
            then = then.values[number]
        end = _end(then)
        if isinstance(end, Case):
            raise Unread("a look-up by leaf that asks for features again")
        found[number] = end
    return LookUp(leaf, found)


def _leaf_numbers(leaf: Case) -> list[int]:
    ends = dict.fromkeys(ends_of(leaf))
    return [end.value for end in ends if isinstance(end, Whole)]


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
    found: dict[int, Constant] = {}
    for number in _leaf_numbers(leaf):
        if not 0 <= number < len(values):
            raise Unread("a list that is too short for the leaves")
        end = _end(values[number])
        if isinstance(end, Case):
            raise Unread("a list of something other than constants")
        found[number] = end
    if not all(isinstance(each, Number | Whole | Text | Truth) for each in values):
        raise Unread("a list of something other than constants")
    return LookUp(leaf, found)
