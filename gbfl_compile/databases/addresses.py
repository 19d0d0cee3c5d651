"""Opens the database a URL names. A password is used and never told: no message repeats the URL."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

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


def connect(url: str) -> Database:
    """The database at a URL: statements take effect at once, what `insert` makes is temporary.

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
        return opener(address) if opener is not None else _by_sqlalchemy(url, BY_SQLALCHEMY[family])
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
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***")
    return text


SECRET_OPTIONS = ("password", "passwd", "pwd", "token", "access_token", "sslpassword")


def _open_sqlite(address: Address) -> Database:
    return sqlite.over(sqlite3.connect(_file(address), isolation_level=None))


def _open_duckdb(address: Address) -> Database:
    return duckdb.over(library("duckdb", "sql").connect(_file(address)))


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
    return clickhouse.over(library("clickhouse_connect", "engines").get_client(**options))


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
