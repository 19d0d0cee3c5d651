"""A feature that is multiplied, divided or moved by constants, beside a constant: `annual_income / 12 >= 3500`.

Such an expression rises or falls with the feature, so a comparison with it is a bound on the feature itself. The bound
is found by trying the values that the column can hold, as exact numbers, as doubles, and as whole numbers or rounded
quotients where an engine makes such. It is read only where all of these have the same bound: which of them the engine
computes with need not be known then.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Literal, TypeAlias

from gbfl_compile.checking.general.sql.engines import Engine, as_double
from gbfl_compile.checking.general.sql.values import USES, Column, Constant, LinearFeature, Sign, Step, Value, describe
from gbfl_compile.checking.reading.conditions import ON_NUMBERS, Comparison
from gbfl_compile.checking.reading.nodes import Unread

TESTED = ("sqlite", "duckdb", "postgres", "mariadb", "clickhouse")
MOST_STEPS = 4
MOST_DIGITS = 30
LARGEST_CONSTANT = 10**9
MORE_DIGITS = 4
"""Digits that a quotient of MariaDB has beyond those of the dividend, unless a session sets div_precision_increment."""

WHOLE = re.compile(r"(?:tiny|small|big)?int(?:eger)?(?:\(\d+\))?|u?int(?:8|16|32|64)|int[248]|hugeint")
DECIMAL = re.compile(r"(?:decimal|numeric)\((\d+),\s*(\d+)\)")
DOUBLE = ("double", "double precision", "float8", "float64")
SQLITE_REAL = ("real", "floa", "doub")

Threshold: TypeAlias = tuple[Comparison, float | Decimal]
"""What the feature itself is compared with, and how."""

Way: TypeAlias = Literal["exact", "double", "whole", "rounded"]
"""In which numbers the expression is computed."""


def linear_feature(
    engine: Engine, left: Value, sign: Sign, right: Value, types: Mapping[int, str]
) -> LinearFeature | None:
    """A feature and a constant, added, multiplied, divided or taken from one another; None for anything else."""
    if isinstance(left, Constant) and sign in ("+", "*"):
        left, right = right, left
    number = right.value if isinstance(right, Constant) else None
    if not isinstance(left, Column | LinearFeature) or number is None or isinstance(number, bool | str):
        return None
    if not 0.0 < abs(float(number)) < LARGEST_CONSTANT:  # which NaN is not either
        return None
    before = left if isinstance(left, LinearFeature) else LinearFeature(left, (), types.get(left.feature, ""))
    if engine.name not in TESTED or before.column.is_single or len(before.steps) == MOST_STEPS:
        return None
    return replace(before, steps=(*before.steps, Step(sign, number)))


@dataclass(frozen=True, slots=True)
class Domain:
    """The values that a column can hold, each with a whole number in its order."""

    first: int
    last: int
    number: Callable[[int], float | Decimal]
    ways: tuple[Way, ...]
    is_whole: bool = False
    digits: int = 0


def threshold_of(engine: Engine, value: LinearFeature, comparison: Comparison, other: Constant) -> Threshold:
    """The comparison as one of the feature itself with one of its values."""
    if comparison in ("==", "!="):
        raise Unread(f"{describe(value)} that is equal to a number: write the value of the column itself")
    found = {_threshold(engine, value, comparison, other, held, way) for held, way in _ways(engine, value)}
    if len(found) != 1:
        raise Unread(f"{describe(value)}, whose bound depends on the numbers in which it is computed")
    if engine.name == "mariadb" and any(step.sign == "/" for step in value.steps) and value.declared not in DOUBLE:
        uses = USES.get()
        if uses is None:
            raise Unread(f"{describe(value)}, whose digits a session may set")
        uses.has_rounded_quotients = True
    return found.pop()


def _ways(engine: Engine, value: LinearFeature) -> Iterator[tuple[Domain, Way]]:
    for held in _domains(engine, value):
        for way in held.ways:
            yield held, way


def _domains(engine: Engine, value: LinearFeature) -> Iterator[Domain]:
    """What a column of this type can hold, and in which numbers its engine may compute with that."""
    declared = value.declared
    plain = declared.removeprefix("nullable(").removesuffix(")") if declared.startswith("nullable(") else declared
    divides = any(step.sign == "/" for step in value.steps)
    doubles = Domain(_place(-math.inf), _place(math.inf), _double_at, ("double",))
    if engine.name == "sqlite":
        yield doubles
        if not any(word in declared for word in SQLITE_REAL):
            yield Domain(-(2**53), 2**53, Decimal, ("whole", "exact") if divides else ("exact",), True)
    elif plain in DOUBLE:
        yield doubles
    elif WHOLE.fullmatch(plain):
        _refuse_wrapping(engine, value, plain)
        ways: tuple[Way, ...] = ("exact", "double")
        ways = (*ways, "whole") if divides and engine.name == "postgres" else ways
        ways = (*ways, "rounded") if divides and engine.name == "mariadb" else ways
        yield Domain(-(2**31), 2**31 - 1, Decimal, ways, True)
    elif match := DECIMAL.fullmatch(plain):
        size, digits = int(match[1]), int(match[2])
        if size > MOST_DIGITS or (engine.name == "clickhouse" and divides):
            raise Unread(f"{describe(value)} of the type {declared}")
        ways = ("exact", "double", "rounded") if divides and engine.name == "mariadb" else ("exact", "double")
        yield Domain(-(10**size) + 1, 10**size - 1, lambda n: Decimal(n).scaleb(-digits), ways, False, digits)
    else:
        raise Unread(f"{describe(value)} of the type {declared or 'that is not known'}")


def _refuse_wrapping(engine: Engine, value: LinearFeature, declared: str) -> None:
    """In ClickHouse a whole number that outgrows 64 bits begins again at the other end; other engines refuse."""
    if engine.name != "clickhouse":
        return
    largest = Fraction(2) ** int(declared.lstrip("uint"))
    for step in value.steps:
        if step.sign == "/" or type(step.number) is not int:
            return  # from here on these are doubles or decimals
        largest = largest * abs(step.number) if step.sign == "*" else largest + abs(step.number)
        if largest >= 2**63:
            raise Unread(f"{describe(value)} of the type {declared}, which may grow beyond 64 bits")


def _threshold(
    engine: Engine, value: LinearFeature, comparison: Comparison, other: Constant, held: Domain, way: Way
) -> Threshold:
    """Where the comparison begins to hold, or stops holding."""

    def holds(place: int) -> bool:
        return _compare(engine, _result(engine, value, held, way, held.number(place)), comparison, other)

    low, high = held.first, held.last
    at_low, at_high = holds(low), holds(high)
    if at_low == at_high:
        raise Unread(f"{describe(value)}, compared with a number that it never reaches")
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle) == at_low:
            low = middle
        else:
            high = middle
    if at_high != (comparison in (">", ">=")) and engine.nan in ("greatest", "total") and not held.is_whole:
        raise Unread(f"{describe(value)}, which falls where the feature rises: NaN is above every number")
    return (">=", held.number(high)) if at_high else ("<=", held.number(low))


def _result(engine: Engine, value: LinearFeature, held: Domain, way: Way, start: float | Decimal) -> float | Fraction:
    if way == "double":
        number = float(start)
        for step in value.steps:
            number = ON_DOUBLES[step.sign](number, as_double(engine, step.number))
        return number
    exact, digits, is_whole = Fraction(start), held.digits, held.is_whole
    for step in value.steps:
        exact = ON_FRACTIONS[step.sign](exact, Fraction(step.number))
        is_whole &= type(step.number) is int
        if step.sign == "/" and way == "whole" and is_whole:
            exact = Fraction(math.trunc(exact))
        if step.sign == "/" and way == "rounded":
            digits += MORE_DIGITS
            exact = _round(exact, digits)
    return exact


ON_DOUBLES: dict[Sign, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}
ON_FRACTIONS: dict[Sign, Callable[[Fraction, Fraction], Fraction]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}


def _round(exact: Fraction, digits: int) -> Fraction:
    """Half of a unit away from zero."""
    unit = Fraction(1, 10**digits)
    size = math.floor(abs(exact) / unit + Fraction(1, 2)) * unit
    return size if exact >= 0 else -size


def _compare(engine: Engine, number: float | Fraction, comparison: Comparison, other: Constant) -> bool:
    bound = other.value
    if isinstance(bound, bool) or not isinstance(bound, int | float | Decimal):
        raise Unread(f"a computed feature compared with {describe(other)}")
    if isinstance(number, float):
        return ON_NUMBERS[comparison](number, as_double(engine, bound))
    if isinstance(bound, float) and not math.isfinite(bound):
        raise Unread(f"a computed feature compared with {describe(other)}")
    exact = Fraction(bound)
    if number != exact and abs(number - exact) <= abs(exact) * CLOSE:
        raise Unread("a computed feature so close to a number that an engine may round it to that")
    return ON_NUMBERS[comparison](number, exact)  # type: ignore[arg-type]  # fractions compare exactly


CLOSE = Fraction(1, 10**13)
"""Quotients of decimals have sixteen digits or more."""


def _place(number: float) -> int:
    """The doubles in their order, as whole numbers."""
    (bits,) = struct.unpack("<q", struct.pack("<d", number))
    return int(bits) if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)


def _double_at(place: int) -> float:
    (number,) = struct.unpack("<d", struct.pack("<q", abs(place)))
    return float(number) if place >= 0 else -float(number)
