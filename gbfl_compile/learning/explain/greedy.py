"""The greedy explainer: equations 1 and 2 solved directly, every step for all rows and candidates at once.

A search changes one feature per step to the candidate value that helps most, and stops as soon as the margin
kappa is reached. Then each changed feature is moved back as far as the margin allows. For a PP it starts at the
base point and restores values of x; for a PN it starts at x and moves features away from the base. There is no
randomness, and no row depends on another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from gbfl_compile.errors import BadInput
from gbfl_compile.learning.black_box import BlackBox, Bools, Ints, Matrix, rows_per_block
from gbfl_compile.learning.explain import Explanations, mixed
from gbfl_compile.learning.explain.domain import Domain
from gbfl_compile.learning.explain.search import (
    WINS,
    ExplainerSettings,
    Side,
    ask,
    bisect_back,
    changes_allowed,
    explain_rows,
    finish,
    pn_candidates,
    pp_values,
    widths,
)


@dataclass(frozen=True, slots=True)
class Greedy(ExplainerSettings):
    """How the greedy explainer searches."""

    steps: tuple[float, ...] = (1.0, 0.5, 0.25, 0.1)
    """Candidate moves of a PN, as shares of the way from x to the bound."""
    shortlist: int = 8
    """After the first step only this many features, the best when last tried, are tried again."""
    bisections: int = 6

    def dearest(self, domain: Domain) -> int:
        """For the PP and the PN: the start, each step's candidates, the way back, the end."""
        if domain.table is not None:
            return mixed.dearest(domain, domain.table, self, self.shortlist, self.bisections)
        total, width = 0, len(domain.features)
        for most, options in ((self.max_restored, 1), (self.max_moved, 2 * len(self.steps))):
            limit = changes_allowed(most, width)
            candidates = options * (width + (limit - 1) * min(width, self.shortlist))
            total += 2 + candidates + limit * (1 + self.bisections)
        return total


USUAL = Greedy()

Options: TypeAlias = Callable[[Ints], Matrix]
"""Row numbers -> candidate values [rows, features, candidates]; NaN where there is none."""


@dataclass(frozen=True, slots=True)
class _Search:
    """One search for every row: its start, the values it may try, and which class should win or lose."""

    black_box: BlackBox
    domain: Domain
    start: Matrix
    options: Options
    n_options: int
    label: Ints
    sign: int
    """+1: the label should win (PP). -1: it should lose (PN)."""
    limit: int
    enough: Matrix
    """The least margin that counts as an explanation, row by row."""
    goal: Matrix
    """The margin at which a row stops searching: kappa, and never less than `enough`."""
    all_or_nothing: tuple[int, ...]
    """Features that are restored completely or not at all."""
    settings: Greedy


def explain_greedily(black_box: BlackBox, x: Matrix, domain: Domain, settings: Greedy = USUAL) -> Explanations:
    """A PP and a PN for each row of x, and the number of queries.

    A feature of x outside [L, U] is restored up to the bound only (so such a row may have no PP), and is
    not moved for a PN.
    """
    _check(settings)

    def find(rows: Matrix, label: Ints, margin: Matrix) -> tuple[Side, Side]:
        if (table := domain.table) is not None:
            depth = (settings.shortlist, settings.bisections)
            return mixed.find_sides(black_box, rows, domain, table, settings, label, margin, *depth)
        return (
            _find(_search_for_pp(black_box, rows, domain, settings, label, margin)),
            _find(_search_for_pn(black_box, rows, domain, settings, label)),
        )

    return explain_rows(black_box, x, domain, settings, find)


def _search_for_pp(
    black_box: BlackBox, x: Matrix, domain: Domain, settings: Greedy, label: Ints, margin_x: Matrix
) -> _Search:
    # x itself may hold its class by less than WINS, and is its own PP all the same
    enough = np.minimum(WINS, margin_x)
    return _Search(
        black_box=black_box,
        domain=domain,
        start=np.tile(domain.base, (len(x), 1)),
        options=lambda rows: _pp_candidates(x[rows], domain),
        n_options=1,
        label=label,
        sign=1,
        limit=changes_allowed(settings.max_restored, x.shape[1]),
        enough=enough,
        goal=np.maximum(settings.kappa, enough),
        all_or_nothing=domain.immutable,
        settings=settings,
    )


def _search_for_pn(black_box: BlackBox, x: Matrix, domain: Domain, settings: Greedy, label: Ints) -> _Search:
    return _Search(
        black_box=black_box,
        domain=domain,
        start=x,
        options=lambda rows: pn_candidates(x[rows], domain, settings.steps),
        n_options=2 * len(settings.steps),
        label=label,
        sign=-1,
        limit=changes_allowed(settings.max_moved, x.shape[1]),
        enough=np.full(len(x), WINS),
        goal=np.full(len(x), max(settings.kappa, WINS)),
        all_or_nothing=(),
        settings=settings,
    )


