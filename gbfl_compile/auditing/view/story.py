"""A view's difference, shown in its own database: a row of its table, a SELECT that shows it, rows that move, the mend.

A SELECT is reported only after it was run and gave the deployed label. A stored number is reported as the mend only
after the view was read again with it and proved. Nothing is written.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from gbfl_compile.auditing.compare import AuditInput, Prover, first_counterexample
from gbfl_compile.auditing.mend import with_mend
from gbfl_compile.auditing.mend.spans import numbers_in
from gbfl_compile.auditing.region import both_answers, exact_text, frame_of, region_of
from gbfl_compile.auditing.story import Mend, Story, TextLine
from gbfl_compile.auditing.verdict import Change, DeployedVerdict, Region
from gbfl_compile.auditing.view.domains import at_or_above, prove_on_columns
from gbfl_compile.auditing.view.layers import key_columns, values_in_filters, whole_text
from gbfl_compile.auditing.view.run import ViewRun
from gbfl_compile.auditing.view.table_rows import Places, TableRows, moved_rows, rows_now
from gbfl_compile.auditing.view.view import View, feature_columns
from gbfl_compile.checking.artifact import ReadArtifact
from gbfl_compile.checking.general.sql.relations import KnownTable, Tables
from gbfl_compile.checking.reading.nodes import Reading, Unread
from gbfl_compile.databases.base import Database
from gbfl_compile.databases.catalog import Column, TableName, time_limit
from gbfl_compile.databases.views import Base, parse_query
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.kinds import Value
from gbfl_compile.ir.text import printable

NAN = {"postgres": "'NaN'::double precision", "duckdb": "'NaN'::DOUBLE", "clickhouse": "nan"}
PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")


def with_view_story(
    inputs: AuditInput, view: View, label: str, verdict: DeployedVerdict, places: Places
) -> DeployedVerdict:
    """The verdict with what the database itself can show of the difference."""
    if verdict.verdict != "different" or verdict.region is None:
        return verdict
    try:
        with time_limit(view.database, view.catalog, inputs.time_limit) as database:
            return _show(inputs, replace(view, database=database), label, verdict, places)
    except (CannotRun, Unread, BadInput):
        return verdict  # what is known of the difference is in the report already


def with_mended_view(
    inputs: AuditInput,
    view: View,
    label: str,
    verdict: DeployedVerdict,
    read_edited: Callable[[View], ReadArtifact],
) -> DeployedVerdict:
    """The verdict on a view of one table, with the edit that mends it and what the database can show."""
    table = view.table
    if verdict.verdict != "different" or table is None:
        return verdict
    try:
        columns = feature_columns(inputs, view)
    except Unread:
        return verdict

    def read(name: str, text: str) -> tuple[Prover, tuple[Reading, ...]]:
        del name
        whole = None if view.statement is None else view.statement.replace(view.definition, text)
        edited = replace(view, definition=text, statement=whole, query=parse_query(view.database, text))
        readings = read_edited(edited).readings
        return prove_on_columns(columns, readings, inputs.program.kinds), readings

    own = {column.name: feature for feature, column in enumerate(columns) if column is not None}
    verdict = with_mend(verdict, inputs, {"": view.definition}, own, read)
    return with_view_story(
        inputs, view, label, verdict, [None if column is None else (table, column) for column in columns]
    )


def _show(inputs: AuditInput, view: View, label: str, verdict: DeployedVerdict, places: Places) -> DeployedVerdict:
    story, region = verdict.story or Story(), verdict.region
    assert region is not None  # noqa: S101 - the caller has looked
    pair = None if verdict.proof is None else first_counterexample(verdict.readings, verdict.proof)
    tables = {place[0] for place in places if place is not None}
    if pair is not None and len(tables) == 1:
        rows = rows_now(inputs.program, view, next(iter(tables)), places, verdict.readings)
        moves, example = moved_rows(inputs.program, verdict.readings, rows)
        verdict = replace(verdict, moves=verdict.moves or moves)
        if example is not None and region.beside is None:
            region = _region_at(inputs, pair[0], rows, example)
            key = {} if rows.key is None else {rows.key: rows.keys[example]}
            story = replace(story, table=rows.name, key=key)
    with suppress(CannotRun, Unread, BadInput):
        story = replace(story, query=_query(view, label, region, story, places))
    return replace(verdict, story=story, region=region)


def _region_at(inputs: AuditInput, reading: Reading, rows: TableRows, place: int) -> Region:
    """The region around a row of the table."""
    row, book = rows.row(inputs.program, place)
    frame = frame_of(inputs.program, reading, book)
    region = region_of(frame, both_answers(frame, row))
    values = {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in zip(inputs.program.features, frame.values(row), strict=True)
    }
    return replace(region, row=values)


def _query(view: View, label: str, region: Region, story: Story, places: Places) -> str | None:
    """The shortest SELECT that gives the deployed label, by running it."""
    database = view.database
    for text, count in _queries(view, region, story, places):
        with suppress(CannotRun):
            answers = database.fetch(f"SELECT {database.quote(label)} FROM ({text}\n) gbfl_shown")  # noqa: S608 - as printed
            if (
                answers
                and (count is None or len(answers) == count)
                and all(_same(each[0], region.deployed) for each in answers)
            ):
                return text
    return None


def _same(answer: Any, label: Any) -> bool:
    if isinstance(answer, str) or isinstance(label, str) or answer is None or label is None:
        return bool(answer == label)
    return float(answer) == float(label)


def _queries(view: View, region: Region, story: Story, places: Places) -> Iterator[tuple[str, int | None]]:
    """What may show it, the shortest first, with the number of rows it should give."""
    database = view.database
    name = (
        view.name
        if PLAIN_NAME.fullmatch(view.name) or "." in view.name or '"' in view.name
        else database.quote(view.name)
    )
    for key, value in story.key.items():
        literal = _literal(value, database.dialect)
        if literal is not None:
            yield f"SELECT * FROM {name} WHERE {_name(database, key)} = {literal}", 1  # noqa: S608 - printed for people
    features = dict(zip(region.row, places, strict=True))
    if story.table is not None:
        tests = []
        for feature, place in features.items():
            literal = _literal(region.row[feature], database.dialect)
            if place is not None and literal is not None:
                is_null = region.row[feature] is None
                tests.append(f"{_name(database, place[1].name)} {'IS NULL' if is_null else f'= {literal}'}")
        table = next(place[0] for place in places if place is not None)
        rows = f"(SELECT * FROM {table.in_quotes(database)} WHERE {' AND '.join(tests)})"  # noqa: S608 - printed for people
        yield _over(view, {table: rows}), None
    for with_types in (False, True):
        literals = _literal_rows(view, region, places, with_types)
        if literals is not None:
            yield _over(view, literals), 1


def _over(view: View, tables: Mapping[TableName, str]) -> str:
    """The view's own query over other rows."""
    if view.layers is None:
        raise Unread("the view's definition is not understood")
    return whole_text(view.require_query(), view.layers, tables, view.database.quote).strip()


