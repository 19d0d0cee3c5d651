"""How each engine must convert a column of words, booleans, dates or timestamps before it is compared, and with what.

The checker's own table, which shares nothing with the emitter's. Each row was seen to be exact on the engine itself:
whatever the column's collation, in any session's time zone. Whatever is written otherwise is not read.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass

from gbfl_compile.ir.nodes import Kind


@dataclass(frozen=True, slots=True)
class Conversion:
    """The fixed pieces of SQL around a column and around the text of a literal."""

    before: str
    after: str
    argument: str
    """The type of a function's argument."""
    literal: tuple[str, str] = ("", "")
    earliest: datetime.date = datetime.date.min
    latest: datetime.date = datetime.date.max
    """A literal outside of these is another day in some versions."""
    zone: str = ""
    """What the text of a moment must end in: without it the session's time zone would count."""


_DATE = Conversion("CAST(", "AS DATE)", "DATE", ("DATE", ""))
_BOOLEAN = Conversion("CAST(", "AS BOOLEAN)", "BOOLEAN")
_SINCE, _UNTIL = datetime.date(1900, 1, 1), datetime.date(2299, 12, 31)

CONVERSIONS: Mapping[str, Mapping[Kind, Conversion]] = {
    "sqlite": {
        "category": Conversion("CAST(", "AS TEXT) COLLATE BINARY", "TEXT"),  # a plain CAST keeps NOCASE and RTRIM
        "boolean": Conversion("CAST(", "AS INTEGER)", "INTEGER"),
        "date": Conversion("CAST(", "AS TEXT) COLLATE BINARY", "TEXT"),  # ISO text
        "timestamp": Conversion("CAST(", "AS TEXT) COLLATE BINARY", "TEXT"),
    },
    "duckdb": {
        "category": Conversion("CAST(", "AS VARCHAR) COLLATE C", "VARCHAR"),  # else NOCASE or default_collation counts
        "boolean": _BOOLEAN,
        "date": _DATE,
        "timestamp": Conversion("make_timestamp(epoch_us(", "))", "TIMESTAMP", ("TIMESTAMP", "")),
    },
    "postgres": {
        "category": Conversion("CAST(", 'AS TEXT) COLLATE "C"', "TEXT"),
        "boolean": _BOOLEAN,
        "date": _DATE,
        "timestamp": Conversion("EXTRACT(EPOCH FROM", ")", "TIMESTAMP", ("EXTRACT(EPOCH FROM TIMESTAMP", ")")),
    },
    "mariadb": {
        "category": Conversion(
            "CAST(CONVERT(", "USING utf8mb4) AS BINARY)", "LONGTEXT CHARACTER SET utf8mb4"
        ),  # a text compared with bytes is compared by its bytes
        "boolean": Conversion("CAST(", "AS SIGNED)", "BOOLEAN"),
        "date": _DATE,
        "timestamp": Conversion("CAST(", "AS DATETIME(6))", "DATETIME(6)", ("TIMESTAMP", "")),
    },
    "clickhouse": {
        "category": Conversion("toString(", ")", "String"),
        "boolean": Conversion("toBool(", ")", "Bool"),
        "date": Conversion("toDate32(", ")", "Date32", ("toDate32(", ")"), _SINCE, _UNTIL),
        "timestamp": Conversion(
            "toDateTime64(", ", 6)", "DateTime64(6)", ("toDateTime64(", ", 6, 'UTC')"), _SINCE, _UNTIL
        ),
    },
    "spark": {
        "category": Conversion("CAST(", "AS STRING) COLLATE UTF8_BINARY", "STRING"),
        "boolean": _BOOLEAN,
        "date": _DATE,
        "timestamp": Conversion("timestamp_micros(unix_micros(", "))", "TIMESTAMP", ("TIMESTAMP", ""), zone=" UTC"),
    },
    "datafusion": {
        "category": Conversion("CAST(", "AS VARCHAR)", "VARCHAR"),
        "boolean": _BOOLEAN,
        "date": _DATE,
        "timestamp": Conversion("to_timestamp_micros(", ")", "TIMESTAMP", ("to_timestamp_micros(", ")")),
    },
}

DOUBTFUL_NOT_IN = frozenset({"clickhouse"})
"""Where NULL NOT IN ('a') holds or does not, by a setting: transform_null_in."""
