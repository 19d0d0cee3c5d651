"""Queries as stages: each SELECT gives its columns a meaning in terms of the one before, down to the table's columns.

Every column of every stage is read, wanted or not. One that is not understood is passed over only where each of its
nodes is known to give one value for one row. What could drop, double or merge rows (WHERE, joins, DISTINCT, LIMIT) is
refused in a text that should answer every row, and noted where the caller states it beside the verdict (`tables`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from gbfl_compile.checking.general.sql.engines import Engine
from gbfl_compile.checking.general.sql.expressions import expression
from gbfl_compile.checking.general.sql.harmless import OfFeatures, has_rows_of_its_own, is_harmless, is_opaque
from gbfl_compile.checking.general.sql.logic import FALSE, TRUE, Formula, both, either, opposite
from gbfl_compile.checking.general.sql.parsing import Scope, folded_name, kind, only, operands, refuse, snippet
from gbfl_compile.checking.general.sql.relations import (
    MOST_BRANCHES,
    Branch,
    Columns,
    KnownTable,
    Relation,
    Tables,
    are_apart,
    constant_rows,
    side_by_side,
)
from gbfl_compile.checking.general.sql.comparisons import condition
from gbfl_compile.checking.general.sql.values import USES, Column, Constant, Other, Value, pick
from gbfl_compile.checking.reading.nodes import Unread

UNLIMITED = {"sqlite": "-1", "mariadb": "18446744073709551615", "mysql": "18446744073709551615"}
"""The LIMIT that limits nothing: it keeps an engine from merging a stage into the next."""

CASE_OF_TABLES = {"mysql", "tsql"}
"""Engines that tell `data` from `DATA` where they are tables, and the server or its collation says so."""

ALIASES_WITHIN = {"duckdb", "clickhouse", "snowflake", "redshift", "databricks", "spark"}
"""Engines in which an item of a SELECT list may name an alias before it in the same list."""

UNNAMED = "\0 column"
"""What a column without a name is called here; no engine takes such a name."""

KEEPING_ROWS = ("expressions", "from_", "from", "with_", "with", "limit", "offset")
CHANGING_ROWS = ("joins", "where", "group", "having", "qualify", "distinct", "order", "windows", "kind", "hint")

Stages: TypeAlias = Mapping[str, Relation | None]
"""The stages that a FROM may name; None for one that is defined further on."""


@dataclass(frozen=True, slots=True)
class Reader:
    """What all stages of a query share."""

    engine: Engine
    table: Callable[[str], Value]
    """What a column of the table is, by its folded name."""
    tables: Tables | None = None
    """What each table is, where several may be read and rows may be left out."""
    read_view: Callable[[KnownTable, Reader], Relation] | None = None
    expressions: Mapping[str, int] = field(default_factory=dict)
    """Expressions that are features, in their canonical form."""
    views: tuple[str, ...] = ()
    """The views that are being read, the outermost first."""
    constants: bool = True
    """Whether small tables without features are read as the rows they hold now."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows that a SELECT works on, one branch of each thing it selects from."""

    holds: Formula
    sources: tuple[tuple[str | None, Columns, Callable[[str], Value] | None], ...]
    merged: frozenset[str] = frozenset()
    """Columns that USING made one of two."""
    outer: Frame | None = None

    def find(self, table: str | None, name: str) -> list[Value | Unread]:
        """What a name can mean here; the nearest query that knows it decides."""
        named = [each for each in self.sources if table is None or each[0] == table]
        found = [columns[name] for _, columns, _ in named if name in columns]
        if not found:
            rests = [rest for _, columns, rest in named if rest is not None]
            found = [rest(name) for rest in rests[:1]] if table is not None or rests else []
        if not found and self.outer is not None:
            return self.outer.find(table, name)
        return found[:1] if table is None and name in self.merged else found

    def lists(self, name: str) -> bool:
        """Whether a column of this name is known to be there."""
        return any(name in columns for _, columns, _ in self.sources) or (
            self.outer is not None and self.outer.lists(name)
        )


def _key(engine: Engine, identifier: Any) -> str:
    if kind(identifier) != "Identifier":
        refuse(identifier, "is not a name")
    return folded_name(engine, str(identifier.this), bool(identifier.args.get("quoted")))


