"""MariaDB: a private server for scratch work, PyMySQL for a user's own (MySQL too).

A double column of MariaDB holds neither NaN nor infinities: a missing value is NULL, and a row with an infinity is
refused here, by name, before the server refuses it. -0.0 comes back as 0.0, which it equals.
"""

from __future__ import annotations

import atexit
import dataclasses
import functools
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gbfl_compile.databases.base import Database, Missing, library, told
from gbfl_compile.databases.guard import guard
from gbfl_compile.databases.names import Naming, quoted, quoted_columns
from gbfl_compile.errors import BadInput, CannotRun

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Matrix

NAMING = Naming("MariaDB", "back", longest=64, basic_plane=True)
PROGRAMS = ("mariadb-install-db", "mariadbd")
STARTS_WITHIN = 60.0

_numbers = itertools.count()


def scratch() -> Database:
    """A database of its own in a server that this process starts once, on a unix socket, and that ends with it."""
    pymysql = library("pymysql", "engines")
    socket = _server()
    name = f"gbfl_{next(_numbers)}"
    connection = pymysql.connect(unix_socket=socket, user="root", charset="utf8mb4", autocommit=True)
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        cursor.execute(f"USE {name}")
    made = over(connection, temporary=False)

    def close() -> None:
        if connection.open:
            with connection.cursor() as cursor:
                cursor.execute(f"DROP DATABASE {name}")
            connection.close()

    return dataclasses.replace(made, close=close)


@functools.cache
def _server() -> str:
    """The socket of the private server, whose folder only this user can enter. The guard ends it with this process."""
    install, mariadbd = (shutil.which(program, path=search_path()) for program in PROGRAMS)
    if install is None or mariadbd is None:
        raise CannotRun("MariaDB is not installed: apt-get install mariadb-server-core mariadb-client-core")
    folder = Path(tempfile.mkdtemp(prefix="gbfl-my-"))
    user = [f"--user={os.environ.get('USER', 'root')}"] if os.geteuid() == 0 else []
    make = [install, "--no-defaults", f"--datadir={folder}/d", "--skip-test-db", *user]
    made = subprocess.run([*make, "--auth-root-authentication-method=normal"], capture_output=True, check=False)  # noqa: S603
    if made.returncode != 0:
        shutil.rmtree(folder, ignore_errors=True)
        raise CannotRun(f"MariaDB: mariadb-install-db ended with {made.returncode}")
    run = [mariadbd, "--no-defaults", f"--datadir={folder}/d", f"--socket={folder}/s", "--skip-networking", *user]
    run += [f"--pid-file={folder}/pid", f"--log-error={folder}/log", "--innodb-flush-log-at-trx-commit=0"]
    quiet = subprocess.DEVNULL
    server = subprocess.Popen(run, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)  # noqa: S603
    atexit.register(server.wait)  # after the guard, which was registered later, has ended it
    guard(server.pid, signal.SIGTERM, folder)
    given_up = time.monotonic() + STARTS_WITHIN
    while not (folder / "pid").exists():
        if server.poll() is not None or time.monotonic() > given_up:
            raise CannotRun(f"MariaDB: mariadbd did not start within {STARTS_WITHIN:.0f} s")
        time.sleep(0.05)
    return str(folder / "s")


PLACES = ("/usr/sbin", "/usr/local/sbin")
"""Debian keeps servers out of an ordinary user's PATH."""


def search_path() -> str:
    """Where servers are looked for."""
    return os.pathsep.join([os.environ.get("PATH", ""), *PLACES])


def over(connection: Any, temporary: bool = True) -> Database:
    """A database over an open PyMySQL connection (or one that behaves alike), left in its own transaction rules."""
    told_by_server = str(connection.get_server_info())
    maker = "MariaDB" if "mariadb" in told_by_server.lower() else "MySQL"
    version = f"{maker} {told_by_server.removeprefix('5.5.5-').split('-')[0]}"

    def lost(_: Exception) -> bool:
        return not connection.open

    def execute(statement: str) -> None:
        with told(version, lost), connection.cursor() as cursor:
            cursor.execute(statement)

    def fetch(query: str) -> list[tuple[Any, ...]]:
        with told(version, lost), connection.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())

    def insert(table: str, columns: Sequence[str], rows: Matrix, *, missing: Missing = "null") -> None:
        first, *names = quoted_columns(NAMING, columns)
        name = quoted(NAMING, table)
        kind = "TEMPORARY " if temporary else ""
        _refuse_infinity(columns, rows, version)
        fields = ", ".join([f"{first} BIGINT", *(f"{column} DOUBLE" for column in names)])
        with told(version, lost), connection.cursor() as cursor:
            cursor.execute(f"DROP {kind}TABLE IF EXISTS {name}")
            cursor.execute(f"CREATE {kind}TABLE {name} ({fields})")
            for values in _value_lists(rows):
                cursor.execute(f"INSERT INTO {name} VALUES {values}")  # noqa: S608 - numbers, and a quoted name

    def quote(name: str) -> str:
        return quoted(NAMING, name)

    return Database("mariadb", version, execute, fetch, insert, connection.close, quote, False, False)


def _refuse_infinity(columns: Sequence[str], rows: Matrix, version: str) -> None:
    import numpy as np

    if (places := np.argwhere(np.isinf(rows))).size:
        row, column = places[0].tolist()
        raise BadInput(f"row {row}, column {columns[column]!r}: {version} cannot hold an infinity, leave the row out")


CHUNK = 5_000
"""Rows in one INSERT, well below the server's 16 MB for a statement at a few hundred columns."""


def _value_lists(rows: Matrix) -> Any:
    """The rows as VALUES lists. With an exponent a literal is a double and not a DECIMAL; NaN is NULL."""
    for start in range(0, len(rows), CHUNK):
        block = rows[start : start + CHUNK].tolist()
        yield ", ".join(
            f"({', '.join((str(number), *('NULL' if v != v else f'{v:.16e}' for v in row)))})"  # v != v: NaN
            for number, row in enumerate(block, start)
        )
