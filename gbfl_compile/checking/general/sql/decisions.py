"""From the columns of a query to one decision: label, probabilities, leaf and scores must be made of the same rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import assert_never

from gbfl_compile.checking.general.sql.arithmetic import total_of
from gbfl_compile.checking.general.sql.engines import Engine, as_double
from gbfl_compile.checking.general.sql.logic import Among, Both, Either, Formula, Points, Sign
from gbfl_compile.checking.general.sql.scores import Tie, is_scored, scores_by_label, tie_of
from gbfl_compile.checking.general.sql.values import Constant, Pick, Value, describe, ends, kinds_of, picks
from gbfl_compile.checking.reading.conditions import ON_NUMBERS
from gbfl_compile.checking.reading.nodes import Outcome, Unread
from gbfl_compile.ir.nodes import Label

MOST_STEPS = 200_000
MOST_EXPANDED = 10
"""Conditions of a rule set whose label is no plain contest: every combination becomes a step."""


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


def _winner(engine: Engine, classes: tuple[Label, ...]) -> Callable[[Value], int]:
    """The class an end of the label column stands for."""
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
    """Columns that ask the same questions, asked once: a step is where all of them stand."""
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


def _rule_set(
    engine: Engine, answers: Answers, classes: tuple[Label, ...], winner: Callable[[Value], int]
) -> Tree | RuleSet:
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
    if answers.scores:
        raise Unread("the label is not the class with most points")
    return Tree(tuple(_expand(answers.label, winner)))


def _terms(scores: Sequence[Points]) -> tuple[tuple[Formula, tuple[int, ...]], ...]:
    worth: dict[Formula, list[int]] = {}
    for c, points in enumerate(scores):
        for formula, more in points.terms:
            worth.setdefault(formula, [0] * len(scores))[c] = more
    return tuple((formula, tuple(row)) for formula, row in worth.items())


def _expand(label: Value, winner: Callable[[Value], int]) -> Iterator[Step | Outcome]:
    """A label that compares points in some other way, as a tree that asks every condition."""
    question = list(dict.fromkeys(_ask(node.condition for node in picks(label))))
    if len(question) > MOST_EXPANDED:
        raise Unread("the label is not the class with most points")
    inner = 2 ** len(question) - 1
    for index in range(inner):
        depth = (index + 1).bit_length() - 1
        yield Step(question[depth], 2 * index + 1, 2 * index + 2)
    for number in range(2 ** len(question)):
        bits = f"{number:0{len(question)}b}" if question else ""
        known = {formula: bit == "0" for formula, bit in zip(question, bits, strict=True)}
        value = label
        while isinstance(value, Pick):
            value = value.then if _holds(value.condition, known) else value.otherwise
        yield Outcome(winner(value))


def _ask(formulas: Iterable[Formula]) -> Iterator[Formula]:
    waiting = list(formulas)[::-1]
    while waiting:
        match waiting.pop():
            case Sign(points):
                yield from (formula for formula, _ in points.terms)
            case Both(parts) | Either(parts):
                waiting += parts[::-1]
            case Among() as part:
                yield part


def _holds(formula: Formula, known: Mapping[Formula, bool]) -> bool:
    if formula in known:
        return known[formula]
    match formula:
        case Sign(points, comparison):
            worth = points.bias + sum(more for part, more in points.terms if known[part])
            return ON_NUMBERS[comparison](worth, 0)
        case Both(parts):
            return all(_holds(part, known) for part in parts)
        case Either(parts):
            return any(_holds(part, known) for part in parts)
        case Among():
            raise Unread("a label that mixes points and features")
        case _:
            assert_never(formula)
