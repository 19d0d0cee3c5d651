"""Queries as stages: each SELECT gives its columns a meaning in terms of the one before, down to the table's columns.

Every column of every stage is read, wanted or not. One that is not understood is passed over only where each of its
nodes is known to keep rows as they are. A query that could drop, double or mix rows (WHERE, joins, DISTINCT, a true
LIMIT, a function that returns rows) is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from gbfl_compile.checking.general.sql.engines import Engine
from gbfl_compile.checking.general.sql.expressions import expression
from gbfl_compile.checking.general.sql.parsing import Scope, folded_name, kind, only, refuse
from gbfl_compile.checking.general.sql.types import is_known_type
from gbfl_compile.checking.general.sql.values import Other, Value
from gbfl_compile.checking.reading.nodes import Unread

UNLIMITED = {"sqlite": "-1", "mariadb": "18446744073709551615", "mysql": "18446744073709551615"}
"""The LIMIT that limits nothing: it keeps an engine from merging a stage into the next."""

CASE_OF_TABLES = {"mysql", "tsql"}
"""Engines that tell `data` from `DATA` where they are tables, and the server or its collation says so."""

UNNAMED = "\0 column"
"""What a column without a name is called here; no engine takes such a name."""

HARMLESS = {
    *("Column", "Identifier", "Literal", "National", "Null", "Boolean", "Paren"),
    *("Case", "If", "Coalesce", "Nullif", "Cast", "TryCast", "DataType", "DataTypeParam"),
    *("And", "Or", "Not", "EQ", "NEQ", "GT", "GTE", "LT", "LTE", "Between", "In", "Is"),
    *("Add", "Sub", "Mul", "Div", "Neg", "DPipe", "Concat", "Upper", "Lower", "Abs", "Round"),
}
"""Nodes that give one value for one row, whatever they are made of."""

HARMLESS_PARTS = {
    *("this", "expression", "expressions", "ifs", "default", "true", "low", "high", "to", "table", "quoted"),
    *("is_string", "is_nvl", "safe", "coalesce", "typed", "negate", "decimals", "nested", "nullable", "_type"),
}
"""What such a node may carry."""

Columns: TypeAlias = Mapping[str, Value | Unread]
"""The columns of a stage: what each one is or, of one that is harmless and not understood, why not."""


@dataclass(frozen=True, slots=True)
class Source:
    """Something to select from: its name, and what its columns are."""

    name: str | None
    columns: Columns
    table: Callable[[str], Value] | None = None
    """The table itself: any column of it."""
    spelled: str = ""
    """The name of a stage as it is written."""

    def column(self, key: str) -> Value | Unread | None:
        """The column of this name, or None."""
        if key in self.columns:
            return self.columns[key]
        return None if self.table is None else self.table(key)


Stages: TypeAlias = Mapping[str, Source | None]
"""The stages that a FROM may name; None for one that is defined further on."""


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


def query_columns(node: Any, reader: Reader, known: Stages) -> Columns:
    """The columns of a query, each of them read."""
    while kind(node) in ("Subquery", "Paren"):
        only(node, "this", "alias")
        node = node.this
    if kind(node) != "Select":
        refuse(node, f"{kind(node)} is not understood")
    only(node, "expressions", "from_", "from", "with_", "with", "limit", "offset")
    _refuse_limits(node, reader.engine)
    start = _clause(node, "from")
    if start is None:
        refuse(node, "a query without a table")
    only(start, "this")
    source = _source(start.this, reader, _with_stages(node, reader, known))
    columns: dict[str, Value | Unread] = {}
    for number, item in enumerate(node.expressions):
        brought = _star(item, source) if kind(item) == "Star" else dict([_item(item, number, reader, source)])
        if repeated := brought.keys() & columns.keys():
            refuse(item, f"brings the column {min(repeated)!r}, which is there already")
        columns.update(brought)
    _refuse_shadows(node, reader.engine, columns, source)
    return columns


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


def _with_stages(node: Any, reader: Reader, known: Stages) -> Stages:
    stages = _clause(node, "with")
    if stages is None:
        return known
    only(stages, "expressions")
    aliases = [_alias(stage.args["alias"], reader.engine) for stage in stages.expressions]
    found = {**known, **dict.fromkeys(name or "" for name, _ in aliases)}
    for stage, (name, names) in zip(stages.expressions, aliases, strict=True):
        only(stage, "this", "alias", "materialized")
        if found[name or ""] is not None:
            refuse(stage, "two stages have this name")
        columns = _rename(stage, query_columns(stage.this, reader, found), names)
        found[name or ""] = Source(name, columns, None, str(stage.args["alias"].this.this))
    return found


def _alias(alias: Any, engine: Engine) -> tuple[str | None, list[str]]:
    if alias is None:
        return None, []
    only(alias, "this", "columns")
    return _key(engine, alias.this), [_key(engine, column) for column in alias.args.get("columns") or []]


def _rename(node: Any, columns: Columns, names: list[str]) -> Columns:
    if not names:
        return columns
    if len(names) != len(columns) or len(set(names)) != len(names):
        refuse(node, "does not have one name per column")
    return dict(zip(names, columns.values(), strict=True))


def _source(node: Any, reader: Reader, known: Stages) -> Source:
    engine = reader.engine
    name, names = _alias(node.args.get("alias"), engine)
    if kind(node) == "Subquery":
        only(node, "this", "alias")
        return Source(name, _rename(node, query_columns(node.this, reader, known), names))
    if kind(node) != "Table":
        refuse(node, f"selects from {kind(node)}")
    only(node, "this", "db", "catalog", "alias")
    own = _key(engine, node.this)
    if own in known and not node.args.get("db"):
        found = known[own]
        if found is None:
            refuse(node, "a stage, or a table: it is named before the stage of this name is defined")
        if engine.name in CASE_OF_TABLES and found.spelled != str(node.this.this):
            refuse(node, f"the stage {found.spelled}, or a table: {engine.name} may tell the two apart by their case")
        return Source(name or own, _rename(node, found.columns, names))
    if names:
        refuse(node, "a table's columns renamed")
    return Source(name or own, {}, reader.table)


def _star(item: Any, source: Source) -> Columns:
    if source.table is not None:
        refuse(item, "all columns of a table")
    only(item)
    return source.columns


def _item(item: Any, number: int, reader: Reader, source: Source) -> tuple[str, Value | Unread]:
    if kind(item) == "Alias":
        only(item, "this", "alias")
        name, inner = _key(reader.engine, item.args["alias"]), item.this
    elif kind(item) == "Column":
        name, inner = _key(reader.engine, item.this), item
    else:
        name, inner = f"{UNNAMED} {number}", item
    try:
        return name, expression(inner, Scope(reader.engine, _look_up(reader.engine, source), expression))
    except Unread as error:
        if not _is_harmless(inner, reader.engine):
            raise
        return name, error


def _is_harmless(node: Any, engine: Engine) -> bool:
    """Whether an expression gives one value for one row, by an allow-list of what it is made of."""
    for part in node.walk():
        if kind(part) not in HARMLESS or (kind(part) == "If" and kind(part.parent) != "Case"):
            return False
        if any(value not in (None, False, [], ()) for name, value in part.args.items() if name not in HARMLESS_PARTS):
            return False
        if kind(part) == "DataType" and not is_known_type(part):
            return False
    return True


def _look_up(engine: Engine, source: Source) -> Callable[[Any], Value]:
    def look_up(node: Any) -> Value:
        table, identifier = None, node
        if kind(node) == "Column":
            only(node, "this", "table", "db", "_type")
            table, identifier = node.args.get("table"), node.this
        found = source.column(_key(engine, identifier))
        if found is None or (table is not None and source.name != _key(engine, table)):
            refuse(node, "no column of this name")
        if isinstance(found, Unread):
            raise found
        return found

    return look_up


def _refuse_shadows(node: Any, engine: Engine, columns: Columns, source: Source) -> None:
    """ClickHouse takes a name for an alias of the same SELECT first: refused where that would be another value."""
    if not engine.aliases_first:
        return
    aliased = {_key(engine, item.args["alias"]) for item in node.expressions if kind(item) == "Alias"}
    for item in node.expressions:
        own = _key(engine, item.args["alias"]) if kind(item) == "Alias" else None
        for part in item.walk():
            if kind(part) != "Column" or (name := _key(engine, part.this)) not in aliased or name == own:
                continue
            value = source.column(name)
            if isinstance(value, Other | Unread) or value is None or columns[name] != value:
                refuse(item, f"{name} is a column and an alias of the same SELECT")
