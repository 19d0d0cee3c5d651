"""Searches conjunctions of intervals that explain most of a residual.

No candidate matrix is ever built: a conjunction is grown bound by bound, and the best next bound of every
feature is read off histograms of the residual over the cuts. A beam of partial conjunctions is extended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from gbfl_compile.ir.nodes import Clause, Interval
from gbfl_compile.learning.black_box import Bools, Ints, Matrix
from gbfl_compile.learning.explain import Explanations


def explained_cuts(e: Explanations, base: Matrix, per_role: int) -> tuple[Matrix, ...]:
    """For each feature, quantiles of x, of restored PP values and of moved PN values, and cuts around the base."""
    x, pp, pn = e.x, e.pp, e.pn
    return tuple(
        cuts_of_feature((x[:, j], pp[pp[:, j] != base[j], j], pn[pn[:, j] != x[:, j], j]), float(base[j]), per_role)
        for j in range(x.shape[1])
    )


def cuts_of_feature(roles: Sequence[Matrix], base: float, per_role: int) -> Matrix:
    """Cuts at quantiles of each role's values and on both sides of the base."""
    levels = (np.arange(per_role) + 0.5) / per_role
    candidates = [np.array([base])]
    for values in roles:
        if len(values):
            candidates.append(np.quantile(values, levels, method="nearest") if len(values) > per_role else values)
    values = np.unique(np.concatenate((*roles, [base])))
    above = np.searchsorted(values, np.unique(np.concatenate(candidates)))
    above = np.union1d(above, np.searchsorted(values, base) + 1)
    above = above[(above > 0) & (above < len(values))]
    return _shortest_between(values[above - 1], values[above])


def _shortest_between(below: Matrix, above: Matrix) -> Matrix:
    """For each pair the number with the fewest decimals in (below, above] nearest to the middle."""
    middle = below / 2 + above / 2
    cut = above.copy()
    open_ = np.ones(len(cut), dtype=bool)
    for digits in range(-6, 16):
        rounded = np.round(middle, digits) + 0.0
        fits = open_ & (below < rounded) & (rounded <= above)
        cut[fits] = rounded[fits]
        open_ &= ~fits
    return np.unique(cut)


Box: TypeAlias = tuple[tuple[int, int, int], ...]
"""A conjunction on the cuts, sorted by feature: (feature, first bin inside, first bin beyond)."""

Gain: TypeAlias = Callable[[Matrix, Matrix, float, float], Matrix]
"""The gain of a clause from its summed gradient, its summed curvature, the whole curvature and the ridge."""


