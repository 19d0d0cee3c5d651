"""Runs an emitted artifact: the rows go into a private database as the table it names, and its own SQL answers."""

from __future__ import annotations

import json
import re
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gbfl_compile.backends.base import Predictor
from gbfl_compile.backends.sql_dialects import Dialect
from gbfl_compile.backends.sql_query import KEY_MARK
from gbfl_compile.backends.sql_text import identifier, qualified
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.files import read_whole

if TYPE_CHECKING:
    from gbfl_compile.databases.base import Database
    from gbfl_compile.ir.batch import Answers, Matrix
    from gbfl_compile.ir.nodes import Label

HEADER = "gbfl "
"""What the header's line of JSON begins with."""

TOLD = {"digest": str, "form": str, "schema": str, "table": str, "view": str} | dict.fromkeys(
    ("features", "classes", "keys", "columns", "outputs", "functions"), list
)
"""What the header tells, and in what form."""

ROW = "gbfl_row"
COPIED = "gbfl_copied"
"""Rows on their way into a table that stands in a schema."""


@dataclass(frozen=True, slots=True)
class Script:
    """An artifact as it was found: what its header says and the statements after it."""

    told: Mapping[str, Any]
    statements: tuple[str, ...]

    @property
    def columns(self) -> list[tuple[int, str]]:
        """Feature and column, for the features that are asked."""
        return [(int(feature), str(name)) for feature, name in self.told["columns"]]

    @property
    def outputs(self) -> list[tuple[str, str]]:
        """Kind and name of each column that comes out."""
        return [(str(kind), str(name)) for kind, name in self.told["outputs"]]


def read_script(path: Path) -> Script:
    """The artifact in a file, taken apart but not understood: the engine does that."""
    try:
        lines = read_whole(path).decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from None
    opening = f"-- {HEADER}"
    header = next((line.removeprefix(opening) for line in lines if line.startswith(opening)), None)
    if header is None:
        raise BadInput(f"{path}: has no line {opening!r} with its digest: it is not an artifact of this target")
    first = next((number for number, line in enumerate(lines) if not line.startswith("--")), len(lines))
    try:
        told = dict(json.loads(header))
        if lacking := [key for key in TOLD if not isinstance(told.get(key), TOLD[key])]:
            raise BadInput(f"{path}: its header has no {lacking[0]!r}: emit it again")
        body = "\n".join(lines[first:])
        return Script(told, tuple(part for part in _plain(told, body).split("\n;\n") if part.strip()))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise BadInput(f"{path}: its header cannot be read: {error}") from None


def _plain(told: Mapping[str, Any], body: str) -> str:
    """The statements as an engine takes them; what dbt would fill in is filled in."""
    if told["form"] != "dbt":
        return body
    body = re.sub(r"^\{\{ config\(.*\) \}\}\n", "", body)
    body = re.sub(r"\{\{ (ref|source)\([^{}]*\) \}\}", "gbfl_dbt_source", body)
    return body.replace("{{ '{' }}", "{")


def load(dialect: Dialect, path: Path) -> Predictor:
    """The artifact in a file, run in a private database of its engine."""
    script = read_script(path)
    if dialect.not_run is not None:
        raise CannotRun(dialect.not_run)
    from gbfl_compile.databases import scratch

    database = scratch(dialect.name)

    def answer(rows: Matrix) -> Answers:
        return run(dialect, script, database, rows)

    weakref.finalize(answer, database.close).atexit = False  # with the predictor; at exit engines end by themselves
    return _predictor(script, database, answer)


