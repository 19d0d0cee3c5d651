"""The statement of a SQL text: a query, or a view or a table made by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from gbfl_compile.checking.general.sql.engines import Engine
from gbfl_compile.checking.general.sql.frames import Reader
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
from gbfl_compile.checking.general.sql.queries import query_relation
from gbfl_compile.checking.general.sql.relations import Branch, Columns, KnownTable, Relation, are_apart
from gbfl_compile.checking.general.sql.types import cast_to
from gbfl_compile.checking.general.sql.values import Value, pick
from gbfl_compile.checking.reading.nodes import Unread

Answer: TypeAlias = tuple[str, Value | Unread]
"""A column that comes out: its name, and what it is or why that is not understood."""

HARMLESS = {"SqlReadWriteProperty", "TemporaryProperty", "Order", "SqlSecurityProperty", "AlgorithmProperty"} | {
    "DefinerProperty"
}
"""What a CREATE may say without changing an answer."""

KEEPING = {"clickhouse": {"MERGETREE", "MEMORY", "LOG"}, "mysql": {"INNODB"}}
"""Engines of tables that keep every row as it was put there."""


def answer_relation(engine: Engine, text: str, names: Sequence[str], reader: Reader) -> Relation:
    """What comes out, with the names of its columns; `names` are those the text is said to use."""
    parts = statements(engine, text)
    if len(parts) != 1:
        raise Unread(f"{len(parts)} statements, one is read")
    refuse_unclear_names(engine, [*names, *names_among(parts[0])])
    node = nodes_of(engine, parts[0], text)
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
        raise Unread(f"a value kept as {type_}, which cuts it or fills it up")
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
