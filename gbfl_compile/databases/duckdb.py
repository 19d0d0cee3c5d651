"""DuckDB in this process. Rows go in as numpy columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from gbfl_compile.databases.base import (
    IN_TWO_STEPS,
    ROW,
    Address,
    Database,
    Missing,
    Naming,
    Replacement,
    engine_errors,
    existing_file,
    library,
    quote_columns,
    quote_name,
)
from gbfl_compile.databases.catalog import (
    Catalog,
    Column,
    ColumnType,
    StoredFunction,
    StoredView,
    TableName,
    after_table_name,
    column_type,
    enumeration,
    integers,
    literal,
    view_name,
)
from gbfl_compile.errors import BadInput, CannotRun

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Matrix

NAMING = Naming("DuckDB", "double")

IN_A_TRANSACTION = Replacement(("BEGIN TRANSACTION", *IN_TWO_STEPS.steps, "COMMIT"), ("ROLLBACK",))


def scratch() -> Database:
    """A database in memory."""
    return over(library("duckdb", "sql").connect(":memory:"), temporary=False)


def open_file(address: Address, read_only: bool) -> Database:
    """A database file, which must exist."""
    file = existing_file(address)
    return over(library("duckdb", "sql").connect(file, read_only=read_only))


def over(connection: Any, temporary: bool = True) -> Database:
    """A database over an open connection."""
    version = f"DuckDB {library('duckdb', 'sql').__version__}"
    kind, place = ("TEMP ", "temp.main.") if temporary else ("", "")

    def execute(statement: str) -> None:
        with engine_errors(version):
            connection.execute(statement)

    def fetch(query: str) -> list[tuple[Any, ...]]:
        with engine_errors(version):
            return list(connection.execute(query).fetchall())

    def insert(table: str, columns: Sequence[str], rows: Matrix, *, missing: Missing = "null") -> None:
        first, *names = quote_columns(NAMING, columns)
        name = quote_name(NAMING, table)
        # DuckDB reads every NaN of a numpy column as NULL: where NaN is wanted it is put back.
        value = "coalesce(\"{}\", CAST('NaN' AS DOUBLE))" if missing == "nan" else '"{}"'
        values = ", ".join([f"{ROW} AS {first}", *(f"{value.format(f'c{i}')} AS {c}" for i, c in enumerate(names))])
        source = _numpy_columns(rows)
        with engine_errors(version):
            connection.register("gbfl_source", source)
            connection.execute(f"DROP TABLE IF EXISTS {place}{name}")
            connection.execute(f"CREATE {kind}TABLE {name} AS SELECT {values} FROM gbfl_source")  # noqa: S608
            connection.unregister("gbfl_source")

    return Database(
        "duckdb",
        version,
        execute,
        fetch,
        insert,
        connection.close,
        partial(quote_name, NAMING),
        keeps_order=connection.execute("SELECT current_setting('preserve_insertion_order')").fetchall() == [(True,)],
        replacements=(IN_A_TRANSACTION,),
        interrupt=connection.interrupt,
    )


def _numpy_columns(rows: Matrix) -> dict[str, Any]:
    import numpy as np

    columns = {f"c{i}": np.ascontiguousarray(rows[:, i]) for i in range(rows.shape[1])}
    return {ROW: np.arange(len(rows), dtype=np.int64), **columns}


TYPES = {
    "double": ColumnType("double"),
    **dict.fromkeys(("float", "real", "float4"), ColumnType("float32")),
    **{name: integers(bits) for name, bits in (("tinyint", 8), ("smallint", 16), ("integer", 32), ("bigint", 64))},
    **{
        name: integers(bits, True)
        for name, bits in (("utinyint", 8), ("usmallint", 16), ("uinteger", 32), ("ubigint", 64))
    },
    "hugeint": integers(128),
    "boolean": ColumnType("boolean", 0.0, 1.0),
}
DEFAULT_DECIMAL = (18, 3)
NAMED = (
    "lower({column}) = lower({name}) "
    "AND ({schema} = '' OR lower({schema}) IN (lower(schema_name), lower(database_name)))"
)


def _where(table: TableName, column: str) -> str:
    return NAMED.format(column=column, name=literal(table.name), schema=literal(table.schema))


def stored_view(database: Database, view: TableName) -> StoredView | None:
    """The view's CREATE VIEW statement."""
    view_name(view.name)
    rows = database.fetch(f"SELECT sql FROM duckdb_views() WHERE {_where(view, 'view_name')}")  # noqa: S608
    if len(rows) > 1:
        raise BadInput(f"{database.version} has {len(rows)} views called {view.name!r}: connect to the schema you mean")
    return StoredView(str(rows[0][0])) if rows else None


