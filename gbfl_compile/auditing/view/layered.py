"""Audits a view through its layers: views on views, joins, filters, parameter tables, down to the tables' own columns.

What the layers do to rows (WHERE, joins, DISTINCT, row_number() = 1) is stated beside the verdict, which is about the
rows that come out. The view's whole text is then run on copies of all the tables it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from gbfl_compile.auditing.compare import AuditInput, Prover, compare_readings
from gbfl_compile.auditing.mend import feature_columns, is_equal, keeps_rows, seeks_mend, with_mend
from gbfl_compile.auditing.mend.names import feature_names
from gbfl_compile.auditing.story import Story
from gbfl_compile.auditing.verdict import DeployedVerdict
from gbfl_compile.auditing.view.domains import prove_on_columns
from gbfl_compile.auditing.view.layered_run import respect_constraints, with_run_of_layers
from gbfl_compile.auditing.view.layers import NOTHING, known_functions, known_tables
from gbfl_compile.auditing.view.places import Places, feature_places, refuse_uncertain_words, with_assumptions
from gbfl_compile.auditing.view.run import Outputs, outputs_of
from gbfl_compile.auditing.view.story import StoredValue, find_stored_value, with_first_difference, with_view_story
from gbfl_compile.auditing.view.view import View, without_exact_casts
from gbfl_compile.checking.artifact import ReadArtifact
from gbfl_compile.checking.general.sql import DeployedText, TextLayout, read_deployed
from gbfl_compile.checking.general.sql.words import UTC
from gbfl_compile.checking.reading.nodes import Reading, Unread
from gbfl_compile.databases.catalog import Column
from gbfl_compile.databases.views import Layers, parse_query
from gbfl_compile.ir.nodes import Program
from gbfl_compile.ir.text import printable

FUNCTION = "the function "
"""What a report calls the text of a function by, before its name."""


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
    domain = _domain(inputs, places, columns)
    prover = prove_on_columns(domain, text.readings, inputs.program.kinds)

    def elsewhere(other: Program) -> tuple[Reading, ...]:
        return _read(inputs, view, label, layers, places, elsewhere=other)[0].readings

    verdict = compare_readings(verdict, inputs, artifact, prover, None if text.passes else elsewhere)
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
    verdict = with_run_of_layers(inputs, view, [*outputs, *unread], places, text, verdict)
    verdict = respect_constraints(inputs, view, outputs, places, text, verdict)
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


def _domain(inputs: AuditInput, places: Places, columns: Sequence[Column | None]) -> list[Column | None]:
    """What each feature can be: the values of its column, or of the expression that computes it."""
    domain = list(columns)
    for each in places.computed:
        column = each.as_column()
        has_nan = column.type.engine_has_nan and inputs.holds_nan
        domain[each.feature] = replace(column, type=replace(column.type, engine_has_nan=has_nan))
    return domain


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
    called = {f"{FUNCTION}{name}": name for name in original.uses.functions}

    def prover_of(found: DeployedText) -> tuple[Prover, tuple[Reading, ...]]:
        if not keeps_rows(original, found):
            raise Unread("other rows come out")
        return prove_on_columns(list(domain), found.readings, inputs.program.kinds), found.readings

    def read(name: str, text: str) -> tuple[Prover, tuple[Reading, ...]]:
        if name in called:
            edited_body = {called[name]: text}
            return prover_of(_read(inputs, view, label, layers, places, bodies=edited_body)[0])
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
    texts |= {title: original.uses.functions[name] for title, name in called.items()}
    columns = feature_columns(inputs) | known
    trees = [query.tree, *(each.tree for _, each in below.values())]
    columns = feature_names(trees, columns, _parameters(view)) | columns
    return with_mend(verdict, inputs, texts, columns, read)


def _parameters(view: View) -> Callable[[str], Sequence[str]]:
    """The names of the parameters of a function that users made."""
    functions = known_functions(view.database)

    def parameters(name: str) -> Sequence[str]:
        try:
            known = functions("", name)
        except Unread:
            return ()
        return () if known is None else [each for each, _ in known.parameters]

    return parameters


def _with_readable_casts(view: View, layers: Layers) -> Layers:
    """The layers as they are read: without the casts that PostgreSQL added and that change nothing."""
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
    inputs: AuditInput,
    view: View,
    label: str,
    layers: Layers,
    places: Places,
    stored: StoredValue | None = None,
    bodies: Mapping[str, str] = NOTHING,
    elsewhere: Program | None = None,
) -> tuple[DeployedText, Outputs]:
    """The label and, of the other answers, those that are understood.

    With a value `stored` in a table, or other `bodies` of functions, what they would be. With a program `elsewhere`,
    the label alone, and what that program answers for rows that do not come out.
    """
    program, dialect = inputs.program, view.database.dialect
    features = places.features()
    tables = known_tables(layers, features, with_texts=not program.kinds)
    tables = tables if stored is None else stored.tables(tables)
    stated = tuple(
        (each.feature, text, each.names(features))
        for each in places.computed
        for text in each.spellings(view.database, view.catalog)
    )
    functions = known_functions(view.database, bodies)
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
        layout = replace(layout, kinds=program.kinds, exact=exact, zone=_zone(view), elsewhere=elsewhere)
        return read_deployed(definition, dialect, layout), outputs

    chosen = [("label", label)]
    result = read(chosen)
    if elsewhere is not None:
        return result
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