def _clause(node: Any, name: str) -> Any:
    """FROM and WITH were called otherwise in older versions of sqlglot."""
    return node.args.get(f"{name}_") or node.args.get(name)


def query_relation(node: Any, reader: Reader, known: Stages, outer: Frame | None = None) -> Relation:
    """What a query gives, each of its columns read."""
    while kind(node) in ("Subquery", "Paren"):
        only(node, "this", "alias")
        node = node.this
    if kind(node) == "Union" and reader.tables is not None:
        return _union(node, reader, known, outer)
    if kind(node) == "Values" and reader.tables is not None:
        return _values(node, reader)
    if kind(node) != "Select":
        refuse(node, f"{kind(node)} is not understood")
    if reader.tables is None:
        only(node, *KEEPING_ROWS)
        _refuse_limits(node, reader.engine)
    only(node, *KEEPING_ROWS, *CHANGING_ROWS)
    known = _with_stages(node, reader, known)
    frames, below = _from(node, reader, known, outer)
    frames, below = _filter(node, reader, known, frames, below)
    branches = []
    for frame in frames:
        columns, rest = _select(node, reader, known, frame)
        branches.append(Branch(frame.holds, columns))
        below = replace(below, rest=rest)
    if not branches:
        refuse(node, "gives no rows at all")
    return replace(below, branches=tuple(branches), spelled="")


def _note(below: Relation, *words: str) -> Relation:
    return replace(below, notes=tuple(dict.fromkeys((*below.notes, *words))))


def _words(node: Any, reader: Reader, opening: str = "") -> str:
    try:
        text = " ".join(str(node.sql(dialect=reader.engine.parsed_as)).split())
    except Exception:  # a node may not be writable again
        text = snippet(node)
    text = f"{opening}{text}"
    return text if len(text) <= 160 else f"{text[:157]}..."


def _union(node: Any, reader: Reader, known: Stages, outer: Frame | None) -> Relation:
    only(node, "this", "expression", "distinct", "order", "limit", "offset", "with_", "with")
    known = _with_stages(node, reader, known)
    left = query_relation(node.this, reader, known, outer)
    right = query_relation(node.args["expression"], reader, known, outer)
    both_ = side_by_side(left, right)
    if len(both_.branches) > MOST_BRANCHES:
        refuse(node, "a UNION of too many rows")
    return _note(
        both_, *(["UNION, which merges equal rows"] if node.args.get("distinct") else []), *_limits(node, reader)
    )


def _values(node: Any, reader: Reader) -> Relation:
    only(node, "expressions", "alias")
    names = _alias(node.args.get("alias"), reader.engine)[1]
    scope = Scope(reader.engine, lambda each: refuse(each, "a column within VALUES"), expression)
    rows = [[expression(item, scope) for item in row.expressions] for row in node.expressions]
    listed = names or [f"column{place + 1}" for place in range(len(rows[0]))]
    if any(len(row) != len(listed) for row in rows):
        refuse(node, "rows of different lengths")
    return constant_rows(listed, rows)


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


def _limits(node: Any, reader: Reader) -> list[str]:
    try:
        _refuse_limits(node, reader.engine)
    except Unread:
        return [_words(node.args[part], reader) for part in ("limit", "offset") if node.args.get(part) is not None]
    return []


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
        columns = _rename(stage, query_relation(stage.this, reader, found), names)
        found[name or ""] = replace(columns, spelled=str(stage.args["alias"].this.this))
    return found


def _alias(alias: Any, engine: Engine) -> tuple[str | None, list[str]]:
    if alias is None:
        return None, []
    only(alias, "this", "columns")
    name = None if alias.this is None else _key(engine, alias.this)
    return name, [_key(engine, column) for column in alias.args.get("columns") or []]


def _rename(node: Any, relation: Relation, names: list[str]) -> Relation:
    try:
        return relation.renamed(names)
    except Unread as error:
        refuse(node, str(error))


