"""The statements of a SQL text: a query, a view, a table made by a query, functions, or expressions alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

from gbfl_compile.check.readers.sql_engines import Engine
from gbfl_compile.check.readers.sql_expressions import expression
from gbfl_compile.check.readers.sql_names import folded_name, names_among, refuse_unclear_names
from gbfl_compile.check.readers.sql_nodes import Scope, kind, only, refuse, snippet
from gbfl_compile.check.readers.sql_parsing import nodes_of, parse_one, statements
from gbfl_compile.check.readers.sql_queries import Reader, Source, query_columns
from gbfl_compile.check.readers.sql_types import cast_to, named_type
from gbfl_compile.check.readers.sql_values import Column, Value
from gbfl_compile.check.reading import Unread

Columns: TypeAlias = Sequence[tuple[int, str]]
"""Features and the columns they stand in, in the order in which a function takes them."""

Lazy: TypeAlias = Callable[[], Value]
"""A column that is worked out when it is asked for."""

HARMLESS = {
    "ReturnsProperty",
    "StabilityProperty",
    "SqlReadWriteProperty",
    "TemporaryProperty",
    "Order",
    "SqlSecurityProperty",
    "AlgorithmProperty",
    "DefinerProperty",
}
"""What a CREATE may say without changing an answer."""

PLAIN_WORDS = {"LANGUAGE", "SQL", "IMMUTABLE", "STABLE", "PARALLEL", "SAFE"}
"""What PostgreSQL may say of a function without changing an answer (STRICT would: NULL in, NULL out)."""

KEEPING = {"clickhouse": {"MERGETREE", "MEMORY", "LOG"}, "mysql": {"INNODB"}}
"""Engines of tables that keep every row as it was put there."""

SETTINGS = re.compile(
    r"(max_query_size|max_ast_elements|max_expanded_ast_elements|max_ast_depth|max_parser_depth) = \d+"
)
"""What ClickHouse may be told: limits on the text, none on the rows."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is looked for, as it was told."""

    form: str | None
    columns: Columns
    outputs: Sequence[str]


def answer_columns(engine: Engine, text: str, asked: Asked, table: Callable[[str], Value]) -> list[tuple[str, Lazy]]:
    """The columns that come out, with their names, whatever the form; `table` says what a column of the table is."""
    reader = Reader(engine, table)
    if asked.form == "expression":
        text = f"SELECT\n{text}"
    parts = statements(engine, text)
    refuse_unclear_names(
        engine,
        [
            *(name for _, name in asked.columns),
            *asked.outputs,
            *(name for tokens in parts for name in names_among(tokens)),
        ],
    )
    found: list[tuple[str, Lazy]] = []
    functions = asked.form == "macro"  # several functions may stand in one text, but only one query
    for tokens in parts:
        if functions and (head := _function_head(engine, tokens)):
            found.append(_postgres_function(engine, text[: tokens[-1].end + 1], head, asked.columns))
            continue
        node = nodes_of(engine, tokens, text)
        if kind(node) == "Set" and engine.name == "clickhouse":
            _refuse_other_settings(node)
            continue
        if _is_function(node) != functions:
            refuse(node, "a function, or none, where its form says otherwise")
        made = list(_statement(node, reader, asked))
        if found and not functions:
            refuse(node, "a second statement")
        found += made
    if not found:
        raise Unread("says nothing")
    if functions:
        _refuse_calls(engine, parts, {name for name, _ in found})
    return found


def _refuse_calls(engine: Engine, parts: list[list[Any]], names: set[str]) -> None:
    """Refuse functions that are called by their own text: one named like the engine's would stand before it."""
    for tokens in parts:
        called = [
            token.text
            for token, following in pairwise(tokens)
            if following.text == "(" and any(token.text.casefold() == name.casefold() for name in names)
        ]
        if len(called) > (engine.name != "clickhouse"):  # elsewhere one is the function's own head: name(arguments)
            raise Unread(f"the function {called[-1]!r} is defined and called in one text")


