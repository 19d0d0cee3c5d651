"""The greedy explainer: equations 1 and 2 solved directly, every step for all rows and candidates at once.

A search starts somewhere, changes one feature a step to the candidate value that helps most, and stops
as soon as the margin kappa is reached. Then each changed feature is brought back as far as the margin
allows. For a PP it starts at the base point and restores values of x; for a PN it starts at x and moves
features away from the base. There is no randomness, and no row looks at another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from gbfl_compile.errors import BadInput
from gbfl_compile.learn.black_box import BlackBox, Bools, Ints, Matrix, probabilities, rows_in_a_block
from gbfl_compile.learn.explanations import Domain, Explanations

WINS = 1e-9
"""A class wins by at least this much: less is a tie that rounding on another machine may turn."""


@dataclass(frozen=True, slots=True)
class Greedy:
    """How the greedy explainer searches."""

    kappa: float = 0.5
    """The margin wanted, in probability."""
    max_restored: int | None = None
    """k of equation 1: how many features of a PP may differ from the base; None is no limit."""
    max_moved: int | None = 5
    """k of equation 2: how many features of a PN may differ from x; None is no limit."""
    steps: tuple[float, ...] = (1.0, 0.5, 0.25, 0.1)
    """Candidate moves of a PN, as shares of the way from x to the bound."""
    shortlist: int = 8
    """After the first step only this many features, the best when last asked, are asked again."""
    bisections: int = 6


USUAL = Greedy()

Options: TypeAlias = Callable[[Ints], Matrix]
"""Row numbers -> candidate values [rows, features, candidates]; NaN where there is none."""


@dataclass(frozen=True, slots=True)
class _Search:
    """One search for every row: where it starts, what it may try, which class should win or lose."""

    black_box: BlackBox
    start: Matrix
    options: Options
    n_options: int
    label: Ints
    sign: int
    """+1: the label should win (PP). -1: it should lose (PN)."""
    limit: int
    enough: Matrix
    """The least margin that counts as found at all, row by row."""
    goal: Matrix
    """The margin at which a row stops searching: kappa, and never less than `enough`."""
    scale: Matrix
    settings: Greedy


def explain_greedily(black_box: BlackBox, x: Matrix, domain: Domain, settings: Greedy = USUAL) -> Explanations:
    """A PP and a PN for each row of x, and what it cost.

    A feature of x outside [L, U] is restored up to the bound only (so such a row may have no PP), and is
    not moved for a PN.
    """
    _check(x, domain, settings)
    before = black_box.queries
    answer = probabilities(black_box, x)
    label: Ints = answer.argmax(axis=1)
    margin_x, _ = _margins(answer, label)
    positive = _search_for_pp(black_box, x, domain, settings, label, margin_x)
    negative = _search_for_pn(black_box, x, domain, settings, label)
    pp, pp_margin, _, pp_changes = _find(positive)
    pn, pn_margin, pn_label, _ = _find(negative)
    has_pp, has_pn = pp_margin >= positive.enough, pn_margin >= negative.enough
    return Explanations(
        x=x,
        pp=np.where(has_pp[:, None], pp, x),
        pn=np.where(has_pn[:, None], pn, x),
        has_pp=has_pp,
        has_pn=has_pn,
        label=label,
        pn_label=np.where(has_pn, pn_label, label),
        pp_margin=np.where(has_pp, pp_margin, margin_x),
        pn_margin=np.where(has_pn, pn_margin, -margin_x),
        pp_is_base=has_pp & (pp_changes == 0),
        queries=black_box.queries - before,
        features=domain.features,
    )


def _search_for_pp(
    black_box: BlackBox, x: Matrix, domain: Domain, settings: Greedy, label: Ints, margin_x: Matrix
) -> _Search:
    # x itself may hold its class by less than WINS, and is its own PP all the same
    enough = np.minimum(WINS, margin_x)
    return _Search(
        black_box=black_box,
        start=np.tile(domain.base, (len(x), 1)),
        options=lambda rows: _restored_values(x[rows], domain),
        n_options=1,
        label=label,
        sign=1,
        limit=_limit(settings.max_restored, x.shape[1]),
        enough=enough,
        goal=np.maximum(settings.kappa, enough),
        scale=_widths(domain),
        settings=settings,
    )


def _search_for_pn(black_box: BlackBox, x: Matrix, domain: Domain, settings: Greedy, label: Ints) -> _Search:
    return _Search(
        black_box=black_box,
        start=x,
        options=lambda rows: _moved_values(x[rows], domain, settings.steps),
        n_options=2 * len(settings.steps),
        label=label,
        sign=-1,
        limit=_limit(settings.max_moved, x.shape[1]),
        enough=np.full(len(x), WINS),
        goal=np.full(len(x), max(settings.kappa, WINS)),
        scale=_widths(domain),
        settings=settings,
    )


def _widths(domain: Domain) -> Matrix:
    """How wide each feature's range is, to compare moves by; 1 for a constant."""
    width = domain.upper - domain.lower
    return np.where(width > 0, width, 1.0)


