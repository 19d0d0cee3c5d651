"""Opens the database a URL names. Passwords are used and never shown: no message repeats the URL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from gbfl_compile.databases import clickhouse, dbapi, duckdb, mariadb, postgres, sqlite
from gbfl_compile.databases.base import Address, Database, first_line
from gbfl_compile.errors import BadInput, CannotRun, GbflError

FILES: Mapping[str, Callable[[Address, bool], Database]] = {"sqlite": sqlite.open_file, "duckdb": duckdb.open_file}
"""Engines that open a file, for reading only if told so."""

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
    if family not in (*FILES, *SERVERS, *dbapi.BY_SQLALCHEMY):
        known = ", ".join((*FILES, *SERVERS, *dbapi.BY_SQLALCHEMY))
        raise BadInput(f"{address.scheme!r} is not a known kind of database: there are {known}")
    try:
        if family in FILES:
            return FILES[family](address, read_only)
        if family not in SERVERS:
            return dbapi.open_by_sqlalchemy(url, dbapi.BY_SQLALCHEMY[family])
        database = SERVERS[family](address)
        return _reading_only(database) if read_only else database
    except GbflError:
        raise
    except Exception as error:
        where = f"{family} at {address.host}" if address.host else family
        raise CannotRun(f"{where}: cannot connect: {_without_secrets(first_line(error), address)}") from None


def read_address(url: str) -> Address:
    """The parts of a URL. One that could have its password in the wrong part is refused and not repeated."""
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
