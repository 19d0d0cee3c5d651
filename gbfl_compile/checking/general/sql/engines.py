"""How each SQL engine reads what is written: NaN, number literals, names, truth values. The reader's own table.

It says nothing of how SQL is written for an engine: that is the backend's, and a reader that shared it would share
its mistakes. Tests ask SQLite, DuckDB, PostgreSQL, MariaDB, ClickHouse and Spark whether they answer as they are read
(tests/checking/general/sql/test_engines.py, tests/engines/test_catalog_views.py); the other rows come from
documentation.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Context, Decimal, InvalidOperation, Overflow
from fractions import Fraction
from typing import Literal, TypeAlias

from gbfl_compile.checking.reading.nodes import Unread

Nan: TypeAlias = Literal["none", "greatest", "ieee", "total"]
"""none: stored as NULL or refused. greatest: above +inf and equal to itself. ieee: no comparison but `<>` holds.
total: above +inf or, with its sign bit set, below -inf, and equal to those of its own sign alone."""

Names: TypeAlias = Literal["fold", "lower", "upper", "exact"]
"""When two names are one: always but for case, when an unquoted one is lowered or raised, or only when equal."""


@dataclass(frozen=True, slots=True)
class Engine:
    """What the text of a query means in one engine."""

    name: str
    parsed_as: str
    """The dialect sqlglot reads it as."""
    nan: Nan
    names: Names
    exponent: Literal["double", "decimal"] = "double"
    """What `1.5e0` is."""
    point: Literal["double", "decimal"] = "decimal"
    """What `1.5` is."""
    most_digits: int = 800
    """Significant digits of a decimal without exponent that are certain to become the nearest double."""
    most_scale: int = 400
    """Digits after the point that such a decimal keeps."""
    sloppy: bool = False
    """SQLite: long decimals, and those of unusual size, are misread by some versions."""
    texts_are_cast: Literal["exactly", "short", "never"] = "exactly"
    """Which strings CAST('1.5' AS DOUBLE) is certain to read right."""
    words: bool = True
    """Whether CAST('NaN' AS DOUBLE) is NaN; where not it is 0.0."""
    bare_texts: bool = False
    """Whether a string compared with a double is read as one."""
    float_is_double: bool = False
    """Whether FLOAT and REAL are 64 bits."""
    narrow_integers: bool = True
    """Whether whole numbers are of 32 bits until they are cast: a larger sum is an error."""
    numbers_are_truths: bool = False
    """Whether 1 and 0 mean true and false, and the other way round."""
    exact_texts: bool = True
    """Whether two texts are equal only when they are the same."""
    known_texts: bool = True
    """Whether the text that is read shows the bytes of its texts: see `TextLayout.known_texts`."""
    zone: str = "a zone that is not known"
    """The time zone of moments whose type names none: see `TextLayout.zone`."""
    null_is_not_nan: bool = False
    """Whether isnan(NULL) is false; elsewhere it is NULL."""
    nullable_casts: bool = False
    """Whether CAST to a type raises on NULL unless the type is Nullable."""
    looks_up_bits: bool = False
    """Whether CASE x WHEN NULL finds a NULL, IN leaves a NULL of its list out, and 0.0 in a list is not -0.0."""
    executed_comments: bool = False
    """Whether /*! … */ is not a comment."""
    narrows_literals: bool = False
    """Whether a whole number or decimal beside a column of 32-bit floats becomes such a float, as 0.35 does."""
    float_is_single: bool = False
    """Whether FLOAT, which sqlglot takes for a double in this dialect, has 32 bits."""
    distinct_takes_all: bool = False
    """Whether `a IS DISTINCT FROM b AND c` compares a with `b AND c`."""
    null_after: bool = False
    """Whether `x ISNULL` and `x NOTNULL` are tests; to ClickHouse the second word is another name for x."""
    aliases_first: bool = False
    """Whether a name in a SELECT list means an alias of the same list before a column of the table."""


POSTGRES = Engine("postgres", "postgres", "greatest", "lower", "decimal", bare_texts=True, null_after=True)
SPARK = Engine("spark", "spark", "greatest", "fold", most_digits=38, most_scale=38, null_is_not_nan=True)
MARIADB = Engine(
    "mariadb",
    "mysql",
    "none",
    "fold",
    most_digits=60,
    most_scale=30,
    words=False,
    narrow_integers=False,
    numbers_are_truths=True,
    exact_texts=False,
    executed_comments=True,
)

ENGINES: Mapping[str, Engine] = {
    row.name: row
    for row in (
        Engine(
            "sqlite",
            "sqlite",
            "none",
            "fold",
            point="double",
            sloppy=True,
            words=False,
            float_is_double=True,
            narrow_integers=False,
            numbers_are_truths=True,
            null_after=True,
        ),
        # a bare decimal is DECIMAL: before 2.0 it became a double by a division, exact for 15 digits
        Engine(
            "duckdb",
            "duckdb",
            "greatest",
            "fold",
            most_digits=15,
            most_scale=22,
            bare_texts=True,
            null_after=True,
            narrows_literals=True,
        ),
        POSTGRES,
        MARIADB,
        replace(MARIADB, name="mysql"),
        Engine(
            "clickhouse",
            "clickhouse",
            "ieee",
            "exact",
            point="double",
            texts_are_cast="short",  # 868 of 30,000 wrong in chdb 3.1
            narrow_integers=False,  # each sum is wider than its parts
            numbers_are_truths=True,
            nullable_casts=True,
            looks_up_bits=True,
            aliases_first=True,
        ),
        SPARK,
        replace(SPARK, name="databricks", parsed_as="databricks"),
        Engine(
            "datafusion",
            "postgres",
            "total",
            "lower",
            point="double",
            executed_comments=True,
            float_is_single=True,
            looks_up_bits=True,
            distinct_takes_all=True,
        ),
        Engine("snowflake", "snowflake", "greatest", "upper", "decimal", most_digits=38, most_scale=37),
        Engine("bigquery", "bigquery", "ieee", "fold", point="double", narrow_integers=False),
        replace(POSTGRES, name="redshift", parsed_as="redshift", names="fold", most_digits=38, most_scale=37),
        # bare decimals become doubles by a division in Trino, and with some loss, as it says itself, in SQL Server
        Engine("trino", "trino", "ieee", "fold", most_digits=15, most_scale=18),
        Engine("tsql", "tsql", "none", "fold", most_digits=15, most_scale=22, exact_texts=False, words=False),
        Engine("oracle", "oracle", "greatest", "upper", "decimal", most_digits=38, most_scale=120),
    )
}

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
LONGEST = 900
"""Characters of a number. The exact decimal of the smallest double has 751 digits."""

WORDS = {
    "nan": math.nan,
    "inf": math.inf,
    "+inf": math.inf,
    "infinity": math.inf,
    "+infinity": math.inf,
    "-inf": -math.inf,
    "-infinity": -math.inf,
}

_EXACT = Context(prec=LONGEST, Emax=10_000, Emin=-10_000)


def number(engine: Engine, text: str) -> int | float | Decimal:
    """A literal as it is written: a whole number, a double, or a decimal."""
    if len(text) > LONGEST or not NUMBER.fullmatch(text) or not text.isascii():
        raise Unread(f"{_short(text)} is not a number that is understood")
    if text.isdigit():
        return int(text)
    exact = _decimal(text)
    written = engine.exponent if "e" in text.lower() else engine.point
    return nearest(engine, exact) if written == "double" else exact


def _decimal(text: str) -> Decimal:
    try:
        return _EXACT.create_decimal(text)
    except (InvalidOperation, Overflow):
        raise Unread(f"{_short(text)} is not a number that is understood") from None


def as_double(engine: Engine, value: int | float | Decimal) -> float:
    """A number where a double is expected."""
    if isinstance(value, float):
        return value
    if isinstance(value, int):
        if abs(value) > 2**53:
            raise Unread(f"{value} is not a double: engines compare it differently")
        return float(value)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # noqa: S101 - NaN and infinities are not literals
    significant = len("".join(map(str, digits)).strip("0")) or 1
    if significant > engine.most_digits or -exponent > engine.most_scale:
        raise Unread(f"{_short(str(value))} is a decimal: what double {engine.name} makes of it is not certain")
    return nearest(engine, value)


def as_float32(value: float) -> float:
    """The 32-bit float nearest to a number."""
    try:
        found: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return found


SHORT_DIGITS, SHORT_SCALE = 7, 10
"""Of a decimal whose digits and power of ten are 32-bit floats: every way of dividing them finds the nearest one."""


def as_narrowed(value: int | float | Decimal) -> float:
    """What is compared with a column of 32-bit floats where `narrows_literals`; a double widens the column instead."""
    found = float(value)
    if isinstance(value, float) or as_float32(found) == value:
        return found
    _, digits, exponent = Decimal(value).as_tuple()
    if len(digits) > SHORT_DIGITS or not isinstance(exponent, int) or not -SHORT_SCALE <= exponent <= 0:
        raise Unread(
            f"{_short(str(value))} compared with a FLOAT of 32 bits: write CAST(… AS DOUBLE) around the column"
        )
    return as_float32(found)


def nearest(engine: Engine, value: Decimal) -> float:
    """The double nearest to a decimal, where the engine is certain to find it."""
    found = float(value)
    if math.isinf(found) or (found == 0.0 and value != 0):
        raise Unread(f"{_short(str(value))} is beyond every double")
    if engine.sloppy and found != 0.0:
        _refuse_what_sqlite_misreads(value, found)
    return found + 0.0


def _refuse_what_sqlite_misreads(value: Decimal, found: float) -> None:
    """Of ordinary size, and not half-way between two doubles: those every version reads right.

    SQLite 3.40 rounds twice: it reads 16.174532293615, 0.4999 of a step from the nearest double, as the next one.
    """
    digits = len("".join(map(str, value.as_tuple().digits)).strip("0")) or 1
    size = abs(found)
    away = abs(Fraction(value) - Fraction(found)) / Fraction(math.ulp(found))
    short = digits <= 15 and 1e-7 <= size <= 1e22 and away <= Fraction(499, 1000)
    close = digits <= 17 and 1e-60 <= size <= 1e60 and away <= Fraction(46, 100)
    if not short and not close:
        raise Unread(f"{_short(str(value))}: some versions of SQLite read another double, write it as %.16e")


def text_as_double(engine: Engine, text: str) -> float:
    """CAST('…' AS DOUBLE)."""
    word = WORDS.get(text.lower())
    if word is not None:
        return word if engine.words else 0.0
    if not NUMBER.fullmatch(text) or len(text) > LONGEST:
        raise Unread(f"the text {_short(text)!r} cast to a double")
    exact = _decimal(text)
    digits = len("".join(map(str, exact.as_tuple().digits)).strip("0")) or 1
    if engine.texts_are_cast == "never" or (engine.texts_are_cast == "short" and digits > 15):
        raise Unread(f"the text {text!r} cast to a double: some versions of {engine.name} read another one")
    return nearest(engine, exact)


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."
