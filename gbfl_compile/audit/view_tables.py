"""The tables that a view names, as its database knows them: which are views themselves, and the types of their columns.

A name is looked up where the view's text says it stands, and in the letters that the database takes for the same:
`other.stage` is no table of this schema, and to SQLite and DuckDB `STAGE` is `stage`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gbfl_compile.audit.view_query import parsed_text
from gbfl_compile.check.reading import Unread
from gbfl_compile.databases.base import Database

IS_A_VIEW: Mapping[str, str] = {
    "postgres": "SELECT 1 FROM pg_class WHERE oid = to_regclass({path}) AND relkind IN ('v', 'm')",
    "duckdb": "SELECT 1 FROM duckdb_views() WHERE lower(view_name) = lower({name}) "
    "AND ({schema} = '' OR lower({schema}) IN (lower(schema_name), lower(database_name)))",
    "sqlite": "SELECT 1 FROM (SELECT * FROM sqlite_temp_master UNION ALL SELECT * FROM {place}sqlite_master) "
    "WHERE type = 'view' AND lower(name) = lower({name})",
    "mariadb": "SELECT 1 FROM information_schema.views WHERE lower(table_name) = lower({name}) "
    "AND lower(table_schema) = lower(COALESCE(NULLIF({schema}, ''), DATABASE()))",
    "clickhouse": "SELECT 1 FROM system.tables WHERE name = {name} AND as_select <> '' "
    "AND database = if({schema} = '', currentDatabase(), {schema})",
}
"""How each database is asked whether a name is that of a view."""

TYPES: Mapping[str, str] = {
    "postgres": "SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a "
    "WHERE a.attrelid = to_regclass({path}) AND a.attnum > 0 AND NOT a.attisdropped",
    "duckdb": "SELECT column_name, data_type FROM duckdb_columns() WHERE lower(table_name) = lower({name}) "
    "AND ({schema} = '' OR lower({schema}) IN (lower(schema_name), lower(database_name)))",
    "sqlite": "SELECT name, type FROM pragma_table_info({name}, NULLIF({schema}, ''))",
    "mariadb": "SELECT column_name, data_type FROM information_schema.columns WHERE lower(table_name) = lower({name}) "
    "AND lower(table_schema) = lower(COALESCE(NULLIF({schema}, ''), DATABASE()))",
    "clickhouse": "SELECT name, type FROM system.columns WHERE table = {name} "
    "AND database = if({schema} = '', currentDatabase(), {schema})",
}
"""How each database is asked for the types of a table's columns."""


@dataclass(frozen=True, slots=True)
class Table:
    """A name that a view selects from, and the schema it says, empty where it says none."""

    schema: str
    name: str


def tables_of(database: Database, definition: str) -> list[Table]:
    """Every name that the view's text selects from; that of a stage of its own too, for a table may be called so."""
    from sqlglot import exp

    root = parsed_text(database, definition)
    query = root.expression if isinstance(root, exp.Create) else root
    return list(dict.fromkeys(Table(table.db, table.name) for table in query.find_all(exp.Table) if table.name))


def is_a_view(database: Database, table: Table) -> bool:
    """Whether the database has a view of this name; it is an error where it cannot be asked."""
    return bool(database.fetch(_asked(database, table, IS_A_VIEW)))


def column_types(database: Database, table: Table) -> list[tuple[str, str]]:
    """(column, type) of a table."""
    return [(str(column), str(kind)) for column, kind in database.fetch(_asked(database, table, TYPES))]


def _asked(database: Database, table: Table, questions: Mapping[str, str]) -> str:
    if database.dialect not in questions:
        raise Unread(f"tables of {database.version} are not looked up")
    for part in (table.schema, table.name):
        if any(sign in part for sign in "\\\0"):
            raise Unread(f"the table {part!r}: a name with backslashes is not looked up")
    quoted = [database.quote(part) for part in (table.schema, table.name) if part]
    place = f"{database.quote(table.schema)}." if table.schema else ""
    values = {"path": ".".join(quoted), "name": table.name, "schema": table.schema}
    literals = {key: "'" + value.replace("'", "''") + "'" for key, value in values.items()}
    return questions[database.dialect].format(place=place, **literals)
