"""Opens the database a URL names. A password is used and never told: no message repeats the URL."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from gbfl_compile.databases import clickhouse, dbapi, duckdb, mariadb, postgres, sqlite
from gbfl_compile.databases.base import Database, first_line, library
from gbfl_compile.errors import BadInput, CannotRun, GbflError

CONNECTS_WITHIN = 10
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Address:
    """A database URL in its parts, decoded."""

    scheme: str
    host: str
    port: int | None
    user: str
    password: str = field(repr=False)
    database: str
    """What stands after the host's slash: a database's name, or a file."""
    options: Mapping[str, str] = field(repr=False)


def connect(url: str, read_only: bool = False) -> Database:
    """The database at a URL: statements take effect at once, what `insert` makes is temporary.

    With `read_only` nothing but those temporary tables can be written, as far as the engine has a way to say so:
    SQLite and DuckDB open the file for reading, PostgreSQL and MariaDB fetch in transactions that only read.

    sqlite:///file, duckdb:///file, postgresql://user:password@host/name, mysql://…, mariadb://…, clickhouse://…; any
    other that SQLAlchemy has a driver for is opened by it (Snowflake, BigQuery, SQL Server, Oracle, Trino, …).
    """
    address = read_address(url)
    family = address.scheme.partition("+")[0]
    opener = OPENERS.get(family)
    if opener is None and family not in BY_SQLALCHEMY:
        known = ", ".join((*OPENERS, *BY_SQLALCHEMY))
        raise BadInput(f"{address.scheme!r} is no database we know: there is {known}")
    try:
        if opener is None:
            return _by_sqlalchemy(url, BY_SQLALCHEMY[family])
        if family in FILES:
            return FILES[family](address, read_only)
        return _only_reading(opener(address)) if read_only else opener(address)
    except GbflError:
        raise
    except Exception as error:
        where = f"{family} at {address.host}" if address.host else family
        raise CannotRun(f"{where}: cannot connect: {_without_secrets(first_line(error), address)}") from None


def read_address(url: str) -> Address:
    """The parts of a URL. One that could have its password in the wrong part is refused, unrepeated."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise BadInput(f"the database URL cannot be read: {ENCODE}") from None
    if not parts.scheme or not url[len(parts.scheme) :].startswith("://"):
        raise BadInput("a database is named by a URL: sqlite:///file, duckdb:///file, postgresql://user@host/name, …")
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


ENCODE = "write / ? # and @ of a user, password or file name as %2F %3F %23 and %40"


def _without_secrets(text: str, address: Address) -> str:
    secrets = [address.password, *(value for key, value in address.options.items() if key.lower() in SECRET_OPTIONS)]
    for secret in filter(None, secrets):
        for form in (secret, quote(secret, safe=""), quote(secret)):  # as it is, and as a driver repeats the URL
            text = text.replace(form, "***")
    return text


SECRET_OPTIONS = ("password", "passwd", "pwd", "token", "access_token", "sslpassword")


READS = {"postgres": "BEGIN READ ONLY", "mariadb": "START TRANSACTION READ ONLY"}


def _only_reading(database: Database) -> Database:
    """Each query in a transaction that cannot write: a view may call what does."""
    begin = READS.get(database.dialect)
    if begin is None:
        return database

    def fetch(query: str) -> list[tuple[Any, ...]]:
        database.execute(begin)
        try:
            return database.fetch(query)
        finally:
            with suppress(CannotRun):  # a connection that is gone has nothing to take back
                database.execute("ROLLBACK")

    return replace(database, fetch=fetch)


def _open_sqlite(address: Address, read_only: bool = False) -> Database:
    file = _file(address)
    if read_only:
        return sqlite.over(sqlite3.connect(f"file:{quote(file)}?mode=ro", uri=True, isolation_level=None))
    return sqlite.over(sqlite3.connect(file, isolation_level=None))


def _open_duckdb(address: Address, read_only: bool = False) -> Database:
    return duckdb.over(library("duckdb", "sql").connect(_file(address), read_only=read_only))


def _file(address: Address) -> str:
    """An existing file: both engines would make a new one of a name with a slip, and find no table in it."""
    if address.host:
        raise BadInput(f"{address.scheme} names a file with three slashes: {address.scheme}:///folder/file")
    if not address.database:
        raise BadInput(f"{address.scheme} needs a file: {address.scheme}:///folder/file")
    if not Path(address.database).is_file():
        raise BadInput(f"{address.database}: there is no such file")
    return address.database


def _open_postgres(address: Address) -> Database:
    options: dict[str, Any] = {"connect_timeout": CONNECTS_WITHIN, "dbname": address.database or None}
    options |= {"host": address.host or None, "port": address.port, "user": address.user or None}
    options |= {"password": address.password or None, **address.options}
    psycopg = library("psycopg", "engines")
    return postgres.over(psycopg.connect(**{k: v for k, v in options.items() if v is not None}, autocommit=True))


def _open_mariadb(address: Address) -> Database:
    options: dict[str, Any] = {"host": address.host or "localhost", "port": address.port or 3306}
    options |= {"user": address.user or None, "password": address.password, "database": address.database or None}
    options |= {"connect_timeout": CONNECTS_WITHIN, "charset": "utf8mb4", **address.options}
    return mariadb.over(library("pymysql", "engines").connect(**options, autocommit=True))


def _open_clickhouse(address: Address) -> Database:
    options: dict[str, Any] = {"host": address.host or "localhost", "connect_timeout": CONNECTS_WITHIN}
    options |= {"port": address.port or 0, "username": address.user or None, "password": address.password}
    options |= {"database": address.database or "__default__", **address.options}
    driver = library("clickhouse_connect", "engines")
    logging.getLogger("clickhouse_connect").addHandler(logging.NullHandler())  # else it says errors twice, on stderr
    return clickhouse.over(driver.get_client(**options))


OPENERS: Mapping[str, Callable[[Address], Database]] = {
    "sqlite": _open_sqlite,
    "duckdb": _open_duckdb,
    "postgresql": _open_postgres,
    "postgres": _open_postgres,
    "mysql": _open_mariadb,
    "mariadb": _open_mariadb,
    "clickhouse": _open_clickhouse,
    "clickhousedb": _open_clickhouse,
}

FILES: Mapping[str, Callable[[Address, bool], Database]] = {"sqlite": _open_sqlite, "duckdb": _open_duckdb}
"""Engines that open a file, for reading alone where that is asked."""

BY_SQLALCHEMY: Mapping[str, str] = {
    "snowflake": "snowflake",
    "bigquery": "bigquery",
    "databricks": "databricks",
    "redshift": "redshift",
    "trino": "trino",
    "mssql": "tsql",
    "oracle": "oracle",
}
"""URL families that only SQLAlchemy and a driver of its own can open -> our dialect. None was ever run here."""


def _by_sqlalchemy(url: str, dialect: str) -> Database:
    sqlalchemy = library("sqlalchemy", "engines")
    engine = sqlalchemy.create_engine(url)
    return dbapi.over(dialect, engine.raw_connection(), commits=True)
