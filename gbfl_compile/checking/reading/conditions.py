"""Conditions as every reader builds them: comparisons of one feature with one number, joined by and, or and not.

What a comparison answers on NaN is IEEE 754's: false, and true for `!=`. A language that says otherwise (SQL does)
settles that before it comes here, or with `missing` and `present`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeAlias

from gbfl_compile.checking.reading.nodes import And, Condition, Not, Or, Test, Unread
from gbfl_compile.checking.reading.work_limit import pay
from gbfl_compile.ir.intervals import Values, above, below

Comparison: TypeAlias = Literal["<", "<=", ">", ">=", "==", "!="]

TRUE = And(())
FALSE = Or(())

MIRRORED: Mapping[Comparison, Comparison] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
"""`1 < x` is `x > 1`."""

ON_NUMBERS: Mapping[Comparison, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def constant(holds: bool) -> Condition:
    """A condition that always holds, or never."""
    return TRUE if holds else FALSE


def compare(feature: int, comparison: Comparison, bound: float) -> Condition:
    """`x <comparison> bound` for one feature; infinite bounds and NaN mean what they mean.

    >>> compare(0, "<", 1.0)
    Test(feature=0, values=(Values(least=-inf, most=0.9999999999999999, missing=False),))
    """
    if math.isnan(bound):
        return constant(comparison == "!=")
    ranges = [piece for piece in _ranges(comparison, bound + 0.0) if piece.has_numbers]
    if comparison == "!=":
        ranges.append(Values(math.inf, -math.inf, missing=True))
    return Test(feature, tuple(ranges)) if ranges else FALSE


def _ranges(comparison: Comparison, bound: float) -> tuple[Values, ...]:
    """The numbers that satisfy a comparison; nothing lies below minus infinity or above infinity."""
    nothing = Values(math.inf, -math.inf, missing=False)
    less = nothing if bound == -math.inf else Values(-math.inf, below(bound), missing=False)
    more = nothing if bound == math.inf else Values(above(bound), math.inf, missing=False)
    match comparison:
        case "<":
            return (less,)
        case "<=":
            return (Values(-math.inf, bound, missing=False),)
        case ">":
            return (more,)
        case ">=":
            return (Values(bound, math.inf, missing=False),)
        case "==":
            return (Values(bound, bound, missing=False),)
        case "!=":
            return (less, more)


def compare_with_itself(feature: int, comparison: Comparison) -> Condition:
    """`x == x` asks whether the value is there, `x != x` whether it is missing, `x < x` never holds."""
    match comparison:
        case "==" | "<=" | ">=":
            return present(feature)
        case "!=":
            return missing(feature)
        case "<" | ">":
            return FALSE


def missing(feature: int) -> Condition:
    """The value is missing."""
    return Test(feature, (Values(math.inf, -math.inf, missing=True),))


def present(feature: int) -> Condition:
    """The value is a number."""
    return Test(feature, (Values(missing=False),))


def all_of(parts: Iterable[Condition]) -> Condition:
    """Every part holds; parts that are themselves such are taken apart, and what always holds is left out."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, And) else (part,))]
    if FALSE in flat:
        return FALSE
    return flat[0] if len(flat) == 1 else _small(And(tuple(flat)))


def any_of(parts: Iterable[Condition]) -> Condition:
    """At least one part holds; parts that are themselves such are taken apart, and what never holds is left out."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, Or) else (part,))]
    if TRUE in flat:
        return TRUE
    return flat[0] if len(flat) == 1 else _small(Or(tuple(flat)))


MOST_PARTS = 20_000
"""Of one condition, written out. Parts can be shared, so a condition may be far longer than its text."""


def _small(condition: And | Or) -> Condition:
    """The condition itself, refused where it is too long to compare with another."""
    waiting: list[Condition] = [condition]
    parts = 0
    while waiting:
        match waiting.pop():
            case And(inner) | Or(inner):
                waiting += inner
                parts += len(inner)
            case Not(part):
                waiting.append(part)
        if parts > MOST_PARTS:
            raise Unread(f"a condition of more than {MOST_PARTS} parts")
    pay(parts)
    return condition


def negate(part: Condition) -> Condition:
    """The part does not hold."""
    match part:
        case And(()):
            return FALSE
        case Or(()):
            return TRUE
        case Not(inner):
            return inner
        case _:
            return Not(part)


def same_parts(one: Condition, other: Condition) -> bool:
    """Whether two conditions are written alike; a single part is itself."""
    parts, others = (each.parts if isinstance(each, And) else (each,) for each in (one, other))
    return parts == others


def choose(condition: Condition, then: Condition, otherwise: Condition) -> Condition:
    """`then` where the condition holds, `otherwise` where it does not."""
    if then == otherwise:
        return then
    return any_of((all_of((condition, then)), all_of((negate(condition), otherwise))))