def _check(x: Matrix, domain: Domain, settings: Greedy) -> None:
    if x.ndim != 2 or x.shape[1] != len(domain.base):
        raise BadInput(f"rows of shape {x.shape} for a domain of {len(domain.base)} features")
    if not np.isfinite(x).all():
        row, feature = np.argwhere(~np.isfinite(x))[0]
        raise BadInput(f"row {row}, feature {domain.features[feature]}: only finite values can be explained")
    if not 0 <= settings.kappa < 1:
        raise BadInput(f"kappa {settings.kappa} is not a margin in probability: 0 <= kappa < 1")
    if not all(0 < step <= 1 for step in settings.steps) or not settings.steps:
        raise BadInput(f"steps {settings.steps} are not shares of the way to the bound: 0 < step <= 1")
    if settings.shortlist < 1 or settings.bisections < 0:
        raise BadInput("shortlist must be at least 1 and bisections at least 0")


def _limit(given: int | None, width: int) -> int:
    if given is not None and given < 1:
        raise BadInput(f"a limit of {given} changed features finds nothing: give 1 or more, or None")
    return width if given is None else min(given, width)


def _restored_values(x: Matrix, domain: Domain) -> Matrix:
    """What a PP may take: the value of x, as far as the bounds allow; nothing where that is the base already."""
    restored = np.clip(x, domain.lower, domain.upper)
    return np.where(restored == domain.base, np.nan, restored)[:, :, None]


def _moved_values(x: Matrix, domain: Domain, steps: tuple[float, ...]) -> Matrix:
    """What a PN may take: points on the way to the bound that lies away from the base; both at the base itself."""
    share = np.array(steps)
    up, down = domain.upper - x, x - domain.lower
    may_rise = (x >= domain.base) & (up > 0)
    may_fall = (x <= domain.base) & (down > 0)
    risen = np.minimum(x[:, :, None] + up[:, :, None] * share, domain.upper[:, None])
    fallen = np.maximum(x[:, :, None] - down[:, :, None] * share, domain.lower[:, None])
    values = np.concatenate(
        (np.where(may_rise[:, :, None], risen, np.nan), np.where(may_fall[:, :, None], fallen, np.nan)), axis=2
    )
    return np.where(values == x[:, :, None], np.nan, values)


def _margins(answer: Matrix, label: Ints) -> tuple[Matrix, Matrix]:
    """C(y) - max of the others, as a difference of probabilities and as a log ratio.

    The difference says how far a class holds. The ratio guides the search: where the black box is sure
    of itself every difference rounds to the same 1.0, and the ratio still points the way.
    """
    rows = np.arange(len(answer))
    own = answer[rows, label]
    others = answer.copy()
    others[rows, label] = -np.inf
    other = others.max(axis=1)
    difference = own - other
    tiny = np.finfo(np.float64).tiny
    ratio = np.log(np.maximum(own, tiny)) - np.log(np.maximum(other, tiny))
    lost_tie = (difference == 0) & (others.argmax(axis=1) < label)
    return np.where(lost_tie, -tiny, difference), ratio


def _ask(search: _Search, points: Matrix, label: Ints) -> tuple[Matrix, Matrix, Ints]:
    """The margin of the wanted outcome at each point, the score that guides towards it, and the class there."""
    answer = probabilities(search.black_box, points)
    margin, score = _margins(answer, label)
    return search.sign * margin, search.sign * score, answer.argmax(axis=1)


def _find(search: _Search) -> tuple[Matrix, Matrix, Ints, Ints]:
    """The point found for each row, its margin, its class, and how many features it changed."""
    point, margin, order = _grow(search)
    found = np.flatnonzero(margin >= search.enough)
    # where kappa was out of reach, the margin that was reached is kept
    _shrink(search, point, order, np.minimum(search.goal, margin), found)
    winner = search.label.copy()
    if len(found):
        margin[found], _, winner[found] = _ask(search, point[found], search.label[found])
    changes: Ints = (point != search.start).sum(axis=1)
    return point, margin, winner, changes


