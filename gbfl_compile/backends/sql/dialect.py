"""How SQL engines differ, as data: one frozen row per engine (`engines`), the reason beside each entry.

The emitter knows no engine by name. Tests ask each engine itself whether its row is right; the rows of engines that
were never run here say so in `not_run`.

A `Spelling` says how an engine writes words, booleans, dates and timestamps so that they compare exactly. A column is
converted once, whatever its type and collation: text becomes text that is compared by its code points, a date a day, a
timestamp a moment in UTC. Thresholds and listed texts are literals of that type. All of this was seen on the engines
themselves, on columns with hostile collations and in sessions with another time zone; tests ask them again.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from gbfl_compile.ir.nodes import Kind


@dataclass(frozen=True, slots=True)
class Spelling:
    """How one kind of feature is written. Templates take {column}, {text} (a string literal), {hex} and {number}."""

    column: str
    """The column of the table, converted; a NULL stays NULL."""
    argument: str
    """The type of a function's argument."""
    staged: str
    """A value for a check, which does not go through string literals where these are what is to be checked."""
    literal: str = "{text}"
    """What the converted column is compared with."""
    earliest: datetime.date = datetime.date.min
    latest: datetime.date = datetime.date.max
    """What the converted column can hold."""
    zone: str = ""
    """What follows the text of a moment, where it would be taken in the session's time zone without."""

    @property
    def holds_every_date(self) -> bool:
        """Whether there is a value for each day of Python's calendar."""
        return (self.earliest, self.latest) == (datetime.date.min, datetime.date.max)


AS_DATE = Spelling("CAST({column} AS DATE)", "DATE", "CAST({text} AS DATE)", "DATE {text}")

SQLITE_KINDS: Mapping[Kind, Spelling] = {
    # CAST alone keeps COLLATE NOCASE and RTRIM of the column; with COLLATE the stage's column is compared exactly
    "category": Spelling("CAST({column} AS TEXT) COLLATE BINARY", "TEXT", "CAST(x'{hex}' AS TEXT)"),
    "boolean": Spelling("CAST({column} AS INTEGER)", "INTEGER", "{number}"),  # 1 and 0
    # no type for dates: ISO text, which is in the order of its letters. 24:00, T and time zones are not
    "date": Spelling("CAST({column} AS TEXT) COLLATE BINARY", "TEXT", "{text}"),
    "timestamp": Spelling("CAST({column} AS TEXT) COLLATE BINARY", "TEXT", "{text}"),
}

DUCKDB_KINDS: Mapping[Kind, Spelling] = {
    # CAST alone keeps COLLATE NOCASE, and default_collation applies to what has none; C overrides both
    "category": Spelling("CAST({column} AS VARCHAR) COLLATE C", "VARCHAR", "decode(unhex('{hex}'))"),
    "boolean": Spelling("CAST({column} AS BOOLEAN)", "BOOLEAN", "CAST({number} AS BOOLEAN)"),
    "date": AS_DATE,
    # a cast of TIMESTAMPTZ to TIMESTAMP goes by the session's time zone, microseconds since 1970 do not
    "timestamp": Spelling(
        "make_timestamp(epoch_us({column}))",
        "TIMESTAMP",
        "make_timestamp(CAST('{number}' AS BIGINT))",
        "TIMESTAMP {text}",
    ),
}

POSTGRES_KINDS: Mapping[Kind, Spelling] = {
    # the cast takes ENUM, citext and CHAR(n), whose padding it drops; "C" overrides nondeterministic collations
    "category": Spelling('CAST({column} AS TEXT) COLLATE "C"', "TEXT", "convert_from(decode('{hex}', 'hex'), 'UTF8')"),
    "boolean": Spelling("CAST({column} AS BOOLEAN)", "BOOLEAN", "CAST({number} AS BOOLEAN)"),
    "date": AS_DATE,
    # a cast of TIMESTAMPTZ to TIMESTAMP goes by the session's time zone; the epoch of either is exact, as a NUMERIC
    "timestamp": Spelling(
        "EXTRACT(EPOCH FROM {column})",
        "TIMESTAMP",
        "CAST({text} AS TIMESTAMP)",
        "EXTRACT(EPOCH FROM TIMESTAMP {text})",
    ),
}