def _from(node: Any, reader: Reader, known: Stages, outer: Frame | None) -> tuple[list[Frame], Relation]:
    """The rows that a SELECT works on, and the tables and notes that come with them."""
    start = _clause(node, "from")
    below = Relation(())
    if start is None:
        if reader.tables is None:
            refuse(node, "a query without a table")
        return [Frame(TRUE, (), outer=outer)], below
    only(start, "this")
    frames = [Frame(TRUE, (), outer=outer)]
    for first, joins in _places(start.this, node):
        for place, join in ((first, None), *((join.this, join) for join in joins)):
            frames, below = _join(place, join, reader, known, frames, below)
    return frames, below


def _places(first: Any, node: Any) -> Iterator[tuple[Any, list[Any]]]:
    """What stands in a FROM, with joins in brackets taken out of them: (a JOIN b ON …)."""
    joins = list(node.args.get("joins") or []) if kind(node) == "Select" else []
    while (
        kind(first) in ("Subquery", "Paren")
        and kind(first.this) in ("Table", "Subquery")
        and not first.args.get("alias")
    ):
        inner = first.this
        joins = [*(inner.args.get("joins") or []), *(first.args.get("joins") or []), *joins]
        first = inner
    yield first, joins


def _join(
    place: Any, join: Any, reader: Reader, known: Stages, frames: list[Frame], below: Relation
) -> tuple[list[Frame], Relation]:
    """The frames with one more thing to select from."""
    if join is not None:
        only(join, "this", "side", "kind", "on", "using", "method")
    side, sort = ((join.side or "").upper(), (join.kind or "").upper()) if join is not None else ("", "")
    if join is not None and (side not in ("", "LEFT", "RIGHT", "FULL") or sort not in ("", "INNER", "OUTER", "CROSS")):
        refuse(join, "a join that is not understood")
    if join is not None and join.args.get("method"):
        refuse(join, f"{join.args['method']} JOIN: name the columns")
    if kind(place) == "Lateral":
        return _lateral(place, reader, known, frames, below)
    name, right = _source(place, reader, known)
    is_shared = bool(below.tables & right.tables)
    test, using = (join.args.get("on"), join.args.get("using") or []) if join is not None else (None, [])
    merged = frozenset(_key(reader.engine, each) for each in using)
    is_key_join = is_shared and _is_on_a_key(test, merged, reader)
    if is_shared and not is_key_join:
        right = right.without_features()
    always = side == "LEFT" and is_key_join and not right.notes and right.holds() is TRUE
    notes = (
        [] if join is None or _is_one_row(right, test, using) or always else [_join_words(join, reader, is_key_join)]
    )
    combined = _note(
        replace(
            below,
            tables=below.tables | right.tables,
            notes=tuple(dict.fromkeys((*below.notes, *right.notes))),
            unclear=below.unclear or right.unclear,
        ),
        *notes,
    )
    if side in ("RIGHT", "FULL"):
        frames = [replace(each, sources=tuple(_null_side(source) for source in each.sources)) for each in frames]
    joined: list[Frame] = []
    for frame in frames:
        pairs = []
        for branch in right.branches:
            source = (name, branch.columns, right.rest)
            pair = replace(
                frame,
                holds=both((frame.holds, branch.holds)),
                sources=(*frame.sources, source),
                merged=frame.merged | merged,
            )
            pairs.append((pair, *_met(test, pair, reader, known)))
        joined += _pairs(frame, name, right, pairs, side, always)
    if len(joined) > MOST_BRANCHES:
        refuse(place, "a join of too many rows of constants")
    return joined, combined


def _join_words(join: Any, reader: Reader, is_key_join: bool) -> str:
    words = _words(join, reader).lstrip(", ")
    words = words if "JOIN" in words.upper() else f"CROSS JOIN {words}"
    return f"{words} (the same table: one row for each key is assumed)" if is_key_join else words


def _is_one_row(right: Relation, test: Any, using: Sequence[Any]) -> bool:
    """Whether the join brings exactly one row to every row."""
    return not right.tables and len(right.branches) == 1 and right.holds() is TRUE and test is None and not using


def _null_side(source: tuple[str | None, Columns, Any]) -> tuple[str | None, Columns, Any]:
    name, columns, rest = source
    if rest is not None:
        inner = rest
        rest = lambda key: _outer_column(inner(key))  # noqa: E731 - one expression
    return name, Relation((Branch(TRUE, columns),)).or_null().branches[0].columns, rest


