"""What `+`, `-`, `*` and `/` come to: sums of points, computed numbers, and features with a constant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gbfl_compile.checking.general.sql.arithmetic import add, divide, minus, multiply, negative
from gbfl_compile.checking.general.sql.engines import Engine
from gbfl_compile.checking.general.sql.linear import linear_feature
from gbfl_compile.checking.general.sql.parsing import Scope, kind, only
from gbfl_compile.checking.general.sql.values import Sign, Value


def _neg(node: Any, scope: Scope) -> Value:
    only(node, "this")
    return negative(scope.engine, scope.follow(node.this, scope))


def _add(node: Any, scope: Scope) -> Value:
    """In the order in which doubles are added; a sum may be long, so this does not recurse on its left."""
    rest = []
    while kind(node) in ("Add", "Paren"):
        if kind(node) == "Add":
            only(node, "this", "expression", "safe")
            rest.append(node.args["expression"])
        node = node.this
    first = scope.follow(node, scope)
    for part in reversed(rest):
        second = scope.follow(part, scope)
        first = linear_feature(scope.engine, first, "+", second, scope.types) or add(scope.engine, first, second)
    return first


def _binary(node: Any, scope: Scope) -> Value:
    only(node, "this", "expression", "typed", "safe")
    sign, act = BINARY[kind(node)]
    left, right = scope.follow(node.this, scope), scope.follow(node.args["expression"], scope)
    return linear_feature(scope.engine, left, sign, right, scope.types) or act(scope.engine, left, right)


BINARY: Mapping[str, tuple[Sign, Callable[[Engine, Value, Value], Value]]] = {
    "Sub": ("-", minus),
    "Mul": ("*", multiply),
    "Div": ("/", divide),
}


OPERATIONS: Mapping[str, Callable[[Any, Scope], Value]] = {
    "Neg": _neg,
    "Add": _add,
    "Sub": _binary,
    "Mul": _binary,
    "Div": _binary,
}
