"""Rows on which rates are observed: a part of those held out, which no figure is of. What is learned stays the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gbfl_compile.mining.table import Sample, UnseenRows

UNSEEN_SHARE = 0.4
"""Of the rows held out: those on which rates are observed. All figures are of the others."""


def split_unseen(sample: Sample, seed: int) -> Sample:
    """The sample with some of the rows held out as unseen ones: what is learned stays the same."""
    from sklearn.model_selection import train_test_split

    split = sample.split
    stratify = split.y_test if np.unique(split.y_test, return_counts=True)[1].min() > 1 else None
    x_test, x, y_test, y = train_test_split(
        split.x_test, split.y_test, test_size=UNSEEN_SHARE, random_state=seed, stratify=stratify
    )
    return replace(sample, split=replace(split, x_test=x_test, y_test=y_test), unseen=UnseenRows(x, y))