def _outer_column(value: Value) -> Value:
    return Column(value.feature, value.cast, True) if isinstance(value, Column) else value


def _pairs(
    frame: Frame,
    name: str | None,
    right: Relation,
    pairs: list[tuple[Frame, Formula, bool]],
    side: str,
    always: bool,
) -> Iterator[Frame]:
    """The frames that a join makes of one frame; `pairs` are it with each row of the right, and when that one meets."""
    is_outer = side in ("LEFT", "FULL") and not always
    is_open = any(opaque for _, _, opaque in pairs)
    if is_open and len(pairs) > 1:
        raise Unread("rows of constants that are joined by a condition that is not understood")
    if not is_outer:
        yield from (replace(pair, holds=both((pair.holds, meets))) for pair, meets, _ in pairs)
        return
    if is_open or right.tables or right.rest is not None:
        source = _null_side(pairs[0][0].sources[-1])
        yield replace(frame, sources=(*frame.sources, source), merged=pairs[0][0].merged)
        return
    yield from (replace(pair, holds=both((pair.holds, meets))) for pair, meets, _ in pairs)
    missed = opposite(
        either(both((branch.holds, meets)) for branch, (_, meets, _) in zip(right.branches, pairs, strict=True))
    )
    nothing = dict.fromkeys(right.names(), Constant(None))
    source = (name, nothing, None)
    yield replace(frame, holds=both((frame.holds, missed)), sources=(*frame.sources, source))


def _met(test: Any, frame: Frame, reader: Reader, known: Stages) -> tuple[Formula, bool]:
    """When a join's condition holds, and whether part of it is not understood."""
    if test is None:
        return TRUE, False
    holds, others = _conditions(test, frame, reader, known)
    return holds, bool(others)


def _is_on_a_key(test: Any, merged: frozenset[str], reader: Reader) -> bool:
    """Whether the condition of a join is that one column of both sides is equal: ON a.id = b.id, USING (id)."""
    if test is None:
        return len(merged) == 1
    while kind(test) == "Paren":
        test = test.this
    if kind(test) != "EQ" or {kind(test.this), kind(test.expression)} != {"Column"}:
        return False
    return _key(reader.engine, test.this.this) == _key(reader.engine, test.expression.this)


def _lateral(
    place: Any, reader: Reader, known: Stages, frames: list[Frame], below: Relation
) -> tuple[list[Frame], Relation]:
    """LATERAL (SELECT …) and CROSS APPLY (SELECT …): a query for each row."""
    only(place, "this", "alias", "view", "outer", "cross_apply")
    name, names = _alias(place.args.get("alias"), reader.engine)
    made = []
    for frame in frames:
        inner = _rename(place, query_relation(place.this, reader, known, frame), names)
        if inner.tables or inner.notes or inner.rest is not None:
            refuse(place, "a query for each row that reads a table")
        for branch in inner.branches:
            holds = both((frame.holds, branch.holds))
            made.append(replace(frame, holds=holds, sources=(*frame.sources, (name, branch.columns, None))))
    return made, below


def _source(node: Any, reader: Reader, known: Stages) -> tuple[str | None, Relation]:
    engine = reader.engine
    name, names = _alias(node.args.get("alias"), engine)
    if kind(node) == "Subquery":
        only(node, "this", "alias", "joins")
        return name, _rename(node, query_relation(node.this, reader, known), names)
    if kind(node) == "Values" and reader.tables is not None:
        return name, _values(node, reader)
    if kind(node) != "Table":
        refuse(node, f"selects from {kind(node)}")
    is_open = reader.tables is not None
    only(node, "this", "db", "catalog", "alias", *(["joins", "hints"] if is_open else []))
    if is_open and kind(node.this) != "Identifier":
        return name, _table_function(node, reader)
    own = _key(engine, node.this)
    if own in known and not node.args.get("db"):
        found = known[own]
        if found is None:
            refuse(node, "a stage, or a table: it is named before the stage of this name is defined")
        if engine.name in CASE_OF_TABLES and found.spelled != str(node.this.this):
            refuse(node, f"the stage {found.spelled}, or a table: {engine.name} may tell the two apart by their case")
        return name or own, _rename(node, found, names)
    if names:
        refuse(node, "a table's columns renamed")
    if reader.tables is None:
        return name or own, Relation((Branch(TRUE, {}),), reader.table)
    return name or own, _table(node, reader, reader.tables)


