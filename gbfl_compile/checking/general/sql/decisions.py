"""Turns the columns of a query into one decision: label, probabilities, leaf and scores must follow the same rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from gbfl_compile.checking.general.sql.arithmetic import total_of
from gbfl_compile.checking.general.sql.engines import Engine, as_double
from gbfl_compile.checking.general.sql.logic import Formula, Points, among, both
from gbfl_compile.checking.general.sql.points import (
    MOST_SUMS,
    Tie,
    is_scored,
    scores_by_label,
    tie_of,
    without_dead_ends,
    without_points,
)
from gbfl_compile.checking.general.sql.values import (
    Constant,
    Pick,
    Total,
    Value,
    describe,
    ends,
    kinds_of,
    map_ends,
    number_of_truth,
    pick,
)
from gbfl_compile.checking.reading.nodes import Outcome, Unread, pay
from gbfl_compile.ir.evaluate import winner
from gbfl_compile.ir.intervals import Values, clause_values
from gbfl_compile.ir.kinds import codebook
from gbfl_compile.ir.nodes import Label, Leaf, Program, Scorecard, Split
from gbfl_compile.ir.nodes import Tree as ApprovedTree

MOST_STEPS = 200_000


@dataclass(frozen=True, slots=True)
class Answers:
    """The columns of a query, sorted by the answers they hold."""

    label: Value
    probabilities: tuple[Value, ...] = ()
    scores: tuple[Value, ...] = ()
    leaf: Value | None = None
    reason: Value | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One test, with both outcomes for all columns."""

    formula: Formula
    then: int
    otherwise: int


@dataclass(frozen=True, slots=True)
class Tree:
    """Tests and outcomes."""

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
    label = map_ends(answers.label, lambda end: number_of_truth(engine, end))
    answers = replace(answers, label=without_dead_ends(label, lambda end: _is_answer(winner, end)))
    if answers.scores or is_scored([answers.label, *answers.probabilities]):
        try:
            _check_ends(answers.label, winner)
            return _rule_set(engine, answers, classes, winner)
        except Unread:
            if answers.scores or not _is_choice(answers):
                raise
        answers = _written_out(answers, winner)
    _check_ends(answers.label, winner)
    return _tree(engine, answers, len(classes), winner)


def _check_ends(label: Value, winner: Callable[[Value], int]) -> None:
    for end in ends(label):
        winner(end)


def _is_answer(winner: Callable[[Value], int], end: Value) -> bool:
    try:
        winner(end)
    except Unread:
        return False
    return True


def _is_choice(answers: Answers) -> bool:
    """Whether points are only compared, and are not answers themselves."""
    return not any(isinstance(end, Total) for value in (answers.label, *answers.probabilities) for end in ends(value))


def _written_out(answers: Answers, winner: Callable[[Value], int]) -> Answers:
    """The answers with points written out as choices."""
    label = without_dead_ends(without_points(answers.label), lambda end: _is_answer(winner, end))
    return replace(answers, label=label, probabilities=tuple(map(without_points, answers.probabilities)))


def where_it_answers(holds: Formula, answers: Answers, approved: Program) -> Answers:
    """The answers for rows that come out, and the approved ones elsewhere, so that only the former are compared."""
    if answers.probabilities and not isinstance(approved.decision, ApprovedTree):
        raise Unread("a filter on features together with probabilities computed from points")
    answers = replace(answers, label=without_points(answers.label))
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
    made: dict[tuple[int, tuple[int, ...]], Value] = {}

    def value(place: int, scores: tuple[int, ...]) -> Value:
        if place == len(conditions):
            return end(tuple(map(float, scores)))
        if (place, scores) not in made:
            pay(1)
            if len(made) > MOST_SUMS:
                raise Unread("a filter on features together with too many clauses that have points")
            more = tuple(a + b for a, b in zip(scores, card.points[place], strict=True))
            made[place, scores] = pick(conditions[place], value(place + 1, more), value(place + 1, scores))
        return made[place, scores]

    return value(0, tuple(card.bias))


def _winner(engine: Engine, classes: tuple[Label, ...]) -> Callable[[Value], int]:
    """The class that a value of the label column means."""
    wanted = type(classes[0])

    def winner(end: Value) -> int:
        if end == Constant(None):
            raise Unread("the label is NULL for some rows, as where no WHEN holds and there is no ELSE")
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
        raise Unread(f"the label {describe(end)} is not one of the classes")

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
    """Columns with the same tests, tested once: each step has the state of all of them."""
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
