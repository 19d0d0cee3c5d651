"""Searches conjunctions of intervals that explain most of a residual.

No candidate matrix is ever built: a conjunction is grown bound by bound, and the best next bound of every
feature is read off histograms of the residual over the cuts. A beam of partial conjunctions goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from gbfl_compile.ir.nodes import Clause, Interval
from gbfl_compile.learn.black_box import Bools, Ints, Matrix

Box: TypeAlias = tuple[tuple[int, int, int], ...]
"""A conjunction on the cuts, sorted by feature: (feature, first bin inside, first bin beyond)."""

Gain: TypeAlias = Callable[[Matrix, Matrix, float, float], Matrix]
"""What a clause is worth by its summed pull, its summed bend, the whole bend and the ridge."""


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How far a search looks."""

    max_atoms: int = 4
    """Bounds per clause at most; two on one feature are one interval and still count twice."""
    beam: int = 5
    """How many partial conjunctions are extended at each length."""
    shortlist: int = 40
    """How many conjunctions of each length come out."""
    ridge: float = 1.0
    """L2 penalty on a clause's weight, in triplet rows."""
    min_points: int = 5
    """A clause holds on at least this many distinct points."""


@dataclass(frozen=True, slots=True)
class CutGrid:
    """The points in bins: bin b of feature j holds cuts[j][b - 1] <= value < cuts[j][b]."""

    cuts: tuple[Matrix, ...]
    codes: Ints
    """[features, points]: the points of a feature lie side by side, as the searches read them."""
    n_bins: int


def cut_grid(points: Matrix, cuts: tuple[Matrix, ...]) -> CutGrid:
    """The points sorted into the bins between cuts."""
    codes = np.stack([np.searchsorted(cut, points[:, j], side="right") for j, cut in enumerate(cuts)])
    return CutGrid(cuts, codes, 1 + max(len(cut) for cut in cuts))


def box_holds(grid: CutGrid, box: Box) -> Bools:
    """On which points the conjunction holds."""
    inside = np.ones(grid.codes.shape[1], dtype=bool)
    for feature, first, beyond in box:
        code = grid.codes[feature]
        inside &= (code >= first) & (code < beyond)
    return inside


def _narrowed(box: Box, feature: int, bin_: int, upper: bool, n_bins: int) -> Box:
    """The box with one more bound: below `bin_` if `upper`, else from it on."""
    atoms = {j: (first, beyond) for j, first, beyond in box}
    first, beyond = atoms.get(feature, (0, n_bins))
    atoms[feature] = (first, min(beyond, bin_)) if upper else (max(first, bin_), beyond)
    return tuple((j, *atoms[j]) for j in sorted(atoms))


def newton_gain(pull: Matrix, bend: Matrix, total_bend: float, ridge: float) -> Matrix:
    """What one Newton step on a new weight, with a free bias, takes off the loss: (sum of the pull)^2 / curvature."""
    return np.asarray(pull * pull / (np.maximum(bend - bend * bend / total_bend, 0.0) + ridge))


def _extensions(
    grid: CutGrid, box: Box, inside: Ints | None, pull: Matrix, bend: Matrix, gain: Gain, settings: SearchSettings
) -> Iterator[tuple[float, Box]]:
    """For each feature and side the bound that, added to the box, gains most, class by class and added up."""
    codes, totals = grid.codes, bend.sum(axis=0)
    if inside is not None:
        codes, pull, bend = codes[:, inside], pull[inside], bend[inside]
    n_features, n_points = codes.shape

    def below(weights: Matrix | None) -> Matrix:
        """Sums over the bins below each cut, [features, bins]; the last is the whole."""
        return np.stack([np.bincount(code, weights, grid.n_bins) for code in codes]).cumsum(axis=1)

    count = below(None)
    gains = np.zeros((2, n_features, grid.n_bins - 1))
    for k in range(pull.shape[1]):
        pulls = below(np.ascontiguousarray(pull[:, k]))
        bends = below(np.ascontiguousarray(bend[:, k])) if totals[k] != 0 else np.zeros_like(pulls)
        for side in (0, 1):
            p = pulls[:, :-1] if side else pulls[:, -1:] - pulls[:, :-1]
            b = bends[:, :-1] if side else bends[:, -1:] - bends[:, :-1]
            gains[side] += gain(p, b, float(totals[k]), settings.ridge)
    kept = np.stack((count[:, -1:] - count[:, :-1], count[:, :-1]))
    gains[(kept < settings.min_points) | (kept == n_points)] = -1.0
    best = gains.argmax(axis=2)
    for side in (0, 1):
        for feature in range(n_features):
            found = float(gains[side, feature, best[side, feature]])
            if found > 0:
                yield found, _narrowed(box, feature, int(best[side, feature]) + 1, bool(side), grid.n_bins)


def promising_boxes(
    grid: CutGrid, pull: Matrix, bend: Matrix, settings: SearchSettings, gain: Gain = newton_gain
) -> dict[Box, float]:
    """Conjunctions of every length with the greatest gains that a beam search finds, best first, and those gains.

    `pull` and `bend` are [points, classes]: which way each point pulls a weight, and how much it resists.
    """
    found: dict[Box, float] = {}
    parents: list[tuple[Box, Ints | None]] = [((), None)] if grid.n_bins > 1 else []
    for _ in range(settings.max_atoms):
        longer: dict[Box, float] = {}
        for box, inside in parents:
            for worth, narrower in _extensions(grid, box, inside, pull, bend, gain, settings):
                longer.setdefault(narrower, worth)
        ranked = sorted(longer, key=lambda box: (-longer[box], box))
        found.update((box, longer[box]) for box in ranked[: settings.shortlist])
        parents = [(box, np.flatnonzero(box_holds(grid, box))) for box in ranked[: settings.beam]]
    return {box: found[box] for box in sorted(found, key=lambda box: (-found[box], box))}


def clause_of(grid: CutGrid, box: Box) -> Clause:
    """The conjunction in the rule language."""
    atoms = []
    for feature, first, beyond in box:
        cuts = grid.cuts[feature]
        lo = float(cuts[first - 1]) if first > 0 else None
        hi = float(cuts[beyond - 1]) if beyond - 1 < len(cuts) else None
        atoms.append(Interval(feature, lo, hi))
    return Clause(tuple(atoms))