MARIADB_KINDS: Mapping[Kind, Spelling] = {
    # 'a' = 'A' = 'a ' = 'á' by default, and 'a' = 'a ' even by utf8mb4_bin; bytes are compared with a literal's bytes.
    # CONVERT first, because a latin1 column has other bytes
    "category": Spelling(
        "CAST(CONVERT({column} USING utf8mb4) AS BINARY)",
        "LONGTEXT CHARACTER SET utf8mb4",
        "CONVERT(x'{hex}' USING utf8mb4)",
    ),
    "boolean": Spelling("CAST({column} AS SIGNED)", "BOOLEAN", "{number}"),  # BOOLEAN is TINYINT(1); BIT(1) too
    "date": AS_DATE,
    # the session's time zone does not touch a DATETIME
    "timestamp": Spelling(
        "CAST({column} AS DATETIME(6))", "DATETIME(6)", "CAST({text} AS DATETIME(6))", "TIMESTAMP {text}"
    ),
}

CLICKHOUSE_KINDS: Mapping[Kind, Spelling] = {
    # an Enum compared with a text that it does not have is an error; FixedString loses its padding of NUL bytes
    "category": Spelling("toString({column})", "String", "unhex('{hex}')"),
    "boolean": Spelling("toBool({column})", "Bool", "toBool({number})"),
    # DATE '1950-01-01' is 1970-01-01: its type begins there
    "date": Spelling(
        "toDate32({column})",
        "Date32",
        "toDate32({text})",
        "toDate32({text})",
        datetime.date(1900, 1, 1),
        datetime.date(2299, 12, 31),
    ),
    "timestamp": Spelling(
        "toDateTime64({column}, 6)",
        "DateTime64(6)",
        "toDateTime64({text}, 6, 'UTC')",
        "toDateTime64({text}, 6, 'UTC')",
        datetime.date(1900, 1, 1),
        datetime.date(2299, 12, 31),
    ),
}

SPARK_KINDS: Mapping[Kind, Spelling] = {
    "category": Spelling("CAST({column} AS STRING) COLLATE UTF8_BINARY", "STRING", "decode(unhex('{hex}'), 'UTF-8')"),
    "boolean": Spelling("CAST({column} AS BOOLEAN)", "BOOLEAN", "CAST({number} AS BOOLEAN)"),
    "date": AS_DATE,
    # TIMESTAMP_NTZ would be converted by the session's time zone; its microseconds are taken as UTC
    "timestamp": Spelling(
        "timestamp_micros(unix_micros({column}))",
        "TIMESTAMP",
        "timestamp_micros(CAST('{number}' AS BIGINT))",
        "TIMESTAMP {text}",
        zone=" UTC",
    ),
}

DATAFUSION_KINDS: Mapping[Kind, Spelling] = {
    "category": Spelling("CAST({column} AS VARCHAR)", "VARCHAR", "CAST(decode('{hex}', 'hex') AS VARCHAR)"),
    "boolean": Spelling("CAST({column} AS BOOLEAN)", "BOOLEAN", "CAST({number} AS BOOLEAN)"),
    "date": AS_DATE,
    # TIMESTAMP is one of nanoseconds, which end in 2262; microseconds hold the whole calendar
    "timestamp": Spelling(
        "to_timestamp_micros({column})",
        "TIMESTAMP",
        "to_timestamp_micros(CAST('{number}' AS BIGINT))",
        "to_timestamp_micros({text})",
    ),
}


Missing: TypeAlias = Literal["null", "greatest", "ieee", "total"]
"""How NaN compares. null: the engine has none. greatest: above +inf and equal to itself, so `x >= 1` holds.
ieee: every comparison fails but `<>`. total: a NaN is above +inf or, with its sign bit set, below -inf, and NaNs of
different bits differ."""

