"""MariaDB: a private server for scratch work, PyMySQL for a user's own (MySQL too).

A double column of MariaDB holds neither NaN nor infinities: a missing value is NULL, and a row with an infinity is
refused here with its column's name, before the server refuses it. -0.0 comes back as 0.0, which it equals.
"""

from __future__ import annotations

import atexit
import dataclasses
import functools
import itertools
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gbfl_compile.databases.base import (
    CONNECTS_WITHIN,
    STARTS_WITHIN,
    Address,
    Database,
    Missing,
    Naming,
    Replacement,
    engine_errors,
    library,
    quote_columns,
    quote_name,
    wait_until,
)
from gbfl_compile.databases.catalog import (
    Catalog,
    Column,
    ColumnType,
    StoredFunction,
    StoredView,
    TableName,
    column_type,
    enumeration,
    integers,
    literal,
    view_name,
)
from gbfl_compile.databases.guard import guard
from gbfl_compile.errors import BadInput, CannotRun, ConnectionLost

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Matrix

NAMING = Naming("MariaDB", "back", longest=64, basic_plane=True)
PROGRAMS = ("mariadb-install-db", "mariadbd")

BY_RENAMING = Replacement(("RENAME TABLE {old} TO {before}, {fresh} TO {old}", "DROP TABLE {before}"))

_numbers = itertools.count()


def scratch() -> Database:
    """A private database in a server that this process starts once, on a unix socket, and that ends with it."""
    pymysql = library("pymysql", "engines")
    socket = _server()
    name = f"gbfl_{next(_numbers)}"
    connection = pymysql.connect(unix_socket=socket, user="root", charset="utf8mb4", autocommit=True)
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        cursor.execute(f"USE {name}")
    database = over(connection, temporary=False)

    def close() -> None:
        if connection.open:
            with connection.cursor() as cursor:
                cursor.execute(f"DROP DATABASE {name}")
            connection.close()

    return dataclasses.replace(database, close=close)


@functools.cache
def _server() -> str:
    """The socket of the private server, whose folder only this user can enter. The guard ends it with this process."""
    install, mariadbd = (shutil.which(program, path=search_path()) for program in PROGRAMS)
    if install is None or mariadbd is None:
        raise CannotRun("MariaDB is not installed: apt-get install mariadb-server-core mariadb-client-core")
    folder = Path(tempfile.mkdtemp(prefix="gbfl-my-"))
    user = [f"--user={os.environ.get('USER', 'root')}"] if os.geteuid() == 0 else []
    user.append(f"--tmpdir={folder}")  # a server that starts removes the temporary tables of all others from its tmpdir
    make = [install, "--no-defaults", f"--datadir={folder}/d", "--skip-test-db", *user]
    installed = subprocess.run([*make, "--auth-root-authentication-method=normal"], capture_output=True, check=False)  # noqa: S603
    if installed.returncode != 0:
        shutil.rmtree(folder, ignore_errors=True)
        raise CannotRun(f"MariaDB: mariadb-install-db ended with {installed.returncode}")
    run = [mariadbd, "--no-defaults", f"--datadir={folder}/d", f"--socket={folder}/s", "--skip-networking", *user]
    run += [f"--pid-file={folder}/pid", f"--log-error={folder}/log", "--innodb-flush-log-at-trx-commit=0"]
    quiet = subprocess.DEVNULL
    server = subprocess.Popen(run, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)  # noqa: S603
    atexit.register(server.wait)  # after the guard, which was registered later, has ended it
    guard(server.pid, signal.SIGTERM, folder)
    runs = folder / "pid"
    wait_until(lambda: runs.exists() or server.poll() is not None, STARTS_WITHIN)
    if not runs.exists():
        raise CannotRun(f"MariaDB: mariadbd did not start within {STARTS_WITHIN:.0f} s")
    return str(folder / "s")


PLACES = ("/usr/sbin", "/usr/local/sbin")
"""Debian keeps servers out of an ordinary user's PATH."""


