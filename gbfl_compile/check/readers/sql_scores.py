"""Rule sets: are the label, the probabilities and the reason those of the points? Checked for every order of scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Literal, TypeAlias

from gbfl_compile.check.readers.conditions import ON_NUMBERS
from gbfl_compile.check.readers.limits import pay
from gbfl_compile.check.readers.sql_logic import FALSE, TRUE, Among, Both, Either, Formula, Points, Sign, Top
from gbfl_compile.check.readers.sql_values import (
    Constant,
    Joined,
    Logit,
    Pick,
    Share,
    Total,
    Value,
    Weights,
    ends,
    picks,
    said,
)
from gbfl_compile.check.reading import Unread

MOST_ORDERED = 5
"""Up to so many classes every order of their scores is tried (541 of them, ties included)."""

LEAST_CLAMP, MOST_CLAMP = 50.0, 709.0
"""Where a logit may be cut off: beyond 50 nothing changes by 1e-12, beyond 709 exp overflows."""

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
    """What the scores may be, told by the label alone: the sums whose greatest is asked for, or differences."""
    asked = signs(label)
    for each in asked:
        for formula, _ in each.points.terms:
            if isinstance(formula, Top) and len(formula.sums) == classes:
                yield formula.sums
                return
    zero = Points(0)
    if classes == 2:
        for each in asked[:1]:
            yield zero, difference(zero, each.points)
            yield zero, each.points
        return
    first = [each.points for each in asked[: classes - 1]]
    if len(first) == classes - 1 and classes <= MOST_ORDERED:
        for order in permutations(first):
            yield zero, *(difference(zero, points) for points in order)


def tie_of(label: Value, winner: Callable[[Value], int], scores: Sequence[Points]) -> Tie | None:
    """How ties are broken where the label is the class with most points; None where it is not.

    `winner` gives the class of an end of the label.
    """
    if len(scores) > MOST_ORDERED:
        return "lower" if _is_first_at_top(label, winner, scores) else None
    try:
        orders = list(_orders(scores))
        told = {each: _pairs(each.points, scores) for each in signs(label)}
    except LookupError:
        return None
    ties: tuple[Tie, Tie] = ("lower", "higher")
    for tie in ties:
        sign = 1 if tie == "higher" else -1
        if all(
            _answer(label, winner, told, ranks) == max(range(len(ranks)), key=lambda c: (ranks[c], sign * c))
            for ranks in orders
        ):
            return tie
    return None


Ranks: TypeAlias = tuple[int, ...]
Sides: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], int]
"""The greatest of these scores against the greatest of those, and which way round."""


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
    def grown(made: Ranks) -> Iterator[Ranks]:
        if len(made) == count:
            if set(made) == set(range(max(made) + 1)):
                yield made
            return
        for rank in range(count):
            yield from grown((*made, rank))

    yield from grown(())


def _pairs(points: Points, scores: Sequence[Points]) -> Sides:
    """Which scores a comparison is about; LookupError where it is about something else."""
    tops = [(formula, worth) for formula, worth in points.terms if isinstance(formula, Top)]
    places = {score: c for c, score in reversed(list(enumerate(scores)))}
    if not tops:
        for i, a in enumerate(scores):
            for j, b in enumerate(scores):
                if i != j and difference(a, b) == points:
                    return (i,), (j,), 1
        raise LookupError
    (found, worth), *more = tops
    if more or worth not in (1, -1):
        raise LookupError
    among = tuple(places[each] for each in found.sums)
    rest = Points(points.bias, tuple(term for term in points.terms if term[0] is not found))
    one = difference(Points(0), rest) if worth == 1 else rest
    return (places[one],), among, -worth


def _answer(label: Value, winner: Callable[[Value], int], told: Mapping[Sign, Sides], ranks: Ranks) -> int:
    value = label
    while isinstance(value, Pick):
        value = value.then if _holds(value.condition, told, ranks) else value.otherwise
    return winner(value)


def _holds(formula: Formula, told: Mapping[Sign, Sides], ranks: Ranks) -> bool:
    match formula:
        case Sign():
            left, right, way = told[formula]
            ahead = max(ranks[c] for c in left) - max(ranks[c] for c in right)
            return ON_NUMBERS[formula.comparison](way * ahead, 0)
        case Both(parts):
            return all(_holds(part, told, ranks) for part in parts)
        case Either(parts):
            return any(_holds(part, told, ranks) for part in parts)
        case Among():
            raise Unread("the label asks for points and for a feature")


def _is_first_at_top(label: Value, winner: Callable[[Value], int], scores: Sequence[Points]) -> bool:
    """CASE WHEN score_0 = top THEN class 0 … ELSE the last class END, literally."""
    value = label
    for c in range(len(scores) - 1):
        if not isinstance(value, Pick) or not isinstance(value.condition, Sign) or isinstance(value.then, Pick):
            return False
        try:
            left, among, way = _pairs(value.condition.points, scores)
        except LookupError:
            return False
        reached = value.condition.comparison in ("==", ">=" if way == 1 else "<=")
        at_top = set(among) >= set(range(c, len(scores)))
        if left != (c,) or not reached or not at_top or winner(value.then) != c:
            return False
        value = value.otherwise
    return not isinstance(value, Pick) and winner(value) == len(scores) - 1


def scale_of(shares: Sequence[Value], scores: Sequence[Points]) -> int | None:
    """The scale of probabilities that are the softmax of the scores; None where they are constants."""
    found: set[int] = set()
    for c, value in enumerate(shares):
        if len(scores) == 1 and value == Constant(1.0):
            found.add(0)
            continue
        if isinstance(value, Constant):
            return None
        if not isinstance(value, Share):
            raise Unread(f"probability {c} is {said(value)}, not exp over a sum of exps")
        wanted = Counter(difference(score, scores[c]) for score in scores)
        base = Points(0) if value.part is None else value.part.points
        have = Counter(difference(Points(0) if part is None else part.points, base) for part in value.of)
        if wanted != have:
            raise Unread(f"probability {c} is not the softmax of the points")
        found |= {_checked(part).scale for part in (value.part, *value.of) if part is not None}
    if len(found) > 1:
        raise Unread("the points are not worth the same in all probabilities")
    return found.pop() if found else 0


def _checked(logit: Logit) -> Logit:
    low, high = logit.low, logit.high
    if low is None or high is None or not (-MOST_CLAMP <= low <= -LEAST_CLAMP and LEAST_CLAMP <= high <= MOST_CLAMP):
        raise Unread("EXP of a number that is not kept between about -700 and 700")
    return logit


def held_of(reason: Value) -> tuple[tuple[Formula, ...], tuple[str | None, ...]]:
    """When each rule is said to hold, and what is then said of it, from '0 ' || '2 ' || …

    None stands for what is said of a rule that never holds: nobody ever hears it.
    """
    parts = reason.parts if isinstance(reason, Joined) else (reason,)
    if parts == (Constant(""),):
        return (), ()
    told = [_told(number, part) for number, part in enumerate(parts)]
    return tuple(formula for formula, _ in told), tuple(text for _, text in told)


def _told(number: int, part: Value) -> tuple[Formula, str | None]:
    match part:
        case Constant(""):
            return FALSE, None
        case Constant(str() as text):
            return TRUE, text
        case Pick(condition, Constant(str() as text), Constant("")):
            return condition, text
        case _:
            raise Unread(f"the reason does not say one text or nothing of rule {number}")


def is_scored(values: Sequence[Value]) -> bool:
    """Whether any of the outputs depends on points."""
    for value in values:
        if any(isinstance(end, Total | Share | Weights | Logit) for end in ends(value)) or signs(value):
            return True
    return False
