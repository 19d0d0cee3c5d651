"""How each engine that runs here spells words, booleans, dates and timestamps so that they compare exactly.

A column is converted once, whatever its type and collation: text becomes text that is compared by its code points, a
date a day, a timestamp a moment in UTC. Thresholds and listed texts are literals of that type. All of this was seen on
the engines themselves, on columns with hostile collations and in sessions with another time zone; tests ask them again.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass

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

SQLITE: Mapping[Kind, Spelling] = {
    # CAST alone keeps COLLATE NOCASE and RTRIM of the column; with COLLATE the stage's column is compared exactly
    "category": Spelling("CAST({column} AS TEXT) COLLATE BINARY", "TEXT", "CAST(x'{hex}' AS TEXT)"),
    "boolean": Spelling("CAST({column} AS INTEGER)", "INTEGER", "{number}"),  # 1 and 0
    # no type for dates: ISO text, which is in the order of its letters. 24:00, T and time zones are not
    "date": Spelling("CAST({column} AS TEXT) COLLATE BINARY", "TEXT", "{text}"),
    "timestamp": Spelling("CAST({column} AS TEXT) COLLATE BINARY", "TEXT", "{text}"),
}

DUCKDB: Mapping[Kind, Spelling] = {
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

POSTGRES: Mapping[Kind, Spelling] = {
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

MARIADB: Mapping[Kind, Spelling] = {
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

CLICKHOUSE: Mapping[Kind, Spelling] = {
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

SPARK: Mapping[Kind, Spelling] = {
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

DATAFUSION: Mapping[Kind, Spelling] = {
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
