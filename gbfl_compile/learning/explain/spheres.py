"""The growing-spheres explainer: random points ever farther out, until one has the class; for measuring.

For a PN, points in shells around x, as shares of each feature's range, until one has another class; for a PP, points
in shells around the base, between the base and x, until one has the class of x. The nearest such point is taken and
its changes are undone, the smallest first. No model is fitted on these points unless the user asks for it, so
consistency on them says how a model does on explanations that it was not made for. All rows share their random
directions, so no row depends on another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gbfl_compile.errors import BadInput
from gbfl_compile.learning.black_box import BlackBox, Bools, Ints, Matrix, rows_per_block
from gbfl_compile.learning.explain import Explanations
from gbfl_compile.learning.explain.domain import Domain
from gbfl_compile.learning.explain.nearest import usual_ranges
from gbfl_compile.learning.explain.search import (
    WINS,
    ExplainerSettings,
    Side,
    ask,
    changes_allowed,
    explain_rows,
    restore_fixed,
    round_to_kinds,
    widths,
)
from gbfl_compile.learning.explain.table_values import TableValues, differ, is_possible, moves


@dataclass(frozen=True, slots=True)
class Spheres(ExplainerSettings):
    """How the spheres grow."""

    max_moved: int | None = None
    """A PN is as sparse as undoing makes it."""
    samples: int = 60
    """Points in each shell."""
    radii: tuple[float, ...] = (0.01, 0.015, 0.022, 0.034, 0.05, 0.076, 0.11, 0.17, 0.26, 0.38, 0.58, 0.86)
    """The outer radius of each shell, as a share of the way across all features' ranges."""

    def dearest(self, domain: Domain) -> int:
        """For the PP and the PN: the shells, one question per change undone, the start and the end."""
        return 2 * (2 + self.samples * len(self.radii) + len(domain.features))


USUAL = Spheres()


@dataclass(frozen=True, slots=True)
class _Noise:
    """The random part of every row's points: where in its shell each lies, and what it does to words."""

    direction: Matrix
    depth: Matrix
    chance: Matrix
    word: Matrix


@dataclass(frozen=True, slots=True)
class _Search:
    """Where points begin, and which class should win (+1) or lose (-1) there."""

    black_box: BlackBox
    domain: Domain
    settings: Spheres
    noise: _Noise
    x: Matrix
    centre: Matrix
    label: Ints
    sign: int
    enough: Matrix
    scale: Matrix
    """The usual range of each feature."""


def explain_by_spheres(black_box: BlackBox, x: Matrix, domain: Domain, settings: Spheres = USUAL) -> Explanations:
    """A PP and a PN for each row of x, and the number of queries."""
    if settings.samples < 1 or not settings.radii or not all(0 < radius <= 1 for radius in settings.radii):
        raise BadInput("spheres: at least 1 sample, and radii above 0 and at most 1")
    noise = _noise(settings, x.shape[1])
    examples = domain.examples
    whole = widths(domain) if domain.table is None else domain.table.widths
    scale = whole if examples is None else usual_ranges(domain, examples.rows)

    def find(rows: Matrix, label: Ints, margin: Matrix) -> tuple[Side, Side]:
        base = np.tile(domain.base, (len(rows), 1))
        enough, wins = np.minimum(WINS, margin), np.full(len(rows), WINS)
        positive = _Search(black_box, domain, settings, noise, rows, base, label, 1, enough, scale)
        negative = _Search(black_box, domain, settings, noise, rows, rows, label, -1, wins, scale)
        limits = (settings.max_restored, settings.max_moved)
        first, second = (changes_allowed(limit, rows.shape[1]) for limit in limits)
        return _find(positive, first), _find(negative, second)

    return explain_rows(black_box, x, domain, settings, find)


def _noise(settings: Spheres, width: int) -> _Noise:
    random = np.random.default_rng(settings.seed)
    shape = (len(settings.radii), settings.samples, width)
    direction = random.normal(size=shape)
    direction /= np.maximum(np.linalg.norm(direction, axis=2, keepdims=True), np.finfo(np.float64).tiny)
    return _Noise(
        direction * np.sqrt(width), random.random((*shape[:2], 1)), random.random(shape), random.random(shape)
    )


