"""Rule sets: is the label that of the points? Checked for every order of scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Literal, TypeAlias

from gbfl_compile.checking.general.sql.logic import Among, Both, Either, Formula, Points, Sign
from gbfl_compile.checking.general.sql.values import Pick, Total, Value, ends, picks
from gbfl_compile.checking.reading.conditions import ON_NUMBERS
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.reading.work_limit import pay

MOST_ORDERED = 5
"""Up to so many classes every order of their scores is tried (541 of them, ties included)."""

Tie: TypeAlias = Literal["lower", "higher"]


def difference(a: Points, b: Points) -> Points:
    """One sum less another."""
    terms = dict(a.terms)
    for formula, worth in b.terms:
        terms[formula] = terms.get(formula, 0) - worth
    kept = sorted(((f, worth) for f, worth in terms.items() if worth), key=lambda term: term[0].order)
    return Points(a.bias - b.bias, tuple(kept))


def signs(value: Value) -> list[Sign]:
    """The comparisons of points that a value depends on, in the order they stand."""
    found: dict[Sign, None] = {}
    for node in reversed(picks(value)):
        waiting = [node.condition]
        while waiting:
            pay(1)
            part = waiting.pop()
            match part:
                case Sign():
                    found[part] = None
                case Both(parts) | Either(parts):
                    waiting += parts[::-1]
                case Among():
                    pass
    return list(found)


def scores_by_label(label: Value, classes: int) -> Iterator[tuple[Points, ...]]:
    """What the scores may be, told by the label alone: differences of the sums it compares."""
    questions = signs(label)
    zero = Points(0)
    if classes == 2:
        for each in questions[:1]:
            yield zero, difference(zero, each.points)
            yield zero, each.points
        return
    first = [each.points for each in questions[: classes - 1]]
    if len(first) == classes - 1 and classes <= MOST_ORDERED:
        for order in permutations(first):
            yield zero, *(difference(zero, points) for points in order)


def tie_of(label: Value, winner: Callable[[Value], int], scores: Sequence[Points]) -> Tie | None:
    """How ties are broken where the label is the class with most points; None where it is not.

    `winner` gives the class of an end of the label.
    """
    if len(scores) > MOST_ORDERED:
        return None
    try:
        orders = list(_orders(scores))
        sides = {each: _pairs(each.points, scores) for each in signs(label)}
    except LookupError:
        return None
    ties: tuple[Tie, Tie] = ("lower", "higher")
    for tie in ties:
        sign = 1 if tie == "higher" else -1
        if all(
            _answer(label, winner, sides, ranks) == max(range(len(ranks)), key=lambda c: (ranks[c], sign * c))
            for ranks in orders
        ):
            return tie
    return None


Ranks: TypeAlias = tuple[int, ...]
Sides: TypeAlias = tuple[int, int]
"""The classes whose scores are compared."""


def _orders(scores: Sequence[Points]) -> Iterator[Ranks]:
    """Every order the scores can have, ties included: those with a constant difference, or an equal one, keep it."""
    count = len(scores)
    groups: dict[Points, list[tuple[int, int]]] = {}
    for i in range(count):
        for j in range(count):
            if i != j:
                groups.setdefault(difference(scores[i], scores[j]), []).append((i, j))
    for ranks in _ranks(count):
        if all(_fits(points, pairs, ranks) for points, pairs in groups.items()):
            yield ranks


def _fits(points: Points, pairs: list[tuple[int, int]], ranks: Ranks) -> bool:
    found = {_sign(ranks[i] - ranks[j]) for i, j in pairs}
    return len(found) == 1 and (bool(points.terms) or found == {_sign(points.bias)})


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _ranks(count: int) -> Iterator[Ranks]:
    def grow(made: Ranks) -> Iterator[Ranks]:
        if len(made) == count:
            if set(made) == set(range(max(made) + 1)):
                yield made
            return
        for rank in range(count):
            yield from grow((*made, rank))

    yield from grow(())


def _pairs(points: Points, scores: Sequence[Points]) -> Sides:
    """Which scores a comparison is about; LookupError where it is about something else."""
    for i, a in enumerate(scores):
        for j, b in enumerate(scores):
            if i != j and difference(a, b) == points:
                return i, j
    raise LookupError


def _answer(label: Value, winner: Callable[[Value], int], sides: Mapping[Sign, Sides], ranks: Ranks) -> int:
    value = label
    while isinstance(value, Pick):
        value = value.then if _holds(value.condition, sides, ranks) else value.otherwise
    return winner(value)


def _holds(formula: Formula, sides: Mapping[Sign, Sides], ranks: Ranks) -> bool:
    match formula:
        case Sign():
            left, right = sides[formula]
            return ON_NUMBERS[formula.comparison](ranks[left] - ranks[right], 0)
        case Both(parts):
            return all(_holds(part, sides, ranks) for part in parts)
        case Either(parts):
            return any(_holds(part, sides, ranks) for part in parts)
        case Among():
            raise Unread("the label asks for points and for a feature")


def is_scored(values: Sequence[Value]) -> bool:
    """Whether any of the outputs depends on points."""
    return any(any(isinstance(end, Total) for end in ends(value)) or signs(value) for value in values)
