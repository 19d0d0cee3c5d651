"""Where each feature of a program is in the tables below a view, and whether it can be one there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.view.computed import ComputedFeature, computed_feature
from gbfl_compile.auditing.view.domains import holds_kind
from gbfl_compile.auditing.view.layers import Base, Layers, Query, expression_called, renamed_columns
from gbfl_compile.auditing.view.view import MissingFeature, View
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.databases.catalog import Column
from gbfl_compile.ir.kinds import used_features
from gbfl_compile.ir.nodes import Program
from gbfl_compile.ir.text import printable


@dataclass(frozen=True, slots=True)
class Place:
    """Where a feature is: a column of a table."""

    base: Base
    column: Column


@dataclass(frozen=True, slots=True)
class Places:
    """Where each feature is; None where the program does not use it, or where it is computed."""

    columns: list[Place | None]
    computed: tuple[ComputedFeature, ...]

    def keys(self) -> list[tuple[str, str] | None]:
        """(table, column) of each feature."""
        return [None if place is None else (place.base.key, place.column.name) for place in self.columns]

    def features(self) -> dict[tuple[str, str], int]:
        """(table, column) -> feature."""
        return {key: feature for feature, key in enumerate(self.keys()) if key is not None}


def feature_places(inputs: AuditInput, view: View, layers: Layers) -> Places:
    """The column of each feature, or its expression: as --column says, of its own name, or called so by a layer."""
    program, fold = inputs.program, view.catalog.names_fold
    used = {atom.feature for clause in program.clauses for atom in clause.atoms}
    bases = layers.distinct_bases()
    queries = [view.require_query(), *layers.views.values()]
    places: list[Place | None] = []
    computed: list[ComputedFeature] = []
    for feature, name in enumerate(program.features):
        wanted = inputs.columns.get(name, name)
        table, _, own = wanted.rpartition(".")
        found = [
            Place(base, column)
            for base in bases
            if (column := base.column(own, fold)) is not None and (not table or base.key.casefold() == table.casefold())
        ]
        if not found and name not in inputs.columns:
            found = [Place(*each) for each in renamed_columns(queries, bases, name, fold)]
        if feature not in used and len(found) != 1:
            places.append(None)
            continue
        if not found and name in inputs.columns and not PLAIN_NAME.fullmatch(wanted):
            computed.append(computed_feature(feature, name, wanted, bases, view.database.dialect))
            places.append(None)
            continue
        if not found:
            raise MissingFeature(_missing(name, wanted, bases, queries))
        if len({(place.base.key, place.column.name) for place in found}) > 1:
            options = " or ".join(f"--column {name}={each.base.key}.{each.column.name}" for each in found[:3])
            raise Unread(f"the feature {name!r} may be one of several columns: say which with {options}")
        if found[0].column.generated:
            raise Unread(f"the column {own!r} is computed by the database and cannot be filled in")
        place = found[0]
        if not inputs.holds_nan:
            place = replace(place, column=replace(place.column, type=replace(place.column.type, engine_has_nan=False)))
        places.append(place)
    return Places(places, tuple(computed))


PLAIN_NAME = re.compile(r"\w+(\.\w+)?")


def _missing(name: str, wanted: str, bases: Sequence[Base], queries: Sequence[Query]) -> str:
    known = ", ".join(printable(column.name) for base in bases for column in base.columns[:10])
    tables = ", ".join(printable(base.key) for base in bases)
    what = expression_called(queries, name)
    way = f"--column {name}=COLUMN" if what is None else f"--column '{name}={what}', if that is the approved feature"
    return (
        f"{tables} has no column {wanted!r}, only {known}: name the feature's column with {way}, "
        "or compare the rows it gives with --scored"
    )


def refuse_uncertain_words(program: Program, view: View, layers: Layers, places: Places) -> None:
    """Refuse what a program with words cannot be read in: types that were not tried out, and escapes in texts."""
    if not program.kinds:
        return
    used, dialect = used_features(program), view.database.dialect
    for feature, place in enumerate(places.columns):
        kind = program.kind(feature)
        if place is not None and used[feature] and not holds_kind(place.column, kind, dialect):
            name = printable(place.column.name)
            raise Unread(f"{name} is {place.column.declared}: a {kind} of that type was not tried out")
    for each in places.computed:
        if program.kind(each.feature) != "number":
            raise Unread(f"{program.features[each.feature]!r} is a {program.kind(each.feature)} that SQL computes")
    if any("\\" in query.definition for query in (view.require_query(), *layers.views.values())):
        raise Unread("a backslash in its text, which is an escape to some engines: compare its rows with --scored")
