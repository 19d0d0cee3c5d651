"""The nearest-unlike explainer: a PN begins as a training row of another class, and each change that can go is undone.

Of the training rows with another class by the black box the nearest is taken, by the sum of moves (shares of the usual
range for numbers, 1 for words and gaps). Its values replace those of x where the domain allows it; then the values of x
are restored one by one, best first, until no more can be. A PP begins as x and is emptied the same way towards the
base; then its numbers go back as far as they can. Every value comes from a row of the table or lies
between two such values on the feature's kind, so every explanation is a possible row. There is no randomness, and no
row depends on another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist

from gbfl_compile.errors import BadInput
from gbfl_compile.learning.black_box import BlackBox, Bools, Ints, Matrix, classes_of, probabilities, rows_per_block
from gbfl_compile.learning.explain import Explanations
from gbfl_compile.learning.explain.domain import Domain, Examples
from gbfl_compile.learning.explain.search import (
    WINS,
    ExplainerSettings,
    Side,
    ask,
    bisect_back,
    changes_allowed,
    explain_rows,
    margins,
    pp_values,
    restore_fixed,
    widths,
)
from gbfl_compile.learning.explain.table_values import differ, is_possible

MOST_ASKED = 20_000
"""Training rows whose class is queried, to choose examples from."""
MOST_EXAMPLES = 1_000
"""Examples of each class."""
USUAL_RANGE = (0.05, 0.95)
"""Moves of numbers are measured by the range between these quantiles: one outlier must not hide a feature."""


@dataclass(frozen=True, slots=True)
class Nearest(ExplainerSettings):
    """How the nearest-unlike explainer searches."""

    max_moved: int | None = None
    """A PN is as sparse as undoing makes it."""
    pn_kappa: float = 0.0
    """The margin a PN should keep. Such PNs lie close to where the class changes, those of `greedy` beyond it."""
    neighbours: int = 5
    """The nearest rows of another class that are tried, where the domain does not allow all values of the first."""
    shortlist: int = 8
    """After the first step only this many changes, the best when last tried, are tried again."""
    bisections: int = 6
    """Steps by which each number of a PP goes back towards the base."""
    pn_bisections: int = 0
    """And of a PN towards x. Usually none: where they end is so close to where the class changes that a readable model
    fitted on such PNs agrees less with all others."""

    def dearest(self, domain: Domain) -> int:
        """For the PP and the PN: the start, each step's changes, the way back, the end."""
        width = len(domain.features)
        undone = width + (width - 1) * min(width, self.shortlist)
        return 2 * (1 + undone) + width * (self.bisections + self.pn_bisections) + 1 + self.neighbours


USUAL = Nearest()


def with_examples(domain: Domain, black_box: BlackBox, x: Matrix, label: Ints | None = None) -> Domain:
    """The domain with training rows of each class, evenly drawn in the order of the table.

    Where the black box's classes are known already, as `label`, it is not asked.
    """
    places = _evenly(len(x), MOST_ASKED)
    candidates = x[places]
    label = classes_of(black_box, candidates) if label is None else label[places]
    chosen = [np.flatnonzero(label == each) for each in np.unique(label)]
    rows = np.sort(np.concatenate([each[_evenly(len(each), MOST_EXAMPLES)] for each in chosen]))
    return replace(domain, examples=Examples(candidates[rows], label[rows]))


def _evenly(count: int, most: int) -> Ints:
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))


def explain_by_nearest(black_box: BlackBox, x: Matrix, domain: Domain, settings: Nearest = USUAL) -> Explanations:
    """A PP and a PN for each row of x, and the number of queries. The domain must have examples."""
    examples = domain.examples
    if examples is None:
        raise BadInput("explainer nearest: the domain has no training rows to choose from: with_examples adds them")
    if settings.shortlist < 1 or settings.neighbours < 1 or min(settings.bisections, settings.pn_bisections) < 0:
        raise BadInput("shortlist and neighbours must be at least 1 and bisections at least 0")

    def find(rows: Matrix, label: Ints, margin: Matrix) -> tuple[Side, Side]:
        return (
            _empty_out(black_box, rows, domain, settings, label, margin),
            _nearest_unlike(black_box, rows, domain, examples, settings, label),
        )

    return explain_rows(black_box, x, domain, settings, find)


