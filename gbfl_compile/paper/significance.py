"""Paired t-tests over seeds, and which figures are the best by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

LEVEL = 0.05
ROUNDING = 1e-12
"""Differences of percentages that are this close, relatively, are the same."""


def paired_p(first: Sequence[float | None], second: Sequence[float | None]) -> float | None:
    """The two-sided p of a paired t-test; None where fewer than two pairs can be compared.

    >>> paired_p([90.0, 91.0, 92.0], [90.0, 91.0, 92.0])
    1.0
    """
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    if len(pairs) < 2:
        return None
    apart = np.array([a - b for a, b in pairs])
    if not apart.any():
        return 1.0
    if np.ptp(apart) <= ROUNDING * np.abs(apart).max():  # the same difference every time: no spread to divide by
        return 0.0
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(apart, 0.0).pvalue)


def mean(figures: Sequence[float | None]) -> float | None:
    """The mean of the figures there are."""
    known = [figure for figure in figures if figure is not None]
    return float(np.mean(known)) if known else None


def best_of(figures: Mapping[str, Sequence[float | None]]) -> frozenset[str]:
    """The model with the highest mean, and those a paired t-test cannot tell from it."""
    means = {model: value for model, series in figures.items() if (value := mean(series)) is not None}
    if not means:
        return frozenset()
    top = max(means, key=lambda model: means[model])
    undecided = {model: paired_p(figures[top], figures[model]) for model in means}
    return frozenset(model for model, p in undecided.items() if model == top or (p is not None and p >= LEVEL))
