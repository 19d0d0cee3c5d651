"""Reads SQL expressions node by node: the value of each for any row, with the engine's own NULL and NaN.

Nodes are sqlglot's. One that is not in the table, or that carries something the table does not expect, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from gbfl_compile.checking.general.sql.builtin import BUILTINS
from gbfl_compile.checking.general.sql.comparisons import (
    PREDICATES,
    comparison_of,
    condition,
    null_test,
    refuse_bits,
    refuse_other_equality,
    truth_of,
    truths_of,
)
from gbfl_compile.checking.general.sql.engines import number
from gbfl_compile.checking.general.sql.functions import call_value
from gbfl_compile.checking.general.sql.logic import Truth, choose, negate, unknown
from gbfl_compile.checking.general.sql.operations import OPERATIONS
from gbfl_compile.checking.general.sql.parsing import ParsedNode, Scope, kind, only, refuse, snippet
from gbfl_compile.checking.general.sql.types import (
    AllNull,
    NullNode,
    as_together,
    cast_to,
    keeps_every_value,
    kinds_together,
    named_type,
)
from gbfl_compile.checking.general.sql.values import (
    Column,
    Constant,
    Fractions,
    Near,
    Total,
    Value,
    kinds_of,
    map_ends,
    number_of_truth,
    pick,
)
from gbfl_compile.checking.general.sql.words import with_collation, word_call
from gbfl_compile.checking.reading.conditions import Comparison
from gbfl_compile.checking.reading.nodes import Unread


def expression(node: Any, scope: Scope) -> Value:
    """What an expression is for any row."""
    while kind(node) == "Paren":
        only(node, "this")
        node = node.this
    if (feature := scope.known(node, scope)) is not None:
        return feature
    reader = READERS.get(kind(node))
    if reader is None:
        refuse(node, f"{kind(node)} is not understood")
    try:
        return reader(node, scope)
    except Unread as error:
        raise _with_text(error, node) from None


def _with_text(error: Unread, node: Any) -> ParsedNode:
    """An Unread with the SQL that it is about."""
    if isinstance(error, ParsedNode):
        return error
    sort = NullNode if isinstance(error, AllNull) else ParsedNode
    return sort(f"{error}: {snippet(node)}")


def _literal(node: Any, scope: Scope) -> Value:
    only(node, "this", "is_string")
    text = str(node.this)
    if scope.engine.name == "tsql" and not text.isascii():
        refuse(node, "letters that a text without N before it need not hold")
    _refuse_joined_lines(node, scope)
    return Constant(text) if node.args.get("is_string") else Constant(number(scope.engine, text))


def _refuse_joined_lines(node: Any, scope: Scope) -> None:
    if scope.engine.name == "tsql" and re.search(r"\\\r?\n", str(node.this)):
        refuse(node, "a backslash at the end of a line, which SQL Server leaves out with the line's end")


def _text(node: Any, scope: Scope) -> Value:
    """N'…', _utf8mb4'…' and PostgreSQL's E'…'."""
    if kind(node) == "Introducer":
        if str(node.this).lower() not in ("_utf8mb4", "_utf8", "_utf8mb3", "_latin1", "_ascii"):
            refuse(node, "a character set that is not understood")
        if str(node.this).lower() != "_utf8mb4" and not str(node.args["expression"].this).isascii():
            refuse(node, "letters whose bytes mean others in this character set")
        return expression(node.args["expression"], scope)
    _refuse_joined_lines(node, scope)
    if kind(node) == "ByteString" and scope.engine.parsed_as != "postgres":
        refuse(node, "bytes")
    return Constant(str(node.this))


def _null(node: Any, scope: Scope) -> Value:
    return Constant(None)


def _boolean(node: Any, scope: Scope) -> Value:
    return Constant(bool(node.this))


def _name(node: Any, scope: Scope) -> Value:
    return scope.look_up(node)


def _case(node: Any, scope: Scope) -> Value:
    only(node, "this", "ifs", "default")
    subject = None if node.args.get("this") is None else expression(node.this, scope)
    arms = [(arm.this, arm.args.get("true")) for arm in node.args["ifs"]]
    return _arms(node, arms, node.args.get("default"), scope, subject)


def _arms(node: Any, arms: list[tuple[Any, Any]], default: Any, scope: Scope, subject: Value | None = None) -> Value:
    """The first arm whose condition is true. An arm that no row reaches is read too: it affects the type."""
    conditions = [_holds(test, scope, subject) for test, _ in arms]
    if isinstance(subject, Column) and subject.is_single:
        refuse(node, "CASE of a FLOAT of 32 bits: write CAST(… AS DOUBLE) around the column")
    refuse_bits(node, [condition.true for condition in conditions], scope)
    answers = [_answer(answer, scope) for _, answer in arms]
    value: Value = Constant(None) if default is None else _answer(default, scope)
    *answers, value = truths_of(scope.engine, [*answers, value])
    kinds = kinds_together(scope.engine, [*answers, value])
    _refuse_typed_nulls([answer for _, answer in arms] + [default], kinds)
    for condition_, answer in zip(reversed(conditions), reversed(answers), strict=True):
        value = pick(condition_.true, answer, value)
    return as_together(scope.engine, value, kinds)


