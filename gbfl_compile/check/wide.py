"""Programs in the form of a reading, and what a reading answers for one row: plain meaning, nothing clever.

The prover is judged against `run_reading` by brute force, and every counterexample is run through it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from gbfl_compile.check.reading import All, Any, Ask, Condition, Decided, Not, Outcome, Reading, Scored, Test
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.digest import digest
from gbfl_compile.ir.evaluate import softmax, winner
from gbfl_compile.ir.nodes import Clause, Label, Leaf, Program, Scorecard, Split, Tree
from gbfl_compile.ir.regions import Values, values_of
from gbfl_compile.ir.trees import leaf_numbers


@dataclass(frozen=True, slots=True)
class Said:
    """What a reading answers. None is what the artifact does not say."""

    label: Label
    probabilities: tuple[float, ...] | None
    leaf: int | None
    scores: tuple[int, ...] | None


def as_reading(program: Program) -> Reading:
    """The program in the form of a reading: each split a step, each leaf an outcome."""
    match program.decision:
        case Tree():
            decision: Decided | Scored = Decided(tuple(_steps(program, program.decision)))
        case Scorecard(bias, points, scale):
            conditions = (condition_of(clause) for clause in program.clauses)
            decision = Scored(bias, tuple(zip(conditions, points, strict=True)), scale)
        case _:
            assert_never(program.decision)
    return Reading(program.features, program.classes, decision, place="the program itself", digest=digest(program))


def _steps(program: Program, tree: Tree) -> list[Ask | Outcome]:
    numbers = leaf_numbers(tree)
    steps: list[Ask | Outcome] = []
    for index, node in enumerate(tree.nodes):
        match node:
            case Split(clause, then, otherwise):
                steps.append(Ask(condition_of(program.clauses[clause]), then, otherwise))
            case Leaf(probabilities):
                steps.append(Outcome(winner(probabilities), probabilities, numbers[index]))
            case _:
                assert_never(node)
    return steps


def condition_of(clause: Clause) -> All:
    """A clause as a condition: all of its intervals."""
    return All(tuple(Test(atom.feature, (values_of(atom),)) for atom in clause.atoms))


def run_reading(reading: Reading, row: Sequence[float | None]) -> Said:
    """What the artifact answers for one row, as far as the reading says; a float32 one rounds the row first."""
    if len(row) != len(reading.features):
        raise BadInput(f"the row has {len(row)} values, the reading has {len(reading.features)} features")
    values = [math.nan if value is None else float(value) for value in row]
    if reading.dtype == "float32":
        values = [_to_float32(value) for value in values]
    match reading.decision:
        case Decided():
            return _follow(reading, reading.decision, values)
        case Scored():
            return _add_up(reading, reading.decision, values)
        case _:
            assert_never(reading.decision)


def _to_float32(value: float) -> float:
    try:
        rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:  # struct refuses what a cast makes infinite
        return math.copysign(math.inf, value)
    return rounded


def _follow(reading: Reading, decided: Decided, row: Sequence[float]) -> Said:
    step = decided.steps[0]
    while isinstance(step, Ask):
        step = decided.steps[step.then if condition_holds(step.condition, row) else step.otherwise]
    return Said(reading.classes[step.winner], step.probabilities, step.leaf, None)


def _add_up(reading: Reading, scored: Scored, row: Sequence[float]) -> Said:
    scores = list(scored.bias)
    for condition, points in scored.terms:
        if condition_holds(condition, row):
            scores = [score + more for score, more in zip(scores, points, strict=True)]
    found = scored_winner(scores, scored)
    probabilities = None if scored.scale is None else softmax(scores, scored.scale)
    return Said(reading.classes[found], probabilities, None, tuple(scores))


def scored_winner(scores: Sequence[int], scored: Scored) -> int:
    """Who wins with these scores, ties as the artifact breaks them."""
    if scored.tie_to == "lower":
        return winner(scores)
    return max(range(len(scores)), key=lambda c: (scores[c], c))


def condition_holds(condition: Condition, row: Sequence[float]) -> bool:
    """Whether a condition holds on a row; NaN is missing."""
    match condition:
        case Test(feature, values):
            return any(_is_in(row[feature], piece) for piece in values)
        case All(parts):
            return all(condition_holds(part, row) for part in parts)
        case Any(parts):
            return any(condition_holds(part, row) for part in parts)
        case Not(part):
            return not condition_holds(part, row)
        case _:
            assert_never(condition)


def _is_in(value: float, values: Values) -> bool:
    return values.missing if math.isnan(value) else values.least <= value <= values.most


def aligned(reading: Reading, features: tuple[str, ...], classes: tuple[Label, ...]) -> Reading:
    """The reading with its features and classes found by name, for artifacts that take values by name.

    A feature the artifact never mentions is fine; one it has and `features` has not is refused.
    """
    column = {name: index for index, name in enumerate(features)}
    if unknown := [name for name in reading.features if name not in column]:
        raise BadInput(f"{reading.place or 'the artifact'}: feature {unknown[0]!r} is not one of the program's")
    feature = [column[name] for name in reading.features]
    position = {(type(label), label): index for index, label in enumerate(classes)}
    if unknown_labels := [label for label in reading.classes if (type(label), label) not in position]:
        raise BadInput(f"{reading.place or 'the artifact'}: label {unknown_labels[0]!r} is not one of the program's")
    place = [position[type(label), label] for label in reading.classes]
    same_classes = place == list(range(len(classes)))
    match reading.decision:
        case Decided(steps):
            moved = tuple(_moved_step(step, feature, place, len(classes), same_classes) for step in steps)
            decision: Decided | Scored = Decided(moved)
        case Scored():
            if not same_classes:  # ties go by position: another order is another meaning
                raise BadInput(f"{reading.place or 'the artifact'}: its classes are not the program's, in order")
            terms = ((_moved(condition, feature), points) for condition, points in reading.decision.terms)
            decision = replace(reading.decision, terms=tuple(terms))
        case _:
            assert_never(reading.decision)
    return replace(reading, features=features, classes=classes, decision=decision)


def _moved_step(step: Ask | Outcome, feature: list[int], place: list[int], classes: int, same: bool) -> Ask | Outcome:
    if isinstance(step, Ask):
        return replace(step, condition=_moved(step.condition, feature))
    probabilities = step.probabilities
    if probabilities is not None and not same:
        spread = [0.0] * classes
        for position, probability in zip(place, probabilities, strict=True):
            spread[position] = probability
        probabilities = tuple(spread)
    return replace(step, winner=place[step.winner], probabilities=probabilities)


def _moved(condition: Condition, feature: list[int]) -> Condition:
    match condition:
        case Test(index, values):
            return Test(feature[index], values)
        case All(parts):
            return All(tuple(_moved(part, feature) for part in parts))
        case Any(parts):
            return Any(tuple(_moved(part, feature) for part in parts))
        case Not(part):
            return Not(_moved(part, feature))
        case _:
            assert_never(condition)