def _is_function(node: Any) -> bool:
    return kind(node) == "Create" and node.args.get("kind") in ("FUNCTION", "MACRO")


def _refuse_other_settings(node: Any) -> None:
    for item in node.expressions:
        if not SETTINGS.fullmatch(item.sql(dialect="clickhouse")):
            refuse(node, "a setting that is not understood")


def _statement(node: Any, reader: Reader, asked: Asked) -> Iterator[tuple[str, Lazy]]:
    made = node
    types: list[Any] = []
    names: list[str] = []
    if kind(node) == "Create":
        if _is_function(node):
            yield _function(node, reader.engine, asked.columns)
            return
        made = _created(node, reader.engine)
        if kind(node.this) == "Schema":
            definitions = node.this.expressions
            for part in definitions:
                only(part, "this", "kind", "quoted")
            names = [_name(reader.engine, part.this if kind(part) == "ColumnDef" else part) for part in definitions]
            types = [part.args.get("kind") if kind(part) == "ColumnDef" else None for part in definitions]
    if asked.form == "expression":
        only(node, "expressions")
    outer = (Source(None, {}, reader.table),) if asked.form == "expression" else ()
    columns = query_columns(made, reader, {}, outer).columns
    if names and len(names) != len(columns):
        refuse(node, "its columns are not those of its query")
    if names and reader.engine.parsed_as == "mysql" and node.args.get("kind") == "TABLE" and names != list(columns):
        refuse(node, f"columns that {reader.engine.name} fills by their names, and the query has others")
    for number, (name, value) in enumerate(columns.items()):
        given = names[number] if names else name
        yield given, _typed(reader.engine, value, types[number] if types else None)


def _typed(engine: Engine, value: Lazy, kind_: Any) -> Lazy:
    """A value kept as a type, or given back as one: CHAR is one letter there, and in a CAST as many as there are."""
    if kind_ is None:
        return value
    name = getattr(kind_.this, "name", "")
    if name == "CHAR" or (engine.name == "tsql" and name in ("VARCHAR", "NVARCHAR") and not kind_.expressions):
        raise Unread(f"a value kept as {kind_}, which cuts it or fills it up")
    return lambda: cast_to(engine, value(), kind_)


def _created(node: Any, engine: Engine) -> Any:
    only(node, "this", "kind", "expression", "properties", "replace", "begin")  # IF NOT EXISTS may do nothing
    if node.args.get("kind") not in ("VIEW", "TABLE") or node.args.get("expression") is None:
        refuse(node, "creates something that is not understood")
    _refuse_properties(node, engine)
    return node.args["expression"]


def _refuse_properties(node: Any, engine: Engine) -> None:
    properties = node.args.get("properties")
    for item in properties.expressions if properties is not None else ():
        if kind(item) == "EngineProperty":
            name = item.this
            if name.args.get("expressions") or str(name.this).upper() not in KEEPING.get(engine.parsed_as, ()):
                refuse(item, "a table that need not keep every row")
        elif kind(item) not in HARMLESS:
            refuse(item, f"{kind(item)} is not understood")


def _name(engine: Engine, identifier: Any) -> str:
    return folded_name(engine, str(identifier.this), bool(identifier.args.get("quoted")))


def _function(node: Any, engine: Engine, arguments: Columns) -> tuple[str, Lazy]:
    """CREATE FUNCTION and CREATE MACRO, as far as sqlglot knows them."""
    only(node, "this", "kind", "expression", "properties", "replace", "begin")
    _refuse_properties(node, engine)
    body, head = node.args.get("expression"), node.this
    given = head.expressions
    if kind(body) == "Lambda":
        only(body, "this", "expressions")
        given, body = body.expressions, body.this
    elif kind(body) == "Return":
        body = body.this
    names = []
    for argument in given:
        only(argument, "this", "kind", "quoted")
        if kind(argument) == "ColumnDef":
            cast_to(engine, Column(0), argument.args["kind"])
            argument = argument.this
        names.append(_name(engine, argument))
    table = head.this if kind(head) == "UserDefinedFunction" else head
    properties = node.args.get("properties")
    returns = [item for item in properties.expressions if kind(item) == "ReturnsProperty"] if properties else []
    made = _body(engine, body, names, arguments)
    for item in returns:
        made = _typed(engine, made, item.this)
    return _name(engine, table.this), made


