"""What a reading answers for one row: plain meaning, nothing clever.

The prover is judged against `run_reading` by brute force, and every counterexample is run through it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.checking.reading.nodes import (
    And,
    Ask,
    Condition,
    Not,
    Or,
    PointDecision,
    Reading,
    StepDecision,
    Test,
)
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import Matrix, label_array
from gbfl_compile.ir.evaluate import band_probabilities, softmax, winner
from gbfl_compile.ir.intervals import Values
from gbfl_compile.ir.nodes import Label


@dataclass(frozen=True, slots=True)
class ReaderAnswer:
    """What a reading answers. None is what the artifact does not say."""

    label: Label
    probabilities: tuple[float, ...] | None
    leaf: int | None
    scores: tuple[int, ...] | None


def run_reading(reading: Reading, row: Sequence[float | None]) -> ReaderAnswer:
    """What the artifact answers for one row, as far as the reading says; a float32 one rounds the row first."""
    if len(row) != len(reading.features):
        raise BadInput(f"the row has {len(row)} values, the reading has {len(reading.features)} features")
    values = [math.nan if value is None else float(value) for value in row]
    if reading.dtype == "float32":
        values = [_to_float32(value) for value in values]
    match reading.decision:
        case StepDecision():
            return _follow(reading, reading.decision, values)
        case PointDecision():
            return _add_up(reading, reading.decision, values)
        case _:
            assert_never(reading.decision)


def _to_float32(value: float) -> float:
    try:
        rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:  # struct refuses what a cast makes infinite
        return math.copysign(math.inf, value)
    return rounded


def _follow(reading: Reading, decided: StepDecision, row: Sequence[float]) -> ReaderAnswer:
    step = decided.steps[0]
    while isinstance(step, Ask):
        step = decided.steps[step.then if condition_holds(step.condition, row) else step.otherwise]
    return ReaderAnswer(reading.classes[step.winner], step.probabilities, step.leaf, None)


def _add_up(reading: Reading, scored: PointDecision, row: Sequence[float]) -> ReaderAnswer:
    scores = list(scored.bias)
    for condition, points in scored.terms:
        if condition_holds(condition, row):
            scores = [score + more for score, more in zip(scores, points, strict=True)]
    position = scored_winner(scores, scored)
    probabilities = scored.constants if scored.scale is None else softmax(scores, scored.scale)
    if scored.bands:
        probabilities = band_probabilities(scored.bands, scores)
    return ReaderAnswer(reading.classes[position], probabilities, None, tuple(scores))


def scored_winner(scores: Sequence[int], scored: PointDecision) -> int:
    """Who wins with these scores, ties as the artifact breaks them."""
    if scored.tie_to == "lower":
        return winner(scores)
    return max(range(len(scores)), key=lambda c: (scores[c], c))


def condition_holds(condition: Condition, row: Sequence[float]) -> bool:
    """Whether a condition holds on a row; NaN is missing."""
    match condition:
        case Test(feature, values):
            return any(_is_in(row[feature], piece) for piece in values)
        case And(parts):
            return all(condition_holds(part, row) for part in parts)
        case Or(parts):
            return any(condition_holds(part, row) for part in parts)
        case Not(part):
            return not condition_holds(part, row)
        case _:
            assert_never(condition)


def _is_in(value: float, values: Values) -> bool:
    return values.missing if math.isnan(value) else values.least <= value <= values.most


Bits = NDArray[np.bool_]


def reading_labels(reading: Reading, rows: Matrix) -> NDArray[np.object_]:
    """The label of each row, as the artifact that was read would give it."""
    return label_array(reading.classes)[reading_winners(reading, rows)]


def reading_winners(reading: Reading, rows: Matrix) -> NDArray[np.int64]:
    """The number of each row's class."""
    if reading.dtype == "float32":
        with np.errstate(over="ignore"):  # a double beyond float32 is infinite there
            rows = rows.astype(np.float32).astype(np.float64)
    match reading.decision:
        case StepDecision():
            return _step_winners(reading.decision, rows)
        case PointDecision():
            return _point_winners(reading.decision, rows)
        case _:
            assert_never(reading.decision)


def _holds(condition: Condition, rows: Matrix) -> Bits:
    match condition:
        case Test(feature, values):
            column = rows[:, feature]
            missing = np.isnan(column)
            holds = missing & any(piece.missing for piece in values)
            for piece in values:
                holds |= (column >= piece.least) & (column <= piece.most)
            return holds
        case And(parts):
            holds = np.ones(len(rows), dtype=bool)
            for part in parts:
                holds &= _holds(part, rows)
            return holds
        case Or(parts):
            holds = np.zeros(len(rows), dtype=bool)
            for part in parts:
                holds |= _holds(part, rows)
            return holds
        case Not(part):
            return ~_holds(part, rows)
        case _:
            assert_never(condition)


def _step_winners(decision: StepDecision, rows: Matrix) -> NDArray[np.int64]:
    """Steps only lead further on, so one pass over them moves every row to its outcome."""
    at = np.zeros(len(rows), dtype=np.int64)
    for number, step in enumerate(decision.steps):
        if not isinstance(step, Ask):
            continue
        here = np.flatnonzero(at == number)
        if len(here):
            at[here] = np.where(_holds(step.condition, rows[here]), step.then, step.otherwise)
    by_step = np.array([-1 if isinstance(step, Ask) else step.winner for step in decision.steps])
    winners: NDArray[np.int64] = by_step[at]
    return winners


def _point_winners(card: PointDecision, rows: Matrix) -> NDArray[np.int64]:
    scores = np.tile(np.array(card.bias, dtype=np.int64), (len(rows), 1))
    for condition, points in card.terms:
        scores[_holds(condition, rows)] += np.array(points, dtype=np.int64)
    if card.tie_to == "higher":
        last: NDArray[np.int64] = scores.shape[1] - 1 - np.argmax(scores[:, ::-1], axis=1)
        return last
    first: NDArray[np.int64] = np.argmax(scores, axis=1)
    return first