@dataclass(frozen=True, slots=True)
class _Undoing:
    """Points on their way back to `start`, each to keep its margin `goal` for (+1) or against (-1) its label."""

    black_box: BlackBox
    domain: Domain
    x: Matrix
    start: Matrix
    label: Ints
    sign: int
    goal: Matrix
    shortlist: int
    bisections: int

    def keeps(self, points: Matrix, rows: Ints) -> tuple[Bools, Matrix]:
        """Whether each point keeps its margin and is possible, and its score."""
        margin, score, _ = ask(self, points, self.label[rows])
        return (margin >= self.goal[rows]) & is_possible(self.domain.table, points, self.x[rows]), score


def _empty_out(
    black_box: BlackBox, x: Matrix, domain: Domain, settings: Nearest, label: Ints, margin_x: Matrix
) -> Side:
    """The PP: x with every feature at the base that can be there."""
    enough = np.minimum(WINS, margin_x)  # x itself may hold its class by less than WINS, and is its own PP
    point = pp_values(x, domain) if domain.table is None else x.copy()
    start = np.tile(domain.base, (len(x), 1))
    # x is queried again only where a bound or a kind changed it
    same = ~differ(point, x).any(axis=1)
    margin = margin_x.copy()
    if (others := np.flatnonzero(~same)).size:
        margin[others] = margins(probabilities(black_box, point[others]), label[others])[0]
    goal = np.minimum(np.maximum(settings.kappa, enough), margin)
    undoing = _Undoing(black_box, domain, x, start, label, 1, goal, settings.shortlist, settings.bisections)
    limit = changes_allowed(settings.max_restored, x.shape[1])
    return _finish(undoing, point, np.flatnonzero(margin >= enough), enough, limit, domain.immutable)


def _nearest_unlike(
    black_box: BlackBox, x: Matrix, domain: Domain, examples: Examples, settings: Nearest, label: Ints
) -> Side:
    """The PN: the nearest example of another class that the domain allows, its changes undone."""
    enough = np.full(len(x), WINS)
    goal = np.full(len(x), max(settings.pn_kappa, WINS))
    undoing = _Undoing(black_box, domain, x, x, label, -1, goal, settings.shortlist, settings.pn_bisections)
    point, margin = x.copy(), np.full(len(x), -np.inf)
    near = _neighbours(x, label, domain, examples, settings.neighbours)
    for place in range(near.shape[1]):
        rows = np.flatnonzero((margin < enough) & (near[:, place] >= 0))
        if not len(rows):
            break
        trial = _transplant(x[rows], examples.rows[near[rows, place]], domain)
        reached, _, _ = ask(undoing, trial, label[rows])
        fine = (reached >= WINS) & is_possible(domain.table, trial, x[rows])
        point[rows[fine]], margin[rows[fine]] = trial[fine], reached[fine]
    undoing = replace(undoing, goal=np.minimum(goal, np.where(margin >= enough, margin, goal)))
    limit = changes_allowed(settings.max_moved, x.shape[1])
    return _finish(undoing, point, np.flatnonzero(margin >= enough), enough, limit, ())


