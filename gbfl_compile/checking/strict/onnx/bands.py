"""Probabilities by bands in an ONNX graph: how far the class with most points is ahead, and a table row for that lead.

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

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.onnx.graph import attributes, place
from gbfl_compile.checking.strict.onnx.values import Array, Band, Constant, Points, Rates, Tensor, Winner
from gbfl_compile.ir.nodes import Band as RateBand


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
        last = {edge: RateBand(edge, row) for edge, row in zip(edges, rows, strict=True)}  # of equal leads the last
        bands.append(tuple(last.values()))
    return tuple(bands)
