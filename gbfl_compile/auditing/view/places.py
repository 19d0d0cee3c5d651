"""Where each feature of a program is in the tables below a view, which values it has there, and which are assumed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.verdict import DeployedVerdict
from gbfl_compile.auditing.view.computed import ComputedFeature, computed_feature
from gbfl_compile.auditing.view.domains import prove_on_columns
from gbfl_compile.auditing.view.layers import expression_called, renamed_columns
from gbfl_compile.auditing.view.view import MissingFeature, View
from gbfl_compile.checking.general.sql import DeployedText
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.witnesses import rows_to_run
from gbfl_compile.databases.catalog import Column
from gbfl_compile.databases.views import Base, Layers, Query
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.kinds import Codebook, decode_rows, encode_values, used_features
from gbfl_compile.ir.nodes import Kind, Program
from gbfl_compile.ir.text import printable

MOMENTS = {
    ("duckdb", "date"): re.compile("date"),
    ("duckdb", "timestamp"): re.compile("timestamp"),
    ("postgres", "date"): re.compile("date"),
    ("postgres", "timestamp"): re.compile(r"timestamp(\(\d\))? with(out)? time zone"),
    ("mariadb", "date"): re.compile("date"),
    ("mariadb", "timestamp"): re.compile(r"datetime(\(\d\))?"),  # a TIMESTAMP goes by the session's time zone
    ("clickhouse", "date"): re.compile("date(32)?"),
    ("clickhouse", "timestamp"): re.compile(r"datetime|datetime64\([0-6](, '[^']*')?\)|datetime\('[^']*'\)"),
}
"""The columns of days and of moments, as their catalogs print the types in small letters."""

NUMBER_KINDS = ("double", "float32", "integer", "decimal")


def holds_kind(column: Column, kind: Kind, dialect: str) -> bool:
    """Whether a column's type is one that was tested for values of this kind."""
    is_sqlite, declared = dialect == "sqlite", column.declared.casefold()
    declared = declared.removeprefix("nullable(").removesuffix(")") if declared.startswith("nullable(") else declared
    match kind:
        case "number":
            return column.type.kind in NUMBER_KINDS or column.rounds or (is_sqlite and column.type.kind == "other")
        case "category":
            return column.holds_texts
        case "boolean":
            is_integer = "int" in declared or "bool" in declared  # to SQLite a type is a hint
            if dialect == "mariadb":
                return declared == "tinyint(1)"
            return is_integer and column.type.kind != "text" if is_sqlite else column.type.kind == "boolean"
        case "date" | "timestamp":
            return column.type.kind == "text" if is_sqlite else MOMENTS[dialect, kind].fullmatch(declared) is not None
        case _:
            assert_never(kind)


UTC_LITERALS = {("clickhouse", "date"): "toDate32({})", ("clickhouse", "timestamp"): "toDateTime64({}, 6, 'UTC')"}
"""Texts of moments that the session's time zone, or the first day of a type, would change."""


def as_compared(dialect: str, kind: Kind, column: Column) -> str:
    """How a word or date is read back: as the rules compare it, without the padding of a CHAR(n), in UTC."""
    declared = column.declared.casefold()
    match dialect, kind:
        case "postgres", "category":
            return "CAST({value} AS TEXT)"
        case "postgres", "timestamp" if "with time zone" in declared:
            return "({value} AT TIME ZONE 'UTC')"
        case "mariadb", "category" if declared.startswith("char"):
            return "TRIM(TRAILING ' ' FROM {value})"
        case "clickhouse", "category":
            return "toString({value})"
        case "clickhouse", "timestamp":
            return "toDateTime64({value}, 6, 'UTC')"
        case _:
            return "{value}"


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
    """The column or expression of each feature: named by --column, by its own name, or by a layer."""
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
    """Refuse views that cannot be read for a program with words: untested types, and escapes in texts."""
    if not program.kinds:
        return
    used, dialect = used_features(program), view.database.dialect
    for feature, place in enumerate(places.columns):
        kind = program.kind(feature)
        if place is not None and used[feature] and not holds_kind(place.column, kind, dialect):
            name = printable(place.column.name)
            raise Unread(f"{name} is {place.column.declared}: a {kind} of that type has not been tested")
    for each in places.computed:
        if program.kind(each.feature) != "number":
            raise Unread(f"{program.features[each.feature]!r} is a {program.kind(each.feature)} that SQL computes")
    if any("\\" in query.definition for query in (view.require_query(), *layers.views.values())):
        raise Unread("a backslash in its text, which is an escape in some engines: compare its rows with --scored")


def are_members(program: Program, columns: Sequence[Column | None], rows: Matrix, book: Codebook) -> NDArray[np.bool_]:
    """The rows whose words are members of their columns' enumerations."""
    keep = np.ones(len(rows), dtype=bool)
    for feature, members in _enumerations(program, columns):
        keep &= np.isin(rows[:, feature], _codes(members, book.texts[feature])) | np.isnan(rows[:, feature])
    return keep


def with_members(
    program: Program, columns: Sequence[Column | None], rows: Matrix, book: Codebook
) -> tuple[Matrix, Codebook]:
    """The rows, with texts that an enumeration lacks replaced by a member: one that no rule mentions, or else any."""
    rows = rows.copy()
    for feature, members in _enumerations(program, columns):
        own = next((member for member in members if member not in book.texts[feature]), members[0])
        book = book.with_text(feature, own)
        is_member = np.isin(rows[:, feature], _codes(members, book.texts[feature])) | np.isnan(rows[:, feature])
        rows[~is_member, feature] = book.code(feature, own)
    return rows, book


