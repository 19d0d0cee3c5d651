"""The multinomial logistic model under the rules head: the loss of scores, and the weights that minimise it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from gbfl_compile.learning.black_box.ask import Matrix

CURVATURE_FLOOR = 1e-4
"""A row the model is certain of still counts this much, so that a gain never divides by zero."""


class HasTargets(Protocol):
    """Points with the weights of the classes they should and should not get, [points, classes] each."""

    @property
    def target(self) -> Matrix: ...

    @property
    def avoid(self) -> Matrix: ...


@dataclass(frozen=True, slots=True)
class Targets:
    """Nothing but those weights."""

    target: Matrix
    avoid: Matrix


def loss_of(scores: Matrix, rows: HasTargets) -> tuple[float, Matrix, Matrix]:
    """Minus the log likelihood of the triplets, its gradient by score and its curvature, [points, score columns].

    With two classes there is one score column, the second class against the first.
    """
    full = np.column_stack((np.zeros(len(scores)), scores)) if scores.shape[1] == 1 else scores
    log_p = full - _by_column(np.maximum, full)
    log_p -= np.log(_by_column(np.add, np.exp(log_p)))
    p = np.exp(log_p)
    mass = _by_column(np.add, rows.target)
    loss = -float((rows.target * log_p).sum())
    gradient = mass * p - rows.target
    if full is scores:
        others = np.maximum(1.0 - p, 1e-12)
        loss -= float((rows.avoid * np.log(others)).sum())
        odds = rows.avoid * p / others
        gradient += odds - p * _by_column(np.add, odds)
        mass = mass + _by_column(np.add, rows.avoid)
    curvature = mass * np.maximum(p * (1.0 - p), CURVATURE_FLOOR)
    first = full.shape[1] - scores.shape[1]
    return loss, gradient[:, first:], curvature[:, first:]


def _by_column(add: np.ufunc, table: Matrix) -> Matrix:
    """`add.reduce(table, axis=1)`, to the bit, as a column. With few columns numpy takes ten times as long."""
    if table.shape[1] >= 8:  # from here on numpy adds in another order
        return np.asarray(add.reduce(table, axis=1, keepdims=True))
    total = table[:, :1].copy()
    for k in range(1, table.shape[1]):
        add(total, table[:, k : k + 1], out=total)
    return total


def refit(columns: NDArray[np.float32], weights: Matrix, rows: HasTargets, ridge: float, steps: int) -> Matrix:
    """All weights fitted again, starting from these; the last column is the bias and is (almost) not penalised."""
    penalty = np.full((len(weights), 1), ridge)
    penalty[-1] = 1e-3

    def loss_and_slope(flat: Matrix) -> tuple[float, Matrix]:
        w = flat.reshape(weights.shape)
        loss, gradient, _ = loss_of((columns @ w.astype(np.float32)).astype(np.float64), rows)
        slope = (columns.T @ gradient.astype(np.float32)).astype(np.float64) + penalty * w
        return loss + 0.5 * float((penalty * w * w).sum()), slope.ravel()

    optimum = minimize(loss_and_slope, weights.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": steps})
    return np.asarray(optimum.x).reshape(weights.shape)
