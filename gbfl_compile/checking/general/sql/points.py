"""Points in an answer: which rule set the label compares, and the same written out as choices where it compares none.

CASE WHEN a + b >= 2 THEN …   ->   scores whose larger one the label is, or choices by a and then by b
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Literal, TypeAlias

from gbfl_compile.checking.general.sql.logic import (
    FALSE,
    TRUE,
    Among,
    Both,
    Either,
    Formula,
    Points,
    Sign,
    both,
    either,
    opposite,
)
from gbfl_compile.checking.general.sql.relations import can_hold
from gbfl_compile.checking.general.sql.values import Pick, Total, Value, ends, pick, picks
from gbfl_compile.checking.reading.conditions import ON_NUMBERS
from gbfl_compile.checking.reading.nodes import Unread, pay

MOST_ORDERED = 5
"""Up to this many classes, every order of their scores is tried (541 of them, ties included)."""
MOST_SUMS = 20_000
"""Sums on the way when points are written out as choices."""

Tie: TypeAlias = Literal["lower", "higher"]
Known: TypeAlias = dict[tuple[Sign, int, int], tuple[Value, Value, Value]]
"""Comparisons between two values that were written out; the values are kept, so that their ids stay theirs."""


def without_points(value: Value) -> Value:
    """The value with every comparison of points written out as choices by the terms of the sum."""
    if not signs(value):
        return value
    made: dict[int, Value] = {}
    known: Known = {}

    def new(end: Value) -> Value:
        return made[id(end)] if isinstance(end, Pick) else end

    for node in picks(value):
        made[id(node)] = _branch(node.condition, new(node.then), new(node.otherwise), known)
    made[0] = new(value)
    return made[0]


def _branch(condition: Formula, then: Value, otherwise: Value, known: Known) -> Value:
    pay(1)
    match condition:
        case Among():
            return pick(condition, then, otherwise)
        case Both(parts):
            if not _has_points(condition):
                return pick(condition, then, otherwise)
            for part in reversed(parts):
                then = _branch(part, then, otherwise, known)
            return then
        case Either(parts):
            if not _has_points(condition):
                return pick(condition, then, otherwise)
            for part in reversed(parts):
                otherwise = _branch(part, then, otherwise, known)
            return otherwise
        case Sign():
            key = (condition, id(then), id(otherwise))
            if key not in known:
                known[key] = (then, otherwise, _by_terms(condition, then, otherwise, known))
            return known[key][-1]


def _has_points(formula: Formula) -> bool:
    waiting = [formula]
    while waiting:
        pay(1)
        match waiting.pop():
            case Sign():
                return True
            case Both(parts) | Either(parts):
                waiting += parts
            case Among():
                pass
    return False


def _by_terms(condition: Sign, then: Value, otherwise: Value, known: Known) -> Value:
    """Choices by each term of a sum in turn, until what is left of it no longer matters."""
    terms, holds = condition.points.terms, ON_NUMBERS[condition.comparison]
    most, least = [0], [0]
    for _, worth in reversed(terms):
        most.append(most[-1] + max(worth, 0))
        least.append(least[-1] + min(worth, 0))
    made: dict[tuple[int, int], Value] = {}

    def rest(place: int, total: int) -> Value:
        low, high = total + least[len(terms) - place], total + most[len(terms) - place]
        if low == high or (condition.comparison not in ("==", "!=") and holds(low, 0) == holds(high, 0)):
            return then if holds(low, 0) else otherwise
        if (place, total) not in made:
            pay(1)
            if len(made) > MOST_SUMS:
                raise Unread(f"a sum of points with more than {MOST_SUMS} intermediate values")
            formula, worth = terms[place]
            sides = rest(place + 1, total + worth), rest(place + 1, total)
            made[place, total] = _branch(formula, *sides, known)
        return made[place, total]

    return rest(0, condition.points.bias)


def without_dead_ends(value: Value, is_answer: Callable[[Value], bool]) -> Value:
    """The value without ends that are not answers and that no row comes to, such as a CASE without ELSE may have."""
    every = ends(value)
    good = next((end for end in every if is_answer(end)), None)
    if good is None or all(map(is_answer, every)) or signs(value):
        return value
    nodes = picks(value)
    reach: dict[int, Formula] = {id(nodes[-1]): TRUE}
    dead: set[tuple[int, bool]] = set()
    for node in reversed(nodes):
        here = reach.get(id(node), FALSE)
        for side, end in ((True, node.then), (False, node.otherwise)):
            if isinstance(end, Pick) or not is_answer(end):
                way = both((here, node.condition if side else opposite(node.condition)))
                if isinstance(end, Pick):
                    reach[id(end)] = either((reach.get(id(end), FALSE), way))
                elif not can_hold(way):
                    dead.add((id(node), side))
    made: dict[int, Value] = {}

    def new(node: Pick, side: bool) -> Value:
        end = node.then if side else node.otherwise
        if (id(node), side) in dead:
            return good
        return made[id(end)] if isinstance(end, Pick) else end

    for node in nodes:
        made[id(node)] = pick(node.condition, new(node, True), new(node, False))
    return made[id(nodes[-1])]


def difference(a: Points, b: Points) -> Points:
    """One sum less another."""
    terms = dict(a.terms)
    for formula, worth in b.terms:
        terms[formula] = terms.get(formula, 0) - worth
    kept = sorted(((f, worth) for f, worth in terms.items() if worth), key=lambda term: term[0].order)
    return Points(a.bias - b.bias, tuple(kept))


def signs(value: Value) -> list[Sign]:
    """The comparisons of points that a value depends on, in the order they appear."""
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
    """What the scores may be, judging by the label alone: differences of the sums it compares."""
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
            raise Unread("the label depends both on points and on a feature")


def is_scored(values: Sequence[Value]) -> bool:
    """Whether any of the outputs depends on points."""
    return any(any(isinstance(end, Total) for end in ends(value)) or signs(value) for value in values)
