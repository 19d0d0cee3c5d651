"""Built-in functions of numbers and texts, where their arguments are one of finitely many constants.

Each is worked out for every value an argument can have. What engines do in different ways is refused: letters beyond
ASCII, halves that are rounded, patterns whose answer depends on case where the engine does not mind it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from gbfl_compile.checking.general.sql.comparisons import comparison_of, null_test
from gbfl_compile.checking.general.sql.finite import (
    compute,
    exponential,
    extreme,
    logarithm,
    magnitude,
    round_number,
    to_whole,
)
from gbfl_compile.checking.general.sql.logic import UNKNOWN, Truth, constant, either
from gbfl_compile.checking.general.sql.parsing import Scope, kind, only, operands, refuse
from gbfl_compile.checking.general.sql.types import as_together, has_digits, kinds_together
from gbfl_compile.checking.general.sql.values import (
    Column,
    Constant,
    Value,
    describe,
    ends,
    fold,
    kinds_of,
    map_ends,
    pick,
    same,
)
from gbfl_compile.checking.reading.conditions import Comparison
from gbfl_compile.checking.reading.nodes import Unread

PLAIN = re.compile(r"[ -~]*")
"""Letters that mean the same in every character set."""


def _number_function(act: Callable[[Value], Value]) -> Callable[[Any, Scope], Value]:
    def read(node: Any, scope: Scope) -> Value:
        only(node, "this")
        return compute(scope.engine, act, scope.follow(node.this, scope))

    return read


def _sign(value: Fraction) -> int:
    return (value > 0) - (value < 0)


def _round(node: Any, scope: Scope) -> Value:
    only(node, "this", "decimals", "casts_non_integer_decimals")
    digits = 0
    if (places := node.args.get("decimals")) is not None:
        found = scope.follow(places, scope)
        if not isinstance(found, Constant) or type(found.value) is not int:
            refuse(node, "ROUND to a number of digits that is not a constant")
        digits = found.value
    value = scope.follow(node.this, scope)
    if isinstance(value, Column) and has_digits(scope.engine, scope.types.get(value.feature, ""), digits):
        return value
    return compute(scope.engine, lambda end: round_number(scope.engine, end, digits), value)


def _whole_part(act: Callable[[Fraction], int]) -> Callable[[Any, Scope], Value]:
    """floor(x) and ceil(x); a column of whole numbers stays as it is."""

    def read(node: Any, scope: Scope) -> Value:
        only(node, "this")
        value = scope.follow(node.this, scope)
        if isinstance(value, Column) and has_digits(scope.engine, scope.types.get(value.feature, ""), 0):
            return value
        return compute(scope.engine, lambda end: to_whole(end, act), value)

    return read


def _extreme(node: Any, scope: Scope) -> Value:
    """GREATEST and LEAST; of a feature and constants, the comparison that they make."""
    only(node, "this", "expressions", "ignore_nulls")
    engine, largest = scope.engine, kind(node) == "Greatest"
    parts = [scope.follow(part, scope) for part in (node.this, *node.expressions)]
    if not any(isinstance(end, Column) for part in parts for end in ends(part)):
        kinds = {"whole" if each == "truth" else each for part in parts for each in kinds_of(part)} - {"null"}
        return compute(engine, lambda *each: extreme(engine, each, largest, len(kinds) > 1), *parts)
    if engine.nan == "ieee" or engine.name not in ("postgres", "duckdb", "mariadb", "sqlite"):
        refuse(node, f"GREATEST or LEAST of a feature: what {engine.name} makes of NULL and NaN there is not known")
    first, *rest = parts
    for part in rest:
        first = _larger(scope, first, part, ">=" if largest else "<=")
    return first


def _larger(scope: Scope, left: Value, right: Value, sign: Comparison) -> Value:
    engine = scope.engine
    kinds = kinds_together(engine, [left, right])
    chosen = pick(comparison_of(engine, left, sign, right).true, left, right)
    nulls = [null_test(engine, each).true for each in (left, right)]
    if engine.name in ("postgres", "duckdb"):
        value = pick(nulls[0], right, pick(nulls[1], left, chosen))
    else:
        value = pick(either(nulls), Constant(None), chosen)
    return as_together(engine, value, kinds)


def text_in(end: Value) -> str:
    """The text that an end is, of plain letters."""
    if isinstance(end, Constant) and isinstance(end.value, str) and PLAIN.fullmatch(end.value):
        return end.value
    raise Unread(f"{describe(end)} where a plain ASCII text is expected")


def _refuse_unknown_texts(scope: Scope) -> None:
    if not scope.engine.known_texts:
        raise Unread("a function of texts, whose bytes the definition does not show")


def _of_texts(scope: Scope, act: Callable[..., str], *parts: Value) -> Value:
    """A function of texts; NULL for NULL, which all engines have for the functions that use this."""
    _refuse_unknown_texts(scope)

    def of(*each: Value) -> Value:
        if Constant(None) in each:
            return Constant(None)
        return Constant(act(*map(text_in, each)))

    return compute(scope.engine, of, *parts)


def _case_of_letters(act: Callable[[str], str]) -> Callable[[Any, Scope], Value]:
    def read(node: Any, scope: Scope) -> Value:
        only(node, "this")
        return _of_texts(scope, act, scope.follow(node.this, scope))

    return read


def _trim(node: Any, scope: Scope) -> Value:
    only(node, "this", "position")
    act = {"": str.strip, "BOTH": str.strip, "LEADING": str.lstrip, "TRAILING": str.rstrip}
    position = str(node.args.get("position") or "").upper()
    if position not in act:
        refuse(node, "a TRIM that is not understood")
    return _of_texts(scope, lambda text: act[position](text, " "), scope.follow(node.this, scope))


def _replace(node: Any, scope: Scope) -> Value:
    only(node, "this", "expression", "replacement")
    if not scope.engine.exact_texts and scope.engine.parsed_as != "mysql":
        refuse(node, f"REPLACE, which may ignore case in {scope.engine.name}")
    parts = [scope.follow(node.args[part], scope) for part in ("this", "expression", "replacement")]
    if any(end == Constant("") for end in ends(parts[1])):
        refuse(node, "REPLACE of an empty text")
    return _of_texts(scope, lambda text, old, new: text.replace(old, new), *parts)


def _part_of_text(node: Any, scope: Scope) -> Value:
    """SUBSTRING(x, 1, 3), LEFT(x, 3) and RIGHT(x, 3)."""
    which = kind(node)
    only(node, "this", *(("start", "length") if which == "Substring" else ("expression",)))
    numbers: list[int | None] = []
    for name in ("start", "length") if which == "Substring" else ("expression",):
        if (part := node.args.get(name)) is None:
            numbers.append(None)
            continue
        value = scope.follow(part, scope)
        if not isinstance(value, Constant) or type(value.value) is not int or value.value < 1:
            refuse(node, "part of a text, with a start or length that is not a constant above zero")
        numbers.append(value.value)
    if which == "Substring":
        start, length = numbers
        begin = (start or 1) - 1
        return _of_texts(
            scope, lambda text: text[begin : None if length is None else begin + length], scope.follow(node.this, scope)
        )
    count = numbers[0] or 1
    act = (lambda text: text[:count]) if which == "Left" else (lambda text: text[-count:])
    return _of_texts(scope, act, scope.follow(node.this, scope))


def _join_texts(node: Any, scope: Scope) -> Value:
    """Texts one after the other; with a NULL among them the engines differ."""
    if kind(node) == "DPipe":
        parts = operands(node)
    else:
        only(node, "expressions", "safe", "coalesce")
        parts = node.expressions
    values = [scope.follow(part, scope) for part in parts]
    if len(values) and all(isinstance(each, Constant) and isinstance(each.value, str) for each in values):
        return Constant("".join(str(each.value) for each in values if isinstance(each, Constant)))
    if any(end == Constant(None) for value in values for end in ends(value)):
        refuse(node, "a concatenation of texts, one of which may be NULL")
    return _of_texts(scope, lambda *each: "".join(each), *values)


MINDS_CASE = {"postgres", "duckdb", "clickhouse", "snowflake", "bigquery", "spark", "databricks", "redshift", "trino"}
"""Engines whose LIKE distinguishes `a` from `A`."""


def _like(node: Any, scope: Scope) -> Value:
    """`band LIKE 'high%'`, of texts that are constants."""
    only(node, "this", "expression")
    _refuse_unknown_texts(scope)
    value, pattern = scope.follow(node.this, scope), scope.follow(node.args["expression"], scope)
    if not isinstance(pattern, Constant) or not isinstance(pattern.value, str) or "\\" in pattern.value:
        refuse(node, "a pattern that is not a constant, or that has a backslash")
    if scope.engine.name == "tsql" and "[" in pattern.value:
        refuse(node, "a pattern with [, which lists letters in SQL Server")
    wanted = text_in(pattern)
    expected = "".join({"%": ".*", "_": "."}.get(letter, re.escape(letter)) for letter in wanted)
    minds_case = kind(node) == "Like" and scope.engine.name in MINDS_CASE

    def of(end: Value) -> Value:
        if end == Constant(None):
            return end
        text = text_in(end)
        exact, loose = (re.fullmatch(expected, text, flags | re.DOTALL) is not None for flags in (0, re.IGNORECASE))
        is_certain = minds_case or (kind(node) == "ILike") or exact == loose
        if not is_certain or (not scope.engine.exact_texts and text != text.rstrip()):
            refuse(node, f"a pattern that depends on case or trailing blanks, which {scope.engine.name} may ignore")
        return constant(exact if minds_case else loose)

    return _as_truth(compute(scope.engine, of, value))


def _as_truth(value: Value) -> Truth:
    def of(end: Value) -> Truth:
        if isinstance(end, Truth):
            return end
        return UNKNOWN

    return fold(value, of)


def _list_item(node: Any, scope: Scope) -> Value:
    """DuckDB's ['yes', 'no'][leaf + 1]: constants of one kind, and a column that is a whole number within the list.

    sqlglot takes 1 from the place where it knows it to be a whole number, and leaves other values alone.
    """
    only(node, "this", "expressions")
    place = node.expressions[0]
    while kind(place) == "Paren":
        only(place, "this")
        place = place.this
    is_alone = len(node.expressions) == 1 and kind(node.this) == "Array" and scope.engine.name == "duckdb"
    if not is_alone or kind(place) != "Add" or place.type is None or place.type.this.name != "UNKNOWN":
        refuse(node, "an element of something other than a list, or at another place than a column + 1")
    one = scope.follow(place.expression, scope)
    if kind(place.this) != "Column" or not isinstance(one, Constant) or not same(one, Constant(1)):
        refuse(node, "an element at another place than a column + 1")
    only(node.this, "expressions", "value_constructor", "bracket_notation")
    items = [scope.follow(item, scope) for item in node.this.expressions]
    if len({kinds_of(item) for item in items}) != 1 or not kinds_of(items[0]) <= {"text", "double", "whole", "truth"}:
        refuse(node, "a list of several kinds of values")

    def item_at(end: Value) -> Value:
        if not isinstance(end, Constant) or type(end.value) is not int or not 0 <= end.value < len(items):
            refuse(node, "a place that is not within the list for some rows")
        return items[end.value]

    if not all(isinstance(item, Constant) for item in items):
        refuse(node, "a list of something other than constants")
    return map_ends(scope.follow(place.this, scope), item_at)


BUILTINS: Mapping[str, Callable[[Any, Scope], Value]] = {
    "Exp": _number_function(exponential),
    "Ln": _number_function(logarithm),
    "Abs": _number_function(magnitude),
    "Sign": _number_function(lambda end: to_whole(end, _sign)),
    "Floor": _whole_part(math.floor),
    "Ceil": _whole_part(math.ceil),
    "Round": _round,
    "Greatest": _extreme,
    "Least": _extreme,
    "Lower": _case_of_letters(str.lower),
    "Upper": _case_of_letters(str.upper),
    "Trim": _trim,
    "Replace": _replace,
    "Substring": _part_of_text,
    "Left": _part_of_text,
    "Right": _part_of_text,
    "DPipe": _join_texts,
    "Concat": _join_texts,
    "Like": _like,
    "ILike": _like,
    "Bracket": _list_item,
}
