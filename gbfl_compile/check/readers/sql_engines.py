"""How each SQL engine reads what is written: NaN, number literals, names, truth values. The reader's own table.

It says nothing of how SQL is written for an engine: that is the backend's, and a reader that shared it would share
its mistakes. Tests ask SQLite, DuckDB, PostgreSQL, MariaDB, ClickHouse and Spark whether they answer as they are read
(tests/check/test_readers_sql_engines.py, tests/engines/test_catalog_views.py); the other rows are from documentation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

Nan: TypeAlias = Literal["none", "greatest", "ieee"]
"""none: stored as NULL or refused. greatest: above +inf and equal to itself. ieee: no comparison but `<>` holds."""

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
    """Whether 1 and 0 stand for true and false, and true and false for them."""
    exact_texts: bool = True
    """Whether two texts are equal only when they are the same."""
    null_is_not_nan: bool = False
    """Whether isnan(NULL) is false; elsewhere it is NULL."""
    nullable_casts: bool = False
    """Whether CAST to a type raises on NULL unless the type is Nullable."""
    looks_up_bits: bool = False
    """Whether CASE x WHEN NULL finds a NULL, IN leaves a NULL of its list out, and 0.0 in a list is not -0.0."""
    executed_comments: bool = False
    """Whether /*! … */ is no comment."""
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
        Engine("duckdb", "duckdb", "greatest", "fold", most_digits=15, most_scale=22, bare_texts=True, null_after=True),
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
            "greatest",
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
