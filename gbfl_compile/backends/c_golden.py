"""Golden vectors: a few rows with their answers, embedded so that a device can test itself."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from gbfl_compile.backends.c_numbers import Real
from gbfl_compile.ir.evaluate import Answer, evaluate
from gbfl_compile.ir.narrow import float32_at_or_above, float32_at_or_below
from gbfl_compile.ir.nodes import Program
from gbfl_compile.ir.regions import above, below

MOST_VECTORS = 16
MOST_NUMBERS = 2_000
"""Values in all vectors together: a wide program gets fewer rows."""
TRIES = 60
ALWAYS = (math.nan, math.inf, -math.inf, 0.0)


@dataclass(frozen=True, slots=True)
class Golden:
    """A row and what the program answers on it."""

    row: tuple[float, ...]
    answer: Answer


def golden_vectors(program: Program, real: Real) -> list[Golden]:
    """Rows on and beside the program's cuts that reach as many different answers as a few rows can."""
    choose = random.Random(0)  # noqa: S311 - nothing secret
    pools = _pools(program, real)
    width = len(program.features)
    rows = [tuple([value] * width) for value in ALWAYS]
    rows += [tuple(choose.choice(pool) for pool in pools) for _ in range(TRIES)]
    found: dict[tuple[object, ...], Golden] = {}
    for row in rows:
        answer = evaluate(program, row)
        found.setdefault((answer.leaf, answer.held if answer.leaf is None else None), Golden(row, answer))
    return list(found.values())[: max(1, min(MOST_VECTORS, MOST_NUMBERS // width))]


def _pools(program: Program, real: Real) -> list[list[float]]:
    pools: list[list[float]] = [[0.0, math.nan] for _ in program.features]
    for clause in program.clauses:
        for atom in clause.atoms:
            for cut in (atom.lo, atom.hi):
                if cut is not None:
                    pools[atom.feature] += _around(cut, real)
    return pools


def _around(cut: float, real: Real) -> tuple[float, ...]:
    if real == "double":
        return below(cut), cut, above(cut)
    return float32_at_or_below(cut), float32_at_or_above(cut)
