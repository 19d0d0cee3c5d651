"""The figures printed in the paper, as data, so that ours stand beside them.

Percentages from its results table (Pedapati, Balakrishnan, Shanmugam and Dhurandhar, 2020); None is its NA: on
Magic and Diabetes its explainer found no PN. Its C_TB on those two leaves the PN condition out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Figures: TypeAlias = Mapping[str, Mapping[str, Mapping[str, float | None]]]

SETS = ("skyserver", "credit_card", "magic", "diabetes", "waveform", "wdbc")
"""The order of its columns."""


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
"""Metric -> model -> set -> per cent."""