def _find(search: _Search, limit: int) -> Side:
    point, margin = search.centre.copy(), np.full(len(search.x), -np.inf)
    if search.sign > 0:  # the base may have the class, and x itself has it
        margin, _, _ = ask(search, point, search.label)
    for shell in range(len(search.settings.radii)):
        waiting = np.flatnonzero(margin < search.enough)
        block = max(1, rows_per_block(search.black_box) // search.settings.samples)
        for begin in range(0, len(waiting), block):
            _try_shell(search, shell, waiting[begin : begin + block], point, margin)
    if search.sign > 0:
        last = np.flatnonzero(margin < search.enough)
        point[last] = _move_inside(search, search.x[last], last)
        margin[last], _, _ = ask(search, point[last], search.label[last])
    rows = np.flatnonzero(margin >= search.enough)
    _undo(search, point, rows)
    rows = rows[differ(point[rows], search.centre[rows]).sum(axis=1) <= limit]
    margin, winner = np.full(len(point), -np.inf), search.label.copy()
    if len(rows):
        margin[rows], _, winner[rows] = ask(search, point[rows], search.label[rows])
    return Side(point, margin >= search.enough, margin, winner)


def _try_shell(search: _Search, shell: int, rows: Ints, point: Matrix, margin: Matrix) -> None:
    """Give each row the nearest point of this shell that has the class, where one has."""
    samples = search.settings.samples
    each = np.repeat(rows, samples)
    points = _move_inside(search, _draw(search, shell, rows), each)
    reached, _, _ = ask(search, points, search.label[each])
    fine = (reached >= search.enough[each]) & is_possible(search.domain.table, points, search.x[each])
    apart = _lengths(search, points, each).sum(axis=1)
    apart = np.where(fine, apart, np.inf).reshape(len(rows), samples)
    best = apart.argmin(axis=1)
    found = np.flatnonzero(np.isfinite(apart.min(axis=1)))
    chosen = found * samples + best[found]
    point[rows[found]], margin[rows[found]] = points[chosen], reached[chosen]


def _draw(search: _Search, shell: int, rows: Ints) -> Matrix:
    """Points of one shell around each row's centre, [rows * samples, features]."""
    radii, noise = (0.0, *search.settings.radii), search.noise
    radius = radii[shell] + (radii[shell + 1] - radii[shell]) * noise.depth[shell]
    move = noise.direction[shell] * radius
    centre = search.centre[rows][:, None, :]
    if (table := search.domain.table) is None:
        return np.asarray((centre + move * search.scale).reshape(-1, centre.shape[2]))
    points = _among_words(table, centre, move * search.scale, noise.chance[shell] < radius, noise.word[shell])
    return points.reshape(-1, centre.shape[2])


def _among_words(table: TableValues, centre: Matrix, move: Matrix, changes: Bools, word: Matrix) -> Matrix:
    """The same where there are words: numbers move, words and gaps become another value with a chance of the radius."""
    points = np.where(np.isfinite(table.steps), centre + move, centre)
    for j, values in enumerate(table.values):
        known = np.append(values, np.nan) if table.missing[j] and not np.isfinite(table.steps[j]) else values
        if not len(known):
            continue
        other = known[np.minimum((word[:, j] * len(known)).astype(np.int64), len(known) - 1)]
        replaced = changes[:, j] & (np.isnan(points[:, :, j]) | ~np.isfinite(table.steps[j]))
        points[:, :, j] = np.where(replaced, other, points[:, :, j])
        step = table.steps[j]
        if np.isfinite(step):
            unit = step if step > 0 else 1.0
            rounded = np.rint(points[:, :, j] / unit) * unit if step > 0 else points[:, :, j]
            points[:, :, j] = np.clip(rounded, values.min(), values.max())
    return points


def _move_inside(search: _Search, points: Matrix, rows: Ints) -> Matrix:
    """The points within the bounds, on each feature's kind, and where the domain lets a PP or a PN go."""
    domain, x = search.domain, search.x[rows]
    if domain.table is None:
        points = round_to_kinds(np.clip(points, domain.lower, domain.upper), domain, np.full(points.shape, 0.5))
    if search.sign > 0:
        return _between_base_and_x(domain, points, x)
    restore_fixed(points, x, domain)
    return points


def _between_base_and_x(domain: Domain, points: Matrix, x: Matrix) -> Matrix:
    """Each value between the base and x; a word, a gap or an immutable feature takes one of the two."""
    base = np.broadcast_to(domain.base, x.shape)
    inside = np.clip(points, np.minimum(base, x), np.maximum(base, x))
    if domain.table is None:
        inside = np.clip(inside, domain.lower, domain.upper)
        whole = np.isin(np.arange(x.shape[1]), domain.immutable)
        end = np.where((x >= domain.lower) & (x <= domain.upper), x, np.clip(x, domain.lower, domain.upper))
    else:
        whole = ~np.isfinite(domain.table.steps) | np.isin(np.arange(x.shape[1]), domain.immutable)
        whole = whole | np.isnan(inside)
        end = x
    return np.where(whole, np.where(differ(points, base), end, base), inside)


def _lengths(search: _Search, points: Matrix, rows: Ints) -> Matrix:
    """How far each feature moved, in the squares that a sphere adds up."""
    centre = search.centre[rows]
    if (table := search.domain.table) is None:
        return np.asarray(((points - centre) / search.scale) ** 2)
    return np.asarray(moves(table, points, centre) ** 2)


def _undo(search: _Search, point: Matrix, rows: Ints) -> None:
    """Undo each change that can be, the smallest first."""
    lengths = _lengths(search, point, np.arange(len(point)))
    lengths[~differ(point, search.centre)] = np.inf
    order = np.argsort(lengths, axis=1, kind="stable")
    for step in range(point.shape[1]):
        here = rows[np.isfinite(lengths[rows, order[rows, step]])]
        if not len(here):
            return
        feature = order[here, step]
        trial = point[here]
        trial[np.arange(len(here)), feature] = search.centre[here, feature]
        margin, _, _ = ask(search, trial, search.label[here])
        back = (margin >= search.enough[here]) & is_possible(search.domain.table, trial, search.x[here])
        point[here[back], feature[back]] = search.centre[here[back], feature[back]]
