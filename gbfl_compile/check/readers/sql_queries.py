"""Queries as stages: each SELECT gives its columns a meaning in terms of the one before, down to the table's columns.

A query that could drop, double or mix rows (WHERE, joins, DISTINCT, a true LIMIT) is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from gbfl_compile.check.readers.sql_engines import Engine
from gbfl_compile.check.readers.sql_expressions import expression
from gbfl_compile.check.readers.sql_names import folded_name
from gbfl_compile.check.readers.sql_nodes import Scope, kind, only, refuse
from gbfl_compile.check.readers.sql_values import Constant, Other, Pick, Value, ends, mapped
from gbfl_compile.check.reading import Unread

UNLIMITED = {"sqlite": "-1", "mariadb": "18446744073709551615", "mysql": "18446744073709551615"}
"""The LIMIT that limits nothing: it keeps an engine from merging a stage into the next."""

CASE_OF_TABLES = {"mysql", "tsql"}
"""Engines that tell `data` from `DATA` where they are tables, and the server or its collation says so."""

MOST_ENDS = 20_000

UNNAMED = "\0 column"
"""What a column without a name is called here; no engine takes such a name."""

Spelled: TypeAlias = tuple[str, str, bool]
"""A column as it stands in the text: its table, its name, whether that is quoted."""


@dataclass(frozen=True, slots=True)
class Source:
    """Something to select from: its name, and what its columns are."""

    name: str | None
    columns: Mapping[str, Callable[[], Value]]
    table: Callable[[str], Value] | None = None
    """The table itself: any column of it."""
    spelled: str = ""
    """The name of a stage as it is written."""

    def column(self, key: str) -> Callable[[], Value] | None:
        """The column of this name, or None."""
        if key in self.columns:
            return self.columns[key]
        table = self.table
        return None if table is None else lambda: table(key)


@dataclass(frozen=True, slots=True)
class Reader:
    """What all stages of a query share."""

    engine: Engine
    table: Callable[[str], Value]
    """What a column of the table is, by its folded name."""


def _key(engine: Engine, identifier: Any) -> str:
    if kind(identifier) != "Identifier":
        refuse(identifier, "is not a name")
    return folded_name(engine, str(identifier.this), bool(identifier.args.get("quoted")))


def _clause(node: Any, name: str) -> Any:
    """FROM and WITH were called otherwise in older versions of sqlglot."""
    return node.args.get(f"{name}_") or node.args.get(name)


def query_columns(node: Any, reader: Reader, known: Mapping[str, Source], outer: tuple[Source, ...] = ()) -> Source:
    """The columns a query gives."""
    while kind(node) in ("Subquery", "Paren"):
        only(node, "this", "alias")
        node = node.this
    if kind(node) != "Select":
        refuse(node, f"{kind(node)} is not understood")
    only(node, "expressions", "from_", "from", "with_", "with", "joins", "limit", "offset", "into")
    _refuse_limits(node, reader.engine)
    known = _with_stages(node, reader, known)
    sources = (*outer, *_sources(node, reader, known))
    columns: dict[str, Callable[[], Value]] = {}
    for number, item in enumerate(node.expressions):
        if kind(item) == "Star" or (kind(item) == "Column" and kind(item.this) == "Star"):
            brought = _star(item, sources)
            if both := brought.keys() & columns.keys():
                refuse(item, f"brings the column {min(both)!r}, which is there already")
            columns.update(brought)
            continue
        name, made = _item(item, number, reader, sources)
        if name in columns:
            refuse(item, "two columns have this name")
        columns[name] = made
    _refuse_shadows(node, reader.engine, columns, sources)
    return Source(None, columns)


def _refuse_limits(node: Any, engine: Engine) -> None:
    limit, offset = node.args.get("limit"), node.args.get("offset")
    if limit is not None:
        only(limit, "expression")
        if limit.args["expression"].sql() != UNLIMITED.get(engine.name):
            refuse(limit, "rows may be left out")
    if offset is not None:
        only(offset, "expression")
        if offset.args["expression"].sql() != "0":
            refuse(offset, "rows may be left out")


def _with_stages(node: Any, reader: Reader, known: Mapping[str, Source]) -> Mapping[str, Source]:
    stages = _clause(node, "with")
    if stages is None:
        return known
    only(stages, "expressions")
    found = dict(known)
    for stage in stages.expressions:
        only(stage, "this", "alias", "materialized")
        name, columns = _alias(stage.args["alias"], reader.engine)
        made = query_columns(stage.this, reader, found)
        spelled = str(stage.args["alias"].this.this)
        found[name or ""] = Source(name, _renamed(stage, made.columns, columns), None, spelled)
    return found


def _alias(alias: Any, engine: Engine) -> tuple[str | None, list[str]]:
    if alias is None:
        return None, []
    only(alias, "this", "columns")
    return _key(engine, alias.this), [_key(engine, column) for column in alias.args.get("columns") or []]


def _renamed(
    node: Any, columns: Mapping[str, Callable[[], Value]], names: list[str]
) -> Mapping[str, Callable[[], Value]]:
    if not names:
        return columns
    if len(names) != len(columns) or len(set(names)) != len(names):
        refuse(node, "its names are not one a column")
    return dict(zip(names, columns.values(), strict=True))


def _sources(node: Any, reader: Reader, known: Mapping[str, Source]) -> list[Source]:
    start = _clause(node, "from")
    if start is None:
        if node.args.get("joins"):
            refuse(node, "a join with nothing")
        return []
    only(start, "this")
    table, joins = start.this, list(node.args.get("joins") or [])
    if kind(table) == "Subquery" and kind(table.this) == "Table":  # FROM (t CROSS JOIN LATERAL (…) AS s)
        only(table, "this")
        table = table.this
    joins = [*(table.args.get("joins") or []), *joins]
    first = _source(table, reader, known)
    return [first, *(_lateral(join, reader, known, first) for join in joins)]


def _source(node: Any, reader: Reader, known: Mapping[str, Source]) -> Source:
    engine = reader.engine
    if kind(node) == "Subquery":
        only(node, "this", "alias")
        name, names = _alias(node.args.get("alias"), engine)
        made = query_columns(node.this, reader, known)
        return Source(name, _renamed(node, made.columns, names))
    if kind(node) != "Table":
        refuse(node, f"selects from {kind(node)}")
    only(node, "this", "db", "catalog", "alias", "joins")
    name, names = _alias(node.args.get("alias"), engine)
    own = _key(engine, node.this)
    if own in known and not node.args.get("db"):
        found = known[own]
        if engine.name in CASE_OF_TABLES and found.spelled != str(node.this.this):
            refuse(node, f"the stage {found.spelled}, or a table: {engine.name} may tell the two apart by their case")
        return Source(name or own, _renamed(node, found.columns, names))
    if names:
        refuse(node, "a table's columns renamed")
    return Source(name or own, {}, reader.table)


def _lateral(join: Any, reader: Reader, known: Mapping[str, Source], first: Source) -> Source:
    """CROSS JOIN LATERAL (SELECT … OFFSET 0): one row for each, computed once."""
    only(join, "this", "kind")
    lateral = join.this
    if kind(lateral) != "Lateral" or str(join.args.get("kind") or "CROSS").upper() != "CROSS":
        refuse(join, "a join")
    only(lateral, "this", "alias")
    inner = lateral.this
    name, names = _alias(lateral.args.get("alias"), reader.engine)
    select = inner.this if kind(inner) == "Subquery" else inner
    if kind(select) != "Select" or _clause(select, "from") is not None:
        refuse(join, "a join")
    made = query_columns(select, reader, known, (first,))
    return Source(name, _renamed(join, made.columns, names))


def _star(item: Any, sources: tuple[Source, ...]) -> Mapping[str, Callable[[], Value]]:
    if kind(item) == "Column" or len(sources) != 1 or sources[0].table is not None or item.args.get("except_"):
        refuse(item, "all columns of a table")
    only(item)
    return sources[0].columns


def _item(item: Any, number: int, reader: Reader, sources: tuple[Source, ...]) -> tuple[str, Callable[[], Value]]:
    if kind(item) == "Alias":
        only(item, "this", "alias")
        name, inner = _key(reader.engine, item.args["alias"]), item.this
    elif kind(item) == "Column":
        name, inner = _key(reader.engine, item.this), item
    else:
        name, inner = f"{UNNAMED} {number}", item
    return name, cache(lambda: _item_value(inner, reader, sources))


def _item_value(node: Any, reader: Reader, sources: tuple[Source, ...]) -> Value:
    """An expression; one that looks things up by the ends of a single choice is worked out end by end."""
    look_up = _look_up(reader.engine, sources)
    scope = Scope(reader.engine, look_up, expression)
    if kind(node) in ("Column", "Identifier"):
        return look_up(node)
    subject = _looked_up_by(node, look_up)
    if subject is None:
        return expression(node, scope)
    name, choices = subject  # every place that spells the column so means it
    made: dict[Constant, Value] = {}
    typed: dict[int, frozenset[str]] = {}

    def answer(end: Value) -> Value:
        if not isinstance(end, Constant):
            raise Unread(f"{name[1]} is not one of a few constants")
        key = Constant(end.value, end.wide)
        if key not in made:
            here = Scope(reader.engine, lambda n: end if _spelled(n) == name else look_up(n), expression, typed)
            made[key] = expression(node, here)
        return made[key]

    return mapped(choices, answer)


def _looked_up_by(node: Any, look_up: Callable[[Any], Value]) -> tuple[Spelled, Pick] | None:
    """The one column of an expression that is a choice, where the expression asks for its value."""
    kinds = {kind(part) for part in node.walk()}
    if not kinds & {"Case", "Bracket", "Anonymous", "If"} or kinds & {"Exp", "DPipe", "Concat"}:
        return None
    found: dict[Spelled, Value] = {}
    for part in node.walk():
        if kind(part) == "Column" and (name := _spelled(part)) not in found:
            found[name] = look_up(part)
    choices = {name: value for name, value in found.items() if isinstance(value, Pick)}
    if len(choices) != 1:
        return None
    ((name, value),) = choices.items()
    listed = ends(value)
    if len(listed) > MOST_ENDS or not all(isinstance(end, Constant) for end in listed):
        return None
    return name, value


def _spelled(node: Any) -> Spelled:
    table = node.args.get("table") if kind(node) == "Column" else None
    identifier = node.this if kind(node) == "Column" else node
    return str(getattr(table, "this", "")), str(identifier.this), bool(identifier.args.get("quoted"))


def _look_up(engine: Engine, sources: tuple[Source, ...]) -> Callable[[Any], Value]:
    def look_up(node: Any) -> Value:
        table = None
        if kind(node) == "Column":
            only(node, "this", "table", "db", "_type")
            table = node.args.get("table")
            identifier = node.this
        else:
            identifier = node
        key = _key(engine, identifier)
        near = [source for source in sources if table is None or source.name == _key(engine, table)]
        found = [made for source in near if (made := source.column(key)) is not None]
        if len(found) > 1:  # a stage's own column comes before any column the table may have
            named = [source.columns[key] for source in near if key in source.columns]
            found = named if len(named) == 1 else found
        if len(found) != 1:
            refuse(node, "no column of this name, or more than one")
        return found[0]()

    return look_up


def _refuse_shadows(
    node: Any, engine: Engine, columns: Mapping[str, Callable[[], Value]], sources: tuple[Source, ...]
) -> None:
    """ClickHouse takes a name for an alias of the same SELECT first: refused where that would be another value."""
    if not engine.aliases_first:
        return
    aliased = {_key(engine, item.args["alias"]) for item in node.expressions if kind(item) == "Alias"}
    for item in node.expressions:
        own = _key(engine, item.args["alias"]) if kind(item) == "Alias" else None
        for part in item.walk():
            if kind(part) != "Column" or (name := _key(engine, part.this)) not in aliased or name == own:
                continue
            value = _look_up(engine, sources)(part)
            if isinstance(value, Other) or columns[name]() != value:
                refuse(item, f"{name} is a column and an alias of the same SELECT")
