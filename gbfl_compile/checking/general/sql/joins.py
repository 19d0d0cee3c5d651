"""What a SELECT works on: tables, views, stages and rows of constants, joined and filtered.

A table joined to itself gives no features the second time: the two rows are the same only if a key guarantees it, and
after a layer a column of the key's name may be anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from gbfl_compile.checking.general.sql.engines import Engine
from gbfl_compile.checking.general.sql.expressions import expression
from gbfl_compile.checking.general.sql.frames import (
    Frame,
    Reader,
    Stages,
    alias_of,
    aliases_of,
    asks_features,
    clause_of,
    conditions,
    name_key,
    rename_columns,
    with_notes,
    words_of,
)
from gbfl_compile.checking.general.sql.logic import FALSE, TRUE, Formula, both, either, opposite
from gbfl_compile.checking.general.sql.parsing import Scope, folded_name, kind, only, refuse
from gbfl_compile.checking.general.sql.relations import (
    MOST_BRANCHES,
    Branch,
    Columns,
    KnownTable,
    Relation,
    Tables,
    can_hold,
    constant_rows,
)
from gbfl_compile.checking.general.sql.values import USES, Column, Constant, Other, Value, Word, pick
from gbfl_compile.checking.reading.nodes import Unread

UNLIMITED = {"sqlite": "-1", "mariadb": "18446744073709551615", "mysql": "18446744073709551615"}
"""The LIMIT that limits nothing: it keeps an engine from merging a stage into the next."""

CASE_OF_TABLES = {"mysql", "tsql"}
"""Engines that distinguish the tables `data` and `DATA`, if the server or its collation says so."""


def frames_of(node: Any, reader: Reader, known: Stages, outer: Frame | None) -> tuple[list[Frame], Relation]:
    """The rows that a SELECT works on, and the tables and notes that come with them."""
    start = clause_of(node, "from")
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
    """The items of a FROM, with bracketed joins unfolded: (a JOIN b ON …)."""
    joins = list(node.args.get("joins") or []) if kind(node) == "Select" else []
    if kind(first) in ("Subquery", "Paren"):
        joins = [*(first.args.get("joins") or []), *joins]
    while (
        kind(first) in ("Subquery", "Paren")
        and kind(first.this) in ("Table", "Subquery")
        and not first.args.get("alias")
    ):
        only(first, "this", "joins")
        first = first.this
        joins = [*(first.args.get("joins") or []), *joins]
    yield first, joins


def _join(
    place: Any, join: Any, reader: Reader, known: Stages, frames: list[Frame], below: Relation
) -> tuple[list[Frame], Relation]:
    """The frames with one more table, view, stage or list of rows."""
    side = "" if join is None else _side_of(join)
    if kind(place) == "Lateral":
        return _lateral(place, join, reader, known, frames, below)
    may_be_lateral = kind(place) == "Subquery" and reader.engine.name == "duckdb" and not side and join is not None
    try:
        name, right = _source(place, reader, known)
        is_understood = not any(isinstance(each, Unread) for row in right.branches for each in row.columns.values())
    except Unread:
        if not may_be_lateral:
            raise
        return _lateral(place, join, reader, known, frames, below)  # DuckDB needs no word for it
    if may_be_lateral and not is_understood and not right.tables:
        return _lateral(place, join, reader, known, frames, below)
    is_shared = bool(below.tables & right.tables)
    test, using = (join.args.get("on"), join.args.get("using") or []) if join is not None else (None, [])
    merged = frozenset(name_key(reader.engine, each) for each in using)
    if is_shared:
        right = right.without_features()
    notes = [] if join is None or _is_one_row(right, test, using) else [_join_words(join, reader)]
    combined = with_notes(
        replace(
            below,
            tables=below.tables | right.tables,
            notes=tuple(dict.fromkeys((*below.notes, *right.notes))),
            unclear=below.unclear or right.unclear,
            loose=below.loose or right.loose or bool(below.tables and right.tables),
        ),
        *notes,
    )
    if side in ("RIGHT", "FULL"):
        frames = [replace(each, sources=tuple(_null_side(source, TRUE) for source in each.sources)) for each in frames]
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
            meets, is_open = _met(test, pair, reader, known)
            if side:
                _refuse_unclear_match(join, pair, reader, known)
            pairs.append((pair, meets, is_open or bool(side and (using or right.notes))))
            combined = replace(combined, loose=combined.loose or is_open or bool(using))
        joined += _pairs(reader.engine, frame, name, right, pairs, side)
    if len(joined) > MOST_BRANCHES:
        refuse(place, "a join of too many rows of constants")
    return joined, combined


def _side_of(join: Any) -> str:
    """LEFT, RIGHT, FULL, or nothing for an inner join; other joins are refused."""
    only(join, "this", "side", "kind", "on", "using", "method")
    side, sort = (join.side or "").upper(), (join.kind or "").upper()
    if side not in ("", "LEFT", "RIGHT", "FULL") or sort not in ("", "INNER", "OUTER", "CROSS"):
        refuse(join, "a join that is not understood")
    if join.args.get("method"):
        refuse(join, f"{join.args['method']} JOIN: name the columns")
    return side


def _join_words(join: Any, reader: Reader) -> str:
    words = words_of(join, reader).lstrip(", ")
    return words if "JOIN" in words.upper() else f"CROSS JOIN {words}"


def _is_one_row(right: Relation, test: Any, using: Sequence[Any]) -> bool:
    """Whether the join brings exactly one row to every row."""
    return not right.tables and len(right.branches) == 1 and right.holds() is TRUE and test is None and not using


def _refuse_unclear_match(join: Any, frame: Frame, reader: Reader, known: Stages) -> None:
    """Whether an outer join finds a row may depend on keys, and on features only in ways that are understood."""
    test, keys = join.args.get("on"), [name_key(reader.engine, each) for each in join.args.get("using") or []]
    others = [] if test is None else conditions(test, frame, reader, known)[1]
    by_features = any(not isinstance(value, Other | Constant) for key in keys for value in frame.find(None, key))
    if by_features or any(asks_features(each, frame, reader) for each in others):
        refuse(join, "an outer join by a condition on features that is not understood")


def _null_side(source: tuple[str | None, Columns, Any], meets: Formula) -> tuple[str | None, Columns, Any]:
    """What an outer join brings: features are NULL where its condition on features fails, and where it finds no row."""
    name, columns, rest = source
    outer = Relation((Branch(TRUE, columns),)).or_null().branches[0].columns
    brought = {key: value if isinstance(value, Unread) else _where_met(value, meets) for key, value in outer.items()}
    return name, brought, None if rest is None else lambda key: _where_met(rest(key), meets)


def _where_met(value: Value, meets: Formula) -> Value:
    return pick(meets, replace(value, outer=True), Constant(None)) if isinstance(value, Column | Word) else value


def _pairs(
    engine: Engine,
    frame: Frame,
    name: str | None,
    right: Relation,
    pairs: list[tuple[Frame, Formula, bool]],
    side: str,
) -> Iterator[Frame]:
    """The frames that a join makes of one frame; `pairs` has it with each row of the right side, and the match."""
    is_outer = side in ("LEFT", "FULL")
    is_open = any(opaque for _, _, opaque in pairs)
    if (is_open or (side and right.tables)) and len(pairs) > 1:
        raise Unread("rows of constants, or of a UNION, that are joined by a condition that is not understood")
    if side and right.unclear:
        raise Unread("an outer join to rows that a filter on features may leave out")
    if side in ("RIGHT", "FULL") and (frame.holds is not TRUE or any(meets is not TRUE for _, meets, _ in pairs)):
        raise Unread("an outer join of rows that a condition on features may leave out")
    met = [replace(pair, holds=both((pair.holds, meets))) for pair, meets, _ in pairs]
    if not is_outer:
        yield from [each for each in met if each.holds is not FALSE] or met[:1]
        return
    if is_open or right.tables or right.rest is not None:
        source = _null_side(pairs[0][0].sources[-1], both((right.branches[0].holds, pairs[0][1])))
        yield replace(frame, sources=(*frame.sources, source), merged=pairs[0][0].merged)
        return
    yield from (each for each in met if each.holds is not FALSE)
    missed = opposite(
        either(both((branch.holds, meets)) for branch, (_, meets, _) in zip(right.branches, pairs, strict=True))
    )
    if engine.name == "clickhouse" and can_hold(missed):
        raise Unread("rows of constants behind an outer join: ClickHouse gives 0 or '' where no row is found")
    nothing = dict.fromkeys(right.names(), Constant(None))
    source = (name, nothing, None)
    yield replace(frame, holds=both((frame.holds, missed)), sources=(*frame.sources, source))


def _met(test: Any, frame: Frame, reader: Reader, known: Stages) -> tuple[Formula, bool]:
    """When a join's condition holds, and whether part of it is not understood."""
    if test is None:
        return TRUE, False
    holds, others = conditions(test, frame, reader, known)
    return holds, bool(others)


