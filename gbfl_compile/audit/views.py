"""Audits a view where it is deployed: its definition, as the database's catalog has it, is read, proved and run.

Nothing is written to the user's schema. Witnesses go into a temporary table of this connection, and the view's own
query is asked of it in place of the table it stands on.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace

from gbfl_compile.audit.answer import Audited
from gbfl_compile.audit.compared import compared
from gbfl_compile.audit.files import Given
from gbfl_compile.audit.view_run import LABEL as LABEL
from gbfl_compile.audit.view_run import parsed_view, run_on_witnesses
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
    try:
        readings, others = view_readings(given, database.dialect, definition, label)
    except Unread as error:
        found = replace(deployed, verdict="unread", reason=str(error), proof=ArtifactProof("unread", str(error)))
    except CannotRun as error:
        found = replace(deployed, reason=str(error))
    else:
        found = compared(deployed, given.program, readings, given.data, given.triplets, given.budget_seconds)
        found = replace(found, more={**found.more, **_looked_at(given.program, readings, others, label)})
    return _said_of_its_table(_run_too(found, given, database, definition, label), given, database, definition)


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
        base = parsed_view(database, definition).tables[0].name
    except (CannotRun, Unread):
        return found
    columns = [given.columns.get(name, name) for name in given.program.features]
    if others := other_types(database, base, columns):
        told = ", ".join(f"{printable(name)} is {kind}" for name, kind in others)
        found = replace(found, more={**found.more, "column types": f"{told}: the proof takes every column for doubles"})
    try:
        view_definition(database, base)
    except (BadInput, CannotRun):
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
) -> tuple[tuple[Reading, ...], tuple[str, ...]]:
    """What the view answers, and its other columns.

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
            return read_sql(definition, dialect, told), other_columns(definition, dialect, told)
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


def _run_too(found: Audited, given: Given, database: Database, definition: str, label: str) -> Audited:
    try:
        execution = run_on_witnesses(given, database, definition, label)
    except (BadInput, CannotRun, Unread) as error:
        return replace(found, more={**found.more, "not executed": str(error)})
    ran = replace(found, execution=execution, more={**found.more, "executed": "the view's query, for its labels"})
    return replace(ran, verdict="different") if execution.different else ran
