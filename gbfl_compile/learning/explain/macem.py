"""The MACEM explainer: equations 1 and 2 as an elastic net, by projected FISTA with zeroth-order gradients.

It minimises  c * max(-margin, -kappa) + beta * |z| + z^2  where z is how far a point is from its start (the
base for a PP, x for a PN) in widths of each feature's range. The gradient of the first term is estimated from
the black box's answers alone, d/mu * mean[(f(point + mu u) - f(point)) u] with u uniform on the unit sphere.
The weight c of each row is searched as in the contrastive explanation method: ten times more until a point is
found, then halfway between what failed and what did not. Finally the best point is made sparse.

Each row has its own random directions, seeded by its values: no row depends on another.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from gbfl_compile.errors import BadInput
from gbfl_compile.learning.black_box import BLOCK_CELLS, BlackBox, Ints, Matrix, probabilities
from gbfl_compile.learning.explain import Explanations
from gbfl_compile.learning.explain.domain import Domain
from gbfl_compile.learning.explain.search import (
    WINS,
    ExplainerSettings,
    Side,
    changes_allowed,
    explain_rows,
    free_sides,
    margins,
    pp_values,
    round_to_kinds,
    widths,
)


@dataclass(frozen=True, slots=True)
class Macem(ExplainerSettings):
    """How MACEM descends."""

    beta: float = 0.1
    """The weight of the L1 part; the L2 part has 1."""
    weight: float = 1.0
    """The first c."""
    searches: int = 3
    """How many values of c are tried."""
    iterations: int = 50
    directions: int = 10
    """How many directions a gradient is estimated from."""
    mu: float = 0.05
    """How far along a direction the black box is queried, in widths of the range."""
    step: float = 0.05
    """The first step's length; it decays as the square root of what is left of the iterations."""

    def dearest(self, domain: Domain) -> int:
        """The most a row costs: both sides' descents, and the tries to make them sparse."""
        pairs = 2 if domain.kinds or domain.immutable else 1
        per_step = 1 + pairs * self.directions
        return 2 * (self.searches * self.iterations * per_step + len(domain.features) + 1)


USUAL = Macem()


@dataclass(frozen=True, slots=True)
class _Descent:
    """One side of some rows: each row's start, the box it may move in, and which class should win or lose."""

    black_box: BlackBox
    domain: Domain
    start: Matrix
    """Where z is 0."""
    first: Matrix
    """Where the descent begins: x, or as much of it as a PP may have."""
    low: Matrix
    high: Matrix
    label: Ints
    sign: int
    """+1: the label should win (PP). -1: it should lose (PN)."""
    limit: int
    enough: Matrix
    goal: Matrix
    whole: tuple[int, ...]
    """Features that change all the way to the end of their box or not at all."""
    settings: Macem


def explain_by_macem(black_box: BlackBox, x: Matrix, domain: Domain, settings: Macem = USUAL) -> Explanations:
    """A PP and a PN for each row of x, and the number of queries: many times as many as for `explain_greedily`."""
    _check(settings)
    if domain.table is not None:
        refuse_table(domain)

    def find(rows: Matrix, label: Ints, margin: Matrix) -> tuple[Side, Side]:
        step = _block_rows(rows.shape[1], settings)
        sides: tuple[list[Side], list[Side]] = ([], [])
        for begin in range(0, len(rows), step):
            block = slice(begin, begin + step)
            pair = _both_sides(black_box, rows[block], domain, settings, label[block], margin[block])
            for number, (side, descent) in enumerate(zip(sides, pair, strict=True)):
                side.append(_find(descent, rows[block], number))
        return _join(sides[0]), _join(sides[1])

    return explain_rows(black_box, x, domain, settings, find)


def refuse_table(domain: Domain) -> NoReturn:
    """Refuse words and missing values, by name: gradients need numbers."""
    assert domain.table is not None  # noqa: S101 - it is called for tables only
    for name, kind in zip(domain.features, domain.table.columns.kinds, strict=True):
        if kind != "number":
            raise BadInput(f"explainer macem: {name!r} is a {kind}, and macem needs numbers: use greedy, or --drop it")
    gap = next(name for name, missing in zip(domain.features, domain.table.missing, strict=True) if missing)
    raise BadInput(f"explainer macem: {gap!r} has missing values, and macem needs numbers: use greedy, or --drop it")


