"""Figures to compare: those printed in the paper, and paired t-tests over seeds that say which of ours are best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

LEVEL = 0.05
ROUNDING = 1e-12
"""Percentages whose relative difference is this small are the same."""


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
    """The mean of the figures that are not None."""
    known = [figure for figure in figures if figure is not None]
    return float(np.mean(known)) if known else None


def best_of(figures: Mapping[str, Sequence[float | None]]) -> frozenset[str]:
    """The model with the highest mean, and those a paired t-test cannot distinguish from it."""
    means = {model: value for model, series in figures.items() if (value := mean(series)) is not None}
    if not means:
        return frozenset()
    top = max(means, key=lambda model: means[model])
    undecided = {model: paired_p(figures[top], figures[model]) for model in means}
    return frozenset(model for model, p in undecided.items() if model == top or (p is not None and p >= LEVEL))


Figures: TypeAlias = Mapping[str, Mapping[str, Mapping[str, float | None]]]

SETS = ("skyserver", "credit_card", "magic", "diabetes", "waveform", "wdbc")
"""The order of the paper's columns."""


def _rows(table: Mapping[str, tuple[float | None, ...]]) -> dict[str, dict[str, float | None]]:
    return {model: dict(zip(SETS, figures, strict=True)) for model, figures in table.items()}


PUBLISHED: Figures = {
    "c_tb": _rows(
        {
            "standard": (31.08, 3.51, 54.04, 61.97, 12.52, 18.79),
            "distillation": (33.59, 4.52, 56.04, 64.58, 5.48, 22.47),
            "augmentation": (3.86, 2.01, 57.24, 58.85, 7.03, 5.92),
            "gbfl": (48.84, 7.03, 56.76, 68.75, 19.55, 50.12),
        }
    ),
    "c_pn": _rows(
        {
            "standard": (44.01, 49.74, None, None, 59.69, 29.01),
            "distillation": (38.22, 23.11, None, None, 29.15, 33.03),
            "augmentation": (12.16, 51.75, None, None, 62.77, 19.02),
            "gbfl": (58.88, 74.87, None, None, 65.18, 61.01),
        }
    ),
    "c_pp": _rows(
        {
            "standard": (75.67, 61.80, 59.36, 68.23, 82.33, 88.78),
            "distillation": (78.57, 66.43, 59.32, 68.22, 72.72, 79.99),
            "augmentation": (75.17, 57.28, 61.96, 66.67, 80.39, 91.99),
            "gbfl": (79.44, 56.23, 61.68, 68.75, 84.66, 89.67),
        }
    ),
    "accuracy": _rows(
        {
            "standard": (99.2, 60.7, 79.24, 75.10, 75.92, 93.0),
            "distillation": (92.88, 48.6, 79.96, 77.08, 61.2, 92.01),
            "augmentation": (96.21, 58.4, 77.8, 71.87, 74.72, 95.07),
            "gbfl": (97.68, 59.9, 77.30, 75.0, 75.48, 93.0),
            "black-box": (99.68, 69.4, 88.98, 83.0, 85.8, 96.1),
        }
    ),
}
"""Metric -> model -> set -> per cent: the results table of Pedapati, Balakrishnan, Shanmugam and Dhurandhar, 2020.

None is its NA: on Magic and Diabetes its explainer found no PN, and its C_TB there leaves the PN condition out."""