def load_in_database(path: Path, target: str, database: Database) -> Predictor:
    """The artifact in a file, run in a user's database: rows go in as a temporary table, and nothing stays there.

    An artifact that makes views, tables or functions is refused: they would be made where the user's own are.
    """
    if target != f"sql:{database.dialect}":
        raise BadInput(f"{path}: is for {target}, the database is one for sql:{database.dialect}")
    script = read_script(path)
    form, schema = script.told["form"], script.told["schema"]
    if form not in ("select", "expression") or schema:
        told = f"in schema {schema!r}" if schema else f"form={form}"
        raise BadInput(f"{path}: was emitted {told}: emit it with form=select and no schema to run it in a database")
    dialect = _dialect(database)

    def answer(rows: Matrix) -> Answers:
        table = identifier(dialect, script.told["table"])
        if _is_there(database, table):
            raise BadInput(f"{script.told['table']}: the database has such a table: emit it with another sql.table")
        try:
            return run(dialect, script, database, rows)
        finally:
            database.execute(f"DROP {TEMPORARY.get(dialect.name, 'TABLE IF EXISTS')} {table}")

    return _predictor(script, database, answer)


TEMPORARY = {"spark": "VIEW IF EXISTS", "mariadb": "TEMPORARY TABLE IF EXISTS"}
"""What rows that were put into a user's database are there, where they are no table like any other."""


def _dialect(database: Database) -> Dialect:
    from gbfl_compile.backends.sql_engines import DIALECTS

    return DIALECTS[database.dialect]


def _is_there(database: Database, table: str) -> bool:
    try:
        database.fetch(f"SELECT 1 FROM {table} WHERE 1 = 0")  # noqa: S608 - quoted
    except CannotRun:
        return False
    return True


def _predictor(script: Script, database: Database, answer: Callable[[Matrix], Answers]) -> Predictor:
    told = script.told
    finite = "" if database.holds_infinity else ", infinities given as the largest double"
    return Predictor(
        f"sql:{database.dialect}",
        database.version + finite,
        told["digest"],
        tuple(told["features"]),
        tuple(told["classes"]),
        answer,
        holds_infinity=database.holds_infinity,
    )


def run(dialect: Dialect, script: Script, database: Database, rows: Matrix) -> Answers:
    """What the artifact answers. Rows with NaN are asked as NULL and, where the engine holds it, as NaN too."""
    import numpy as np

    if not database.holds_infinity:
        rows = np.clip(rows, -np.finfo(np.float64).max, np.finfo(np.float64).max)
    found = fetched(dialect, script, database, rows, "null")
    missing = np.isnan(rows).any(axis=1)
    if database.holds_nan and missing.any():
        again = fetched(dialect, script, database, rows[missing], "nan")
        expected = [found[int(index)] for index in np.flatnonzero(missing)]
        for one, other in zip(expected, again, strict=True):
            if one != other:
                raise BadInput(f"NULL and NaN are answered differently: {one!r} and {other!r}")
    return _answers(script, found)


def fetched(dialect: Dialect, script: Script, database: Database, rows: Matrix, missing: Any) -> list[tuple[Any, ...]]:
    """The outputs for each row, in the order of the rows."""
    with _placed(dialect, script, database, rows, missing) as table:
        found = _answered(dialect, script, database, table)
    if len(found) != len(rows) or sorted(int(row[0]) for row in found) != list(range(len(rows))):
        raise BadInput(f"{len(found)} answers for {len(rows)} rows")
    skipped = 1 + (len(script.told["keys"]) if script.told["form"] not in ("expression", "macro") else 0)
    return [tuple(row[skipped:]) for row in sorted(found, key=lambda row: int(row[0]))]


@contextmanager
def _placed(dialect: Dialect, script: Script, database: Database, rows: Matrix, missing: Any) -> Iterator[str]:
    """The rows as the table the artifact names, for as long as it is asked."""
    import numpy as np

    schema, table = script.told["schema"], script.told["table"]
    asked = [name for _, name in script.columns]
    keys = [key for key in script.told["keys"] if key not in asked]
    matrix = np.column_stack([rows[:, [f for f, _ in script.columns]], *[np.arange(len(rows))] * len(keys)])
    if not schema or script.told["form"] == "dbt":
        database.insert(table, [*asked, *keys], matrix, missing=missing)
        yield identifier(dialect, table)
        return
    database.insert(COPIED, [*asked, *keys], matrix, missing=missing)
    name = qualified(dialect, schema, table)
    if dialect.schema_made_by is None:
        raise CannotRun(f"{database.version}: a schema cannot be made here, emit it without one to check it")
    if dialect.name != "sqlite" or not _attached(database, schema):
        database.execute(dialect.schema_made_by.format(name=identifier(dialect, schema)))
    database.execute(dialect.table_as.format(name=name) + f" SELECT * FROM {COPIED}")  # noqa: S608 - quoted
    try:
        yield name
    finally:
        database.execute(f"DROP TABLE {name}")


