"""Audits a view where it is deployed: its definition, as the database's catalog has it, is read, proved and run.

Nothing is written to the user's schema. Witnesses go into a temporary table of this connection, and the view's own
query is asked of it in place of the table it stands on.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace

from gbfl_compile.audit.answer import Audited, AuditVerdict, Region
from gbfl_compile.audit.compared import compared
from gbfl_compile.audit.files import Given
from gbfl_compile.audit.view_answers import Outputs
from gbfl_compile.audit.view_own import own_names
from gbfl_compile.audit.view_run import LABEL as LABEL
from gbfl_compile.audit.view_run import OtherRows, outputs_run, run_on_witnesses
from gbfl_compile.audit.view_tables import is_a_view, tables_of
from gbfl_compile.audit.view_types import other_types
from gbfl_compile.check.artifact_proof import ArtifactProof
from gbfl_compile.check.readers.sql import Told, other_columns, read_sql
from gbfl_compile.check.reading import Reading, Unread
from gbfl_compile.databases.base import Database
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.nodes import Label, Program
from gbfl_compile.ir.readable import printable

CATALOGS: Mapping[str, str] = {
    "postgres": "SELECT pg_get_viewdef(oid, true) FROM pg_class "
    "WHERE oid = to_regclass({name}) AND relkind IN ('v', 'm')",
    "duckdb": "SELECT sql FROM duckdb_views() WHERE view_name = {name}",
    "sqlite": "SELECT sql FROM (SELECT * FROM sqlite_temp_master UNION ALL SELECT * FROM sqlite_master) "
    "WHERE type = 'view' AND name = {name}",
    "mariadb": "SELECT view_definition FROM information_schema.views "
    "WHERE table_name = {name} AND (DATABASE() IS NULL OR table_schema = DATABASE())",
    "clickhouse": "SELECT as_select FROM system.tables WHERE name = {name} AND database = currentDatabase()",
}
"""How each database is asked for a view's definition."""


def audit_view(given: Given, database: Database, view: str, what: str, label: str = LABEL) -> Audited:
    """What is known of one view; `what` is how it is called in the answer, `label` its column of labels."""
    definition = view_definition(database, view)
    print_of = hashlib.sha256(definition.encode("utf-8")).hexdigest()
    deployed = Audited(what, "view", "not run", fingerprint=print_of, engine=database.version)
    outputs: Outputs = [("label", label)]
    try:
        readings, others, outputs = view_readings(given, database.dialect, definition, label)
    except Unread as error:
        found = replace(deployed, verdict="unread", reason=str(error), proof=ArtifactProof("unread", str(error)))
    except CannotRun as error:
        found = replace(deployed, reason=str(error))
    else:
        found = compared(deployed, given.program, readings, given.data, given.triplets, given.budget_seconds)
        found = replace(found, more={**found.more, **_looked_at(given.program, readings, others, label)})
    found = _run_too(found, given, database, definition, outputs)
    found = _said_of_its_table(_without_own_names(found, database, definition), given, database, definition)
    return _asked_itself(found, database, view)


def _looked_at(program: Program, readings: tuple[Reading, ...], others: tuple[str, ...], label: str) -> dict[str, str]:
    """Which columns the proof is about, and which nobody has looked at."""
    told = {"looked at": readings[0].place.partition(" (")[0] or label}
    if others:
        shown = ", ".join(printable(name) for name in others[:20]) + (", …" if len(others) > 20 else "")
        told["not looked at"] = f"{shown}: computed by the view, and no answer of the program"
    return told


def _said_of_its_table(found: Audited, given: Given, database: Database, definition: str) -> Audited:
    """What the proof takes for granted of the table: that its columns are doubles, and that it is no view itself."""
    try:
        tables = tables_of(database, definition)
        views = [table.name for table in tables if is_a_view(database, table)]
    except (CannotRun, Unread) as error:
        return found if found.verdict != "equal" else replace(found, verdict="unread", reason=f"its table: {error}")
    columns = [given.columns.get(name, name) for name in given.program.features]
    if others := list(dict.fromkeys(each for table in tables for each in other_types(database, table, columns))):
        told = ", ".join(f"{printable(name)} is {kind}" for name, kind in others)
        found = replace(found, more={**found.more, "column types": f"{told}: the proof takes every column for doubles"})
    if not views:
        return found
    reason = f"it stands on {printable(views[0])}, which is a view itself and was not read: audit a view on the table"
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
    found = str(rows[0][0])
    return _beyond_utf8mb3(database, view, found) if database.dialect == "mariadb" and LOST in found else found


LOST = "????"


def _beyond_utf8mb3(database: Database, view: str, found: str) -> str:
    """The same text with the characters past U+FFFF, which MariaDB's catalog gives as question marks."""
    shown = str(database.fetch(f"SHOW CREATE VIEW {database.quote(view)}")[0][1])
    whole = shown.partition(f"VIEW {database.quote(view)} AS ")[2]
    plain = re.sub("[\U00010000-\U0010ffff]", LOST, whole)
    schema = f"{database.quote(str(database.fetch('SELECT DATABASE()')[0][0]))}."  # the catalog alone spells it out
    return whole if plain.replace(schema, "") == found.replace(schema, "") else found


