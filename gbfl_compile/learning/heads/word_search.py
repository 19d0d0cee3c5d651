"""Searches conjunctions over tables with words and missing values: sets of words, and intervals.

Each set or interval is tried with and without the missing value, and whether there is a value at all.

As in `box_search` no candidate matrix is built. The words of a column are ordered by the residual, as CART orders them,
and the sets tried are those that begin or end that order, single words and all but one. A set lists few words, and a
conjunction holds on rows of the user's own, not on explanations alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.ir.kinds import DAY, Columns
from gbfl_compile.ir.nodes import TRUE, Atom, Clause, Interval
from gbfl_compile.learning.black_box import Bools, Ints, Matrix
from gbfl_compile.learning.explain import Explanations
from gbfl_compile.learning.explain.table_values import differ
from gbfl_compile.learning.heads.box_search import Gain, SearchSettings, at_least, beam_search, cuts_of_feature

WordBox: TypeAlias = tuple[tuple[int, bytes], ...]
"""A conjunction, sorted by feature: one byte per bin, 1 where it is inside; the last is the missing value."""

MOST_LISTED = 60
"""Words of a column that may be listed: the commonest."""
MOST_VALUES = 4
"""Words that a set lists: more of them learn the rows by heart."""
FEWEST_POINTS = 5
"""A word with at least this many points is considered by itself; the others are considered together."""
OWN_ROWS = 10
"""A conjunction holds on this many rows of the user's own, where there are a few hundred."""
UNITS = (DAY, 3_600_000_000, 60_000_000, 1_000_000, 1)
"""Days, hours, minutes, seconds and microseconds: a cut between two times is the roundest there is."""


@dataclass(frozen=True, slots=True)
class WordGrid:
    """The points in bins: intervals between cuts, or one per listed word and one for the others; then the missing."""

    columns: Columns
    cuts: tuple[Matrix | None, ...]
    """None for words."""
    listed: tuple[Ints, ...]
    """The codes of the words that have a bin of their own."""
    codes: Ints
    """[features, points]: the bin of each point."""
    bins: tuple[int, ...]
    """How many bins each feature has, the missing one aside: it has that number."""
    own: Matrix
    """How many of the user's own rows each point is."""
    least_own: int


def explained_word_cuts(e: Explanations, base: Matrix, columns: Columns, per_role: int) -> tuple[Matrix | None, ...]:
    """For each number or date quantiles of x, of restored PP values and of moved PN values; None for words."""
    return tuple(
        None if kind in ("category", "boolean") else _cuts(e, base, columns, j, per_role)
        for j, kind in enumerate(columns.kinds)
    )


def _cuts(e: Explanations, base: Matrix, columns: Columns, j: int, per_role: int) -> Matrix:
    x, pp, pn = e.x[:, j], e.pp[:, j], e.pn[:, j]
    moved = differ(pp, np.full(len(pp), base[j])), differ(pn, x)
    roles = [values[~np.isnan(values)] for values in (x, pp[moved[0]], pn[moved[1]])]
    every = np.concatenate(roles)
    if not len(every):
        return np.empty(0)
    middle = float(np.quantile(every, 0.5, method="nearest")) if np.isnan(base[j]) else float(base[j])
    cuts = cuts_of_feature(roles, middle, per_role)
    if columns.kinds[j] == "timestamp":
        return _round_times(np.unique(every), cuts)
    # between whole numbers a whole number says the same
    return np.unique(np.ceil(cuts)) if columns.whole[j] else cuts


def _round_times(values: Matrix, cuts: Matrix) -> Matrix:
    """Each cut as the roundest time that divides the values as it does."""
    place = np.searchsorted(values, cuts)
    place = np.unique(place[(place > 0) & (place < len(values))])
    below, above = values[place - 1], values[place]
    rounded = above.copy()
    for unit in reversed(UNITS):
        time = (np.floor(below / unit) + 1.0) * unit
        rounded = np.where(time <= above, time, rounded)
    return np.unique(rounded)


