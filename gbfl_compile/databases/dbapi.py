"""Any DB-API connection: enough to run our SQL where the user's tables are. No rows can be inserted."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

from gbfl_compile.databases.base import (
    IN_TWO_STEPS,
    WITHIN_SCHEMA,
    Database,
    Missing,
    Naming,
    engine_errors,
    library,
    quote_name,
)
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
"""Engines that were never run here: how they spell names is taken from their documentation."""

BY_SQLALCHEMY = {
    "snowflake": "snowflake",
    "bigquery": "bigquery",
    "databricks": "databricks",
    "redshift": "redshift",
    "trino": "trino",
    "mssql": "tsql",
    "oracle": "oracle",
}
"""URL families that only SQLAlchemy and its driver can open -> our dialect. None was ever run here."""


def open_by_sqlalchemy(url: str, dialect: str) -> Database:
    """A user's database through SQLAlchemy."""
    engine = library("sqlalchemy", "engines").create_engine(url)
    return over(dialect, engine.raw_connection(), commits=True)


def over(dialect: str, connection: Any, commits: bool = False) -> Database:
    """A database over a connection of an unknown driver; with `commits`, each statement is committed."""
    naming = NAMINGS[dialect]
    version = f"{naming.engine} (version not asked)"

    def execute(statement: str) -> None:
        with engine_errors(version), closing(connection.cursor()) as cursor:
            cursor.execute(statement)
            if commits:
                connection.commit()

    def fetch(query: str) -> list[tuple[Any, ...]]:
        with engine_errors(version), closing(connection.cursor()) as cursor:
            cursor.execute(query)
            return [tuple(row) for row in cursor.fetchall()]

    def insert(table: str, columns: Sequence[str], rows: Matrix, *, missing: Missing = "null") -> None:
        raise CannotRun(f"{naming.engine}: rows cannot be inserted, only existing tables can be scored")

    replacements = (WITHIN_SCHEMA,) if dialect == "snowflake" else (IN_TWO_STEPS,)
    quote = partial(quote_name, naming)
    return Database(dialect, version, execute, fetch, insert, connection.close, quote, replacements=replacements)
