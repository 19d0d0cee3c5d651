"""A second prover that shares nothing with the first: z3's own floating-point theory, one formula, no cells.

Slow, and only a second opinion: it says whether some row gets different labels, and which.
"""

from __future__ import annotations

import importlib
import math
from typing import Any, assert_never

from gbfl_compile.checking.reading.nodes import And, Ask, Condition, Not, PointDecision, Reading, StepDecision, Test
from gbfl_compile.checking.reading.nodes import Or as AnyOf


def rows_that_differ(a: Reading, b: Reading, budget_seconds: float = 60.0) -> list[float] | bool | None:
    """A row (NaN is missing) with different labels, False where z3 shows that there is none, None where it gives up.

    Both are read over float32 values where either is a float32 reading.
    """
    z3: Any = importlib.import_module("z3")
    single = "float32" in (a.dtype, b.dtype)
    sort = z3.FPSort(8, 24) if single else z3.FPSort(11, 53)
    row = [z3.FP(f"x{index}", sort) for index in range(len(a.features))]
    solver = z3.Solver()
    solver.set("timeout", max(1, int(budget_seconds * 1000)))
    solver.add(_winner(z3, a, row) != _winner(z3, b, row))
    answer = solver.check()
    if answer == z3.unsat:
        return False
    if answer != z3.sat:
        return None
    model = solver.model()
    return [_number(z3, model.eval(value, model_completion=True)) for value in row]


def _winner(z3: Any, reading: Reading, row: list[Any]) -> Any:
    match reading.decision:
        case StepDecision(steps):
            found: dict[int, Any] = {}
            for index in reversed(range(len(steps))):
                step = steps[index]
                if isinstance(step, Ask):
                    asked = _condition(z3, step.condition, row)
                    found[index] = z3.If(asked, found[step.then], found[step.otherwise])
                else:
                    found[index] = z3.IntVal(step.winner)
            return found[0]
        case PointDecision():
            return _most_points(z3, reading.decision, row)
        case _:
            assert_never(reading.decision)


def _most_points(z3: Any, scored: PointDecision, row: list[Any]) -> Any:
    holds = [_condition(z3, condition, row) for condition, _ in scored.terms]
    scores = [
        z3.IntVal(bias) + z3.Sum([z3.If(h, points[c], 0) for h, (_, points) in zip(holds, scored.terms, strict=True)])
        for c, bias in enumerate(scored.bias)
    ]
    best, winner = scores[0], z3.IntVal(0)
    for c, score in enumerate(scores[1:], start=1):
        ahead = score > best if scored.tie_to == "lower" else score >= best
        best, winner = z3.If(ahead, score, best), z3.If(ahead, z3.IntVal(c), winner)
    return winner


def _condition(z3: Any, condition: Condition, row: list[Any]) -> Any:
    match condition:
        case Test(feature, values):
            return z3.Or([_in_range(z3, row[feature], piece.least, piece.most, piece.missing) for piece in values])
        case And(parts):
            return z3.And([_condition(z3, part, row) for part in parts])
        case AnyOf(parts):
            return z3.Or([_condition(z3, part, row) for part in parts])
        case Not(part):
            return z3.Not(_condition(z3, part, row))
        case _:
            assert_never(condition)


def _in_range(z3: Any, value: Any, least: float, most: float, missing: bool) -> Any:
    """Comparisons are false for NaN by themselves.

    A float32 value is compared with float32 bounds: z3 rounds the doubles, the lower one up and the upper one down,
    which no float32 value can tell from the doubles themselves.
    """
    double = z3.FPSort(11, 53)
    ends = [z3.FPVal(least, double), z3.FPVal(most, double)]
    if value.sort() != double:
        ways = (z3.RoundTowardPositive(), z3.RoundTowardNegative())
        ends = [z3.fpFPToFP(way, end, value.sort()) for way, end in zip(ways, ends, strict=True)]
    inside = z3.And(z3.fpGEQ(value, ends[0]), z3.fpLEQ(value, ends[1]))
    return z3.Or(inside, z3.fpIsNaN(value)) if missing else inside


def _number(z3: Any, value: Any) -> float:
    if value.isNaN():
        return math.nan
    if value.isInf():
        return -math.inf if value.isNegative() else math.inf
    if value.isZero():
        return 0.0
    bits = z3.simplify(z3.fpToIEEEBV(value)).as_long()
    exponent_bits, fraction_bits = value.ebits(), value.sbits() - 1
    fraction, rest = bits & ((1 << fraction_bits) - 1), bits >> fraction_bits
    exponent, negative = rest & ((1 << exponent_bits) - 1), rest >> exponent_bits
    bias = (1 << (exponent_bits - 1)) - 1
    whole = fraction if exponent == 0 else fraction | (1 << fraction_bits)
    size = math.ldexp(whole, max(exponent, 1) - bias - fraction_bits)
    return -size if negative else size
