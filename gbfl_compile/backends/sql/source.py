"""Is a table of a database one that a program can score? Columns that are absent or would be misread are named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gbfl_compile.backends.sql.dialect import Dialect
from gbfl_compile.backends.sql.words import exact_column
from gbfl_compile.databases.base import Database
from gbfl_compile.errors import BadInput, CannotRun, ConnectionLost
from gbfl_compile.ir.nodes import Kind, Program

NOT_A_NUMBER = "typeof({column}) IN ('text', 'blob') AND NOT COALESCE(CAST({column} AS NUMERIC) = {column}, 0)"
"""Text that SQLite's CAST would take for 0, or for the digits it begins with."""

DAY = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
TIME = "[0-9][0-9]:[0-9][0-9]:[0-9][0-9]"
WRONG_TIME = f"{{column}} NOT GLOB '{DAY} {TIME}*' OR substr({{column}}, 11) GLOB '*[^0-9 :.]*'"

MISREAD: Mapping[Kind, str] = {
    "number": NOT_A_NUMBER,
    "boolean": NOT_A_NUMBER,
    "date": f"{{column}} NOT GLOB '{DAY}' AND ({WRONG_TIME})",
    "timestamp": WRONG_TIME,
}
"""What a value of SQLite, whose columns have no types, must not be: it would be read as another one without a word."""


def check_source(
    program: Program,
    database: Database,
    dialect: Dialect,
    name: str,
    columns: Mapping[str, str],
    keys: Sequence[str],
) -> None:
    """Select the columns before anything is made: what is wrong is for the user to correct, in the engine's words."""
    used = sorted({atom.feature for clause in program.clauses for atom in clause.atoms})
    places = {f: columns.get(program.features[f], program.features[f]) for f in used}
    selected = ", ".join(dict.fromkeys(database.quote(column) for column in (*places.values(), *keys))) or "1"
    _try(database, f"SELECT {selected} FROM {name} WHERE 1 = 0", "the table to score cannot be read")  # noqa: S608 - quoted
    for feature, column in places.items():
        kind, quoted = program.kind(feature), database.quote(column)
        if kind != "number":
            read = f"SELECT {exact_column(dialect, kind, quoted)} FROM {name} WHERE 1 = 0"  # noqa: S608 - quoted
            _try(database, read, f"the column {column!r} cannot be read as a {kind}, score a view that casts it")
        if database.dialect == "sqlite" and kind in MISREAD:
            _refuse_misread(database, name, column, kind)


def _try(database: Database, query: str, what: str) -> None:
    try:
        database.fetch(query)
    except ConnectionLost:
        raise
    except CannotRun as error:
        raise BadInput(f"{what}: {error}") from None


def _refuse_misread(database: Database, name: str, column: str, kind: Kind) -> None:
    quoted = database.quote(column)
    wrong = MISREAD[kind].format(column=quoted)
    query = f"SELECT {quoted} FROM {name} WHERE {quoted} IS NOT NULL AND ({wrong}) LIMIT 1"  # noqa: S608 - quoted
    for (value,) in database.fetch(query):
        raise BadInput(
            f"the column {column!r} has the value {value!r}, which {database.version} does not read as a {kind}: "
            "score a view that casts it, or makes it NULL where it means missing"
        )
