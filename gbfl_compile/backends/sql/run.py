"""Runs an emitted artifact: the rows go into a private database as the table it names, and its own SQL answers.

The SQL is run byte for byte (a dbt model as dbt would fill it in). Which answer belongs to which row is known by a key
column of the artifact or, without one, by the order of the rows in an engine that keeps it.
"""

from __future__ import annotations

import json
import re
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from gbfl_compile.backends.base import Predictor
from gbfl_compile.backends.sql.dialect import Dialect
from gbfl_compile.backends.sql.text import blocks, identifier, qualified_name, staged_column
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.files.atomic import read_whole
from gbfl_compile.ir.nodes import Kind

if TYPE_CHECKING:
    from gbfl_compile.databases.base import Database
    from gbfl_compile.ir.batch import Answers, Matrix
    from gbfl_compile.ir.kinds import Value
    from gbfl_compile.ir.nodes import Label

HEADER = "gbfl "
"""How the header's line of JSON begins."""

HEADER_FIELDS = {"digest": str, "form": str, "schema": str, "table": str, "view": str} | dict.fromkeys(
    ("features", "classes", "keys", "columns", "outputs", "functions"), list
)
"""The fields of a header and their types."""

ROW = "gbfl_row"
COPIED = "gbfl_copied"
"""Where rows are put before they are copied into a table in a schema."""