def is_view(database: Database, table: TableName) -> bool:
    """Whether a query that names this reads a view."""
    return bool(database.fetch(f"SELECT 1 FROM duckdb_views() WHERE {_where(table, 'view_name')}"))  # noqa: S608


def has_several(database: Database, table: TableName) -> bool:
    """DuckDB looks up the names in a view where the session that asks it looks."""
    found = database.fetch(
        f"SELECT 1 FROM duckdb_tables() WHERE {_where(table, 'table_name')} "  # noqa: S608 - literals
        f"UNION ALL SELECT 1 FROM duckdb_views() WHERE {_where(table, 'view_name')}"
    )
    return len(found) > 1


def table_columns(database: Database, table: TableName) -> list[Column]:
    """The columns, with their types and whether they may be NULL."""
    rows = database.fetch(
        "SELECT column_name, data_type, is_nullable FROM duckdb_columns() "  # noqa: S608 - literals
        f"WHERE {_where(table, 'table_name')} ORDER BY column_index"
    )
    generated = _generated_columns(database, table)
    tables = database.fetch(f"SELECT sql FROM duckdb_tables() WHERE {_where(table, 'table_name')}")  # noqa: S608
    exact = bool(tables) and all("collate" not in str(text).casefold() for (text,) in tables)
    return [
        Column(
            str(name),
            str(kind),
            column_type(str(kind), TYPES, DEFAULT_DECIMAL),
            bool(nullable),
            str(name) in generated,
            exact and (str(kind) == "VARCHAR" or str(kind).startswith("ENUM(")),
            members=enumeration(str(kind), escapes=False),
        )
        for name, kind, nullable in rows
    ]


def _generated_columns(database: Database, table: TableName) -> set[str]:
    """DuckDB's catalog has no field for it: a generated column is one whose own definition says so."""
    rows = database.fetch(f"SELECT sql FROM duckdb_tables() WHERE {_where(table, 'table_name')}")  # noqa: S608
    if not rows or "GENERATED" not in str(rows[0][0]).upper():
        return set()
    names = database.fetch(f"SELECT column_name FROM duckdb_columns() WHERE {_where(table, 'table_name')}")  # noqa: S608
    text = str(rows[0][0])
    return {
        str(name)
        for (name,) in names
        if re.search(rf'(?i)["\s(,]{re.escape(str(name))}"?\s[^,]*GENERATED ALWAYS', text)
    }


def copy_table(database: Database, table: TableName, name: str) -> None:
    """The table's own CREATE TABLE statement under another name; without its keys where they refer to other tables."""
    rows = database.fetch(f"SELECT sql FROM duckdb_tables() WHERE {_where(table, 'table_name')}")  # noqa: S608
    if len(rows) != 1:
        raise CannotRun(f"{database.version}: {table.name} is not one table that can be copied")
    definition = after_table_name(str(rows[0][0]))
    keys = database.fetch(
        "SELECT constraint_text FROM duckdb_constraints() "  # noqa: S608 - literals
        f"WHERE constraint_type = 'FOREIGN KEY' AND {_where(table, 'table_name')}"
    )
    for (key,) in keys:
        definition = definition.replace(f", {key}", "", 1)
    database.execute(f"CREATE TEMP TABLE {name} {definition}")


def stored_functions(database: Database, name: str) -> list[StoredFunction]:
    """The macros and functions of this name."""
    rows = database.fetch(
        "SELECT schema_name, function_type, parameters, parameter_types, macro_definition FROM duckdb_functions() "  # noqa: S608
        f"WHERE lower(function_name) = lower({literal(name)})"
    )
    return [
        StoredFunction(
            str(schema),
            "expression",
            tuple((str(each), "") for each in parameters or ()),
            "",
            str(body),
            problem=None
            if kind == "macro" and not any(types or ())
            else "it is not a macro, or its parameters have types",
        )
        for schema, kind, parameters, types, body in rows
    ]


CATALOG = Catalog(
    stored_view,
    is_view,
    table_columns,
    copy_table,
    stored_functions,
    references="SELECT referenced_table FROM duckdb_constraints() "
    "WHERE constraint_type = 'FOREIGN KEY' AND lower(table_name) = lower({name})",
    several=has_several,
    own_names="SELECT DISTINCT 'function', function_name, true FROM duckdb_functions() WHERE NOT internal",
    drop="DROP TABLE IF EXISTS temp.main.{name}",
    double_kinds=frozenset(("double", "boolean")),  # `x < 0.35` on a FLOAT column makes 0.35 a FLOAT
    value="CAST({value} AS {type})",
    not_nan="CAST(NULLIF({value}, CAST('NaN' AS DOUBLE)) AS {type})",
)
