"""What an audit needs from a database's catalog: views, tables, column types, and an empty copy of a table.

Each engine's file has one `CATALOG` that says how.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from gbfl_compile.databases.base import Database
from gbfl_compile.errors import BadInput, CannotRun, ConnectionLost, TimeLimitReached


@dataclass(frozen=True, slots=True)
class TableName:
    """A table or view as a query names it; the schema is empty where the query gives none."""

    schema: str
    name: str

    def in_quotes(self, database: Database) -> str:
        """The name as this database writes it."""
        return ".".join(database.quote(part) for part in (self.schema, self.name) if part)


Kind: TypeAlias = Literal["double", "float32", "integer", "decimal", "boolean", "text", "other"]


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The values a column can hold."""

    kind: Kind
    least: float = -math.inf
    most: float = math.inf
    scale: int = 0
    """Digits after the point of a decimal."""
    digits: int = 0
    """All digits of a decimal."""
    engine_has_nan: bool = True

    @property
    def holds_nan(self) -> bool:
        """Whether it is a binary floating-point type of an engine that stores NaN."""
        return self.kind in ("double", "float32") and self.engine_has_nan


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    declared: str
    """Its type as the catalog writes it."""
    type: ColumnType
    nullable: bool = True
    generated: bool = False
    """Whether the database computes it, so that it cannot be filled in."""
    compares_exactly: bool = False
    """Whether `=` takes its texts for equal only when they are the same, as far as the catalog can tell."""
    rounds: bool = False
    """Whether it keeps another number than it is given, as MariaDB's DOUBLE(10,1) does: it must be staged as it is."""
    members: tuple[str, ...] | None = None
    """The texts of an enumeration, which holds no other but those in `strays`."""
    strays: tuple[str, ...] = ()
    """Texts that an enumeration may hold though they are not members: MariaDB's INSERT IGNORE leaves an empty one."""

    @property
    def holds_texts(self) -> bool:
        """Whether its values are texts."""
        return self.type.kind == "text" or self.members is not None


def column_named(columns: Sequence[Column], name: str, fold: bool) -> Column | None:
    """The column of this name, as the engine compares names; with `fold` letters may differ in case."""
    named = {column.name: column for column in reversed(columns)}
    if name in named or not fold:
        return named.get(name)
    return next((column for column in columns if column.name.casefold() == name.casefold()), None)


@dataclass(frozen=True, slots=True)
class StoredView:
    """A view as the catalog has it."""

    definition: str
    materialized: bool = False
    """Whether it answers from stored rows instead of running its definition."""
    statement: str | None = None
    """The whole CREATE VIEW, where the catalog has it apart from the definition."""
    columns: tuple[str, ...] | None = None
    """What it answers with; None where the database cannot say, because a table or column that it reads is gone."""
    conversion: str | None = None
    """A column that it gives as another type than its query does, in words: ClickHouse converts what comes out."""
    literals_in_utf8: bool = True
    """Whether its texts have the bytes of UTF-8: in MariaDB that is up to the session which created the view, and to
    character sets before single texts, which its catalog does not print."""


