"""Audits a view through its layers: views on views, joins, filters, parameter tables, down to the tables' own columns.

What the layers do to rows (WHERE, joins, DISTINCT, row_number() = 1) is stated beside the verdict, which is about the
rows that come out. The view's whole text is then run on copies of all the tables it reads.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from gbfl_compile.auditing.compare import AuditInput, Prover, compare_readings
from gbfl_compile.auditing.mend import feature_columns, is_equal, keeps_rows, seeks_mend, with_mend
from gbfl_compile.auditing.story import Story
from gbfl_compile.auditing.verdict import DeployedVerdict
from gbfl_compile.auditing.view.assumptions import with_assumptions
from gbfl_compile.auditing.view.by_row import with_inferred_slip
from gbfl_compile.auditing.view.computed import fill_in
from gbfl_compile.auditing.view.copies import WAYS, Way, copies_of
from gbfl_compile.auditing.view.domains import prove_on_columns
from gbfl_compile.auditing.view.layers import known_functions, known_tables
from gbfl_compile.auditing.view.places import Places, feature_places, refuse_uncertain_words
from gbfl_compile.auditing.view.run import NoRowPassed, OtherRowCount, Outputs, ViewRun, outputs_of, run_copies
from gbfl_compile.auditing.view.shown_row import doubt_of
from gbfl_compile.auditing.view.stored_values import StoredValue, find_stored_value
from gbfl_compile.auditing.view.story import with_first_difference, with_view_story
from gbfl_compile.auditing.view.view import View, without_exact_casts
from gbfl_compile.checking.artifact import ReadArtifact
from gbfl_compile.checking.general.sql import DeployedText, TextLayout, read_deployed
from gbfl_compile.checking.general.sql.words import UTC
from gbfl_compile.checking.reading.nodes import Reading, Unread
from gbfl_compile.databases.catalog import Column, referenced_tables
from gbfl_compile.databases.views import Layers, parse_query
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.text import printable


@dataclass(frozen=True, slots=True)
class LayeredAudit:
    """What reading and running a view through its layers showed."""

    verdict: DeployedVerdict
    text: DeployedText
    columns: tuple[Column | None, ...]
    """The column of each feature, None where the program does not use it, or where it is computed."""

    def uncast(self) -> set[str]:
        """Columns that are compared as they are."""
        used = self.text.uses.uncast
        return {column.name for feature, column in enumerate(self.columns) if column is not None and feature in used}


def audit_layers(inputs: AuditInput, view: View, label: str, verdict: DeployedVerdict) -> LayeredAudit:
    """The verdict by reading and running all layers; Unread where they cannot be read."""
    layers = view.layers
    if layers is None:
        raise Unread(view.problem or "the view's definition is not understood")
    if layers.problem is not None:
        raise Unread(layers.problem)
    if view.columns is not None and not view.has_column(label):
        raise Unread(f"the view has no column {label!r}: say which holds the labels with --label COLUMN")
    layers = _with_readable_casts(view, layers)
    places = feature_places(inputs, view, layers)
    refuse_uncertain_words(inputs.program, view, layers, places)
    text, outputs = _read(inputs, view, label, layers, places)
    _refuse_defaults(view, places, text.uses.outer)
    columns = tuple(
        None if place is None else replace(place.column, nullable=place.column.nullable or feature in text.uses.outer)
        for feature, place in enumerate(places.columns)
    )
    artifact = ReadArtifact("read as equal", text.readings, "it is written by hand, or reads several tables or views")
    domain = list(columns)
    for each in places.computed:
        column = each.as_column()
        has_nan = column.type.engine_has_nan and inputs.holds_nan
        domain[each.feature] = replace(column, type=replace(column.type, engine_has_nan=has_nan))
    prover = prove_on_columns(domain, text.readings, inputs.program.kinds)
    verdict = compare_readings(verdict, inputs, artifact, prover)
    renamed = {
        name: place.column.name
        for name, place in zip(inputs.program.features, places.columns, strict=True)
        if place is not None and place.column.name != name
    }
    renamed |= {inputs.program.features[each.feature]: each.text for each in places.computed}
    verdict = replace(
        verdict,
        row_effects=text.notes,
        compared_columns=tuple(dict.fromkeys(name for _, name in outputs)),
        other_columns=text.others,
        feature_columns=renamed,
    )
    unread = [
        each
        for each in outputs_of(inputs, view, label)
        if each[0] in ("probabilities", "score") and each not in outputs
    ]
    verdict = _with_run(inputs, view, [*outputs, *unread], places, text, verdict)
    verdict = _respect_constraints(inputs, view, outputs, places, text, verdict)
    only_run = tuple(name for _, name in unread if verdict.execution is not None)
    others = tuple(name for name in verdict.other_columns if name not in only_run)
    verdict = replace(verdict, run_only_columns=only_run, other_columns=others)
    verdict = with_assumptions(inputs.program, view, places, text, verdict)
    if verdict.execution and verdict.execution.different:
        verdict = with_first_difference(inputs, verdict)
    verdict = _with_mend(inputs, view, label, places, domain, text, verdict)
    if not places.computed:
        own = [None if place is None else (place.base.name, place.column) for place in places.columns]
        verdict = with_view_story(inputs, view, label, verdict, own)
    return LayeredAudit(verdict, text, columns)


def _refuse_defaults(view: View, places: Places, outer: Collection[int]) -> None:
    """ClickHouse gives 0, and not NULL, for a column that is not Nullable where an outer join finds no row."""
    for place in [places.columns[feature] for feature in outer] if view.database.dialect == "clickhouse" else []:
        if place is not None and not place.column.nullable:
            what = f"{printable(place.column.name)} is {place.column.declared}"
            raise Unread(f"{what}, which is 0 and not missing where the join finds no row: it has to be Nullable")


def _with_mend(
    inputs: AuditInput,
    view: View,
    label: str,
    places: Places,
    domain: Sequence[Column | None],
    original: DeployedText,
    verdict: DeployedVerdict,
) -> DeployedVerdict:
    """The verdict with the edit of the view, or of a view below it, that would mend it."""
    layers, query = view.layers, view.require_query()
    assert layers is not None  # noqa: S101 - the caller has looked
    below = {name.name: (name, each) for name, each in layers.views.items()}
    known = {place.column.name: feature for feature, place in enumerate(places.columns) if place is not None}

    def prover_of(found: DeployedText) -> tuple[Prover, tuple[Reading, ...]]:
        if not keeps_rows(original, found):
            raise Unread("other rows come out")
        return prove_on_columns(list(domain), found.readings, inputs.program.kinds), found.readings

    def read(name: str, text: str) -> tuple[Prover, tuple[Reading, ...]]:
        edited = parse_query(view.database, text)
        changed = replace(view, definition=text, query=edited) if not name else view
        lower = layers if not name else replace(layers, views={**layers.views, below[name][0]: edited})
        return prover_of(_read(inputs, changed, label, _with_readable_casts(changed, lower), places)[0])

    def is_mended(value: StoredValue) -> bool:
        return is_equal(inputs, lambda: prover_of(_read(inputs, view, label, layers, places, value)[0]))

    bases = [base for base in layers.distinct_bases() if base.key in original.uses.constants]
    if bases and seeks_mend(verdict, inputs):
        tables = known_tables(layers, places.features(), with_texts=not inputs.program.kinds)
        mend = find_stored_value(bases, tables, verdict.changes, is_mended)
        if mend is not None:
            return replace(verdict, story=replace(verdict.story or Story(), line=mend.line, mend=mend, was_sought=True))
    texts = {"": query.definition} | {name: each.definition for name, (_, each) in below.items()}
    return with_mend(verdict, inputs, texts, feature_columns(inputs) | known, read)


def run_unread(inputs: AuditInput, view: View, label: str, verdict: DeployedVerdict) -> DeployedVerdict:
    """A view whose text is not understood, run on its one table's own rows: a difference there is one."""
    layers = view.layers
    if layers is None or layers.problem is not None or len(layers.distinct_bases()) != 1:
        return verdict
    try:
        places = feature_places(inputs, view, layers)
        copies = copies_of(inputs.program, view, layers, places, frozenset(), None)
        features = [None if place is None else place.column for place in places.columns]
        run = run_copies(inputs, view, [("label", label)], features, copies, only_own=True)
    except (BadInput, CannotRun, Unread, OtherRowCount) as error:
        return replace(verdict, not_executed=str(error))
    verdict = replace(verdict, execution=run.execution, executed=run.words, compared_columns=(label,))
    if not run.execution.different:
        return verdict
    return with_inferred_slip(inputs, view, label, with_first_difference(inputs, verdict), features, copies)