def _check(settings: Greedy) -> None:
    if not all(0 < step <= 1 for step in settings.steps) or not settings.steps:
        raise BadInput(f"steps {settings.steps} are not shares of the way to the bound: 0 < step <= 1")
    if settings.shortlist < 1 or settings.bisections < 0:
        raise BadInput("shortlist must be at least 1 and bisections at least 0")


def _pp_candidates(x: Matrix, domain: Domain) -> Matrix:
    """The value a PP may try: that of x, as far as allowed; NaN where that is the base already."""
    values = pp_values(x, domain)
    return np.where(values == domain.base, np.nan, values)[:, :, None]


def _find(search: _Search) -> Side:
    point, margin, order = _grow(search)
    return finish(search, point, margin, partial(_shrink, search, point, order))


def _grow(search: _Search) -> tuple[Matrix, Matrix, Ints]:
    """Change the best feature repeatedly, until kappa is reached or nothing helps.

    Returns the points, their margins, and the features changed in order (-1 where there are fewer).
    """
    point = search.start.copy()
    rows, width = point.shape
    order = np.full((rows, search.limit), -1, dtype=np.int64)
    margin, _, _ = ask(search, point, search.label)
    known = np.full((rows, width), np.inf)
    active = margin < search.goal
    for step in range(search.limit):
        waiting = np.flatnonzero(active)
        features = width if step == 0 else min(width, search.settings.shortlist)
        block = max(1, rows_per_block(search.black_box) // (features * search.n_options))
        for begin in range(0, len(waiting), block):
            here = waiting[begin : begin + block]
            feature, value, new_margin = _best_change(search, here, point, margin, known, features)
            # once the class holds only a better margin is worth another feature
            useful = (feature >= 0) & ((margin[here] < search.enough[here]) | (new_margin > margin[here]))
            active[here[~useful]] = False
            here, feature, value = here[useful], feature[useful], value[useful]
            point[here, feature] = value
            margin[here] = new_margin[useful]
            order[here, step] = feature
            known[here, feature] = -np.inf
        active &= margin < search.goal
    return point, margin, order


def _best_change(
    search: _Search, rows: Ints, point: Matrix, margin: Matrix, known: Matrix, features: int
) -> tuple[Ints, Matrix, Matrix]:
    """For each row the feature to change (-1: none left), its new value and the margin there.

    Among candidates that reach kappa the shortest move wins; otherwise the best score, or the best
    margin once the class holds. `known` has each feature's best score, for the next shortlist.
    """
    listed = np.argsort(-known[rows], axis=1, kind="stable")[:, :features]
    values = np.take_along_axis(search.options(rows), listed[:, :, None], axis=1)
    open_ = (np.take_along_axis(known[rows], listed, axis=1) > -np.inf)[:, :, None] & ~np.isnan(values)
    at, slot, option = np.nonzero(open_)
    candidates = point[rows[at]]
    candidates[np.arange(len(at)), listed[at, slot]] = values[at, slot, option]
    reached = np.full(values.shape, -np.inf)
    scores = np.full(values.shape, -np.inf)
    if len(at):
        reached[at, slot, option], scores[at, slot, option], _ = ask(search, candidates, search.label[rows[at]])
    known[rows[:, None], listed] = scores.max(axis=2)
    moves = np.abs(values - np.take_along_axis(search.start[rows], listed, axis=1)[:, :, None])
    moves /= widths(search.domain)[listed][:, :, None]
    holds = (margin[rows] >= search.enough[rows])[:, None, None]
    reaches = reached >= search.goal[rows][:, None, None]
    key = np.where(holds, reached, scores)
    key = np.where(reaches.any(axis=(1, 2), keepdims=True), np.where(reaches, -moves, -np.inf), key)
    best = key.reshape(len(rows), -1).argmax(axis=1)
    slot, option = np.divmod(best, values.shape[2])
    each = np.arange(len(rows))
    feature = np.where(open_.any(axis=(1, 2)), listed[each, slot], -1)
    return feature, values[each, slot, option], reached[each, slot, option]


def _shrink(search: _Search, point: Matrix, order: Ints, goal: Matrix, explained: Ints) -> None:
    """Move each changed feature back towards the start, completely or by bisection, keeping the margin `goal`."""
    for step in range(order.shape[1]):
        rows = explained[order[explained, step] >= 0]
        if not len(rows):
            return
        feature = order[rows, step]

        def keeps(trial: Matrix, rows: Ints) -> Bools:
            margin, _, _ = ask(search, trial, search.label[rows])
            return np.asarray(margin >= goal[rows])

        trial = point[rows]
        trial[np.arange(len(rows)), feature] = search.start[rows, feature]
        back = keeps(trial, rows)
        point[rows[back]] = trial[back]
        partly = ~back & ~np.isin(feature, search.all_or_nothing)
        bisections = search.settings.bisections
        bisect_back(point, rows[partly], feature[partly], search.start, search.domain, bisections, keeps)
