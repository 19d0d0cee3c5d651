"""The rules head: a weighted rule set fitted to triplets, as consistent as its number of clauses allows.

Forward and fully corrective. Each round takes what the model still gets wrong (the residual of a multinomial
logistic model), searches the conjunction of a few intervals that explains most of it beside the clauses chosen
already, adds it, and refits all weights. At the end the least useful clauses are replaced where that helps, and
the weights are rounded to integer points: the rounded model is the model. There is no randomness.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from gbfl_compile.ir.nodes import Scorecard
from gbfl_compile.learning.black_box.ask import Matrix
from gbfl_compile.learning.consistency import consistency
from gbfl_compile.learning.heads.box_search import SearchSettings
from gbfl_compile.learning.heads.grids import Conjunction, Grid, clause_from, holds_on, promising
from gbfl_compile.learning.heads.logistic import loss_of, refit
from gbfl_compile.learning.heads.points import Head, TripletRows

SCALE = 10
"""A point is 2**-10 of a logit: rounding moves no weight by more than half a thousandth."""


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """How a rule set is grown."""

    cuts: int = 32
    """Cuts per feature and role (x, PP, PN), at quantiles."""
    search: SearchSettings = field(default_factory=SearchSettings)
    swaps: int = 16
    """How often, at each budget, the best new clause is tried in place of the least useful one."""
    refit_steps: int = 10
    """Quasi-Newton steps after each added clause; the last refit takes up to ten times as many."""


@dataclass(frozen=True, slots=True)
class PathPoint:
    """How well the first clauses did on the training triplets, in per cent."""

    clauses: int
    c_tb: float | None
    """Over the triplets that have a PN; None where there are none."""
    c_tb_all: float | None
    """Over all; without a PN its condition is left out."""
    fidelity: float | None
    accuracy: float | None
    """Against the true classes, where they are known."""


@dataclass(frozen=True, slots=True)
class RuleSet:
    """A fitted rule set, and how it got there."""

    head: Head
    path: tuple[PathPoint, ...]


@dataclass(frozen=True, slots=True)
class _Growth:
    """The rule set so far, on the cuts."""

    boxes: tuple[Conjunction, ...]
    columns: NDArray[np.float32]
    """[points, boxes + 1]: 1 where a box holds; the last column is the bias."""
    weights: Matrix


def fit_rules(rows: TripletRows, grid: Grid, budgets: Sequence[int], settings: RuleSettings) -> tuple[RuleSet, ...]:
    """One rule set for each budget of clauses, smallest first, all from one growth; the grid has their points."""
    # one thread: the products are small, threads that wait for each other are not, and the bits stay the same
    with threadpool_limits(1, user_api="blas"):
        return _fitted_to(rows, grid, sorted(set(budgets)), settings)


def _fitted_to(rows: TripletRows, grid: Grid, budgets: Sequence[int], settings: RuleSettings) -> tuple[RuleSet, ...]:
    n_scores = 1 if rows.target.shape[1] == 2 else rows.target.shape[1]
    growth = _Growth((), np.ones((len(rows.points), 1), dtype=np.float32), np.zeros((1, n_scores)))
    growth = _refit(growth, rows, settings, settings.refit_steps)
    path, answers = [_path_point(growth, rows)], []
    for budget in budgets:
        while len(growth.boxes) < budget and (grown := _grow(growth, grid, rows, settings)) is not None:
            growth = grown
            path.append(_path_point(growth, rows))
        growth = _swap(growth, grid, rows, settings)
        done = _refit(growth, rows, settings, 10 * settings.refit_steps)
        path[-1] = _path_point(done, rows)
        head = Head(tuple(clause_from(grid, box) for box in done.boxes), rounded_card(done.weights))
        answers.append(RuleSet(head, tuple(path)))
    return tuple(answers)


def rounded_card(weights: Matrix) -> Scorecard:
    """Integer points, the bias from the last line; with two classes the second is weighed against the first."""
    if weights.shape[1] == 1:
        weights = np.column_stack((np.zeros(len(weights)), weights))
    points = np.rint(np.ldexp(weights, SCALE)).astype(np.int64).tolist()
    return Scorecard(tuple(points[-1]), tuple(tuple(row) for row in points[:-1]), SCALE)


def _path_point(growth: _Growth, rows: TripletRows) -> PathPoint:
    scores = _scores(growth)
    predicted = (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(axis=1)
    on_x, on_pp, on_pn = (predicted[at[: rows.measured]] for at in (rows.x, rows.pp, rows.pn))
    label, has_pp, has_pn = (column[: rows.measured] for column in (rows.label, rows.has_pp, rows.has_pn))
    agreement = consistency(label, on_x, on_pp, on_pn, has_pp, has_pn)
    return PathPoint(
        clauses=len(growth.boxes),
        c_tb=agreement.c_tb,
        c_tb_all=agreement.c_tb_all,
        fidelity=agreement.fidelity,
        accuracy=None if rows.truth is None else 100.0 * float((on_x == rows.truth).mean()),
    )


def _scores(growth: _Growth) -> Matrix:
    return np.asarray(growth.columns.astype(np.float64) @ growth.weights)


def _refit(growth: _Growth, rows: TripletRows, settings: RuleSettings, steps: int) -> _Growth:
    return replace(growth, weights=refit(growth.columns, growth.weights, rows, settings.search.ridge, steps))


def _grow(
    growth: _Growth, grid: Grid, rows: TripletRows, settings: RuleSettings, banned: frozenset[Conjunction] = frozenset()
) -> _Growth | None:
    """One more clause, all weights refitted; None where no clause helps."""
    _, gradient, curvature = loss_of(_scores(growth), rows)
    candidates = promising(grid, -gradient, curvature, settings.search)
    boxes = [box for box in candidates if box not in growth.boxes and box not in banned][: settings.search.shortlist]
    if not boxes:
        return None
    columns = np.column_stack([holds_on(grid, box) for box in boxes]).astype(np.float32)
    best = int(_gains_beside(growth, columns, gradient, curvature, settings.search.ridge).argmax())
    longer = _Growth(
        (*growth.boxes, boxes[best]),
        np.insert(growth.columns, -1, columns[:, best], axis=1),
        np.insert(growth.weights, -1, 0.0, axis=0),
    )
    return _refit(longer, rows, settings, settings.refit_steps)


def _gains_beside(
    growth: _Growth, columns: NDArray[np.float32], gradient: Matrix, curvature: Matrix, ridge: float
) -> Matrix:
    """The gain of each new column when all old weights move with it: one Newton step, class by class."""
    gains = np.zeros(columns.shape[1])
    for k in range(gradient.shape[1]):
        bend = curvature[:, k : k + 1].astype(np.float32)
        bent = growth.columns * bend
        old = (bent.T @ growth.columns).astype(np.float64) + ridge * np.eye(len(growth.weights))
        both = (bent.T @ columns).astype(np.float64)
        own = (columns * bend * columns).sum(axis=0) - np.einsum("ij,ij->j", both, np.linalg.solve(old, both))
        pull = columns.T @ gradient[:, k].astype(np.float32)
        gains += pull.astype(np.float64) ** 2 / (np.maximum(own, 0.0) + ridge)
    return gains


def _swap(growth: _Growth, grid: Grid, rows: TripletRows, settings: RuleSettings) -> _Growth:
    """As many clauses, the least useful ones replaced where that lowers the loss."""
    now, refused = _objective(growth, rows, settings), set[Conjunction]()
    for _ in range(settings.swaps):
        use = _use_of_each(growth, rows, settings)
        order = [int(i) for i in np.argsort(use, kind="stable") if growth.boxes[i] not in refused]
        if not order:
            break
        old = growth.boxes[order[0]]
        trial = _refit(_without(growth, order[0]), rows, settings, settings.refit_steps)
        grown = _grow(trial, grid, rows, settings, frozenset({old}))
        then = now if grown is None else _objective(grown, rows, settings)
        if grown is not None and then < now - 1e-6:
            growth, now = grown, then
        else:
            refused.add(old)
    return growth


def _without(growth: _Growth, at: int) -> _Growth:
    boxes = growth.boxes[:at] + growth.boxes[at + 1 :]
    return _Growth(boxes, np.delete(growth.columns, at, axis=1), np.delete(growth.weights, at, axis=0))


def _objective(growth: _Growth, rows: TripletRows, settings: RuleSettings) -> float:
    loss, _, _ = loss_of(_scores(growth), rows)
    return loss + 0.5 * settings.search.ridge * float((growth.weights[:-1] ** 2).sum())


def _use_of_each(growth: _Growth, rows: TripletRows, settings: RuleSettings) -> Matrix:
    """About how much the loss would rise without each clause, the others refitted."""
    _, _, curvature = loss_of(_scores(growth), rows)
    use = np.zeros(len(growth.weights))
    for k in range(growth.weights.shape[1]):
        bent = growth.columns * curvature[:, k : k + 1].astype(np.float32)
        hessian = (bent.T @ growth.columns).astype(np.float64) + settings.search.ridge * np.eye(len(use))
        use += growth.weights[:, k] ** 2 / np.diag(np.linalg.inv(hessian))
    return use[:-1]