def _with_readable_casts(view: View, layers: Layers) -> Layers:
    """The layers with casts that PostgreSQL added and that change nothing taken out of the text that is read."""
    if view.database.dialect != "postgres":
        return layers
    named: dict[str, Column] = {}
    for base in layers.distinct_bases():
        for column in base.columns:
            other = named.setdefault(column.name, column)
            if other.type.kind != column.type.kind:
                named[column.name] = replace(column, type=replace(column.type, kind="other"))
    views = {}
    for name, query in layers.views.items():
        text = without_exact_casts(query, named.get)
        views[name] = replace(query, definition=text, ends=query.ends + len(text) - len(query.definition))
    return replace(layers, views=views)


def _read(
    inputs: AuditInput, view: View, label: str, layers: Layers, places: Places, stored: StoredValue | None = None
) -> tuple[DeployedText, Outputs]:
    """The label and, of the other answers, those that are understood; with a value `stored` in a table."""
    program, dialect = inputs.program, view.database.dialect
    features = places.features()
    tables = known_tables(layers, features, with_texts=not program.kinds)
    tables = tables if stored is None else stored.tables(tables)
    stated = tuple(
        (each.feature, text, each.names(features))
        for each in places.computed
        for text in each.spellings(view.database, view.catalog)
    )
    functions = known_functions(view.database)
    types = {
        feature: " ".join(place.column.declared.casefold().split())
        for feature, place in enumerate(places.columns)
        if place is not None
    }
    exact = frozenset(
        feature for feature, place in enumerate(places.columns) if place is not None and place.column.compares_exactly
    )
    query = view.require_query()
    definition = without_exact_casts(query, _integers(layers).get)

    def read(outputs: Outputs) -> tuple[DeployedText, Outputs]:
        layout = TextLayout(program.features, program.classes, (), tuple(outputs), tables=tables, approved=program)
        known = view.literals_in_utf8 and layers.literals_in_utf8
        layout = replace(layout, expressions=stated, functions=functions, types=types, known_texts=known)
        layout = replace(layout, kinds=program.kinds, exact=exact, zone=_zone(view))
        return read_deployed(definition, dialect, layout), outputs

    chosen = [("label", label)]
    result = read(chosen)
    every = [each for each in outputs_of(inputs, view, label) if each[0] in ("probabilities", "score")]
    for kind in dict.fromkeys(kind for kind, _ in every):
        more = [*chosen, *(output for output in every if output[0] == kind)]
        try:
            result, chosen = read(more), more
        except Unread:
            continue  # not read, but run on the witnesses
    return result


