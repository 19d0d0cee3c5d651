"""What CAST does to a value, type by type. A cast that could change a number is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from typing import Any

from gbfl_compile.checking.general.sql.arithmetic import fitting
from gbfl_compile.checking.general.sql.engines import Engine, as_double, as_float32, number, text_as_double
from gbfl_compile.checking.general.sql.finite import choices
from gbfl_compile.checking.general.sql.logic import Truth
from gbfl_compile.checking.general.sql.parsing import ParsedNode
from gbfl_compile.checking.general.sql.values import (
    Column,
    Constant,
    Fractions,
    LinearFeature,
    Moment,
    Near,
    Other,
    Pick,
    Total,
    Value,
    Word,
    describe,
    ends,
    kinds_of,
    map_ends,
    pick,
)
from gbfl_compile.checking.general.sql.words import cast_word, is_of_words
from gbfl_compile.checking.reading.nodes import Unread

NUMBERS = frozenset(["whole", "decimal", "double"])

MOST_TOGETHER = 38
"""Digits before and after the point that a common type of decimals is certain to have room for."""


class AllNull(Unread):
    """A choice that is NULL for every row, of a type that is not seen."""


class NullNode(ParsedNode):
    """The same, with its SQL."""


def kinds_together(engine: Engine, parts: Iterable[Value]) -> frozenset[str]:
    """The kinds of all parts of a choice, NULL aside; refused where they have no type in common."""
    listed = list(parts)
    refuse_narrowed(listed)
    kinds = frozenset[str]().union(*map(kinds_of, listed)) - {"null"}
    numbers = NUMBERS | {"truth"} if engine.numbers_are_truths and not kinds & {"decimal", "double"} else NUMBERS
    if len(kinds) > 1 and not kinds <= numbers:
        raise Unread(f"a choice between values of different types ({', '.join(sorted(kinds))})")
    if "unknown" in kinds and len(listed) > 1:
        raise Unread("a choice with a column whose type is not known")
    if "decimal" in kinds and "double" not in kinds and engine.name != "postgres":
        _refuse_long_decimals(listed)
    return kinds


def refuse_narrowed(parts: Iterable[Value]) -> None:
    """Refuse constants that a common type with a column of 32-bit floats may change, and may not."""
    every = [end for part in parts for end in ends(part)]
    if not any(isinstance(end, Column) and end.is_single for end in every):
        return
    for end in every:
        value = end.value if isinstance(end, Constant) else None
        is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        if is_number and as_float32(float(value)) != value:  # type: ignore[arg-type]  # asked in the line above
            raise Unread(f"{describe(end)} beside a FLOAT of 32 bits: write CAST(… AS DOUBLE) around the column")


def _refuse_long_decimals(parts: Iterable[Value]) -> None:
    """Refuse decimals of which some engine would cut one to make room for another."""
    before = after = 0
    for part in parts:
        for end in ends(part):
            if not isinstance(end, Constant) or type(end.value) not in (int, Decimal):
                continue
            _, digits, exponent = Decimal(end.value).as_tuple()  # type: ignore[arg-type]  # asked in the line above
            assert isinstance(exponent, int)  # noqa: S101 - NaN and infinities are not literals
            before, after = max(before, len(digits) + exponent), max(after, -exponent)
    if before + after > MOST_TOGETHER:
        raise Unread(f"a choice between decimals that need {before + after} digits together")


def as_together(engine: Engine, value: Value, kinds: frozenset[str]) -> Value:
    """A value chosen from parts of these kinds, as their common type has it."""
    if kinds and kinds_of(value) == {"null"}:
        raise AllNull("NULL for every row, of a type that other parts of the choice give it")
    if len(kinds) < 2 or engine.name == "sqlite":  # there each value keeps its own type
        return value
    if "double" in kinds:
        return map_ends(value, lambda end: _double(engine, end))
    if "decimal" in kinds:
        return map_ends(value, _decimal)
    return value


def _double(engine: Engine, end: Value) -> Value:
    if isinstance(end, Constant) and type(end.value) in (int, Decimal):
        assert isinstance(end.value, int | Decimal)  # noqa: S101 - asked in the line above
        return Constant(as_double(engine, end.value))
    return _fitting(end, "double")


def _decimal(end: Value) -> Value:
    if isinstance(end, Constant) and type(end.value) is int:
        return Constant(Decimal(end.value))
    return _fitting(end, "decimal")


def _fitting(end: Value, kind: str) -> Value:
    if isinstance(end, Pick) or not kinds_of(end) <= {kind, "null"}:
        raise Unread(f"{describe(end)} in a choice whose type is a {kind}")
    return end


TEXTS = {"TEXT", "VARCHAR", "NVARCHAR"}
"""Not NAME: beside one, PostgreSQL cuts every text of a choice at 63 bytes."""

SHORT_TEXTS = {"tsql": 30, "redshift": 256}
"""Bytes that CAST(x AS VARCHAR) keeps, where no length means a short one."""

WHOLE = {
    "INT": (-(2**31), 2**31 - 1),
    "BIGINT": (-(2**63), 2**63 - 1),
}
"""The least and the most of each type of whole numbers. Sums of narrower ones, and differences of unsigned ones, are
errors for some rows in some engines, so those types are refused."""

WIDENING = {
    "TINYINT": (-(2**7), 2**7 - 1),
    "UTINYINT": (0, 2**8 - 1),
    "SMALLINT": (-(2**15), 2**15 - 1),
    "USMALLINT": (0, 2**16 - 1),
    "UINT": (0, 2**32 - 1),
    "UBIGINT": (0, 2**64 - 1),
    **WHOLE,
}
"""ClickHouse has them all: there a sum is wider than its parts, and a difference has a sign."""

WIDE_INT = {"sqlite", "mariadb", "mysql", "bigquery"}
"""Engines whose INTEGER, in a CAST, has 64 bits."""

WHOLE_TEXT = re.compile(r"-?[0-9]{1,20}")


@lru_cache(maxsize=1000)
def named_type(engine: Engine, text: str) -> Any:
    """A type by its name."""
    from sqlglot import exp

    try:
        return exp.DataType.build(text, dialect=engine.parsed_as)
    except Exception:  # sqlglot's own errors, of several kinds
        raise Unread(f"the type {text[:60]!r}") from None


def is_known_type(to: Any) -> bool:
    """Whether a type is one that every engine with a type of this name has itself."""
    name = getattr(to.this, "name", str(to.this))
    return name in {"DOUBLE", "FLOAT", "DECIMAL", "BOOLEAN", "CHAR", "DATE", *TEXTS, *WHOLE, *WIDENING}


WHOLE_BITS = {"smallint": 16, "int2": 16, "integer": 32, "int": 32, "int4": 32, "bigint": 64, "int8": 64}
DECIMAL_TYPE = re.compile(r"(?:decimal|numeric)\((\d+),\s*(\d+)\)")
TARGET_BITS = {"INT": 32, "BIGINT": 64}


def has_digits(engine: Engine, declared: str, digits: int) -> bool:
    """Whether a column of the declared type has at most this many digits after the point: rounding changes nothing."""
    plain, decimal = re.sub(r"int\(\d+\)", "int", declared), DECIMAL_TYPE.fullmatch(declared)
    return engine.name in ("postgres", "duckdb", "mariadb") and (
        plain in WHOLE_BITS or (decimal is not None and int(decimal[2]) <= digits)
    )


def keeps_every_value(engine: Engine, declared: str, to: Any) -> bool:
    """Whether a cast gives every value that a column of the declared type can hold, unchanged."""
    if engine.name not in ("postgres", "duckdb", "mariadb"):
        return False
    name = getattr(getattr(to, "this", None), "name", str(to))
    sizes = [int(str(part.this)) for part in to.expressions if str(part.this).isdigit()]
    plain = re.sub(r"int\(\d+\)", "int", declared)
    bits, decimal = WHOLE_BITS.get(plain, 0), DECIMAL_TYPE.fullmatch(plain)
    if name in TARGET_BITS and engine.name != "mariadb":
        return 0 < bits <= TARGET_BITS[name]
    if name != "DECIMAL" or not (bits or decimal):
        return False
    if not sizes:
        return engine.name == "postgres"
    before, after = (
        (len(str(2 ** (bits - 1))), 0) if decimal is None else (int(decimal[1]) - int(decimal[2]), int(decimal[2]))
    )
    scale = sizes[1] if len(sizes) > 1 else 0
    return scale >= after and sizes[0] - scale >= before


def cast_to(engine: Engine, value: Value, to: Any) -> Value:
    """CAST(value AS to)."""
    name = getattr(getattr(to, "this", None), "name", str(to))
    sizes = [str(part.this) for part in to.expressions]
    nullable = bool(to.args.get("nullable"))
    if any(is_of_words(end, name) for end in ends(value)):
        return map_ends(value, lambda end: cast_word(engine, end, to))
    if to.args.get("nested") or to.args.get("values"):
        raise Unread(f"a cast to {to}")
    if name == "NULLABLE" and len(to.expressions) == 1:
        return cast_to(engine, value, to.expressions[0])
    if engine.nullable_casts and not nullable and "null" in kinds_of(value):
        raise Unread(f"{describe(value)} cast to {to}, which cannot hold NULL in {engine.name}")
    if name == "DOUBLE" and sizes:  # MariaDB's DOUBLE(10,0) rounds
        raise Unread(f"{describe(value)} cast to {to}")
    if name == "DOUBLE" or (
        name == "FLOAT" and (engine.float_is_double or (engine.name == "tsql" and sizes == ["53"]))
    ):
        strict = engine.nullable_casts and not nullable
        return map_ends(value, lambda end: _as_double(engine, end, strict))
    if (name == "INT" and engine.name in WIDE_INT) or (
        name == "DECIMAL" and engine.name == "oracle" and sizes == ["19"]
    ):
        name = "BIGINT"
    whole = (WIDENING if engine.name == "clickhouse" else WHOLE).get(name)
    if whole is not None:
        if engine.nullable_casts and not nullable and "truth" in kinds_of(value):
            raise Unread(f"{describe(value)} cast to {to}, which cannot hold NULL in {engine.name}")
        return map_ends(value, lambda end: _as_whole(engine, end, name, whole))
    if name in TEXTS or (name == "CHAR" and engine.parsed_as == "mysql"):
        length = _longest(engine, sizes)
        ascii_only = engine.name == "tsql" and name != "NVARCHAR"
        return map_ends(value, lambda end: _as_text(end, length, ascii_only))
    if name == "BOOLEAN":
        return map_ends(value, _as_boolean)
    if name == "DECIMAL" and engine.exponent == "decimal" and not sizes:
        return map_ends(value, lambda end: _as_decimal(engine, end))
    raise Unread(f"{describe(value)} cast to {to}")


def _as_double(engine: Engine, end: Value, strict: bool) -> Value:
    match end:
        case Column(feature, _, outer) if not strict:
            return Column(feature, True, outer)
        case Column():
            raise Unread(f"a feature cast to a type that is not Nullable: {engine.name} raises on NULL")
        case Constant(None):
            return end
        case Constant(str() as text):
            return Constant(text_as_double(engine, text))
        case Constant(int() | float() | Decimal() as found) if not isinstance(found, bool):
            return Constant(as_double(engine, found))
        case Total() | Fractions():
            return map_ends(choices(engine, end), lambda one: _as_double(engine, one, strict))
        case Near(low, high) if low == high and low.denominator == 1:
            return Constant(float(low))
        case Near() | LinearFeature() | Other() | Constant() | Truth() | Pick() | Word() | Moment():
            raise Unread(f"{describe(end)} cast to a double")


def _as_whole(engine: Engine, end: Value, name: str, bounds: tuple[int, int]) -> Value:
    least, most = bounds
    wide = most >= 2**63 - 1
    match end:
        case Constant(None):
            return end
        case Constant(str() as text) if WHOLE_TEXT.fullmatch(text):
            found = int(text)
        case Constant(int() as found) if not isinstance(found, bool):
            pass
        case Total(points) if least < 0 and points.largest <= most:
            return fitting(engine, points, wide)
        case Truth() if least < 0:
            one, nought = Constant(1, wide), Constant(0, wide)
            return pick(end.true, one, pick(end.false, nought, Constant(None)))
        case _:
            raise Unread(f"{describe(end)} cast to a whole number ({name})")
    if not least <= found <= most:
        raise Unread(f"{found} is past the range of {name}")
    return Constant(found, wide)


def _longest(engine: Engine, sizes: list[str]) -> int | None:
    """Bytes of the longest text that a type is certain to keep whole; None where it keeps every one."""
    if sizes:
        return int(sizes[0]) if sizes[0].isascii() and sizes[0].isdigit() else 0
    return SHORT_TEXTS.get(engine.name)


def _as_text(end: Value, length: int | None, ascii_only: bool) -> Value:
    match end:
        case Constant(None):
            return end
        case Constant(str() as text):
            if length is not None and len(text.encode()) > length:
                raise Unread(f"{describe(end)} cast to a text that may be too short for it")
            if ascii_only and not text.isascii():
                raise Unread(f"{describe(end)} cast to a text that does not hold every letter")
            return end
        case _:
            raise Unread(f"{describe(end)} cast to a text")


def _as_boolean(end: Value) -> Value:
    match end:
        case Truth() | Constant(None) | Constant(bool()):
            return end
        case _:
            raise Unread(f"{describe(end)} cast to a boolean")


def _as_decimal(engine: Engine, end: Value) -> Value:
    match end:
        case Constant(str() as text):
            found = number(engine, text.lstrip("-"))
            if isinstance(found, float):
                raise Unread(f"the text {text!r} cast to a decimal")
            exact = Decimal(found)
            return Constant(exact.copy_negate() if text.startswith("-") else exact)
        case Constant(int() as whole) if not isinstance(whole, bool):
            return Constant(Decimal(whole))
        case Constant(None) | Constant(Decimal()):
            return end
        case Near(low, high) if low == high and abs(low) < 10**15:  # PostgreSQL keeps 15 digits of a double
            return end
        case Total() | Fractions():
            return map_ends(choices(engine, end), lambda one: _as_decimal(engine, one))
        case _:
            raise Unread(f"{describe(end)} cast to a decimal")