def search_path() -> str:
    """Where servers are looked for."""
    return os.pathsep.join([os.environ.get("PATH", ""), *PLACES])


def open_server(address: Address) -> Database:
    """A user's server."""
    options: dict[str, Any] = {"host": address.host or "localhost", "port": address.port or 3306}
    options |= {"user": address.user or None, "password": address.password, "database": address.database or None}
    options |= {"connect_timeout": CONNECTS_WITHIN, "charset": "utf8mb4", **address.options}
    return over(library("pymysql", "engines").connect(**options, autocommit=True))


def over(connection: Any, temporary: bool = True) -> Database:
    """A database over an open PyMySQL connection (or a compatible one); its transaction settings stay as they are."""
    server_info = str(connection.get_server_info())
    maker = "MariaDB" if "mariadb" in server_info.lower() else "MySQL"
    version = f"{maker} {server_info.removeprefix('5.5.5-').split('-')[0]}"

    def is_lost() -> bool:
        return not connection.open

    def execute(statement: str) -> None:
        with engine_errors(version, is_lost), connection.cursor() as cursor:
            cursor.execute(statement)

    def fetch(query: str) -> list[tuple[Any, ...]]:
        with engine_errors(version, is_lost), connection.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())

    def insert(table: str, columns: Sequence[str], rows: Matrix, *, missing: Missing = "null") -> None:
        first, *names = quote_columns(NAMING, columns)
        name = quote_name(NAMING, table)
        kind = "TEMPORARY " if temporary else ""
        _refuse_infinity(columns, rows, version)
        fields = ", ".join([f"{first} BIGINT", *(f"{column} DOUBLE" for column in names)])
        with engine_errors(version, is_lost), connection.cursor() as cursor:
            cursor.execute(f"DROP {kind}TABLE IF EXISTS {name}")
            cursor.execute(f"CREATE {kind}TABLE {name} ({fields})")
            for values in _value_lists(rows):
                cursor.execute(f"INSERT INTO {name} VALUES {values}")  # noqa: S608 - numbers, and a quoted name

    return Database(
        "mariadb",
        version,
        execute,
        fetch,
        insert,
        connection.close,
        functools.partial(quote_name, NAMING),
        holds_nan=False,
        holds_infinity=False,
        keeps_order=not temporary,  # one thread, by the hidden row number
        drop_inserted="DROP TEMPORARY TABLE IF EXISTS {}",
        begin_reading="START TRANSACTION READ ONLY",
        replacements=(BY_RENAMING,),
    )


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


INTEGERS = (("tinyint", 8), ("smallint", 16), ("mediumint", 24), ("int", 32), ("bigint", 64))
TYPES = {
    "double": ColumnType("double", engine_has_nan=False),
    "float": ColumnType("float32", engine_has_nan=False),
    **{name: integers(bits) for name, bits in INTEGERS},
    **{f"{name} unsigned": integers(bits, True) for name, bits in INTEGERS},
    **{f"{size}text": ColumnType("text") for size in ("tiny", "medium", "long")},
}
DEFAULT_DECIMAL = (10, 0)
LOST = "????"
"""What MariaDB's catalog writes for a character past U+FFFF."""


def _where(table: TableName) -> str:
    name, schema = literal(table.name), literal(table.schema)
    return (
        f"lower(table_name) = lower({name}) AND lower(table_schema) = lower(COALESCE(NULLIF({schema}, ''), DATABASE()))"
    )


def stored_view(database: Database, view: TableName) -> StoredView | None:
    """The view's query, with every name in back quotes and the schema before every table."""
    rows = database.fetch(
        "SELECT view_definition, collation_connection FROM information_schema.views "  # noqa: S608
        f"WHERE table_name = {view_name(view.name)} "
        f"AND table_schema = COALESCE(NULLIF({literal(view.schema)}, ''), DATABASE(), table_schema)"
    )
    if len(rows) > 1:
        raise BadInput(f"{database.version} has {len(rows)} views called {view.name!r}: connect to the schema you mean")
    if not rows or not rows[0][0]:
        return None
    definition = str(rows[0][0])
    is_plain = _has_plain_texts(database, view, definition)
    whole = _shown_query(database, view) if is_plain and LOST in definition else definition
    return StoredView(whole, literals_in_utf8=is_plain and _in_utf8(str(rows[0][1]), whole))