def _typed_null(node: Any) -> str | None:
    """The type of `NULL::text`, as PostgreSQL writes an ELSE NULL; None for anything else."""
    while kind(node) == "Paren":
        node = node.this
    if kind(node) != "Cast" or kind(node.this) != "Null" or node.args["to"].expressions:
        return None
    return str(getattr(node.args["to"].this, "name", ""))


def _answer(node: Any, scope: Scope) -> Value:
    if _typed_null(node) is None:
        return expression(node, scope)
    only(node, "this", "to", "_type")
    return Constant(None)


KIND_OF_TYPE = {
    **{"TEXT": "text", "VARCHAR": "text", "INT": "whole"},
    **{"BIGINT": "whole", "DOUBLE": "double", "DECIMAL": "decimal"},
}


def _refuse_typed_nulls(answers: list[Any], kinds: frozenset[str]) -> None:
    """A typed NULL passes its type on to the values beside it: refused where none of them has that type."""
    for each in answers:
        named = _typed_null(each)
        if named is not None and kinds != {KIND_OF_TYPE.get(named)}:
            refuse(each, "a NULL with a type, which it passes on to the values beside it")


def _holds(test: Any, scope: Scope, subject: Value | None) -> Truth:
    """An arm's condition, or that the subject of the CASE equals the arm's value."""
    if subject is None:
        return condition(test, scope)
    one = expression(test, scope)
    if subject == Constant(True) and type(subject.value) is bool and isinstance(one, Truth):
        return one  # CASE TRUE WHEN …
    if not (isinstance(one, Constant) and kinds_of(subject) == kinds_of(one) and kinds_of(one) <= {"whole", "text"}):
        refuse_other_equality(test, one, scope)
    return comparison_of(scope.engine, subject, "==", one)


def _if(node: Any, scope: Scope) -> Value:
    only(node, "this", "true", "false")
    return _arms(node, [(node.this, node.args["true"])], node.args.get("false"), scope)


def _coalesce(node: Any, scope: Scope) -> Value:
    only(node, "this", "expressions", "is_nvl", "is_null")
    if node.args.get("is_null") and scope.engine.name == "tsql":
        refuse(node, "ISNULL, which cuts its second part to the type of its first: write COALESCE")
    parts = truths_of(scope.engine, [expression(part, scope) for part in (node.this, *node.expressions)])
    *first, value = parts
    for part in reversed(first):
        value = _or_else(part, value, scope)
    return as_together(scope.engine, value, kinds_together(scope.engine, parts))


def _or_else(part: Value, rest: Value, scope: Scope) -> Value:
    """A value, or another one where it is NULL."""
    if isinstance(part, Truth) and kinds_of(rest) <= {"truth", "null"}:
        return choose(unknown(part), truth_of(scope.engine, rest), part)
    part = number_of_truth(scope.engine, part)  # beside 2, a truth value is 1 or 0

    def of(end: Value) -> Value:
        match end:
            case Constant(None):
                return rest
            case Constant() | Total() | Fractions() | Near():
                return end
            case _:
                return pick(null_test(scope.engine, end).true, rest, end)

    return map_ends(part, of)


def _null_if(node: Any, scope: Scope) -> Value:
    only(node, "this", "expression")
    value, other = (expression(node.args[part], scope) for part in ("this", "expression"))
    refuse_other_equality(node, other, scope)
    if _width(value) < _width(other):
        refuse(node, "NULLIF of a number and one of a wider type, which PostgreSQL makes of the first too")
    equal = comparison_of(scope.engine, value, "==", other)
    return as_together(scope.engine, pick(equal.true, Constant(None), value), kinds_together(scope.engine, [value]))


def _width(value: Value) -> int:
    """The width of the widest numeric type that a value can have; -1 where it is not a number."""
    return max((WIDTHS.index(each) for each in kinds_of(value) if each in WIDTHS), default=-1)


WIDTHS = ("whole", "decimal", "double", "computed")


def _cast(node: Any, scope: Scope) -> Value:
    only(node, "this", "to", "_type", *(("safe",) if kind(node) == "TryCast" else ()))
    value = expression(node.this, scope)
    if isinstance(value, Column) and keeps_every_value(
        scope.engine, scope.types.get(value.feature, ""), node.args["to"]
    ):
        return value
    return _made_of_type(node, cast_to(scope.engine, value, node.args["to"]))


