"""The types of a table's columns, where they are not what a proof takes them for: doubles, or numbers exact as such."""

from __future__ import annotations

from collections.abc import Sequence

from gbfl_compile.audit.view_tables import Table, column_types
from gbfl_compile.check.reading import Unread
from gbfl_compile.databases.base import Database
from gbfl_compile.errors import CannotRun

DOUBLES = (
    "double",
    "double precision",
    "float8",
    "float64",
    "boolean",
    "bool",
    "tinyint",
    "smallint",
    "integer",
    "int",
)
"""Types whose values are doubles, compared as doubles. Wider integers, decimals, float32 and text are not."""

SHORT_INTEGERS = (
    "int8",
    "int16",
    "int32",
    "uint8",
    "uint16",
    "uint32",
    "mediumint",
    "utinyint",
    "usmallint",
    "uinteger",
)
"""Elsewhere `int8` is ClickHouse's; in PostgreSQL the catalog writes `bigint` for its own."""


def other_types(database: Database, table: Table, columns: Sequence[str]) -> list[tuple[str, str]]:
    """Columns whose type is none of those, with it; nothing where the database could not be asked."""
    try:
        rows = column_types(database, table)
    except (CannotRun, Unread):
        return []
    wanted = {column.casefold() for column in columns}
    known = {*DOUBLES, *SHORT_INTEGERS, *(("real", "float") if database.dialect == "sqlite" else ())}
    return [
        (column, kind or "of no declared type")
        for column, kind in rows
        if column.casefold() in wanted and _bare(kind) not in known
    ]


def _bare(kind: str) -> str:
    """`Nullable(Float64)` is Float64 as far as numbers go."""
    lowered = kind.casefold()
    return lowered.removeprefix("nullable(").removesuffix(")") if lowered.startswith("nullable(") else lowered