def _table_function(node: Any, reader: Reader) -> Relation:
    if kind(node.this) not in ("ReadParquet", "ReadCSV"):
        refuse(node, "selects from a function")
    return Relation((Branch(TRUE, {}),), reader.table, frozenset([_words(node.this, reader)]))


def _table(node: Any, reader: Reader, tables: Tables) -> Relation:
    """A table or view of the database."""
    schema = node.args.get("db")
    if reader.engine.name == "oracle" and str(node.this.this).upper() == "DUAL":
        return Relation((Branch(TRUE, {}),))
    known = tables("" if schema is None else str(schema.this), str(node.this.this))
    if known.query is not None:
        if known.key in reader.views or reader.read_view is None:
            refuse(node, "a view that reads itself")
        return reader.read_view(known, replace(reader, views=(*reader.views, known.key)))
    if known.columns is None:
        return Relation((Branch(TRUE, {}),), reader.table, frozenset([known.key]))
    features, engine = known.features or {}, reader.engine
    keys = [folded_name(engine, column, quoted=True) for column in known.columns]
    if reader.constants and known.rows is not None and not features:
        rows = [[Constant(value) for value in row] for row in known.rows]
        if (uses := USES.get()) is not None:
            uses.constants[known.key] = f"{known.key} as it is now ({len(rows)} row{'s' if len(rows) != 1 else ''})"
        return constant_rows(keys, rows)
    columns: dict[str, Value | Unread] = {
        key: Column(features[column]) if column in features else Other(f"{known.key}.{column}")
        for key, column in zip(keys, known.columns, strict=True)
    }
    return Relation((Branch(TRUE, columns),), None, frozenset([known.key]))


def _filter(
    node: Any, reader: Reader, known: Stages, frames: list[Frame], below: Relation
) -> tuple[list[Frame], Relation]:
    """The frames that WHERE leaves, and what else drops or merges rows."""
    if reader.tables is None:
        return frames, below
    where = node.args.get("where")
    kept, words, unclear = [], [], below.unclear
    for frame in frames:
        holds, others = (TRUE, []) if where is None else _conditions(where.this, frame, reader, known)
        unclear = unclear or any(_asks_features(each, frame, reader) for each in others)
        if others and len(frames) > 1 and not below.tables:
            refuse(where, "a filter that is not understood on rows of constants")
        if (joined := both((frame.holds, holds))) is not FALSE:
            kept.append(replace(frame, holds=joined))
    if where is not None and (below.tables or below.rest is not None):
        words.append(_words(where, reader))
    for part in ("having", "qualify"):
        if (each := node.args.get(part)) is not None:
            words.append(_words(each, reader))
            unclear = unclear or any(_asks_features(each.this, frame, reader) for frame in frames)
    if (distinct := node.args.get("distinct")) is not None:
        words.append(_words(distinct, reader) if distinct.args.get("on") else "DISTINCT, which merges equal rows")
    if (group := node.args.get("group")) is not None:
        words.append(_words(group, reader))
    return kept, replace(_note(below, *words, *_limits(node, reader)), unclear=unclear)


def _conditions(test: Any, frame: Frame, reader: Reader, known: Stages) -> tuple[Formula, list[Any]]:
    """When the parts of a condition that are understood hold, and the other parts."""
    while kind(test) == "Paren":
        test = test.this
    parts = operands(test) if kind(test) == "And" else [test]
    formulas, others = [], []
    for part in parts:
        try:
            formulas.append(condition(part, _scope(reader, known, frame)).true)
        except Unread:
            others.append(part)
    return both(formulas), others


def _asks_features(node: Any, frame: Frame, reader: Reader) -> bool:
    """Whether a condition that is not understood may depend on a feature."""
    for part in node.walk():
        if kind(part) == "Column" and kind(part.this) == "Identifier":
            table = part.args.get("table")
            found = frame.find(None if table is None else _key(reader.engine, table), _key(reader.engine, part.this))
            if any(not isinstance(value, Other | Constant) and not is_opaque(value) for value in found):
                return True
    return False