def word_grid(points: Matrix, own: Matrix, columns: Columns, cuts: tuple[Matrix | None, ...]) -> WordGrid:
    """The points sorted into bins; `own` counts the user's rows at each."""
    listed, codes, bins = [], [], []
    for j, cut in enumerate(cuts):
        values = points[:, j]
        missing = np.isnan(values)
        if cut is not None:
            words = np.empty(0, dtype=np.int64)
            count = len(cut) + 1
            code = np.searchsorted(cut, np.where(missing, 0.0, values), side="right")
        else:
            words = _listed_words(values[~missing], columns.kinds[j] == "boolean")
            count = len(words) + 1
            number = np.full(len(columns.book.texts[j]) + 2, len(words), dtype=np.int64)
            number[words] = np.arange(len(words))
            code = number[np.where(missing, 0.0, values).astype(np.int64)]
        listed.append(words)
        codes.append(np.where(missing, count, code))
        bins.append(count)
    least = max(1, min(OWN_ROWS, int(own.sum()) // 30))
    return WordGrid(columns, cuts, tuple(listed), np.stack(codes), tuple(bins), own, least)


def _listed_words(values: Matrix, is_boolean: bool) -> Ints:
    if is_boolean:
        return np.array([1], dtype=np.int64)
    words, counts = np.unique(values, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    words = words[order][counts[order] >= at_least(FEWEST_POINTS, len(values))]
    return words[words > 0][:MOST_LISTED].astype(np.int64)


def word_box_holds(grid: WordGrid, box: WordBox) -> Bools:
    """On which points the conjunction holds."""
    inside = np.ones(grid.codes.shape[1], dtype=bool)
    for feature, mask in box:
        inside &= np.frombuffer(mask, dtype=np.uint8).astype(bool)[grid.codes[feature]]
    return inside


@dataclass(frozen=True, slots=True)
class _Sums:
    """Of the points inside a box, over the bins of one feature: pulls and bends by class, points and own rows."""

    pull: Matrix
    bend: Matrix
    count: Matrix
    own: Matrix

    def over(self, members: Matrix) -> _Sums:
        """The sums of sets of bins, each a line of 0 and 1."""
        each = (self.pull @ members.T, self.bend @ members.T, members @ self.count, members @ self.own)
        return _Sums(*each)


def _extensions(
    grid: WordGrid, box: WordBox, inside: Ints | None, pull: Matrix, bend: Matrix, gain: Gain, settings: SearchSettings
) -> Iterator[tuple[float, WordBox]]:
    """For each feature the sets that, added to the box, have the greatest gain, summed over classes."""
    atoms = dict(box)
    totals = bend.sum(axis=0)
    codes, own = grid.codes, grid.own
    if inside is not None:
        codes, pull, bend, own = codes[:, inside], pull[inside], bend[inside], own[inside]
    weights = [np.ascontiguousarray(side[:, k]) for side in (pull, bend) for k in range(pull.shape[1])]
    n_classes, n_points = pull.shape[1], len(pull)
    least, listed = (at_least(points, grid.codes.shape[1]) for points in (settings.min_points, FEWEST_POINTS))
    for j, code in enumerate(codes):
        is_word = grid.cuts[j] is None
        if is_word and j in atoms:
            continue  # two sets on one feature could list more words than allowed
        size = grid.bins[j] + 1
        sums = np.stack([np.bincount(code, weight, size) for weight in weights]).astype(np.float64)
        count, rows = (np.bincount(code, each, size).astype(np.float64) for each in (None, own))
        of_bins = _Sums(sums[:n_classes], sums[n_classes:], count, rows)
        groups = _sets(of_bins, size, listed) if is_word else _ranges(size)
        for group in groups if count[-1] == 0 else (*groups, _missing_or_not(size, is_word=is_word)):
            members = group if count[-1] == 0 else np.concatenate((group, _with_missing(group)))
            over = of_bins.over(members)
            gains = np.zeros(len(members))
            for k in range(n_classes):
                gains += gain(over.pull[k], over.bend[k], float(totals[k]), settings.ridge)
            gains[(over.count < least) | (over.count == n_points) | (over.own < grid.least_own)] = -1.0
            if j in atoms:  # two ranges that share only the missing value are not a range
                gains[members[:, :-1] @ np.frombuffer(atoms[j], dtype=np.uint8)[:-1] == 0] = -1.0
            best = int(gains.argmax()) if len(gains) else 0
            if len(gains) and gains[best] > 0:
                mask = members[best].astype(np.uint8)
                if j in atoms:
                    mask &= np.frombuffer(atoms[j], dtype=np.uint8)
                yield float(gains[best]), tuple(sorted({**atoms, j: mask.tobytes()}.items()))


def _with_missing(members: Matrix) -> Matrix:
    more = members.copy()
    more[:, -1] = 1.0
    return more


def _missing_or_not(size: int, *, is_word: bool) -> Matrix:
    """Every value and not the missing one; of words, which have such a set, also the missing one alone."""
    missing = (np.arange(size) == size - 1).astype(float)
    return np.stack((1.0 - missing, missing)) if is_word else (1.0 - missing)[None]


def _ranges(size: int) -> tuple[Matrix, ...]:
    """The intervals with one bound: those below each cut, and those from it on."""
    below = np.tri(size - 2, size - 1)
    none = np.zeros((size - 2, 1))
    return np.hstack((below, none)), np.hstack((1.0 - below, none))


def _sets(sums: _Sums, size: int, least: int) -> tuple[Matrix, ...]:
    """Sets of words that list few: with all words but those listed, and with those alone."""
    rest = size - 2
    alone = np.flatnonzero(sums.count[:rest] >= least)
    pooled = np.setdiff1d(np.arange(rest + 1), alone)
    if not len(alone):
        return ()
    # one column for each word by itself, the last for all others together
    items = np.zeros((len(alone) + 1, size))
    items[np.arange(len(alone)), alone] = 1.0
    items[-1, pooled] = 1.0
    of_items = sums.over(items)
    last = len(alone)
    chosen: dict[bytes, NDArray[np.bool_]] = {}
    for k in range(len(sums.pull)):
        order = np.argsort(-of_items.pull[k] / (of_items.bend[k] + 1.0), kind="stable")
        for length in range(1, last + 1):
            for part in (order[:length], order[length:]):
                _add_set(chosen, part, last, others_seen=bool(of_items.count[last] > 0))
    for word in range(last):
        _add_set(chosen, np.array([word]), last, others_seen=True)
        _add_set(chosen, np.setdiff1d(np.arange(last + 1), [word]), last, others_seen=True)
    sets = np.array(list(chosen.values()))
    members = (sets.astype(float) @ items) if len(sets) else np.empty((0, size))
    negated = sets[:, last] if len(sets) else np.zeros(0, dtype=bool)
    return members[negated], members[~negated]


def _add_set(chosen: dict[bytes, NDArray[np.bool_]], part: Ints, last: int, *, others_seen: bool) -> None:
    """Add a set that lists few words; where no other word was seen, in its shorter spelling."""
    inside = np.zeros(last + 1, dtype=bool)
    inside[part] = True
    if not others_seen:
        words = int(inside[:last].sum())
        if words in (0, last):
            return
        inside[last] = 2 * words > last
    listed = int((inside[:last] != inside[last]).sum())
    if 0 < listed <= MOST_VALUES:
        chosen.setdefault(inside.tobytes(), inside)


def promising_word_boxes(
    grid: WordGrid, pull: Matrix, bend: Matrix, settings: SearchSettings, gain: Gain
) -> dict[WordBox, float]:
    """Conjunctions of every length with the greatest gains that a beam search finds, best first, and those gains."""
    return beam_search(
        lambda box, inside: _extensions(grid, box, inside, pull, bend, gain, settings),
        lambda box: word_box_holds(grid, box),
        settings,
    )


def word_clause_of(grid: WordGrid, box: WordBox) -> Clause:
    """The conjunction in the rule language."""
    return Clause(tuple(_atom(grid, feature, mask) for feature, mask in box))


def _atom(grid: WordGrid, feature: int, mask: Sequence[int]) -> Atom:
    """What a mask says: a set of words, or an interval; the last byte is the missing value."""
    *inside, missing = (bool(byte) for byte in mask)
    cuts = grid.cuts[feature]
    if cuts is None:
        negated = inside[-1]
        book = grid.columns.book.texts[feature]
        is_boolean = grid.columns.kinds[feature] == "boolean"
        words = [
            TRUE if is_boolean else book[code - 1]
            for code, holds in zip(grid.listed[feature].tolist(), inside[:-1], strict=True)
            if holds != negated
        ]
        return grid.columns.one_of(feature, tuple(words), negated=negated, if_missing=missing)
    first, beyond = inside.index(True), len(inside) - inside[::-1].index(True)
    lo = float(cuts[first - 1]) if first > 0 else None
    hi = float(cuts[beyond - 1]) if beyond - 1 < len(cuts) else None
    return Interval(feature, lo, hi, if_missing=missing)
