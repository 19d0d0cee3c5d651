"""What equations 1 and 2 and the domain allow an explanation to do to each feature of each row."""

from __future__ import annotations

import numpy as np

from gbfl_compile.learning.black_box.ask import Bools, Ints, Matrix
from gbfl_compile.learning.explain.domain import Domain, Kind, nearest


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