def view_readings(
    given: Given, dialect: str, definition: str, label: str = LABEL
) -> tuple[tuple[Reading, ...], tuple[str, ...], Outputs]:
    """What the view answers, its other columns, and the (kind, column) of what was read.

    The label; and probabilities, scores, leaf and reason where it has their columns.
    """
    program = given.program
    columns = tuple((i, given.columns.get(name, name)) for i, name in enumerate(program.features))
    every = _outputs(program.classes, label)
    unnamed = {kind for kind, name in every if kind != "label" and not _names(definition, name)}
    outputs = [output for output in every if output[0] not in unnamed]
    while True:
        told = Told(program.features, program.classes, columns, tuple(outputs))
        try:
            return read_sql(definition, dialect, told), other_columns(definition, dialect, told), outputs
        except Unread as error:
            if f"has no column {label!r}" in str(error):
                raise Unread(f"{error}: say which holds the labels with --label COLUMN") from None
            kind = _not_its_own(str(error), outputs)
            if kind is None:
                raise
            outputs = [output for output in outputs if output[0] != kind]


def _names(definition: str, column: str) -> bool:
    """Whether a view's text has a name at all: reading it in vain costs as much as reading it."""
    return re.search(rf"(?<!\w){re.escape(column)}(?!\w)", definition, re.IGNORECASE) is not None


def _not_its_own(refused: str, outputs: list[tuple[str, str]]) -> str | None:
    """The kind of answer that a view does not give: it has no such column, or one of the table's own by that name."""
    for kind, name in outputs:
        if kind != "label" and (f"has no column {name!r}" in refused or f"the {kind} is the column" in refused):
            return kind
    return None


def _outputs(classes: tuple[Label, ...], label: str) -> list[tuple[str, str]]:
    """The columns as our own views name them, but for that of the labels."""
    from gbfl_compile.backends.sql_layout import class_names

    named = [("probabilities", name) for name in class_names("p", classes)]
    points = [("score", name) for name in class_names("score", classes)]
    others = [*named, *points, ("leaf", "leaf"), ("reason", "reason")]
    return [("label", label), *(output for output in others if output[1] != label)]


def _run_too(found: Audited, given: Given, database: Database, definition: str, outputs: Outputs) -> Audited:
    """The view's query over witnesses. What we do not run is told; what the database fails to run was not run."""
    asked = outputs_run(given.program, outputs)
    try:
        execution = run_on_witnesses(given, database, definition, asked)
    except (BadInput, Unread) as error:
        return replace(found, more={**found.more, "not executed": str(error)})
    except CannotRun as error:
        return _not_run(found, str(error))
    except OtherRows as error:
        verdict: AuditVerdict = "different" if found.verdict == "equal" else found.verdict
        return replace(found, verdict=verdict, reason=found.reason or str(error))
    told = f"the view's query, for {', '.join(printable(name) for _, name in asked)}"
    if execution.different:
        told += f"; answers come back in no order, so at least {execution.different} are different"
    ran = replace(found, execution=execution, more={**found.more, "executed": told})
    return _found_by_running(ran) if execution.different else ran


def _not_run(found: Audited, why: str) -> Audited:
    """A view that its database did not run is not called equal, whatever was proved of its text."""
    more = {**found.more, "not executed": why}
    if found.verdict != "equal":
        return replace(found, more=more)
    return replace(found, verdict="not run", reason=f"its database did not run it: {why}", more=more)


def _found_by_running(ran: Audited) -> Audited:
    """Where the text was proved, or not read, the answers are what is told: the first that is not the approved one."""
    first = None if ran.execution is None else ran.execution.first
    if first is None or ran.region is not None:
        return replace(ran, verdict="different")
    approved, deployed = first["source"], first["target"]
    label = next(iter(approved))
    column = next((name for name in approved if approved[name] != deployed[name]), label)
    reason = f"run on a witness, it answers {column} {deployed[column]!r} where {approved[column]!r} was approved"
    row = {name: None if value is None else float(value) for name, value in first["row"].items()}
    beside = None if column == label else (column, approved[column], deployed[column])
    region = Region("the row is this witness", row, approved[label], deployed[label], beside)
    return replace(ran, verdict="different", reason="; ".join(filter(None, (ran.reason, reason))), region=region)


def _without_own_names(found: Audited, database: Database, definition: str) -> Audited:
    """A proof is about the built-in functions: where the database has others by those names, it says nothing."""
    try:
        own = own_names(database, definition)
    except Unread:
        return found
    except CannotRun as error:
        return _not_run(found, str(error))
    if not own or found.verdict not in ("equal", "not run"):
        return found
    named = ", ".join(f"the {kind} {printable(name)}" for kind, name in own[:20])
    reason = f"the database has its own: {named}, which the view's text may mean and which was not read"
    return replace(found, verdict="unread", reason=reason)


def _asked_itself(found: Audited, database: Database, view: str) -> Audited:
    """The view itself is asked once, for no rows: one that is broken where it stands answers nobody."""
    as_given = database.dialect == "postgres" and ('"' in view or "." in view)  # as the catalog took it
    name = view if as_given else database.quote(view)
    try:
        database.fetch(f"SELECT * FROM {name} WHERE 1 = 0")  # noqa: S608 - a name that the catalog has
    except CannotRun as error:
        broken = replace(found, more={**found.more, "the view itself": f"cannot be asked: {error}"})
        reason = f"the view itself cannot be asked: {error}"
        return replace(broken, verdict="not run", reason=reason) if found.verdict == "equal" else broken
    return found
