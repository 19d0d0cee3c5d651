"""What every database offers us: statements, queries, rows inserted bit for bit, and names quoted its own way."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from gbfl_compile.errors import BadInput, CannotRun, ConnectionLost, GbflError
from gbfl_compile.files.formats import similar_file
from gbfl_compile.version import install_command

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Matrix


ROW = "gbfl_row"
"""The first column of every inserted table: BIGINT, the row's number from 0. Tables are unordered."""

CONNECTS_WITHIN = 10
STARTS_WITHIN = 60.0
"""Seconds a connection, and the start of a private server, may take."""

Missing: TypeAlias = Literal["null", "nan"]
"""What a NaN of the matrix becomes in the table. Where an engine cannot hold NaN, both mean NULL."""


class Insert(Protocol):
    """Put a matrix into a table: ROW, then one double column per name, bit for bit.

    The table replaces one inserted earlier under the same name. In a scratch database it is an ordinary table, so that
    views can read it; in a user's database it is temporary and disappears with the connection. Names are raw: they are
    quoted here, and refused where the engine cannot hold them.
    """

    def __call__(self, table: str, columns: Sequence[str], rows: Matrix, *, missing: Missing = "null") -> None: ...


@dataclass(frozen=True, slots=True)
class Replacement:
    """One way to put the table {fresh} in the place of {old}: the statements, and those that undo a failed attempt."""

    steps: tuple[str, ...]
    undo: tuple[str, ...] = ()


IN_TWO_STEPS = Replacement(("DROP TABLE {old}", "ALTER TABLE {fresh} RENAME TO {bare}"))

WITHIN_SCHEMA = Replacement(("DROP TABLE {old}", "ALTER TABLE {fresh} RENAME TO {old}"))
"""Where a bare name would move the table to the current schema."""


@dataclass(frozen=True, slots=True)
class Database:
    """An engine with somewhere to put tables. Failures of the engine are CannotRun and name its version."""

    dialect: str
    """The part after `sql:` of the target it runs."""
    version: str
    """As every verdict shows it: `DuckDB 2.0.0`."""
    execute: Callable[[str], None]
    """One statement; its result, if it has one, is discarded."""
    fetch: Callable[[str], list[tuple[Any, ...]]]
    """One query, all of its rows as Python values; NULL is None."""
    insert: Insert
    close: Callable[[], None]
    """Close the connection and remove what was made for it; a second call does nothing."""
    quote: Callable[[str], str]
    """A name as this engine writes it, or BadInput where it cannot hold it."""
    holds_nan: bool = True
    """Whether a double column can hold NaN. SQLite makes it NULL, MariaDB refuses it."""
    holds_infinity: bool = True
    """Whether a double column can hold infinities. MariaDB refuses them."""
    keeps_order: bool = False
    """Whether a query without ORDER BY returns the rows of an inserted table in their order."""
    drop_inserted: str = "DROP TABLE IF EXISTS {}"
    """How a table that `insert` made in a user's database is removed."""
    begin_reading: str | None = None
    """What begins a transaction that cannot write, where the engine has one."""
    replacements: tuple[Replacement, ...] = (IN_TWO_STEPS,)
    """Ways to replace a table, best first: the next is tried where the engine refuses the first step of one."""
    interrupt: Callable[[], None] | None = None
    """Stop the query that runs now, from another thread, where the engine's client can."""


@dataclass(frozen=True, slots=True)
class Address:
    """A database URL in its parts, decoded."""

    scheme: str
    host: str
    port: int | None
    user: str
    password: str = field(repr=False)
    database: str
    """What follows the host's slash: a database's name, or a file."""
    options: Mapping[str, str] = field(repr=False)


def existing_file(address: Address) -> str:
    """The file an address names, which must exist: engines would create a mistyped one and find no table in it."""
    if address.host:
        raise BadInput(f"{address.scheme} names a file with three slashes: {address.scheme}:///{_file_of(address)}")
    if not address.database:
        raise BadInput(f"{address.scheme} needs a file: {address.scheme}:///folder/file")
    if not Path(address.database).is_file():
        raise BadInput(f"{address.database}: there is no such file{similar_file(Path(address.database))}")
    engine = file_engine(Path(address.database))
    if engine not in (None, address.scheme.partition("+")[0]):
        raise BadInput(f"{address.database}: is a database of {engine}: name it {engine}:///{address.database}")
    return address.database


def _file_of(address: Address) -> str:
    """The file that was meant where its name was taken for a host's."""
    parts = (address.host, address.database.strip("/"))
    return "/".join(part for part in parts if part) if not address.user and address.port is None else "folder/file"


def file_engine(path: Path) -> str | None:
    """Which engine wrote a database file, by its first bytes; None where that is not known."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            head = file.read(16)
    except OSError:
        return None
    return "sqlite" if head.startswith(b"SQLite format 3\0") else "duckdb" if head[8:12] == b"DUCK" else None


def library(name: str, extra: str) -> Any:
    """An optional library, loaded now; its absence names the extra that brings it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise CannotRun(f"{name} is not installed: {install_command(extra)}") from None


