"""SQLite through the standard library.

It stores NaN as NULL, whichever was asked for, and -0.0 as 0.0, which it equals; infinities it holds.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gbfl_compile.databases.base import Database, Missing, told
from gbfl_compile.databases.names import Naming, quoted, quoted_columns

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Matrix

NAMING = Naming("SQLite", "back")
"""In back quotes: SQLite takes an unknown name in double quotes for a string, and says nothing."""


def scratch() -> Database:
    """A database in memory."""
    return over(sqlite3.connect(":memory:", isolation_level=None), temporary=False)


def over(connection: sqlite3.Connection, temporary: bool = True) -> Database:
    """A database over an open connection."""
    version = f"SQLite {sqlite3.sqlite_version}"
    place = "temp" if temporary else "main"

    def execute(statement: str) -> None:
        with told(version):
            connection.execute(statement).close()

    def fetch(query: str) -> list[tuple[Any, ...]]:
        with told(version):
            return connection.execute(query).fetchall()

    def insert(table: str, columns: Sequence[str], rows: Matrix, *, missing: Missing = "null") -> None:
        first, *names = quoted_columns(NAMING, columns)
        name = f"{place}.{quoted(NAMING, table)}"
        fields = ", ".join([f"{first} INTEGER", *(f"{column} REAL" for column in names)])
        marks = ", ".join("?" * (1 + len(names)))
        values = ((number, *row) for number, row in enumerate(rows.tolist()))
        with told(version):
            connection.execute(f"DROP TABLE IF EXISTS {name}")
            connection.execute(f"CREATE TABLE {name} ({fields})")
            began = not connection.in_transaction
            if began:
                connection.execute("BEGIN")  # one transaction for all rows, not one a row
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", values)  # noqa: S608 - quoted above
            if began:
                connection.execute("COMMIT")

    def quote(name: str) -> str:
        return quoted(NAMING, name)

    return Database("sqlite", version, execute, fetch, insert, connection.close, quote, holds_nan=False)