def _in_utf8(collation: str, definition: str) -> bool:
    """Whether a text without character sets of its own has the bytes of UTF-8 under this collation of a session."""
    if collation.startswith(("utf8mb4_", "utf8mb3_", "utf8_")):
        return True
    return collation.startswith(("latin1_", "latin2_", "latin5_", "latin7_", "ascii_")) and definition.isascii()


def _has_plain_texts(database: Database, view: TableName, definition: str) -> bool:
    """Whether no text of a view has a character set of its own other than UTF-8.

    The catalog leaves them out: it prints _ucs2 x'0061' and _binary'a' as 'a', which may be compared as other bytes
    than those of 'a'. SHOW CREATE VIEW prints them, bytes of all character sets side by side: only its ASCII is read.
    """
    kept = str(database.fetch("SELECT COALESCE(@@character_set_results, 'NULL')")[0][0])
    database.execute("SET character_set_results = ascii")
    try:
        shown = _shown_query(database, view)
    except ConnectionLost:
        raise
    except CannotRun:  # it is not for this user to see
        return False
    finally:
        database.execute(f"SET character_set_results = {kept}")
    pieces = PIECES.findall(shown)
    for place, piece in enumerate(pieces[:-1]):
        if pieces[place + 1].startswith("'"):
            pieces[place] = re.sub(r"(?<![\w$])_utf8(mb[34])?$", "", piece)
    schema = f"{database.quote(str(database.fetch('SELECT DATABASE()')[0][0]))}."  # the catalog alone spells it out
    plain = re.sub(r"[^\x00-\x7f]", "?", definition.replace(LOST, "?").replace(schema, ""))
    return "".join(pieces).replace(LOST, "?").replace(re.sub(r"[^\x00-\x7f]", "?", schema), "") == plain


def _shown_query(database: Database, view: TableName) -> str:
    """The query as SHOW CREATE VIEW has it, with characters past U+FFFF, which the catalog has lost."""
    shown = str(database.fetch(f"SHOW CREATE VIEW {view.in_quotes(database)}")[0][1])
    return shown.partition(" VIEW ")[2].partition(" AS ")[2]


PIECES = re.compile(r"""'(?:[^'\\]|\\.|'')*'|`(?:[^`]|``)*`|[^'`]+|['`]""", re.DOTALL)
"""Texts, names in quotes, and what is between them."""


def is_view(database: Database, table: TableName) -> bool:
    """Whether a query that names this reads a view."""
    return bool(database.fetch(f"SELECT 1 FROM information_schema.views WHERE {_where(table)}"))  # noqa: S608


def table_columns(database: Database, table: TableName) -> list[Column]:
    """The columns; display widths such as int(11) say nothing about the values."""
    rows = database.fetch(
        "SELECT column_name, column_type, is_nullable, generation_expression FROM information_schema.columns "  # noqa: S608
        f"WHERE {_where(table)} ORDER BY ordinal_position"
    )
    return [
        Column(
            str(name),
            str(kind),
            _type(str(kind)),
            str(nullable) == "YES",
            bool(expression),
            rounds=ROUNDED.match(str(kind)) is not None,
            members=(members := enumeration(str(kind), escapes=True)),
            strays=("",) if members is not None and "" not in members else (),
        )
        for name, kind, nullable, expression in rows
    ]


def computed_columns(database: Database, table: TableName) -> dict[str, str]:
    """Columns that the table computes, with their expressions."""
    rows = database.fetch(
        "SELECT column_name, generation_expression FROM information_schema.columns "  # noqa: S608
        f"WHERE {_where(table)} AND generation_expression <> ''"
    )
    return {str(name): str(expression) for name, expression in rows}


