"""Runs a view that reads several layers, on copies of all its tables, and corrects the verdict by what the run shows.

Rows come out only if the columns in filters and joins have suitable values: several ways to fill them are tried.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from gbfl_compile.auditing.compare import AuditInput, compare_readings
from gbfl_compile.auditing.verdict import DeployedVerdict
from gbfl_compile.auditing.view.computed import FillIn, fill_in
from gbfl_compile.auditing.view.domains import prove_on_columns
from gbfl_compile.auditing.view.layers import (
    filter_columns,
    key_columns,
    values_in_filters,
)
from gbfl_compile.auditing.view.places import Place, Places, feature_places
from gbfl_compile.auditing.view.run import NoRowPassed, OtherRowCount, Outputs, ViewRun, run_copies
from gbfl_compile.auditing.view.single_rows import doubt_of, with_inferred_slip
from gbfl_compile.auditing.view.story import with_first_difference
from gbfl_compile.auditing.view.table_copy import COPY, STAGED, TableCopy
from gbfl_compile.auditing.view.view import View
from gbfl_compile.checking.artifact import ReadArtifact
from gbfl_compile.checking.general.sql import DeployedText
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.databases.catalog import referenced_tables
from gbfl_compile.databases.views import Layers
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.nodes import Program
from gbfl_compile.ir.text import printable

Way: TypeAlias = Literal["as the filters say", "filters first", "as in the tables", "one table"]
"""How to fill the columns that filters use. With the compared value, elsewhere NULL or the row's number (as the filters
say); with the compared value, elsewhere a value of their table (filters first); always with a value of their table (as
in the tables); or as the second, with tables without features left empty, as lists of exceptions are (one table)."""

WAYS: tuple[Way, ...] = ("as the filters say", "filters first", "as in the tables", "one table")


def copies_of(
    program: Program,
    view: View,
    layers: Layers,
    places: Places,
    constants: Collection[str],
    filling: FillIn | None,
    way: Way = "as the filters say",
) -> list[TableCopy]:
    """A copy of every table except those that were read as constants."""
    queries = [view.require_query(), *layers.views.values()]
    by_filters = way in ("as the filters say", "filters first", "one table")
    fillers = dict(values_in_filters(queries)) if by_filters else {}
    keys = frozenset(key_columns(queries))
    own_values = frozenset(filter_columns(queries)) - keys if way != "as the filters say" else frozenset()
    copies: list[TableCopy] = []
    for number, base in enumerate(layers.distinct_bases()):
        if base.key in constants:
            continue
        beside = [Place(*each) for each in filling.columns] if filling is not None else []
        own = tuple(
            place.column if place is not None and place.base.key == base.key else None
            for place in (*places.columns, *beside)
        )
        features = {column.name.casefold() for column in own if column is not None}
        named = tuple(name for name, each in layers.bases.items() if each.name == base.name)
        copies.append(
            TableCopy(
                view.database,
                view.catalog,
                base.name,
                base.columns,
                own,
                program,
                COPY if not copies else f"{COPY}_{number}",
                STAGED if not copies else f"{STAGED}_{number}",
                {name: value for name, value in fillers.items() if name not in features},
                keys,
                named,
                tuple(each for each in places.computed if each.base.key == base.key),
                own_values,
                way == "one table" and not features,
            )
        )
    if not copies:
        raise Unread("it reads no table that could be copied")
    return copies


def run_unread(inputs: AuditInput, view: View, label: str, verdict: DeployedVerdict) -> DeployedVerdict:
    """Runs a view whose text is not understood on the own rows of the one table that has the features.

    Its other tables stay as they are, so that any difference is real.
    """
    layers = view.layers
    if layers is None or layers.problem is not None:
        return verdict
    try:
        places = feature_places(inputs, view, layers)
        with_features = {place.base.key for place in places.columns if place is not None}
        if len(with_features) != 1:
            return verdict
        others = frozenset(base.key for base in layers.distinct_bases()) - with_features
        copies = copies_of(inputs.program, view, layers, places, others, None)
        features = [None if place is None else place.column for place in places.columns]
        run = run_copies(inputs, view, [("label", label)], features, copies, only_own=True)
    except (BadInput, CannotRun, Unread, OtherRowCount) as error:
        return replace(verdict, not_executed=str(error))
    verdict = replace(verdict, execution=run.execution, executed=run.words, compared_columns=(label,))
    if not run.execution.different:
        return verdict
    return with_inferred_slip(inputs, view, label, with_first_difference(inputs, verdict), features, copies)


def with_run_of_layers(
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
    """Runs the view, filling the columns of filters in one way after another until rows come out."""
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


def respect_constraints(
    inputs: AuditInput, view: View, outputs: Outputs, places: Places, text: DeployedText, verdict: DeployedVerdict
) -> DeployedVerdict:
    """Doubts a difference that only the text shows: a CHECK constraint or the view's own answer may rule its row out.

    Where a join finds no row its columns are missing, even if their table takes no NULL.
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
    """Doubts a difference that needs an outer join to find no row, where a foreign key guarantees one."""
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
