"""Rows on which the points of one clause decide who wins: all clauses at once, one feature after another.

Each row is moved, feature by feature, to the value that brings the two classes nearest to a tie, until turning its
clause over turns the label over. Features that the clause asks stay where they are.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.check.cells import Atoms, Cells
from gbfl_compile.check.label_search import EXACT_IN_DOUBLES, Column, column_of
from gbfl_compile.check.prove_labels import INT64_SAFE
from gbfl_compile.ir.nodes import Scorecard

MOVES, VALUES = 8, 40
"""Features tried for each row, and cells of each."""

ROWS_AT_ONCE = 2_000
MOST_WORK = 30_000_000_000
"""Multiplications, of all rows together: a few seconds."""


def moved_to_ties(
    cells: Cells,
    card: Scorecard,
    clauses: Sequence[Atoms],
    rows: NDArray[np.int64],
    turns: Sequence[tuple[int, bool, frozenset[int]]],
    choose: random.Random,
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The rows (a cell a feature) moved, and whether turning its clause over changes the label of each.

    A turn is the number of a clause, whether it holds on the row, and the features that stay as they are.
    """
    shown = np.zeros(len(rows), dtype=bool)
    size = sum(max(map(abs, points), default=0) for points in (card.bias, *card.points))
    if size >= min(EXACT_IN_DOUBLES, INT64_SAFE) or len(card.bias) < 2:
        return rows, shown
    columns = [column_of(cells, feature, clauses) for feature in range(len(cells.starts))]
    points = np.array(card.points, dtype=np.float64).reshape(len(clauses), len(card.bias))
    moved, left = rows.copy(), MOST_WORK
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        ties = _Ties(columns, points, np.array(card.bias, dtype=np.float64), moved[part], turns[part])
        for feature in choose.sample(range(len(columns)), min(len(columns), 3 * MOVES)):
            left -= ties.work(feature)
            if left < 0:
                break
            width = len(columns[feature].holds)
            ties.move(feature, np.array(choose.sample(range(width), min(width, VALUES)), dtype=np.int64))
        shown[part] = ties.shown
    return moved, shown


class _Ties:
    """Some rows on their way: not frozen, moving changes them."""

    def __init__(
        self,
        columns: Sequence[Column],
        points: NDArray[np.float64],
        bias: NDArray[np.float64],
        rows: NDArray[np.int64],
        turns: Sequence[tuple[int, bool, frozenset[int]]],
    ) -> None:
        self.columns, self.points, self.rows = columns, points, rows
        self.failing = np.zeros((len(rows), len(points)), dtype=np.int16)
        for feature, column in enumerate(columns):
            self.failing[:, column.asking] += (column.holds[rows[:, feature]] == 0.0).astype(np.int16)
        self.worth = points[[clause for clause, _, _ in turns]]
        held = np.array([[float(holds)] for _, holds, _ in turns])
        self.without = bias + (self.failing == 0).astype(np.float64) @ points - held * self.worth
        self.free = np.ones((len(rows), len(columns)), dtype=bool)
        for row, (_, _, kept) in enumerate(turns):
            self.free[row, list(kept)] = False
        self.shown = self.without.argmax(axis=1) != (self.without + self.worth).argmax(axis=1)
        self.tries = np.zeros(len(rows), dtype=np.int64)

    def _waiting(self, feature: int) -> NDArray[np.int64]:
        return np.flatnonzero(self.free[:, feature] & ~self.shown & (self.tries < MOVES))

    def work(self, feature: int) -> int:
        """Multiplications that a move takes."""
        column = self.columns[feature]
        wide = len(column.asking) * min(len(column.holds), VALUES) * int(self.points.shape[1])
        return len(self._waiting(feature)) * wide

    def move(self, feature: int, values: NDArray[np.int64]) -> None:
        """Put one feature of every row that is not there yet in that one of some cells where a tie is nearest."""
        column, waiting = self.columns[feature], self._waiting(feature)
        if not len(waiting) or not len(column.asking):
            return
        here = column.holds[self.rows[waiting, feature]]
        live = self.failing[np.ix_(waiting, column.asking)] == (here == 0.0)
        asked = self.points[column.asking]
        rest = self.without[waiting] - (live * here) @ asked
        after = np.stack([(live * worth) @ column.holds[values].T for worth in asked.T], axis=2) + rest[:, None, :]
        differs, distance = _judged(after, self.worth[waiting, None, :])
        best = np.where(differs.any(axis=1), differs.argmax(axis=1), distance.argmin(axis=1))
        every = np.arange(len(waiting))
        self.shown[waiting] = differs[every, best]
        self.without[waiting] = after[every, best]
        cell = values[best]
        change = (column.holds[cell] == 0.0).astype(np.int16) - (here == 0.0).astype(np.int16)
        self.failing[np.ix_(waiting, column.asking)] += change
        self.rows[waiting, feature] = cell
        self.tries[waiting] += 1


def _judged(scores: NDArray[np.float64], worth: NDArray[np.float64]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """For each row and cell: whether the clause's points change the winner, and how far from that it is."""
    with_it = scores + worth
    winner = scores.argmax(axis=2)
    differs: NDArray[np.bool_] = winner != with_it.argmax(axis=2)
    ahead = np.minimum(*(np.take_along_axis(s, winner[..., None], axis=2) - s for s in (scores, with_it)))
    np.put_along_axis(ahead, winner[..., None], np.inf, axis=2)
    return differs, ahead.min(axis=2)