def _literal_rows(view: View, region: Region, places: Places, with_types: bool) -> dict[TableName, str] | None:
    """One row for each table that has features: keys are 1, and filters are met as far as they are simple."""
    from sqlglot import exp

    if view.layers is None:
        return None
    queries = [view.require_query(), *view.layers.views.values()]
    fillers, keys = dict(values_in_filters(queries)), key_columns(queries)
    named = {each.name.casefold() for query in queries for each in query.tree.find_all(exp.Column)}
    is_whole = any(query.tree.find(exp.Star) is not None for query in queries)
    values = {
        (place[0].name, place[1].name): region.row[feature]
        for feature, place in zip(region.row, places, strict=True)
        if place is not None
    }
    with_features = {table for table, _ in values}
    rows: dict[TableName, str] = {}
    for name, base in view.layers.bases.items():
        if base.key not in with_features and not any(column.name.casefold() in keys for column in base.columns):
            continue
        parts = []
        for column in base.columns:
            folded = column.name.casefold()
            if not is_whole and folded not in named:
                continue
            own = values.get((base.key, column.name), values.get((name.name, column.name), _Absent))
            text = (
                _literal(own, view.database.dialect) if own is not _Absent else _filler(column, folded, fillers, keys)
            )
            if text is None:
                return None
            if with_types and view.database.dialect != "mariadb":
                text = f"CAST({text} AS {column.declared})"
            parts.append(f"{text} AS {_name(view.database, column.name)}")
        rows[name] = f"(SELECT {', '.join(parts)})"
    return rows


class _Absent:
    """Marks a value that the example does not have."""


def _filler(column: Column, folded: str, fillers: Mapping[str, str], keys: set[str]) -> str:
    if folded in fillers:
        return fillers[folded]
    if column.type.kind == "text":
        return "'x'"
    return "1" if folded in keys or column.type.kind in ("integer", "decimal", "double", "float32") else "NULL"


def _name(database: Database, name: str) -> str:
    return name if PLAIN_NAME.fullmatch(name) else database.quote(name)


