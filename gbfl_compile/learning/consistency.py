"""Local consistency (equations 3-4): counts of predictions, so that every model and target is measured alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gbfl_compile.errors import BadInput
from gbfl_compile.learning.explain.triplets import Triplets


@dataclass(frozen=True, slots=True)
class Consistency:
    """How often a model agrees with the black box at x, at the PP and (by differing) at the PN.

    Each `.._right` has one of the row counts as denominator; a percentage of nothing is None.
    """

    rows: int
    with_pp: int
    with_pn: int
    fidelity_right: int
    """T(x) = B(x)."""
    c_pp_right: int
    """T(PP) = B(x), over rows with a PP."""
    c_pn_right: int
    """T(PN) != B(x), over rows with a PN."""
    c_tb_right: int
    """All three, over rows with a PN."""
    c_tb_all_right: int
    """All three, over all rows; without a PN its condition is left out."""

    @property
    def fidelity(self) -> float | None:
        """Per cent of rows with the black box's class."""
        return _percent(self.fidelity_right, self.rows)

    @property
    def c_pp(self) -> float | None:
        """Per cent of PPs that get the class of their row."""
        return _percent(self.c_pp_right, self.with_pp)

    @property
    def c_pn(self) -> float | None:
        """Per cent of PNs that get another class than their row."""
        return _percent(self.c_pn_right, self.with_pn)

    @property
    def c_tb(self) -> float | None:
        """Per cent of rows with a PN that are consistent at x, PP and PN."""
        return _percent(self.c_tb_right, self.with_pn)

    @property
    def c_tb_all(self) -> float | None:
        """Per cent of all rows that are consistent wherever there is a point."""
        return _percent(self.c_tb_all_right, self.rows)

    def as_dict(self) -> dict[str, int | float | None]:
        """Percentages and counts, ready for JSON."""
        return {
            "c_tb": self.c_tb,
            "c_tb_right": self.c_tb_right,
            "c_tb_of": self.with_pn,
            "c_tb_all": self.c_tb_all,
            "c_tb_all_right": self.c_tb_all_right,
            "c_tb_all_of": self.rows,
            "c_pp": self.c_pp,
            "c_pp_right": self.c_pp_right,
            "c_pp_of": self.with_pp,
            "c_pn": self.c_pn,
            "c_pn_right": self.c_pn_right,
            "c_pn_of": self.with_pn,
            "fidelity": self.fidelity,
            "fidelity_right": self.fidelity_right,
            "fidelity_of": self.rows,
        }


def _percent(right: int, of: int) -> float | None:
    return 100.0 * right / of if of else None


def consistency(
    label: ArrayLike, on_x: ArrayLike, on_pp: ArrayLike, on_pn: ArrayLike, has_pp: ArrayLike, has_pn: ArrayLike
) -> Consistency:
    """Count agreement with `label`, the black box's class of x. Any labels do, as long as all five use the same."""
    expected = np.asarray(label)
    columns = {"on_x": on_x, "on_pp": on_pp, "on_pn": on_pn, "has_pp": has_pp, "has_pn": has_pn}
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    for name, array in arrays.items():
        if array.shape != expected.shape or expected.ndim != 1:
            raise BadInput(f"{name} has shape {array.shape} where label has {expected.shape}: one value per row")
    pp, pn = arrays["has_pp"].astype(bool), arrays["has_pn"].astype(bool)
    right_x = _same(arrays["on_x"], expected)
    right_pp = _same(arrays["on_pp"], expected)
    right_pn = ~_same(arrays["on_pn"], expected)
    whole = right_x & (right_pp | ~pp) & (right_pn | ~pn)
    return Consistency(
        rows=len(expected),
        with_pp=int(pp.sum()),
        with_pn=int(pn.sum()),
        fidelity_right=int(right_x.sum()),
        c_pp_right=int((right_pp & pp).sum()),
        c_pn_right=int((right_pn & pn).sum()),
        c_tb_right=int((whole & pn).sum()),
        c_tb_all_right=int(whole.sum()),
    )


def consistency_on(triplets: Triplets, predict: Callable[[NDArray[np.float64]], ArrayLike]) -> Consistency:
    """The consistency of `predict` on x, PP and PN."""
    on_x, on_pp, on_pn = (predict(points) for points in (triplets.x, triplets.pp, triplets.pn))
    return consistency(triplets.label, on_x, on_pp, on_pn, triplets.has_pp, triplets.has_pn)


def _same(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(left == right, dtype=bool)
