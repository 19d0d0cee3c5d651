"""Rows on which rates are observed: a part of those held out, which no figure is of. What is learned stays the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from gbfl_compile.learning.calibration import FEWEST_ROWS
from gbfl_compile.mining.table import Sample, UnseenRows

UNSEEN_SHARE = 0.4
"""Of the rows held out: those on which rates are observed. All figures are of the others."""

Probabilities: TypeAlias = Literal["observed", "score"]
"""What the probabilities of a program are: observed on rows held out, or made of the rules' own scores."""


def split_unseen(sample: Sample, seed: int) -> Sample:
    """The sample with some of the rows held out as unseen ones, unless they would be too few to observe rates on."""
    from sklearn.model_selection import train_test_split

    split = sample.split
    if int(UNSEEN_SHARE * len(split.x_test)) < FEWEST_ROWS:
        return sample
    stratify = split.y_test if np.unique(split.y_test, return_counts=True)[1].min() > 1 else None
    x_test, x, y_test, y = train_test_split(
        split.x_test, split.y_test, test_size=UNSEEN_SHARE, random_state=seed, stratify=stratify
    )
    return replace(sample, split=replace(split, x_test=x_test, y_test=y_test), unseen=UnseenRows(x, y))


def reason_for_score(sample: Sample, probabilities: Probabilities) -> dict[str, Any]:
    """What is recorded where no rates were observed: which probabilities the program has instead, and why."""
    if probabilities == "score":
        return {"emitted": "score", "why": "--probabilities observed makes them rates"}
    held_out, needed = len(sample.split.x_test), int(np.ceil(FEWEST_ROWS / UNSEEN_SHARE))
    return {"emitted": "score", "why": f"{held_out} rows are held out, and {needed} are needed to observe rates"}