def _both_sides(
    black_box: BlackBox, x: Matrix, domain: Domain, settings: Macem, label: Ints, margin_x: Matrix
) -> tuple[_Descent, _Descent]:
    back = pp_values(x, domain)
    may_rise, may_fall = free_sides(x, domain)
    n, width = x.shape
    # x itself may hold its class by less than WINS, and is its own PP all the same
    enough = np.minimum(WINS, margin_x)
    positive = _Descent(
        black_box,
        domain,
        start=np.tile(domain.base, (n, 1)),
        first=back,
        low=np.minimum(back, domain.base),
        high=np.maximum(back, domain.base),
        label=label,
        sign=1,
        limit=changes_allowed(settings.max_restored, width),
        enough=enough,
        goal=np.maximum(settings.kappa, enough),
        whole=domain.immutable,
        settings=settings,
    )
    negative = _Descent(
        black_box,
        domain,
        start=x,
        first=x,
        low=np.where(may_fall, domain.lower, x),
        high=np.where(may_rise, domain.upper, x),
        label=label,
        sign=-1,
        limit=changes_allowed(settings.max_moved, width),
        enough=np.full(n, WINS),
        goal=np.full(n, max(settings.kappa, WINS)),
        whole=(),
        settings=settings,
    )
    return positive, negative


def _check(settings: Macem) -> None:
    for name in ("searches", "iterations", "directions"):
        if getattr(settings, name) < 1:
            raise BadInput(f"{name} {getattr(settings, name)} is not a positive number")
    for name in ("weight", "mu", "step"):
        if not 0 < getattr(settings, name) < np.inf:
            raise BadInput(f"{name} {getattr(settings, name)} is not a positive number")
    if not 0 <= settings.beta < np.inf:
        raise BadInput(f"beta {settings.beta} is not a weight: 0 or more")


