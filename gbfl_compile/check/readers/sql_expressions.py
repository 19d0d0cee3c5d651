"""SQL expressions, followed node by node: what each one is for any row, with NULL and NaN as the engine has them.

Nodes are sqlglot's. One that is not in the table, or that carries something the table does not expect, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gbfl_compile.check.readers.sql_arithmetic import added, divided, exp_of, extreme, multiplied, negative, subtracted
from gbfl_compile.check.readers.sql_choices import as_together, kinds_together
from gbfl_compile.check.readers.sql_comparisons import comparison_of, null_test, truth_of
from gbfl_compile.check.readers.sql_logic import FALSE, TRUE, Formula, Truth, chosen, negated, unknown
from gbfl_compile.check.readers.sql_nodes import Placed, Scope, kind, only, operands, refuse, snippet
from gbfl_compile.check.readers.sql_numbers import number
from gbfl_compile.check.readers.sql_predicates import PREDICATES, condition, refuse_other_equality
from gbfl_compile.check.readers.sql_types import cast_to, named_type
from gbfl_compile.check.readers.sql_values import Constant, Joined, Value, kinds_of, pick
from gbfl_compile.check.reading import Unread


def expression(node: Any, scope: Scope) -> Value:
    """What an expression is for any row."""
    while kind(node) == "Paren":
        only(node, "this")
        node = node.this
    reader = READERS.get(kind(node))
    if reader is None:
        refuse(node, f"{kind(node)} is not understood")
    try:
        return reader(node, scope)
    except Unread as error:
        if isinstance(error, Placed):
            raise
        raise Placed(f"{error}: {snippet(node)}") from None


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
    """The first arm whose condition is true. An arm no row comes to is read too: it has a say in the type."""
    typed = _kinds_read_before(node, scope)
    read: list[Value] = []
    taken: list[tuple[Formula, Value]] = []
    for asked, answer in (*arms, (None, default)):
        settled = bool(taken) and taken[-1][0] is TRUE
        if settled and typed is not None:
            break
        holds = TRUE if asked is None else _holds(asked, scope, subject)
        reached = not settled and holds is not FALSE
        if reached or typed is None:
            read.append(Constant(None) if answer is None else expression(answer, scope))
        if reached:
            taken.append((holds, read[-1]))
    if typed is None:
        typed = _kinds_of_all(node, [*(answer for _, answer in arms), default], read, scope)
    *first, (_, value) = taken
    for holds, answer_ in reversed(first):
        value = pick(holds, answer_, value)
    return as_together(scope.engine, value, typed)


def _holds(asked: Any, scope: Scope, subject: Value | None) -> Formula:
    """Where an arm's condition is true, or the subject of the CASE is what the arm asks for."""
    if subject is None:
        return condition(asked, scope).true
    one = expression(asked, scope)
    refuse_other_equality(asked, one, scope)
    return comparison_of(scope.engine, subject, "==", one).true


def _kinds_read_before(node: Any, scope: Scope) -> frozenset[str] | None:
    return None if scope.typed is None else scope.typed.get(id(node))


def _kinds_of_all(node: Any, answers: Sequence[Any], parts: Sequence[Value], scope: Scope) -> frozenset[str]:
    """The kinds of all parts of a choice, kept for the next time where no part comes from a column."""
    kinds = kinds_together(scope.engine, parts)
    if scope.typed is not None and not any(_comes_from_a_column(answer, scope.typed) for answer in answers):
        scope.typed[id(node)] = kinds
    return kinds


def _comes_from_a_column(answer: Any, typed: Mapping[int, frozenset[str]]) -> bool:
    """A choice that was kept does not: what its conditions ask for is no matter of its type."""
    while kind(answer) == "Paren":
        answer = answer.this
    if answer is None or id(answer) in typed:
        return False
    return any(kind(part) in ("Column", "Identifier") for part in answer.walk())


def _if(node: Any, scope: Scope) -> Value:
    only(node, "this", "true", "false")
    return _arms(node, [(node.this, node.args["true"])], node.args.get("false"), scope)


def _coalesce(node: Any, scope: Scope) -> Value:
    only(node, "this", "expressions", "is_nvl", "is_null")
    if node.args.get("is_null") and scope.engine.name == "tsql":
        refuse(node, "ISNULL, which cuts its second part to the type of its first: write COALESCE")
    parts = [expression(part, scope) for part in (node.this, *node.expressions)]
    *first, value = parts
    for part in reversed(first):
        if isinstance(part, Truth):
            value = chosen(unknown(part), truth_of(scope.engine, value), part)
        else:
            value = pick(null_test(scope.engine, part).true, value, part)
    return as_together(scope.engine, value, kinds_together(scope.engine, parts))


def _null_if(node: Any, scope: Scope) -> Value:
    only(node, "this", "expression")
    value, other = (expression(node.args[part], scope) for part in ("this", "expression"))
    refuse_other_equality(node, other, scope)
    equal = comparison_of(scope.engine, value, "==", other)
    return as_together(scope.engine, pick(equal.true, Constant(None), value), kinds_together(scope.engine, [value]))


