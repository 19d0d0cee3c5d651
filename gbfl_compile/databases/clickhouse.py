"""ClickHouse: chdb in this process for scratch work, a clickhouse-connect client for a user's own server."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gbfl_compile.databases.arrow import arrow_table, row_tuples
from gbfl_compile.databases.base import Database, Missing, library, told
from gbfl_compile.databases.names import Naming, quoted, quoted_columns

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Matrix

NAMING = Naming("ClickHouse", "backslash", case_blind=False)

_numbers = itertools.count()


def scratch() -> Database:
    """A database of its own in the one ClickHouse that a process can hold."""
    session = _session()
    name = f"gbfl_{next(_numbers)}"
    session.query(f"CREATE DATABASE {name}")

    def query(text: str, shape: str = "CSV") -> Any:
        session.query(f"USE {name}")  # the session has one current database, and other scratch ones use it too
        return session.query(text, shape)

    def put(name: str, made: Any) -> None:
        session.query(f"INSERT INTO {name} SELECT * FROM Python(made)")  # noqa: S608 - chdb finds `made` here

    closed: list[bool] = []

    def close() -> None:
        if not closed:
            closed.append(True)
            session.query(f"DROP DATABASE {name}")

    version = f"ClickHouse {_plain(session.query('SELECT version()'))}"
    return _database(version, query, lambda text: row_tuples(query(text, "ArrowTable")), put, close, "")


@functools.cache
def _session() -> Any:
    library("chdb", "engines")
    return library("chdb.session", "engines").Session()


def _plain(answer: Any) -> str:
    return str(answer.bytes().decode().strip().strip('"'))


def over(client: Any) -> Database:
    """A database over a clickhouse-connect client; inserted tables are temporary and go with its session."""

    def fetch(text: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in client.query(text).result_rows]

    version = f"ClickHouse {client.server_version}"
    return _database(version, client.command, fetch, client.insert_arrow, client.close, "TEMPORARY ")


def _database(
    version: str,
    command: Callable[[str], Any],
    rows_of: Callable[[str], list[tuple[Any, ...]]],
    put: Callable[[str, Any], Any],
    close: Callable[[], None],
    kind: str,
) -> Database:
    def execute(statement: str) -> None:
        with told(version):
            command(statement)

    def fetch(query: str) -> list[tuple[Any, ...]]:
        with told(version):
            return rows_of(query)

    def insert(table: str, columns: Sequence[str], rows: Matrix, *, missing: Missing = "null") -> None:
        first, *names = quoted_columns(NAMING, columns)
        name = quoted(NAMING, table)
        fields = ", ".join([f"{first} Int64", *(f"{column} Nullable(Float64)" for column in names)])
        made = arrow_table(columns, rows, missing)
        with told(version):
            command(f"DROP {kind}TABLE IF EXISTS {name}")
            command(f"CREATE {kind}TABLE {name} ({fields}) ENGINE = Memory")
            if len(rows):
                put(name, made)

    def quote(name: str) -> str:
        return quoted(NAMING, name)

    return Database("clickhouse", version, execute, fetch, insert, close, quote)