def _lateral(
    place: Any, join: Any, reader: Reader, known: Stages, frames: list[Frame], below: Relation
) -> tuple[list[Frame], Relation]:
    """LATERAL (SELECT …) and CROSS APPLY (SELECT …): a query for each row."""
    only(place, "this", "alias", "view", "outer", "cross_apply")
    name, names = alias_of(place.args.get("alias"), reader.engine)
    side = "" if join is None else (join.side or "").upper()
    is_outer = side == "LEFT" or bool(place.args.get("outer")) or place.args.get("cross_apply") is False
    if join is not None and (side not in ("", "LEFT") or join.args.get("using")):
        refuse(join, "a join to a query for each row that is not understood")
    made = []
    for frame in frames:
        inner = rename_columns(place, reader.query(place.this, reader, known, frame), names)
        if inner.tables or inner.notes or inner.rest is not None:
            refuse(place, "a query for each row that reads a table")
        if is_outer and inner.holds() is not TRUE:
            refuse(place, "a query for each row that is NULL where it finds nothing")
        if join is not None and _met(join.args.get("on"), frame, reader, known) != (TRUE, False):
            refuse(join, "a query per row with its own condition")
        if can_hold(opposite(inner.holds())):
            below = with_notes(below, f"a query for each row, which leaves out rows: {words_of(place, reader)}")
        for branch in inner.branches:
            holds = both((frame.holds, branch.holds))
            made.append(replace(frame, holds=holds, sources=(*frame.sources, (name, branch.columns, None))))
    return made, below


