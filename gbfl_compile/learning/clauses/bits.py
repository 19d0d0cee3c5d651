"""The clause matrix as packed bits: which clause holds on which row, one bit per cell.

30,000 rows and 20,000 clauses are 75 MB; as the floats a learner would copy them to they are 2.4 GB.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.kinds import intervals_in
from gbfl_compile.ir.nodes import Clause, Interval
from gbfl_compile.learning.black_box.ask import Bools, Ints, Matrix

Words: TypeAlias = NDArray[np.uint64]
Comparisons: TypeAlias = dict[tuple[int, float, str], Words]
"""(feature, bound, sign) -> on which rows of a block the comparison holds."""

BLOCK_ROWS = 16_384
"""Rows per block. A multiple of 64, so that blocks meet at word boundaries."""
BLOCK_CLAUSES = 512
"""Clauses counted at once: their words then stay in the processor's cache."""


@dataclass(frozen=True, slots=True)
class Bits:
    """One line of words per clause; bit r % 64 of word r // 64 is row r. Bits beyond the last row are 0."""

    words: Words
    rows: int


def clause_bits(clauses: Sequence[Clause], x: Matrix) -> Bits:
    """Whether each clause holds on each row; NaN is missing and answers `if_missing`."""
    widest = max((atom.feature for clause in clauses for atom in clause.atoms), default=-1)
    if widest >= x.shape[1]:
        raise BadInput(f"a clause asks for feature {widest} and the rows have {x.shape[1]}")
    words = np.zeros((len(clauses), _word_count(len(x))), dtype=np.uint64)
    for begin in range(0, len(x), BLOCK_ROWS):
        block = np.ascontiguousarray(x[begin : begin + BLOCK_ROWS].T)
        place = slice(begin // 64, begin // 64 + _word_count(block.shape[1]))
        comparisons: Comparisons = {}
        for line, clause in zip(words, clauses, strict=True):
            line[place] = _clause_words(clause, block, comparisons)
    return Bits(words, len(x))


def _word_count(rows: int) -> int:
    return (rows + 63) // 64


def pack(column: Bools) -> Words:
    """Truth values as words."""
    padded = np.zeros(_word_count(len(column)) * 64, dtype=bool)
    padded[: len(column)] = column
    return np.packbits(padded, bitorder="little").view("<u8").astype(np.uint64)


def unpack(words: Words, rows: int) -> Bools:
    """Words as truth values."""
    return np.unpackbits(words.astype("<u8").view(np.uint8), count=rows, bitorder="little").astype(bool)


def counts(bits: Bits, mask: Words) -> Ints:
    """On how many rows of `mask` each clause holds."""
    held = np.empty(len(bits.words), dtype=np.int64)
    for begin in range(0, len(bits.words), BLOCK_CLAUSES):
        both = bits.words[begin : begin + BLOCK_CLAUSES] & mask
        held[begin : begin + BLOCK_CLAUSES] = np.bitwise_count(both).sum(axis=1, dtype=np.int64)
    return held


def count(words: Words) -> int:
    """How many bits are set."""
    return int(np.bitwise_count(words).sum(dtype=np.int64))


def _clause_words(clause: Clause, block: Matrix, comparisons: Comparisons) -> Words:
    holds = pack(np.ones(block.shape[1], dtype=bool))
    for atom in intervals_in(clause):
        holds &= _atom_words(atom, block[atom.feature], comparisons)
    return holds


def _atom_words(atom: Interval, values: Matrix, comparisons: Comparisons) -> Words:
    """The atom's words; each comparison with a bound is made once per block."""
    holds = ~_compare(atom.feature, 0.0, "missing", values, comparisons)
    if atom.lo is not None:
        holds &= _compare(atom.feature, atom.lo, ">=" if atom.lo_closed else ">", values, comparisons)
    if atom.hi is not None:
        holds &= _compare(atom.feature, atom.hi, "<=" if atom.hi_closed else "<", values, comparisons)
    return holds | _compare(atom.feature, 0.0, "missing", values, comparisons) if atom.if_missing else holds


_COMPARE: dict[str, Callable[[Matrix, float], Bools]] = {
    ">=": np.greater_equal,
    ">": np.greater,
    "<=": np.less_equal,
    "<": np.less,
    "missing": lambda values, _: np.isnan(values),
}


def _compare(feature: int, bound: float, sign: str, values: Matrix, comparisons: Comparisons) -> Words:
    key = (feature, bound, sign)
    if key not in comparisons:
        comparisons[key] = pack(_COMPARE[sign](values, bound))
    return comparisons[key]
