"""A rule set as a person would sign it: no bound that does not matter, and points that can be added up in the head."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.ir.nodes import Scorecard
from gbfl_compile.learning.black_box.ask import Matrix
from gbfl_compile.learning.heads.points import TripletRows

SCALES = 40
"""How many worths of a point are tried."""
CUT_OFF = 2.0
"""The largest weight may be this many times what the most points express."""
TWEAKED = 40_000
"""With more points than this no single number is tried one higher and one lower."""
CREDIT = 0.3
"""What a triplet counts whose points are right but for one: a third of this for each, so that near misses count too."""


def small_card(weights: Matrix, columns: NDArray[np.float32], rows: TripletRows, most: int) -> Scorecard:
    """Points between -most and most that make most triplets right; the last line of the weights is the bias.

    What a point is worth is searched; then each number is tried one higher and one lower.
    """
    largest = float(np.abs(weights[:-1]).max())
    best, chosen, worth = -1.0, np.zeros(0), 1.0
    for unit in np.geomspace(largest / most / CUT_OFF, 2.0 * largest / most, SCALES):
        numbers = np.rint(weights / unit)
        numbers[:-1] = np.clip(numbers[:-1], -most, most)
        right = _right(columns.astype(np.float64) @ numbers, rows)
        if right > best:
            best, chosen, worth = right, numbers, float(unit)
    if len(columns) <= TWEAKED:
        chosen = _tweak(chosen, columns, rows, most, best)
    return _card(chosen, max(0, round(-math.log2(worth))))


def _tweak(numbers: Matrix, columns: NDArray[np.float32], rows: TripletRows, most: int, right: float) -> Matrix:
    """Each number one higher or lower where that makes more triplets right, twice."""
    scores = columns.astype(np.float64) @ numbers
    for line, k in 2 * list(np.ndindex(*numbers.shape)):
        for step in (1.0, -1.0):
            if line < len(numbers) - 1 and abs(numbers[line, k] + step) > most:
                continue
            scores[:, k] += step * columns[:, line]
            now = _right(scores, rows)
            if now > right:
                right = now
                numbers[line, k] += step
                break
            scores[:, k] -= step * columns[:, line]
    return numbers


def _right(scores: Matrix, rows: TripletRows) -> float:
    """What the triplets count that come out right at x, PP and PN, with some credit for single points."""
    predicted = (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(axis=1)
    at_x = predicted[rows.x] == rows.label
    at_pp = (predicted[rows.pp] == rows.label) | ~rows.has_pp
    at_pn = (predicted[rows.pn] != rows.label) | ~rows.has_pn
    points = sum(float(rows.weight[each].sum()) for each in (at_x, at_pp, at_pn))
    return float(rows.weight[at_x & at_pp & at_pn].sum()) + CREDIT / 3 * points


def _card(numbers: Matrix, scale: int) -> Scorecard:
    if numbers.shape[1] == 1:
        numbers = np.column_stack((np.zeros(len(numbers)), numbers))
    points = numbers.astype(np.int64).tolist()
    return Scorecard(tuple(points[-1]), tuple(tuple(row) for row in points[:-1]), scale)
