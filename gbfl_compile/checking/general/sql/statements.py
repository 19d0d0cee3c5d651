"""The statement in a SQL text: a query, or a view or table defined by one; and what its header declares.

A header is as untrusted as the query: it may not call another column the label, take a feature from a column named
like another feature, or put the classes of probabilities in an order their names belie.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from gbfl_compile.checking.general.sql.engines import Engine
from gbfl_compile.checking.general.sql.frames import Reader
from gbfl_compile.checking.general.sql.functions import Functions
from gbfl_compile.checking.general.sql.parsing import (
    folded_name,
    kind,
    names_among,
    nodes_of,
    only,
    refuse,
    refuse_unclear_names,
    statements,
)
from gbfl_compile.checking.general.sql.queries import query_relation, refuse_inner_aliases
from gbfl_compile.checking.general.sql.relations import Branch, Columns, KnownTable, Relation, Tables, are_apart
from gbfl_compile.checking.general.sql.types import cast_to
from gbfl_compile.checking.general.sql.values import Value, pick
from gbfl_compile.checking.reading.nodes import Unread, class_labels, feature_names
from gbfl_compile.checking.strict.sql.cursor import class_columns
from gbfl_compile.ir.nodes import Kind, Label, Program

Answer: TypeAlias = tuple[str, Value | Unread]
"""A column that comes out: its name, and what it is or why that is not understood."""

HARMLESS = {"SqlReadWriteProperty", "TemporaryProperty", "Order", "SqlSecurityProperty", "AlgorithmProperty"} | {
    "DefinerProperty"
}
"""What a CREATE may say without changing an answer."""

KEEPING = {"clickhouse": {"MERGETREE", "MEMORY", "LOG"}, "mysql": {"INNODB"}}
"""Engines of tables that keep every row as it was put there."""


def answer_relation(engine: Engine, text: str, names: Sequence[str], reader: Reader) -> Relation:
    """The query's result with the names of its columns; `names` are those that its header declares."""
    parts = statements(engine, text)
    if len(parts) != 1:
        raise Unread(f"{len(parts)} statements: only one can be read")
    refuse_unclear_names(engine, [*names, *names_among(parts[0])])
    node = nodes_of(engine, parts[0], text)
    refuse_inner_aliases(node, engine)
    reader = replace(reader, read_view=read_view)
    if kind(node) != "Create":
        return query_relation(node, reader, {})
    relation = query_relation(_created_query(node, engine), reader, {})
    if kind(node.this) != "Schema":
        return relation
    branches = (Branch(each.holds, dict(_name_columns(node, engine, each.columns))) for each in relation.branches)
    return replace(relation, branches=tuple(branches))


def read_view(known: KnownTable, reader: Reader) -> Relation:
    """A view that a query reads, by its own text."""
    assert known.query is not None  # noqa: S101 - the caller has looked
    try:
        relation = answer_relation(reader.engine, known.query, known.names, reader)
        return relation.rename([folded_name(reader.engine, name, quoted=True) for name in known.names])
    except Unread as error:
        raise Unread(f"{error} (in the view {known.key})") from None


def answers_of(relation: Relation) -> list[Answer]:
    """The columns of a relation as one row for each row of features."""
    if not are_apart(relation.branches):
        raise Unread("some rows would get several answers: parts of a UNION ALL, or rows that are joined, overlap")
    *first, last = relation.branches
    answers: dict[str, Value | Unread] = dict(last.columns)
    for branch in reversed(first):
        for name, value in branch.columns.items():
            other = answers[name]
            if isinstance(value, Unread) or isinstance(other, Unread):
                answers[name] = value if isinstance(value, Unread) else other
            else:
                answers[name] = pick(branch.holds, value, other)
    return list(answers.items())


def _name_columns(node: Any, engine: Engine, columns: Columns) -> list[Answer]:
    """The columns of the query under the names, and of the types, that the statement gives them."""
    definitions = node.this.expressions
    for part in definitions:
        only(part, "this", "kind", "quoted")
    names = [_name(engine, part.this if kind(part) == "ColumnDef" else part) for part in definitions]
    types = [part.args.get("kind") if kind(part) == "ColumnDef" else None for part in definitions]
    if len(names) != len(columns):
        refuse(node, "its columns are not those of its query")
    if engine.parsed_as == "mysql" and node.args.get("kind") == "TABLE" and names != list(columns):
        refuse(node, f"columns that {engine.name} fills by their names, and the query has others")
    return [
        (name, _typed_columns(engine, value, type_))
        for name, value, type_ in zip(names, columns.values(), types, strict=True)
    ]


def _typed_columns(engine: Engine, value: Value | Unread, type_: Any) -> Value | Unread:
    """A value kept as a type: CHAR is one letter there, and in a CAST as many as there are."""
    if type_ is None or isinstance(value, Unread):
        return value
    name = getattr(type_.this, "name", "")
    if name == "CHAR" or (engine.name == "tsql" and name in ("VARCHAR", "NVARCHAR") and not type_.expressions):
        raise Unread(f"a value kept as {type_}, which truncates or pads it")
    return cast_to(engine, value, type_)


