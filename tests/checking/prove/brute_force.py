"""Every combination of values that any condition can tell apart: slow, plain, and what the prover is judged by."""

import itertools
import math

import numpy as np

from gbfl_compile.checking.prove.findings import differs
from gbfl_compile.checking.reading.evaluate import run_reading
from gbfl_compile.checking.reading.from_program import as_reading
from gbfl_compile.checking.reading.nodes import And, Ask, Not, Or, StepDecision, Test
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.intervals import above, below


def conditions(reading):
    steps = reading.decision.steps if isinstance(reading.decision, StepDecision) else reading.decision.terms
    for step in steps:
        if isinstance(step, Ask):
            yield step.condition
        elif isinstance(step, tuple):
            yield step[0]


def bounds(condition):
    match condition:
        case Test(feature, values):
            for piece in values:
                yield feature, piece.least
                yield feature, piece.most
        case And(parts) | Or(parts):
            for part in parts:
                yield from bounds(part)
        case Not(part):
            yield from bounds(part)


def grid(program, reading, float32=False):
    """Every row worth trying: each bound of either side, its neighbours, a number far off on each side, missing."""
    values = [{-math.inf, 7.7, math.inf} for _ in program.features]
    for side in (as_reading(program), reading):
        for condition in conditions(side):
            for feature, bound in bounds(condition):
                if float32:
                    single = np.float32(bound)
                    near = [single, np.nextafter(single, np.float32(-np.inf)), np.nextafter(single, np.float32(np.inf))]
                    values[feature].update(float(value) for value in near)
                else:
                    values[feature].update((bound, above(bound), below(bound)))
    return itertools.product(*([*sorted(found), math.nan] for found in values))


def seen_by_brute_force(program, reading, aspects, float32=False):
    """The aspects in which some row of the grid differs."""
    found = set()
    for row in grid(program, reading, float32):
        source, target = evaluate(program, row), run_reading(reading, row)
        found |= {aspect for aspect in aspects if differs(program, reading, aspect, source, target)}
    return found