def at_least(points: int, of: int) -> int:
    """As many points, or a tenth of all that there are where a table of few values has only a few."""
    return min(points, max(1, of // 10))


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How far a search looks."""

    max_atoms: int = 4
    """The most bounds per clause; two on one feature are one interval and still count twice."""
    beam: int = 5
    """How many partial conjunctions are extended at each length."""
    shortlist: int = 40
    """How many conjunctions of each length are returned."""
    ridge: float = 1.0
    """L2 penalty on a clause's weight, in triplet rows."""
    min_points: int = 5
    """A clause holds on at least this many distinct points, or `at_least` where there are few."""


@dataclass(frozen=True, slots=True)
class CutGrid:
    """The points in bins: bin b of feature j holds cuts[j][b - 1] <= value < cuts[j][b]."""

    cuts: tuple[Matrix, ...]
    codes: NDArray[np.int32]
    """[features, points]: the points of a feature lie side by side."""
    places: NDArray[np.int32]
    """[points, features]: the same bins, counted on from feature to feature, as histograms are made of them."""
    n_bins: int

    def part(self, at: Ints | Bools) -> CutGrid:
        """The grid with some of its points."""
        return CutGrid(self.cuts, self.codes[:, at], self.places[at], self.n_bins)

    def sums(self, at: Ints | None, columns: Matrix) -> Matrix:
        """[features, bins, columns]: the columns summed over the points of each bin, in their order."""
        places = self.places if at is None else self.places[at]
        count, n_features = places.shape
        ends = np.arange(0, places.size + 1, n_features, dtype=np.int32)
        table = csc_array((np.ones(places.size), places.ravel(), ends), shape=(n_features * self.n_bins, count))
        return np.asarray(table @ columns).reshape(n_features, self.n_bins, -1)


def cut_grid(points: Matrix, cuts: tuple[Matrix, ...]) -> CutGrid:
    """The points sorted into the bins between cuts."""
    codes = np.stack([np.searchsorted(cut, points[:, j], side="right") for j, cut in enumerate(cuts)]).astype(np.int32)
    n_bins = 1 + max(len(cut) for cut in cuts)
    places = codes.T + n_bins * np.arange(len(cuts), dtype=np.int32)
    return CutGrid(cuts, codes, np.ascontiguousarray(places), n_bins)


def box_holds(grid: CutGrid, box: Box) -> Bools:
    """On which points the conjunction holds."""
    inside = np.ones(grid.codes.shape[1], dtype=bool)
    for feature, first, beyond in box:
        code = grid.codes[feature]
        inside &= (code >= first) & (code < beyond)
    return inside


def _narrow(box: Box, feature: int, bin_: int, upper: bool, n_bins: int) -> Box:
    """The box with one more bound: below `bin_` if `upper`, else from it on."""
    atoms = {j: (first, beyond) for j, first, beyond in box}
    first, beyond = atoms.get(feature, (0, n_bins))
    atoms[feature] = (first, min(beyond, bin_)) if upper else (max(first, bin_), beyond)
    return tuple((j, *atoms[j]) for j in sorted(atoms))


def newton_gain(pull: Matrix, bend: Matrix, total_bend: float, ridge: float) -> Matrix:
    """How much one Newton step on a new weight, with a free bias, lowers the loss: (sum of the pull)^2 / curvature."""
    return np.asarray(pull * pull / (np.maximum(bend - bend * bend / total_bend, 0.0) + ridge))


def _extensions(
    grid: CutGrid, box: Box, inside: Ints | None, pull: Matrix, bend: Matrix, gain: Gain, settings: SearchSettings
) -> Iterator[tuple[float, Box]]:
    """For each feature and side the bound that, added to the box, has the greatest gain, summed over classes."""
    totals = bend.sum(axis=0)
    if inside is not None:
        pull, bend = pull[inside], bend[inside]
    n_points, n_classes = pull.shape
    resists = bool(totals.any())
    # sums over the bins below each cut, the last is the whole: of the pulls, of the points, of the bends
    parts = (pull, np.ones((n_points, 1)), bend) if resists else (pull, np.ones((n_points, 1)))
    below = grid.sums(inside, np.concatenate(parts, axis=1)).cumsum(axis=1)
    count = below[:, :, n_classes]
    gains = np.zeros((2, len(below), grid.n_bins - 1))
    for k in range(n_classes):
        pulls = below[:, :, k]
        bends = below[:, :, n_classes + 1 + k] if resists else np.zeros_like(pulls)
        for side in (0, 1):
            p = pulls[:, :-1] if side else pulls[:, -1:] - pulls[:, :-1]
            b = bends[:, :-1] if side else bends[:, -1:] - bends[:, :-1]
            gains[side] += gain(p, b, float(totals[k]), settings.ridge)
    remaining = np.stack((count[:, -1:] - count[:, :-1], count[:, :-1]))
    gains[(remaining < at_least(settings.min_points, grid.codes.shape[1])) | (remaining == n_points)] = -1.0
    best = gains.argmax(axis=2)
    tops = np.take_along_axis(gains, best[:, :, None], axis=2)[:, :, 0]
    # no more than are ranked, unless several are equal
    rank = min(settings.shortlist, tops.size) - 1
    least = -np.partition(-tops, rank, axis=None)[rank]
    for side, feature in zip(*np.nonzero((tops >= least) & (tops > 0)), strict=True):
        narrower = _narrow(box, int(feature), int(best[side, feature]) + 1, bool(side), grid.n_bins)
        yield float(tops[side, feature]), narrower


def promising_boxes(
    grid: CutGrid, pull: Matrix, bend: Matrix, settings: SearchSettings, gain: Gain = newton_gain
) -> dict[Box, float]:
    """Conjunctions of every length with the greatest gains that a beam search finds, best first, and those gains.

    `pull` and `bend` are [points, classes]: which way each point pulls a weight, and how much it resists.
    """
    if grid.n_bins <= 1:
        return {}
    return beam_search(
        lambda box, inside: _extensions(grid, box, inside, pull, bend, gain, settings),
        lambda box: box_holds(grid, box),
        settings,
    )


def beam_search(
    extensions: Callable[[Any, Ints | None], Iterable[tuple[float, Any]]],
    holds: Callable[[Any], Bools],
    settings: SearchSettings,
) -> dict[Any, float]:
    """The conjunctions with the greatest gains, best first: the best of each length are extended."""
    best: dict[Any, float] = {}
    parents: list[tuple[Any, Ints | None]] = [((), None)]
    for _ in range(settings.max_atoms):
        longer: dict[Any, float] = {}
        for box, inside in parents:
            for worth, narrower in extensions(box, inside):
                longer.setdefault(narrower, worth)
        ranked = sorted(longer, key=lambda box: (-longer[box], box))
        best.update((box, longer[box]) for box in ranked[: settings.shortlist])
        parents = [(box, np.flatnonzero(holds(box))) for box in ranked[: settings.beam]]
    return {box: best[box] for box in sorted(best, key=lambda box: (-best[box], box))}


def clause_of(grid: CutGrid, box: Box) -> Clause:
    """The conjunction in the rule language."""
    atoms = []
    for feature, first, beyond in box:
        cuts = grid.cuts[feature]
        lo = float(cuts[first - 1]) if first > 0 else None
        hi = float(cuts[beyond - 1]) if beyond - 1 < len(cuts) else None
        atoms.append(Interval(feature, lo, hi))
    return Clause(tuple(atoms))
