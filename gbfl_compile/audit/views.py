"""Audits a view where it is deployed: its definition, as the database's catalog has it, is read, proved and run.

Nothing is written to the user's schema. Witnesses go into a temporary table of this connection, and the view's own
query is asked of it in place of the table it stands on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gbfl_compile.audit.answer import Audited
from gbfl_compile.audit.compared import compared
from gbfl_compile.audit.files import Given
from gbfl_compile.check.artifact_proof import ArtifactProof
from gbfl_compile.check.equivalence import Execution
from gbfl_compile.check.readers.sql import Told, read_sql
from gbfl_compile.check.reading import Reading, Unread
from gbfl_compile.check.witnesses import witnesses
from gbfl_compile.databases.base import Database, Missing
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.batch import Matrix, evaluate_many
from gbfl_compile.ir.nodes import Label, Program

WITNESSES = "gbfl_witnesses"

CATALOGS: Mapping[str, str] = {
    "postgres": "SELECT pg_get_viewdef({name}::regclass, true)",
    "duckdb": "SELECT sql FROM duckdb_views() WHERE view_name = {name}",
    "sqlite": "SELECT sql FROM (SELECT * FROM sqlite_temp_master UNION ALL SELECT * FROM sqlite_master) "
    "WHERE type = 'view' AND name = {name}",
    "mariadb": "SELECT view_definition FROM information_schema.views WHERE table_name = {name}",
    "clickhouse": "SELECT as_select FROM system.tables WHERE name = {name}",
}
"""How each database is asked for a view's definition."""


def audit_view(given: Given, database: Database, view: str, what: str) -> Audited:
    """What is known of one view; `what` is how it is called in the answer."""
    definition = view_definition(database, view)
    print_of = hashlib.sha256(definition.encode("utf-8")).hexdigest()
    deployed = Audited(what, "view", "not run", fingerprint=print_of, engine=database.version)
    try:
        readings = view_readings(given, database.dialect, definition)
    except Unread as error:
        found = replace(deployed, verdict="unread", reason=str(error), proof=ArtifactProof("unread", str(error)))
    except CannotRun as error:
        found = replace(deployed, reason=str(error))
    else:
        found = compared(deployed, given.program, readings, given.data, given.triplets, given.budget_seconds)
    return _said_of_its_table(_run_too(found, given, database, definition), database, definition)


def _said_of_its_table(found: Audited, database: Database, definition: str) -> Audited:
    """A view on another view is the program only if that one passes its columns on, and nobody has read it."""
    try:
        _, tables, _ = _parsed(database, definition)
        base = tables[0].name
        view_definition(database, base)
    except (BadInput, CannotRun, Unread):
        return found
    reason = f"it stands on {base}, which is a view itself and was not read: audit a view on the table"
    return replace(found, verdict="unread" if found.verdict == "equal" else found.verdict, reason=reason)


def view_definition(database: Database, view: str) -> str:
    """The view's text from the catalog."""
    if database.dialect not in CATALOGS:
        raise BadInput(f"views of {database.version} are not read: there is {', '.join(CATALOGS)}")
    if not view or any(character in view for character in "'\\\0"):
        raise BadInput(f"the view {view!r}: a name with quotes or backslashes is not looked up")
    name = f'"{view}"' if database.dialect == "postgres" and '"' not in view and "." not in view else view
    rows = database.fetch(CATALOGS[database.dialect].format(name=f"'{name}'"))
    if not rows or not rows[0][0]:
        raise BadInput(f"{database.version} has no view {view!r}")
    if len(rows) > 1:
        raise BadInput(f"{database.version} has {len(rows)} views {view!r}: connect to the one schema that is meant")
    return str(rows[0][0])


def view_readings(given: Given, dialect: str, definition: str) -> tuple[Reading, ...]:
    """What the view answers: the label, and probabilities and points where it has their columns."""
    program = given.program
    columns = tuple((i, given.columns.get(name, name)) for i, name in enumerate(program.features))
    everything = _outputs(program.classes)
    wanted = [everything, [o for o in everything if o[0] != "score"], [o for o in everything if o[0] == "label"]]
    refused: Unread | None = None
    for outputs in wanted:
        try:
            return read_sql(definition, dialect, Told(program.features, program.classes, columns, tuple(outputs)))
        except Unread as error:
            refused = error
            if "has no column" not in str(error):
                raise
    assert refused is not None  # noqa: S101 - the loop ran
    raise refused


def _outputs(classes: tuple[Label, ...]) -> list[tuple[str, str]]:
    """The columns as our own views name them."""
    from gbfl_compile.backends.sql_layout import class_names

    named = [("probabilities", name) for name in class_names("p", classes)]
    return [("label", "label"), *named, *(("score", name) for name in class_names("score", classes))]