def _attached(database: Database, schema: str) -> bool:
    return any(row[1] == schema for row in database.fetch("PRAGMA database_list"))


def _answered(dialect: Dialect, script: Script, database: Database, table: str) -> list[tuple[Any, ...]]:
    """The artifact's SQL, run: row numbers stand where its key columns do."""
    row = identifier(dialect, ROW)
    *before, last = [statement.replace(KEY_MARK, f"{row},") for statement in script.statements]
    made = qualified(dialect, script.told["schema"], script.told["view"])
    match script.told["form"]:
        case "expression":
            for statement in before:
                database.execute(statement)
            return database.fetch(f"SELECT {row} AS {row}, {last} FROM {table}")  # noqa: S608 - quoted
        case "select" | "dbt":
            for statement in before:
                database.execute(statement)
            return database.fetch(last.replace("gbfl_dbt_source", table))
        case "view" | "table" as kind:
            for statement in (*before, last):
                database.execute(statement)
            try:
                names = ", ".join(identifier(dialect, name) for name in (ROW, *script.told["keys"], *_names(script)))
                return database.fetch(f"SELECT {names} FROM {made}")  # noqa: S608 - quoted
            finally:
                database.execute(f"DROP {kind.upper()} {made}")
        case "macro":
            return _from_functions(dialect, script, database, table)
        case other:
            raise BadInput(f"the header says form {other!r}, which there is not")


def _names(script: Script) -> list[str]:
    return [name for _, name in script.outputs]


def _from_functions(dialect: Dialect, script: Script, database: Database, table: str) -> list[tuple[Any, ...]]:
    arguments = ", ".join(identifier(dialect, name) for _, name in script.columns)
    names = [qualified(dialect, script.told["schema"], name) for name in script.told["functions"]]
    for statement in script.statements:
        database.execute(statement)
    try:
        calls = ", ".join(f"{name}({arguments})" for name in names)
        return database.fetch(f"SELECT {identifier(dialect, ROW)}, {calls} FROM {table}")  # noqa: S608 - quoted
    finally:
        made = dialect.macro or ""
        kind = "MACRO" if "MACRO" in made else "TEMPORARY FUNCTION" if "TEMPORARY" in made else "FUNCTION"
        for name in names:
            database.execute(f"DROP {kind} {name}")


def _answers(script: Script, found: Sequence[tuple[Any, ...]]) -> Answers:
    import numpy as np

    from gbfl_compile.ir.batch import Answers, label_array

    columns: dict[str, list[list[Any]]] = {}
    for number, (kind, _) in enumerate(script.outputs):
        columns.setdefault(kind, []).append([row[number] for row in found])
    classes = tuple(script.told["classes"])
    if "label" not in columns:
        raise CannotRun("the artifact gives no label: add it to outputs")
    leaves, scores, shares = columns.get("leaf"), columns.get("score"), columns.get("probabilities", [])
    return Answers(
        labels=label_array(tuple(_label(classes, value) for value in columns["label"][0])),
        probabilities=np.array(shares, dtype=np.float64).T.reshape(len(found), len(shares)),
        leaves=None if leaves is None else np.array(leaves[0], dtype=np.int64),
        scores=None if scores is None else np.array(scores, dtype=np.int64).T.reshape(len(found), len(classes)),
    )


def _label(classes: tuple[Label, ...], value: Any) -> Label:
    """The class a value stands for, as the program has it: an engine without truth values says 1 for True."""
    kind = type(classes[0])
    if kind is str and not isinstance(value, str):
        raise BadInput(f"the label came back as {value!r}, which is no text")
    if value is None or kind(value) not in classes or (kind is not str and kind(value) != value):
        raise BadInput(f"the label {value!r} is none of {classes!r}")
    return classes[classes.index(kind(value))]
