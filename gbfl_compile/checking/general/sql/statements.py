"""The statement of a SQL text: a query, or a view or a table made by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from gbfl_compile.checking.general.sql.engines import Engine
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
from gbfl_compile.checking.general.sql.queries import Columns, Reader, query_columns
from gbfl_compile.checking.general.sql.types import cast_to
from gbfl_compile.checking.general.sql.values import Value
from gbfl_compile.checking.reading.nodes import Unread

Answer: TypeAlias = tuple[str, Value | Unread]
"""A column that comes out: its name, and what it is or why that is not understood."""

HARMLESS = {"SqlReadWriteProperty", "TemporaryProperty", "Order", "SqlSecurityProperty", "AlgorithmProperty"} | {
    "DefinerProperty"
}
"""What a CREATE may say without changing an answer."""

KEEPING = {"clickhouse": {"MERGETREE", "MEMORY", "LOG"}, "mysql": {"INNODB"}}
"""Engines of tables that keep every row as it was put there."""


def answer_columns(
    engine: Engine, text: str, names: Sequence[str], table: Callable[[str], Value]
) -> list[tuple[str, Value | Unread]]:
    """The columns that come out, with their names; `names` are those the text is said to use."""
    parts = statements(engine, text)
    if len(parts) != 1:
        raise Unread(f"{len(parts)} statements, one is read")
    refuse_unclear_names(engine, [*names, *names_among(parts[0])])
    node = nodes_of(engine, parts[0], text)
    reader = Reader(engine, table)
    if kind(node) != "Create":
        return list(query_columns(node, reader, {}).items())
    columns = query_columns(_created_query(node, engine), reader, {})
    return _name_columns(node, engine, columns) if kind(node.this) == "Schema" else list(columns.items())


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