def wait_until(is_ready: Callable[[], bool], seconds: float = STARTS_WITHIN) -> bool:
    """Whether a server becomes ready in this time."""
    deadline = time.monotonic() + seconds
    while not (ready := is_ready()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return ready


@contextmanager
def engine_errors(version: str, is_lost: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Turn any exception of the engine's client into one line that names the engine."""
    try:
        yield
    except GbflError:
        raise
    except Exception as error:
        if is_lost():
            raise ConnectionLost(f"{version}: the connection was lost ({first_line(error)}): connect again") from None
        raise CannotRun(f"{version}: {first_line(error)}") from None


def table_exists(database: Database, name: str) -> bool:
    """Whether a table or view of this quoted name can be read."""
    try:
        database.fetch(f"SELECT 1 FROM {name} WHERE 1 = 0")  # noqa: S608 - quoted
    except ConnectionLost:
        raise
    except CannotRun:
        return False
    return True


def first_line(error: BaseException) -> str:
    """The first line of an error message, shortened: engines like to repeat the whole query."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    return text if len(text) <= LONGEST_ERROR else f"{text[:LONGEST_ERROR]}…"


LONGEST_ERROR = 400


@dataclass(frozen=True, slots=True)
class Naming:
    """How one engine spells names, and which it cannot hold."""

    engine: str
    style: Literal["double", "back", "backslash"]
    """"a""b", `a``b`, or `a\\`b` (ClickHouse, where a backslash escapes inside quotes too)."""
    longest: int = 1000
    """In UTF-8 bytes. PostgreSQL cuts longer names off without an error: two could become one."""
    case_blind: bool = True
    """Whether `Age` and `age` are one column, however they are quoted."""
    basic_plane: bool = False
    """Whether characters past U+FFFF are refused by the engine."""


def quote_name(naming: Naming, name: str) -> str:
    """The name as an identifier of this engine."""
    where = f"the name {name!r}"
    if not name:
        raise BadInput("a table or column needs a name: it is empty")
    if "\0" in name or any("\ud800" <= letter <= "\udfff" for letter in name):
        raise BadInput(f"{where} has a character that no database holds: rename it")
    if len(name.encode()) > naming.longest:
        raise BadInput(
            f"{where} is longer than {naming.longest} bytes, the most that {naming.engine} allows: rename it"
        )
    if naming.basic_plane and (name.endswith(" ") or any(letter > "\uffff" for letter in name)):
        raise BadInput(f"{where} ends in a space or has a character past U+FFFF, which {naming.engine} refuses")
    return SPELLINGS[naming.style](name)


SPELLINGS: dict[str, Callable[[str], str]] = {
    "double": lambda name: '"' + name.replace('"', '""') + '"',
    "back": lambda name: "`" + name.replace("`", "``") + "`",
    "backslash": lambda name: "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`",
}


def quote_columns(naming: Naming, columns: Sequence[str]) -> list[str]:
    """ROW and the columns, quoted; two names that are one column in this engine are refused."""
    seen: dict[str, str] = {}
    for name in (ROW, *columns):
        key = name.lower() if naming.case_blind else name
        if key in seen:
            raise BadInput(f"the columns {seen[key]!r} and {name!r} are one column in {naming.engine}: rename one")
        seen[key] = name
    return [quote_name(naming, name) for name in seen.values()]


def arrow_table(columns: Sequence[str], rows: Matrix, missing: Missing) -> Any:
    """A matrix as an Arrow table: ROW and one double column per name. Doubles are passed without a copy."""
    import numpy as np

    pa = library("pyarrow", "engines")
    arrays = [pa.array(np.arange(len(rows), dtype=np.int64))]
    for index in range(rows.shape[1]):
        values = np.ascontiguousarray(rows[:, index])
        arrays.append(pa.array(values, mask=np.isnan(values) if missing == "null" else None, type=pa.float64()))
    return pa.Table.from_arrays(arrays, names=[ROW, *columns])


def row_tuples(table: Any) -> list[tuple[Any, ...]]:
    """The rows of an Arrow table as Python values."""
    if table.num_columns == 0:
        return []
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


# Any DB-API connection: enough to run our SQL where the user's tables are. No rows can be inserted.

NAMINGS = {
    "snowflake": Naming("Snowflake", "double", longest=255, case_blind=False),
    "bigquery": Naming("BigQuery", "backslash", longest=300),
    "databricks": Naming("Databricks", "back", longest=255),
    "redshift": Naming("Redshift", "double", longest=127),
    "trino": Naming("Trino", "double"),
    "tsql": Naming("SQL Server", "double", longest=128),
    "oracle": Naming("Oracle", "double", longest=128, case_blind=False),
}
"""Engines that were never run here: how they spell names is taken from their documentation."""

BY_SQLALCHEMY = {
    "snowflake": "snowflake",
    "bigquery": "bigquery",
    "databricks": "databricks",
    "redshift": "redshift",
    "trino": "trino",
    "mssql": "tsql",
    "oracle": "oracle",
}
"""URL families that only SQLAlchemy and its driver can open -> our dialect. None was ever run here."""


def open_by_sqlalchemy(url: str, dialect: str) -> Database:
    """A user's database through SQLAlchemy."""
    engine = library("sqlalchemy", "engines").create_engine(url)
    return over_any_connection(dialect, engine.raw_connection(), commits=True)


def over_any_connection(dialect: str, connection: Any, commits: bool = False) -> Database:
    """A database over a connection of an unknown driver; with `commits`, each statement is committed."""
    naming = NAMINGS[dialect]
    version = f"{naming.engine} (version unknown)"

    def execute(statement: str) -> None:
        with engine_errors(version), closing(connection.cursor()) as cursor:
            cursor.execute(statement)
            if commits:
                connection.commit()

    def fetch(query: str) -> list[tuple[Any, ...]]:
        with engine_errors(version), closing(connection.cursor()) as cursor:
            cursor.execute(query)
            return [tuple(row) for row in cursor.fetchall()]

    def insert(table: str, columns: Sequence[str], rows: Matrix, *, missing: Missing = "null") -> None:
        raise CannotRun(f"{naming.engine}: rows cannot be inserted, only existing tables can be scored")

    replacements = (WITHIN_SCHEMA,) if dialect == "snowflake" else (IN_TWO_STEPS,)
    quote = partial(quote_name, naming)
    return Database(dialect, version, execute, fetch, insert, connection.close, quote, replacements=replacements)
