"""SQL conditions, node by node: AND, OR, NOT, comparisons, BETWEEN, IN, IS, and what NULL and NaN make of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gbfl_compile.check.readers.conditions import Comparison
from gbfl_compile.check.readers.sql_comparisons import comparison_of, null_test, truth_of
from gbfl_compile.check.readers.sql_logic import (
    EVERY_NUMBER,
    Truth,
    among,
    both,
    conjunction,
    disjunction,
    either,
    known,
    negated,
)
from gbfl_compile.check.readers.sql_nodes import Scope, kind, only, operands, refuse
from gbfl_compile.check.readers.sql_values import Column, Constant, Value, folded, said
from gbfl_compile.check.reading import Unread

COMPARISONS: Mapping[str, Comparison] = {"LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "EQ": "==", "NEQ": "!="}

UNCLEAR = {*COMPARISONS, "Is", "Between", "In", "NullSafeEQ", "NullSafeNEQ", "Not", "And", "Or"}
"""`a < b < c`, `a = b IS NULL`: engines and sqlglot need not agree which comes first, so brackets are asked for."""


def operand(node: Any, scope: Scope) -> Value:
    """An expression beside a comparison."""
    if kind(node) in UNCLEAR:
        refuse(node, "a comparison within a comparison, without brackets")
    return scope.follow(node, scope)


def condition(node: Any, scope: Scope) -> Truth:
    """An expression where a condition is asked for."""
    return truth_of(scope.engine, scope.follow(node, scope))


def _and(node: Any, scope: Scope) -> Value:
    return conjunction([condition(part, scope) for part in operands(node)])


def _or(node: Any, scope: Scope) -> Value:
    return disjunction([condition(part, scope) for part in operands(node)])


def _not(node: Any, scope: Scope) -> Value:
    only(node, "this")
    if kind(node.this) == "Between" and scope.engine.nan == "ieee":
        refuse(node, f"NOT BETWEEN, which is false for NaN in {scope.engine.name}: write NOT (… BETWEEN …)")
    return negated(condition(node.this, scope))


def _compare(node: Any, scope: Scope) -> Value:
    only(node, "this", "expression")
    sign = COMPARISONS[kind(node)]
    left, right = node.this, node.args["expression"]
    if kind(right) in ("Any", "All"):
        return _quantified(node, left, sign, right, scope)
    return comparison_of(scope.engine, operand(left, scope), sign, operand(right, scope))


def _quantified(node: Any, left: Any, sign: Comparison, right: Any, scope: Scope) -> Value:
    """`x = ANY (ARRAY[1, 2])`, which is how PostgreSQL writes IN."""
    array = right.this
    while kind(array) == "Paren":
        array = array.this
    if kind(array) != "Array":
        refuse(node, "ANY or ALL of something that is not a list")
    value = operand(left, scope)
    items = [scope.follow(item, scope) for item in array.expressions]
    for item in items:
        refuse_other_equality(node, item, scope)
    parts = [comparison_of(scope.engine, value, sign, item) for item in items]
    return disjunction(parts) if kind(right) == "Any" else conjunction(parts)


def _between(node: Any, scope: Scope) -> Value:
    only(node, "this", "low", "high")
    value = operand(node.this, scope)
    low, high = (operand(node.args[side], scope) for side in ("low", "high"))
    engine = scope.engine
    return conjunction([comparison_of(engine, value, ">=", low), comparison_of(engine, value, "<=", high)])


def _in(node: Any, scope: Scope) -> Value:
    only(node, "this", "expressions")
    value = operand(node.this, scope)
    items = [scope.follow(item, scope) for item in node.expressions]
    if not items:
        refuse(node, "IN of nothing")
    for item in items:
        refuse_other_equality(node, item, scope)
    return disjunction([comparison_of(scope.engine, value, "==", item) for item in items])


def refuse_other_equality(node: Any, item: Value, scope: Scope) -> None:
    """IN and CASE x WHEN look up bits in some engines: NULL is found or passed over, and -0.0 is not 0.0."""
    if scope.engine.looks_up_bits and not (isinstance(item, Constant) and item.value):
        refuse(node, f"what may be NULL or nought among values that {scope.engine.name} looks up by their bits")


def _is(node: Any, scope: Scope) -> Value:
    only(node, "this", "expression", "negate")
    asked = node.args["expression"]
    value = operand(node.this, scope)
    if kind(asked) == "Null":
        found = null_test(scope.engine, value)
        return negated(found) if node.args.get("negate") else found
    only(node, "this", "expression")
    if kind(asked) == "Boolean":
        truth = truth_of(scope.engine, value)
        return known(truth.true if asked.this else truth.false)
    refuse(node, "IS with something else than NULL, TRUE or FALSE")


def _null_safe(node: Any, scope: Scope) -> Value:
    only(node, "this", "expression")
    engine = scope.engine
    if engine.distinct_takes_all and kind(node.parent) not in ("Paren", "If"):
        refuse(node, f"IS DISTINCT FROM, which {engine.name} compares with all that follows: put it in brackets")
    if engine.nan == "ieee":
        refuse(node, f"IS DISTINCT FROM, by which {engine.name} may find NaN equal to NaN")
    left, right = operand(node.this, scope), operand(node.args["expression"], scope)
    nulls = both((null_test(engine, left).true, null_test(engine, right).true))
    equal = known(either((comparison_of(engine, left, "==", right).true, nulls)))
    return equal if kind(node) == "NullSafeEQ" else negated(equal)


def _is_nan(node: Any, scope: Scope) -> Value:
    only(node, "this")
    engine = scope.engine
    if engine.nan == "none":
        refuse(node, f"{engine.name} has no NaN")

    def of(end: Value) -> Truth:
        if not isinstance(end, Column):
            raise Unread(f"{said(end)} asked for NaN")
        return Truth(
            among(end.feature, (), False, True), among(end.feature, EVERY_NUMBER, engine.null_is_not_nan, False)
        )

    return folded(scope.follow(node.this, scope), of)


PREDICATES: Mapping[str, Callable[[Any, Scope], Value]] = {
    "And": _and,
    "Or": _or,
    "Not": _not,
    **dict.fromkeys(COMPARISONS, _compare),
    "Between": _between,
    "In": _in,
    "Is": _is,
    "NullSafeEQ": _null_safe,
    "NullSafeNEQ": _null_safe,
    "IsNan": _is_nan,
}
