"""The clause miner (Algorithm 1): one conjunction from each row, its PP and its PN, merged over all rows.

`faithful` is Algorithm 1 with the resolutions of the method page: a clause is true at x and at its PP and
false at its PN, by construction. `literal` is Algorithm 1 to the letter, for comparison with the paper.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, assert_never

import numpy as np

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.kinds import intervals_in
from gbfl_compile.ir.nodes import Clause, Interval
from gbfl_compile.learning.black_box import Bools, Ints, Matrix
from gbfl_compile.learning.clauses import Grid
from gbfl_compile.learning.explain import Domain, Explanations, some_rows

Mode: TypeAlias = Literal["faithful", "literal"]
MODES: tuple[Mode, ...] = ("faithful", "literal")

BLOCK_ROWS = 4096
MOST_CLAUSES = 20_000
"""The most distinct clauses that are kept, so that memory does not grow with the rows."""


@dataclass(frozen=True, slots=True)
class MinedClauses:
    """The clauses of some explanations, each with the rows it came from, and counts of how the mining went."""

    clauses: tuple[Clause, ...]
    sources: tuple[tuple[int, ...], ...]
    off_grid: int
    """Rows that needed a cut off the grid, because no grid point lies between x and its PN (resolution 5)."""
    pp_only: int
    """Rows without a PN whose clause has a bound (resolution 13)."""
    always_true: int
    """Rows whose clause has no bound left; dropped (resolution 16)."""
    never_true: int
    """Rows whose bounds cross, or whose PN lies between x and the PP; dropped. Only literal bounds cross."""
    dropped: int = 0
    """How often a clause of few rows was dropped to stay below the limit; one that returns is counted again."""


def with_rows_below(mined: MinedClauses, n_rows: int) -> MinedClauses:
    """The clauses with rows of the table as sources, where several methods explained its `n_rows` rows in turn."""
    sources = tuple(tuple(dict.fromkeys(row % n_rows for row in rows)) for rows in mined.sources)
    return replace(mined, sources=sources)


@dataclass(frozen=True, slots=True)
class _Boxes:
    """Per row and feature the bounds lo <= z < hi; -inf and inf are none. `strict` makes it lo < z."""

    lo: Matrix
    hi: Matrix
    strict: Bools

    def raise_lo(self, where: Bools, feature: int, bound: Matrix) -> None:
        """Ask z >= bound as well; NaN is not a bound."""
        higher = where & (bound > self.lo[:, feature])
        self.lo[higher, feature] = bound[higher]
        self.strict[higher, feature] = False

    def raise_lo_strictly(self, where: Bools, feature: int, bound: Matrix) -> None:
        """Ask z > bound as well; NaN is not a bound."""
        higher = where & (bound >= self.lo[:, feature])
        self.lo[higher, feature] = bound[higher]
        self.strict[higher, feature] = True

    def lower_hi(self, where: Bools, feature: int, bound: Matrix) -> None:
        """Ask z < bound as well; NaN is not a bound."""
        lower = where & (bound < self.hi[:, feature])
        self.hi[lower, feature] = bound[lower]


def mine(
    explanations: Explanations,
    domain: Domain,
    grid: Grid,
    skip: int,
    mode: Mode = "faithful",
    most_clauses: int = MOST_CLAUSES,
) -> MinedClauses:
    """The clauses of all rows. `skip` is the paper's Delta: how many grid points a clause reaches beyond its row.

    Clauses are merged one block of rows at a time. Where more than `most_clauses` are different, those of the fewest
    rows are dropped, the latest of equals first.
    """
    if skip < 0:
        raise BadInput(f"skip {skip} is negative: it counts grid points")
    if mode not in MODES:
        raise BadInput(f"mode {mode!r} is not one of {', '.join(MODES)}")
    merger = _Merger({}, most_clauses)
    for begin in range(0, max(1, len(explanations.x)), BLOCK_ROWS):
        rows = np.arange(begin, min(len(explanations.x), begin + BLOCK_ROWS))
        merger.add(begin, *_boxes(some_rows(explanations, rows), domain, grid, skip, mode))
    return merger.result(explanations.x.shape[1])


def _boxes(e: Explanations, domain: Domain, grid: Grid, skip: int, mode: Mode) -> tuple[_Boxes, Bools, Bools, Bools]:
    """The bounds of each row; whether it has a PN, needed a cut off the grid, or cannot be separated from its PN."""
    shape = e.x.shape
    boxes = _Boxes(np.full(shape, -np.inf), np.full(shape, np.inf), np.zeros(shape, dtype=bool))
    off_grid, impossible = np.zeros(shape[0], dtype=bool), np.zeros(shape[0], dtype=bool)
    match mode:
        case "faithful":
            off_grid, impossible = _bound_faithfully(boxes, e, domain, grid, skip)
        case "literal":
            _bound_literally(boxes, e, domain, grid, skip)
        case _:
            assert_never(mode)
    return boxes, e.has_pn, off_grid, impossible


def _bound_faithfully(
    boxes: _Boxes, explanations: Explanations, domain: Domain, grid: Grid, skip: int
) -> tuple[Bools, Bools]:
    """Fill in the bounds; say which rows needed an off-grid cut, and which no box can separate from their PN."""
    x, n = explanations.x, explanations.pn
    p = np.where(explanations.has_pp[:, None], explanations.pp, x)
    first, last = np.minimum(x, p), np.maximum(x, p)
    separated = ~explanations.has_pn
    for j, points in enumerate(grid):
        base = domain.base[j]
        reach_lo, reach_hi = _reach(points, first[:, j], last[:, j], skip)
        above, below = explanations.has_pp & (p[:, j] > base), explanations.has_pp & (p[:, j] < base)
        boxes.raise_lo(above, j, _largest(points, first[:, j], more_than=base, or_equal=True))
        boxes.lower_hi(above, j, reach_hi)
        boxes.lower_hi(below, j, _smallest(points, last[:, j], less_than=base))
        boxes.raise_lo(below, j, reach_lo)
        rises, falls = explanations.has_pn & (n[:, j] > x[:, j]), explanations.has_pn & (n[:, j] < x[:, j])
        cut_hi = _largest(points, n[:, j], more_than=last[:, j], or_equal=True)
        cut_lo = _smallest(points, n[:, j], less_than=first[:, j], or_equal=True)
        boxes.lower_hi(rises, j, cut_hi)
        boxes.raise_lo(rises, j, reach_lo)
        boxes.raise_lo(falls, j, cut_lo)
        boxes.lower_hi(falls, j, reach_hi)
        separated |= (rises & ~np.isnan(cut_hi)) | (falls & ~np.isnan(cut_lo))
    # a bound that came from the PP or a reach may separate the PN too: then no extra cut is needed
    separated |= ((n < boxes.lo) | (n >= boxes.hi)).any(axis=1)
    scale = np.where(domain.upper > domain.lower, domain.upper - domain.lower, 1.0)
    impossible = _cut_off_grid(boxes, np.flatnonzero(~separated), first, last, n, scale)
    return ~separated & ~impossible, impossible


def _reach(points: Matrix, first: Matrix, last: Matrix, skip: int) -> tuple[Matrix, Matrix]:
    """The regularising bounds: `skip` grid points below the row and its PP, and above them.

    NaN where that is at or beyond the grid's end: a clause must not reject points outside the training range.
    """
    down = np.searchsorted(points, first, side="right") - 1 - skip
    up = np.searchsorted(points, last, side="right") + skip
    end = len(points) - 1
    lo = np.where(down > 0, points[np.clip(down, 0, end)], np.nan)
    hi = np.where(up < end, points[np.clip(up, 0, end)], np.nan)
    return lo, hi


def _largest(points: Matrix, value: Matrix, *, more_than: Matrix | float, or_equal: bool = False) -> Matrix:
    """The largest grid point in (more_than, value), or (more_than, value]; NaN where there is none."""
    index = np.searchsorted(points, value, side="right" if or_equal else "left") - 1
    candidate = points[np.maximum(index, 0)]
    return np.where((index >= 0) & (candidate > more_than), candidate, np.nan)


def _smallest(points: Matrix, value: Matrix, *, less_than: Matrix | float, or_equal: bool = False) -> Matrix:
    """The smallest grid point in (value, less_than), or (value, less_than]; NaN where there is none."""
    index = np.searchsorted(points, value, side="right")
    candidate = points[np.minimum(index, len(points) - 1)]
    fits = (candidate <= less_than) if or_equal else (candidate < less_than)
    return np.where((index < len(points)) & fits, candidate, np.nan)


def _cut_off_grid(boxes: _Boxes, rows: Ints, first: Matrix, last: Matrix, n: Matrix, scale: Matrix) -> Bools:
    """One cut half way to the PN, on the feature with the largest scaled gap; says where no gap exists at all."""
    impossible = np.zeros(len(n), dtype=bool)
    gap = np.maximum(n[rows] - last[rows], first[rows] - n[rows]) / scale
    feature = gap.argmax(axis=1)
    each = np.arange(len(rows))
    apart = gap[each, feature] > 0
    impossible[rows[~apart]] = True
    rows, feature = rows[apart], feature[apart]
    there, low, high = n[rows, feature], first[rows, feature], last[rows, feature]
    rises = there > high
    middle = np.where(rises, high, low) / 2 + there / 2
    # between neighbouring floats there is no middle: cut at the upper one of the two
    cut = np.where(rises, np.where(middle > high, middle, there), np.where(middle > there, middle, low)) + 0.0
    boxes.hi[rows[rises], feature[rises]] = cut[rises]
    boxes.lo[rows[~rises], feature[~rises]] = cut[~rises]
    return impossible


def _bound_literally(boxes: _Boxes, explanations: Explanations, domain: Domain, grid: Grid, skip: int) -> None:
    """Algorithm 1, line by line. Empty argmin sets add no bound; an index beyond the grid is cut to its end.

    So it is in the paper's listings, which have bounds at the very minimum and maximum of a feature.
    """
    for j, points in enumerate(grid):
        x, p, n = explanations.x[:, j], explanations.pp[:, j], explanations.pn[:, j]
        base = domain.base[j]
        above = _step(points, np.searchsorted(points, x, side="right"), skip)
        at_or_above = _step(points, np.searchsorted(points, x, side="left"), skip)
        below = _step(points, np.searchsorted(points, x, side="left") - 1, -skip)
        boxes.raise_lo(p > base, j, _largest(points, p, more_than=base))
        boxes.lower_hi(p > base, j, above)
        boxes.lower_hi(p <= base, j, _smallest(points, p, less_than=base))
        boxes.raise_lo(p <= base, j, below)
        boxes.lower_hi(x > base, j, _largest(points, n, more_than=x))
        boxes.raise_lo(x > base, j, below)
        boxes.raise_lo_strictly(x <= base, j, _smallest(points, n, less_than=x))
        boxes.lower_hi(x <= base, j, at_or_above)


def _step(points: Matrix, index: Ints, skip: int) -> Matrix:
    """The grid point `skip` further on, at most the last; NaN where there was no point to step from."""
    end = len(points) - 1
    return np.where((index >= 0) & (index <= end), points[np.clip(index + skip, 0, end)], np.nan)


@dataclass(slots=True)
class _Merger:
    """Distinct clauses so far, each as its bytes, with the rows it came from; not frozen, because it grows."""

    groups: dict[bytes, list[int]]
    most: int
    off_grid: int = 0
    pp_only: int = 0
    always_true: int = 0
    never_true: int = 0
    dropped: int = 0

    def add(self, first: int, boxes: _Boxes, has_pn: Bools, off_grid: Bools, impossible: Bools) -> None:
        """Merge the clauses of a block of rows, the first of which has the number `first`."""
        bare = ~(np.isfinite(boxes.lo) | np.isfinite(boxes.hi)).any(axis=1) & ~impossible
        least = np.where(boxes.strict, np.nextafter(boxes.lo, np.inf), boxes.lo)
        crossed = (least >= boxes.hi).any(axis=1) | impossible
        useful = np.flatnonzero(~bare & ~crossed)
        keys = np.concatenate((boxes.lo[useful], boxes.hi[useful], boxes.strict[useful].astype(np.float64)), axis=1)
        for row, key in zip((first + useful).tolist(), keys + 0.0, strict=True):
            self.groups.setdefault(key.tobytes(), []).append(row)
        self.off_grid += int(off_grid.sum())
        self.pp_only += int((~has_pn[useful]).sum())
        self.always_true += int(bare.sum())
        self.never_true += int(crossed.sum())
        if len(self.groups) > 2 * self.most:
            self.drop_rarest()

    def drop_rarest(self) -> None:
        """Keep the clauses of the most rows, of equals the earliest; in the order they came."""
        if len(self.groups) <= self.most:
            return
        ranked = sorted(self.groups.items(), key=lambda group: (-len(group[1]), group[1][0]))
        staying = {key for key, _ in ranked[: self.most]}
        self.dropped += len(self.groups) - len(staying)
        self.groups = {key: rows for key, rows in self.groups.items() if key in staying}

    def result(self, width: int) -> MinedClauses:
        self.drop_rarest()
        return MinedClauses(
            clauses=tuple(_clause(np.frombuffer(key).reshape(3, width)) for key in self.groups),
            sources=tuple(tuple(rows) for rows in self.groups.values()),
            off_grid=self.off_grid,
            pp_only=self.pp_only,
            always_true=self.always_true,
            never_true=self.never_true,
            dropped=self.dropped,
        )


def _clause(bounds: Matrix) -> Clause:
    lo, hi, strict = bounds
    atoms = []
    for j in np.flatnonzero(np.isfinite(lo) | np.isfinite(hi)).tolist():
        low = float(lo[j]) if np.isfinite(lo[j]) else None
        high = float(hi[j]) if np.isfinite(hi[j]) else None
        atoms.append(Interval(j, low, high, closed="neither" if strict[j] else "left"))
    return Clause(tuple(atoms))


def single_bounds(clauses: Iterable[Clause]) -> tuple[Clause, ...]:
    """Each bound of each clause as a separate clause, none twice.

    >>> [c.atoms[0] for c in single_bounds([Clause((Interval(0, 1.0, 2.0),))])]  # doctest: +NORMALIZE_WHITESPACE
    [Interval(feature=0, lo=1.0, hi=None, closed='left', if_missing=False),
     Interval(feature=0, lo=None, hi=2.0, closed='left', if_missing=False)]
    """
    singles: dict[Clause, None] = {}
    for clause in clauses:
        for atom in intervals_in(clause):
            if atom.lo is not None:
                closed: Literal["left", "neither"] = "left" if atom.lo_closed else "neither"
                singles[Clause((Interval(atom.feature, atom.lo, None, closed, atom.if_missing),))] = None
            if atom.hi is not None:
                ends: Literal["right", "left"] = "right" if atom.hi_closed else "left"
                singles[Clause((Interval(atom.feature, None, atom.hi, ends, atom.if_missing),))] = None
    return tuple(singles)