@dataclass(frozen=True, slots=True)
class StoredFunction:
    """A function as the catalog has it."""

    schema: str
    language: Literal["expression", "query", "block"]
    parameters: tuple[tuple[str, str], ...]
    """Name and type; an empty type where a macro puts the argument itself in its place."""
    returns: str
    body: str
    strict: bool = False
    """Whether it is NULL when an argument is."""
    problem: str | None = None
    """Why its text does not say what it does: another language, settings of its own, several rows."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """The catalog queries of one engine. Templates take {name}, {query}, {value} and {type}."""

    view: Callable[[Database, TableName], StoredView | None]
    """A name without a schema is looked up as the engine looks up what a user types."""
    is_view: Callable[[Database, TableName], bool]
    columns: Callable[[Database, TableName], list[Column]]
    copy: Callable[[Database, TableName, str], None]
    """Make an empty temporary copy of a table: the same column types, collations, NOT NULL and CHECK constraints."""
    functions: Callable[[Database, str], list[StoredFunction]] = lambda database, name: []
    """Every function of this name, in whatever schema, those of the engine itself included."""
    computed: Callable[[Database, TableName], dict[str, str]] = lambda database, table: {}
    """The expression of each column that a table computes itself (GENERATED ALWAYS AS …), as the catalog writes it."""
    own_names: str | None = None
    """A query for what users added: (function, type, operator or cast; name; whether it is found without its schema).

    Operators and casts count wherever they are: a text may use them without naming them.
    A view's text could mean what the session finds. The body of a function could mean any of them: whoever calls it, or
    a setting of its own, says where names are looked up.
    """
    several: Callable[[Database, TableName], bool] = lambda database, name: False
    """Whether the name may mean several tables or views, one for this session and another for the next."""
    shows_each_its_own: Callable[[Database, TableName], bool] = lambda database, table: False
    """Whether a table shows other rows to other users."""
    references: str | None = None
    """A query for the tables that a table's foreign keys refer to: {name} and {schema}, or {path}, are literals."""
    zones: str | None = None
    """A query for the time zones that moments of a type without one may be taken in, where there is any."""
    names_fold: bool = True
    """Whether `Age` and `age` are one column."""
    staging: str = "CREATE TEMPORARY TABLE {name} AS {query}"
    drop: str = "DROP TABLE IF EXISTS {name}"
    empty: str = "DELETE FROM {name}"
    value: str = "{value}"
    """A double as a value of the column it goes into, where the engine does not convert it by itself."""
    not_nan: str = "{value}"
    """The same for a column that cannot hold NaN: NaN becomes NULL."""
    text: str = "CAST({value} AS {type})"
    """The same for a column of text."""
    double_kinds: frozenset[Kind] = frozenset(("double", "float32", "boolean"))
    """The kinds of columns that are compared with a number as a double would be."""
    as_double: str = "CAST({value} AS DOUBLE)"
    truth_as_double: str = "CAST({value} AS DOUBLE)"
    limit: tuple[str, str] | None = None
    """Statements that set a time limit of {seconds} or {milliseconds} for each query, and that take it away again."""


def referenced_tables(database: Database, catalog: Catalog, table: TableName) -> set[str]:
    """The names, in lower case and without schemas, of the tables that the foreign keys of a table refer to."""
    if catalog.references is None:
        return set()
    name, schema, path = (literal(text) for text in (table.name, table.schema, table.in_quotes(database)))
    rows = database.fetch(catalog.references.format(name=name, schema=schema, path=path))
    return {str(other).rpartition(".")[2].strip('"').casefold() for (other,) in rows}


def literal(text: str) -> str:
    """A text in quotes. Backslashes are refused: whether they escape is a setting in some engines."""
    if any(sign in text for sign in "\\\0"):
        raise BadInput(f"the name {text!r}: a name with backslashes is not looked up")
    return "'" + text.replace("'", "''") + "'"


def view_name(view: str) -> str:
    """The name of a view as a literal; a name with quotes is refused, as engines differ in what it means."""
    if not view or any(sign in view for sign in "'\\\0"):
        raise BadInput(f"the view {view!r}: a name with quotes or backslashes is not looked up")
    return literal(view)


def integers(bits: int, unsigned: bool = False) -> ColumnType:
    """The integers of this many bits, as far as they are doubles."""
    past = 2.0 ** (bits if unsigned else bits - 1)
    most = past - 1 if past <= 2.0**53 else math.nextafter(past, 0.0)
    return ColumnType("integer", 0.0 if unsigned else -past, most)


DECIMAL = re.compile(r"(?:decimal|numeric|dec|number)(?:\((\d+)(?:\s*,\s*(\d+))?\))?", re.IGNORECASE)