def _body(engine: Engine, body: Any, names: list[str], arguments: Columns) -> Lazy:
    if len(names) != len(arguments) or len(set(names)) != len(names):
        raise Unread(f"a function of {len(names)} arguments, the features asked are {len(arguments)}")
    for number, name in enumerate(names):
        if any(name.casefold() == column.casefold() for _, column in [*arguments[:number], *arguments[number + 1 :]]):
            raise Unread(f"the argument {name!r} is not the feature of this name")
    known: Mapping[str, Value] = {name: Column(f) for name, (f, _) in zip(names, arguments, strict=True)}

    def look_up(node: Any) -> Value:
        if kind(node) == "Column" and node.args.get("table"):
            refuse(node, "no argument of this name")
        identifier = node.this if kind(node) == "Column" else node
        name = _name(engine, identifier)
        return known[name] if name in known else refuse(node, "no argument of this name")

    return lambda: expression(body, Scope(engine, look_up, expression))


def _function_head(engine: Engine, tokens: list[Any]) -> list[Any] | None:
    """The tokens up to RETURN of a PostgreSQL function, which sqlglot does not parse; None for anything else."""
    words = [token.text.upper() for token in tokens[:4]]
    if engine.parsed_as not in ("postgres", "redshift") or words[0] != "CREATE" or "FUNCTION" not in words:
        return None
    ends = [index for index, token in enumerate(tokens) if token.text.upper() == "RETURN"]
    return tokens[: ends[0] + 1] if ends else None


def _postgres_function(engine: Engine, text: str, head: list[Any], arguments: Columns) -> tuple[str, Lazy]:
    words = [token.text for token in head]
    try:
        opened, closed = words.index("("), _closing(words)
        returns = [word.upper() for word in words].index("RETURNS", closed)
        language = [word.upper() for word in words].index("LANGUAGE", returns)
    except ValueError:
        raise Unread(f"a function that is not understood: {' '.join(words)[:80]}") from None
    if unknown := [word for word in words[language:-1] if word.upper() not in PLAIN_WORDS]:
        raise Unread(f"a function with {unknown[0]!r}")
    names = []
    inside = text[head[opened].end + 1 : head[closed].start]
    for definition in parse_one(engine, f"CREATE TABLE gbfl_arguments ({inside})").this.expressions if inside else ():
        if kind(definition) != "ColumnDef" or definition.args.get("kind") is None:
            raise Unread(f"an argument that is not understood: {snippet(definition)}")
        only(definition, "this", "kind")
        cast_to(engine, Column(0), definition.args["kind"])
        names.append(_name(engine, definition.this))
    result = named_type(engine, text[head[returns].end + 1 : head[language].start].strip())
    whole = parse_one(engine, f"SELECT {text[head[-1].end + 1 :]}")
    only(whole, "expressions")
    bodies = whole.expressions
    if len(bodies) != 1:
        raise Unread(f"a function of {len(bodies)} expressions")
    (body,) = bodies
    made = _typed(engine, _body(engine, body, names, arguments), result)
    own = head[opened - 1]
    return folded_name(engine, own.text, quoted=own.token_type.name == "IDENTIFIER"), made


def _closing(words: list[str]) -> int:
    depth = 0
    for index, word in enumerate(words):
        depth += (word == "(") - (word == ")")
        if word == ")" and depth == 0:
            return index
    raise ValueError