def _scope(reader: Reader, known: Stages, frame: Frame, aliases: Mapping[str, Value | Unread] | None = None) -> Scope:
    return Scope(
        reader.engine,
        _look_up(reader.engine, frame, aliases or {}),
        expression,
        _stated(reader) if reader.expressions else lambda node, scope: None,
        None if reader.tables is None else lambda node: _scalar(node, reader, known, frame),
    )


def _stated(reader: Reader) -> Callable[[Any, Scope], Value | None]:
    """What an expression is said to be with --column FEATURE=expression."""

    def feature(node: Any, scope: Scope) -> Value | None:
        if kind(node) in ("Column", "Literal", "Identifier"):
            return None
        found = reader.expressions.get(canonical(node, reader.engine))
        return None if found is None else Column(found)

    return feature


def canonical(node: Any, engine: Engine) -> str:
    """An expression without what says nothing: brackets around names, tables before columns, case of plain names."""
    copy = node.copy()
    for part in list(copy.walk()):
        if kind(part) == "Column":
            for extra in ("table", "db", "catalog"):
                part.set(extra, None)
        if kind(part) == "Identifier":
            part.set("this", folded_name(engine, str(part.this), bool(part.args.get("quoted"))))
            part.set("quoted", False)
    while kind(copy) == "Paren":
        copy = copy.this
    for part in list(copy.walk()):
        if kind(part) == "Paren" and kind(part.this) in ("Column", "Literal", "Anonymous", "Coalesce", "Cast"):
            part.replace(part.this)
    return str(copy.sql(dialect=engine.parsed_as)).lower()


def _scalar(node: Any, reader: Reader, known: Stages, frame: Frame) -> Value:
    """A query in an expression: one column, and for each row one value, or NULL where there is none."""
    inner = query_relation(node, reader, known, frame)
    if inner.tables or inner.rest is not None or len(inner.names()) != 1:
        refuse(node, "a query within an expression, of other rows")
    if not are_apart(inner.branches):
        refuse(node, "a query within an expression, which may give several rows")
    value: Value = Constant(None)
    for place, branch in enumerate(reversed(inner.branches)):
        (own,) = branch.columns.values()
        if isinstance(own, Unread):
            raise own
        value = own if place == 0 and inner.holds() is TRUE else pick(branch.holds, own, value)
    return value


def _select(node: Any, reader: Reader, known: Stages, frame: Frame) -> tuple[Columns, Callable[[str], Value] | None]:
    """The columns of a SELECT list, and the columns that a star passes on and nobody has listed."""
    columns: dict[str, Value | Unread] = {}
    rest: Callable[[str], Value] | None = None
    groups = _grouped(node, reader)
    for number, item in enumerate(node.expressions):
        if kind(item) == "Star" or (kind(item) == "Column" and kind(item.this) == "Star"):
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
        if isinstance(rest(name), Column) and value != rest(name):
            refuse(node, f"brings the column {name!r}, which is there already")


def _star(item: Any, reader: Reader, known: Stages, frame: Frame) -> tuple[Columns, Callable[[str], Value] | None]:
    star = item if kind(item) == "Star" else item.this
    only(star, *(("except_", "except", "replace") if reader.tables is not None else ()))
    table = None if kind(item) == "Star" else _key(reader.engine, item.args["table"])
    chosen = [source for source in frame.sources if table is None or source[0] == table]
    rests = [rest for _, _, rest in chosen if rest is not None]
    if reader.tables is None and rests:
        refuse(item, "all columns of a table")
    if not chosen or len(rests) > 1 or (rests and (star.args.get("except_") or star.args.get("replace"))):
        refuse(item, "all columns of a table whose columns are not known")
    left_out = {
        _key(reader.engine, each.this if kind(each) == "Column" else each) for each in _clause(star, "except") or []
    }
    brought: dict[str, Value | Unread] = {}
    for _, columns, _ in chosen:
        for name, value in columns.items():
            if name in brought and not (table is None and name in frame.merged):
                refuse(item, f"brings the column {name!r} twice")
            brought.setdefault(name, value)
    for each in star.args.get("replace") or []:
        name = _key(reader.engine, each.args["alias"])
        brought[name] = _read_item(each.this, reader, _scope(reader, known, frame))
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
        name, inner = _key(reader.engine, item.args["alias"]), item.this
    elif kind(item) == "Column":
        name, inner = _key(reader.engine, item.this), item
    else:
        name, inner = f"{UNNAMED} {number}", item
    if (merged := groups(inner)) is not None:
        return name, merged
    aliases = before if reader.tables is not None and reader.engine.name in ALIASES_WITHIN else {}
    return name, _read_item(inner, reader, _scope(reader, known, frame, aliases))


