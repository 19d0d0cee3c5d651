"""Rows chosen so that a wrong program gives itself away on one of them.

For every atom asked anywhere, rows that get there with everything else decided and, where the prover finds one, on
which a slip in the atom changes the label: the value next to each bound, infinite, zero and missing. Then each feature
missing on its own, extremes of every kind, and random mixtures of cuts. A random row almost never lies on a cut; each
of these does.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import assert_never

import numpy as np

from gbfl_compile.check.cells import Dtype, after, before
from gbfl_compile.check.witness_points import rule_set_rows
from gbfl_compile.check.witness_search import cells_around, tree_rows, values_of_rows
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.narrow import narrow
from gbfl_compile.ir.nodes import Program, Scorecard, Tree

EXTREMES = (0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308, math.inf, -math.inf, math.nan)
MIXTURES = 500


@dataclass(frozen=True, slots=True)
class Witnesses:
    """The rows to run, and what has none."""

    rows: Matrix
    """One a line, columns as in `program.features`."""
    unreachable: tuple[str, ...]
    """Places that were shown to be reached by no row."""
    given_up: tuple[str, ...]
    """Places where the search stopped early: a slip there may go unseen."""


def witnesses(program: Program, seed: int = 0) -> Matrix:
    """The rows to run, one a line, columns as in `program.features`; the same rows every time."""
    return find_witnesses(program, seed).rows


def find_witnesses(program: Program, seed: int = 0, dtype: Dtype = "float64") -> Witnesses:
    """The rows to run, and for which places none were found; float32 ones for an artifact that takes those.

    Rounded to float32, the rows around a double bound would miss the float32s around it, and intervals too short to
    hold one would be asked by rows in none of their other intervals.
    """
    choose = random.Random(seed)  # noqa: S311 - nothing secret
    program = narrow(program) if dtype == "float32" else program
    cells = cells_around(program, dtype)
    match program.decision:
        case Tree():
            found = tree_rows(program, program.decision, cells, choose)
        case Scorecard():
            found = rule_set_rows(program, program.decision, cells, choose)
        case _:
            assert_never(program.decision)
    rows = values_of_rows(cells, found.rows)
    rows += _signed_zeros(rows)
    pools = value_pools(program, dtype)
    rows += _edge_rows(pools)
    rows += [[choose.choice(pool) for pool in pools] for _ in range(MIXTURES)]
    unique = {np.array(row).tobytes(): row for row in rows}
    matrix = np.array(list(unique.values()), dtype=np.float64).reshape(-1, len(program.features))
    return Witnesses(matrix, tuple(found.unreachable), tuple(found.given_up))


def value_pools(program: Program, dtype: Dtype = "float64") -> list[list[float]]:
    """For each feature the values worth trying: each cut and its neighbours, and the extremes."""
    pools: list[list[float]] = [list(EXTREMES) for _ in program.features]
    for clause in program.clauses:
        for atom in clause.atoms:
            for cut in (atom.lo, atom.hi):
                if cut is not None:
                    pools[atom.feature] += (before(cut, dtype), cut, after(cut, dtype))
    return pools


def _signed_zeros(rows: list[list[float]]) -> list[list[float]]:
    """Rows with a zero again with the other one: -0.0 equals 0.0 in every target or the target is wrong."""
    return [[-value if value == 0.0 else value for value in row] for row in rows if 0.0 in row]


def _edge_rows(pools: list[list[float]]) -> list[list[float]]:
    """All features at one extreme, and each feature alone at each extreme."""
    width = len(pools)
    rows = [[value] * width for value in EXTREMES]
    ordinary = [sorted(value for value in pool if math.isfinite(value))[len(pool) // 2 - 2] for pool in pools]
    for feature in range(width):
        rows += [[*ordinary[:feature], value, *ordinary[feature + 1 :]] for value in EXTREMES]
    return rows
