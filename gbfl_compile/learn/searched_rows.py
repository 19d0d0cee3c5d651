"""On which rows a head is searched where there are many: drawn once, by class, and weighed for those not drawn.

Clauses found on 20,000 explained rows are hardly better with more, and the search would take most of the time. The
numbers on them, leaves' probabilities and points, are fitted to all rows afterwards (`heads.on_all_rows`).
"""

from __future__ import annotations

import numpy as np

from gbfl_compile.learn.black_box import Ints, Matrix

SEARCHED_ROWS = 20_000
"""With no more rows than this a head is fitted to all of them at once."""


def searched_rows(label: Ints, most: int) -> tuple[Ints, Matrix]:
    """At most `most` rows, ascending, and how many rows each stands for; the same every time.

    Each class has its share, but a rare one is not thinned out: all its rows, up to half an equal share, are there.
    """
    classes, counts = np.unique(label, return_counts=True)
    wanted = np.minimum(counts, most // (2 * len(classes)))
    free = most - int(wanted.sum())
    wanted = wanted + (counts - wanted) * free // max(1, int((counts - wanted).sum()))
    draw = np.random.default_rng(0)
    rows, weights = [], []
    for one, count, taken in zip(classes, counts.tolist(), wanted.tolist(), strict=True):
        rows.append(draw.choice(np.flatnonzero(label == one), size=taken, replace=False, shuffle=False))
        weights.append(np.full(taken, count / taken))
    found = np.concatenate(rows)
    order = np.argsort(found)
    return found[order], np.concatenate(weights)[order]
