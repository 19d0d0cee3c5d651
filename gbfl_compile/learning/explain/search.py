"""What all explainers share: settings, how a margin is measured, the query budget, and how each feature may change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from gbfl_compile.errors import BadInput
from gbfl_compile.learning.black_box import BlackBox, Bools, Ints, Matrix, probabilities
from gbfl_compile.learning.explain import Explanations
from gbfl_compile.learning.explain.domain import Domain, Kind, check_domain, nearest
from gbfl_compile.learning.explain.table_values import differ, halfway

WINS = 1e-9
"""A class wins by at least this much: less is a tie that rounding on another machine may turn around."""


@dataclass(frozen=True, slots=True)
class ExplainerSettings:
    """What every explainer should reach; the Domain says what it may do to each feature."""

    kappa: float = 0.5
    """The margin to reach, in probability."""
    max_restored: int | None = None
    """k of equation 1: how many features of a PP may differ from the base; None is no limit."""
    max_moved: int | None = 5
    """k of equation 2: how many features of a PN may differ from x; None is no limit."""
    max_queries: int | None = None
    """How many rows the black box may be queried with in all. Rows are explained in order, each completely, as long as
    one more is sure to fit; `Explanations.not_reached` counts the others."""
    seed: int = 0
    """For explainers that draw at random; `greedy` does not."""

    def dearest(self, domain: Domain) -> int:
        """The most queries to the black box to explain one row, not counting the row itself."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Side:
    """One side, PP or PN, of some rows: the point, whether it is one, its margin and its class."""

    point: Matrix
    holds: Bools
    margin: Matrix
    label: Ints


Find: TypeAlias = Callable[[Matrix, Ints, Matrix], tuple[Side, Side]]
"""Rows, their classes and their margins -> their PPs and PNs."""


