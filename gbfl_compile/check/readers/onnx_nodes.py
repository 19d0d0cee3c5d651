"""The operators of ONNX that emitted graphs use: what each makes of what it is given. No other is understood.

Comparisons are IEEE 754's in the type of their inputs, so NaN fails all of them. Sums are in onnx_points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gbfl_compile.check.readers.choices import Fall, Value, choice, ends, mapped
from gbfl_compile.check.readers.conditions import (
    MIRRORED,
    Comparison,
    all_of,
    any_of,
    compared,
    compared_with_itself,
    constant,
    missing,
    negated,
)
from gbfl_compile.check.readers.onnx_graph import array_of, attributes, place
from gbfl_compile.check.readers.onnx_points import (
    logits,
    looked_points,
    most_points,
    not_understood,
    product,
    softmax,
    with_bias,
)
from gbfl_compile.check.readers.onnx_trees import ensemble
from gbfl_compile.check.readers.onnx_values import (
    EXACT,
    Column,
    Ensemble,
    Fixed,
    Looked,
    Matrix,
    Number,
    Ones,
    Points,
    Shape,
    Tensor,
    Truth,
    Truths,
    Winner,
    WinnersLabel,
    Worded,
    single,
    whole,
)
from gbfl_compile.check.reading import Condition, Unread

INTEGERS: Mapping[str, tuple[int, int]] = {
    "uint8": (0, 255),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
}


def _split(node: Any, given: Sequence[Tensor]) -> list[Tensor]:
    axis = attributes(node, {"axis": 0})["axis"]
    match given:
        case [Matrix(features, dtype), Fixed(sizes)] if axis in (1, -1) and sizes.ndim == 1:
            widths = [whole(size) or 0 for size in sizes]
            if sum(widths) != len(features) or min(widths, default=0) <= 0 or len(widths) != len(node.output):
                raise not_understood(node)
            starts = [sum(widths[:i]) for i in range(len(widths))]
            return [Matrix(features[at : at + width], dtype) for at, width in zip(starts, widths, strict=True)]
        case _:
            raise not_understood(node)


def _squeeze(node: Any, given: Sequence[Tensor]) -> Tensor:
    attributes(node, {})
    match given:
        case [Matrix((feature,), dtype), axes] if whole(single(axes)) in (1, -1):
            return Column(feature, dtype)
        case _:
            raise not_understood(node)


def _shape(node: Any, given: Sequence[Tensor]) -> Tensor:
    attributes(node, {})
    match given:
        case [Matrix(features)]:
            return Shape(len(features))
        case _:
            raise not_understood(node)


def _gather(node: Any, given: Sequence[Tensor]) -> Tensor:
    axis = attributes(node, {"axis": 0})["axis"]
    match given:
        case [Shape(width), Fixed(index)] if width is not None and axis == 0 and index.tolist() == [0]:
            return Shape(None)
        case [Fixed(array) as labels, Winner(points) as winner] if axis == 0 and array.shape == (len(points.bias),):
            return WinnersLabel(labels, winner)
        case [Fixed(array) as table, Number(value, dtype, True)] if axis == 0 and array.ndim and dtype != "uint8":
            if not ends(value) <= set(range(len(array))):
                raise Unread(f"{place(node)}: looks for a row that the table has not")
            return Looked(table, value)
        case _:
            raise not_understood(node)


def _constant_of_shape(node: Any, given: Sequence[Tensor]) -> Tensor:
    told = attributes(node, {"value": None})["value"]
    match given:
        case [Shape(None)] if told is not None:
            return _everywhere(node, Fixed(array_of(told)))
        case _:
            raise not_understood(node)


def _everywhere(node: Any, fixed: Fixed) -> Tensor:
    """A constant as a column."""
    value = single(fixed)
    if isinstance(value, np.bool_):
        return Truth(constant(bool(value)))
    number = whole(value)
    if number is None or str(fixed.array.dtype) not in INTEGERS:
        raise not_understood(node)
    return Number(number, str(fixed.array.dtype), True)


def _compare(asked: Comparison) -> Callable[[Any, Sequence[Tensor]], Tensor]:
    def compare(node: Any, given: Sequence[Tensor]) -> Tensor:
        attributes(node, {})
        match given:
            case [Column(feature, dtype), Fixed(array)] if array.dtype == dtype and single(given[1]) is not None:
                return Truth(compared(feature, asked, float(array.reshape(-1)[0])))
            case [Fixed(array), Column(feature, dtype)] if array.dtype == dtype and single(given[0]) is not None:
                return Truth(compared(feature, MIRRORED[asked], float(array.reshape(-1)[0])))
            case [Column(feature), Column(other)] if feature == other:
                return Truth(compared_with_itself(feature, asked))
            case _:
                raise not_understood(node)

    return compare


def _truth(node: Any, tensor: Tensor) -> Condition:
    if isinstance(tensor, Truth):
        return tensor.condition
    if isinstance(value := single(tensor), np.bool_):
        return constant(bool(value))
    raise not_understood(node)


def _and(node: Any, given: Sequence[Tensor]) -> Tensor:
    attributes(node, {})
    return Truth(all_of(_pair(node, given)))


def _or(node: Any, given: Sequence[Tensor]) -> Tensor:
    attributes(node, {})
    return Truth(any_of(_pair(node, given)))


def _pair(node: Any, given: Sequence[Tensor]) -> list[Condition]:
    """Two truth values, one of them at least a column: two constants would not be one."""
    if len(given) != 2 or not any(isinstance(tensor, Truth) for tensor in given):
        raise not_understood(node)
    return [_truth(node, tensor) for tensor in given]


def _not(node: Any, given: Sequence[Tensor]) -> Tensor:
    attributes(node, {})
    match given:
        case [Truth(condition)]:
            return Truth(negated(condition))
        case _:
            raise not_understood(node)


def _is_nan(node: Any, given: Sequence[Tensor]) -> Tensor:
    attributes(node, {})
    match given:
        case [Column(feature)]:
            return Truth(missing(feature))
        case _:
            raise not_understood(node)


def _where(node: Any, given: Sequence[Tensor]) -> Tensor:
    attributes(node, {})
    match given:
        case [Truth(condition), then, otherwise]:
            sides = [_number(node, side) for side in (then, otherwise)]
            if sides[0].dtype != sides[1].dtype:
                raise not_understood(node)
            return Number(choice(condition, sides[0].value, sides[1].value), sides[0].dtype, True)
        case [Truths(conditions, "by row") as truths, Fixed(texts), Fixed() as silent] if (
            str(texts.dtype) == "object" and texts.shape == (len(conditions),) and single(silent) == ""
        ):
            return Worded(truths, tuple(str(text) for text in texts))
        case _:
            raise not_understood(node)


def _number(node: Any, tensor: Tensor) -> Number:
    if isinstance(tensor, Fixed):
        made = _everywhere(node, tensor) if single(tensor) is not None else None
        tensor = made if made is not None else tensor
    if isinstance(tensor, Number) and tensor.flat:
        return tensor
    raise not_understood(node)


def _cast(node: Any, given: Sequence[Tensor]) -> Tensor:
    from onnx import TensorProto, helper

    to = attributes(node, {"to": None})["to"]
    if len(given) != 1 or to is None or to not in TensorProto.DataType.values() or to == TensorProto.UNDEFINED:
        raise not_understood(node)
    kind = "str" if to == TensorProto.STRING else str(helper.tensor_dtype_to_np_dtype(to))
    match given[0]:
        case Truths(conditions, "lines") if kind in EXACT:
            return Ones(conditions, kind)
        case Number(value, _, flat) if kind in INTEGERS and _fits(ends(value), kind):
            return Number(value, kind, flat)
        case Ensemble((tree,), targets, weights, 1) as found if kind in INTEGERS and set(targets) <= {0}:
            return Number(_weighed(tree, found), kind, False) if _fits(set(weights), kind) else _refuse(node)
        case Points(bias, terms, dtype, lines) as points if kind in EXACT and points.most < EXACT[kind]:
            return Points(bias, terms, kind, lines)
        case Points(bias, terms, dtype, lines) if kind == "int64" and dtype in EXACT:
            return Points(bias, terms, kind, lines)
        case Looked() as looked if (start := looked_points(looked)) is not None and kind in ("int64", "float64"):
            return Points(start.bias, (), kind, False)
        case _:
            raise not_understood(node)


def _refuse(node: Any) -> Tensor:
    raise not_understood(node)


def _fits(numbers: set[int], kind: str) -> bool:
    least, most = INTEGERS[kind]
    return all(least <= number <= most for number in numbers)


def _weighed(tree: Value, found: Ensemble) -> Value:
    return mapped(tree, lambda leaf: leaf if isinstance(leaf, Fall) else found.weights[leaf])


def _reshape(node: Any, given: Sequence[Tensor]) -> Tensor:
    attributes(node, {"allowzero": 0})
    match given:
        case [Number(value, dtype), Fixed(shape)] if shape.tolist() == [-1]:
            return Number(value, dtype, True)
        case [Truths(conditions, "end to end"), Fixed(shape)] if shape.tolist() == [len(conditions), -1]:
            return Truths(conditions, "lines")
        case _:
            raise not_understood(node)


def _concat(node: Any, given: Sequence[Tensor]) -> Tensor:
    axis = attributes(node, {"axis": None})["axis"]
    if axis == 0 and given and all(isinstance(part, Truth) for part in given):
        return Truths(tuple(part.condition for part in given if isinstance(part, Truth)), "end to end")
    parts = [part for part in given if isinstance(part, Matrix)]
    if axis in (1, -1) and parts and len(parts) == len(given) and len({part.dtype for part in parts}) == 1:
        return Matrix(tuple(feature for part in parts for feature in part.features), parts[0].dtype)
    raise not_understood(node)


def _transpose(node: Any, given: Sequence[Tensor]) -> Tensor:
    if attributes(node, {"perm": [1, 0]})["perm"] != [1, 0]:
        raise not_understood(node)
    match given:
        case [Truths(conditions, "lines")]:
            return Truths(conditions, "by row")
        case [Points(bias, terms, dtype, lines)]:
            return Points(bias, terms, dtype, not lines)
        case _:
            raise not_understood(node)


def _identity(node: Any, given: Sequence[Tensor]) -> Tensor:
    attributes(node, {})
    if len(given) != 1:
        raise not_understood(node)
    return given[0]


def _constant(node: Any, given: Sequence[Tensor]) -> Tensor:
    told = attributes(node, {"value": None})["value"]
    if told is None or given:
        raise not_understood(node)
    return Fixed(array_of(told))


Operator = Callable[[Any, Sequence[Tensor]], Tensor | list[Tensor]]

OPERATORS: Mapping[tuple[str, str], Operator] = {
    ("", "Split"): _split,
    ("", "Squeeze"): _squeeze,
    ("", "Shape"): _shape,
    ("", "Gather"): _gather,
    ("", "ConstantOfShape"): _constant_of_shape,
    ("", "Less"): _compare("<"),
    ("", "LessOrEqual"): _compare("<="),
    ("", "Greater"): _compare(">"),
    ("", "GreaterOrEqual"): _compare(">="),
    ("", "Equal"): _compare("=="),
    ("", "And"): _and,
    ("", "Or"): _or,
    ("", "Not"): _not,
    ("", "IsNaN"): _is_nan,
    ("", "Where"): _where,
    ("", "Cast"): _cast,
    ("", "Reshape"): _reshape,
    ("", "Concat"): _concat,
    ("", "Transpose"): _transpose,
    ("", "MatMul"): product,
    ("", "Add"): with_bias,
    ("", "ArgMax"): most_points,
    ("", "Mul"): logits,
    ("", "Softmax"): softmax,
    ("", "Identity"): _identity,
    ("", "Constant"): _constant,
    ("ai.onnx.ml", "TreeEnsemble"): ensemble,
}


def results(node: Any, given: Sequence[Tensor]) -> list[Tensor]:
    """What a node gives, output by output."""
    operator = OPERATORS.get((node.domain, node.op_type))
    if operator is None or node.overload:
        raise Unread(f"{place(node)}: the operator {node.domain or 'ai.onnx'}.{node.op_type} is not understood")
    made = operator(node, given)
    return made if isinstance(made, list) else [made]
