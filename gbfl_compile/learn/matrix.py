"""The clause matrix: which clause holds on which row, each bound compared once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Clause, Interval
from gbfl_compile.learn.black_box import Bools, Matrix

BLOCK_ROWS = 16_384


def clause_matrix(clauses: Sequence[Clause], x: Matrix) -> Bools:
    """[rows, clauses]: whether each clause holds on each row; NaN is missing and answers `if_missing`.

    One byte a cell, and columns lie together in memory: whoever fits on it reads column by column.
    """
    widest = max((atom.feature for clause in clauses for atom in clause.atoms), default=-1)
    if widest >= x.shape[1]:
        raise BadInput(f"a clause asks for feature {widest} and the rows have {x.shape[1]}")
    holds = np.empty((len(clauses), len(x)), dtype=bool)
    for begin in range(0, len(x), BLOCK_ROWS):
        block = np.ascontiguousarray(x[begin : begin + BLOCK_ROWS].T)
        known: dict[tuple[int, float, str], Bools] = {}
        for column, clause in zip(holds[:, begin : begin + BLOCK_ROWS], clauses, strict=True):
            column[:] = True
            for atom in clause.atoms:
                _narrow(column, atom, block[atom.feature], known)
    return holds.T


def _narrow(column: Bools, atom: Interval, values: Matrix, known: dict[tuple[int, float, str], Bools]) -> None:
    """Clear the column where the atom does not hold."""
    if atom.if_missing:
        inside = np.ones(len(values), dtype=bool)
        _narrow(inside, Interval(atom.feature, atom.lo, atom.hi, atom.closed), values, known)
        column &= inside | np.isnan(values)
        return
    if atom.lo is None and atom.hi is None:
        column &= ~np.isnan(values)
    if atom.lo is not None:
        column &= _compared(atom.feature, atom.lo, ">=" if atom.lo_closed else ">", values, known)
    if atom.hi is not None:
        column &= _compared(atom.feature, atom.hi, "<=" if atom.hi_closed else "<", values, known)


_COMPARE = {">=": np.greater_equal, ">": np.greater, "<=": np.less_equal, "<": np.less}


def _compared(
    feature: int, bound: float, sign: str, values: Matrix, known: dict[tuple[int, float, str], Bools]
) -> Bools:
    key = (feature, bound, sign)
    if key not in known:
        known[key] = _COMPARE[sign](values, bound)
    return known[key]
