"""What a reading answers on many rows at once: how many rows of given data a difference touches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.audit.answer import Moved
from gbfl_compile.check.equivalence import ConsistencyPair
from gbfl_compile.check.reading import All, Any, Ask, Condition, Decided, Not, Reading, Scored, Test
from gbfl_compile.consistency import Consistency, consistency
from gbfl_compile.ir.batch import Matrix, evaluate_many, label_array
from gbfl_compile.ir.nodes import Program
from gbfl_compile.triplets import Triplets

Bits = NDArray[np.bool_]


def reading_labels(reading: Reading, rows: Matrix) -> NDArray[np.object_]:
    """The label of each row, as the artifact that was read would give it."""
    if reading.dtype == "float32":
        with np.errstate(over="ignore"):  # a double beyond float32 is infinite there
            rows = rows.astype(np.float32).astype(np.float64)
    match reading.decision:
        case Decided():
            winners = _followed(reading.decision, rows)
        case Scored():
            winners = _added_up(reading.decision, rows)
        case _:
            assert_never(reading.decision)
    return label_array(reading.classes)[winners]


def _holds(condition: Condition, rows: Matrix) -> Bits:
    match condition:
        case Test(feature, values):
            column = rows[:, feature]
            missing = np.isnan(column)
            found = missing & any(piece.missing for piece in values)
            for piece in values:
                found |= (column >= piece.least) & (column <= piece.most)
            return found
        case All(parts):
            found = np.ones(len(rows), dtype=bool)
            for part in parts:
                found &= _holds(part, rows)
            return found
        case Any(parts):
            found = np.zeros(len(rows), dtype=bool)
            for part in parts:
                found |= _holds(part, rows)
            return found
        case Not(part):
            return ~_holds(part, rows)
        case _:
            assert_never(condition)


def _followed(decided: Decided, rows: Matrix) -> NDArray[np.int64]:
    """Steps only lead further on, so one pass over them moves every row to its outcome."""
    at = np.zeros(len(rows), dtype=np.int64)
    for number, step in enumerate(decided.steps):
        if not isinstance(step, Ask):
            continue
        here = np.flatnonzero(at == number)
        if len(here):
            at[here] = np.where(_holds(step.condition, rows[here]), step.then, step.otherwise)
    winners = np.array([-1 if isinstance(step, Ask) else step.winner for step in decided.steps])
    found: NDArray[np.int64] = winners[at]
    return found


def _added_up(scored: Scored, rows: Matrix) -> NDArray[np.int64]:
    scores = np.tile(np.array(scored.bias, dtype=np.int64), (len(rows), 1))
    for condition, points in scored.terms:
        scores[_holds(condition, rows)] += np.array(points, dtype=np.int64)
    found: NDArray[np.int64] = np.argmax(scores, axis=1)
    if scored.tie_to == "higher":
        found = scores.shape[1] - 1 - np.argmax(scores[:, ::-1], axis=1)
    return found


def moved_rows(program: Program, reading: Reading, rows: Matrix) -> Moved:
    """How many of the rows get another class, and from which to which."""
    approved, deployed = evaluate_many(program, rows).labels, reading_labels(reading, rows)
    return moves_between(approved, deployed)


def moves_between(approved: NDArray[np.object_], deployed: NDArray[np.object_]) -> Moved:
    """The rows on which two columns of labels differ, counted by what they move from and to."""
    pairs = zip(approved.tolist(), deployed.tolist(), strict=True)
    counted = Counter((a, b) for a, b in pairs if type(a) is not type(b) or a != b)
    moves = tuple((a, b, count) for (a, b), count in counted.most_common())
    return Moved(sum(counted.values()), len(approved), moves)


def consistency_pair(program: Program, reading: Reading, triplets: Triplets) -> ConsistencyPair:
    """Local consistency by the program's labels and by the artifact's."""

    def measured(labels: Callable[[Matrix], NDArray[np.object_]]) -> Consistency:
        on_x, on_pp, on_pn = (labels(rows) for rows in (triplets.x, triplets.pp, triplets.pn))
        return consistency(triplets.label, on_x, on_pp, on_pn, triplets.has_pp, triplets.has_pn)

    source = measured(lambda rows: evaluate_many(program, rows).labels)
    return ConsistencyPair(source, measured(lambda rows: reading_labels(reading, rows)))
