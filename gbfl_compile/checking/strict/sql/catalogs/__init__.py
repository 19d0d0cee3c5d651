"""The views of each engine, as its catalog prints them: which lexis, which productions, which frame.

SQLite keeps the text of CREATE VIEW as it was written. DuckDB prints names without quotes, `!=`, and lists as
list_value(…), and dates as CAST(… AS DATE).
MariaDB qualifies every column, leaves CREATE VIEW out, puts a backslash before quotes in strings, and prints AS BINARY
as AS CHAR CHARSET BINARY.
PostgreSQL and ClickHouse have files of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql.catalogs import clickhouse, postgres
from gbfl_compile.checking.strict.sql.cursor import Catalog, Cursor, need_sign, need_words
from gbfl_compile.checking.strict.sql.forms import artifact, finish
from gbfl_compile.checking.strict.sql.grammar import ADDED, expression, list_of, look_up, value
from gbfl_compile.checking.strict.sql.lexis import LEXIS, Lexis, lexis_of
from gbfl_compile.checking.strict.sql.logic import Asked
from gbfl_compile.checking.strict.sql.stages import Columns, query
from gbfl_compile.checking.strict.sql.values import Value
from gbfl_compile.checking.strict.sql.words import one_of

Reader: TypeAlias = tuple[Lexis, Catalog, Callable[[Cursor], Columns]]


def _list_value(at: Cursor) -> Value:
    """list_value(a, b)[leaf + 1]."""
    need_sign(at, "(")
    return look_up(at, list_of(at, value, ")"))


def _not_in(at: Cursor) -> Asked:
    """NOT (word IN ('a', 'b')), which is how NOT IN is printed, and no other NOT."""
    need_sign(at, "(")
    left = expression(at, ADDED)
    need_words(at, "IN")
    found = one_of(at, left, negated=True)
    need_sign(at, ")")
    return found


def _query_alone(at: Cursor) -> Columns:
    return finish(at, query(at), closed=False)


CATALOGS: Mapping[str, Reader] = {
    "sqlite": (LEXIS["sqlite"], Catalog(), artifact),
    "duckdb": (
        replace(LEXIS["duckdb"], bare_names=True, signs=("!=",)),
        Catalog(words={"list_value": _list_value, "NOT": _not_in}, folds_names=True, casts_moments=True),
        artifact,
    ),
    "mariadb": (
        replace(
            LEXIS["mariadb"],
            string_escapes={"\\": "\\", "n": "\n", "r": "\r", "'": "'", "Z": "\x1a"},
            doubled_quotes=False,
            before_quotes=("DATE", "TIMESTAMP"),
        ),
        Catalog(conversion_ends={"category": "USING utf8mb4) AS CHAR CHARSET BINARY)"}),
        _query_alone,
    ),
    "postgres": (postgres.LEXIS_OF_VIEWS, postgres.CATALOG, postgres.read_view),
    "clickhouse": (clickhouse.LEXIS_OF_VIEWS, clickhouse.CATALOG, clickhouse.read_view),
}


def catalog_of(dialect: str) -> Reader:
    """How the views of an engine are read back, or Unread where it keeps none."""
    lexis = lexis_of(dialect)
    if dialect not in CATALOGS:
        raise Unread(f"{lexis.engine} keeps no text of its views that is read here")
    return CATALOGS[dialect]
