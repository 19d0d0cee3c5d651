"""Literals that an engine reads as one certain number; whatever some version may read otherwise is refused."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql.lexis import Lexis
from gbfl_compile.checking.strict.sql.values import Number, Numeric, Whole

MOST_DIGITS = 17
"""Significant digits: enough for every double, few enough for every parser."""

LONGEST = 400
"""Characters of a literal: a NUMERIC may have all digits of the smallest double."""

NARROW, WIDE = 2**31, 2**63
"""Integers of 32 and of 64 bits are smaller than these in magnitude."""

_WHOLE_TEXT = re.compile(r"-?[1-9][0-9]{0,18}")


def decimal(lexis: Lexis, text: str, negative: bool = False) -> Number | Numeric:
    """A decimal literal. Without an exponent it is a DECIMAL in some engines, and rounded like one."""
    mantissa, _, exponent = text.lower().partition("e")
    if (not exponent or mantissa.endswith(".")) and lexis.numbers == "exponent":
        raise Unread(f"the decimal {text} without an exponent, which is no double everywhere")
    digits = mantissa.replace(".", "").strip("0")
    if (len(digits) > MOST_DIGITS and lexis.numbers == "exponent") or len(text) > LONGEST:
        raise Unread(f"the literal {text[:40]}: more than {MOST_DIGITS} significant digits")
    found = float(text)
    if math.isinf(found) or (digits and found == 0.0):
        raise Unread(f"the literal {text[:40]} is beyond the doubles")
    if lexis.rounds_twice and found != 0.0:
        _refuse_what_is_rounded_twice(text, found, len(digits))
    found = -found if negative else found
    return Numeric(found) if lexis.exponent == "numeric" else Number(found)


def _refuse_what_is_rounded_twice(text: str, found: float, digits: int) -> None:
    """SQLite 3.40 and 3.51: right where the decimal is a short one or a close one, of ordinary size, or a whole one."""
    away = abs(Fraction(text) - Fraction(found)) / Fraction(math.ulp(found))
    short = digits <= 6 and away <= Fraction(49, 100)
    close = Fraction(text) == Fraction(f"{found:.16e}")
    ordinary = 1e-60 <= found <= 1e60
    whole = away == 0 and found == int(found) and found < 2**53 and "e+" not in text.lower()
    if not (ordinary and (short or close)) and not whole:
        raise Unread(f"the literal {text[:40]}: some versions of SQLite read another double, write it as %.16e")


def whole(text: str, negative: bool = False) -> Whole:
    """An integer literal of 32 bits; a longer one is of another type in each engine."""
    if len(text) > 10 or int(text) >= NARROW:
        raise Unread(f"the integer {text[:40]} needs more than 32 bits: write CAST('{text[:40]}' AS …)")
    return Whole(-int(text) if negative else int(text))


def whole_of_text(text: str) -> Whole:
    """CAST('12345678901' AS BIGINT)."""
    if not _WHOLE_TEXT.fullmatch(text) or not -WIDE <= int(text) < WIDE:
        raise Unread(f"the text {text[:40]!r} cast to an integer")
    return Whole(int(text), wide=True)


def exact(sign: str, left: Number, right: Number) -> Number:
    """A product or quotient of two literals where nothing is rounded: the same in every engine."""
    if not math.isfinite(left.value) or not math.isfinite(right.value) or (sign == "/" and right.value == 0.0):
        raise Unread("arithmetic on what is no number")
    one, other = Fraction(left.value), Fraction(right.value)
    exactly = one * other if sign == "*" else one / other
    try:
        found = float(exactly)
    except OverflowError:
        raise Unread("a product of literals beyond the doubles") from None
    if Fraction(found) != exactly:
        raise Unread("arithmetic on literals that is rounded")
    return Number(found)