def _made_of_type(node: Any, value: Value) -> Value:
    if kinds_of(value) == {"null"}:
        refuse(node, "a NULL with a type, which it passes on to the values beside it")
    return value


def _cast_to_text_type(node: Any, scope: Scope) -> Value:
    """ClickHouse's CAST(x, 'Nullable(Float64)')."""
    only(node, "this", "to")
    type_ = named_type(scope.engine, str(node.args["to"].this))
    return _made_of_type(node, cast_to(scope.engine, expression(node.this, scope), type_))


def _collate(node: Any, scope: Scope) -> Value:
    only(node, "this", "expression")
    name = node.args["expression"]
    if kind(name) not in ("Var", "Identifier"):
        refuse(node, "a collation that is not understood")
    value = expression(node.this, scope)
    return map_ends(value, lambda end: with_collation(scope.engine, end, str(name.this), kind(name) == "Identifier"))


def _call(node: Any, scope: Scope) -> Value:
    """Functions sqlglot has no node for."""
    only(node, "this", "expressions")
    name, parts = node.name, node.expressions
    if (known := scope.functions("", name)) is not None:
        return call_value(node, known, parts, scope)
    if scope.engine.name != "clickhouse":
        refuse(node, f"the function {name} is not understood")
    if name in ("toString", "toBool", "toDate", "toDate32", "toDateTime", "toDateTime64") and parts:
        word = word_call(scope.engine, name, *(expression(part, scope) for part in parts))
        return word if word is not None else refuse(node, f"the function {name} of something other than a word")
    match name, len(parts):
        case "caseWithExpression", size if size >= 4 and not size % 2:
            arms = [(parts[i], parts[i + 1]) for i in range(1, size - 1, 2)]
            return _arms(node, arms, parts[-1], scope, expression(parts[0], scope))
        case (("greaterOrEquals" | "greater" | "lessOrEquals" | "less" | "equals" | "notEquals"), 2):
            sides = [expression(part, scope) for part in parts]
            return comparison_of(scope.engine, sides[0], CLICKHOUSE_SIGNS[name], sides[1])
        case "multiIf", size if size >= 3 and size % 2:
            return _arms(node, [(parts[i], parts[i + 1]) for i in range(0, size - 1, 2)], parts[-1], scope)
        case "isNull", 1:
            return null_test(scope.engine, expression(parts[0], scope))
        case "isNotNull", 1:
            return negate(null_test(scope.engine, expression(parts[0], scope)))
        case "toFloat64", 1:
            type_ = named_type(scope.engine, "Nullable(Float64)")
            return _made_of_type(node, cast_to(scope.engine, expression(parts[0], scope), type_))
        case "_CAST", 2 if kind(parts[1]) == "Literal":
            type_ = named_type(scope.engine, str(parts[1].this))
            return _made_of_type(node, cast_to(scope.engine, expression(parts[0], scope), type_))
        case _:
            refuse(node, f"the function {name} is not understood")


CLICKHOUSE_SIGNS: Mapping[str, Comparison] = {
    **{"greaterOrEquals": ">=", "greater": ">", "lessOrEquals": "<="},
    **{"less": "<", "equals": "==", "notEquals": "!="},
}


def _call_in_schema(node: Any, scope: Scope) -> Value:
    """public.decide(income)."""
    only(node, "this", "expression")
    call = node.args["expression"]
    if kind(node.this) != "Identifier" or kind(call) != "Anonymous":
        refuse(node, "a part of something")
    only(call, "this", "expressions")
    known = scope.functions(str(node.this.this), call.name)
    if known is None:
        refuse(node, f"the function {call.name} is not understood")
    return call_value(node, known, call.expressions, scope)


def _subquery(node: Any, scope: Scope) -> Value:
    """(SELECT cut FROM params)."""
    if scope.query is None:
        refuse(node, "a query within an expression")
    return scope.query(node)


READERS: Mapping[str, Callable[[Any, Scope], Value]] = {
    "Literal": _literal,
    "National": _text,
    "Introducer": _text,
    "ByteString": _text,
    "Null": _null,
    "Boolean": _boolean,
    "Column": _name,
    "Identifier": _name,
    **PREDICATES,
    "Case": _case,
    "If": _if,
    "Coalesce": _coalesce,
    "Nullif": _null_if,
    "Cast": _cast,
    "TryCast": _cast,  # how sqlglot reads CAST in Spark; a cast that could fail is refused in any case
    "CastToStrType": _cast_to_text_type,
    "Collate": _collate,
    **OPERATIONS,
    **BUILTINS,
    "Anonymous": _call,
    "Dot": _call_in_schema,
    "Subquery": _subquery,
}
