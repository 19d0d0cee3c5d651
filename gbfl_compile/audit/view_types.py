"""The types of a table's columns, where they are not what a proof takes them for: doubles, or numbers exact as such."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gbfl_compile.databases.base import Database
from gbfl_compile.errors import CannotRun

TYPES: Mapping[str, str] = {
    "postgres": "SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a "
    "WHERE a.attrelid = '{name}'::regclass AND a.attnum > 0 AND NOT a.attisdropped",
    "duckdb": "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = '{name}'",
    "sqlite": "SELECT name, type FROM pragma_table_info('{name}')",
    "mariadb": "SELECT column_name, data_type FROM information_schema.columns "
    "WHERE table_schema = DATABASE() AND table_name = '{name}'",
    "clickhouse": "SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = '{name}'",
}
"""How each database is asked for the types of a table's columns."""

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


def other_types(database: Database, table: str, columns: Sequence[str]) -> list[tuple[str, str]]:
    """Columns whose type is none of those, with it; nothing where the database could not be asked."""
    if database.dialect not in TYPES or not table or any(character in table for character in "'\\\0"):
        return []
    name = f'"{table}"' if database.dialect == "postgres" and '"' not in table else table
    try:
        rows = database.fetch(TYPES[database.dialect].format(name=name))
    except CannotRun:
        return []
    wanted = {column.casefold() for column in columns}
    known = {*DOUBLES, *SHORT_INTEGERS, *(("real", "float") if database.dialect == "sqlite" else ())}
    return [
        (str(column), str(kind) or "of no declared type")
        for column, kind in rows
        if str(column).casefold() in wanted and _bare(str(kind)) not in known
    ]


def _bare(kind: str) -> str:
    """`Nullable(Float64)` is Float64 as far as numbers go."""
    lowered = kind.casefold()
    return lowered.removeprefix("nullable(").removesuffix(")") if lowered.startswith("nullable(") else lowered
