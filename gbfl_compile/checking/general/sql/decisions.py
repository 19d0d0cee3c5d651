"""From the columns of a query to one decision: label, probabilities, leaf and scores must be made of the same rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import permutations
from typing import Literal, TypeAlias

from gbfl_compile.checking.general.sql.arithmetic import total_of
from gbfl_compile.checking.general.sql.engines import Engine, as_double
from gbfl_compile.checking.general.sql.logic import Among, Both, Either, Formula, Points, Sign, among, both
from gbfl_compile.checking.general.sql.values import Constant, Pick, Total, Value, describe, ends, kinds_of, pick, picks
from gbfl_compile.checking.reading.conditions import ON_NUMBERS
from gbfl_compile.checking.reading.nodes import Outcome, Unread, pay
from gbfl_compile.ir.evaluate import winner
from gbfl_compile.ir.intervals import Values, clause_values
from gbfl_compile.ir.kinds import codebook
from gbfl_compile.ir.nodes import Label, Leaf, Program, Scorecard, Split
from gbfl_compile.ir.nodes import Tree as ApprovedTree

MOST_STEPS = 200_000
MOST_CLAUSES = 10
"""Of a scorecard that is written out as choices."""
MOST_ORDERED = 5
"""Up to so many classes every order of their scores is tried (541 of them, ties included)."""

Tie: TypeAlias = Literal["lower", "higher"]


@dataclass(frozen=True, slots=True)
class Answers:
    """What the columns of a query are, by what they say."""

    label: Value
    probabilities: tuple[Value, ...] = ()
    scores: tuple[Value, ...] = ()
    leaf: Value | None = None
    reason: Value | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A question of all columns together."""

    formula: Formula
    then: int
    otherwise: int


