"""Black boxes trained here on tables with words and gaps: each gets the preparation it needs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, assert_never

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.ir.kinds import Columns, EncodedTable
from gbfl_compile.learning.black_box.ask import Matrix

BLOCK_ROWS = 8192
"""Rows prepared at a time: one column per word makes wide rows."""
FEW_ROWS = 500
MOST_CODES = 200
"""Words that gradient boosting tells apart, the commonest; scikit-learn allows 255."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """Codes as numbers: one column per word that the training rows have, gaps filled with the median and marked."""

    words: tuple[Matrix | None, ...]
    """The codes of each column of words; None for a column of numbers."""
    middle: Matrix
    centre: Matrix
    spread: Matrix
    marked: tuple[bool, ...]
    """Which columns have gaps in the training rows."""

    def rows(self, x: Matrix) -> NDArray[np.float32]:
        """The rows as numbers, of about the same size."""
        parts = []
        for j, words in enumerate(self.words):
            here = x[:, j : j + 1]
            missing = np.isnan(here)
            if words is not None:
                parts.append(here == words[None, :])
            else:
                parts.append((np.where(missing, self.middle[j], here) - self.centre[j]) / self.spread[j])
            if self.marked[j]:
                parts.append(missing)
        return np.hstack(parts).astype(np.float32)


def preparation_of(x: Matrix, columns: Columns) -> Preparation:
    """The preparation that training rows need."""
    words: list[Matrix | None] = []
    figures = []
    for j, kind in enumerate(columns.kinds):
        here = x[~np.isnan(x[:, j]), j]
        words.append(np.unique(here) if kind in ("category", "boolean") else None)
        figures.append((np.median(here), here.mean(), here.std() or 1.0) if len(here) else (0.0, 0.0, 1.0))
    middle, centre, spread = np.array(figures).T
    return Preparation(tuple(words), middle, centre, spread, tuple(bool(np.isnan(column).any()) for column in x.T))


@dataclass(frozen=True, slots=True)
class OnPreparedRows:
    """A model and the preparation of its rows."""

    model: Any
    preparation: Preparation

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, one per column of the answer."""
        return np.asarray(self.model.classes_)

    def predict_proba(self, x: Matrix) -> Matrix:
        """One probability per class for each row of codes."""
        blocks = [
            self.model.predict_proba(self.preparation.rows(x[begin : begin + BLOCK_ROWS]))
            for begin in range(0, len(x), BLOCK_ROWS)
        ]
        return np.concatenate(blocks) if blocks else np.empty((0, len(self.classes_)))

    def predict(self, table: EncodedTable) -> NDArray[Any]:
        """The class of each row."""
        return np.asarray(self.classes_[self.predict_proba(table.x).argmax(axis=1)])


@dataclass(frozen=True, slots=True)
class OnCommonCodes:
    """A model that takes codes as they are, rare words as one."""

    model: Any
    is_word: NDArray[np.bool_]

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, one per column of the answer."""
        return np.asarray(self.model.classes_)

    def predict_proba(self, x: Matrix) -> Matrix:
        """One probability per class for each row of codes."""
        return np.asarray(self.model.predict_proba(_common(x, self.is_word)))


def _common(x: Matrix, is_word: NDArray[np.bool_]) -> Matrix:
    return np.where(is_word, np.minimum(x, MOST_CODES), x)


def train_on_codes(kind: Literal["mlp", "gbm", "forest"], x: Matrix, y: Any, columns: Columns, seed: int) -> Any:
    """A black box fitted to encoded rows, the same one for the same seed."""
    match kind:
        case "gbm":
            from sklearn.ensemble import HistGradientBoostingClassifier

            is_word = np.array([each in ("category", "boolean") for each in columns.kinds])
            boosting = HistGradientBoostingClassifier(
                max_leaf_nodes=15,
                learning_rate=0.05,
                max_iter=200,
                early_stopping=len(x) >= FEW_ROWS,  # splits on words learn few rows by heart
                categorical_features=is_word,
                random_state=seed,
            )
            return OnCommonCodes(boosting.fit(_common(x, is_word), y), is_word)
        case "forest":
            from sklearn.ensemble import RandomForestClassifier

            preparation = preparation_of(x, columns)
            # one job: trees that add up their votes in parallel do so in another order each time
            forest = RandomForestClassifier(100, min_samples_leaf=3, random_state=seed, n_jobs=1)
            return OnPreparedRows(forest.fit(preparation.rows(x), y), preparation)
        case "mlp":
            return network_on_codes(x, y, columns, seed)
        case _:
            assert_never(kind)


def network_on_codes(x: Matrix, y: Any, columns: Columns, seed: Any) -> OnPreparedRows:
    """A small neural network fitted to encoded rows."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier
    from threadpoolctl import threadpool_limits

    # one column per word is many columns: without a stop, or on few rows a strong penalty, it learns rows by heart
    few = {"solver": "lbfgs", "alpha": 10.0, "max_iter": 300}
    many = {"alpha": 1e-2, "max_iter": 150, "early_stopping": True}
    network = MLPClassifier((40, 20), random_state=seed, **(few if len(x) < FEW_ROWS else many))
    preparation = preparation_of(x, columns)
    # one thread: the steps are small, and threads that wait for each other take many times as long
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        return OnPreparedRows(network.fit(preparation.rows(x), y), preparation)