@dataclass(frozen=True, slots=True)
class Script:
    """An artifact as it was read: its header and the statements after it."""

    header: Mapping[str, Any]
    statements: tuple[str, ...]

    @property
    def columns(self) -> list[tuple[int, str]]:
        """Feature and column, for the features in use."""
        return [(int(feature), str(name)) for feature, name in self.header["columns"]]

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kind of each feature; `()` where all are numbers."""
        return tuple(self.header.get("kinds", ()))

    @property
    def outputs(self) -> list[tuple[str, str]]:
        """Kind and name of each output column."""
        return [(str(kind), str(name)) for kind, name in self.header["outputs"]]


StagedValues: TypeAlias = Mapping[int, Sequence["Value"]]
"""Feature -> its different values, where the rows have their numbers."""

NO_VALUES: StagedValues = {}


def read_script(path: Path) -> Script:
    """The artifact in a file, split into header and statements; the engine interprets them."""
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
        fields = dict(json.loads(header))
        if not set(fields.get("kinds", ())) <= set(get_args(Kind)):
            raise BadInput(f"{path}: its header names an unknown kind: emit it again")
        if lacking := [key for key in HEADER_FIELDS if not isinstance(fields.get(key), HEADER_FIELDS[key])]:
            raise BadInput(f"{path}: its header has no {lacking[0]!r}: emit it again")
        body = "\n".join(lines[first:])
        return Script(fields, tuple(part for part in _plain(fields, body).split("\n;\n") if part.strip()))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise BadInput(f"{path}: its header cannot be read: {error}") from None


def _plain(header: Mapping[str, Any], body: str) -> str:
    """The statements as an engine takes them, with what dbt would fill in."""
    if header["form"] != "dbt":
        return body
    body = re.sub(r"^\{\{ config\(.*\) \}\}\n", "", body)
    body = re.sub(r"\{\{ (ref|source)\([^{}]*\) \}\}", "gbfl_dbt_source", body)
    return body.replace("{{ '{' }}", "{")


def load(dialect: Dialect, path: Path, labels: tuple[Label, ...] | None = None) -> Predictor:
    """The artifact in a file, run in a private database; `labels` is how it writes the classes of its header."""
    script = read_script(path)
    if labels is not None:
        script = replace(script, header={**script.header, "classes": list(labels)})
    if dialect.not_run is not None:
        raise CannotRun(dialect.not_run)
    from gbfl_compile.databases import scratch

    database = scratch(dialect.name)

    def answer(rows: Matrix) -> Answers:
        return run(dialect, script, database, rows)

    def answer_rows(rows: Sequence[Sequence[Value]]) -> Answers:
        return run_values(dialect, script, database, rows)

    weakref.finalize(answer, database.close).atexit = False  # at exit engines end by themselves
    predictor = _predictor(script, database, answer)
    if not script.kinds:
        return predictor
    weakref.finalize(answer_rows, lambda kept: None, answer).atexit = False  # the database lives as long as either
    return replace(predictor, kinds=script.kinds, answer_rows=answer_rows, engine=predictor.engine + _dates(dialect))


def load_in_database(path: Path, target: str, database: Database) -> Predictor:
    """The artifact in a file, run in a user's database: rows go in as a temporary table, and nothing is left behind.

    An artifact that creates views, tables or functions is refused: they would be created among the user's own.
    """
    if target != f"sql:{database.dialect}":
        raise BadInput(f"{path}: is for {target}, the database is one for sql:{database.dialect}")
    script = read_script(path)
    if script.kinds:
        raise BadInput(f"{path}: has features that are not numbers, and such rows are only run in a private database")
    form, schema = script.header["form"], script.header["schema"]
    if form not in ("select", "expression") or schema:
        choice = f"in schema {schema!r}" if schema else f"with form={form}"
        raise BadInput(f"{path}: was emitted {choice}: emit it with form=select and no schema to run it in a database")
    dialect = _dialect(database)

    def answer(rows: Matrix) -> Answers:
        from gbfl_compile.databases.base import table_exists

        table = identifier(dialect, script.header["table"])
        if table_exists(database, table):
            raise BadInput(f"{script.header['table']}: the database has a table of this name: emit another sql.table")
        try:
            return run(dialect, script, database, rows)
        finally:
            database.execute(database.drop_inserted.format(table))

    return _predictor(script, database, answer)


def _dates(dialect: Dialect) -> str:
    """What a verdict says about dates that the engine cannot hold."""
    spelling = dialect.kinds["date"]
    held = f"dates outside {spelling.earliest} to {spelling.latest} given as the nearest of these"
    return "" if spelling.holds_every_date else f", {held}"


def _dialect(database: Database) -> Dialect:
    from gbfl_compile.backends.sql.engines import DIALECTS

    return DIALECTS[database.dialect]


def _predictor(script: Script, database: Database, answer: Callable[[Matrix], Answers]) -> Predictor:
    header = script.header
    finite = "" if database.holds_infinity else ", infinities given as the largest double"
    return Predictor(
        f"sql:{database.dialect}",
        database.version + finite,
        header["digest"],
        tuple(header["features"]),
        tuple(header["classes"]),
        answer,
        holds_infinity=database.holds_infinity,
    )


def run(dialect: Dialect, script: Script, database: Database, rows: Matrix) -> Answers:
    """The artifact's answers. Rows with NaN are scored with NULL and, where the engine holds it, with NaN too."""
    if script.kinds:
        raise BadInput("the artifact has features that are not numbers: give rows of Python values")
    return _answers(script, _both_ways(dialect, script, database, rows, {}))


def run_values(dialect: Dialect, script: Script, database: Database, rows: Sequence[Sequence[Value]]) -> Answers:
    """The artifact's answers to rows of Python values; None is a NULL, as is NaN where it is not a number."""
    answers: list[tuple[Any, ...]] = []
    for block in blocks(dialect, script.kinds, rows) if len(rows) else ():
        answers += _both_ways(dialect, script, database, block.matrix, block.values)
    return _answers(script, answers)


def _both_ways(
    dialect: Dialect, script: Script, database: Database, rows: Matrix, values: StagedValues
) -> list[tuple[Any, ...]]:
    import numpy as np

    if not database.holds_infinity:
        rows = np.clip(rows, -np.finfo(np.float64).max, np.finfo(np.float64).max)
    answers = fetch_answers(dialect, script, database, rows, "null", values)
    missing = np.isnan(rows).any(axis=1)
    if database.holds_nan and missing.any():
        again = fetch_answers(dialect, script, database, _with_every_nan(rows[missing]), "nan", values)
        expected = [answers[int(index)] for index in np.flatnonzero(missing)] * len(NAN_BITS)
        for one, other in zip(expected, again, strict=True):
            if one != other:
                raise BadInput(f"NULL and NaN are answered differently: {one!r} and {other!r}")
    return answers


