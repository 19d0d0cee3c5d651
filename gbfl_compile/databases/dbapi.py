"""Any DB-API connection: enough to run our SQL where the user's tables are. It takes no rows in."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from gbfl_compile.databases.base import Database, Missing, told
from gbfl_compile.databases.names import Naming, quoted
from gbfl_compile.errors import CannotRun

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Matrix

NAMINGS = {
    "snowflake": Naming("Snowflake", "double", longest=255, case_blind=False),
    "bigquery": Naming("BigQuery", "backslash", longest=300),
    "databricks": Naming("Databricks", "back", longest=255),
    "redshift": Naming("Redshift", "double", longest=127),
    "trino": Naming("Trino", "double"),
    "tsql": Naming("SQL Server", "double", longest=128),
    "oracle": Naming("Oracle", "double", longest=128, case_blind=False),
}
"""Engines that were never run here: how they spell names is taken from their documents."""


def over(dialect: str, connection: Any, commits: bool = False) -> Database:
    """A database over a connection of a driver we do not know; `commits` after each statement, or leaves that alone."""
    naming = NAMINGS[dialect]
    version = f"{naming.engine} (version not asked)"

    def execute(statement: str) -> None:
        with told(version), closing(connection.cursor()) as cursor:
            cursor.execute(statement)
            if commits:
                connection.commit()

    def fetch(query: str) -> list[tuple[Any, ...]]:
        with told(version), closing(connection.cursor()) as cursor:
            cursor.execute(query)
            return [tuple(row) for row in cursor.fetchall()]

    def insert(table: str, columns: Sequence[str], rows: Matrix, *, missing: Missing = "null") -> None:
        raise CannotRun(f"{naming.engine}: rows are not put in there, only tables that are there already are scored")

    def quote(name: str) -> str:
        return quoted(naming, name)

    return Database(dialect, version, execute, fetch, insert, connection.close, quote)