def _block_rows(width: int, settings: Macem) -> int:
    return max(1, BLOCK_CELLS // (settings.iterations * settings.directions * width))


def _join(sides: list[Side]) -> Side:
    return Side(*(np.concatenate([getattr(s, name) for s in sides]) for name in ("point", "holds", "margin", "label")))


def _find(descent: _Descent, x: Matrix, side: int) -> Side:
    """The best point of all descents, made sparse."""
    n = len(x)
    directions, thresholds = _draws(descent, x, side)
    weight = np.full(n, descent.settings.weight)
    too_small, enough = np.zeros(n), np.full(n, np.inf)
    best = _Best(descent.start.copy(), np.full(n, -np.inf), np.full(n, np.inf))
    for _ in range(descent.settings.searches):
        reached = _descend(descent, directions, thresholds, weight, best)
        enough = np.where(reached, weight, enough)
        too_small = np.where(reached, too_small, weight)
        weight = np.where(np.isinf(enough), 10 * weight, (too_small + np.minimum(enough, 1e300)) / 2)
    return _sparse(descent, best.point)


@dataclass(frozen=True, slots=True)
class _Best:
    """The best point of each row so far, updated in place: the nearest that reaches kappa, else the highest margin."""

    point: Matrix
    margin: Matrix
    size: Matrix


def _draws(descent: _Descent, x: Matrix, side: int) -> tuple[Matrix, Matrix | None]:
    """Unit directions [rows, iterations, directions, features] among the features free to move, and the
    thresholds at which features of a discrete kind are rounded, if there are any.
    """
    s = descent.settings
    shape = (s.iterations, s.directions, x.shape[1])
    directions = np.empty((len(x), *shape))
    thresholds = np.empty((len(x), *shape)) if descent.domain.kinds or descent.whole else None
    for i, row in enumerate(x + 0.0):  # equal rows draw the same numbers, and -0.0 equals 0.0
        seed = hashlib.sha256(np.array([s.seed, side], dtype="<i8").tobytes() + row.astype("<f8").tobytes()).digest()
        generator = np.random.default_rng(int.from_bytes(seed[:16], "little"))
        directions[i] = generator.standard_normal(shape)
        if thresholds is not None:
            thresholds[i] = generator.random(shape)
    directions *= (descent.high > descent.low)[:, None, None, :]
    length = np.sqrt(np.einsum("niqd,niqd->niq", directions, directions))
    directions /= np.where(length > 0, length, 1.0)[..., None]
    return directions, thresholds


def _descend(
    descent: _Descent, directions: Matrix, thresholds: Matrix | None, weight: Matrix, best: _Best
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """One descent with a weight c per row, updating `best`. Returns whether each row reached kappa."""
    s = descent.settings
    width = widths(descent.domain)
    low, high = (descent.low - descent.start) / width, (descent.high - descent.start) / width
    z = np.clip((descent.first - descent.start) / width, low, high)
    ahead = z
    reached = np.zeros(len(z), dtype=bool)
    for i in range(s.iterations):
        point = _within_box(descent, descent.start + ahead * width)
        margin = _margin(descent, point, descent.label)
        reached |= margin >= descent.goal
        _note(descent, best, point, margin, s.beta * np.abs(ahead).sum(axis=1) + (ahead * ahead).sum(axis=1))
        slope = _gradient(descent, ahead, margin, directions[:, i], None if thresholds is None else thresholds[:, i])
        length = s.step * np.sqrt(1 - i / s.iterations)
        there = ahead - length * (weight[:, None] * slope + 2 * ahead)
        there = np.clip(np.sign(there) * np.maximum(np.abs(there) - length * s.beta, 0.0), low, high)
        ahead = np.clip(there + i / (i + 3) * (there - z), low, high)
        z = there
    return reached


def _note(descent: _Descent, best: _Best, point: Matrix, margin: Matrix, size: Matrix) -> None:
    reached, had = margin >= descent.goal, best.margin >= descent.goal
    better = np.where(reached, ~had | (size < best.size), ~had & (margin > best.margin))
    best.point[better], best.margin[better], best.size[better] = point[better], margin[better], size[better]


def _gradient(descent: _Descent, z: Matrix, margin: Matrix, directions: Matrix, thresholds: Matrix | None) -> Matrix:
    """d/mu * mean[(f(z + mu u) - f(z)) u] of f = max(-margin, -kappa), d the features free to move.

    Discrete features are rounded at random thresholds, the same for both ends of a difference: the mean of
    that is smooth, where rounding to the nearest would be flat almost everywhere.
    """
    s = descent.settings
    n, count, width = directions.shape
    ends = [z[:, None, :] + s.mu * directions]
    if thresholds is not None:
        ends.append(np.broadcast_to(z[:, None, :], directions.shape))
    points = [descent.start[:, None, :] + end * widths(descent.domain) for end in ends]
    if thresholds is not None:
        points = [_of_its_kind(descent, point, thresholds) for point in points]
    label = np.repeat(descent.label, count)
    goal = descent.goal[:, None]
    far, *near = (-np.minimum(_margin(descent, p.reshape(-1, width), label).reshape(n, count), goal) for p in points)
    difference = far - (near[0] if near else -np.minimum(margin[:, None], goal))
    free = (descent.high > descent.low).sum(axis=1)
    slope: Matrix = np.einsum("nq,nqd->nd", difference, directions) * (free / (s.mu * count))[:, None]
    return slope


def _margin(descent: _Descent, points: Matrix, label: Ints) -> Matrix:
    """The margin of the intended outcome, rounded: last bits that depend on the size of a block must not add
    up along a descent.
    """
    exact: Matrix = margins(probabilities(descent.black_box, points), label)[0]
    return descent.sign * np.round(exact, 10)


def _within_box(descent: _Descent, points: Matrix) -> Matrix:
    """The points moved into the box, each feature rounded to its kind."""
    inside = np.clip(points, descent.low, descent.high)
    return np.clip(_of_its_kind(descent, inside[:, None, :], None)[:, 0], descent.low, descent.high)


def _of_its_kind(descent: _Descent, points: Matrix, thresholds: Matrix | None) -> Matrix:
    """Points [rows, n, features] with discrete features rounded at their thresholds, to the nearest without."""
    at = np.full(points.shape, 0.5) if thresholds is None else thresholds
    values = round_to_kinds(points, descent.domain, at)
    for j in descent.whole:
        low, high = descent.low[:, j, None], descent.high[:, j, None]
        values[..., j] = np.where(points[..., j] - low > at[..., j] * (high - low), high, low)
    return values


def _sparse(descent: _Descent, point: Matrix) -> Side:
    """The fewest features of each point, the largest changes first, that reach kappa or else the best margin."""
    n, width = point.shape
    size = np.abs(point - descent.start) / widths(descent.domain)
    order = np.argsort(-size, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(width)[None, :], axis=1)
    tries = np.arange(descent.limit + 1)
    candidates = np.where(rank[:, None, :] < tries[None, :, None], point[:, None, :], descent.start[:, None, :])
    answer = probabilities(descent.black_box, candidates.reshape(-1, width))
    margin = descent.sign * margins(answer, np.repeat(descent.label, len(tries)))[0].reshape(n, -1)
    reached = margin >= descent.goal[:, None]
    choice = np.where(reached.any(axis=1), reached.argmax(axis=1), margin.argmax(axis=1))
    row = np.arange(n)
    best = margin[row, choice]
    label = answer.argmax(axis=1).reshape(n, -1)[row, choice]
    return Side(candidates[row, choice], best >= descent.enough, best, label)
