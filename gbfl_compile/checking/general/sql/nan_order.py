"""A feature compared with a number or with itself, by where an engine has NaN in the order of numbers."""

from __future__ import annotations

import math

from gbfl_compile.checking.general.sql.engines import Nan
from gbfl_compile.checking.general.sql.logic import EVERY_NUMBER, FALSE, Ranges, Truth, among, is_known, outside, tidy
from gbfl_compile.checking.reading.conditions import Comparison
from gbfl_compile.ir.intervals import above, below


def compare(nan: Nan, feature: int, comparison: Comparison, bound: float) -> Truth:
    """`x <comparison> bound` as an engine with this order of NaN answers it."""
    if math.isnan(bound):
        return _compared_with_nan(nan, feature, comparison)
    numbers = _numbers(comparison, bound)
    others = outside(tidy(numbers))
    if nan == "none":
        return Truth(among(feature, numbers, False, False), among(feature, others, False, False))
    high = comparison == "!=" if nan == "ieee" else comparison in (">", ">=", "!=")
    low = comparison in ("<", "<=", "!=") if nan == "total" else high
    return Truth(among(feature, numbers, False, high, low), among(feature, others, False, not high, not low))


def _numbers(comparison: Comparison, bound: float) -> Ranges:
    less = () if bound == -math.inf else ((-math.inf, below(bound)),)
    more = () if bound == math.inf else ((above(bound), math.inf),)
    match comparison:
        case "<":
            return less
        case "<=":
            return ((-math.inf, bound),)
        case ">":
            return more
        case ">=":
            return ((bound, math.inf),)
        case "==":
            return ((bound, bound),)
        case "!=":
            return (*less, *more)


def _compared_with_nan(nan: Nan, feature: int, comparison: Comparison) -> Truth:
    if nan == "ieee":
        holds = comparison == "!="
        present = among(feature, EVERY_NUMBER, False, True)
        return Truth(present, FALSE) if holds else Truth(FALSE, present)
    numbers_hold = comparison in ("<", "<=", "!=")
    nan_holds = comparison in ("<=", ">=", "==")
    low_holds = numbers_hold if nan == "total" else nan_holds
    return Truth(
        among(feature, EVERY_NUMBER if numbers_hold else (), False, nan_holds, low_holds),
        among(feature, () if numbers_hold else EVERY_NUMBER, False, not nan_holds, not low_holds),
    )


def compared_with_itself(nan: Nan, feature: int, comparison: Comparison) -> Truth:
    """`x = x` and the like: only NULL and, in IEEE engines, NaN tell."""
    numbers_hold = comparison in ("<=", ">=", "==")
    nan_holds = comparison == "!=" if nan == "ieee" else numbers_hold
    has_nan = nan != "none"
    return Truth(
        among(feature, EVERY_NUMBER if numbers_hold else (), False, has_nan and nan_holds),
        among(feature, () if numbers_hold else EVERY_NUMBER, False, has_nan and not nan_holds),
    )


def is_null(nan: Nan, feature: int) -> Truth:
    """`x IS NULL`; an engine without NaN has stored NULL for it."""
    return is_known(among(feature, (), True, nan == "none"))
