"""C literals as the numbers they are: octal, hexadecimal, suffixes, and a float rounded once, not twice."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

INTEGER = re.compile(
    r"(?:0[xX](?P<hex>[0-9a-fA-F]{1,16})|(?P<octal>0[0-7]{0,22})|(?P<decimal>[1-9][0-9]{0,19}))(?P<suffix>[uUlL]{0,3})"
)
REAL = re.compile(
    r"(?:0[xX](?P<hex>[0-9a-fA-F]*\.?[0-9a-fA-F]*)[pP](?P<two>[+-]?[0-9]{1,4})"
    r"|(?P<decimal>[0-9]*\.?[0-9]*)(?:[eE](?P<ten>[+-]?[0-9]{1,3}))?)(?P<suffix>[fF]?)"
)
LONGEST = 800
"""Digits of a literal; a double never needs more than 767."""

SUFFIXES = {"", "u", "l", "ul", "lu", "ll", "ull", "llu"}
WRAPPED = ("INT64_C", "INT32_C")

LARGEST_FLOAT32 = (2.0 - 2.0**-23) * 2.0**127


def integer(node: Any, constants: Mapping[str, int]) -> int | None:
    """A whole number: a literal, its negative, INT64_C of one, or an enumerator. None for anything else."""
    match type(node).__name__:
        case "Constant":
            return integer_literal(node.value) if "int" in node.type else None
        case "UnaryOp" if node.op == "-":
            inner = integer(node.expr, constants)
            unsigned = type(node.expr).__name__ == "Constant" and is_unsigned(node.expr.value)
            return None if inner is None or unsigned else -inner
        case "FuncCall" if type(node.name).__name__ == "ID" and node.name.name in WRAPPED:
            given = node.args.exprs if node.args is not None else []
            literal = len(given) == 1 and type(given[0]).__name__ in ("Constant", "UnaryOp")
            if literal and type(given[0]).__name__ == "Constant" and is_unsigned(given[0].value):
                return None  # an unsigned number keeps its sign in the macro
            return integer(given[0], {}) if literal else None
        case "ID":
            return constants.get(node.name)
        case _:
            return None


def integer_literal(text: str) -> int | None:
    """The value of an integer literal; a leading 0 means octal."""
    found = INTEGER.fullmatch(text)
    if found is None or found["suffix"].lower() not in SUFFIXES:
        return None
    if found["hex"]:
        return int(found["hex"], 16)
    value = int(found["octal"], 8) if found["octal"] else int(found["decimal"])
    most = 2**64 if "u" in found["suffix"].lower() or found["octal"] else 2**63
    return value if value < most else None  # past it each compiler does as it likes


def is_unsigned(text: str) -> bool:
    """Whether a literal is unsigned: by its suffix, or because no signed type holds what is not written in decimal."""
    value = integer_literal(text)
    if value is None or "u" in text.lower():
        return True
    return text[0] not in "123456789" and (2**31 <= value < 2**32 or value >= 2**63)


def real(node: Any) -> float | None:
    """A floating-point number: a literal or its negative. None for anything else."""
    match type(node).__name__:
        case "Constant" if node.type in ("float", "double"):
            return real_literal(node.value)
        case "UnaryOp" if node.op == "-":
            inner = real(node.expr)
            return None if inner is None else -inner
        case _:
            return None


def real_literal(text: str) -> float | None:
    """The value of a floating-point literal, to the bit; None where it is not one, or not a finite one."""
    found = REAL.fullmatch(text)
    if found is None or len(text) > LONGEST or not re.search(r"[0-9a-fA-F]", found["hex"] or found["decimal"] or ""):
        return None
    exact = _hexadecimal(found) if found["hex"] is not None else _decimal(found)
    if found["suffix"]:
        return float32_nearest(exact)
    try:
        return float(exact)  # a Fraction is rounded correctly
    except OverflowError:
        return None


def _hexadecimal(found: re.Match[str]) -> Fraction:
    whole, _, part = found["hex"].partition(".")
    power = int(found["two"]) - 4 * len(part)
    digits = int(f"{whole}{part}" or "0", 16)
    return Fraction(digits * 2**power) if power >= 0 else Fraction(digits, 2**-power)


def _decimal(found: re.Match[str]) -> Fraction:
    whole, _, part = found["decimal"].partition(".")
    power = int(found["ten"] or 0) - len(part)
    digits = int(f"{whole}{part}" or "0")
    return Fraction(digits * 10**power) if power >= 0 else Fraction(digits, 10**-power)


def float32_nearest(exact: Fraction) -> float | None:
    """The float32 nearest to a number, ties to even; None where that is infinite.

    Rounding to double first and to float32 then may end on the wrong side of a tie.
    """
    if exact == 0:
        return 0.0
    exponent = max(-149, math.frexp(float(exact))[1] - 24) if abs(exact) > Fraction(1, 2**200) else -149
    for quantum in (exponent, exponent + 1):  # frexp of a rounded double may be one too large, never too small
        steps = round(exact / Fraction(2) ** quantum)
        if abs(steps) <= 2**24:
            value = math.ldexp(steps, quantum)
            return value if abs(value) <= LARGEST_FLOAT32 else None
    return None


def as_float32(value: float) -> float:
    """A double converted to float, as C does it."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:  # struct refuses what a conversion makes infinite
        return math.copysign(math.inf, value)
