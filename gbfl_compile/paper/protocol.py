"""The experiment's rules: rows, split and network, all decided by the data set and the seed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from gbfl_compile.errors import BadInput
from gbfl_compile.paper.datasets import Dataset

TEST_SHARE = 0.25
KAPPA = 0.5
FEWEST_ROWS = 40

BALANCED = ("credit_card",)
"""Sets drawn with equally many rows per class: the paper's accuracies on them lie below the majority's share."""
FRESH = 100
"""Seed 0 uses random seed 100, and so on: the settings of our models were chosen on splits 0 to 6, and a split that
helped to choose them is no test of them. The rows are the same, so this reduces the optimism but does not remove it."""


@dataclass(frozen=True, slots=True)
class Training:
    """How a network is trained, beyond its widths, Adam and a learning rate of 0.001."""

    alpha: float = 1e-4
    epochs: int = 200
    patience: int = 8
    stops_early_above: float = 1_000
    """With more rows than this, training stops when a held-out tenth no longer improves."""


USUAL = Training()
TRAININGS: Mapping[str, Training] = {
    # The paper's network has dropout of one half in four places, and scikit-learn has none. Unregularised, five
    # layers on 3,000 rows are right on 95-97 % and far from smooth; with this penalty they are right on 98 %.
    "skyserver": Training(alpha=1.0, epochs=60, patience=10, stops_early_above=np.inf),
}


@dataclass(frozen=True, slots=True)
class Split:
    """Rows to learn from and rows to measure on."""

    x: NDArray[np.float64]
    y: NDArray[Any]
    x_test: NDArray[np.float64]
    y_test: NDArray[Any]


def split_of(dataset: Dataset, rows: int, seed: int) -> Split:
    """At most `rows` rows, 75 % of them for training, the classes in the same shares on both sides."""
    if rows < FEWEST_ROWS:
        raise BadInput(f"{rows} rows are too few to split and explain: {FEWEST_ROWS} at least")
    x, y = _draw(dataset, rows, seed)
    x_train, x_test, y_train, y_test = train_test_split(
        x, y, test_size=TEST_SHARE, random_state=FRESH + seed, stratify=y
    )
    return Split(x_train, y_train, x_test, y_test)


def _draw(dataset: Dataset, rows: int, seed: int) -> tuple[NDArray[np.float64], NDArray[Any]]:
    if dataset.name in BALANCED:
        classes, counts = np.unique(dataset.y, return_counts=True)
        each = min(rows // len(classes), int(counts.min()))
        rng = np.random.default_rng(FRESH + seed)
        own = [rng.choice(np.flatnonzero(dataset.y == label), each, replace=False) for label in classes]
        indices = np.concatenate(own)
        return dataset.x[indices], dataset.y[indices]
    if len(dataset.x) <= rows:
        return dataset.x, dataset.y
    x, _, y, _ = train_test_split(dataset.x, dataset.y, train_size=rows, random_state=FRESH + seed, stratify=dataset.y)
    return x, y


def network_of(dataset: Dataset, split: Split, seed: int) -> Pipeline:
    """The black box: a network of the appendix's widths on standardised features."""
    training = TRAININGS.get(dataset.name, USUAL)
    network = MLPClassifier(
        dataset.widths,
        alpha=training.alpha,
        learning_rate_init=1e-3,
        max_iter=training.epochs,
        n_iter_no_change=training.patience,
        early_stopping=len(split.x) > training.stops_early_above,
        random_state=FRESH + seed,
    )
    with warnings.catch_warnings():
        # stopping before convergence is no defect in a model that is only to be explained
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make_pipeline(StandardScaler(), network).fit(split.x, split.y)
