"""Scores rows where they are: the database makes the scored table itself, or Spark adds a column. No row leaves it.

A table is scored only if a program can read it: columns that are absent or would be misread are named.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gbfl_compile.backends import emit
from gbfl_compile.backends.sql.conditions import exact_column
from gbfl_compile.backends.sql.dialect import Dialect
from gbfl_compile.backends.sql.engines import DIALECTS
from gbfl_compile.databases.base import Database, library, table_exists
from gbfl_compile.errors import BadInput, CannotRun, ConnectionLost, GbflError
from gbfl_compile.ir.json import digest
from gbfl_compile.ir.kinds import codebook, recorded_texts
from gbfl_compile.ir.nodes import TRUE, Kind, OneOf, Program
from gbfl_compile.tables.conversion import text_of

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
"""Values that SQLite, whose columns have no types, would silently read as another value."""


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
        if kind == "category":
            _refuse_other_texts(program, feature, database, dialect, name, column)


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


def _refuse_other_texts(
    program: Program, feature: int, database: Database, dialect: Dialect, name: str, column: str
) -> None:
    """Refuse a column of numbers or timestamps that the engine writes otherwise than the program's category has them.

    Of a code such as '007' a loader that made it a number lost the zeros; 0.5 is '0.50' in a DECIMAL; a truth value of
    MariaDB and SQLite is '1'.
    """
    atoms = (atom for clause in program.clauses for atom in clause.atoms if atom.feature == feature)
    texts = (text for atom in atoms if isinstance(atom, OneOf) for text in atom.values)
    code = next((text for text in texts if (text[:1] == "0" and text[1:].isdecimal()) or text in (TRUE, "false")), None)
    quoted = database.quote(column)
    rows = f"{name} WHERE {quoted} IS NOT NULL"
    for (value,) in database.fetch(f"SELECT {quoted} FROM {rows} LIMIT 1"):  # noqa: S608 - quoted
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool) and code is not None:
            raise BadInput(
                f"the column {column!r} has the number {value}, and the program compares texts such as {code!r} with "
                "it: load the column as text, or score a view that writes such texts"
            )
        is_sqlite = database.dialect == "sqlite"
        if isinstance(value, float | Decimal | datetime.date) or is_sqlite:
            rows += f" AND typeof({quoted}) <> 'text'" if is_sqlite else ""
            _refuse_other_spelling(
                program, feature, database, f"{quoted}, {exact_column(dialect, 'category', quoted)}", rows
            )


def _refuse_other_spelling(program: Program, feature: int, database: Database, columns: str, rows: str) -> None:
    """Refuse a value whose text the program knows, where the engine writes another text."""
    known = {*codebook(program).texts[feature], *recorded_texts(program, program.features[feature])}
    query = f"SELECT DISTINCT {columns} AS spelling FROM {rows} LIMIT {MOST_SPELLINGS + 1}"  # noqa: S608 - quoted
    values = database.fetch(query)
    if len(values) > MOST_SPELLINGS:
        raise BadInput(
            f"the column {program.features[feature]!r} has more than {MOST_SPELLINGS:,} different values that are no "
            "texts, and the program compares it with texts: score a view that writes them as the table that was mined"
        )
    for value, spelling in values:
        plain = value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value
        written = spelling.decode() if isinstance(spelling, bytes) else spelling
        if (text := text_of(plain)) in known and written != text:
            raise BadInput(
                f"the column {program.features[feature]!r} has {value}, which {database.version} writes {written!r} "
                f"and the table that was mined {text!r}: score a view that writes the latter"
            )


MOST_SPELLINGS = 10_000
"""Different values of a column whose texts are looked at."""

FRESH = "fresh_gbfl"
"""The name of a new table until it replaces another."""

BEFORE = "before_gbfl"
"""The name of the old table for a moment, where two can be renamed at once."""


@dataclass(frozen=True, slots=True)
class ScoredTable:
    """The table that was made."""

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
    """Make `to_table` from `table`: the key columns, `label` and one probability per class, by one CREATE TABLE AS.

    `columns` maps a feature to its column where their names differ; `outputs` is the SQL target's option. An existing
    `to_table` is refused; with `replace` it is dropped once the new one is complete.
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
    check_source(program, database, DIALECTS[database.dialect], _name(database, schema, table), columns or {}, keys)
    exists = table_exists(database, _name(database, schema, to_table))
    if exists and not replace:
        raise BadInput(f"{to_table}: this table exists already, name another one or replace it (--replace)")
    if exists:
        artifact = emit(program, target, "model", {**options, "view": FRESH})
    _make(database, artifact.files["model.sql"].decode(), _name(database, schema, FRESH if exists else to_table))
    if exists:
        _put_in_place(database, schema, to_table)
    ((count,),) = database.fetch(f"SELECT COUNT(*) FROM {_name(database, schema, to_table)}")  # noqa: S608 - quoted
    return ScoredTable(to_table, int(count), database.version, digest(program))


def _name(database: Database, schema: str, table: str) -> str:
    return f"{database.quote(schema)}.{database.quote(table)}" if schema else database.quote(table)


def _make(database: Database, text: str, name: str) -> None:
    """Run the artifact; if it fails half way, what it has made is removed."""
    if table_exists(database, name):
        raise BadInput(f"{name}: a table of this name is in the way, drop it")
    try:
        for statement in text.split("\n;\n"):
            if statement.strip():
                database.execute(statement)
    except GbflError:
        if table_exists(database, name):
            database.execute(f"DROP TABLE {name}")
        raise


def _put_in_place(database: Database, schema: str, to_table: str) -> None:
    """Drop the old table and give the new one its name, in one step where the engine can: neither is ever lost."""
    names = {
        "old": _name(database, schema, to_table),
        "fresh": _name(database, schema, FRESH),
        "before": _name(database, schema, BEFORE),
        "bare": database.quote(to_table),
    }
    *better, last = database.replacements
    steps, undo = last.steps, last.undo
    for way in better:
        try:
            database.execute(way.steps[0].format(**names))
        except GbflError:
            continue  # this engine cannot, as it is set up, and nothing has changed yet
        steps, undo = way.steps[1:], way.undo
        break
    try:
        for step in steps:
            database.execute(step.format(**names))
    except GbflError:
        for step in undo:
            with contextlib.suppress(GbflError):  # a lost connection: then the engine has undone it
                database.execute(step)
        raise


def spark_column(program: Program, columns: Mapping[str, str] | None = None, *, types: str = "any") -> Any:
    """The label as a pyspark Column, to be added by `frame.withColumn("label", …)`: each executor answers for its rows.

    `columns` maps a feature to its column where their names differ. With types="double" the columns are known to be
    doubles and not cast.
    """
    functions = library("pyspark.sql.functions", "engines")
    return functions.expr(spark_expression(program, columns, types=types)).alias("label")


def spark_expression(program: Program, columns: Mapping[str, str] | None = None, *, types: str = "any") -> str:
    """The text of that column, for `selectExpr` and for SQL."""
    options = {"form": "expression", "outputs": "label", "types": types}
    options |= {f"column.{feature}": column for feature, column in (columns or {}).items()}
    lines = emit(program, "sql:spark", "model", options).files["model.sql"].decode().split("\n")
    first = next(number for number, line in enumerate(lines) if not line.startswith("--"))
    return "\n".join(lines[first:]).strip()