def _read_item(inner: Any, reader: Reader, scope: Scope) -> Value | Unread:
    try:
        return expression(inner, scope)
    except Unread as error:
        allowed = is_harmless(inner) if reader.tables is None else not has_rows_of_its_own(inner)
        if not allowed:
            raise
        is_window = kind(inner) == "Window"
        return OfFeatures(str(error)) if reader.tables is not None and not is_window else error


def _grouped(node: Any, reader: Reader) -> Callable[[Any], Unread | None]:
    """Why an item of a SELECT that merges rows is no value of one row; None where it is."""
    group = node.args.get("group")
    keys: set[str] = set()
    has_aggregate = any(_aggregates(item) for item in node.expressions)
    if reader.tables is None or (group is None and not has_aggregate):
        return lambda inner: None
    if group is not None:
        only(group, "expressions")
        for each in group.expressions:
            if kind(each) == "Literal" and str(each.this).isdigit() and int(each.this) <= len(node.expressions):
                each = node.expressions[int(each.this) - 1].unalias()
            keys.add(canonical(each, reader.engine))

    def merged(inner: Any) -> Unread | None:
        if _aggregates(inner):
            return Unread(f"it is computed from several rows: {snippet(inner)}")
        if canonical(inner, reader.engine) in keys:
            return None
        loose = [part for part in inner.walk() if kind(part) == "Column" and canonical(part, reader.engine) not in keys]
        return Unread(f"it is one of several rows' values: {snippet(inner)}") if loose else None

    return merged


def _aggregates(node: Any) -> bool:
    from sqlglot import exp

    return any(
        isinstance(part, exp.AggFunc)
        and not isinstance(part.parent, exp.Window)
        and part.find_ancestor(exp.Subquery) is None
        for part in node.walk()
    )


def _look_up(engine: Engine, frame: Frame, aliases: Mapping[str, Value | Unread]) -> Callable[[Any], Value]:
    def look_up(node: Any) -> Value:
        table, identifier = None, node
        if kind(node) == "Column":
            only(node, "this", "table", "db", "_type")
            table, identifier = node.args.get("table"), node.this
        name = _key(engine, identifier)
        found = frame.find(None if table is None else _key(engine, table), name)
        if (
            table is None
            and name in aliases
            and not frame.lists(name)
            and all(isinstance(each, Other) for each in found)
        ):
            found = [aliases[name]]
        if not found:
            refuse(node, "no column of this name")
        if any(each != found[0] for each in found[1:]):
            refuse(node, "several columns have this name: put the table before it")
        if isinstance(found[0], Unread):
            raise found[0]
        return found[0]

    return look_up


def _refuse_shadows(node: Any, engine: Engine, columns: Columns, frame: Frame) -> None:
    """ClickHouse takes a name for an alias of the same SELECT first: refused where that would be another value."""
    if not engine.aliases_first:
        return
    aliased = {_key(engine, item.args["alias"]) for item in node.expressions if kind(item) == "Alias"}
    for item in node.expressions:
        own = _key(engine, item.args["alias"]) if kind(item) == "Alias" else None
        for part in item.walk():
            if kind(part) != "Column" or kind(part.this) == "Star":
                continue
            if (name := _key(engine, part.this)) not in aliased or name == own:
                continue
            values = frame.find(None, name)
            if values and any(isinstance(value, Other | Unread) or columns[name] != value for value in values):
                refuse(item, f"{name} is a column and an alias of the same SELECT")
