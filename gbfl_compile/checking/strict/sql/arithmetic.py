"""Numbers and sums of points, and their uses: contests, the greatest, weights and shares. Widths are checked.

A literal is one that an engine reads as one certain number; whatever some version may read otherwise is refused.
No partial sum may leave 32 bits where nothing in it was given 64: engines raise there, wrap around or go on as doubles.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import assert_never

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql.lexis import Lexis
from gbfl_compile.checking.strict.sql.logic import FALSE, TRUE, Asked, Contests, HeldClause, LeafBelow
from gbfl_compile.checking.strict.sql.values import (
    Behind,
    Case,
    Contest,
    JoinedText,
    Logit,
    Mass,
    Number,
    Numeric,
    Points,
    Share,
    Text,
    Top,
    Value,
    Weight,
    Whole,
)

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
        raise Unread(f"the decimal {text} without an exponent, which is not a double everywhere")
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
        raise Unread("arithmetic on what is not a number")
    one, other = Fraction(left.value), Fraction(right.value)
    exactly = one * other if sign == "*" else one / other
    try:
        found = float(exactly)
    except OverflowError:
        raise Unread("a product of literals beyond the doubles") from None
    if Fraction(found) != exactly:
        raise Unread("arithmetic on literals that is rounded")
    return Number(found)


CLAMP = 700.0
"""Where logits are cut off: exp overflows or underflows not far beyond, and e^-700 is nothing beside 1."""


def points_of(value: Value) -> Points:
    """An integer as a sum of points: a literal, a CASE of two literals, or a sum already."""
    match value:
        case Points():
            return value
        case Whole(number, wide):
            return _fitting(Points(number, {}, abs(number), wide))
        case Case(((condition, Whole() as then),), Whole() as otherwise):
            bound = max(abs(then.value), abs(otherwise.value))
            terms = _without_zeros({condition: then.value - otherwise.value})
            return _fitting(Points(otherwise.value, terms, bound, then.wide and otherwise.wide))
    raise Unread("a sum of something other than points")


def _fitting(points: Points) -> Points:
    if points.bound >= (WIDE if points.wide else NARROW):
        raise Unread(f"an integer sum that may need more than {64 if points.wide else 32} bits")
    return points


def _without_zeros(terms: Mapping[int, int]) -> dict[int, int]:
    return {condition: points for condition, points in terms.items() if points}


def add(left: Value, right: Value) -> Value:
    """`+`: of points, or of weights and ones."""
    if isinstance(left, Weight | Mass | Number) and isinstance(right, Weight | Mass | Number):
        return Mass((*_masses(left), *_masses(right)))
    return weighted_sum(points_of(left), points_of(right), 1)


def _masses(value: Weight | Mass | Number) -> tuple[Weight | None, ...]:
    match value:
        case Mass(parts):
            return parts
        case Weight():
            return (value,)
        case Number(1.0):
            return (None,)
        case Number(number):
            raise Unread(f"{number!r} added to a weight")
        case _:
            assert_never(value)


def weighted_sum(left: Points, right: Points, factor: int) -> Points:
    """One sum plus a multiple of another."""
    terms = dict(left.terms)
    for condition, points in right.terms.items():
        terms[condition] = terms.get(condition, 0) + factor * points
    bound = left.bound + abs(factor) * right.bound
    return _fitting(Points(left.bias + factor * right.bias, _without_zeros(terms), bound, left.wide or right.wide))


def subtract(left: Value, right: Value) -> Value:
    """`-`: of points, or of points and the greatest of several."""
    if isinstance(right, Top):
        points = points_of(left)
        _fitting(Points(0, {}, points.bound + max(each.bound for each in right.sums), points.wide))
        return Behind(points, right)
    return weighted_sum(points_of(left), points_of(right), -1)


def multiply(left: Value, right: Value) -> Value:
    """`*`: points by an integer, a logit by its scale, two literals exactly."""
    if isinstance(left, Number) and isinstance(right, Number):
        return exact("*", left, right)
    if isinstance(left, Logit) and isinstance(right, Number):
        mantissa, exponent = math.frexp(right.value)
        if mantissa != 0.5 or left.scale is not None or left.capped:
            raise Unread("logits scaled by something other than one power of two")
        return Logit(left.of, 1 - exponent)
    if not isinstance(right, Whole):
        raise Unread("a product of something other than points and an integer")
    found, factor = points_of(left), right.value
    terms = {condition: factor * points for condition, points in found.terms.items()}
    wide = found.wide or right.wide
    bound = max(found.bound * abs(factor), found.bound, abs(factor))
    return _fitting(Points(found.bias * factor, _without_zeros(terms), bound, wide))


def divide(left: Value, right: Value) -> Value:
    """`/`: a weight, or one, by a sum of weights; two literals exactly."""
    if isinstance(left, Number) and isinstance(right, Number):
        return exact("/", left, right)
    if isinstance(right, Mass) and isinstance(left, Weight):
        return Share(left, right)
    if isinstance(right, Mass) and left == Number(1.0):
        return Share(None, right)
    raise Unread("a quotient of something other than weights")


def logit_of(value: Value) -> Logit:
    """CAST(points - points AS <double>)."""
    return Logit(value) if isinstance(value, Behind) else Logit(points_of(value))


def least_of(values: Sequence[Value]) -> Value:
    """LEAST: a logit, cut off at the clamp."""
    match tuple(values):
        case (Logit(of, scale, False, False), Number(bound)) if bound == CLAMP:
            return Logit(of, scale, capped=True)
    raise Unread(f"the least of something other than a logit and {CLAMP}")


def greatest_of(values: Sequence[Value]) -> Value:
    """GREATEST: of the sums of three classes or more, or a logit that was cut off above, cut off below."""
    match tuple(values):
        case (Logit(of, scale, True, False), Number(bound)) if bound == -CLAMP:
            return Logit(of, scale, capped=True, clamped=True)
        case (_, _, _, *_):
            return Top(tuple(points_of(value) for value in values))
    raise Unread(f"the greatest of something other than the sums of three classes or a capped logit and {-CLAMP}")


def exp_of(value: Value) -> Weight:
    """EXP, which is certain only over what was clamped."""
    if not isinstance(value, Logit) or not value.clamped:
        raise Unread(f"EXP of something that is not kept between {-CLAMP} and {CLAMP}")
    return Weight(value.of, value.scale or 0)


def wide_of(value: Value) -> Value:
    """CAST(… AS <bigint>) of an integer."""
    if isinstance(value, Whole):
        return Whole(value.value, wide=True)
    found = points_of(value)
    return Points(found.bias, found.terms, found.bound, wide=True)


def compare_integers(left: Value, sign: str, right: Value) -> Asked:
    """A comparison of integers: of literals, of a flag with one, of a leaf's number, or of sums."""
    match left, sign, right:
        case Whole(one), "=", Whole(other):
            return TRUE if one == other else FALSE
        case Case(), "<", Whole(bound):
            return LeafBelow(left, bound)
        case Case(((condition, Whole(then)),), Whole(otherwise)), "=", Whole(number) if then == number != otherwise:
            return HeldClause(condition)
    if sign not in (">", ">=", "="):
        raise Unread(f"a comparison {sign} of sums")
    against = right if isinstance(right, Top) else points_of(right)
    return Contests((Contest(sign, points_of(left), against),))


def join_texts(left: Value, right: Value) -> JoinedText:
    """`||`: texts that are there or not, by a condition each."""
    return JoinedText((*_join(left), *_join(right)))


def _join(value: Value) -> tuple[tuple[int, str], ...]:
    match value:
        case JoinedText(parts):
            return parts
        case Case(((condition, Text(text)),), Text("")):
            return ((condition, text),)
    raise Unread("a text joined with something other than a text or nothing, by one condition")


def joined_of(value: Value) -> JoinedText:
    """A reason as texts by condition."""
    return JoinedText(()) if value == Text("") else JoinedText(_join(value))