def _cast(node: Any, scope: Scope) -> Value:
    only(node, "this", "to", "_type")
    return _made_of_type(node, cast_to(scope.engine, expression(node.this, scope), node.args["to"]))


def _made_of_type(node: Any, value: Value) -> Value:
    if kinds_of(value) == {"null"}:
        refuse(node, "a NULL that has a type: it gives it to whatever it stands beside")
    return value


def _cast_to_text_type(node: Any, scope: Scope) -> Value:
    """ClickHouse's CAST(x, 'Nullable(Float64)')."""
    only(node, "this", "to")
    type_ = named_type(scope.engine, str(node.args["to"].this))
    return _made_of_type(node, cast_to(scope.engine, expression(node.this, scope), type_))


def _neg(node: Any, scope: Scope) -> Value:
    only(node, "this")
    return negative(scope.engine, expression(node.this, scope))


def _add(node: Any, scope: Scope) -> Value:
    first, *rest = [expression(part, scope) for part in operands(node)]
    for part in rest:
        first = added(scope.engine, first, part)
    return first


def _binary(node: Any, scope: Scope) -> Value:
    only(node, "this", "expression", "typed", "safe")
    act = {"Sub": subtracted, "Mul": multiplied, "Div": divided}[kind(node)]
    return act(scope.engine, expression(node.this, scope), expression(node.args["expression"], scope))


def _extreme(node: Any, scope: Scope) -> Value:
    only(node, "this", "expressions", "ignore_nulls")
    parts = [expression(part, scope) for part in (node.this, *node.expressions)]
    if len(parts) < 2:
        refuse(node, "the extreme of one")
    return extreme(scope.engine, kind(node) == "Greatest", parts)


def _exp(node: Any, scope: Scope) -> Value:
    only(node, "this")
    return exp_of(expression(node.this, scope))


def _join_texts(node: Any, scope: Scope) -> Value:
    if kind(node) == "DPipe":
        parts = operands(node)
    else:
        only(node, "expressions", "safe", "coalesce")
        parts = node.expressions
    found = [expression(part, scope) for part in parts]
    return Joined(tuple(piece for part in found for piece in (part.parts if isinstance(part, Joined) else (part,))))


def _bracket(node: Any, scope: Scope) -> Value:
    """DuckDB's `['a', 'b'][leaf + 1]`, counted from one.

    sqlglot counts from nought where it knows the place to be a whole number, and then there is no `+ 1` left.
    """
    only(node, "this", "expressions", "_type")
    (place,) = node.expressions
    while kind(place) == "Paren":
        place = place.this
    moved = kind(place) != "Add" or kind(place.this) != "Column" or place.args["expression"].sql() != "1"
    if scope.engine.name != "duckdb" or kind(node.this) != "Array" or moved:
        refuse(node, "a look-up that is not understood")
    items = node.this.expressions
    index = expression(place, scope)
    if not isinstance(index, Constant) or type(index.value) is not int:
        refuse(node, "a look-up by something that is not one of a few whole numbers")
    kinds = _kinds_read_before(node, scope)
    if kinds is None:
        kinds = _kinds_of_all(node, items, [expression(item, scope) for item in items], scope)
    value = expression(items[index.value - 1], scope) if 1 <= index.value <= len(items) else Constant(None)
    return as_together(scope.engine, value, kinds)


def _call(node: Any, scope: Scope) -> Value:
    """Functions sqlglot has no node for."""
    only(node, "this", "expressions")
    name, parts = str(node.this), node.expressions
    if scope.engine.name != "clickhouse":
        refuse(node, f"the function {name} is not understood")
    match name, len(parts):
        case "multiIf", size if size >= 3 and size % 2:
            return _arms(node, [(parts[i], parts[i + 1]) for i in range(0, size - 1, 2)], parts[-1], scope)
        case "isNull", 1:
            return null_test(scope.engine, expression(parts[0], scope))
        case "isNotNull", 1:
            return negated(null_test(scope.engine, expression(parts[0], scope)))
        case "toFloat64", 1:
            type_ = named_type(scope.engine, "Nullable(Float64)")
            return _made_of_type(node, cast_to(scope.engine, expression(parts[0], scope), type_))
        case "_CAST", 2 if kind(parts[1]) == "Literal":
            type_ = named_type(scope.engine, str(parts[1].this))
            return _made_of_type(node, cast_to(scope.engine, expression(parts[0], scope), type_))
        case _:
            refuse(node, f"the function {name} is not understood")


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
    "Neg": _neg,
    "Add": _add,
    "Sub": _binary,
    "Mul": _binary,
    "Div": _binary,
    "Greatest": _extreme,
    "Least": _extreme,
    "Exp": _exp,
    "DPipe": _join_texts,
    "Concat": _join_texts,
    "Bracket": _bracket,
    "Anonymous": _call,
}