def _without_width(declared: str) -> str:
    """The type without the width of whole numbers, which is for display. That of DOUBLE(10,1) rounds, and stays."""
    return re.sub(r"int\(\d+\)", "int", declared.casefold()).replace(" zerofill", "")


ROUNDED = re.compile(r"(?:double|float)\((\d+),(\d+)\)", re.IGNORECASE)
"""Columns that round what they are given, and an index on them what they are compared with: FLOAT(7,2) >= 0.1."""


def _type(declared: str) -> ColumnType:
    if rounded := ROUNDED.match(declared):
        whole, digits = int(rounded[1]) - int(rounded[2]), int(rounded[2])
        largest = 10.0**whole - 10.0 ** (1 - digits)  # what is above may be rounded past the last one
        return ColumnType("other", 0.0 if "unsigned" in declared else -largest, largest, engine_has_nan=False)
    return column_type(_without_width(declared), TYPES, DEFAULT_DECIMAL)


def copy_table(database: Database, table: TableName, name: str) -> None:
    """LIKE copies types, collations, NOT NULL, CHECK constraints and keys."""
    database.execute(f"CREATE TEMPORARY TABLE {name} LIKE {table.in_quotes(database)}")


PLAIN_MODES = {
    *(
        "STRICT_TRANS_TABLES",
        "STRICT_ALL_TABLES",
        "ERROR_FOR_DIVISION_BY_ZERO",
        "NO_AUTO_CREATE_USER",
        "ONLY_FULL_GROUP_BY",
    ),
    *("NO_ENGINE_SUBSTITUTION", "NO_ZERO_DATE", "NO_ZERO_IN_DATE"),
}
"""Modes of a function in which its text means what it always means."""


def stored_functions(database: Database, name: str) -> list[StoredFunction]:
    """The function of this name in the current schema."""
    named = f"lower({{}}_name) = lower({literal(name)}) AND {{}}_schema = DATABASE()"
    rows = database.fetch(
        "SELECT routine_schema, routine_type, routine_definition, dtd_identifier, sql_mode, routine_body "  # noqa: S608
        f"FROM information_schema.routines WHERE {named.format('routine', 'routine')}"
    )
    parameters = database.fetch(
        "SELECT parameter_name, dtd_identifier FROM information_schema.parameters "  # noqa: S608
        f"WHERE {named.format('specific', 'specific')} AND ordinal_position > 0 ORDER BY ordinal_position"
    )
    found = []
    for schema, kind, body, returns, modes, language in rows:
        others = set(filter(None, str(modes or "").split(","))) - PLAIN_MODES
        problem = None
        if kind != "FUNCTION" or language != "SQL" or body is None:
            problem = "it is not a SQL function, or its text may not be seen by this user"
        elif others or not any("STRICT" in mode for mode in str(modes).split(",")):
            problem = f"it was made with the modes {modes}"
        listed = tuple((str(each), _without_width(str(type_))) for each, type_ in parameters)
        found.append(StoredFunction(str(schema), "block", listed, str(returns), str(body), problem=problem))
    return found


CATALOG = Catalog(
    stored_view,
    is_view,
    table_columns,
    copy_table,
    stored_functions,
    computed_columns,
    references="SELECT referenced_table_name FROM information_schema.referential_constraints "
    "WHERE lower(table_name) = lower({name})",
    drop="DROP TEMPORARY TABLE IF EXISTS {name}",
    text="CAST({value} AS CHAR)",
    limit=(  # and strict, so that a value which a column does not hold is refused and not cut off
        "SET @gbfl_mode = @@sql_mode, SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES'), "
        "SESSION max_statement_time = {seconds}",
        "SET SESSION sql_mode = @gbfl_mode, SESSION max_statement_time = DEFAULT",
    ),
)