def _zone(view: View) -> str:
    """The time zone of moments whose type names none: UTC only where server and session agree on it."""
    if view.catalog.zones is None:
        return "a zone that is not known"
    zones = [str(zone) for zone in view.database.fetch(view.catalog.zones)[0]]
    return next((zone for zone in zones if zone.casefold() not in UTC), zones[0])


def _integers(layers: Layers) -> dict[str, Column]:
    """Columns of tables by name, those that are integers in every table that has them."""
    columns = [column for base in layers.distinct_bases() for column in base.columns]
    others = {column.name for column in columns if column.type.kind != "integer"}
    return {column.name: column for column in columns if column.name not in others}


def _with_run(
    inputs: AuditInput,
    view: View,
    outputs: Outputs,
    places: Places,
    text: DeployedText,
    verdict: DeployedVerdict,
) -> DeployedVerdict:
    """The weaker of what was read and what running it shows."""
    layers = view.layers
    assert layers is not None  # noqa: S101 - the caller has looked
    try:
        run: ViewRun | None = _run_until_rows_pass(inputs, view, outputs, places, text.uses.constants, WAYS)
        why = None
    except (BadInput, CannotRun, Unread, OtherRowCount) as error:
        run, why = None, str(error)
    if run is None:
        verdict = replace(verdict, not_executed=why)
        if verdict.verdict == "equal":
            return replace(verdict, verdict="not run", reason=f"read as equal, but not run: {why}")
        if verdict.verdict == "different" and text.unclear:
            return _unclear(verdict, text)
        return _computed_differs(verdict) if places.computed else verdict
    verdict = replace(verdict, execution=run.execution, executed=run.words)
    if places.computed and not run.execution.different:
        verdict = _computed_differs(verdict)
    if verdict.verdict == "different" and text.unclear and not run.execution.different:
        return _unclear(verdict, text)
    return verdict


