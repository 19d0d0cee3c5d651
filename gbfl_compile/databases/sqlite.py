"""SQLite through the standard library.

It stores NaN as NULL in any case and -0.0 as 0.0, which it equals; it holds infinities.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from gbfl_compile.databases.base import (
    IN_TWO_STEPS,
    Address,
    Database,
    Missing,
    Naming,
    Replacement,
    engine_errors,
    existing_file,
    quote_columns,
    quote_name,
)
from gbfl_compile.databases.catalog import (
    Catalog,
    Column,
    ColumnType,
    StoredView,
    TableName,
    after_table_name,
    integers,
    literal,
    view_name,
)
from gbfl_compile.errors import BadInput, CannotRun

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Matrix

NAMING = Naming("SQLite", "back")
"""In back quotes: SQLite silently reads an unknown name in double quotes as a string."""

IN_A_SAVEPOINT = Replacement(
    ("SAVEPOINT gbfl_put", *IN_TWO_STEPS.steps, "RELEASE gbfl_put"), ("ROLLBACK TO gbfl_put", "RELEASE gbfl_put")
)


def scratch() -> Database:
    """A database in memory."""
    return over(sqlite3.connect(":memory:", isolation_level=None), temporary=False)


def open_file(address: Address, read_only: bool) -> Database:
    """A database file, which must exist."""
    file = existing_file(address)
    place = f"file:{quote(file)}?mode=ro" if read_only else file
    return over(sqlite3.connect(place, uri=read_only, isolation_level=None))


def over(connection: sqlite3.Connection, temporary: bool = True) -> Database:
    """A database over an open connection."""
    version = f"SQLite {sqlite3.sqlite_version}"
    place = "temp" if temporary else "main"

    def execute(statement: str) -> None:
        with engine_errors(version):
            connection.execute(statement).close()

    def fetch(query: str) -> list[tuple[Any, ...]]:
        with engine_errors(version):
            return connection.execute(query).fetchall()

    def insert(table: str, columns: Sequence[str], rows: Matrix, *, missing: Missing = "null") -> None:
        first, *names = quote_columns(NAMING, columns)
        name = f"{place}.{quote_name(NAMING, table)}"
        fields = ", ".join([f"{first} INTEGER", *(f"{column} REAL" for column in names)])
        marks = ", ".join("?" * (1 + len(names)))
        values = ((number, *row) for number, row in enumerate(rows.tolist()))
        with engine_errors(version):
            connection.execute(f"DROP TABLE IF EXISTS {name}")
            connection.execute(f"CREATE TABLE {name} ({fields})")
            began = not connection.in_transaction
            if began:
                connection.execute("BEGIN")  # one transaction for all rows
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", values)  # noqa: S608 - quoted above
            if began:
                connection.execute("COMMIT")

    return Database(
        "sqlite",
        version,
        execute,
        fetch,
        insert,
        connection.close,
        partial(quote_name, NAMING),
        holds_nan=False,
        keeps_order=True,  # one scan, by row number
        replacements=(IN_A_SAVEPOINT,),
        interrupt=connection.interrupt,
    )


def stored_view(database: Database, view: TableName) -> StoredView | None:
    """The view's CREATE VIEW statement. A temporary table or view of its name is refused: who reads which differs."""
    place = f"{database.quote(view.schema)}." if view.schema else ""
    tables = f"(SELECT * FROM sqlite_temp_master UNION ALL SELECT * FROM {place}sqlite_master)"  # noqa: S608 - quoted
    named = f"type IN ('view', 'table') AND lower(name) = lower({view_name(view.name)})"
    rows = database.fetch(f"SELECT sql, type FROM {tables} WHERE {named}")  # noqa: S608
    if len(rows) > 1:
        raise BadInput(f"{database.version} has {len(rows)} tables or views {view.name!r}: drop the temporary one")
    return StoredView(str(rows[0][0])) if rows and rows[0][1] == "view" else None


def is_view(database: Database, table: TableName) -> bool:
    """Whether a query that names this reads a view."""
    place = f"{database.quote(table.schema)}." if table.schema else ""
    tables = f"(SELECT * FROM sqlite_temp_master UNION ALL SELECT * FROM {place}sqlite_master)"  # noqa: S608 - quoted
    name = literal(table.name)
    return bool(database.fetch(f"SELECT 1 FROM {tables} WHERE type = 'view' AND lower(name) = lower({name})"))  # noqa: S608


def table_columns(database: Database, table: TableName) -> list[Column]:
    """The columns; those of a STRICT table hold their own type and nothing else."""
    name, schema = literal(table.name), literal(table.schema)
    listed = database.fetch(f"SELECT strict FROM pragma_table_list WHERE lower(name) = lower({name})")  # noqa: S608
    strict = bool(listed) and all(row[0] for row in listed)  # one of this name in another schema may be none
    rows = database.fetch(
        f"SELECT name, type, \"notnull\", hidden FROM pragma_table_xinfo({name}, NULLIF({schema}, ''))"  # noqa: S608
    )
    place = f"{database.quote(table.schema)}." if table.schema else ""
    tables = f"(SELECT * FROM sqlite_temp_master UNION ALL SELECT * FROM {place}sqlite_master)"  # noqa: S608 - quoted
    texts = database.fetch(f"SELECT sql FROM {tables} WHERE type = 'table' AND lower(name) = lower({name})")  # noqa: S608
    exact = bool(texts) and all("collate" not in str(text).casefold() for (text,) in texts)
    return [
        Column(
            str(column),
            str(kind) or "of no declared type",
            _type(str(kind), strict),
            not not_null,
            bool(hidden),
            exact and _type(str(kind), strict).kind == "text",
        )
        for column, kind, not_null, hidden in rows
    ]


def _type(declared: str, strict: bool) -> ColumnType:
    """The affinity, by SQLite's own rules."""
    upper = declared.upper()
    if strict and upper in ("INT", "INTEGER"):
        return integers(64)
    if "INT" not in upper and any(word in upper for word in ("CHAR", "CLOB", "TEXT")):
        return ColumnType("text")
    if "INT" not in upper and (not upper or "BLOB" in upper or (strict and upper == "ANY")):
        return ColumnType("other", engine_has_nan=False)  # it keeps '5' as a text, which is above every number
    return ColumnType("double", engine_has_nan=False)


def copy_table(database: Database, table: TableName, name: str) -> None:
    """The table's own CREATE TABLE statement under another name."""
    place = f"{database.quote(table.schema)}." if table.schema else ""
    rows = database.fetch(
        f"SELECT sql FROM {place}sqlite_master WHERE type = 'table' AND lower(name) = lower({literal(table.name)})"  # noqa: S608
    )
    if not rows or not str(rows[0][0]).upper().startswith("CREATE TABLE"):
        raise CannotRun(f"{database.version}: {table.name} is not a table that can be copied")
    database.execute(f"CREATE TEMP TABLE {name} {after_table_name(str(rows[0][0]))}")


CATALOG = Catalog(
    stored_view,
    is_view,
    table_columns,
    copy_table,
    references="SELECT \"table\" FROM pragma_foreign_key_list({name}, NULLIF({schema}, ''))",
    drop="DROP TABLE IF EXISTS temp.{name}",
    empty="DELETE FROM temp.{name}",
    text="CAST({value} AS TEXT)",
    as_double="{value}",
    truth_as_double="{value}",
)
