"""Scores a table where it stands: the database makes the scored table itself, and no row leaves it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gbfl_compile.backends import emit
from gbfl_compile.databases.base import Database
from gbfl_compile.errors import BadInput, CannotRun, GbflError
from gbfl_compile.ir.digest import digest
from gbfl_compile.ir.nodes import Program

FRESH = "gbfl_fresh"
"""Where a table is made that is to take the place of another."""


@dataclass(frozen=True, slots=True)
class ScoredTable:
    """What was made."""

    table: str
    rows: int
    engine: str
    digest: str


def score_in_database(
    program: Program,
    database: Database,
    table: str,
    to_table: str,
    *,
    columns: Mapping[str, str] | None = None,
    keys: Sequence[str] = (),
    schema: str = "",
    outputs: str = "",
    replace: bool = False,
) -> ScoredTable:
    """Make `to_table` from `table`: the key columns, `label` and a probability a class, by one CREATE TABLE AS.

    `columns` maps a feature to its column where they are called differently; `outputs` is the SQL target's option. A
    `to_table` that is there already is refused; with `replace` it is dropped once the new one is complete.
    """
    if table == to_table:
        raise BadInput(f"{table}: a table cannot be scored into itself, name another one")
    if any("," in key or key != key.strip() for key in keys):
        raise BadInput("a key column with a comma or a space at its end cannot be carried over: make a view without")
    options = {"form": "table", "table": table, "view": to_table, "schema": schema, "key": ",".join(keys)}
    options |= {"outputs": outputs} if outputs else {}
    options |= {f"column.{feature}": column for feature, column in (columns or {}).items()}
    target = f"sql:{database.dialect}"
    artifact = emit(program, target, "model", options)
    _check_source(program, database, _name(database, schema, table), columns or {}, keys)
    there = _is_there(database, _name(database, schema, to_table))
    if there and not replace:
        raise BadInput(f"{to_table}: there is such a table already, name another one or ask to replace it (--replace)")
    if there:
        artifact = emit(program, target, "model", {**options, "view": FRESH})
    made = FRESH if there else to_table
    _make(database, artifact.files["model.sql"].decode(), _name(database, schema, made))
    if there:
        _put_in_place(database, schema, to_table)
    ((count,),) = database.fetch(f"SELECT COUNT(*) FROM {_name(database, schema, to_table)}")  # noqa: S608 - quoted
    return ScoredTable(to_table, int(count), database.version, digest(program))


def _name(database: Database, schema: str, table: str) -> str:
    return f"{database.quote(schema)}.{database.quote(table)}" if schema else database.quote(table)


def _check_source(
    program: Program, database: Database, name: str, columns: Mapping[str, str], keys: Sequence[str]
) -> None:
    """Ask for the columns before anything is made: what is wrong is the user's to mend, and named by the engine."""
    asked = sorted({atom.feature for clause in program.clauses for atom in clause.atoms})
    names = [columns.get(program.features[f], program.features[f]) for f in asked] + list(keys)
    wanted = ", ".join(dict.fromkeys(database.quote(column) for column in names)) or "1"
    try:
        database.fetch(f"SELECT {wanted} FROM {name} WHERE 1 = 0")  # noqa: S608 - quoted
    except CannotRun as error:
        if "the connection was lost" in str(error):
            raise
        raise BadInput(f"the table to score cannot be read: {error}") from None


def _is_there(database: Database, name: str) -> bool:
    try:
        database.fetch(f"SELECT 1 FROM {name} WHERE 1 = 0")  # noqa: S608 - quoted
    except CannotRun as error:
        if "the connection was lost" in str(error):
            raise
        return False
    return True


def _make(database: Database, text: str, name: str) -> None:
    """Run the artifact; where it fails half way, what it has made is removed."""
    if _is_there(database, name):
        raise BadInput(f"{name}: a table of this name is in the way, drop it")
    try:
        for statement in text.split("\n;\n"):
            if statement.strip():
                database.execute(statement)
    except GbflError:
        if _is_there(database, name):
            database.execute(f"DROP TABLE {name}")
        raise


def _put_in_place(database: Database, schema: str, to_table: str) -> None:
    """The old table goes, the new one gets its name: in one step where the engine has one, so that none is lost."""
    names = {
        "old": _name(database, schema, to_table),
        "fresh": _name(database, schema, FRESH),
        "before": _name(database, schema, BEFORE),
        "bare": database.quote(to_table),
    }
    *ways, (steps, undo) = WAYS.get(database.dialect, (TWO_STEPS,))
    for first_steps, first_undo in ways:
        try:
            database.execute(first_steps[0].format(**names))
        except GbflError:
            continue  # this engine cannot, as it is set up, and nothing is done yet
        steps, undo = first_steps[1:], first_undo
        break
    try:
        for step in steps:
            database.execute(step.format(**names))
    except GbflError:
        for step in undo:
            with contextlib.suppress(GbflError):  # the connection may be gone: then the engine has undone it
                database.execute(step)
        raise


BEFORE = "gbfl_before"
"""What the old table is called for a moment, where two can change their names at once."""

Way: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
"""What is done, and what undoes it."""

TWO_STEPS: Way = (("DROP TABLE {old}", "ALTER TABLE {fresh} RENAME TO {bare}"), ())

# A bare name would move it to the current schema.
WITHIN_SCHEMA: Way = (("DROP TABLE {old}", "ALTER TABLE {fresh} RENAME TO {old}"), ())

WAYS: dict[str, tuple[Way, ...]] = {
    # Statements sent together are one transaction, the user's own if there is one.
    "postgres": ((("DROP TABLE {old}; ALTER TABLE {fresh} RENAME TO {bare}",), ()),),
    "sqlite": (
        (
            ("SAVEPOINT gbfl_put", *TWO_STEPS[0], "RELEASE gbfl_put"),
            ("ROLLBACK TO gbfl_put", "RELEASE gbfl_put"),
        ),
    ),
    "duckdb": ((("BEGIN TRANSACTION", *TWO_STEPS[0], "COMMIT"), ("ROLLBACK",)),),
    "mariadb": ((("RENAME TABLE {old} TO {before}, {fresh} TO {old}", "DROP TABLE {before}"), ()),),
    # Only tables of an Atomic database change places at once.
    "clickhouse": (
        (("EXCHANGE TABLES {old} AND {fresh}", "DROP TABLE {fresh}"), ()),
        (("DROP TABLE {old}", "RENAME TABLE {fresh} TO {old}"), ()),
    ),
    "spark": (WITHIN_SCHEMA,),
    "snowflake": (WITHIN_SCHEMA,),
    # It cannot rename.
    "datafusion": ((("CREATE OR REPLACE TABLE {old} AS SELECT * FROM {fresh}", "DROP TABLE {fresh}"), ()),),
}
"""Ways to put a table in the place of another, best first: the next is taken where an engine refuses a first step."""