def _run_until_rows_pass(
    inputs: AuditInput, view: View, outputs: Outputs, places: Places, constants: Collection[str], ways: Sequence[Way]
) -> ViewRun:
    """The run, with what filters ask for filled in in one way after the other until rows come out."""
    assert view.layers is not None  # noqa: S101 - it was read
    filling = fill_in(places.computed, places.keys()) if places.computed else None
    features = [None if place is None else place.column for place in places.columns]
    features += [column for _, column in filling.columns] if filling is not None else []
    copies = copies_of(inputs.program, view, view.layers, places, constants, filling, ways[0])
    try:
        return run_copies(inputs, view, outputs, features, copies, filling)
    except NoRowPassed:
        if len(ways) == 1:
            raise
    return _run_until_rows_pass(inputs, view, outputs, places, constants, ways[1:])


def _respect_constraints(
    inputs: AuditInput, view: View, outputs: Outputs, places: Places, text: DeployedText, verdict: DeployedVerdict
) -> DeployedVerdict:
    """A difference that only the text shows, on a row that a CHECK constraint or the view's own answer may rule out.

    Where a join finds no row its columns are missing, whatever their table would take.
    """
    shown = None if verdict.proof is None else verdict.proof.counterexample
    was_seen = verdict.execution is not None and verdict.execution.different
    if verdict.verdict != "different" or was_seen or shown is None or places.computed:
        return verdict
    if any(math.isnan(shown.row[feature]) for feature in text.uses.outer):
        return _respect_keys(inputs, view, places, text, verdict)
    if verdict.execution is None:
        return verdict
    assert view.layers is not None  # noqa: S101 - it was run
    copies = copies_of(inputs.program, view, view.layers, places, text.uses.constants, None)
    features = [None if place is None else place.column for place in places.columns]
    doubt = doubt_of(inputs, view, outputs, features, copies, shown)
    return verdict if doubt is None else replace(verdict, verdict="unread", reason=doubt)


def _respect_keys(
    inputs: AuditInput, view: View, places: Places, text: DeployedText, verdict: DeployedVerdict
) -> DeployedVerdict:
    """A difference only where an outer join finds no row, to a table that a foreign key says to have one."""
    own = [None if place is None else place.column for place in places.columns]
    artifact = ReadArtifact("read as equal", text.readings, None)
    prover = prove_on_columns(own, text.readings, inputs.program.kinds)
    if compare_readings(verdict, inputs, artifact, prover).verdict != "equal":
        return verdict
    joined = [places.columns[feature] for feature in text.uses.outer]
    names = {place.base.name.name.casefold(): place.base.key for place in joined if place is not None}
    assert view.layers is not None  # noqa: S101 - it was read
    for base in view.layers.distinct_bases():
        for name in referenced_tables(view.database, view.catalog, base.name) & names.keys():
            reason = f"its text differs only where its join finds no row of {printable(names[name])}, and a foreign key"
            return replace(verdict, verdict="unread", reason=f"{reason} of {printable(base.key)} refers to one")
    return verdict


def _computed_differs(verdict: DeployedVerdict) -> DeployedVerdict:
    """A difference that only the text shows: the columns may never give the feature such a value."""
    if verdict.verdict != "different":
        return verdict
    reason = "its text differs from the program, but no row was found whose columns give a feature such a value"
    return replace(verdict, verdict="unread", reason=reason)


def _unclear(verdict: DeployedVerdict, text: DeployedText) -> DeployedVerdict:
    reason = f"its text differs, but a filter may leave out the rows that show it: {'; '.join(text.notes)}"
    return replace(verdict, verdict="unread", reason=reason)
