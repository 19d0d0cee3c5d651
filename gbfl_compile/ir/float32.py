"""The float32 program: thresholds that are float32 numbers, and the same answer to every float32 row.

A float32 value compared with a float64 threshold answers as it would if the threshold moved to the next float32
on the side that nothing crosses: up for `>=` and `<`, down for `>` and `<=`.
"""

from __future__ import annotations

import math
import struct
from dataclasses import replace

from gbfl_compile.ir.nodes import Clause, Closed, Interval, OneOf, Program

LARGEST = (2.0 - 2.0**-23) * 2.0**127
"""The largest finite float32: beyond it only infinity is left."""

NOWHERE = (1.0, 1.0 + 2.0**-23)
"""Two neighbouring float32s. Doubles lie between them and float32s do not: how "no number" is said."""


def narrow(program: Program) -> Program:
    """The program for float32 rows: every bound is a float32, every float32 row gets the answer it got before.

    On a double that is not a float32 the two may differ: it is a program of its own, with its own digest.
    """
    return replace(program, clauses=tuple(_narrow_clause(clause) for clause in program.clauses))


def _narrow_clause(clause: Clause) -> Clause:
    return Clause(tuple(atom if isinstance(atom, OneOf) else narrow_interval(atom) for atom in clause.atoms))


def narrow_interval(atom: Interval) -> Interval:
    """The interval with float32 bounds that holds the same float32 values.

    >>> narrow_interval(Interval(0, 0.1, 1e300))
    Interval(feature=0, lo=0.10000000149011612, hi=3.4028234663852886e+38, closed='both', if_missing=False)
    """
    lo, lo_closed = _narrow_lo(atom)
    hi, hi_closed = _narrow_hi(atom)
    if lo is not None and hi is not None and (lo > hi or (lo == hi and not (lo_closed and hi_closed))):
        return Interval(atom.feature, *NOWHERE, closed="neither", if_missing=atom.if_missing)
    return Interval(atom.feature, lo, hi, _closed_ends(lo_closed, hi_closed), atom.if_missing)


def _narrow_lo(atom: Interval) -> tuple[float | None, bool]:
    if atom.lo is None:
        return None, atom.lo_closed
    if atom.lo_closed:
        least = float32_at_or_above(atom.lo)
        return (LARGEST, False) if least == math.inf else (least, True)
    most = float32_at_or_below(atom.lo)
    return (-LARGEST, True) if most == -math.inf else (most, False)


def _narrow_hi(atom: Interval) -> tuple[float | None, bool]:
    if atom.hi is None:
        return None, atom.hi_closed
    if atom.hi_closed:
        most = float32_at_or_below(atom.hi)
        return (-LARGEST, False) if most == -math.inf else (most, True)
    least = float32_at_or_above(atom.hi)
    return (LARGEST, True) if least == math.inf else (least, False)


def _closed_ends(lo: bool, hi: bool) -> Closed:
    if lo:
        return "both" if hi else "left"
    return "right" if hi else "neither"


def float32_at_or_above(value: float) -> float:
    """The least float32 that is not below `value`, as a double; infinity where there is none."""
    if value > LARGEST:
        return math.inf
    if value < -LARGEST:
        return -LARGEST if math.isfinite(value) else value
    nearest = float(struct.unpack("<f", struct.pack("<f", value))[0])
    return (nearest if nearest >= value else _next_float32(nearest)) + 0.0  # a zero is spelled 0.0


def _next_float32(value: float) -> float:
    """The float32 after a finite one."""
    if value == 0.0:
        return float(2.0**-149)
    bits = struct.unpack("<i", struct.pack("<f", value))[0]
    return float(struct.unpack("<f", struct.pack("<i", bits + (1 if value > 0 else -1)))[0])


def float32_at_or_below(value: float) -> float:
    """The largest float32 that is not above `value`, as a double; minus infinity where there is none."""
    return -float32_at_or_above(-value) + 0.0
