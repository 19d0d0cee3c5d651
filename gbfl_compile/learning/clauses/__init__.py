"""What clauses are mined from and kept in: grid points for each feature, and packed bits for each clause.

Grid points (Algorithm 2) are the only numbers a clause may cut at, apart from off-grid cuts. The clause matrix says
which clause holds on which row, one bit per cell: 30,000 rows and 20,000 clauses are 75 MB; as the floats a learner
would copy them to they are 2.4 GB.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.kinds import intervals_in
from gbfl_compile.ir.nodes import Clause, Interval
from gbfl_compile.learning.black_box import Bools, Ints, Matrix

GridKind: TypeAlias = Literal["kde", "uniform", "quantile"]
GRIDS: tuple[GridKind, ...] = ("kde", "uniform", "quantile")

Cuts: TypeAlias = Sequence[Any] | Mapping[int, Any]
"""A user's own points: one array per feature, or a mapping from a feature's index to its array."""

Grid: TypeAlias = tuple[Matrix, ...]
"""One ascending array of distinct points per feature, from its lower to its upper bound."""

MOST_VALUES = 20_000
"""A density uses at most this many distinct values; beyond it neighbours are pooled into their mean."""

BLOCK_CELLS = 2**20


def grid_of(x: Matrix, lower: Matrix, upper: Matrix, points: int, kind: GridKind | Cuts = "kde") -> Grid:
    """`points` grid points per feature (the paper's N + 1), both bounds among them; equal ones are merged.

    A user's own cuts replace the points between the bounds; those at or beyond a bound divide no row and are
    dropped. Features that a mapping leaves out have a `kde` grid.
    """
    if points < 2:
        raise BadInput(f"grid_points {points}: a grid needs its two bounds at least, so 2 or more")
    own = {} if isinstance(kind, str) else _own_cuts(kind, x.shape[1])
    by_kind = kind if isinstance(kind, str) else "kde"
    if by_kind not in GRIDS:
        raise BadInput(f"grid {kind!r} is not one of {', '.join(GRIDS)}, nor cuts per feature")
    grid = []
    for j, (low, high) in enumerate(zip(lower.tolist(), upper.tolist(), strict=True)):
        inner = own[j] if j in own else _inner_points(x[:, j], low, high, points, by_kind)
        # + 0.0 turns -0.0 into 0.0: a clause never prints a minus zero
        grid.append(np.unique(np.clip(np.concatenate(([low], inner, [high])), low, high) + 0.0))
    return tuple(grid)


def _inner_points(values: Matrix, lower: float, upper: float, points: int, kind: GridKind) -> Matrix:
    match kind:
        case "kde":
            return kde_quantiles(values, lower, upper, points - 1)
        case "uniform":
            return np.linspace(lower, upper, points)[1:-1]
        case "quantile":
            inside = values[(values >= lower) & (values <= upper)]
            # where no value lies between the bounds they are divided evenly
            sample = inside if len(inside) else np.linspace(lower, upper, points)
            return np.quantile(sample, np.arange(1, points - 1) / (points - 1))
        case _:
            assert_never(kind)


def _own_cuts(cuts: Cuts, width: int) -> dict[int, Matrix]:
    if not isinstance(cuts, Mapping) and len(cuts) != width:
        raise BadInput(f"grid has cuts for {len(cuts)} features, the data has {width}: give one array for each")
    checked = {}
    for j, own in cuts.items() if isinstance(cuts, Mapping) else enumerate(cuts):
        if isinstance(j, bool) or not isinstance(j, int | np.integer) or not 0 <= j < width:
            raise BadInput(f"grid has cuts for feature {j!r}: features are counted from 0 to {width - 1}")
        try:
            array = np.asarray(own, dtype=np.float64)
        except (TypeError, ValueError):
            raise BadInput(f"grid cuts of feature {j} are not numbers: {own!r}") from None
        if array.ndim != 1 or not np.isfinite(array).all():
            raise BadInput(f"grid cuts of feature {j} must be a flat list of finite numbers")
        checked[int(j)] = array
    return checked


def kde_quantiles(values: Matrix, lower: float, upper: float, parts: int) -> Matrix:
    """Where the density of `values`, renormalised on [lower, upper], reaches 1/parts, 2/parts, .. of its mass.

    A column without spread has no density: its one value is every quantile. Where the density has no mass
    between the bounds, they are divided evenly.
    """
    bandwidth = scott_bandwidth(values)
    shares = np.arange(1, parts) / parts
    if not bandwidth > 0:
        return np.full(len(shares), values[0])
    places, weights = _pool(values)
    ends = _cdf(np.array([lower, upper]), places, weights, bandwidth)
    if not ends[1] - ends[0] > 1e-12:
        return np.linspace(lower, upper, parts + 1)[1:-1]
    return _roots(ends[0] + shares * (ends[1] - ends[0]), lower, upper, places, weights, bandwidth)


def scott_bandwidth(values: Matrix) -> float:
    """Scott's rule for one dimension: the standard deviation times n^(-1/5); 0 without spread."""
    if len(values) < 2 or values.min() == values.max():
        return 0.0
    # scaled first: squares of values near 1e-200 or 1e200 are 0 or infinite
    size = np.abs(values).max()
    return float(np.std(values / size, ddof=1) * len(values) ** -0.2 * size)


def _pool(values: Matrix) -> tuple[Matrix, Matrix]:
    """Distinct values and their shares of the rows, neighbours pooled where there are too many.

    A tenth at either end is not pooled: neighbours lie far apart there, and they decide the mass beyond the bounds.
    """
    places, counts = np.unique(values, return_counts=True)
    weights = counts / counts.sum()
    if len(places) <= MOST_VALUES:
        return places, weights
    tail, total = MOST_VALUES // 10, len(places)
    middle = np.linspace(tail, total - tail, MOST_VALUES - 2 * tail, endpoint=False).astype(np.int64)
    begins = np.concatenate((np.arange(tail), middle, np.arange(total - tail, total)))
    shares = np.add.reduceat(weights, begins)
    return np.add.reduceat(places * weights, begins) / shares, shares


def _cdf(points: Matrix, places: Matrix, weights: Matrix, bandwidth: float) -> Matrix:
    return _kernel_sums(points, places, weights, bandwidth)[0]


def _kernel_sums(points: Matrix, places: Matrix, weights: Matrix, bandwidth: float) -> tuple[Matrix, Matrix]:
    """The distribution and the density of the Gaussian mixture at each point."""
    below, density = np.empty(len(points)), np.empty(len(points))
    step = max(1, BLOCK_CELLS // len(places))
    for begin in range(0, len(points), step):
        block = slice(begin, begin + step)
        away = (points[block, None] - places) / bandwidth
        below[block] = ndtr(away) @ weights
        density[block] = np.exp(-0.5 * away * away) @ weights / (bandwidth * np.sqrt(2 * np.pi))
    return below, density


def _roots(targets: Matrix, lower: float, upper: float, places: Matrix, weights: Matrix, bandwidth: float) -> Matrix:
    """Where the distribution reaches each target: Newton's steps, and a bisection wherever one leaves its bracket.

    Heavy tails leave stretches with no density at all, where Newton alone jumps away.
    """
    low, high = np.full(len(targets), lower), np.full(len(targets), upper)
    at = np.clip(np.interp(targets, np.cumsum(weights), places), lower, upper)
    open_ = np.arange(len(targets))
    for _ in range(200):
        below, density = _kernel_sums(at[open_], places, weights, bandwidth)
        short = targets[open_] - below
        low[open_] = np.where(short > 0, at[open_], low[open_])
        high[open_] = np.where(short > 0, high[open_], at[open_])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = at[open_] + short / density
        middle = low[open_] / 2 + high[open_] / 2
        inside = (step > low[open_]) & (step < high[open_])
        done = (np.abs(short) < 1e-12) | (middle <= low[open_]) | (middle >= high[open_])
        at[open_] = np.where(done, at[open_], np.where(inside, step, middle))
        open_ = open_[~done]
        if not len(open_):
            break
    return at


Words: TypeAlias = NDArray[np.uint64]
Comparisons: TypeAlias = dict[tuple[int, float, str], Words]
"""(feature, bound, sign) -> on which rows of a block the comparison holds."""

BLOCK_ROWS = 16_384
"""Rows per block. A multiple of 64, so that blocks meet at word boundaries."""
BLOCK_CLAUSES = 512
"""Clauses counted at once: their words then stay in the processor's cache."""


@dataclass(frozen=True, slots=True)
class Bits:
    """One line of words per clause; bit r % 64 of word r // 64 is row r. Bits beyond the last row are 0."""

    words: Words
    rows: int


def clause_bits(clauses: Sequence[Clause], x: Matrix) -> Bits:
    """Whether each clause holds on each row; NaN is missing and answers `if_missing`."""
    widest = max((atom.feature for clause in clauses for atom in clause.atoms), default=-1)
    if widest >= x.shape[1]:
        raise BadInput(f"a clause tests feature {widest} and the rows have {x.shape[1]}")
    words = np.zeros((len(clauses), _word_count(len(x))), dtype=np.uint64)
    for begin in range(0, len(x), BLOCK_ROWS):
        block = np.ascontiguousarray(x[begin : begin + BLOCK_ROWS].T)
        place = slice(begin // 64, begin // 64 + _word_count(block.shape[1]))
        comparisons: Comparisons = {}
        for line, clause in zip(words, clauses, strict=True):
            line[place] = _clause_words(clause, block, comparisons)
    return Bits(words, len(x))


def _word_count(rows: int) -> int:
    return (rows + 63) // 64


def pack(column: Bools) -> Words:
    """Truth values as words."""
    padded = np.zeros(_word_count(len(column)) * 64, dtype=bool)
    padded[: len(column)] = column
    return np.packbits(padded, bitorder="little").view("<u8").astype(np.uint64)


def unpack(words: Words, rows: int) -> Bools:
    """Words as truth values."""
    return np.unpackbits(words.astype("<u8").view(np.uint8), count=rows, bitorder="little").astype(bool)


def counts(bits: Bits, mask: Words) -> Ints:
    """On how many rows of `mask` each clause holds."""
    held = np.empty(len(bits.words), dtype=np.int64)
    for begin in range(0, len(bits.words), BLOCK_CLAUSES):
        both = bits.words[begin : begin + BLOCK_CLAUSES] & mask
        held[begin : begin + BLOCK_CLAUSES] = np.bitwise_count(both).sum(axis=1, dtype=np.int64)
    return held


def count(words: Words) -> int:
    """How many bits are set."""
    return int(np.bitwise_count(words).sum(dtype=np.int64))


def _clause_words(clause: Clause, block: Matrix, comparisons: Comparisons) -> Words:
    holds = pack(np.ones(block.shape[1], dtype=bool))
    for atom in intervals_in(clause):
        holds &= _atom_words(atom, block[atom.feature], comparisons)
    return holds


def _atom_words(atom: Interval, values: Matrix, comparisons: Comparisons) -> Words:
    """The atom's words; each comparison with a bound is made once per block."""
    holds = ~_compare(atom.feature, 0.0, "missing", values, comparisons)
    if atom.lo is not None:
        holds &= _compare(atom.feature, atom.lo, ">=" if atom.lo_closed else ">", values, comparisons)
    if atom.hi is not None:
        holds &= _compare(atom.feature, atom.hi, "<=" if atom.hi_closed else "<", values, comparisons)
    return holds | _compare(atom.feature, 0.0, "missing", values, comparisons) if atom.if_missing else holds


_COMPARE: dict[str, Callable[[Matrix, float], Bools]] = {
    ">=": np.greater_equal,
    ">": np.greater,
    "<=": np.less_equal,
    "<": np.less,
    "missing": lambda values, _: np.isnan(values),
}


def _compare(feature: int, bound: float, sign: str, values: Matrix, comparisons: Comparisons) -> Words:
    key = (feature, bound, sign)
    if key not in comparisons:
        comparisons[key] = pack(_COMPARE[sign](values, bound))
    return comparisons[key]
