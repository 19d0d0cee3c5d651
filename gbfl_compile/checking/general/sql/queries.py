"""Queries as stages: each SELECT gives its columns a meaning in terms of the one before, down to the table's columns.

Every column of every stage is read, wanted or not. One that is not understood is passed over only where each of its
nodes is known to give one value for one row. What could drop, double or merge rows (WHERE, joins, DISTINCT, LIMIT) is
refused in a text that should answer every row, and noted where the caller states it beside the verdict (`tables`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from gbfl_compile.checking.general.sql.engines import Engine
from gbfl_compile.checking.general.sql.expressions import expression
from gbfl_compile.checking.general.sql.frames import (
    Frame,
    OfFeatures,
    Reader,
    Stages,
    alias_of,
    canonical,
    clause_of,
    has_rows_of_its_own,
    is_harmless,
    is_opaque,
    name_key,
    rename_columns,
    scope_of,
    with_notes,
)
from gbfl_compile.checking.general.sql.joins import filter_frames, frames_of, limits_of, refuse_limits, values_of_rows
from gbfl_compile.checking.general.sql.merging import asks_one_row, merged_frame, numbered_frames
from gbfl_compile.checking.general.sql.parsing import ParsedNode, Scope, kind, only, refuse, snippet
from gbfl_compile.checking.general.sql.relations import (
    MOST_BRANCHES,
    Branch,
    Columns,
    Relation,
    side_by_side,
)
from gbfl_compile.checking.general.sql.values import Column, Constant, Other, Value, Word
from gbfl_compile.checking.reading.nodes import Unread

ALIASES_WITHIN = {"duckdb", "clickhouse", "snowflake", "redshift", "databricks", "spark"}
"""Engines in which an item of a SELECT list may name an alias before it in the same list."""

UNNAMED = "\0 column"
"""What a column without a name is called here; no engine takes such a name."""

KEEPING_ROWS = ("expressions", "from_", "from", "with_", "with", "limit", "offset")
CHANGING_ROWS = ("joins", "where", "group", "having", "qualify", "distinct", "order", "windows", "kind", "hint")


def query_relation(node: Any, reader: Reader, known: Stages, outer: Frame | None = None) -> Relation:
    """What a query gives, each of its columns read."""
    while kind(node) in ("Subquery", "Paren"):
        only(node, "this", "alias")
        node = node.this
    if kind(node) == "Union" and reader.tables is not None:
        return _union(node, reader, known, outer)
    if kind(node) == "Values" and reader.tables is not None:
        return values_of_rows(node, reader)
    if kind(node) != "Select":
        refuse(node, f"{kind(node)} is not understood")
    if reader.tables is None:
        only(node, *KEEPING_ROWS)
        refuse_limits(node, reader.engine)
    only(node, *KEEPING_ROWS, *CHANGING_ROWS)
    known = _with_stages(node, reader, known)
    frames, below = frames_of(node, reader, known, outer)
    frames, below = filter_frames(node, reader, known, frames, below)
    if reader.tables is not None:
        merged = merged_frame(node, reader, known, frames, below)
        if merged is not None:
            frames = [merged]
        elif node.args.get("group") is not None or any(_aggregates(item, reader.engine) for item in node.expressions):
            below = replace(below, loose=True)
        else:
            frames = numbered_frames(node, reader, known, frames, below)
    branches = []
    for frame in frames:
        columns, rest = _select(node, reader, known, frame)
        branches.append(Branch(frame.holds, columns))
        below = replace(below, rest=rest)
    if not branches:
        refuse(node, "gives no rows at all")
    return replace(below, branches=tuple(branches), spelled="")


def _union(node: Any, reader: Reader, known: Stages, outer: Frame | None) -> Relation:
    only(node, "this", "expression", "distinct", "order", "limit", "offset", "with_", "with")
    known = _with_stages(node, reader, known)
    left = query_relation(node.this, reader, known, outer)
    right = query_relation(node.args["expression"], reader, known, outer)
    both_ = side_by_side(left, right)
    if len(both_.branches) > MOST_BRANCHES:
        refuse(node, "a UNION of too many rows")
    return with_notes(
        replace(both_, loose=both_.loose or bool(node.args.get("distinct")) or bool(limits_of(node, reader))),
        *(["UNION, which merges equal rows"] if node.args.get("distinct") else []),
        *limits_of(node, reader),
    )


def _with_stages(node: Any, reader: Reader, known: Stages) -> Stages:
    stages = clause_of(node, "with")
    if stages is None:
        return known
    only(stages, "expressions")
    aliases = [alias_of(stage.args["alias"], reader.engine) for stage in stages.expressions]
    found = {**known, **dict.fromkeys(name or "" for name, _ in aliases)}
    for stage, (name, names) in zip(stages.expressions, aliases, strict=True):
        only(stage, "this", "alias", "materialized")
        if found[name or ""] is not None:
            refuse(stage, "two stages have this name")
        if name in known:  # MariaDB takes the outer one
            refuse(stage, f"a stage that hides another one called {name}")
        columns = rename_columns(stage, query_relation(stage.this, reader, found), names)
        found[name or ""] = replace(columns, spelled=str(stage.args["alias"].this.this))
    return found


def _select(node: Any, reader: Reader, known: Stages, frame: Frame) -> tuple[Columns, Callable[[str], Value] | None]:
    """The columns of a SELECT list, and the columns that a star passes on and nobody has listed."""
    columns: dict[str, Value | Unread] = {}
    rest: Callable[[str], Value] | None = None
    groups = _group_check(node, reader, frame.aggregate is not None)
    for number, item in enumerate(node.expressions):
        if kind(item) == "Star" or (kind(item) == "Column" and kind(item.this) == "Star"):
            if (merged := groups(item)) is not None:
                raise merged
            brought, open_ = _star(item, reader, known, frame)
            rest = open_ or rest
        else:
            brought = dict([_item(item, number, reader, known, frame, columns, groups)])
        if repeated := brought.keys() & columns.keys():
            refuse(item, f"brings the column {min(repeated)!r}, which is there already")
        columns.update(brought)
    _refuse_shadows(node, reader.engine, columns, frame)
    if rest is not None:
        _refuse_covered(node, columns, rest)
    return columns, rest


def _refuse_covered(node: Any, columns: Columns, rest: Callable[[str], Value]) -> None:
    """A star and an alias that is the name of a feature: two columns have that name."""
    for name, value in columns.items():
        if isinstance(rest(name), Column | Word) and value != rest(name):
            refuse(node, f"brings the column {name!r}, which is there already")


def _star(item: Any, reader: Reader, known: Stages, frame: Frame) -> tuple[Columns, Callable[[str], Value] | None]:
    star = item if kind(item) == "Star" else item.this
    only(star, *(("except_", "except", "replace") if reader.tables is not None else ()))
    table = None if kind(item) == "Star" else name_key(reader.engine, item.args["table"])
    chosen = [source for source in frame.sources if table is None or source[0] == table]
    rests = [rest for _, _, rest in chosen if rest is not None]
    if reader.tables is None and rests:
        refuse(item, "all columns of a table")
    if not chosen or len(rests) > 1 or (rests and star.args.get("replace")):
        refuse(item, "all columns of a table whose columns are not known")
    left_out = {
        name_key(reader.engine, each.this if kind(each) == "Column" else each)
        for each in clause_of(star, "except") or []
    }
    brought: dict[str, Value | Unread] = {}
    for _, columns, _ in chosen:
        for name, value in columns.items():
            if name in brought and not (table is None and name in frame.merged):
                refuse(item, f"brings the column {name!r} twice")
            brought.setdefault(name, value)
    for each in star.args.get("replace") or []:
        name = name_key(reader.engine, each.args["alias"])
        brought[name] = _read_item(each.this, reader, scope_of(reader, known, frame))
    return {name: value for name, value in brought.items() if name not in left_out}, rests[0] if rests else None


def _item(
    item: Any,
    number: int,
    reader: Reader,
    known: Stages,
    frame: Frame,
    before: Mapping[str, Value | Unread],
    groups: Callable[[Any], Unread | None],
) -> tuple[str, Value | Unread]:
    if kind(item) == "Alias":
        only(item, "this", "alias")
        name, inner = name_key(reader.engine, item.args["alias"]), item.this
    elif kind(item) == "Column":
        name, inner = name_key(reader.engine, item.this), item
    else:
        name, inner = f"{UNNAMED} {number}", item
    if (merged := groups(inner)) is not None:
        return name, merged
    aliases = before if reader.tables is not None and reader.engine.name in ALIASES_WITHIN else {}
    return name, _read_item(inner, reader, scope_of(reader, known, frame, aliases))


def _read_item(inner: Any, reader: Reader, scope: Scope) -> Value | Unread:
    try:
        return expression(inner, scope)
    except Unread as error:
        allowed = is_harmless(inner) if reader.tables is None else not has_rows_of_its_own(inner)
        if not allowed:
            raise
        is_window = kind(inner) == "Window"
        return OfFeatures(str(error)) if reader.tables is not None and not is_window and _asks(inner, scope) else error


def _asks(inner: Any, scope: Scope) -> bool:
    """Whether an expression that is not understood may depend on a feature."""
    for part in inner.walk():
        if kind(part) == "Column" and kind(part.this) == "Identifier":
            try:
                value: Value | Unread = scope.look_up(part)
            except Unread as error:
                value = error
            if not isinstance(value, Other | Constant) and (isinstance(value, ParsedNode) or not is_opaque(value)):
                return True
    return False


def _group_check(node: Any, reader: Reader, is_merged: bool = False) -> Callable[[Any], Unread | None]:
    """Why an item of a SELECT that merges rows is not a value of one row; None where it is."""
    group = node.args.get("group")
    keys: set[str] = set()
    several = bool(node.args.get("joins"))
    order = node.args.get("order")
    ordered = [] if order is None else [order]
    has_aggregate = any(_aggregates(item, reader.engine) for item in (*node.expressions, *ordered))
    if reader.tables is None or (group is None and not has_aggregate):
        return lambda inner: None
    if group is not None:
        only(group, "expressions")
        for each in group.expressions:
            if kind(each) == "Literal" and str(each.this).isdigit() and int(each.this) <= len(node.expressions):
                each = node.expressions[int(each.this) - 1].unalias()
            keys.add(canonical(each, reader.engine, several))

    def why_merged(inner: Any) -> Unread | None:
        if is_merged and asks_one_row(inner, keys, reader, several):
            return None
        if _aggregates(inner, reader.engine):
            return Unread(f"it is computed from several rows: {snippet(inner)}")
        if canonical(inner, reader.engine, several) in keys:
            return None
        columns = [part for part in inner.walk() if kind(part) in ("Column", "Star")]
        loose = [part for part in columns if canonical(part, reader.engine, several) not in keys]
        return Unread(f"it is one of several rows' values: {snippet(inner)}") if loose else None

    return why_merged


def _aggregates(node: Any, engine: Engine) -> bool:
    """Whether an expression merges rows. In SQLite and MariaDB an aggregate within an inner query may merge the outer
    rows, unless its columns are those of a table that the inner query names.
    """
    from sqlglot import exp

    def is_inner(part: Any) -> bool:
        query = part.find_ancestor(exp.Select)
        if query is None or not any(each is query for each in within):
            return False
        named = {each.alias_or_name for each in query.find_all(exp.Table)}
        is_own = bool(named) and all(column.table in named for column in part.find_all(exp.Column))
        return is_own or engine.parsed_as not in ("sqlite", "mysql")

    within = list(node.find_all(exp.Select))
    return any(
        isinstance(part, exp.AggFunc) and not isinstance(part.parent, exp.Window) and not is_inner(part)
        for part in node.walk()
    )


def refuse_inner_aliases(node: Any, engine: Engine) -> None:
    """Refuse an alias within an expression, as in `id + (0 AS income)`: to ClickHouse it is a name in all the query."""
    for part in node.walk() if engine.aliases_first else ():
        if kind(part) == "Alias" and (kind(part.parent), part.arg_key) not in (
            ("Select", "expressions"),
            ("Star", "replace"),
        ):
            refuse(part, "an alias within an expression")


def _refuse_shadows(node: Any, engine: Engine, columns: Columns, frame: Frame) -> None:
    """ClickHouse takes a name for an alias of the same SELECT first: refused where that would be another value."""
    if not engine.aliases_first:
        return
    aliased = {name_key(engine, item.args["alias"]) for item in node.expressions if kind(item) == "Alias"}
    clauses = [part for part in map(node.args.get, ("where", "having", "qualify", "group")) if part is not None]
    clauses += [join.args["on"] for join in node.args.get("joins") or [] if join.args.get("on") is not None]
    for item in (*node.expressions, *clauses):
        own = name_key(engine, item.args["alias"]) if kind(item) == "Alias" else None
        for part in item.walk():
            if kind(part) != "Column" or kind(part.this) == "Star":
                continue
            if (name := name_key(engine, part.this)) not in aliased or name == own:
                continue
            values = frame.find(None, name)
            if values and any(isinstance(value, Other | Unread) or columns[name] != value for value in values):
                refuse(item, f"{name} is a column and an alias of the same SELECT")
