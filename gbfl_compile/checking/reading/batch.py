"""What a reading answers on many rows at once."""

from __future__ import annotations

from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.checking.reading.nodes import And, Ask, Condition, Not, Or, PointDecision, Reading, StepDecision, Test
from gbfl_compile.ir.batch import Matrix, label_array

Bits = NDArray[np.bool_]


def reading_labels(reading: Reading, rows: Matrix) -> NDArray[np.object_]:
    """The label of each row, as the artifact that was read would give it."""
    if reading.dtype == "float32":
        with np.errstate(over="ignore"):  # a double beyond float32 is infinite there
            rows = rows.astype(np.float32).astype(np.float64)
    match reading.decision:
        case StepDecision():
            winners = _step_winners(reading.decision, rows)
        case PointDecision():
            winners = _point_winners(reading.decision, rows)
        case _:
            assert_never(reading.decision)
    return label_array(reading.classes)[winners]


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
