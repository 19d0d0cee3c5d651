"""The interval that lets some rows in and keeps others out, as near to the approved one as those rows allow.

Rows show a bound only as far as they have values on both sides of it: what they leave open is told with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.auditing.answers import Bits
from gbfl_compile.auditing.wording import exact_text
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.intervals import above, below, values_of
from gbfl_compile.ir.nodes import Closed, Interval

SIGN, MOVED = 1, 2
"""What a change costs when the simplest is sought: open for closed (or missing taken otherwise), and a bound moved."""


@dataclass(frozen=True, slots=True)
class FittingInterval:
    """An interval that fits, what its changes cost, and what the rows leave open."""

    atom: Interval
    cost: int
    left_open: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _IntervalEnd:
    number: float | None
    closed: bool
    cost: int = 0
    left_open: str = ""


def fit_interval(approved: Interval, column: Matrix, wanted: Bits, unwanted: Bits) -> FittingInterval | None:
    """The approved interval, changed where it must be so that it holds on all `wanted` rows and on no `unwanted`."""
    absent = np.isnan(column)
    if_missing = approved.if_missing
    if (absent & wanted).any() or (absent & unwanted).any():
        if_missing = bool((absent & wanted).any())
        if if_missing and (absent & unwanted).any():
            return None
    inside, outside = column[wanted & ~absent], column[unwanted & ~absent]
    if not len(inside):
        return None
    least, most = float(inside.min()), float(inside.max())
    if ((outside >= least) & (outside <= most)).any():
        return None
    lower = _lower(approved, outside[outside < least], least)
    upper = _upper(approved, outside[outside > most], most)
    if lower is None or upper is None:
        return None
    closed = closed_ends(lower.closed, upper.closed)
    atom = replace(approved, lo=lower.number, hi=upper.number, closed=closed, if_missing=if_missing)
    cost = lower.cost + upper.cost + (SIGN if if_missing != approved.if_missing else 0)
    return FittingInterval(atom, cost, tuple(text for text in (lower.left_open, upper.left_open) if text))


def _lower(approved: Interval, outside: NDArray[np.float64], least: float) -> _IntervalEnd | None:
    """A lower bound past what is outside, up to `least`: the approved one, its sign turned, none, or another."""
    past = float(outside.max()) if len(outside) else None

    def fits(first: float) -> bool:
        return first <= least and (past is None or first > past)

    if fits(values_of(approved).least):
        return _IntervalEnd(approved.lo, approved.lo_closed)
    if approved.lo is not None and fits(above(approved.lo) if approved.lo_closed else approved.lo):
        return _IntervalEnd(approved.lo, not approved.lo_closed, SIGN, _other_lower(past, least, approved.lo))
    if past is None:
        remark = "" if least == -np.inf else f"a lower bound up to {exact_text(least)} would fit too"
        return _IntervalEnd(None, approved.lo_closed, MOVED, remark)
    number = simplest_between(above(past), least)
    return None if number is None else _IntervalEnd(number, True, MOVED, _other_lower(past, least, number))


def _upper(approved: Interval, outside: NDArray[np.float64], most: float) -> _IntervalEnd | None:
    """The same for an upper bound."""
    past = float(outside.min()) if len(outside) else None

    def fits(last: float) -> bool:
        return last >= most and (past is None or last < past)

    if fits(values_of(approved).most):
        return _IntervalEnd(approved.hi, approved.hi_closed)
    if approved.hi is not None and fits(below(approved.hi) if approved.hi_closed else approved.hi):
        return _IntervalEnd(approved.hi, not approved.hi_closed, SIGN, _other_upper(most, past, approved.hi))
    if past is None:
        remark = "" if most == np.inf else f"an upper bound from {exact_text(most)} on would fit too"
        return _IntervalEnd(None, approved.hi_closed, MOVED, remark)
    number = simplest_between(above(most), past)
    return None if number is None else _IntervalEnd(number, False, MOVED, _other_upper(most, past, number))


def _other_lower(past: float | None, least: float, remark: float) -> str:
    if past is not None and above(past) == least:
        return ""
    if past is None:
        return f"a lower bound up to {exact_text(least)} would fit too"
    return "" if past == remark == least else f"any lower bound above {exact_text(past)} up to {exact_text(least)} fits"


def _other_upper(most: float, past: float | None, remark: float) -> str:
    if past is not None and above(most) == past:
        return ""
    if past is None:
        return f"an upper bound from {exact_text(most)} on would fit too"
    return "" if past == remark == most else f"any upper bound from {exact_text(most)} to below {exact_text(past)} fits"


def simplest_between(low: float, high: float) -> float | None:
    """The number with the fewest digits from `low` to `high`; an end that is infinite has none.

    >>> simplest_between(59990.2, 60010.0), simplest_between(0.1, 0.1)
    (60000.0, 0.1)
    """
    if not (np.isfinite(low) and np.isfinite(high)):
        return low if np.isfinite(low) else high if np.isfinite(high) else None
    for digits in range(1, 18):
        rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(low))
        if low <= float(rounded) <= high:
            return float(rounded) + 0.0
    return low


def closed_ends(lower: bool, upper: bool) -> Closed:
    """Which ends belong to an interval."""
    if lower:
        return "both" if upper else "left"
    return "right" if upper else "neither"
