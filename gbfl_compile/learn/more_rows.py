"""More rows to explain where training rows are few: points between a row and one of its nearest neighbours.

The black box can be asked about any point, so few rows need not mean few explanations.
"""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import NearestNeighbors

from gbfl_compile.learn.black_box import Matrix

NEIGHBOURS = 10


def rows_between(x: Matrix, count: int, seed: int) -> Matrix:
    """`count` points on the way from a row to one of its nearest; whole-numbered columns take either row's value."""
    random = np.random.default_rng(seed)
    spread = x.std(axis=0)
    scaled = x / np.where(spread > 0, spread, 1.0)
    search = NearestNeighbors(n_neighbors=min(NEIGHBOURS + 1, len(x))).fit(scaled)
    near = search.kneighbors(scaled, return_distance=False)
    start = random.integers(len(x), size=count)
    goal = near[start, random.integers(min(1, near.shape[1] - 1), near.shape[1], size=count)]
    way = random.random((count, 1))
    between = np.clip(x[start] + way * (x[goal] - x[start]), x.min(axis=0), x.max(axis=0))
    whole = (x == np.rint(x)).all(axis=0)
    return np.where(whole, np.where(way < 0.5, x[start], x[goal]), between)
