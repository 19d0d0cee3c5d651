"""Numbers as C: hex literals that are the very double, and bounds that ask every float32 what the double would.

A rule program compares doubles. A scorer of float32 rows is a program of its own: each bound moves to the
float32 on the side that leaves the answer of every float32 unchanged, so `x >= 0.1` asks for the smallest
float32 that is at least 0.1. No rounding happens when it runs.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Literal, TypeAlias

from gbfl_compile.ir.nodes import Interval

Real: TypeAlias = Literal["double", "float"]
Comparison: TypeAlias = Literal[">=", ">", "<=", "<"]

LARGEST_FLOAT32 = (2.0 - 2.0**-23) * 2.0**127


@dataclass(frozen=True, slots=True)
class Bound:
    """`x <comparison> value`, false where x is missing."""

    comparison: Comparison
    value: float


def bounds(atom: Interval, real: Real) -> tuple[Bound, ...]:
    """The comparisons of one interval, lower bound first, for inputs of the given type.

    >>> bounds(Interval(0, 0.1, 2.0), "float")
    (Bound(comparison='>=', value=0.10000000149011612), Bound(comparison='<', value=2.0))
    """
    found = []
    if atom.lo is not None:
        found.append(Bound(">=" if atom.lo_closed else ">", atom.lo))
    if atom.hi is not None:
        found.append(Bound("<=" if atom.hi_closed else "<", atom.hi))
    return tuple(found) if real == "double" else tuple(_float32_bound(bound) for bound in found)


def _float32_bound(bound: Bound) -> Bound:
    """The bound on float32 values: `>=` and `<` move the value up, `>` and `<=` down; no float32 lies between.

    Past the largest float32 there is only an infinity, which is said by comparing with that largest one.
    """
    moves_up = bound.comparison in (">=", "<")
    value = float32_at_least(bound.value) if moves_up else -float32_at_least(-bound.value)
    if math.isfinite(value):
        return Bound(bound.comparison, value + 0.0)
    beyond: dict[Comparison, Bound] = {
        ">=": Bound(">", LARGEST_FLOAT32),
        "<": Bound("<=", LARGEST_FLOAT32),
        ">": Bound(">=", -LARGEST_FLOAT32),
        "<=": Bound("<", -LARGEST_FLOAT32),
    }
    return beyond[bound.comparison]


def float32_at_least(value: float) -> float:
    """The smallest float32 (infinity included) that is not below a double."""
    if value > LARGEST_FLOAT32:
        return math.inf
    if value < -LARGEST_FLOAT32:
        return -LARGEST_FLOAT32
    nearest = _as_float32(value)
    return nearest if nearest >= value else _next_float32(nearest)


def _as_float32(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def _next_float32(value: float) -> float:
    """The float32 after a finite one."""
    if value == 0.0:
        return float(2.0**-149)
    bits = struct.unpack("<i", struct.pack("<f", value))[0]
    return float(struct.unpack("<f", struct.pack("<i", bits + (1 if value > 0 else -1)))[0])


def literal(value: float, real: Real = "double") -> str:
    """A finite number as a C99 hex literal: what is read is the same number, to the last bit.

    >>> literal(0.1), literal(-2.0), literal(0.5, "float")
    ('0x1.999999999999ap-4', '-0x1p+1', '0x1p-1f')
    """
    mantissa, exponent = float(value).hex().split("p")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").removesuffix(".")
    return f"{mantissa}p{exponent}{'f' if real == 'float' else ''}"


def bit_pattern(value: float, real: Real) -> str:
    """Any number, missing and infinite ones too, as the bits of its type: C has no literal for those."""
    if real == "double":
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016x}u"
    return f"0x{struct.unpack('<I', struct.pack('<f', value))[0]:08x}u"


def integer(value: int) -> str:
    """A whole number of points; all of them lie below 2^53."""
    return f"{value}" if abs(value) < 2**31 else f"INT64_C({value})"
