"""A second prover that shares nothing with the first: z3's own floating-point theory, one formula, no cells.

Slow, and only a second opinion: it says whether some row gets different labels, and which.
"""

from __future__ import annotations

import importlib
import math
from typing import Any, assert_never

from gbfl_compile.checking.reading.nodes import And, Ask, Condition, Not, PointDecision, Reading, StepDecision, Test
from gbfl_compile.checking.reading.nodes import Or as AnyOf
from gbfl_compile.ir.nodes import Leaf, OneOf, Program, Scorecard


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


def programs_differ(a: Program, b: Program, budget_seconds: float = 60.0) -> bool | None:
    """Whether some row of values gets different labels; None where z3 gives up.

    Straight from the programs, without codes: texts are of a sort of their own, of which z3 knows nothing but that those
    which are written differ. Days and microseconds are integers of the calendar, and missing is a truth of its own.
    """
    z3: Any = importlib.import_module("z3")
    text = z3.DeclareSort("Text")
    written = {
        value
        for clause in (*a.clauses, *b.clauses)
        for atom in clause.atoms
        if isinstance(atom, OneOf)
        for value in atom.values
    }
    texts = {value: z3.Const(f"t{place}", text) for place, value in enumerate(sorted(written))}
    solver = z3.Solver()
    solver.set("timeout", max(1, int(budget_seconds * 1000)))
    if len(texts) > 1:
        solver.add(z3.Distinct(list(texts.values())))
    row = []
    for feature in range(len(a.features)):
        kind, missing = a.kind(feature), z3.Bool(f"missing{feature}")
        if kind == "number":
            value = z3.FP(f"x{feature}", z3.FPSort(11, 53))
            solver.add(missing == z3.fpIsNaN(value))
        elif kind in ("date", "timestamp"):
            value = z3.Int(f"x{feature}")
            ends = (-719162, 2932896) if kind == "date" else (-(2**53), 2**53)
            solver.add(value >= ends[0], value <= ends[1])
        else:
            value = z3.Const(f"x{feature}", text)
        row.append((value, missing))
    solver.add(_label(z3, a, row, texts) != _label(z3, b, row, texts))
    answer = solver.check()
    return True if answer == z3.sat else False if answer == z3.unsat else None


def _label(z3: Any, program: Program, row: list[Any], texts: dict[str, Any]) -> Any:
    holds = [z3.And([_atom(z3, program, atom, row, texts) for atom in clause.atoms]) for clause in program.clauses]
    if isinstance(program.decision, Scorecard):
        terms = tuple(zip(holds, program.decision.points, strict=True))
        return _winner_of_points(z3, program.decision.bias, terms)
    found: dict[int, Any] = {}
    for index in reversed(range(len(program.decision.nodes))):
        node = program.decision.nodes[index]
        if isinstance(node, Leaf):
            found[index] = z3.IntVal(node.winner)
        else:
            found[index] = z3.If(holds[node.clause], found[node.then], found[node.otherwise])
    return found[0]


def _winner_of_points(z3: Any, bias: tuple[int, ...], terms: tuple[Any, ...]) -> Any:
    best, winner = None, None
    for c, start in enumerate(bias):
        score = z3.IntVal(start) + z3.Sum([z3.If(h, z3.IntVal(points[c]), z3.IntVal(0)) for h, points in terms])
        ahead = z3.BoolVal(True) if best is None else score > best
        best, winner = (
            (score, z3.IntVal(c)) if best is None else (z3.If(ahead, score, best), z3.If(ahead, z3.IntVal(c), winner))
        )
    return winner


def _atom(z3: Any, program: Program, atom: Any, row: list[Any], texts: dict[str, Any]) -> Any:
    value, missing = row[atom.feature]
    if isinstance(atom, OneOf):
        listed = z3.Or([value == texts[each] for each in atom.values])
        inside = z3.Not(listed) if atom.negated else listed
    else:
        is_number = program.kind(atom.feature) == "number"
        parts = []
        for bound, closed, is_low in ((atom.lo, atom.lo_closed, True), (atom.hi, atom.hi_closed, False)):
            if bound is None:
                continue
            if is_number:
                end = z3.FPVal(bound, value.sort())
                sign = {
                    (True, True): z3.fpGEQ,
                    (True, False): z3.fpGT,
                    (False, True): z3.fpLEQ,
                    (False, False): z3.fpLT,
                }
                parts.append(sign[is_low, closed](value, end))
            else:
                end = z3.IntVal(int(bound))  # days and microseconds are whole
                near = value >= end if is_low else value <= end
                parts.append(near if closed else z3.And(near, value != end))
        inside = z3.And(parts)
    return z3.If(missing, z3.BoolVal(atom.if_missing), inside)


def _winner(z3: Any, reading: Reading, row: list[Any]) -> Any:
    match reading.decision:
        case StepDecision(steps):
            found: dict[int, Any] = {}
            for index in reversed(range(len(steps))):
                step = steps[index]
                if isinstance(step, Ask):
                    condition = _condition(z3, step.condition, row)
                    found[index] = z3.If(condition, found[step.then], found[step.otherwise])
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
