"""The engines whose catalogs an audit can ask."""

from __future__ import annotations

from collections.abc import Mapping

from gbfl_compile.databases import clickhouse, duckdb, mariadb, postgres, sqlite
from gbfl_compile.databases.base import Database
from gbfl_compile.databases.catalog import Catalog
from gbfl_compile.errors import BadInput

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