Form: TypeAlias = Literal["expression", "select", "view", "table", "dbt", "macro"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one engine spells things, what NaN does in it and what its limits are."""

    name: str
    """The part of the target after `sql:`."""
    engine: str
    """What people call it."""
    sqlglot: str
    """The dialect sqlglot reads it as."""

    double: str
    """The type of 64-bit floating point numbers."""
    bigint: str
    """The type of 64-bit integers, as CAST spells it."""
    missing: Missing
    cast: str = "CAST({column} AS {type})"
    """How a column is converted to double; a NULL stays NULL."""
    bigint_column: str = "BIGINT"
    """The type of 64-bit integers, as a function's result spells it."""
    text: str = "VARCHAR"
    """The type of strings of any length."""
    nan_test: str = ""
    """For ieee and total: the function that says whether a value is NaN."""

    identifier: Literal['"', "`", "["] = '"'
    longest_name: int = 255
    """In bytes of UTF-8. PostgreSQL truncates a longer one without an error, so it is refused here."""
    folds_case: bool = False
    """Whether quoted names that differ only in case are the same name. Other Unicode foldings are then uncertain."""
    unusable_aliases: frozenset[str] = frozenset()
    """Names, in lower case, that a column of a table may have but not one of a subselect, however they are quoted."""
    substituted: str = ""
    """What common clients replace in the text before the engine sees it, even in strings and comments."""
    refused_in_names: str = ""
    """Characters that no quoting allows in a name."""
    identifier_escapes: bool = False
    """Whether a backslash in a quoted name is an escape."""
    string_escapes: bool = False
    """Whether a backslash in a string is an escape."""
    escaped_quote: str = "''"
    """A quote inside a string. Spark reads 'it''s' as two strings; MariaDB can be set not to read \\' as a quote."""
    string_prefix: str = ""
    """The prefix that makes a string literal Unicode."""
    escape_prefix: str = ""
    """The prefix under which backslash escapes work under any server settings."""

    exponent_is_double: bool = True
    """Whether `1.5e0` is a double; where it is a decimal (NUMERIC) it is cast."""
    decimal_digits: Literal["shortest", "seventeen"] = "shortest"
    widest_literal: tuple[float, float] = (0.0, float("inf"))
    """The magnitudes whose decimal spelling the engine reads exactly; others are products of powers of two."""
    refused_literals: tuple[float, float] = (0.0, float("inf"))
    """The magnitudes the type can hold; others are refused."""
    booleans: bool = True
    """Whether TRUE is a value; where not, it is 1."""
    least: str = "LEAST"
    greatest: str = "GREATEST"
    concatenates: bool = True
    """Whether || joins strings; where not, CONCAT does."""
    lists: bool = False
    """Whether `[a, b][1]` is a quick constant look-up."""

    fence: str = ""
    """What keeps an engine from copying a stage's expression to each place that uses it."""
    lateral: bool = False
    """Whether a view puts its fence in a LATERAL subselect: a filter on the view then still reaches the table."""
    fences_rows: bool = False
    """Whether a rule set is faster when the columns are cast in a fenced stage, once per row."""
    shares_clauses: int = 0
    """How many clauses to compute per stage, where that is faster than repeating them for each class; 0: never."""

    nesting: int = 200
    """How many CASEs deep an expression may go."""
    whens: int = 5000
    """How many WHENs one CASE may have."""
    terms: int = 5000
    """How many terms a balanced sum may have in one expression; more are added in a further stage."""
    brackets: bool = True
    """Whether sums are balanced by brackets; where reading them is slow, sums are kept short instead (`terms`)."""
    added: int = 100_000
    """How many terms all sums of a rule set may have in total; more are refused."""
    columns: int = 1000
    """How many columns a stage may have."""
    longest_query: int = 1_000_000_000
    """In bytes."""
    raise_limits: tuple[str, ...] = ()
    """Statements that lift the engine's own limits for a large query."""

    replaces_views: bool = True
    """Whether CREATE OR REPLACE VIEW exists."""
    table_as: str = "CREATE TABLE {name} AS"
    selects_into: bool = False
    """Whether a table is created by SELECT … INTO it."""
    macro: str | None = None
    """How a function of the features is created, or None where SQL cannot create one."""
    typed_arguments: bool = True
    """Whether the function's arguments name their type."""
    macro_arguments: int = 1000
    schema_made_by: str | None = "CREATE SCHEMA IF NOT EXISTS {name}"
    """How a schema is created in a scratch database, when an artifact that names one is run."""
    longest_result: int = 2**31 - 1
    """Characters of a text that a function can return."""

    kinds: Mapping[Kind, Spelling] = field(default_factory=dict)
    """How words, booleans, dates and timestamps are written; a kind that is not there is refused."""
    doubtful_not_in: bool = False
    """Whether a setting lets NULL NOT IN ('a', 'b') hold."""
    not_run: str | None = None
    """Why no test ran this dialect, or None."""