def _run_too(found: Audited, given: Given, database: Database, definition: str) -> Audited:
    try:
        execution = run_on_witnesses(given, database, definition)
    except CannotRun as error:
        return replace(found, more={**found.more, "not executed": str(error)})
    except (BadInput, Unread) as error:
        return replace(found, more={**found.more, "not executed": str(error)})
    ran = replace(found, execution=execution)
    return replace(ran, verdict="different") if execution.different else ran


def run_on_witnesses(given: Given, database: Database, definition: str) -> Execution:
    """The view's query over witnesses. Those that should get one label are asked together: no other may come back."""
    program = given.program
    rows = witnesses(program)
    if not database.holds_infinity:
        rows = np.clip(rows, -np.finfo(np.float64).max, np.finfo(np.float64).max)
    expected = evaluate_many(program, rows).labels
    query = over_witnesses(database, definition)
    columns = [given.columns.get(name, name) for name in program.features]
    carried = carried_columns(database, definition, columns)

    def wrong(part: Matrix, label: Label, missing: Missing) -> int:
        filled = np.hstack([part, np.zeros((len(part), len(carried)))])
        database.insert(WITNESSES, [*columns, *carried], filled, missing=missing)
        answers = [row[0] for row in database.fetch(query)]
        if len(answers) != len(part):
            raise BadInput(f"the view gives {len(answers)} answers for {len(part)} rows")
        return sum(not _same(answer, label) for answer in answers)

    ways: tuple[Missing, ...] = ("null", "nan") if database.holds_nan else ("null",)
    different, first = 0, None
    for label in program.classes:
        part = rows[[index for index, found in enumerate(expected) if type(found) is type(label) and found == label]]
        counts = {missing: wrong(part, label, missing) for missing in ways if len(part)}
        different += max(counts.values(), default=0)
        shown = next((missing for missing, count in counts.items() if count), None)
        if shown is not None and first is None:
            first = _first(program, part, partial(wrong, label=label, missing=shown), label)
    return Execution(database.version, len(rows), different, first)


def _first(program: Program, rows: Matrix, wrong: Callable[[Matrix], int], label: Label) -> dict[str, Any]:
    """One row that gets another answer, found by halving."""
    while len(rows) > 1:
        half = rows[: len(rows) // 2]
        rows = half if wrong(half) else rows[len(rows) // 2 :]
    values = [None if np.isnan(value) else repr(float(value)) for value in rows[0]]
    return {"row": dict(zip(program.features, values, strict=True)), "source": {"label": label}}


def _same(answer: Any, label: Label) -> bool:
    """Databases have no one type for truth values and whole numbers: 1 and True are the same column there."""
    if isinstance(label, str) or isinstance(answer, str):
        return bool(answer == label)
    return answer is not None and float(answer) == float(label)


def _parsed(database: Database, definition: str) -> tuple[Any, list[Any], str]:
    """The view's query, the places where its one table stands in it, and sqlglot's name of the dialect."""
    try:
        import sqlglot
        from sqlglot import exp
    except ModuleNotFoundError:
        raise CannotRun("sqlglot is not installed: pip install 'gbfl-compile[sql]'") from None
    dialect = {"mariadb": "mysql"}.get(database.dialect, database.dialect)
    try:
        tree = sqlglot.parse_one(definition, read=dialect)
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        raise Unread(f"the view's definition is not understood: {str(error).splitlines()[0]}") from None
    if isinstance(tree, exp.Create) and isinstance(tree.this, exp.Schema):
        raise Unread("the view names its columns apart from its query, which is not run on witnesses")
    query = tree.expression if isinstance(tree, exp.Create) else tree
    named = {cte.alias for cte in query.find_all(exp.CTE)}
    tables = [table for table in query.find_all(exp.Table) if table.name not in named]
    if len({table.sql() for table in tables}) != 1:
        raise Unread(f"the view stands on {len(tables)} tables")
    return query, tables, dialect


def carried_columns(database: Database, definition: str, features: list[str]) -> list[str]:
    """Columns of its table that a view asks for beside the features, such as a key: the witnesses need them too.

    A name that the query itself gives to something is none: as a column it could stand in that one's place.
    """
    from sqlglot import exp

    query, _, _ = _parsed(database, definition)
    taken = {name.casefold() for name in (*features, *(each.alias for each in query.find_all(exp.Alias)))}
    asked = dict.fromkeys(column.name for column in query.find_all(exp.Column) if column.name)
    return [name for name in asked if name.casefold() not in taken]


def over_witnesses(database: Database, definition: str) -> str:
    """The view's query with its one table replaced by the witnesses, giving the label alone."""
    query, tables, dialect = _parsed(database, definition)
    from sqlglot import exp

    for table in tables:
        replaced = exp.to_table(WITNESSES)
        replaced.set(
            "alias", table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name, quoted=True))
        )
        table.replace(replaced)
    label = database.quote("label")
    return f"SELECT gbfl_view.{label} FROM ({query.sql(dialect=dialect)}) gbfl_view"  # noqa: S608 - the view's own text