def _neighbours(x: Matrix, label: Ints, domain: Domain, examples: Examples, count: int) -> Ints:
    """[rows, count]: the nearest examples of another class, the first of equals first; -1 where there are fewer."""
    near = np.full((len(x), count), -1, dtype=np.int64)
    scale = usual_ranges(domain, examples.rows)
    for each in np.unique(label):
        rows, others = np.flatnonzero(label == each), np.flatnonzero(examples.label != each)
        block = max(1, 2_000_000 // max(1, len(others)))
        for begin in range(0, len(rows) if len(others) else 0, block):
            some = rows[begin : begin + block]
            apart = _distances(x[some], examples.rows[others], domain, scale)
            nearest = np.argsort(apart, axis=1, kind="stable")[:, :count]
            near[some, : nearest.shape[1]] = others[nearest]
    return near


def usual_ranges(domain: Domain, rows: Matrix) -> Matrix:
    """What a move of each feature is measured by; the whole range where most rows have the same value."""
    table = domain.table
    whole = widths(domain) if table is None else table.widths
    with np.errstate(all="ignore"):
        low, high = (np.array([_quantile(column, share) for column in rows.T]) for share in USUAL_RANGE)
    return np.where(high > low, high - low, whole)


def _quantile(column: Matrix, share: float) -> float:
    values = column[~np.isnan(column)]
    return float(np.quantile(values, share)) if len(values) else 0.0


def _distances(x: Matrix, others: Matrix, domain: Domain, scale: Matrix) -> Matrix:
    if (table := domain.table) is None:
        return np.asarray(cdist(x / scale, others / scale, "cityblock"))
    total = np.zeros((len(x), len(others)))
    for j, kind in enumerate(table.columns.kinds):
        a, b = x[:, j, None], others[None, :, j]
        if kind in ("category", "boolean"):
            total += differ(a, b)
        else:
            apart = np.abs(a - b) / scale[j]
            total += np.where(np.isnan(apart), differ(a, b), apart)
    return total


def _transplant(x: Matrix, example: Matrix, domain: Domain) -> Matrix:
    """The example with the values of x where the domain does not let a PN have its own."""
    point = example.copy()
    restore_fixed(point, x, domain)
    if domain.table is None:
        outside = (point < domain.lower) | (point > domain.upper)
        point = np.where(outside, x, point)
    return point


def _finish(
    undoing: _Undoing, point: Matrix, rows: Ints, enough: Matrix, limit: int, all_or_nothing: tuple[int, ...]
) -> Side:
    """The points once every change that can be undone is undone; a point with too many changes is dropped."""
    margin, winner = np.full(len(point), -np.inf), undoing.label.copy()
    _undo(undoing, point, rows)
    rows = rows[differ(point[rows], undoing.start[rows]).sum(axis=1) <= limit]
    _move_back(undoing, point, rows, all_or_nothing)
    if len(rows):
        margin[rows], _, winner[rows] = ask(undoing, point[rows], undoing.label[rows])
    return Side(point, margin >= enough, margin, winner)


def _undo(undoing: _Undoing, point: Matrix, rows: Ints) -> None:
    """Restore the start's values, the one that costs least first, as long as the margin stays."""
    width = point.shape[1]
    known = np.full(point.shape, np.inf)  # the score when last tried
    known[~differ(point, undoing.start)] = -np.inf
    for step in range(width):
        rows = rows[(known[rows] > -np.inf).any(axis=1)]
        listed = width if step == 0 else min(width, undoing.shortlist)
        block = max(1, rows_per_block(undoing.black_box) // listed)
        for begin in range(0, len(rows), block):
            _undo_best(undoing, point, known, rows[begin : begin + block], listed)


def _undo_best(undoing: _Undoing, point: Matrix, known: Matrix, rows: Ints, listed: int) -> None:
    """Undo the best of each row's listed changes; those that cannot be undone are not tried again."""
    features = np.argsort(-known[rows], axis=1, kind="stable")[:, :listed]
    at, slot = np.nonzero(np.take_along_axis(known[rows], features, axis=1) > -np.inf)
    feature = features[at, slot]
    trial = point[rows[at]]
    trial[np.arange(len(at)), feature] = undoing.start[rows[at], feature]
    keeps, score = undoing.keeps(trial, rows[at])
    known[rows[at], feature] = np.where(keeps, score, -np.inf)
    scores = np.full((len(rows), listed), -np.inf)
    scores[at[keeps], slot[keeps]] = score[keeps]
    best = scores.argmax(axis=1)
    good = np.flatnonzero(scores.max(axis=1) > -np.inf)
    chosen = features[good, best[good]]
    point[rows[good], chosen] = undoing.start[rows[good], chosen]
    known[rows[good], chosen] = -np.inf


def _move_back(undoing: _Undoing, point: Matrix, rows: Ints, all_or_nothing: tuple[int, ...]) -> None:
    """Move what is still changed back towards the start, feature by feature, by bisection."""

    def keeps(points: Matrix, rows: Ints) -> Bools:
        return undoing.keeps(points, rows)[0]

    for j in range(point.shape[1]):
        if j in all_or_nothing:
            continue
        here = rows[differ(point[rows, j], undoing.start[rows, j])]
        feature = np.full(len(here), j)
        bisect_back(point, here, feature, undoing.start, undoing.domain, undoing.bisections, keeps)
