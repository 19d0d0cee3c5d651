"""Rows that a query multiplies and merges again: scores added up over bins, the rule of highest priority.

A UNION ALL or a join with bins makes several rows of one. GROUP BY a key of the table puts those together again, and no
others. Without GROUP BY the rows of constants become one. An aggregate is then a value like any other.

    MIN(priority) … GROUP BY id   ->   1 where the first branch holds, 2 where the second one does, …
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from gbfl_compile.checking.general.sql.arithmetic import add, total_of
from gbfl_compile.checking.general.sql.comparisons import null_test
from gbfl_compile.checking.general.sql.expressions import expression
from gbfl_compile.checking.general.sql.frames import Frame, Reader, Stages, canonical, scope_of
from gbfl_compile.checking.general.sql.logic import FALSE, TRUE, Formula, Points, both, either
from gbfl_compile.checking.general.sql.parsing import Scope, kind, only, refuse
from gbfl_compile.checking.general.sql.relations import Relation
from gbfl_compile.checking.general.sql.types import NullNode
from gbfl_compile.checking.general.sql.values import Constant, Other, Total, Value, describe, ends, map_ends, pick, same
from gbfl_compile.checking.reading.nodes import Unread

AGGREGATES = ("Min", "Max", "Sum", "Count")
MOST_MERGED = 60
"""Rows that one row of a table may become."""

Known = Callable[[Any, Scope], "Value | None"]


def merged_frame(node: Any, reader: Reader, known: Stages, frames: list[Frame], below: Relation) -> Frame | None:
    """The single row into which a SELECT merges the rows of one table row; None where that is not certain."""
    group, item_parts = node.args.get("group"), [part for item in node.expressions for part in item.walk()]
    has_aggregate = any(kind(part) in AGGREGATES and kind(part.parent) != "Window" for part in item_parts)
    if not has_aggregate or below.loose or below.rest is not None or len(frames) > MOST_MERGED or not frames:
        return None
    if any(node.args.get(part) is not None for part in ("having", "qualify", "distinct")):
        return None
    if any(kind(part) in ("Window", "Subquery", "Exists") for part in item_parts):
        return None
    if group is None:
        if below.tables:
            return None
        holds: Formula = TRUE
    else:
        keys = _group_keys(node, group)
        if keys is None or not _is_one_row(keys, reader, known, frames):
            return None
        holds = either(frame.holds for frame in frames)
    return replace(frames[0], holds=holds, aggregate=_aggregates(reader, known, frames))


def _group_keys(node: Any, group: Any) -> list[Any] | None:
    """The expressions that rows are grouped by; a number means the item at that place."""
    if any(value for name, value in group.args.items() if name != "expressions"):
        return None
    keys = []
    for each in group.expressions:
        if kind(each) == "Literal" and str(each.this).isdigit() and 0 < int(each.this) <= len(node.expressions):
            each = node.expressions[int(each.this) - 1].unalias()
        if kind(each) != "Column":
            return None
        keys.append(each)
    return keys


def _is_one_row(keys: Sequence[Any], reader: Reader, known: Stages, frames: Sequence[Frame]) -> bool:
    """Whether rows with these values come from one row of the table: each is the same column for all, and one a key."""
    is_key = False
    for key in keys:
        try:
            values = [expression(key, scope_of(reader, known, frame)) for frame in frames]
        except Unread:
            return False
        first = values[0]
        if not isinstance(first, Other) or any(value != first for value in values):
            return False
        is_key = is_key or first.is_key()
    return is_key


def _aggregates(reader: Reader, known: Stages, frames: Sequence[Frame]) -> Known:
    """The value of an aggregate over the rows."""

    def aggregate(node: Any, scope: Scope) -> Value | None:
        if kind(node) not in AGGREGATES:
            return None
        only(node, "this", "big_int")
        argument = node.this
        if kind(argument) in ("Distinct", "Order", "Tuple") or (kind(argument) == "Star" and kind(node) != "Count"):
            refuse(node, "an aggregate that is not understood")
        rows: list[tuple[Formula, Value]] = []
        for frame in frames:
            value: Value = Constant(1)
            try:
                if kind(argument) != "Star":
                    value = expression(argument, scope_of(reader, known, replace(frame, aggregate=None)))
            except NullNode:  # of the type that it has in another row
                value = Constant(None)
            if frame.holds is not FALSE:
                rows.append((frame.holds, value))
        try:
            return _MERGE[kind(node)](scope, rows)
        except Unread as error:
            refuse(node, str(error))

    return aggregate


Rows = Sequence[tuple[Formula, Value]]


def _extreme(least: bool) -> Callable[[Scope, Rows], Value]:
    """MIN and MAX of constants."""

    def extreme(scope: Scope, rows: Rows) -> Value:
        found: Value = Constant(None)
        for holds, value in rows:
            own = pick(holds, value, Constant(None))
            found = map_ends(found, lambda end, other=own: map_ends(other, lambda o: _one_of(end, o, least)))  # type: ignore[misc]
        return found

    return extreme


def _one_of(a: Value, b: Value, least: bool) -> Value:
    """The lesser or the greater of two constants; NULL is ignored."""
    if Constant(None) in (a, b):
        return b if a == Constant(None) else a
    if isinstance(a, Constant) and isinstance(b, Constant):
        if same(a, b):
            return a
        numbers = [end.value for end in (a, b) if type(end.value) in (int, Decimal)]
        if len(numbers) == 2 and type(a.value) is type(b.value):
            return a if (numbers[0] < numbers[1]) == least else b  # type: ignore[operator]
    raise Unread(f"the least or greatest of {describe(a)} and {describe(b)}")


def _total(scope: Scope, rows: Rows) -> Value:
    """SUM: NULL where there is nothing to add."""
    total: Value = Constant(0, wide=True)
    known = []
    for holds, value in rows:
        if scope.engine.name == "postgres" and any(
            isinstance(end, Constant | Total) and end.wide for end in ends(value)
        ):
            raise Unread("a sum of numbers of 64 bits, which PostgreSQL makes a NUMERIC")
        is_there = both((holds, null_test(scope.engine, value).false))
        known.append(is_there)
        own = map_ends(value, lambda end: Constant(0) if end == Constant(None) else end)
        total = add(scope.engine, total, pick(is_there, own, Constant(0)))
    total = replace(total, wide=True) if isinstance(total, Total) else total
    return pick(either(known), total, Constant(None))


def _count(scope: Scope, rows: Rows) -> Value:
    """COUNT: how many are not NULL."""
    total = Total(Points(0), True)
    for holds, value in rows:
        is_there = both((holds, null_test(scope.engine, value).false))
        total = total_of(scope.engine, add(scope.engine, total, pick(is_there, Constant(1), Constant(0))))
    return replace(total, wide=True)


_MERGE: dict[str, Callable[[Scope, Rows], Value]] = {
    "Min": _extreme(least=True),
    "Max": _extreme(least=False),
    "Sum": _total,
    "Count": _count,
}


def numbered_frames(node: Any, reader: Reader, known: Stages, frames: list[Frame], below: Relation) -> list[Frame]:
    """The rows that one row became, with what `row_number() OVER (PARTITION BY key ORDER BY …)` is for each."""
    is_numbered = any(kind(part) == "RowNumber" for item in node.expressions for part in item.walk())
    if not is_numbered or below.loose or below.rest is not None or not 1 < len(frames) <= MOST_MERGED:
        return frames
    every = tuple(frames)
    return [replace(frame, aggregate=_row_number(reader, known, every, n)) for n, frame in enumerate(frames)]


def _row_number(reader: Reader, known: Stages, frames: Sequence[Frame], place: int) -> Known:
    def number(node: Any, scope: Scope) -> Value | None:
        if kind(node) != "Window" or kind(node.this) != "RowNumber":
            return None
        only(node, "this", "partition_by", "order", "over")
        keys, order = node.args.get("partition_by") or [], node.args.get("order")
        if order is None or len(order.expressions) != 1 or any(kind(key) != "Column" for key in keys):
            return None
        if not keys or not _is_one_row(keys, reader, known, frames):
            return None
        by = order.expressions[0]
        values = [expression(by.this, scope_of(reader, known, frame)) for frame in frames]
        plain = [value.value for value in values if isinstance(value, Constant) and type(value.value) is int]
        if len(plain) != len(frames) or len(set(plain)) != len(plain):
            refuse(node, "rows in an order that is not known")
        total: Value = Constant(1)
        for other, frame in enumerate(frames):
            is_before = plain[other] > plain[place] if by.args.get("desc") else plain[other] < plain[place]
            if is_before:
                total = add(scope.engine, total, pick(frame.holds, Constant(1), Constant(0)))
        return total

    return number


def asks_one_row(inner: Any, keys: set[str], reader: Reader, several: bool) -> bool:
    """Whether an expression uses only aggregates and grouping keys."""
    for part in inner.walk(prune=lambda each: kind(each) in AGGREGATES):
        if kind(part) in AGGREGATES:
            continue
        if kind(part) == "Star" or (kind(part) == "Column" and canonical(part, reader.engine, several) not in keys):
            return False
    return True
