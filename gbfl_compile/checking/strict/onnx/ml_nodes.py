"""The nodes of ai.onnx.ml in an ONNX graph: LabelEncoder, what is computed from its codes, and TreeEnsemble.

A code means the texts that the encoder gives it to. Each comparison of codes and each table of them is tried on every
listed text, on any other text and on the missing value: what is read are sets of texts, whatever the numbers are.

Of a TreeEnsemble (ai.onnx.ml 5), the leaf that a row reaches in each tree is read. A value that is NaN fails each
comparison, or goes the way of those that hold where the node says so. Refused are `!=`, because the specification and
the runtimes disagree about NaN there, and `==`: ONNX Runtime makes one node of a chain of them on one feature, and
forgets where the second sends a missing value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gbfl_compile.checking.reading.conditions import ON_NUMBERS, Comparison, Value, any_of, choice, compare, missing
from gbfl_compile.checking.reading.nodes import Condition, Test, Unread
from gbfl_compile.checking.strict.onnx.graph import array_of, attributes, place
from gbfl_compile.checking.strict.onnx.points import not_understood
from gbfl_compile.checking.strict.onnx.values import (
    EXACT,
    Array,
    CodedColumn,
    Codes,
    Ensemble,
    Matrix,
    Tensor,
    Truth,
    Wide,
    WordColumn,
    single,
    whole,
)
from gbfl_compile.ir.intervals import Texts, code_values
from gbfl_compile.ir.kinds import Codebook

MOST_TEXTS = 1_000_000


def label_encoder(node: Any, inputs: Sequence[Tensor]) -> Tensor:
    """LabelEncoder from texts to whole numbers, each text once and the default written out."""
    fields = attributes(node, dict.fromkeys(("keys_strings", "values_int64s", "default_int64")))
    if any(value is None for value in fields.values()):
        raise Unread(f"{place(node)}: does not say texts, whole numbers and one for all other texts")
    texts, numbers = _texts(node, fields["keys_strings"]), tuple(fields["values_int64s"])
    if len(set(texts)) != len(texts) or len(numbers) != len(texts) or not 0 < len(texts) <= MOST_TEXTS:
        raise Unread(f"{place(node)}: has a text twice, or not one number per text")
    match inputs:
        case [WordColumn(feature)]:
            return Codes(feature, texts, numbers, fields["default_int64"], None)
        case _:
            raise not_understood(node)


def _texts(node: Any, keys: Sequence[bytes]) -> tuple[str, ...]:
    try:
        texts = tuple(key.decode("utf-8") for key in keys)
    except UnicodeDecodeError:
        raise Unread(f"{place(node)}: a text is not UTF-8") from None
    if any("\0" in text for text in texts):
        raise Unread(f"{place(node)}: a text has a NUL character, at which a runtime may end it")
    return texts


def with_missing(node: Any, condition: Condition, then: Tensor, codes: Codes) -> Tensor:
    """Where of a category's missing values, a code for them, and its other codes."""
    number = single(then)
    if codes.missing is not None or condition != missing(codes.feature) or not isinstance(number, np.int64):
        raise not_understood(node)
    return replace(codes, missing=int(number))


def look_up(node: Any, table: Array, codes: Codes) -> Tensor:
    """Gather of the rows of a table by codes: truth values, or columns of numbers."""
    if codes.missing is None:
        raise Unread(f"{place(node)}: looks up codes before missing values are separated")
    every = (*codes.numbers, codes.other, codes.missing)
    if not all(0 <= number < len(table) for number in every):
        raise Unread(f"{place(node)}: looks for a row that the table does not have")
    if table.ndim == 1 and table.dtype == np.bool_:
        return Truth(_test(codes, [bool(table[number]) for number in every]))
    if table.ndim == 2 and str(table.dtype) in EXACT and not np.isnan(table.astype(np.float64)).any():
        columns = [CodedColumn(codes, tuple(float(column[number]) for number in every)) for column in table.T]
        return Wide(tuple(columns), str(table.dtype))
    raise not_understood(node)


def compare_codes(column: CodedColumn, sign: Comparison, bound: float) -> Condition:
    """A comparison of a looked-up column with a number."""
    return _test(column.codes, [ON_NUMBERS[sign](number, bound) for number in column.numbers])


def _test(codes: Codes, holds: Sequence[bool]) -> Test:
    """The test that holds for these texts, for any other text, and for the missing value."""
    *by_text, other, absent = holds
    listed = frozenset(text for text, held in zip(codes.texts, by_text, strict=True) if held != other)
    own = {codes.feature: codes.texts}
    book = Codebook(tuple(own.get(feature, ()) for feature in range(codes.feature + 1)))
    return Test(codes.feature, code_values(Texts(listed, other, absent), codes.feature, book))


def side_by_side(node: Any, parts: Sequence[Tensor]) -> Tensor:
    """Concat of features and of looked-up columns, all of one type."""
    columns: list[int | CodedColumn] = []
    dtypes = set()
    for part in parts:
        match part:
            case Matrix(features, dtype):
                columns += features
            case Wide(more, dtype):
                columns += more
            case _:
                raise not_understood(node)
        dtypes.add(dtype)
    if len(dtypes) != 1:
        raise not_understood(node)
    return Wide(tuple(columns), dtypes.pop())


def texts_of(tensors: Iterable[Tensor]) -> dict[int, tuple[str, ...]]:
    """The texts that each category is encoded by; two encoders of one category must list the same ones."""
    texts: dict[int, tuple[str, ...]] = {}
    for tensor in tensors:
        if isinstance(tensor, Codes) and texts.setdefault(tensor.feature, tensor.texts) != tensor.texts:
            raise Unread("two encoders of one category list different texts")
    return texts


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
        raise Unread(f"{place(node)}: tree node {i} has a test that is not understood")
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
