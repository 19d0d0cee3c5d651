"""Sums of points in an ONNX graph: products with a table, trees that add up, the class with most, probabilities.

Sums are taken only where every partial sum is a whole number that the type holds exactly: then the order in which a
runtime adds does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gbfl_compile.checking.reading.choices import Choice, Value
from gbfl_compile.checking.reading.conditions import all_of, negate
from gbfl_compile.checking.reading.nodes import Condition, Unread
from gbfl_compile.checking.strict.onnx.graph import attributes, place
from gbfl_compile.checking.strict.onnx.values import (
    EXACT,
    Constant,
    Ensemble,
    Logits,
    LookUp,
    Ones,
    Points,
    Softmax,
    Tensor,
    Winner,
    whole,
)

MOST_WAYS = 100_000
"""Ways through the trees of an ensemble that end in points."""


def not_understood(node: Any) -> Unread:
    """The refusal of a node with inputs it is not known to take."""
    return Unread(f"{place(node)}: {node.op_type} of what it is given is not understood")


def product(node: Any, inputs: Sequence[Tensor]) -> Tensor:
    """MatMul of a table of points and the rules that hold: points by class, in lines."""
    attributes(node, {})
    match inputs:
        case [Constant(array), Ones(conditions, dtype)] if array.dtype == dtype and array.ndim == 2:
            if array.shape[1] != len(conditions) or not array.shape[0]:
                raise not_understood(node)
            worth = [_whole_row(node, column) for column in array.T]
            points = Points((0,) * array.shape[0], tuple(zip(conditions, worth, strict=True)), dtype, True)
            return _exact(node, points)
        case _:
            raise not_understood(node)


def _whole_row(node: Any, row: Any) -> tuple[int, ...]:
    points = [whole(number) for number in row]
    if None in points:
        raise Unread(f"{place(node)}: points that are not whole")
    return tuple(p for p in points if p is not None)


def _exact(node: Any, points: Points) -> Points:
    if points.most >= EXACT.get(points.dtype, 0):
        raise Unread(f"{place(node)}: the points may add up past what {points.dtype} adds exactly")
    return points


def with_bias(node: Any, inputs: Sequence[Tensor]) -> Tensor:
    """Add of points and what each class starts with."""
    attributes(node, {})
    for one, other in (inputs, inputs[::-1]) if len(inputs) == 2 else ():
        points = points_of(node, one) if isinstance(one, Points | Ensemble) else None
        if points is None or not isinstance(other, Constant) or other.array.dtype != points.dtype:
            continue
        count = len(points.bias)
        if other.array.shape in (((count, 1),) if points.lines else ((1, count), (count,))):
            more = _whole_row(node, other.array.reshape(-1))
            bias = tuple(a + b for a, b in zip(points.bias, more, strict=True))
            return _exact(node, Points(bias, points.terms, points.dtype, points.lines))
    raise not_understood(node)


def points_of(node: Any, tensor: Tensor) -> Points | None:
    """Points, or an ensemble's leaves as points: a term for each way that ends in some."""
    match tensor:
        case Points():
            return tensor
        case Ensemble(trees, targets, weights, width, dtype):
            terms = [
                (condition, tuple(weights[leaf] if c == targets[leaf] else 0 for c in range(width)))
                for tree in trees
                for condition, leaf in _ways(tree)
                if weights[leaf]
            ]
            return _exact(node, Points((0,) * width, tuple(terms), dtype, False))
        case LookUp():
            return looked_points(tensor)
        case _:
            return None


def looked_points(look_up: LookUp) -> Points | None:
    """Points that do not depend on the row: a row of a table that is always the same one."""
    array = look_up.table.array
    if array.ndim != 2 or array.dtype != np.float64 or not isinstance(look_up.number, int):
        return None
    points = [whole(number) for number in array[look_up.number]]
    return None if None in points else Points(tuple(p for p in points if p is not None), (), "float64", False)


def _ways(tree: Value) -> list[tuple[Condition, int]]:
    """Each way through a tree and the leaf at its end."""
    ways: list[tuple[Condition, int]] = []
    waiting: list[tuple[Value, tuple[Condition, ...]]] = [(tree, ())]
    while waiting:
        value, so_far = waiting.pop()
        if isinstance(value, Choice):
            waiting.append((value.otherwise, (*so_far, negate(value.condition))))
            waiting.append((value.then, (*so_far, value.condition)))
        elif isinstance(value, int):
            ways.append((all_of(so_far), value))
        if len(ways) + len(waiting) > MOST_WAYS:
            raise Unread(f"more than {MOST_WAYS} ways through the trees")
    return ways


def most_points(node: Any, inputs: Sequence[Tensor]) -> Tensor:
    """ArgMax along the classes."""
    settings = attributes(node, {"axis": 0, "keepdims": 1, "select_last_index": 0})
    points = points_of(node, inputs[0]) if len(inputs) == 1 else None
    if points is None or points.lines or settings["axis"] not in (1, -1) or settings["keepdims"] != 0:
        raise not_understood(node)
    return Winner(points, bool(settings["select_last_index"]))


def logits(node: Any, inputs: Sequence[Tensor]) -> Tensor:
    """Mul of points and what a point is worth."""
    attributes(node, {})
    for one, other in (inputs, inputs[::-1]) if len(inputs) == 2 else ():
        match one, other:
            case Points(dtype="float64", lines=False), Constant(array) if array.dtype == np.float64 and array.ndim == 0:
                return Logits(one, float(array))
    raise not_understood(node)


def softmax(node: Any, inputs: Sequence[Tensor]) -> Tensor:
    """Softmax of logits along the classes."""
    axis = attributes(node, {"axis": -1})["axis"]
    match inputs:
        case [Logits(points, worth)] if axis in (1, -1):
            return Softmax(points, worth)
        case _:
            raise not_understood(node)
