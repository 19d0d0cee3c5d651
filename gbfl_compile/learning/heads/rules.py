"""The rules head: a weighted rule set fitted to triplets, as consistent as its number of clauses allows.

Forward and fully corrective. Each round takes what the model still gets wrong (the residual of a multinomial
logistic model), searches the conjunction of a few intervals that explains most of it beside the clauses chosen
already, adds it, and refits all weights, until nothing is gained. From then on a point counts by how surely the rest of
its triplet is right. The least useful clauses are replaced where that helps, bounds that do not matter are dropped,
and the weights become small integer points: the rounded model is the model. There is no randomness.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from gbfl_compile.ir.batch import clause_column
from gbfl_compile.ir.kinds import Codebook
from gbfl_compile.ir.nodes import Clause
from gbfl_compile.learning.black_box import Matrix
from gbfl_compile.learning.consistency import consistency
from gbfl_compile.learning.heads import (
    Conjunction,
    Grid,
    Head,
    TripletRows,
    clause_from,
    count_bounds,
    holds_on,
    promising,
    without_a_bound,
)
from gbfl_compile.learning.heads.box_search import SearchSettings
from gbfl_compile.learning.heads.weights import (
    LONG_REFIT,
    Targets,
    constant_card,
    count_whole_triplets,
    loss_of,
    refit,
    rounded_card,
    small_card,
)

WHOLE_REFIT = 30
"""Quasi-Newton steps of a refit to whole triplets before clauses are replaced."""
POINTS_PER_CLAUSE = 30
"""Where there are few distinct points, a clause holds on one in this many at least."""
LEAST_GAIN = 8.0
"""A clause that lowers twice the loss by less is noise: a search over many always finds something."""


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """How a rule set is grown."""

    cuts: int = 32
    """Cuts per feature and role (x, PP, PN), at quantiles."""
    search: SearchSettings = field(default_factory=SearchSettings)
    swaps: int = 10
    """How often, at each budget, the best new clause is tried in place of the least useful one."""
    refit_steps: int = 10
    """Quasi-Newton steps after each added clause; the last refit takes more."""
    late_swaps: int = 16
    """The same once bounds have been dropped."""
    points: int | None = 10
    """The most points a clause gives or takes; None is as many as its weight says, in points of 2**-10 logit."""
    bound_price: float = 2e-5
    """A bound is dropped where the loss rises by less than this share of the points."""
    bounds_per_clause: float = 2.85
    """Bounds are dropped until there are at most this many on average: of the clauses there are,"""
    whole: bool = True
    """Whether a point counts by the rest of its triplet once the clauses are grown."""
    max_clauses: int = 0
    """or of those there might be, where that is more."""


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
    few = max(1, len(rows.points) // POINTS_PER_CLAUSE)  # rows of three booleans are eight points, however many
    search = replace(settings.search, min_points=min(settings.search.min_points, few))
    # one thread: the products are small, threads that wait for each other are not, and the bits stay the same
    with threadpool_limits(1, user_api="blas"):
        return _fitted_to(rows, grid, sorted(set(budgets)), replace(settings, search=search))


def _fitted_to(rows: TripletRows, grid: Grid, budgets: Sequence[int], settings: RuleSettings) -> tuple[RuleSet, ...]:
    n_scores = 1 if rows.target.shape[1] == 2 else rows.target.shape[1]
    growth = _Growth((), np.ones((len(rows.points), 1), dtype=np.float32), np.zeros((1, n_scores)))
    growth = _refit(growth, rows, settings, settings.refit_steps)
    path, answers = [_path_point(growth, rows)], []
    for budget in budgets:
        while len(growth.boxes) < budget and (grown := _grow(growth, grid, rows, settings)) is not None:
            growth = grown
            path.append(_path_point(growth, rows))
        whole = rows
        if settings.whole:
            growth, whole = _refit_whole(growth, rows, settings, WHOLE_REFIT)
        growth = _swap(growth, grid, whole, settings)
        done = growth
        if settings.points is not None:
            done = _drop_bounds(done, grid, _counted_rows(done, rows, settings), settings)
            whole = _counted_rows(done, rows, settings)
            done = _swap(done, grid, whole, replace(settings, swaps=settings.late_swaps))
            done = _drop_bounds(done, grid, whole, settings)
        if settings.whole:
            done, _ = _refit_whole(done, rows, settings, LONG_REFIT)
        else:
            done = _refit(done, rows, settings, LONG_REFIT)
        path[-1] = _path_point(done, rows)
        clauses = tuple(clause_from(grid, box) for box in done.boxes)
        answers.append(RuleSet(_head(done, clauses, rows, settings), tuple(path)))
    return tuple(answers)


def _refit_whole(growth: _Growth, rows: TripletRows, settings: RuleSettings, steps: int) -> tuple[_Growth, TripletRows]:
    """The weights refitted to triplets as wholes, twice, since what counts depends on the weights."""
    for _ in range(2):
        whole = count_whole_triplets(rows, _scores(growth))
        growth = _refit(growth, whole, settings, steps)
    return growth, whole


def _counted_rows(growth: _Growth, rows: TripletRows, settings: RuleSettings) -> TripletRows:
    return count_whole_triplets(rows, _scores(growth)) if settings.whole else rows


def weigh_rule(clause: Clause, rows: TripletRows, settings: RuleSettings, book: Codebook | None) -> RuleSet:
    """A rule set of one clause."""
    holds = clause_column(clause, rows.points, book)
    n_scores = 1 if rows.target.shape[1] == 2 else rows.target.shape[1]
    growth = _Growth(((),), np.column_stack((holds, np.ones(len(holds)))).astype(np.float32), np.zeros((2, n_scores)))
    with threadpool_limits(1, user_api="blas"):
        growth = _refit(growth, rows, settings, LONG_REFIT)
    return RuleSet(_head(growth, (clause,), rows, settings), (_path_point(growth, rows),))


def _head(growth: _Growth, clauses: tuple[Clause, ...], rows: TripletRows, settings: RuleSettings) -> Head:
    """The clauses and their points; a clause without any is left out."""
    if settings.points is None:
        return Head(clauses, rounded_card(growth.weights))
    if not clauses:
        return Head((), constant_card(growth.weights, settings.points))
    card = small_card(growth.weights, growth.columns, rows, settings.points)
    used = [number for number, points in enumerate(card.points) if any(points)]
    points = tuple(card.points[number] for number in used)
    return Head(tuple(clauses[number] for number in used), replace(card, points=points))


def _drop_bounds(growth: _Growth, grid: Grid, rows: TripletRows, settings: RuleSettings) -> _Growth:
    """The rule set without the bounds that matter least, all weights refitted after every few."""
    price = settings.bound_price * float(rows.target.sum() + rows.avoid.sum())
    while growth.boxes:
        costs = _costs_of_bounds(growth, grid, rows)
        most = settings.bounds_per_clause * max(settings.max_clauses, len(growth.boxes))
        spare = sum(count_bounds(grid, box) for box in growth.boxes) - most
        batch = max(1, len(growth.boxes) // 8)
        chosen: dict[int, Conjunction] = {}
        for cost, at, box in costs:
            if (
                len(chosen) < batch
                and (cost <= price or len(chosen) < spare)
                and box not in (*growth.boxes, *chosen.values())
            ):
                chosen.setdefault(at, box)
        if not chosen:
            break
        boxes, columns = list(growth.boxes), growth.columns.copy()
        for at, box in chosen.items():
            boxes[at] = box
            columns[:, at] = holds_on(grid, box)
        growth = _refit(_Growth(tuple(boxes), columns, growth.weights), rows, settings, settings.refit_steps)
    return growth


def _costs_of_bounds(growth: _Growth, grid: Grid, rows: TripletRows) -> list[tuple[float, int, Conjunction]]:
    """What the loss rises by without each bound, least first: its clause, and the box without it."""
    scores, costs = _scores(growth), []
    for at, old in enumerate(growth.boxes):
        for box in without_a_bound(grid, old):
            more = np.flatnonzero(holds_on(grid, box) & (growth.columns[:, at] == 0))
            targets = Targets(rows.target[more], rows.avoid[more])
            before, after = loss_of(scores[more], targets)[0], loss_of(scores[more] + growth.weights[at], targets)[0]
            costs.append((after - before, at, box))
    return sorted(costs, key=lambda cost: (cost[0], cost[1], cost[2]))


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
    gains = _gains_beside(growth, columns, gradient, curvature, settings.search.ridge)
    best = int(gains.argmax())
    if gains[best] < LEAST_GAIN:
        return None
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
