"""Numbers as C: hex literals that are the very double, and the comparisons of an interval.

A rule program compares doubles. A scorer of float32 rows is a program of its own (`ir.narrow`): no rounding happens
when it runs.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal, TypeAlias

from gbfl_compile.ir.narrow import narrow_interval
from gbfl_compile.ir.nodes import Interval

Real: TypeAlias = Literal["double", "float"]
Comparison: TypeAlias = Literal[">=", ">", "<=", "<"]


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
    atom = atom if real == "double" else narrow_interval(atom)
    found = []
    if atom.lo is not None:
        found.append(Bound(">=" if atom.lo_closed else ">", atom.lo))
    if atom.hi is not None:
        found.append(Bound("<=" if atom.hi_closed else "<", atom.hi))
    return tuple(found)


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