NAN_BITS = (0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000001, 0xFFF8000000000001)
"""NaNs of both signs, with and without a payload: an engine may order them or tell them apart."""


def _with_every_nan(rows: Matrix) -> Matrix:
    """The rows once for each kind of NaN, one after the other."""
    import numpy as np

    kinds = np.array(NAN_BITS, dtype=np.uint64).view(np.float64)
    return np.concatenate([np.where(np.isnan(rows), nan, rows) for nan in kinds])


def fetch_answers(
    dialect: Dialect, script: Script, database: Database, rows: Matrix, missing: Any, values: StagedValues = NO_VALUES
) -> list[tuple[Any, ...]]:
    """The outputs for each row, in the order of the rows."""
    answers = _numbered_answers(dialect, script, database, rows, missing, values)
    if _number_place(script) is None and not database.keeps_order:
        again = _numbered_answers(dialect, script, database, rows[::-1], missing, values)
        if again[::-1] != answers:
            raise CannotRun(f"{database.version} does not keep the order of rows: emit it with a key column (sql.key)")
    return answers


def _numbered_answers(
    dialect: Dialect, script: Script, database: Database, rows: Matrix, missing: Any, values: StagedValues
) -> list[tuple[Any, ...]]:
    inserted = _inserted_rows(dialect, script, database, rows, missing, values)
    answers = _run_statements(dialect, script, database, inserted)
    width = len(script.outputs)
    place = _number_place(script)
    if any(len(row) != width + len(_leading(script)) for row in answers):
        raise BadInput(f"the query returns other columns than its header says: {width} outputs and its keys")
    if place is not None:
        answers = sorted(answers, key=lambda row: int(row[place]))
    numbers = range(len(rows)) if place is None else [int(row[place]) for row in answers]
    if len(answers) != len(rows) or list(numbers) != list(range(len(rows))):
        raise BadInput(f"{len(answers)} answers for {len(rows)} rows")
    return [tuple(row[len(row) - width :]) for row in answers]


def _leading(script: Script) -> list[str]:
    """The columns before the outputs: the row's number in our own SELECT around an expression or function, or keys."""
    return [ROW] if script.header["form"] in ("expression", "macro") else [str(key) for key in script.header["keys"]]


def _number_place(script: Script) -> int | None:
    """Which leading column holds the row's number; None where there is none, or every key is a feature."""
    features = {name for _, name in script.columns}
    return next((place for place, name in enumerate(_leading(script)) if name not in features), None)


@contextmanager
def _inserted_rows(
    dialect: Dialect, script: Script, database: Database, rows: Matrix, missing: Any, values: StagedValues
) -> Iterator[str]:
    """Insert the rows as the table the artifact names, for as long as it runs."""
    import numpy as np

    schema, table = script.header["schema"], script.header["table"]
    names = [name for _, name in script.columns]
    keys = [key for key in script.header["keys"] if key not in (*names, ROW)]
    matrix = np.column_stack([rows[:, [f for f, _ in script.columns]], *[np.arange(len(rows))] * len(keys)])
    schema = "" if script.header["form"] == "dbt" else schema
    if not schema and not values:
        database.insert(table, [*names, *keys], matrix, missing=missing)
        yield identifier(dialect, table)
        return
    database.insert(COPIED, [*names, *keys], matrix, missing=missing)
    name = qualified_name(dialect, schema, table)
    if schema and dialect.schema_made_by is None:
        raise CannotRun(f"{database.version}: a schema cannot be created here, emit it without one to check it")
    if schema and (dialect.name != "sqlite" or not _is_attached(database, schema)):
        database.execute(str(dialect.schema_made_by).format(name=identifier(dialect, schema)))
    making, kind = dialect.table_as.format(name=name), "TABLE"
    if dialect.name == "spark" and not table.isidentifier():  # a table's name is also a folder's there
        making, kind = f"CREATE OR REPLACE TEMPORARY VIEW {name} AS", "VIEW"
    database.execute(f"{making} SELECT {_copied_columns(dialect, script, keys, values)} FROM {COPIED}")  # noqa: S608
    try:
        yield name
    finally:
        database.execute(f"DROP {kind} {name}")