def explain_rows(
    black_box: BlackBox, x: Matrix, domain: Domain, settings: ExplainerSettings, find: Find
) -> Explanations:
    """A PP and a PN for each row by `find`, which asks about at most `settings.dearest` rows to explain one.

    With a budget rows are explained in blocks that are sure to fit. A row is explained when what the rows before it
    left covers the dearest one, so which rows are reached depends on neither blocks nor units.
    """
    _check(x, domain, settings)
    before = black_box.queries
    answer = probabilities(black_box, x)
    label: Ints = answer.argmax(axis=1)
    margin_x, _ = margins(answer, label)
    pp, pn, pn_label = x.copy(), x.copy(), label.copy()
    pp_margin, pn_margin = margin_x.copy(), -margin_x
    has_pp, has_pn = np.zeros(len(x), dtype=bool), np.zeros(len(x), dtype=bool)
    reached = 0
    while reached < len(x):
        rows = len(x) - reached
        if settings.max_queries is not None:
            rows = min(rows, (settings.max_queries - (black_box.queries - before)) // settings.dearest(domain))
        if rows < 1:
            break
        block = slice(reached, reached + rows)
        positive, negative = find(x[block], label[block], margin_x[block])
        for side, has, point, margin in ((positive, has_pp, pp, pp_margin), (negative, has_pn, pn, pn_margin)):
            has[block] = side.holds
            point[block][side.holds] = side.point[side.holds]
            margin[block][side.holds] = side.margin[side.holds]
        pn_label[block][negative.holds] = negative.label[negative.holds]
        reached += rows
    return Explanations(
        x=x,
        pp=pp,
        pn=pn,
        has_pp=has_pp,
        has_pn=has_pn,
        label=label,
        pn_label=pn_label,
        pp_margin=pp_margin,
        pn_margin=pn_margin,
        pp_is_base=has_pp & ~differ(pp, np.broadcast_to(domain.base, pp.shape)).any(axis=1),
        queries=black_box.queries - before,
        features=domain.features,
        not_reached=len(x) - reached,
    )


def margins(answer: Matrix, label: Ints) -> tuple[Matrix, Matrix]:
    """C(y) - max of the others, as a difference of probabilities and as a log ratio.

    The difference says by how much a class wins. The ratio guides the search: where the black box is certain,
    every difference rounds to the same 1.0 and the ratio still differs.
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


def ask(search: Any, points: Matrix, label: Ints) -> tuple[Matrix, Matrix, Ints]:
    """The margin of the intended outcome at each point, the score that guides towards it, and the class there."""
    answer = probabilities(search.black_box, points)
    margin, score = margins(answer, label)
    return search.sign * margin, search.sign * score, answer.argmax(axis=1)


def finish(search: Any, point: Matrix, margin: Matrix, take_back: Callable[[Matrix, Ints], None]) -> Side:
    """The points that reach their class, once `take_back` undid in them what their goal and margin leave room for.

    Where kappa was out of reach, the margin that was reached is kept.
    """
    rows = np.flatnonzero(margin >= search.enough)
    take_back(np.minimum(search.goal, margin), rows)
    winner = search.label.copy()
    if len(rows):
        margin[rows], _, winner[rows] = ask(search, point[rows], search.label[rows])
    return Side(point, margin >= search.enough, margin, winner)


def changes_allowed(limit: int | None, width: int) -> int:
    """How many features may change: the limit, where there is one."""
    if limit is not None and limit < 1:
        raise BadInput(f"a limit of {limit} changed features finds nothing: give 1 or more, or None")
    return width if limit is None else min(limit, width)


def widths(domain: Domain) -> Matrix:
    """The width of each feature's range, to compare moves by; 1 for a constant."""
    width = domain.upper - domain.lower
    return np.where(width > 0, width, 1.0)


def _check(x: Matrix, domain: Domain, settings: ExplainerSettings) -> None:
    if x.ndim != 2 or x.shape[1] != len(domain.base):
        raise BadInput(f"rows of shape {x.shape} for a domain of {len(domain.base)} features")
    check_domain(domain)
    wrong = ~np.isfinite(x) if domain.table is None else np.isinf(x)
    if wrong.any():
        row, feature = np.argwhere(wrong)[0]
        raise BadInput(f"row {row}, feature {domain.features[feature]}: only finite values can be explained")
    if not 0 <= settings.kappa < 1:
        raise BadInput(f"kappa {settings.kappa} is not a margin in probability: 0 <= kappa < 1")
    most = settings.max_queries
    if most is not None and most < len(x):
        raise BadInput(f"max_queries {most} does not even cover the classes of the {len(x)} rows: give more, or None")


def pp_values(x: Matrix, domain: Domain) -> Matrix:
    """The value a PP restores each feature to: that of x, as far from the base as bounds and kind allow."""
    values = np.clip(x, domain.lower, domain.upper)
    for j, kind in enumerate(domain.kinds):
        above = values[:, j] >= domain.base[j]
        down, up = (_towards(kind, values[:, j], down=way) for way in (True, False))
        values[:, j] = np.where(above, down, up)
    return values


def free_sides(x: Matrix, domain: Domain) -> tuple[Bools, Bools]:
    """Where a PN may raise a feature and where it may lower it: away from the base, either way at the base itself."""
    may_rise = (x >= domain.base) & (x < domain.upper)
    may_fall = (x <= domain.base) & (x > domain.lower)
    for j, direction in enumerate(domain.directions):
        may_rise[:, j] &= direction != "down"
        may_fall[:, j] &= direction != "up"
    fixed = list(domain.immutable)
    may_rise[:, fixed] = may_fall[:, fixed] = False
    return may_rise, may_fall


def pn_candidates(x: Matrix, domain: Domain, steps: tuple[float, ...]) -> Matrix:
    """Values a PN may try, each a share of the way to the bound: [rows, features, 2 * steps], NaN where there is none.

    For a coded category the share counts codes, not their distance. Values that are equal once rounded to a kind are
    tried once.
    """
    share = np.array(steps)
    may_rise, may_fall = free_sides(x, domain)
    here = x[:, :, None]
    risen = np.minimum(here + (domain.upper - x)[:, :, None] * share, domain.upper[:, None])
    fallen = np.maximum(here - (x - domain.lower)[:, :, None] * share, domain.lower[:, None])
    for j, kind in enumerate(domain.kinds):
        if isinstance(kind, tuple):
            codes = np.array([code for code in kind if domain.lower[j] <= code <= domain.upper[j]])
            risen[:, j], fallen[:, j] = _codes_above(codes, x[:, j], share), _codes_below(codes, x[:, j], share)
        elif kind == "integer":
            risen[:, j], fallen[:, j] = nearest(kind, risen[:, j]), nearest(kind, fallen[:, j])
    risen = np.where(may_rise[:, :, None] & (risen > here), risen, np.nan)
    fallen = np.where(may_fall[:, :, None] & (fallen < here), fallen, np.nan)
    for j, kind in enumerate(domain.kinds):
        if kind != "float":
            risen[:, j], fallen[:, j] = _once(risen[:, j]), _once(fallen[:, j])
    return np.concatenate((risen, fallen), axis=2)


def nearest_allowed(values: Matrix, feature: Ints, domain: Domain) -> Matrix:
    """Each value rounded to the kind of its feature."""
    allowed = values.copy()
    for j, kind in enumerate(domain.kinds):
        if kind != "float":
            here = feature == j
            allowed[here] = nearest(kind, values[here])
    return allowed


def middle_between(near: Matrix, far: Matrix, feature: Ints, domain: Domain) -> Matrix:
    """The value in the middle that each feature can have; `near` or `far` where there is none between them.

    The value of x itself is possible even outside the bounds or the training rows' range; one on the way may not be.
    """
    if (table := domain.table) is None:
        middle = nearest_allowed(near / 2 + far / 2, feature, domain)
        return np.clip(middle, domain.lower[feature], domain.upper[feature])
    return np.clip(halfway(near, far, table.steps[feature]), table.least[feature], table.most[feature])


def bisect_back(
    point: Matrix,
    rows: Ints,
    feature: Ints,
    start: Matrix,
    domain: Domain,
    bisections: int,
    keeps: Callable[[Matrix, Ints], Bools],
) -> None:
    """Move one feature of each row back towards its start, halving the way, as far as `keeps` accepts the points.

    A feature stays where it is if its value is missing, in the row or at the start.
    """
    near, far = start[rows, feature], point[rows, feature]
    for _ in range(bisections):
        middle = middle_between(near, far, feature, domain)
        inside = (np.minimum(near, far) < middle) & (middle < np.maximum(near, far))
        rows, feature = rows[inside], feature[inside]
        near, far, middle = near[inside], far[inside], middle[inside]
        if not len(rows):
            return
        trial = point[rows]
        trial[np.arange(len(rows)), feature] = middle
        kept = keeps(trial, rows)
        point[rows[kept], feature[kept]] = middle[kept]
        far, near = np.where(kept, middle, far), np.where(kept, near, middle)


def restore_fixed(points: Matrix, x: Matrix, domain: Domain) -> None:
    """Put the values of x back where a PN may not have others: immutable features, and moves the wrong way."""
    for j, way in enumerate(domain.directions):
        if way != "both":
            wrong = points[:, j] < x[:, j] if way == "up" else points[:, j] > x[:, j]
            points[wrong, j] = x[wrong, j]
    fixed = list(domain.immutable)
    points[:, fixed] = x[:, fixed]


def round_to_kinds(points: Matrix, domain: Domain, thresholds: Matrix) -> Matrix:
    """Points [.., features] with each feature rounded to its kind, within [L, U] where the kind is discrete.

    A value goes up where its share of the way from the value below to the one above exceeds the threshold.
    """
    values = points.copy()
    for j, kind in enumerate(domain.kinds):
        if kind == "float":
            continue
        inside, at = np.clip(points[..., j], domain.lower[j], domain.upper[j]), thresholds[..., j]
        below = _towards(kind, inside, down=True)
        above = _towards(kind, inside, down=False)
        values[..., j] = np.where(inside - below > at * (above - below), above, below)
    return values


def _towards(kind: Kind, values: Matrix, *, down: bool) -> Matrix:
    """The next value of that kind below, or above; the outermost where there is none."""
    if kind == "float":
        return values
    if kind == "integer":
        return (np.floor(values) if down else np.ceil(values)) + 0.0
    codes = np.array(kind)
    place = np.searchsorted(codes, values, side="right") - 1 if down else np.searchsorted(codes, values, side="left")
    return codes[np.clip(place, 0, len(codes) - 1)]


def _codes_above(codes: Matrix, x: Matrix, share: Matrix) -> Matrix:
    """The code a share of the way up the codes above x, at least the next; x itself where there is none."""
    first = np.searchsorted(codes, x, side="right")
    remaining = len(codes) - first
    steps = np.maximum(1, np.rint(remaining[:, None] * share)).astype(np.int64)
    place = np.minimum(first[:, None] + steps - 1, len(codes) - 1)
    return np.where(remaining[:, None] > 0, codes[place], x[:, None])


def _codes_below(codes: Matrix, x: Matrix, share: Matrix) -> Matrix:
    return -_codes_above(-codes[::-1], -x, share)


def _once(values: Matrix) -> Matrix:
    """Candidates [rows, n] with NaN for each that an earlier one of its row equals."""
    n = values.shape[1]
    earlier = np.tri(n, n, -1, dtype=bool)
    repeated = ((values[:, :, None] == values[:, None, :]) & earlier).any(axis=2)
    return np.where(repeated, np.nan, values)
