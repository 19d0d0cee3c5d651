"""Sums of points in an ONNX graph: products with a table, trees that add up, the class with most, probabilities.

Sums are taken only where every partial sum is a whole number that the type holds exactly: then the order in which a
runtime adds does not matter.

Probabilities by bands in an ONNX graph: how far the class with most points is ahead, and a table row for that lead.

    two most = TopK(score, 2)            lead = first - second, a column
    own = Gather(leads, winner)          reached = lead >= own, one truth value per band after the first
    place = winner * width + how many are reached          probabilities = Gather(table, place)

Only this chain is understood. Points are below 2**53 in magnitude where they become int64, so leads do not overflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gbfl_compile.checking.reading.conditions import Choice, Value, all_of, negate
from gbfl_compile.checking.reading.nodes import Condition, Unread, is_minus_nothing
from gbfl_compile.checking.strict.onnx.graph import attributes, place
from gbfl_compile.checking.strict.onnx.values import (
    EXACT,
    Array,
    Band,
    Constant,
    Ensemble,
    Logits,
    LookUp,
    Ones,
    Points,
    Rates,
    Softmax,
    Tensor,
    Winner,
    whole,
)
from gbfl_compile.ir.nodes import Band as RateBand

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


def band_step(node: Any, inputs: Sequence[Tensor]) -> Tensor | list[Tensor] | None:
    """What a node of the chain gives; None where it is no such node."""
    operator, inputs = _one_way_round(node.op_type, inputs)
    match operator, inputs:
        case "TopK", [Points(dtype="int64", lines=False) as points, Constant(count)] if _says(count, [2]):
            _check(node, {"axis": -1, "largest": 1, "sorted": 1}, {"axis": (1, -1), "largest": (1,), "sorted": (1,)})
            return [Band(points, "two most"), Band(points, "unused")]
        case "Gather", [Band(points, "two most"), Constant(index)] if _is_one_of(index, (0, 1)):
            _check(node, {"axis": 0}, {"axis": (1, -1)})
            return Band(points, "second" if int(index) else "first")
        case "Sub", [Band(points, "first"), Band(other, "second")] if _same(points, other):
            _check(node, {}, {})
            return Band(points, "lead")
        case "Reshape", [Band(points, "lead"), Constant(shape)] if _says(shape, [-1, 1]):
            _check(node, {"allowzero": 0}, {"allowzero": (0,)})
            return Band(points, "column")
        case "Gather", [Constant(array) as leads, Winner(points, last)] if array.dtype == np.int64 and array.ndim == 2:
            _check(node, {"axis": 0}, {"axis": (0,)})
            if last or len(array) != len(points.bias):
                raise Unread(f"{place(node)}: leads of other classes, or of the last of equal ones")
            return Band(points, "own leads", leads)
        case "GreaterOrEqual", [Band(points, "column"), Band(other, "own leads", leads)] if _same(points, other):
            _check(node, {}, {})
            return Band(points, "reached", leads)
        case "Cast", [Band(points, "reached", leads)]:
            _check(node, {"to": None}, {"to": (7,)})  # INT64
            return Band(points, "ones", leads)
        case "ReduceSum", [Band(points, "ones", leads), Constant(axes)] if _says(axes, [1]) or _says(axes, [-1]):
            _check(node, {"keepdims": 1, "noop_with_empty_axes": 0}, {"keepdims": (0,), "noop_with_empty_axes": (0, 1)})
            return Band(points, "count", leads)
        case "Mul", [Winner(points, False), Constant(width)] if width.dtype == np.int64 and width.ndim == 0:
            _check(node, {}, {})
            return Band(points, "start", width=int(width))
        case "Add", [Band(points, "start", _, width), Band(other, "count", leads)] if _same(points, other):
            _check(node, {}, {})
            return Band(points, "place", leads, width)
        case "Gather", [Constant() as table, Band(points, "place", leads, width)] if leads is not None:
            _check(node, {"axis": 0}, {"axis": (0,)})
            return Rates(points, _bands(node, len(points.bias), leads.array, width, table.array))
    return None


def _one_way_round(operator: str, inputs: Sequence[Tensor]) -> tuple[str, Sequence[Tensor]]:
    """`b <= a` as `a >= b`; sums and products with the winner's part first."""
    match operator, inputs:
        case "LessOrEqual", [Band() as own, Band() as column]:
            return "GreaterOrEqual", [column, own]
        case "Add", [Band(stage="count") as count, Band() as start]:
            return operator, [start, count]
        case "Mul", [Constant() as width, Winner() as winner]:
            return operator, [winner, width]
    return operator, inputs


def _check(node: Any, known: dict[str, Any], allowed: dict[str, tuple[int, ...]]) -> None:
    for name, value in attributes(node, known).items():
        if value not in allowed[name]:
            raise Unread(f"{place(node)}: {name}={value} is not understood")


def _says(array: Array, numbers: list[int]) -> bool:
    return array.dtype == np.int64 and array.tolist() == numbers


def _is_one_of(array: Array, numbers: tuple[int, ...]) -> bool:
    return array.dtype == np.int64 and array.ndim == 0 and int(array) in numbers


def _same(one: Points, other: Points) -> bool:
    return one.bias == other.bias and one.terms == other.terms


def _bands(node: Any, classes: int, leads: Array, width: int, table: Array) -> tuple[tuple[RateBand, ...], ...]:
    """The bands of each class: from 0 on, and from each of its leads on."""
    if leads.shape != (classes, width - 1) or table.shape != (classes * width, classes) or table.dtype != np.float64:
        raise Unread(f"{place(node)}: a table that has not one row for each class and band")
    bands = []
    for c, own in enumerate(leads.tolist()):
        edges = [0, *own]
        if any(a > b for a, b in pairwise(edges)):
            raise Unread(f"{place(node)}: leads that do not ascend")
        rows = [tuple(row) for row in table[c * width : (c + 1) * width].tolist()]
        if any(is_minus_nothing(share) for row in rows for share in row):
            raise Unread(f"{place(node)}: a probability is -0.0")
        last = {edge: RateBand(edge, row) for edge, row in zip(edges, rows, strict=True)}  # of equal leads the last
        bands.append(tuple(last.values()))
    return tuple(bands)
