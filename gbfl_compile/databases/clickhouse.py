"""ClickHouse: chdb in this process for scratch work, a clickhouse-connect client for a user's own server."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gbfl_compile.databases.base import (
    CONNECTS_WITHIN,
    Address,
    Database,
    Missing,
    Naming,
    Replacement,
    arrow_table,
    engine_errors,
    library,
    quote_columns,
    quote_name,
    row_tuples,
)
from gbfl_compile.databases.catalog import (
    Catalog,
    Column,
    ColumnType,
    StoredView,
    TableName,
    column_type,
    enumeration,
    integers,
    literal,
    view_name,
)
from gbfl_compile.errors import CannotRun

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Matrix

NAMING = Naming("ClickHouse", "backslash", case_blind=False)

BY_EXCHANGING = Replacement(("EXCHANGE TABLES {old} AND {fresh}", "DROP TABLE {fresh}"))
"""Only the tables of an Atomic database can be exchanged."""
BY_RENAMING = Replacement(("DROP TABLE {old}", "RENAME TABLE {fresh} TO {old}"))

_numbers = itertools.count()


def scratch() -> Database:
    """A private database in the one ClickHouse that a process can hold."""
    session = _session()
    name = f"gbfl_{next(_numbers)}"
    session.query(f"CREATE DATABASE {name}")

    def query(text: str, shape: str = "CSV") -> Any:
        session.query("SET max_threads = 1")  # several threads return blocks in any order
        session.query(f"USE {name}")  # the session has one current database, and other scratch ones use it too
        return session.query(text, shape)

    def put(name: str, rows: Any) -> None:
        session.query(f"INSERT INTO {name} SELECT * FROM Python(rows)")  # noqa: S608 - chdb looks up `rows` here

    closed: list[bool] = []

    def close() -> None:
        if not closed:
            closed.append(True)
            session.query(f"DROP DATABASE {name}")

    version = f"ClickHouse {_plain(session.query('SELECT version()'))}"
    database = _database(version, query, lambda text: row_tuples(query(text, "ArrowTable")), put, close, "")
    return dataclasses.replace(database, keeps_order=True)


@functools.cache
def _session() -> Any:
    library("chdb", "engines")
    return library("chdb.session", "engines").Session()


def _plain(answer: Any) -> str:
    return str(answer.bytes().decode().strip().strip('"'))


def open_server(address: Address) -> Database:
    """A user's server."""
    options: dict[str, Any] = {"host": address.host or "localhost", "connect_timeout": CONNECTS_WITHIN}
    options |= {"port": address.port or 0, "username": address.user or None, "password": address.password}
    options |= {"database": address.database or "__default__", **address.options}
    driver = library("clickhouse_connect", "engines")
    logging.getLogger("clickhouse_connect").addHandler(logging.NullHandler())  # else it prints errors on stderr too
    return over(driver.get_client(**options))


def over(client: Any) -> Database:
    """A database over a clickhouse-connect client; inserted tables are temporary and end with its session."""

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
        with engine_errors(version):
            command(statement)

    def fetch(query: str) -> list[tuple[Any, ...]]:
        with engine_errors(version):
            return rows_of(query)

    def insert(table: str, columns: Sequence[str], rows: Matrix, *, missing: Missing = "null") -> None:
        first, *names = quote_columns(NAMING, columns)
        name = quote_name(NAMING, table)
        fields = ", ".join([f"{first} Int64", *(f"{column} Nullable(Float64)" for column in names)])
        content = arrow_table(columns, rows, missing)
        with engine_errors(version):
            command(f"DROP {kind}TABLE IF EXISTS {name}")
            command(f"CREATE {kind}TABLE {name} ({fields}) ENGINE = Memory")
            if len(rows):
                put(name, content)

    return Database(
        "clickhouse",
        version,
        execute,
        fetch,
        insert,
        close,
        functools.partial(quote_name, NAMING),
        replacements=(BY_EXCHANGING, BY_RENAMING),
    )


TYPES = {
    "float64": ColumnType("double"),
    "float32": ColumnType("float32"),
    **{f"int{bits}": integers(bits) for bits in (8, 16, 32, 64, 128, 256)},
    **{f"uint{bits}": integers(bits, True) for bits in (8, 16, 32, 64, 128, 256)},
    "bool": ColumnType("boolean", 0.0, 1.0),
}
DEFAULT_DECIMAL = (10, 0)