def _grow(search: _Search) -> tuple[Matrix, Matrix, Ints]:
    """Change the best feature, again and again, until kappa is reached or nothing helps.

    Returns the points, their margins, and the features changed in order (-1 where there are fewer).
    """
    point = search.start.copy()
    rows, width = point.shape
    order = np.full((rows, search.limit), -1, dtype=np.int64)
    margin, _, _ = _ask(search, point, search.label)
    known = np.full((rows, width), np.inf)
    active = margin < search.goal
    for step in range(search.limit):
        waiting = np.flatnonzero(active)
        asked = width if step == 0 else min(width, search.settings.shortlist)
        block = max(1, rows_in_a_block(search.black_box) // (asked * search.n_options))
        for begin in range(0, len(waiting), block):
            here = waiting[begin : begin + block]
            feature, value, new_margin = _best_change(search, here, point, margin, known, asked)
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
    search: _Search, rows: Ints, point: Matrix, margin: Matrix, known: Matrix, asked: int
) -> tuple[Ints, Matrix, Matrix]:
    """For each row the feature to change (-1: none left), its new value and the margin there.

    Among candidates that reach kappa the shortest move wins; otherwise the best score, or the best
    margin once the class holds. `known` keeps each feature's best score for the next shortlist.
    """
    listed = np.argsort(-known[rows], axis=1, kind="stable")[:, :asked]
    values = np.take_along_axis(search.options(rows), listed[:, :, None], axis=1)
    open_ = (np.take_along_axis(known[rows], listed, axis=1) > -np.inf)[:, :, None] & ~np.isnan(values)
    at, slot, option = np.nonzero(open_)
    candidates = point[rows[at]]
    candidates[np.arange(len(at)), listed[at, slot]] = values[at, slot, option]
    margins = np.full(values.shape, -np.inf)
    scores = np.full(values.shape, -np.inf)
    if len(at):
        margins[at, slot, option], scores[at, slot, option], _ = _ask(search, candidates, search.label[rows[at]])
    known[rows[:, None], listed] = scores.max(axis=2)
    moves = np.abs(values - np.take_along_axis(search.start[rows], listed, axis=1)[:, :, None])
    moves /= search.scale[listed][:, :, None]
    holds = (margin[rows] >= search.enough[rows])[:, None, None]
    reaches = margins >= search.goal[rows][:, None, None]
    key = np.where(holds, margins, scores)
    key = np.where(reaches.any(axis=(1, 2), keepdims=True), np.where(reaches, -moves, -np.inf), key)
    best = key.reshape(len(rows), -1).argmax(axis=1)
    slot, option = np.divmod(best, values.shape[2])
    each = np.arange(len(rows))
    feature = np.where(open_.any(axis=(1, 2)), listed[each, slot], -1)
    return feature, values[each, slot, option], margins[each, slot, option]


def _shrink(search: _Search, point: Matrix, order: Ints, goal: Matrix, found: Ints) -> None:
    """Bring each changed feature back towards the start, all the way or by bisection, keeping the margin `goal`."""
    for step in range(order.shape[1]):
        rows = found[order[found, step] >= 0]
        if not len(rows):
            return
        feature = order[rows, step]
        near, far = search.start[rows, feature], point[rows, feature]
        back = _keeps(search, point, rows, feature, near, goal)
        point[rows[back], feature[back]] = near[back]
        rows, feature, near, far = rows[~back], feature[~back], near[~back], far[~back]
        for _ in range(search.settings.bisections):
            middle = near / 2 + far / 2
            keeps = _keeps(search, point, rows, feature, middle, goal)
            far, near = np.where(keeps, middle, far), np.where(keeps, near, middle)
        point[rows, feature] = far


def _keeps(search: _Search, point: Matrix, rows: Ints, feature: Ints, value: Matrix, goal: Matrix) -> Bools:
    """Whether the margin stays at `goal` with one feature of each row set to `value`."""
    if not len(rows):
        return np.zeros(0, dtype=bool)
    trial = point[rows]
    trial[np.arange(len(rows)), feature] = value
    margin, _, _ = _ask(search, trial, search.label[rows])
    return margin >= goal[rows]
