"""Arithmetic on values that are one of finitely many numbers: each of them is computed as the engine would.

A score is a sum of points, so it is one of some hundred numbers, and `1 / (1 + exp(-score))` is one number for each.
Whole numbers and decimals are computed exactly, doubles as IEEE has them. Where an engine may be a little off (exp,
division of decimals) the result is a `Near`: a comparison is decided where all of it lies on one side, and refused
elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Context, Decimal, Inexact, InvalidOperation
from fractions import Fraction
from typing import TypeAlias

from gbfl_compile.checking.general.sql.engines import Engine, as_double, nearest
from gbfl_compile.checking.general.sql.logic import Points, Truth
from gbfl_compile.checking.general.sql.values import (
    UNIT,
    Constant,
    Fractions,
    Near,
    Total,
    Value,
    describe,
    map_ends,
    number_of_truth,
    pick,
    picks,
)
from gbfl_compile.checking.reading.conditions import ON_NUMBERS, Comparison
from gbfl_compile.checking.reading.nodes import Unread, pay

MOST_ENDS = 4_096
"""Combinations of values that are computed one by one."""
MOST_DIGITS = 18
"""Of a decimal that every engine has room for."""
SLACK = Fraction(1, 10**12)
"""How far an engine may be off, as a share of the result: a thousand times more than any that was measured."""
LARGEST = 2**53
EXACT_PARTS = (1, 2, 4, 8, 16)
"""Parts of one that doubles and decimals both hold exactly."""
LARGEST_EXPONENT = 700

Number: TypeAlias = int | float | Decimal

_EXACT = Context(prec=60, traps=[Inexact, InvalidOperation])


def choices(engine: Engine, value: Value) -> Value:
    """The value with every sum of points written out as the numbers it can come to."""
    if isinstance(value, Truth):
        value = number_of_truth(engine, value)

    of_doubles = _of_either if engine.name == "sqlite" else _of_doubles

    def of(end: Value) -> Value:
        match end:
            case Total(points, wide):
                return _written_out(points, lambda number: Constant(number, wide))
            case Fractions(points, kind):
                return _written_out(points, of_doubles if kind == "double" else _of_decimals)
            case Truth():
                return number_of_truth(engine, end)
            case _:
                return end

    return map_ends(value, of)


def _of_doubles(parts: int) -> Constant:
    return Constant(float(Fraction(parts, UNIT)))


def _of_either(parts: int) -> Value:
    """In SQLite the sum of 1 and 0 is a whole number though other rows have 0.5 in place of the 0."""
    return _of_doubles(parts) if parts % UNIT else whole_number(Fraction(parts // UNIT))


def _of_decimals(parts: int) -> Constant:
    return Constant(_EXACT.divide(Decimal(parts), Decimal(UNIT)))


def _written_out(points: Points, constant: Callable[[int], Value]) -> Value:
    """A choice by each term in turn; sums that meet are one."""
    made: dict[tuple[int, int], Value] = {}

    def rest(place: int, total: int) -> Value:
        pay(1)
        if place == len(points.terms):
            return constant(total)
        if (place, total) not in made:
            if len(made) > MOST_ENDS:
                raise Unread(f"a sum of points with more than {MOST_ENDS} intermediate values")
            formula, worth = points.terms[place]
            made[place, total] = pick(formula, rest(place + 1, total + worth), rest(place + 1, total))
        return made[place, total]

    return rest(0, points.bias)


def compute(engine: Engine, act: Callable[..., Value], *parts: Value) -> Value:
    """What a function comes to for each combination of what its parts can be; NULL for NULL."""
    written = [choices(engine, part) for part in parts]
    if math.prod(len(picks(part)) + 1 for part in written) > MOST_ENDS:
        raise Unread(f"more than {MOST_ENDS} combinations of values")

    def over(place: int, before: tuple[Value, ...]) -> Value:
        pay(1)
        if place == len(written):
            return act(*before)
        return map_ends(written[place], lambda end: over(place + 1, (*before, end)))

    return over(0, ())


def calculate(engine: Engine, sign: str, left: Value, right: Value) -> Value:
    """`left <sign> right`, where both are one of finitely many numbers."""

    def of(a: Value, b: Value) -> Value:
        if Constant(None) in (a, b):
            return Constant(None)
        if isinstance(a, Near) or isinstance(b, Near):
            return _nearly(engine, sign, a, b)
        return _exactly(engine, sign, a, b)

    return compute(engine, of, left, right)


def number_in(end: Value) -> Number:
    """The number that an end is; refused if it is not a number."""
    if isinstance(end, Constant) and type(end.value) in (int, float, Decimal):
        value = end.value
        assert isinstance(value, int | float | Decimal)  # noqa: S101 - asked in the line above
        if value == value and abs(value) != math.inf:
            return value
    raise Unread(f"{describe(end)} where a number is expected")


def _ends_of(end: Value) -> tuple[Fraction, Fraction]:
    if isinstance(end, Near):
        return end.low, end.high
    exact = Fraction(number_in(end))
    return exact, exact


def _exactly(engine: Engine, sign: str, left: Value, right: Value) -> Value:
    a, b = number_in(left), number_in(right)
    wide = any(isinstance(end, Constant) and end.wide for end in (left, right))
    if sign == "/":
        return _quotient(engine, a, b, wide)
    if isinstance(a, int) and isinstance(b, int):
        found = {"+": a + b, "-": a - b, "*": a * b}[sign]
        if abs(found) >= (2**31 if engine.narrow_integers and not wide else 2**53):
            raise Unread("a calculation whose result is too large for its integer type")
        return Constant(found, wide)
    if isinstance(a, float) or isinstance(b, float):
        x, y = as_double(engine, a), as_double(engine, b)
        return _double({"+": x + y, "-": x - y, "*": x * y}[sign])
    try:
        act = {"+": _EXACT.add, "-": _EXACT.subtract, "*": _EXACT.multiply}[sign]
        return _decimal(act(Decimal(a), Decimal(b)))
    except (Inexact, InvalidOperation):
        raise Unread("a calculation whose decimal result has too many digits") from None


WHOLE_QUOTIENTS = {"sqlite", "postgres"}
"""Engines in which 7 / 2 is 3."""
DOUBLE_QUOTIENTS = {"duckdb", "clickhouse"}
"""Engines in which a quotient of whole numbers or decimals is one of doubles."""
LONG_QUOTIENTS = {"sqlite", "postgres", *DOUBLE_QUOTIENTS}
"""Engines that keep sixteen digits of any quotient that is not one of whole numbers; MariaDB has 2.5 / 3 = 0.83333."""


def _quotient(engine: Engine, a: Number, b: Number, wide: bool) -> Value:
    if b == 0:
        raise Unread("a division by zero")
    if isinstance(a, float) or isinstance(b, float) or engine.name in DOUBLE_QUOTIENTS:
        return _double(as_double(engine, a) / as_double(engine, b))
    if isinstance(a, int) and isinstance(b, int):
        if engine.name not in WHOLE_QUOTIENTS:
            raise Unread(f"a division of whole numbers, which {engine.name} may or may not truncate")
        return Constant((abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1), wide)
    if engine.name != "postgres":
        raise Unread(f"a division of decimals: it is not certain how many digits {engine.name} keeps")
    exact = Fraction(a) / Fraction(b)
    return _about(exact, exact)


def _may_be_whole(end: Value) -> bool:
    return end.whole if isinstance(end, Near) else isinstance(end, Constant) and type(end.value) is int


def _is_double(end: Value) -> bool:
    return end.double if isinstance(end, Near) else isinstance(end, Constant) and type(end.value) is float


def _nearly(engine: Engine, sign: str, a: Value, b: Value) -> Value:
    left, right = _ends_of(a), _ends_of(b)
    whole, double = _may_be_whole(a) and _may_be_whole(b), _is_double(a) or _is_double(b)
    if sign == "/" and right[0] <= 0 <= right[1]:
        raise Unread("a division by something that may be zero")
    if sign == "/" and whole:
        raise Unread("a division of numbers that may be whole: engines differ in whether they truncate the quotient")
    if sign == "/" and not double and engine.name not in LONG_QUOTIENTS:
        raise Unread(
            f"a division of numbers that may be decimals: it is not certain how many digits {engine.name} keeps"
        )
    if sign == "*" and not double and engine.parsed_as == "mysql" and not (_is_whole(left) or _is_whole(right)):
        raise Unread(f"a product of what was rounded, which {engine.name} compares by the digits of its factors")
    acts: Mapping[str, Callable[[Fraction, Fraction], Fraction]] = {
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "/": lambda a, b: a / b,
    }
    found = [acts[sign](a, b) for a in left for b in right]
    least, most = min(found), max(found)
    if least == most and all(map(_is_exact, (least, *left, *right))):
        return Near(least, least, whole, double)
    beside = max(abs(each) for each in (*left, *right)) if sign in "+-" else Fraction(0)
    return replace(_about(least, most, beside), double=double)


def _is_whole(ends: tuple[Fraction, Fraction]) -> bool:
    return ends[0] == ends[1] and ends[0].denominator == 1


def _is_exact(value: Fraction) -> bool:
    """Whether a number is the same as a double and as a decimal: 0.29 is not, and 100 times the double is not 29."""
    return value.denominator in EXACT_PARTS and abs(value) < 2**30


def _about(least: Fraction, most: Fraction, beside: Fraction = Fraction(0)) -> Near:
    """What an engine may come to whose exact result lies between these; `beside` is what was added up."""
    room = SLACK * max(abs(least), abs(most), beside)
    if room > LARGEST or (room == 0 and least != most):
        raise Unread("numbers that are too large")
    return Near(_short(least - room, -1), _short(most + room, 1))


def _short(value: Fraction, side: int) -> Fraction:
    """A number of few digits on one side of another: fractions would grow with every step."""
    if value.denominator < 2**64:
        return value
    near = Fraction(float(value))
    return near + side * abs(near) / 2**50


def _double(found: float) -> Constant:
    if not math.isfinite(found):
        raise Unread("a calculation whose result is not a finite number")
    return Constant(found + 0.0)


def _decimal(found: Decimal) -> Constant:
    _, digits, exponent = found.as_tuple()
    assert isinstance(exponent, int)  # noqa: S101 - NaN and infinities do not come up
    if max(len(digits), -exponent) > MOST_DIGITS:
        raise Unread("a calculation whose decimal result has too many digits")
    return Constant(found)


def compare_numbers(left: Value, comparison: Comparison, right: Value) -> bool:
    """`left <comparison> right` where one of them is a Near: decided where the whole of it lies on one side."""
    a, b = _ends_of(left), _ends_of(right)
    answers = {ON_NUMBERS[comparison](float(_order(x, y)), 0.0) for x in a for y in b}
    overlap = a[0] <= b[1] and b[0] <= a[1]
    is_apart = all(abs(x - y) > SLACK * max(abs(x), abs(y)) for x in a for y in b)
    is_one = {*a, *b} == {a[0]} and _is_exact(a[0])
    if len(answers) > 1 or not (is_one or (is_apart and not overlap)):
        raise Unread("a comparison that depends on the last digits of a computed number")
    return answers.pop()


def _order(a: Fraction, b: Fraction) -> int:
    return (a > b) - (a < b)


def exponential(end: Value) -> Value:
    """exp(x): 1 for 0 in every engine, and elsewhere right but for the last digits.

    It is a double but in PostgreSQL, whose decimals have as many digits.
    """
    if end == Constant(None):
        return end
    least, most = _ends_of(end)
    if max(abs(least), abs(most)) > LARGEST_EXPONENT:
        raise Unread("EXP of a large number, which some engines refuse")
    if least == most == 0:
        return Near(Fraction(1), Fraction(1), double=True)
    return replace(_about(Fraction(math.exp(float(least))), Fraction(math.exp(float(most)))), double=True)


def logarithm(end: Value) -> Value:
    """ln(x)."""
    if end == Constant(None):
        return end
    least, most = _ends_of(end)
    if least <= 0:
        raise Unread("a logarithm of something that may be zero or negative")
    found = _about(Fraction(math.log(float(least))), Fraction(math.log(float(most))), Fraction(1))
    return replace(found, double=True)


def round_number(engine: Engine, end: Value, digits: int) -> Value:
    """round(x, digits): halves go up in some engines and to the even number in others, and are refused."""
    if end == Constant(None):
        return end
    if not 0 <= digits <= 15:
        raise Unread(f"ROUND to {digits} digits")
    if isinstance(end, Constant) and type(end.value) is int:
        return whole_number(Fraction(end.value))
    least, most = (_nearest_part(each, digits) for each in _ends_of(end))
    if least != most:
        raise Unread("a number that may be rounded up or down")
    if digits == 0:
        return whole_number(least)
    exact = _EXACT.divide(Decimal(least.numerator), Decimal(least.denominator))
    if isinstance(end, Constant) and isinstance(end.value, float) and engine.parsed_as != "mysql":
        if abs(end.value) * 10**digits >= 2**51:  # engines multiply, and the product is rounded
            raise Unread("a double rounded to more digits than it has")
        return Constant(nearest(engine, exact))
    if isinstance(end, Constant) and isinstance(end.value, Decimal):
        return _decimal(exact)
    return replace(_double_or_decimal(least), whole=_may_be_whole(end))


def _double_or_decimal(value: Fraction) -> Near:
    """A number that is a double or a decimal."""
    return Near(value, value) if _is_exact(value) else _about(value, value)


def _nearest_part(value: Fraction, digits: int) -> Fraction:
    scaled = value * 10**digits
    half = abs(scaled - math.floor(scaled) - Fraction(1, 2))
    if half < Fraction(1, 10**6):
        raise Unread("a number half-way between two others, which engines round differently")
    return Fraction(round(scaled), 10**digits)


def whole_number(value: Fraction) -> Near:
    """A whole number whose type differs from engine to engine."""
    if value.denominator != 1 or abs(value) >= LARGEST:
        raise Unread("a number that is not whole, or too large")
    return Near(value, value, whole=True)


def to_whole(end: Value, act: Callable[[Fraction], int]) -> Value:
    """floor(x), ceil(x) and sign(x)."""
    if end == Constant(None):
        return end
    least, most = (act(each) for each in _ends_of(end))
    if least != most:
        raise Unread("a number that may be rounded up or down")
    return whole_number(Fraction(least))


def magnitude(end: Value) -> Value:
    """abs(x)."""
    if end == Constant(None):
        return end
    if isinstance(end, Near):
        if end.low < 0 < end.high:
            raise Unread("ABS of a number whose sign is not known")
        least, most = sorted((abs(end.low), abs(end.high)))
        return replace(end, low=least, high=most)
    value, wide = number_in(end), isinstance(end, Constant) and end.wide
    return Constant(value.copy_abs() if isinstance(value, Decimal) else abs(value), wide)


NULLS_PASSED_OVER = {"postgres", "duckdb"}
NULL_FOR_NULL = {"mariadb", "mysql", "sqlite"}
"""What GREATEST and LEAST make of a NULL among their parts; ClickHouse changed its mind."""


def extreme(engine: Engine, parts: tuple[Value, ...], largest: bool, is_mixed: bool) -> Value:
    """GREATEST and LEAST of numbers; those that are not all of one type come out in one that they have in common."""
    if Constant(None) in parts:
        if engine.name in NULL_FOR_NULL:
            return Constant(None)
        if engine.name not in NULLS_PASSED_OVER:
            raise Unread(f"NULL in GREATEST or LEAST: what {engine.name} makes of it is not known")
        parts = tuple(part for part in parts if part != Constant(None)) or (Constant(None),)
        if parts == (Constant(None),):
            return parts[0]
    exact = [_ends_of(part) for part in parts]
    if any(least != most for least, most in exact):
        raise Unread("GREATEST or LEAST of numbers that are not known exactly")
    chosen = (max if largest else min)(range(len(parts)), key=lambda place: exact[place][0])
    return replace(_double_or_decimal(exact[chosen][0]), whole=True) if is_mixed else parts[chosen]
