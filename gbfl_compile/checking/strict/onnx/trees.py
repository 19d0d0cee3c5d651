"""TreeEnsemble (ai.onnx.ml 5) read back: for each tree, the leaf a row reaches.

A value that is NaN fails each comparison; where the node says so it goes the way of those that hold. (What NaN does
at a node that asks `!=` the specification and the runtimes do not say alike: refused. So is `==`: ONNX Runtime makes
one node of a chain of them on one feature, and forgets where the second sends a missing value.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gbfl_compile.checking.reading.choices import Value, choice
from gbfl_compile.checking.reading.conditions import Comparison, any_of, compare, missing
from gbfl_compile.checking.reading.nodes import Condition, Unread
from gbfl_compile.checking.strict.onnx.graph import array_of, attributes, place
from gbfl_compile.checking.strict.onnx.values import CodedColumn, Ensemble, Matrix, Tensor, Wide, whole
from gbfl_compile.checking.strict.onnx.words import compare_codes

MODES: Mapping[int, Comparison] = {0: "<=", 1: "<", 2: ">=", 3: ">"}

LISTS = (
    "nodes_featureids",
    "nodes_truenodeids",
    "nodes_trueleafs",
    "nodes_falsenodeids",
    "nodes_falseleafs",
    "nodes_missing_value_tracks_true",
)

KNOWN: Mapping[str, Any] = {
    **dict.fromkeys(LISTS),
    **dict.fromkeys(("nodes_splits", "nodes_modes", "leaf_weights", "leaf_targetids", "tree_roots")),
    "aggregate_function": 1,
    "post_transform": 0,
    "n_targets": None,
}

SUM, NO_TRANSFORM = 1, 0


def ensemble(node: Any, inputs: Sequence[Tensor]) -> Ensemble:
    """The trees of a TreeEnsemble node."""
    matrix = inputs[0] if len(inputs) == 1 else None
    fields = attributes(node, KNOWN)
    if not isinstance(matrix, Matrix | Wide) or any(value is None for value in fields.values()):
        raise Unread(f"{place(node)}: is not given a matrix, or lacks an attribute")
    if fields["aggregate_function"] != SUM or fields["post_transform"] != NO_TRANSFORM:
        raise Unread(f"{place(node)}: does more than add up")
    splits, modes, weights = (array_of(fields[name]) for name in ("nodes_splits", "nodes_modes", "leaf_weights"))
    count, leaves = len(fields["nodes_featureids"]), len(fields["leaf_targetids"])
    lengths = {*(len(fields[name]) for name in LISTS), splits.size, modes.size}
    if lengths != {count} or weights.size != leaves or splits.dtype != matrix.dtype or weights.dtype != matrix.dtype:
        raise Unread(f"{place(node)}: its lists are not of one length, or not of the input's type")
    points = [whole(weight) for weight in weights.reshape(-1)]
    targets = fields["leaf_targetids"]
    if None in points or not all(0 <= target < fields["n_targets"] for target in targets):
        raise Unread(f"{place(node)}: a leaf's weight is not whole, or its target not there")
    conditions = [
        _condition(node, fields, i, float(splits.reshape(-1)[i]), int(modes.reshape(-1)[i]), matrix)
        for i in range(count)
    ]
    trees = tuple(_trees(node, fields, conditions, leaves))
    return Ensemble(trees, tuple(targets), tuple(p for p in points if p is not None), fields["n_targets"], matrix.dtype)


def _condition(
    node: Any, fields: Mapping[str, Any], i: int, split: float, mode: int, matrix: Matrix | Wide
) -> Condition:
    index = fields["nodes_featureids"][i]
    columns = matrix.features if isinstance(matrix, Matrix) else matrix.columns
    if mode not in MODES or not 0 <= index < len(columns) or split != split:
        raise Unread(f"{place(node)}: tree node {i} asks something that is not understood")
    tracks = fields["nodes_missing_value_tracks_true"][i]
    if tracks not in (0, 1):
        raise Unread(f"{place(node)}: tree node {i} sends missing values nowhere")
    column = columns[index]
    if isinstance(column, CodedColumn):  # never NaN, so it does not matter which way a missing value goes
        return compare_codes(column, MODES[mode], split)
    condition = compare(column, MODES[mode], split)
    return any_of((condition, missing(column))) if tracks else condition


def _trees(node: Any, fields: Mapping[str, Any], conditions: Sequence[Condition], leaves: int) -> list[Value]:
    """The graph of choices below each root, ending in leaf numbers; a node that leads back to itself is refused."""
    values: dict[int, Value] = {}
    opened: set[int] = set()

    def side(i: int, which: str) -> tuple[bool, int]:
        is_leaf, index = fields[f"nodes_{which}leafs"][i], fields[f"nodes_{which}nodeids"][i]
        if is_leaf not in (0, 1) or not 0 <= index < (leaves if is_leaf else len(conditions)):
            raise Unread(f"{place(node)}: tree node {i} leads to nowhere")
        return bool(is_leaf), index

    for root in fields["tree_roots"]:
        if not 0 <= root < len(conditions):
            raise Unread(f"{place(node)}: root {root} is not there")
        waiting = [root]
        while waiting:
            i = waiting[-1]
            sides = [side(i, "true"), side(i, "false")]
            below = [index for is_leaf, index in sides if not is_leaf and index not in values]
            if i in values or not below:
                then, otherwise = (index if is_leaf else values[index] for is_leaf, index in sides)
                values.setdefault(i, choice(conditions[i], then, otherwise))
                waiting.pop()
            elif i in opened:
                raise Unread(f"{place(node)}: tree node {i} leads back to itself")
            else:
                opened.add(i)
                waiting += below
    return [values[root] for root in fields["tree_roots"]]