def _created_query(node: Any, engine: Engine) -> Any:
    only(node, "this", "kind", "expression", "properties", "replace")  # IF NOT EXISTS may do nothing
    if node.args.get("kind") not in ("VIEW", "TABLE") or node.args.get("expression") is None:
        refuse(node, "creates something that is not understood")
    properties = node.args.get("properties")
    for item in properties.expressions if properties is not None else ():
        if kind(item) == "EngineProperty":
            name = item.this
            if name.args.get("expressions") or str(name.this).upper() not in KEEPING.get(engine.parsed_as, ()):
                refuse(item, "a table that need not keep every row")
        elif kind(item) not in HARMLESS:
            refuse(item, f"{kind(item)} is not understood")
    return node.args["expression"]


def _name(engine: Engine, identifier: Any) -> str:
    return folded_name(engine, str(identifier.this), bool(identifier.args.get("quoted")))


OPENING = "-- gbfl ["
PREFIXES = {"probabilities": "p", "score": "score"}


@dataclass(frozen=True, slots=True)
class TextLayout:
    """What the text itself does not say: which columns are features and which are answers."""

    features: tuple[str, ...]
    classes: tuple[Label, ...]
    columns: tuple[tuple[int, str], ...]
    """Feature and column of the table."""
    outputs: tuple[tuple[str, str], ...]
    """Kind (label, probabilities, score, leaf, reason) and name of each column that comes out, classes in order."""
    form: str | None = None
    """What the header calls the text; an expression, functions and a dbt model are for the strict reader alone."""
    digest: str | None = None
    tables: Tables | None = None
    """What the tables are, where several may be read, and rows left out: that is then said beside the readings."""
    approved: Program | None = None
    """What rows that the text leaves out are taken to be answered with."""
    elsewhere: Program | None = None
    """The same, where another program than the approved one is to be compared."""
    functions: Functions = lambda schema, name: None
    types: Mapping[int, str] = field(default_factory=dict)
    """The declared type of each feature's column, where that is known."""
    kinds: tuple[Kind, ...] = ()
    """The kind of each feature; `()` where all are numbers."""
    exact: frozenset[int] = frozenset()
    """The words whose columns take texts for equal only when they are the same."""
    known_texts: bool = True
    """Whether the texts in it have the bytes of UTF-8; where not, none of them is compared."""
    zone: str = "a zone that is not known"
    """The time zone in which the database takes moments whose type names none."""
    expressions: tuple[tuple[int, str, Mapping[str, str]], ...] = ()
    """Features that are expressions: feature, text, and for each name in it what that column is called here."""


def layout_in_header(text: str) -> TextLayout:
    """What the header says."""
    lines = [line for line in text.split("\n") if line.startswith(OPENING)]
    if len(lines) != 1:
        raise Unread("has no header, or more than one: say which features, classes and columns there are")
    try:
        pairs = json.loads(lines[0][len(OPENING) - 1 :])
        found: dict[str, Any] = {str(key): value for key, value in pairs}
        if len(found) != len(pairs):
            raise Unread("its header says something twice")
        layout = TextLayout(
            feature_names(found["features"]),
            class_labels(found["classes"]),
            tuple((_place(feature), _text(name)) for feature, name in found["columns"]),
            tuple((_text(kind), _text(name)) for kind, name in found["outputs"]),
            _text(found["form"]),
            _text(found["digest"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Unread(f"its header is not understood: {error}") from None
    refuse_misleading(layout)
    return layout


def _place(found: object) -> int:
    if type(found) is not int:
        raise Unread(f"its header has {found!r} where a feature's number belongs")
    return found


def _text(found: object) -> str:
    if not isinstance(found, str):
        raise Unread(f"its header has {found!r} where a text belongs")
    return found


def refuse_misleading(layout: TextLayout) -> None:
    """Refuse a header whose names say something else than its numbers."""
    _refuse_other_columns(layout)
    _refuse_other_outputs(layout)


def _refuse_other_columns(layout: TextLayout) -> None:
    features = [feature for feature, _ in layout.columns]
    if features != sorted(features):
        raise Unread("its header takes the features in another order than the program's")
    for feature, column in layout.columns:
        own = layout.features[feature] if 0 <= feature < len(layout.features) else column
        others = [name for name in layout.features if name != own and name.casefold() == column.casefold()]
        if column != own and others:
            raise Unread(f"the feature {own!r} is read from the column {column!r}, which is another feature's name")


def _refuse_other_outputs(layout: TextLayout) -> None:
    """Each output has its own name, so that no other column can pass for it."""
    for role in dict.fromkeys(role for role, _ in layout.outputs):
        found = [name for each, name in layout.outputs if each == role]
        expected = class_columns(PREFIXES[role], layout.classes) if role in PREFIXES else [role]
        if found != expected:
            raise Unread(f"its header has {', '.join(found)} for {role}, where {', '.join(expected)} belongs")
