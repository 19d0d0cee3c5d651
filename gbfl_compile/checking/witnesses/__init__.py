"""Rows chosen so that a wrong program gives itself away on one of them.

For every atom, rows that reach it with everything else decided and, where the prover finds one, on which a slip in the
atom changes the label: the value next to each bound, infinite, zero and missing. Then each feature missing alone,
extremes of every kind, and random mixtures of bounds. A random row almost never lies on a bound; each of these does.
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import assert_never

import numpy as np

from gbfl_compile.checking.prove.cells import Dtype, after, before
from gbfl_compile.checking.witnesses.rule_set import rule_set_rows
from gbfl_compile.checking.witnesses.search import bounds_of, cells_around, tree_rows, values_of_rows
from gbfl_compile.checking.witnesses.words import possible_rows, with_lookalikes
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.float32 import LARGEST, narrow
from gbfl_compile.ir.kinds import Codebook, codebook
from gbfl_compile.ir.nodes import Program, Scorecard, Tree

NEGATIVE_NAN = math.copysign(math.nan, -1.0)
"""What 0.0 / 0.0 gives on x86: engines that order floats totally put it below all numbers."""

PAYLOAD_NAN = float(struct.unpack("<d", struct.pack("<Q", 0x7FFC_0000_0000_07A2))[0])
"""A NaN with a payload, as R writes NA; one bit of the payload survives in float32."""

NANS = (math.nan, NEGATIVE_NAN, PAYLOAD_NAN)

EXTREMES = (0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308, math.inf, -math.inf, *NANS)
FLOAT32_EXTREMES = (0.0, -0.0, 2.0**-149, -(2.0**-149), LARGEST, -LARGEST, math.inf, -math.inf, *NANS)
"""The zeros, the smallest denormals, the largest numbers, the infinities and every kind of NaN."""

MIXTURES = 500


@dataclass(frozen=True, slots=True)
class WitnessSet:
    """The rows to run, and the places without one."""

    rows: Matrix
    """One row per line, columns as in `program.features`. Missing values are NaNs of several kinds."""
    unreachable: tuple[str, ...]
    """Places that no row reaches: this was shown."""
    given_up: tuple[str, ...]
    """Places where the search stopped early: a slip there may go unseen."""
    book: Codebook
    """The texts of the codes in the rows: the program's own, and others that are easily mistaken for them."""


def witnesses(program: Program, seed: int = 0) -> Matrix:
    """The rows to run on a target that takes every double; the same rows every time."""
    return find_witnesses(program, seed).rows


@lru_cache(maxsize=8)
def find_witnesses(program: Program, seed: int = 0, dtype: Dtype = "float64") -> WitnessSet:
    """The rows that the program alone calls for; float32 ones for an artifact that takes those.

    Rounded to float32, the rows around a double bound would miss the float32s around it, and intervals too short to
    hold a float32 would only meet rows that lie in none of their other intervals.
    """
    choose = random.Random(seed)  # noqa: S311 - nothing secret
    program = narrow(program) if dtype == "float32" else program
    cells = cells_around(program, dtype)
    match program.decision:
        case Tree():
            search = tree_rows(program, program.decision, cells, choose)
        case Scorecard():
            search = rule_set_rows(program, program.decision, cells, choose)
        case _:
            assert_never(program.decision)
    rows = values_of_rows(cells, search.rows)
    rows += _other_zeros(rows)
    rows += list(_other_nans(rows))
    pools = value_pools(program, dtype)
    rows += _edge_rows(pools, dtype)
    rows += [[choose.choice(pool) for pool in pools] for _ in range(MIXTURES)]
    book = codebook(program)
    if program.kinds:
        book = with_lookalikes(program)
        rows = possible_rows(program, rows, book)
    unique = {np.array(row).tobytes(): row for row in rows}
    matrix = np.array(list(unique.values()), dtype=np.float64).reshape(-1, len(program.features))
    matrix.setflags(write=False)  # shared by all that ask for it
    return WitnessSet(matrix, tuple(search.unreachable), tuple(search.given_up), book)


def value_pools(program: Program, dtype: Dtype = "float64") -> list[list[float]]:
    """For each feature the values worth trying: each bound and its neighbours, and the extremes."""
    pools: list[list[float]] = [list(_extremes(dtype)) for _ in program.features]
    book = codebook(program)
    for clause in program.clauses:
        for atom in clause.atoms:
            for bound in bounds_of(atom, book):
                pools[atom.feature] += (before(bound, dtype), bound, after(bound, dtype))
    return pools


def _extremes(dtype: Dtype) -> tuple[float, ...]:
    return FLOAT32_EXTREMES if dtype == "float32" else EXTREMES


def _other_zeros(rows: list[list[float]]) -> list[list[float]]:
    """Rows with a zero again with the other one: -0.0 equals 0.0 in every target or the target is wrong."""
    return [[-value if value == 0.0 else value for value in row] for row in rows if 0.0 in row]


def _other_nans(rows: list[list[float]]) -> Iterator[list[float]]:
    """Rows with a missing value again with other NaNs, in turn: every NaN is a missing value."""
    for number, row in enumerate(rows):
        if any(map(math.isnan, row)):
            other = (NEGATIVE_NAN, PAYLOAD_NAN)[number % 2]
            yield [other if math.isnan(value) else value for value in row]


def _edge_rows(pools: list[list[float]], dtype: Dtype) -> list[list[float]]:
    """All features at one extreme, and each feature alone at each extreme."""
    width = len(pools)
    rows = [[value] * width for value in _extremes(dtype)]
    finite = [sorted(filter(math.isfinite, pool)) for pool in pools]
    ordinary = [values[len(values) // 2] for values in finite]
    for feature in range(width):
        rows += [[*ordinary[:feature], value, *ordinary[feature + 1 :]] for value in _extremes(dtype)]
    return rows