def column_type(declared: str, known: Mapping[str, ColumnType], default_decimal: tuple[int, int]) -> ColumnType:
    """The values of a declared type: one of the `known` names, a decimal, or a type of another kind."""
    plain = " ".join(declared.casefold().split())
    if plain.startswith("nullable("):
        plain = plain.removeprefix("nullable(").removesuffix(")")
    if plain in known:
        return known[plain]
    if match := DECIMAL.fullmatch(plain):
        digits, scale = default_decimal
        if match[1]:
            digits, scale = int(match[1]), int(match[2] or 0)
        largest = (10.0**digits - 1) / 10.0**scale if digits <= 300 else math.inf
        return ColumnType("decimal", -largest, largest, scale, digits)
    if re.match(r"(var|n|nvar|bp)?char|character|text|string|clob", plain):
        return ColumnType("text")
    return ColumnType("other")


MEMBERS = {
    False: re.compile(r"""\s*'((?:[^']|'')*)'\s*(?:,|$)"""),
    True: re.compile(r"""\s*'((?:[^'\\]|''|\\[\\'])*)'\s*(?:= -?\d+)?\s*(?:,|$)"""),
}
"""One member of an enumeration as catalogs print it, where a backslash is not an escape and where it is one."""


def enumeration(declared: str, escapes: bool) -> tuple[str, ...] | None:
    """The members of ENUM('a', 'b') or Enum8('a' = 1); None where it is no such type or not understood.

    >>> enumeration("enum('it''s','b')", escapes=True)
    ("it's", 'b')
    """
    plain = declared[9:-1] if declared.startswith("Nullable(") else declared
    listed = re.fullmatch(r"enum(?:8|16)?\((.*)\)", plain, re.IGNORECASE | re.DOTALL)
    found, place = [], 0
    while listed is not None and place < len(listed[1]):
        match = MEMBERS[escapes].match(listed[1], place)
        if match is None:
            return None
        text = re.sub(r"\\([\\'])", r"\1", match[1]) if escapes else match[1]
        found.append(text.replace("''", "'"))
        place = match.end()
    return tuple(found) or None


def after_table_name(statement: str) -> str:
    """A CREATE TABLE statement from its list of columns on, the first parenthesis outside quotes."""
    quote = ""
    for place, sign in enumerate(statement):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'`[":
            quote = "]" if sign == "[" else sign
        elif sign == "(":
            return statement[place:].rstrip().removesuffix(";")
    raise CannotRun("the table's own definition has no list of columns")


@contextmanager
def time_limit(database: Database, catalog: Catalog, seconds: float) -> Iterator[Database]:
    """The same database, in which nothing runs past the time limit: what does is stopped, and is CannotRun."""
    deadline = time.monotonic() + seconds

    def in_time(run: Callable[[str], list[tuple[object, ...]] | None]) -> Callable[[str], object]:
        def run_in_time(statement: str) -> object:
            try:
                if time.monotonic() < deadline:
                    return run(statement)
            except ConnectionLost:
                raise
            except CannotRun:
                if time.monotonic() < deadline:
                    raise
            raise TimeLimitReached(
                f"{database.version}: not done within {seconds:g} s: give it longer with --time-limit"
            )

        return run_in_time

    limited = replace(database, execute=in_time(database.execute), fetch=in_time(database.fetch))  # type: ignore[arg-type]
    timer = None if database.interrupt is None else threading.Timer(seconds, database.interrupt)
    if timer is not None:
        timer.daemon = True
        timer.start()
    if catalog.limit is not None:
        database.execute(
            catalog.limit[0].format(seconds=max(1, math.ceil(seconds)), milliseconds=int(seconds * 1000) + 1)
        )
    try:
        yield limited
    finally:
        if timer is not None:
            timer.cancel()
        if catalog.limit is not None:
            database.execute(catalog.limit[1])
