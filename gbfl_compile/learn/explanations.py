"""What an explainer is given and what it gives back: each row with its PP, its PN and what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.errors import BadInput
from gbfl_compile.learn.black_box import BlackBox, Bools, Ints, Matrix
from gbfl_compile.triplets import Triplets


@dataclass(frozen=True, slots=True)
class Domain:
    """Where explanations may go: base values b, bounds [L, U] and a name for each feature."""

    base: Matrix
    lower: Matrix
    upper: Matrix
    features: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanations:
    """Each row's pertinent positive and pertinent negative. Where none was found the row repeats x."""

    x: Matrix
    pp: Matrix
    pn: Matrix
    has_pp: Bools
    has_pn: Bools
    label: Ints
    """The black box's class of x, as an index."""
    pn_label: Ints
    """The black box's class of the PN; of x where there is no PN."""
    pp_margin: Matrix
    """C(y) - max of the others at the PP."""
    pn_margin: Matrix
    """Max of the others - C(y) at the PN; negative where there is no PN."""
    pp_is_base: Bools
    """The base point alone already has the class with its margin: an empty PP."""
    queries: int
    features: tuple[str, ...]

    def counts(self) -> dict[str, int]:
        """How many were found, how many were not, and what it cost."""
        rows = len(self.x)
        pp, pn = int(self.has_pp.sum()), int(self.has_pn.sum())
        return {
            "rows": rows,
            "pp_found": pp,
            "pp_not_found": rows - pp,
            "pp_is_base": int(self.pp_is_base.sum()),
            "pn_found": pn,
            "pn_not_found": rows - pn,
            "queries": self.queries,
        }


class Explainer(Protocol):
    """Anything that explains rows: batched, within the domain, keeping the direction rules of equations 1-2."""

    def __call__(self, black_box: BlackBox, x: Matrix, domain: Domain) -> Explanations: ...


def domain_of(
    x: Matrix,
    *,
    base: Any = None,
    bounds: Any = None,
    features: Sequence[str] | None = None,
) -> Domain:
    """The domain of training rows: the median as base, the smallest and largest value as bounds, unless given.

    `base` is one value a feature; `bounds` a pair (lower, upper), each one number or one a feature.
    """
    width = x.shape[1]
    lower, upper = (x.min(axis=0), x.max(axis=0)) if bounds is None else _pair(bounds, width)
    middle = np.median(x, axis=0) if base is None else _one_a_feature(base, width, "base")
    if base is None and bounds is not None:
        middle = np.clip(middle, lower, upper)
    names = tuple(f"x{j}" for j in range(width)) if features is None else tuple(str(name) for name in features)
    for j in range(width):
        if not lower[j] <= upper[j]:
            raise BadInput(f"feature {names[j]}: lower bound {lower[j]} is above upper bound {upper[j]}")
        if not lower[j] <= middle[j] <= upper[j]:
            raise BadInput(f"feature {names[j]}: base {middle[j]} lies outside [{lower[j]}, {upper[j]}]")
    return Domain(middle, lower, upper, names)


def _pair(bounds: Any, width: int) -> tuple[Matrix, Matrix]:
    try:
        lower, upper = bounds
    except (TypeError, ValueError):
        raise BadInput("bounds must be a pair (lower, upper), each one number or one a feature") from None
    return _one_a_feature(lower, width, "lower bound"), _one_a_feature(upper, width, "upper bound")


def _one_a_feature(values: Any, width: int, what: str) -> Matrix:
    try:
        array = np.broadcast_to(np.asarray(values, dtype=np.float64), (width,)).copy()
    except (TypeError, ValueError):
        raise BadInput(f"{what} must be one number, or one number for each of the {width} features") from None
    if not np.isfinite(array).all():
        raise BadInput(f"{what} of feature {int(np.flatnonzero(~np.isfinite(array))[0])} is not a finite number")
    return array


def triplets_of(explanations: Explanations, classes: NDArray[Any]) -> Triplets:
    """The triplets of some explanations, their labels as the user has them."""
    e = explanations
    return Triplets(e.x, e.pp, e.pn, e.has_pp, e.has_pn, np.asarray(classes)[e.label], e.features)
