"""Comparisons of one feature, with NULL and NaN as the engine has them: where they are true, where they are false."""

from __future__ import annotations

import math

from gbfl_compile.check.readers.conditions import Comparison
from gbfl_compile.check.readers.sql_engines import Nan
from gbfl_compile.check.readers.sql_logic import EVERY_NUMBER, FALSE, Ranges, Truth, among, known, outside, tidy
from gbfl_compile.ir.regions import above, below


def compared(nan: Nan, feature: int, comparison: Comparison, bound: float) -> Truth:
    """`x <comparison> bound` as an engine with this order of NaN answers it."""
    if math.isnan(bound):
        return _compared_with_nan(nan, feature, comparison)
    numbers = _numbers(comparison, bound)
    nan_holds = comparison in (">", ">=", "!=") if nan == "greatest" else comparison == "!="
    if nan == "none":
        return Truth(among(feature, numbers, False, False), among(feature, outside(tidy(numbers)), False, False))
    return Truth(
        among(feature, numbers, False, nan_holds), among(feature, outside(tidy(numbers)), False, not nan_holds)
    )


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
    return Truth(
        among(feature, EVERY_NUMBER if numbers_hold else (), False, nan_holds),
        among(feature, () if numbers_hold else EVERY_NUMBER, False, not nan_holds),
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
    return known(among(feature, (), True, nan == "none"))
