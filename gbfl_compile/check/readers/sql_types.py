"""What CAST does to a value, type by type. A cast that could change a number is refused."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import Any

from gbfl_compile.check.readers.sql_engines import Engine
from gbfl_compile.check.readers.sql_logic import Truth
from gbfl_compile.check.readers.sql_numbers import as_double, number, text_as_double
from gbfl_compile.check.readers.sql_points import fitting
from gbfl_compile.check.readers.sql_values import (
    Column,
    Constant,
    Joined,
    Logit,
    Other,
    Pick,
    Share,
    Total,
    Value,
    Weights,
    ends,
    mapped,
    said,
)
from gbfl_compile.check.reading import Unread

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


def cast_to(engine: Engine, value: Value, to: Any) -> Value:
    """CAST(value AS to)."""
    name = getattr(getattr(to, "this", None), "name", str(to))
    sizes = [str(part.this) for part in to.expressions]
    nullable = bool(to.args.get("nullable"))
    if to.args.get("nested") or to.args.get("values"):
        raise Unread(f"a cast to {to}")
    if name == "NULLABLE" and len(to.expressions) == 1:
        return cast_to(engine, value, to.expressions[0])
    if name == "DOUBLE" and sizes:  # MariaDB's DOUBLE(10,0) rounds
        raise Unread(f"{said(value)} cast to {to}")
    if name == "DOUBLE" or (
        name == "FLOAT" and (engine.float_is_double or (engine.name == "tsql" and sizes == ["53"]))
    ):
        strict = engine.nullable_casts and not nullable
        return mapped(value, lambda end: _as_double(engine, end, strict))
    if (name == "INT" and engine.name in WIDE_INT) or (
        name == "DECIMAL" and engine.name == "oracle" and sizes == ["19"]
    ):
        name = "BIGINT"
    whole = (WIDENING if engine.name == "clickhouse" else WHOLE).get(name)
    if whole is not None:
        return mapped(value, lambda end: _as_whole(engine, end, name, whole))
    if name in TEXTS or (name == "CHAR" and engine.parsed_as == "mysql"):
        length = _longest(engine, sizes)
        ascii_only = engine.name == "tsql" and name != "NVARCHAR"
        return mapped(value, lambda end: _as_text(end, length, ascii_only))
    if name == "BOOLEAN":
        return mapped(value, _as_boolean)
    if name == "DECIMAL" and engine.exponent == "decimal" and not sizes:
        return mapped(value, lambda end: _as_decimal(engine, end))
    raise Unread(f"{said(value)} cast to {to}")


def _as_double(engine: Engine, end: Value, strict: bool) -> Value:
    match end:
        case Column() if not strict:
            return end
        case Column():
            raise Unread(f"a feature cast to a type that is not Nullable: {engine.name} raises on NULL")
        case Constant(None):
            return end
        case Constant(str() as text):
            return Constant(text_as_double(engine, text))
        case Constant(int() | float() | Decimal() as found) if not isinstance(found, bool):
            return Constant(as_double(engine, found))
        case Total(points):
            if points.largest >= 2**53:
                raise Unread("points past 2^53 cast to a double")
            return Logit(points)
        case Logit() | Weights() | Share():
            return end
        case Other() | Constant() | Joined() | Truth() | Pick():
            raise Unread(f"{said(end)} cast to a double")


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
        case _:
            raise Unread(f"{said(end)} cast to a whole number ({name})")
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
        case Constant(str()) | Joined():
            texts = _texts(end)
            if texts is None or (length is not None and sum(len(text.encode()) for text in texts) > length):
                raise Unread(f"{said(end)} cast to a text that may be too short for it")
            if ascii_only and not all(text.isascii() for text in texts):
                raise Unread(f"{said(end)} cast to a text that does not hold every letter")
            return end
        case _:
            raise Unread(f"{said(end)} cast to a text")


def _texts(value: Value) -> list[str] | None:
    """Texts that together are at least as long as the value; None where it is not made of texts."""
    if isinstance(value, Joined):
        parts = [_texts(part) for part in value.parts]
        return None if None in parts else [text for part in parts for text in part or ()]
    found = [end.value for end in ends(value) if isinstance(end, Constant) and end.value is not None]
    texts = [text for text in found if isinstance(text, str)]
    return texts if len(texts) == sum(end != Constant(None) for end in ends(value)) else None


def _as_boolean(end: Value) -> Value:
    match end:
        case Truth() | Constant(None) | Constant(bool()):
            return end
        case _:
            raise Unread(f"{said(end)} cast to a truth value")


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
        case _:
            raise Unread(f"{said(end)} cast to a decimal")
