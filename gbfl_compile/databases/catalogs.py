"""The engines whose catalogs an audit can ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gbfl_compile.databases import clickhouse, duckdb, mariadb, postgres, sqlite
from gbfl_compile.databases.base import Database
from gbfl_compile.databases.catalog import Catalog, StoredView, TableName
from gbfl_compile.errors import BadInput, CannotRun, ConnectionLost

CATALOGS: Mapping[str, Catalog] = {
    "sqlite": sqlite.CATALOG,
    "duckdb": duckdb.CATALOG,
    "postgres": postgres.CATALOG,
    "mariadb": mariadb.CATALOG,
    "clickhouse": clickhouse.CATALOG,
}


def catalog_of(database: Database) -> Catalog:
    """How this database's catalog is asked."""
    if database.dialect not in CATALOGS:
        raise BadInput(f"views of {database.version} are not read: there is {', '.join(CATALOGS)}")
    return CATALOGS[database.dialect]


def look_up_view(database: Database, name: str) -> StoredView:
    """The view of this name, with its columns."""
    catalog = catalog_of(database)
    stored = catalog.view(database, name)
    if stored is None:
        raise BadInput(f"{database.version} has no view {name!r}")
    try:
        columns = tuple(column.name for column in catalog.columns(database, _view_name(database, name)))
    except ConnectionLost:
        raise
    except CannotRun:  # a broken view; asking it for rows gives the reason
        return stored
    return replace(stored, columns=columns or None)


def _view_name(database: Database, view: str) -> TableName:
    """A view's name as PostgreSQL reads it may have a schema; elsewhere it is one name."""
    if database.dialect == "postgres" and "." in view:
        schema, _, name = view.rpartition(".")
        return TableName(schema.strip('"'), name.strip('"'))
    return TableName("", view.strip('"') if database.dialect == "postgres" else view)
