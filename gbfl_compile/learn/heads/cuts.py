"""Where a feature may be cut: at values the explanations point at, spelled with as few decimals as tell them apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gbfl_compile.learn.black_box import Matrix
from gbfl_compile.learn.explanations import Explanations


def explained_cuts(e: Explanations, base: Matrix, per_role: int) -> tuple[Matrix, ...]:
    """For each feature quantiles of x, of restored PP values and of moved PN values, and cuts about the base."""
    x, pp, pn = e.x, e.pp, e.pn
    return tuple(
        _cuts_of_feature((x[:, j], pp[pp[:, j] != base[j], j], pn[pn[:, j] != x[:, j], j]), float(base[j]), per_role)
        for j in range(x.shape[1])
    )


def _cuts_of_feature(roles: Sequence[Matrix], base: float, per_role: int) -> Matrix:
    levels = (np.arange(per_role) + 0.5) / per_role
    wished = [np.array([base])]
    for values in roles:
        if len(values):
            wished.append(np.quantile(values, levels, method="nearest") if len(values) > per_role else values)
    seen = np.unique(np.concatenate((*roles, [base])))
    above = np.searchsorted(seen, np.unique(np.concatenate(wished)))
    above = np.union1d(above, np.searchsorted(seen, base) + 1)
    above = above[(above > 0) & (above < len(seen))]
    return _shortest_between(seen[above - 1], seen[above])


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