def _enumerations(program: Program, columns: Sequence[Column | None]) -> list[tuple[int, tuple[str, ...]]]:
    return [
        (feature, column.members)
        for feature, column in enumerate(columns[: len(program.features)])
        if column is not None and column.members is not None and program.kind(feature) == "category"
    ]


def _codes(members: Sequence[str], texts: Sequence[str]) -> list[float]:
    return [float(code) for code, text in enumerate(texts, start=1) if text in members]


MOST_TEXTS = 60
"""Texts of a view's own that are tried in each category."""


def witness_rows(inputs: AuditInput, view: View) -> tuple[Matrix, Codebook]:
    """The rows to run, and the book of their texts: the texts that the view itself mentions are tried too."""
    program = inputs.program
    if not program.kinds:
        witness_set = rows_to_run(program, () if inputs.data is None else (inputs.data,))
        return witness_set.rows, witness_set.book
    witness_set = rows_to_run(program)
    book, parts = witness_set.book, [witness_set.rows]
    below = () if view.layers is None else view.layers.views.values()
    tokens = [token for query in (view.require_query(), *below) for token in query.tokens]
    mentioned = dict.fromkeys(token.text for token in tokens if token.token_type.name == "STRING")
    for feature, kind in enumerate(program.kinds):
        for text in list(mentioned)[:MOST_TEXTS] if kind == "category" else ():
            if text not in book.texts[feature]:
                book = book.with_text(feature, text)
                part = witness_set.rows[:: max(1, len(witness_set.rows) // 50)].copy()
                part[:, feature] = book.code(feature, text)
                parts.append(part)
    if inputs.data is not None and inputs.book is not None:
        book = book.with_texts(inputs.book.texts)
        parts.append(encode_values(program, decode_rows(program, inputs.data.tolist(), inputs.book), book))
    return np.concatenate(parts), book


def with_assumptions(
    program: Program, view: View, places: Places, text: DeployedText, verdict: DeployedVerdict
) -> DeployedVerdict:
    """The verdict with the assumptions under which an equal text is equal."""
    assumed = []
    if places.computed:
        words = ", ".join(f"{program.features[each.feature]} is {each.text}" for each in places.computed)
        assumed.append(f"that {words}, and that this compares as a double does")
    if text.uses.words and view.database.dialect == "duckdb":
        listed = ", ".join(map(printable, text.uses.words))
        assumed.append(f"that no session sets default_collation, by which {listed} would be compared")
    if text.uses.zoneless:
        listed = ", ".join(map(printable, text.uses.zoneless))
        words = f"that no server and no session has a time zone other than UTC, by which texts beside {listed} would be"
        assumed.append(f"{words} read")
    if text.uses.has_rounded_quotients:
        assumed.append("that no session sets div_precision_increment, by which quotients are rounded")
    assumed += _loose_columns(program, view.database.dialect, places)
    return replace(verdict, proof_assumes="; ".join(assumed)) if assumed and verdict.verdict == "equal" else verdict


def _loose_columns(program: Program, dialect: str, places: Places) -> list[str]:
    """Columns that could hold more than their kind has: 2 is true to `x`, and not equal to 1 in `x = 1`."""
    used = used_features(program)
    named: dict[str, list[str]] = {"boolean": [], "date": [], "timestamp": []}
    for feature, place in enumerate(places.columns):
        kind = program.kind(feature)
        if place is not None and used[feature] and kind in named:
            named[kind].append(printable(place.column.name))
    truths = named["boolean"] if dialect in ("sqlite", "mariadb") else []
    found = [f"that {', '.join(truths)} holds 0, 1 or NULL"] if truths else []
    for kind, form in (("date", "days as texts like 2024-03-01"), ("timestamp", "times like 2024-03-01 09:30:00")):
        if named[kind] and dialect == "sqlite":
            found.append(f"that {', '.join(named[kind])} holds {form}")
    return found


def without_nan_decimals(verdict: DeployedVerdict, view: View, columns: Sequence[Column]) -> DeployedVerdict:
    """PostgreSQL's NUMERIC can hold NaN, which readings ignore: that it does not is added as an assumption."""
    numerics = [column.name for column in columns if column.type.kind == "decimal"]
    if view.database.dialect != "postgres" or not numerics or verdict.verdict != "equal":
        return verdict
    words = f"that {', '.join(map(printable, numerics))} holds no NaN"
    return replace(verdict, proof_assumes="; ".join(filter(None, (verdict.proof_assumes, words))))


def with_strict_nan(
    inputs: AuditInput, view: View, verdict: DeployedVerdict, columns: Sequence[Column | None]
) -> DeployedVerdict:
    """The same for a strict text, where its proof needs the assumption.

    Such a text takes NaN as NULL: a NUMERIC that is NOT NULL is proved once more as if it could be NULL.
    """
    decimals = [each for each in columns if each is not None and each.type.kind == "decimal" and not each.nullable]
    is_proved = verdict.proof is not None and verdict.proof.answer == "proved"
    if view.database.dialect != "postgres" or not decimals or not is_proved:
        return verdict
    may_be_nan = [replace(each, nullable=True) if each is not None and each in decimals else each for each in columns]
    prover = prove_on_columns(may_be_nan, verdict.readings, inputs.program.kinds)
    proof = prover(inputs.program, verdict.readings, inputs.budget_seconds)
    return verdict if proof.tier is not None else without_nan_decimals(verdict, view, decimals)