@dataclass(frozen=True, slots=True)
class Tree:
    """Questions and outcomes."""

    steps: tuple[Step | Outcome, ...]


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Points for formulas."""

    bias: tuple[int, ...]
    terms: tuple[tuple[Formula, tuple[int, ...]], ...]
    tie_to: Tie
    says_scores: bool


def decision(engine: Engine, answers: Answers, classes: tuple[Label, ...]) -> Tree | RuleSet:
    """All columns as one tree or one rule set."""
    winner = _winner(engine, classes)
    for end in ends(answers.label):
        winner(end)
    answer_values = [answers.label, *answers.probabilities, *answers.scores]
    if answers.scores or is_scored(answer_values):
        return _rule_set(engine, answers, classes, winner)
    return _tree(engine, answers, len(classes), winner)


def where_it_answers(holds: Formula, answers: Answers, approved: Program) -> Answers:
    """The answers where a row comes out; elsewhere what was approved, so that only rows that come out are compared."""
    if is_scored([answers.label]) or (answers.probabilities and not isinstance(approved.decision, ApprovedTree)):
        raise Unread("a filter on features beside points")
    if answers.scores or answers.leaf is not None or answers.reason is not None:
        raise Unread("a leaf, a reason or scores of rows of which some are left out")
    conditions = [
        both(_values(feature, pieces) for feature, pieces in clause)
        for clause in clause_values(approved, codebook(approved))
    ]

    def value(end: Callable[[tuple[float, ...]], Constant]) -> Value:
        if not isinstance(approved.decision, ApprovedTree):
            return _by_points(conditions, approved.decision, end)
        known: dict[int, Value] = {}
        for place in range(len(approved.decision.nodes) - 1, -1, -1):
            match approved.decision.nodes[place]:
                case Split(clause, then, otherwise):
                    known[place] = pick(conditions[clause], known[then], known[otherwise])
                case Leaf(probabilities):
                    known[place] = end(probabilities)
        return known[0]

    label = value(lambda shares: Constant(approved.classes[winner(shares)]))
    probabilities = tuple(
        pick(holds, each, value(lambda shares, place=place: Constant(shares[place])))  # type: ignore[misc]
        for place, each in enumerate(answers.probabilities)
    )
    return Answers(pick(holds, answers.label, label), probabilities)


def _values(feature: int, pieces: Sequence[Values]) -> Formula:
    missing = any(piece.missing for piece in pieces)
    return among(feature, [(piece.least, piece.most) for piece in pieces], missing, missing)


def _by_points(conditions: Sequence[Formula], card: Scorecard, end: Callable[[tuple[float, ...]], Constant]) -> Value:
    """A scorecard as a choice by each of its clauses in turn."""
    if len(conditions) > MOST_CLAUSES:
        raise Unread(f"a filter on features beside more than {MOST_CLAUSES} clauses with points")

    def value(place: int, scores: tuple[int, ...]) -> Value:
        if place == len(conditions):
            return end(tuple(map(float, scores)))
        more = tuple(a + b for a, b in zip(scores, card.points[place], strict=True))
        return pick(conditions[place], value(place + 1, more), value(place + 1, scores))

    return value(0, tuple(card.bias))


def _winner(engine: Engine, classes: tuple[Label, ...]) -> Callable[[Value], int]:
    """The class that an end of the label column means."""
    wanted = type(classes[0])

    def winner(end: Value) -> int:
        if not isinstance(end, Constant) or end.value is None:
            raise Unread(f"the label is {describe(end)} for some rows")
        value = end.value
        if wanted is bool and type(value) is int and engine.numbers_are_truths | (engine.name in ("tsql", "oracle")):
            value = {0: False, 1: True}.get(value, value)
        if wanted is float and type(value) in (int, Decimal) and not isinstance(value, str | bool):
            value = as_double(engine, value)
        for index, known in enumerate(classes):
            if type(known) is type(value) and known == value:
                return index
        raise Unread(f"the label {describe(end)} is none of the classes")

    return winner


def _tree(engine: Engine, answers: Answers, classes: int, winner: Callable[[Value], int]) -> Tree:
    if answers.probabilities and len(answers.probabilities) != classes:
        raise Unread(f"{len(answers.probabilities)} probabilities for {classes} classes")
    for value, wanted in ((answers.leaf, "whole"), (answers.reason, "text")):
        if value is not None and (others := kinds_of(value) - {wanted}):
            raise Unread(f"the leaf or the reason is a {min(others)} for some rows")
    said_last = [value for value in (answers.leaf, answers.reason) if value is not None]
    columns = [answers.label, *answers.probabilities, *said_last]

    def outcome(found: Sequence[Value]) -> Outcome:
        label, *rest = found
        shares = tuple(_probability(engine, value) for value in rest[: len(answers.probabilities)])
        text = _text(rest.pop()) if answers.reason is not None else None
        leaf = _leaf(rest[-1]) if answers.leaf is not None else None
        return Outcome(winner(label), shares or None, leaf, text=text)

    return Tree(tuple(_together(columns, outcome)))


def _probability(engine: Engine, value: Value) -> float:
    if isinstance(value, Constant) and type(value.value) in (int, float, Decimal):
        assert isinstance(value.value, int | float | Decimal)  # noqa: S101 - asked in the line above
        found = as_double(engine, value.value)
        if math.isfinite(found):
            return found
    raise Unread(f"a probability is {describe(value)}")


def _leaf(value: Value) -> int:
    if isinstance(value, Constant) and type(value.value) is int:
        return value.value
    raise Unread(f"the leaf is {describe(value)}")


def _text(value: Value) -> str:
    if isinstance(value, Constant) and isinstance(value.value, str):
        return value.value
    raise Unread(f"the reason is {describe(value)}, not a text")


def _together(columns: Sequence[Value], outcome: Callable[[Sequence[Value]], Outcome]) -> Iterator[Step | Outcome]:
    """Columns that ask the same questions, asked once: a step is where all of them are."""
    place: dict[tuple[int, ...], int] = {}
    order: list[tuple[Value, ...]] = []
    follow: dict[tuple[int, ...], tuple[Formula, tuple[Value, ...], tuple[Value, ...]]] = {}
    waiting: list[tuple[tuple[Value, ...], bool]] = [(tuple(columns), False)]
    seen: set[tuple[int, ...]] = set()
    while waiting:
        state, done = waiting.pop()
        key = tuple(map(id, state))
        if done:
            order.append(state)
            continue
        if key in seen:
            continue
        seen.add(key)
        if len(seen) > MOST_STEPS:
            raise Unread(f"more than {MOST_STEPS} steps")
        waiting.append((state, True))
        question = next((value for value in state if isinstance(value, Pick)), None)
        if question is not None:
            sides = _move(state, question.condition, True), _move(state, question.condition, False)
            follow[key] = (question.condition, *sides)
            waiting += ((sides[1], False), (sides[0], False))
    order.reverse()
    for index, state in enumerate(order):
        place[tuple(map(id, state))] = index
    for state in order:
        key = tuple(map(id, state))
        if key not in follow:
            yield outcome(state)
            continue
        formula, then, otherwise = follow[key]
        yield Step(formula, place[tuple(map(id, then))], place[tuple(map(id, otherwise))])


def _move(state: tuple[Value, ...], question: Formula, holds: bool) -> tuple[Value, ...]:
    return tuple(_side(value, question, holds) for value in state)


def _side(value: Value, question: Formula, holds: bool) -> Value:
    while isinstance(value, Pick) and value.condition is question:
        value = value.then if holds else value.otherwise
    return value


def _rule_set(engine: Engine, answers: Answers, classes: tuple[Label, ...], winner: Callable[[Value], int]) -> RuleSet:
    if answers.leaf is not None or answers.reason is not None or answers.probabilities:
        raise Unread("a leaf, a reason or probabilities beside points")
    if answers.scores and len(answers.scores) != len(classes):
        raise Unread(f"{len(answers.scores)} scores for {len(classes)} classes")
    if answers.scores:
        candidates = [tuple(total_of(engine, value).points for value in answers.scores)]
    else:
        candidates = list(scores_by_label(answers.label, len(classes)))
    for scores in candidates:
        tie = tie_of(answers.label, winner, scores)
        if tie is not None:
            return RuleSet(tuple(points.bias for points in scores), _terms(scores), tie, bool(answers.scores))
    raise Unread("the label is not the class with most points")


def _terms(scores: Sequence[Points]) -> tuple[tuple[Formula, tuple[int, ...]], ...]:
    worth: dict[Formula, list[int]] = {}
    for c, points in enumerate(scores):
        for formula, more in points.terms:
            worth.setdefault(formula, [0] * len(scores))[c] = more
    return tuple((formula, tuple(row)) for formula, row in worth.items())


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