def _where(table: TableName, column: str) -> str:
    schema = literal(table.schema)
    return f"{column} = {view_name(table.name)} AND database = if({schema} = '', currentDatabase(), {schema})"


def stored_view(database: Database, view: TableName) -> StoredView | None:
    """The view's query; a materialized view, refreshed or not, answers from a table of stored rows."""
    rows = database.fetch(
        "SELECT as_select, engine, create_table_query FROM system.tables "  # noqa: S608 - literals
        f"WHERE {_where(view, 'name')} AND as_select <> ''"
    )
    if not rows:
        return None
    query, engine, statement = map(str, rows[0])
    return StoredView(query, engine != "View", statement, conversion=_conversion(database, view, query))


def _conversion(database: Database, view: TableName, query: str) -> str | None:
    """The first column that the view declares otherwise than its query gives it: the table may have changed since."""
    declared = database.fetch(
        f"SELECT name, type FROM system.columns WHERE {_where(view, 'table')} ORDER BY position"  # noqa: S608
    )
    try:
        columns = [(str(name), str(kind)) for name, kind, *_ in database.fetch(f"DESCRIBE TABLE ({query})")]
    except CannotRun:  # a table or column is gone: asking for rows gives the reason
        return None
    if len(columns) != len(declared):
        return f"the view declares {len(declared)} columns, and its query gives {len(columns)}"
    for (name, kind), (own, type_) in zip(declared, columns, strict=True):
        if (str(name), str(kind)) != (own, type_):
            return f"the view declares {str(name)!r} as {kind}, and its query gives {own!r} as {type_}"
    return None


def is_view(database: Database, table: TableName) -> bool:
    """Whether a query that names this reads a view."""
    return bool(database.fetch(f"SELECT 1 FROM system.tables WHERE {_where(table, 'name')} AND as_select <> ''"))  # noqa: S608


def table_columns(database: Database, table: TableName) -> list[Column]:
    """The columns; only a Nullable type holds NULL."""
    rows = database.fetch(
        f"SELECT name, type, default_kind FROM system.columns WHERE {_where(table, 'table')} ORDER BY position"  # noqa: S608
    )
    return [
        Column(
            str(name),
            str(kind),
            _type(str(kind)),
            "Nullable(" in str(kind) or str(kind).startswith(("Variant", "Dynamic", "JSON")),
            str(default) in ("MATERIALIZED", "ALIAS", "EPHEMERAL"),
            str(kind) in EXACT_TEXTS or enumeration(str(kind), escapes=True) is not None,
            members=enumeration(str(kind), escapes=True),
        )
        for name, kind, default in rows
    ]


EXACT_TEXTS = ("String", "Nullable(String)", "LowCardinality(String)", "LowCardinality(Nullable(String))")
"""Not FixedString(n), which fills up with NUL characters and is equal to the text without them."""


BITS = ((9, 31), (18, 63), (38, 127), (76, 255))
"""Digits of a decimal, up to which it is stored in an integer of so many bits, its sign aside."""


def _type(declared: str) -> ColumnType:
    """The values of a type. A decimal may be as large as it can be stored: sums and casts do not count its digits."""
    found = column_type(_without_low_cardinality(declared), TYPES, DEFAULT_DECIMAL)
    if found.kind != "decimal":
        return found
    largest = 2.0 ** next(bits for digits, bits in BITS if found.digits <= digits) / 10.0**found.scale
    return dataclasses.replace(found, least=-largest, most=largest)


def _without_low_cardinality(declared: str) -> str:
    """LowCardinality(String) holds what a String does."""
    return declared.removeprefix("LowCardinality(").removesuffix(")") if declared.startswith("LowC") else declared


def copy_table(database: Database, table: TableName, name: str) -> None:
    """AS copies the columns."""
    database.execute(f"CREATE TEMPORARY TABLE {name} AS {table.in_quotes(database)} ENGINE = Memory")


CATALOG = Catalog(
    stored_view,
    is_view,
    table_columns,
    copy_table,
    zones="SELECT serverTimezone(), timezone()",
    names_fold=False,
    staging="CREATE TEMPORARY TABLE {name} ENGINE = Memory AS {query}",
    empty="TRUNCATE TABLE {name}",
    not_nan="if(isNaN({value}), NULL, {value})",
    text="toString({value})",
    as_double="toFloat64({value})",
    truth_as_double="toFloat64({value})",
    limit=("SET max_execution_time = {seconds}", "SET max_execution_time = 0"),
)