def _literal(value: Value | Any, dialect: str) -> str | None:
    """A value as SQL writes it; None where it has no plain form."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case float() if math.isnan(value):
            return NAN.get(dialect)
        case float():
            return exact_text(value) if math.isfinite(value) else None
        case str():
            return "'" + value.replace("'", "''") + "'" if printable(value) == value and "\\" not in value else None
        case datetime.date():
            return f"'{value}'"
        case _:
            return None


def with_first_difference(inputs: AuditInput, verdict: DeployedVerdict) -> DeployedVerdict:
    """Where the text was proved, or not read, the first differing answer is what the report shows."""
    first = None if verdict.execution is None else verdict.execution.first
    if first is None or verdict.region is not None:
        return replace(verdict, verdict="different")
    approved, deployed = first["source"], first["target"]
    label = next(iter(approved))
    column = next((name for name in approved if approved[name] != deployed[name]), label)
    reason = (
        f"run on the example below, it answers {column} {deployed[column]!r} where {approved[column]!r} was approved"
    )
    row = {name: _value(inputs, name, value) for name, value in first["row"].items()}
    own, other = (_as_class(inputs, side[label]) for side in (approved, deployed))
    beside = None if column == label else (column, approved[column], deployed[column])
    region = Region("every value is as in this example", row, own, other, beside)
    reason = "; ".join(filter(None, (verdict.reason, reason)))
    return replace(verdict, verdict="different", reason=reason, region=region)


def _as_class(inputs: AuditInput, label: Any) -> Any:
    """A whole number that was compared as a double, as the program has it: 0 and not 0.0."""
    classes = inputs.program.classes
    return next((each for each in classes if type(label) is float and type(each) is int and each == label), label)


def _value(inputs: AuditInput, name: str, value: Any) -> Value:
    """A value of the row that was run."""
    program = inputs.program
    is_number = program.kind(program.features.index(name)) == "number"
    native: Value = float(value) if is_number and value is not None else value
    return native


def with_run(verdict: DeployedVerdict, run: ViewRun) -> DeployedVerdict:
    """The verdict with what running the view showed, and the columns that were run and not read."""
    was_read = verdict.proof is not None and verdict.proof.answer in ("read as equal", "counterexample")
    only_run = {name for _, name in run.outputs} - set(verdict.compared_columns) if was_read else set()
    others = [name for name in dict.fromkeys((*verdict.other_columns, *run.own_columns)) if name not in only_run]
    verdict = replace(verdict, execution=run.execution, executed=run.words, other_columns=tuple(others))
    return replace(verdict, run_only_columns=tuple(sorted(only_run)))


MOST_TRIED = 20


@dataclass(frozen=True, slots=True)
class StoredValue:
    """Another number in one row and column of a table."""

    base: Base
    row: int
    column: int
    value: float

    def tables(self, known: Tables) -> Tables:
        """What each name means to the reader, with this value stored."""

        def table(schema: str, name: str) -> KnownTable:
            facts = known(schema, name)
            if facts.key != self.base.key or facts.rows is None:
                return facts
            rows = [list(row) for row in facts.rows]
            rows[self.row][self.column] = _like(rows[self.row][self.column], self.value)
            return replace(facts, rows=tuple(map(tuple, rows)))

        return table


def _like(stored: Any, value: float) -> Any:
    """The number in the type of the one it replaces."""
    if isinstance(stored, Decimal):
        return Decimal(exact_text(value))
    return int(value) if isinstance(stored, int) else value


def find_stored_value(
    bases: Sequence[Base], known: Tables, changes: Sequence[Change], is_mended: Callable[[StoredValue], bool]
) -> Mend | None:
    """The first stored number of a parameter table that, changed to an approved one, makes the view equal."""
    for tried, (candidate, stored) in enumerate(_candidates(bases, known, changes)):
        if tried == MOST_TRIED:
            break
        if is_mended(candidate):
            names = [column.name for column in candidate.base.columns]
            facts = known(candidate.base.name.schema, candidate.base.name.name)
            row = (facts.rows or ())[candidate.row]
            text = ", ".join(f"{name} = {value}" for name, value in zip(names, row, strict=True))
            name = names[candidate.column]
            line = TextLine(candidate.row + 1, text, candidate.base.name.name, "row")
            return Mend(line, f"{name} = {stored}", f"{name} = {exact_text(candidate.value)}")
    return None


def _candidates(
    bases: Sequence[Base], known: Tables, changes: Sequence[Change]
) -> Iterator[tuple[StoredValue, int | float | Decimal]]:
    for base in bases:
        facts = known(base.name.schema, base.name.name)
        for number, row in enumerate(facts.rows or ()):
            for place, stored in enumerate(row):
                if isinstance(stored, bool) or not isinstance(stored, int | float | Decimal):
                    continue
                for value in _approved_numbers(changes, float(stored)):
                    if can_hold(base.columns[place], value):
                        yield StoredValue(base, number, place, value), stored


def _approved_numbers(changes: Sequence[Change], stored: float) -> Iterator[float]:
    """The numbers that were approved where a change has the stored one."""
    for change in changes:
        deployed = numbers_in(change.deployed)
        if stored in deployed:
            yield from (value for value in dict.fromkeys(numbers_in(change.approved)) if value not in deployed)


def can_hold(column: Column, value: float) -> bool:
    """Whether a column holds this very number."""
    return column.type.kind in ("integer", "decimal", "double") and at_or_above(column, value) == value
