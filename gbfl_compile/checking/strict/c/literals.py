"""Numbers and strings as C writes them, taken only where every compiler makes the same of them.

A floating-point literal must be a number of its type exactly. One that has to be rounded (0.1) depends on who rounds:
gcc for 32-bit x86 keeps it wider, so that a double 0.1 is not the literal 0.1.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

Real: TypeAlias = Literal["double", "float"]

COUNT = re.compile(r"0|[1-9][0-9]{0,9}|0[xX][0-9a-fA-F]{1,8}")
WHOLE = re.compile(r"(- )?(0|[1-9][0-9]{0,18}|0[xX][0-9a-fA-F]{1,8})|INT64_C \( (- )?(0|[1-9][0-9]{0,18}) \)")
UNSIGNED = re.compile(r"(0|[1-9][0-9]{0,19}|0[xX][0-9a-fA-F]{1,16})([uU]?)")
HEXADECIMAL = re.compile(r"0[xX]([0-9a-fA-F]+)(?:\.([0-9a-fA-F]*))?[pP]([+-]?[0-9]{1,4})([fF]?)")
DECIMAL = re.compile(r"([0-9]{1,400})(?:\.([0-9]{0,1100}))?(?:[eE]([+-]?[0-9]{1,3}))?([fF]?)")

ESCAPE = re.compile(rb"\\([0-3][0-7]{2}|[nt\"'\\])")
SIMPLE = {b"n": b"\n", b"t": b"\t", b'"': b'"', b"'": b"'", b"\\": b"\\"}


class Format(NamedTuple):
    """A binary format: digits, the exponent of its smallest number, and the one its numbers stay below."""

    digits: int
    least: int
    beyond: int


FORMATS: dict[Real, Format] = {"double": Format(53, -1074, 1024), "float": Format(24, -149, 128)}


def count(text: str) -> int | None:
    """A number of things or a place: what an int holds, and not negative."""
    if COUNT.fullmatch(text) is None:
        return None
    number = int(text, 0)
    return number if number < 2**31 else None


@lru_cache(maxsize=4096)
def whole(text: str) -> int | None:
    """A signed number of 64 bits, its tokens joined by blanks; in hexadecimal only where it is an int."""
    match = WHOLE.fullmatch(text)
    if match is None:
        return None
    number = int(match[2] or match[4], 0)
    hexadecimal = (match[2] or "")[:2] in ("0x", "0X")
    if number >= (2**31 if hexadecimal else 2**63) or (
        hexadecimal and match[1]
    ):  # -0x8000 is 32768 to an int of 16 bits
        return None
    return -number if match[1] or match[3] else number


@lru_cache(maxsize=65536)
def unsigned_literal(text: str) -> int | None:
    """An unsigned number of at most 64 bits."""
    match = UNSIGNED.fullmatch(text)
    if match is None:
        return None
    number = int(match[1], 0)
    fits = number < (2**64 if match[2] or match[1][1:2] in ("x", "X") else 2**63)
    return number if fits else None


@lru_cache(maxsize=65536)
def real(text: str, kind: Real) -> float | None:
    """A literal of this type (`f` ends those of a float) that is one of its numbers exactly."""
    match = HEXADECIMAL.fullmatch(text)
    if match is not None:
        digits, power = int(match[1] + (match[2] or ""), 16), int(match[3]) - 4 * len(match[2] or "")
    else:
        match = DECIMAL.fullmatch(text)
        if match is None or (match[2] is None and match[3] is None):
            return None
        exact = Fraction(int(match[1] + (match[2] or ""))) * Fraction(10) ** (int(match[3] or 0) - len(match[2] or ""))
        digits, power = exact.numerator, 1 - exact.denominator.bit_length()
        if exact.denominator != 1 << -power:
            return None
    if bool(match[4]) != (kind == "float"):
        return None
    return _exactly(digits, power, FORMATS[kind])


def _exactly(digits: int, power: int, kind: Format) -> float | None:
    """digits * 2**power, where the format has it."""
    if digits == 0:
        return 0.0
    shift = (digits & -digits).bit_length() - 1
    digits, power = digits >> shift, power + shift
    if digits.bit_length() > kind.digits or power < kind.least or digits.bit_length() + power > kind.beyond:
        return None
    return math.ldexp(digits, power)


def string(text: str) -> str | None:
    """What a string literal says, in UTF-8; three octal digits, or one of a few letters, may follow a backslash."""
    inner = text[1:-1].encode("ascii")
    if text[0] != '"' or b"\\" in ESCAPE.sub(b"", inner):
        return None
    meaning = ESCAPE.sub(lambda match: SIMPLE.get(match[1]) or bytes((int(match[1], 8),)), inner)
    try:
        return None if b"\0" in meaning else meaning.decode("utf-8")
    except UnicodeDecodeError:
        return None