def _copied_columns(dialect: Dialect, script: Script, keys: Sequence[str], values: StagedValues) -> str:
    if not values:
        return "*"
    columns = [
        staged_column(dialect, script.kinds[feature], values[feature], name)
        if feature in values
        else identifier(dialect, name)
        for feature, name in script.columns
    ]
    return ", ".join([identifier(dialect, ROW), *columns, *(identifier(dialect, key) for key in keys)])


def _is_attached(database: Database, schema: str) -> bool:
    return any(row[1] == schema for row in database.fetch("PRAGMA database_list"))


def _run_statements(
    dialect: Dialect, script: Script, database: Database, inserted: AbstractContextManager[str]
) -> list[tuple[Any, ...]]:
    """Run the artifact's SQL as it is, on rows that are inserted into a table as long as it runs."""
    row = identifier(dialect, ROW)
    *before, last = script.statements
    created = qualified_name(dialect, script.header["schema"], script.header["view"])
    with inserted as table:
        match script.header["form"]:
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
                    names = ", ".join(identifier(dialect, name) for name in (*_leading(script), *_names(script)))
                    return database.fetch(f"SELECT {names} FROM {created}")  # noqa: S608 - quoted
                finally:
                    database.execute(f"DROP {kind.upper()} {created}")
            case "macro":
                return _from_functions(dialect, script, database, table)
            case other:
                raise BadInput(f"the header names an unknown form {other!r}")


def _names(script: Script) -> list[str]:
    return [name for _, name in script.outputs]


def _from_functions(dialect: Dialect, script: Script, database: Database, table: str) -> list[tuple[Any, ...]]:
    arguments = ", ".join(identifier(dialect, name) for _, name in script.columns)
    names = [qualified_name(dialect, script.header["schema"], name) for name in script.header["functions"]]
    for statement in script.statements:
        database.execute(statement)
    try:
        calls = ", ".join(f"{name}({arguments})" for name in names)
        return database.fetch(f"SELECT {identifier(dialect, ROW)}, {calls} FROM {table}")  # noqa: S608 - quoted
    finally:
        opening = dialect.macro or ""
        kind = "MACRO" if "MACRO" in opening else "TEMPORARY FUNCTION" if "TEMPORARY" in opening else "FUNCTION"
        for name in names:
            database.execute(f"DROP {kind} {name}")


def _answers(script: Script, rows: Sequence[tuple[Any, ...]]) -> Answers:
    import numpy as np

    from gbfl_compile.ir.batch import Answers, label_array

    columns: dict[str, list[list[Any]]] = {}
    for number, (kind, _) in enumerate(script.outputs):
        columns.setdefault(kind, []).append([row[number] for row in rows])
    classes = tuple(script.header["classes"])
    if "label" not in columns:
        raise CannotRun("the artifact gives no label: add it to outputs")
    leaves, scores, shares = columns.get("leaf"), columns.get("score"), columns.get("probabilities", [])
    return Answers(
        labels=label_array(tuple(_label(classes, value) for value in columns["label"][0])),
        probabilities=np.array(shares, dtype=np.float64).T.reshape(len(rows), len(shares)),
        leaves=None if leaves is None else np.array(leaves[0], dtype=np.int64),
        scores=None if scores is None else np.array(scores, dtype=np.int64).T.reshape(len(rows), len(classes)),
    )


def _label(classes: tuple[Label, ...], value: Any) -> Label:
    """The class a value means, as the program has it: an engine without booleans returns 1 for True."""
    kind = type(classes[0])
    if kind is str and not isinstance(value, str):
        raise BadInput(f"the label came back as {value!r}, which is not text")
    if isinstance(value, bool) and kind is not bool:
        raise BadInput(f"the label came back as {value!r}, which is a boolean")
    if value is None or kind(value) not in classes or (kind is not str and kind(value) != value):
        raise BadInput(f"the label {value!r} is not one of {classes!r}")
    return classes[classes.index(kind(value))]