def _source(node: Any, reader: Reader, known: Stages) -> tuple[str | None, Relation]:
    engine = reader.engine
    name, names = alias_of(node.args.get("alias"), engine)
    if kind(node) == "Subquery":
        only(node, "this", "alias", "joins")
        return name, rename_columns(node, reader.query(node.this, reader, known, None), names)
    if kind(node) == "Values" and reader.tables is not None:
        return name, values_of_rows(node, reader)
    if kind(node) != "Table":
        refuse(node, f"selects from {kind(node)}")
    is_open = reader.tables is not None
    only(node, "this", "db", "catalog", "alias", *(["joins", "hints"] if is_open else []))
    if is_open and kind(node.this) != "Identifier":
        return name, _table_function(node, reader)
    own = name_key(engine, node.this)
    if own in known and not node.args.get("db"):
        found = known[own]
        if found is None:
            refuse(node, "a stage, or a table: it is named before the stage of this name is defined")
        if engine.name in CASE_OF_TABLES and found.spelled != str(node.this.this):
            refuse(node, f"the stage {found.spelled}, or a table: {engine.name} may tell the two apart by their case")
        return name or own, rename_columns(node, found, names)
    if names:
        refuse(node, "a table's columns rename_columns")
    if reader.tables is None:
        return name or own, Relation((Branch(TRUE, {}),), reader.table)
    return name or own, _table(node, reader, reader.tables)


