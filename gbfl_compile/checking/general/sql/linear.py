"""A feature that is multiplied, divided or moved by constants, beside a constant: `annual_income / 12 >= 3500`.

Such an expression rises or falls with the feature, so a comparison with it is a bound on the feature itself. The bound
is found by trying the values that the column can hold. An engine computes with exact numbers up to some step, and with
doubles from there on: `x * 0.1 / 0.1 >= 3` is true of 3 in either, and false where only the product is a decimal. So
each step is tried as the first in doubles. Where an engine may round a quotient, what it may be off is carried along.
A comparison is read only where all of these have the same bound: how the engine computes need not be known then.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal, Inexact
from fractions import Fraction
from typing import TypeAlias

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
SQLITE_OTHERS = ("int", "char", "clob", "text", "blob")
"""What goes before those: to SQLite the type of a FLOATING POINT column is INTEGER."""
MOST_TOGETHER, MARIADB_SCALE = 40, 30
"""Digits of a column and its constants together, and those after the point, for which MariaDB has room."""

Threshold: TypeAlias = tuple[Comparison, float | Decimal]
"""What the feature itself is compared with, and how."""


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
    is_double: bool = False
    is_whole: bool = False
    may_truncate: bool = False
    """Whether the engine may divide whole numbers without a rest."""
    digits: int = 0
    """Digits after the point."""


@dataclass(frozen=True, slots=True)
class Way:
    """In which numbers an expression is computed."""

    doubles_from: int
    """The first step that is computed in doubles; the comparison comes after the last step."""
    truncates: bool
    """Whether whole numbers are divided without a rest."""


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
    written = [place for place, step in enumerate(value.steps) if isinstance(step.number, float)]
    last = written[0] if written else len(value.steps) + 1  # beside a double, every engine computes in doubles
    for held in _domains(engine, value):
        for first in [0] if held.is_double else range(last + 1):
            for truncates in (False, True) if held.may_truncate else (False,):
                yield held, Way(first, truncates)


def _domains(engine: Engine, value: LinearFeature) -> Iterator[Domain]:
    """What a column of this type can hold, and in which numbers its engine may compute with that."""
    declared = value.declared
    plain = declared.removeprefix("nullable(").removesuffix(")") if declared.startswith("nullable(") else declared
    divides = any(step.sign == "/" for step in value.steps)
    is_decimal = any(isinstance(step.number, Decimal) for step in value.steps)
    doubles = Domain(_place(-math.inf), _place(math.inf), _double_at, is_double=True)
    if engine.name == "sqlite":
        yield doubles
        if any(word in declared for word in SQLITE_OTHERS) or not any(word in declared for word in SQLITE_REAL):
            yield Domain(-(2**53), 2**53, Decimal, is_whole=True, may_truncate=divides)
    elif plain in DOUBLE:
        yield doubles
    elif divides and engine.name == "clickhouse" and (is_decimal or not WHOLE.fullmatch(plain)):
        raise Unread(f"{describe(value)}, a quotient of decimals, of which digits are cut")
    elif WHOLE.fullmatch(plain):
        _refuse_wrapping(engine, value, plain)
        _refuse_long(engine, value, size=20, digits=0)
        truncates = divides and engine.name == "postgres"
        yield Domain(-(2**31), 2**31 - 1, Decimal, is_whole=True, may_truncate=truncates)
    elif match := DECIMAL.fullmatch(plain):
        size, digits = int(match[1]), int(match[2])
        if size > MOST_DIGITS:
            raise Unread(f"{describe(value)} of the type {declared}")
        _refuse_long(engine, value, size, digits)
        yield Domain(-(10**size) + 1, 10**size - 1, lambda n: Decimal(n).scaleb(-digits), digits=digits)
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


def _refuse_long(engine: Engine, value: LinearFeature, size: int, digits: int) -> None:
    """MariaDB cuts digits of a product that has no room for them."""
    if engine.name != "mariadb":
        return
    for step in value.steps:
        _, written, exponent = Decimal(step.number).as_tuple() if isinstance(step.number, int | Decimal) else (0, (), 0)
        assert isinstance(exponent, int)  # noqa: S101 - NaN and infinities are not literals
        size, digits = size + len(written), digits - min(exponent, 0) + (MORE_DIGITS if step.sign == "/" else 0)
    if size > MOST_TOGETHER or digits > MARIADB_SCALE:
        raise Unread(f"{describe(value)}, which may have more digits than {engine.name} has room for")


def _threshold(
    engine: Engine, value: LinearFeature, comparison: Comparison, other: Constant, held: Domain, way: Way
) -> Threshold:
    """Where the comparison begins to hold, or stops holding."""

    def holds(place: int) -> bool:
        return _compare(engine, *_result(engine, value, held, way, held.number(place)), comparison, other)

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


def _result(
    engine: Engine, value: LinearFeature, held: Domain, way: Way, start: float | Decimal
) -> tuple[float | Fraction, Fraction]:
    """What the expression comes to for a value of the column, and how far from it an engine may be."""
    if held.is_double:
        return _in_doubles(engine, float(start), Fraction(0), value.steps)
    exact, off, digits, quotients, is_whole = Fraction(start), Fraction(0), held.digits, 0, held.is_whole
    for step in value.steps[: way.doubles_from]:
        by = Fraction(step.number)
        exact = ON_FRACTIONS[step.sign](exact, by)
        is_whole &= type(step.number) is int
        digits += max(0, -int(Decimal(step.number).as_tuple().exponent))
        if step.sign == "*":
            off *= abs(by)
        if step.sign == "/" and way.truncates and is_whole:
            exact = Fraction(math.trunc(exact))
        elif step.sign == "/":
            quotients += 1
            off = off / abs(by) + _rounding(engine, exact, off, held.digits + MORE_DIGITS * quotients)
    if way.doubles_from > len(value.steps):
        return exact, off
    raw = exact * 10**digits
    is_certain = off == 0 and (quotients or (abs(raw) <= 2**53 and digits <= MOST_SCALE))
    off += 0 if is_certain else abs(exact) * CLOSE
    return _in_doubles(engine, float(exact), off, value.steps[way.doubles_from :])


MOST_SCALE = 22
"""Of a decimal whose double is found by a division by a power of ten: that power is a double too."""


def _rounding(engine: Engine, exact: Fraction, off: Fraction, digits: int) -> Fraction:
    """How far a quotient may be from the exact one; `digits` are the fewest that MariaDB keeps after the point."""
    if engine.name == "mariadb":
        return Fraction(0) if off == 0 and (exact * 10**digits).denominator == 1 else Fraction(1, 10**digits)
    context = Context(prec=15)
    context.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    return Fraction(0) if off == 0 and not context.flags[Inexact] else abs(exact) * CLOSE


def _in_doubles(engine: Engine, number: float, off: Fraction, steps: Sequence[Step]) -> tuple[float, Fraction]:
    for step in steps:
        by = as_double(engine, step.number)
        number = ON_DOUBLES[step.sign](number, by)
        if off:
            scale = {"*": abs(Fraction(by)), "/": 1 / abs(Fraction(by))}.get(step.sign, Fraction(1))
            off = off * scale + abs(Fraction(number)) * CLOSE
    return number, off


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


def _compare(engine: Engine, number: float | Fraction, off: Fraction, comparison: Comparison, other: Constant) -> bool:
    bound = other.value
    if isinstance(bound, bool) or not isinstance(bound, int | float | Decimal):
        raise Unread(f"a computed feature compared with {describe(other)}")
    if isinstance(number, float):
        bound = as_double(engine, bound)
    if math.isfinite(bound) and math.isfinite(number):
        away = abs(Fraction(number) - Fraction(bound))
        close = off if isinstance(number, float) else max(off, abs(Fraction(bound)) * CLOSE)
        if away <= close and (away or off):
            raise Unread("a computed feature so close to a number that an engine may round it to that")
    elif not isinstance(number, float):
        raise Unread(f"a computed feature compared with {describe(other)}")
    return ON_NUMBERS[comparison](number, bound if isinstance(number, float) else Fraction(bound))  # type: ignore[arg-type]  # fractions compare exactly


CLOSE = Fraction(1, 10**13)
"""Quotients of decimals have sixteen digits or more."""


def _place(number: float) -> int:
    """The doubles in their order, as whole numbers."""
    (bits,) = struct.unpack("<q", struct.pack("<d", number))
    return int(bits) if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)


def _double_at(place: int) -> float:
    (number,) = struct.unpack("<d", struct.pack("<q", abs(place)))
    return float(number) if place >= 0 else -float(number)
