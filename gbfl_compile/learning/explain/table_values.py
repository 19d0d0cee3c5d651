"""What the training rows of a table with words show to be possible: the values of each column, and pairs of words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gbfl_compile.ir.kinds import Columns
from gbfl_compile.ir.nodes import Kind
from gbfl_compile.learning.black_box import Bools, Matrix

MOST_WORDS = 20
"""Of a category, only the commonest words are tried."""

LEVELS = (0.0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98, 1.0)
"""The quantiles of a number that are tried."""

EXPECTED = 8.0
"""Two words that chance alone would bring together this often, and that never meet, do not go together."""

SECOND = 1e6
"""Microseconds: a time between two others is rounded to a second."""


@dataclass(frozen=True, slots=True)
class WordPair:
    """Two columns of words, and which of their values never meet: `never[code of first, code of second]`."""

    first: int
    second: int
    never: Bools

    def broken_on(self, points: Matrix) -> Bools:
        """On which points two values meet that never do."""
        a, b = points[:, self.first], points[:, self.second]
        here = ~(np.isnan(a) | np.isnan(b))
        broken = np.zeros(len(points), dtype=bool)
        broken[here] = self.never[a[here].astype(np.int64), b[here].astype(np.int64)]
        return broken


@dataclass(frozen=True, slots=True)
class TableValues:
    """The values that explanations may use, column by column, and the words that do not go together."""

    columns: Columns
    values: tuple[Matrix, ...]
    """Quantiles of numbers and dates, the commonest words; all of them occur in the training rows."""
    missing: tuple[bool, ...]
    """Whether a column has missing values in the training rows: elsewhere none is made up."""
    widths: Matrix
    """The range of numbers and dates, to compare moves by; 1 for words."""
    steps: Matrix
    """What a value between two others is rounded to: 0 for any, infinity where there is nothing between them."""
    pairs: tuple[WordPair, ...]

    @property
    def least(self) -> Matrix:
        """The smallest value of each column."""
        return np.array([values.min() if len(values) else -np.inf for values in self.values])

    @property
    def most(self) -> Matrix:
        """The largest value of each column."""
        return np.array([values.max() if len(values) else np.inf for values in self.values])


def known_values(x: Matrix, columns: Columns, codes: tuple[int, ...] = ()) -> TableValues:
    """What encoded training rows show to be possible; of the columns in `codes`, no value between two others."""
    values, widths, steps = [], [], []
    for j, kind in enumerate(columns.kinds):
        here = x[~np.isnan(x[:, j]), j]
        is_word = kind in ("category", "boolean")
        values.append(_common(here) if is_word or not len(here) else _quantiles(here))
        widths.append(1.0 if is_word or not len(here) or here.max() == here.min() else float(here.max() - here.min()))
        steps.append(np.inf if is_word or j in codes else _step(kind, columns.whole[j]))
    missing = tuple(bool(np.isnan(column).any()) for column in x.T)
    return TableValues(columns, tuple(values), missing, np.array(widths), np.array(steps), _pairs(x, columns))


def _common(here: Matrix) -> Matrix:
    """The commonest codes, of equals the lower."""
    values, counts = np.unique(here, return_counts=True)
    return np.asarray(values[np.argsort(-counts, kind="stable")][:MOST_WORDS])


def _quantiles(here: Matrix) -> Matrix:
    return np.unique(np.quantile(here, LEVELS, method="nearest"))


def _step(kind: Kind, whole: bool) -> float:
    if kind == "timestamp":
        return SECOND
    return 1.0 if whole or kind == "date" else 0.0


def _pairs(x: Matrix, columns: Columns) -> tuple[WordPair, ...]:
    words = [j for j, kind in enumerate(columns.kinds) if kind in ("category", "boolean")]
    pairs = []
    for place, i in enumerate(words):
        for j in words[place + 1 :]:
            here = ~(np.isnan(x[:, i]) | np.isnan(x[:, j]))
            a, b = x[here, i].astype(np.int64), x[here, j].astype(np.int64)
            rows, width = len(columns.book.texts[i]) + 2, len(columns.book.texts[j]) + 2
            together = np.bincount(a * width + b, minlength=rows * width).reshape(rows, width)
            by_chance = np.outer(together.sum(axis=1), together.sum(axis=0)) / max(1, len(a))
            never = (together == 0) & (by_chance >= EXPECTED)
            if never.any():
                pairs.append(WordPair(i, j, never))
    return tuple(pairs)


def breaks_pairs(table: TableValues, points: Matrix) -> Bools:
    """On which points words meet that never do."""
    broken = np.zeros(len(points), dtype=bool)
    for pair in table.pairs:
        broken |= pair.broken_on(points)
    return broken


def is_possible(table: TableValues | None, points: Matrix, x: Matrix) -> Bools:
    """Whether the words of each point go together; where a row of x breaks a pair itself, its point may do so too."""
    if table is None:
        return np.ones(len(points), dtype=bool)
    return np.asarray(~breaks_pairs(table, points) | breaks_pairs(table, x))


def repair(table: TableValues, points: Matrix, x: Matrix) -> None:
    """Restore from x the words that do not go together, and whatever does not go with those, until none is left."""
    for _ in table.columns.features:
        changed = False
        for pair in table.pairs:
            rows = np.flatnonzero(pair.broken_on(points))
            for j in (pair.first, pair.second):
                other = rows[differ(points[rows, j], x[rows, j])]
                points[other, j] = x[other, j]
                changed |= len(other) > 0
        if not changed:
            return


def differ(a: Matrix, b: Matrix) -> Bools:
    """Where values differ; a missing value equals a missing value."""
    return np.asarray(~((a == b) | (np.isnan(a) & np.isnan(b))))


def base_row(x: Matrix, table: TableValues) -> Matrix:
    """Medians and commonest words, missing where that is commoner; a training row near it where words break a pair."""
    base = np.full(x.shape[1], np.nan)
    for j, kind in enumerate(table.columns.kinds):
        here = x[~np.isnan(x[:, j]), j]
        gaps = len(x) - len(here)
        if kind in ("category", "boolean"):
            values, counts = np.unique(here, return_counts=True)
            if len(values) and counts.max() >= gaps:
                base[j] = values[counts.argmax()]
        elif len(here) >= gaps:
            base[j] = np.quantile(here, 0.5, method="nearest")
    if breaks_pairs(table, base[None])[0]:
        distance = moves(table, x, base[None]).sum(axis=1)
        distance[breaks_pairs(table, x)] = np.inf
        base = x[int(distance.argmin())].copy()
    return base


def moves(table: TableValues, a: Matrix, b: Matrix) -> Matrix:
    """How far values are apart: a share of the range for numbers, 1 for words and where one is missing."""
    is_word = np.array([kind in ("category", "boolean") for kind in table.columns.kinds])
    apart = np.abs(a - b) / table.widths
    apart = np.where(np.isnan(apart) | is_word, 1.0, apart)
    return np.where(differ(a, np.broadcast_to(b, a.shape)), apart, 0.0)


def halfway(near: Matrix, far: Matrix, step: Matrix) -> Matrix:
    """The value in the middle, rounded to the step; `near` where there is none between."""
    whole = np.isfinite(step) & (step > 0)
    unit = np.where(whole, step, 1.0)
    middle = near / 2 + far / 2
    middle = np.where(whole, np.rint(middle / unit) * unit, middle)
    low, high = np.minimum(near, far), np.maximum(near, far)
    return np.where(np.isfinite(step) & (middle > low) & (middle < high), middle, near)


def unknown_words(table: TableValues, x: Matrix) -> tuple[int, int] | None:
    """The row and the column of a word that no training row has, where there is one."""
    for j, kind in enumerate(table.columns.kinds):
        if kind == "category" and len(rows := np.flatnonzero(x[:, j] == 0)):
            return int(rows[0]), j
    return None