def values_of_rows(node: Any, reader: Reader) -> Relation:
    only(node, "expressions", "alias")
    names = alias_of(node.args.get("alias"), reader.engine)[1]
    scope = Scope(reader.engine, lambda each: refuse(each, "a column within VALUES"), expression)
    rows = [[expression(item, scope) for item in row.expressions] for row in node.expressions]
    listed = names or [f"column{place + 1}" for place in range(len(rows[0]))]
    if any(len(row) != len(listed) for row in rows):
        refuse(node, "rows of different lengths")
    return constant_rows(listed, rows)


def _table_function(node: Any, reader: Reader) -> Relation:
    if kind(node.this) not in ("ReadParquet", "ReadCSV"):
        refuse(node, "selects from a function")
    return Relation((Branch(TRUE, {}),), reader.table, frozenset([words_of(node.this, reader)]))


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
        rows = [[value if isinstance(value, Unread) else Constant(value) for value in row] for row in known.rows]
        if (uses := USES.get()) is not None:
            uses.constants[known.key] = f"{known.key} as it is now ({len(rows)} row{'s' if len(rows) != 1 else ''})"
        return constant_rows(keys, rows)
    columns: dict[str, Value | Unread] = {
        key: reader.feature(features[column])
        if column in features
        else Other(f"{known.key}.{column}", _key_test(known, column))
        for key, column in zip(keys, known.columns, strict=True)
    }
    return Relation((Branch(TRUE, columns),), None, frozenset([known.key]))


def _key_test(known: KnownTable, column: str) -> Callable[[], bool]:
    """Whether a column is a key, looked up only where a query relies on it; a key is recorded as used."""

    def is_key() -> bool:
        if not known.is_key(column):
            return False
        if (uses := USES.get()) is not None:
            words = f"{column} is different in every row of {known.key} as it is now"
            uses.keys[f"{known.key}.{column}"] = words
        return True

    return is_key


def filter_frames(
    node: Any, reader: Reader, known: Stages, frames: list[Frame], below: Relation
) -> tuple[list[Frame], Relation]:
    """The frames that remain after WHERE and other parts that drop or merge rows."""
    if reader.tables is None:
        return frames, below
    where, aliases = node.args.get("where"), aliases_of(node, reader.engine)
    kept, words, unclear, loose = [], [], below.unclear, below.loose
    for frame in frames:
        holds, others = (TRUE, []) if where is None else conditions(where.this, frame, reader, known)
        unclear = unclear or any(asks_features(each, frame, reader, aliases) for each in others)
        loose = loose or bool(others)
        if others and not below.tables and below.rest is None:
            refuse(where, "a filter that is not understood on rows of constants")
        if (joined := both((frame.holds, holds))) is not FALSE:
            kept.append(replace(frame, holds=joined))
    if where is not None and (below.tables or below.rest is not None):
        words.append(words_of(where, reader))
    for part in ("having", "qualify"):
        if (each := node.args.get(part)) is not None:
            words.append(words_of(each, reader))
            unclear = unclear or any(asks_features(each.this, frame, reader, aliases) for frame in frames)
    if (distinct := node.args.get("distinct")) is not None:
        words.append(words_of(distinct, reader) if distinct.args.get("on") else "DISTINCT, which merges equal rows")
    if (group := node.args.get("group")) is not None:
        words.append(words_of(group, reader))
    limits = limits_of(node, reader)
    loose = loose or bool(limits) or any(node.args.get(part) is not None for part in ("having", "qualify", "distinct"))
    return kept, replace(with_notes(below, *words, *limits), unclear=unclear, loose=loose)


def refuse_limits(node: Any, engine: Engine) -> None:
    limit, offset = node.args.get("limit"), node.args.get("offset")
    if limit is not None:
        only(limit, "expression")
        if limit.args["expression"].sql() != UNLIMITED.get(engine.name):
            refuse(limit, "rows may be left out")
    if offset is not None:
        only(offset, "expression")
        if offset.args["expression"].sql() != "0":
            refuse(offset, "rows may be left out")


def limits_of(node: Any, reader: Reader) -> list[str]:
    try:
        refuse_limits(node, reader.engine)
    except Unread:
        return [words_of(node.args[part], reader) for part in ("limit", "offset") if node.args.get(part) is not None]
    return []
