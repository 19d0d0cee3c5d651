"""The operators of ONNX that emitted graphs use: what each makes of its inputs. No other is understood.

Comparisons are IEEE 754's in the type of their inputs, so NaN fails all of them. Sums are in `points`,
and LabelEncoder and TreeEnsemble, which are of ai.onnx.ml, in `ml_nodes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gbfl_compile.checking.reading.conditions import (
    MIRRORED,
    Comparison,
    Fall,
    Value,
    all_of,
    any_of,
    choice,
    compare,
    compare_with_itself,
    constant,
    ends,
    map_ends,
    missing,
    negate,
)
from gbfl_compile.checking.reading.nodes import Condition, Unread
from gbfl_compile.checking.strict.onnx.graph import array_of, attributes, place
from gbfl_compile.checking.strict.onnx.ml_nodes import ensemble, label_encoder, look_up, side_by_side, with_missing
from gbfl_compile.checking.strict.onnx.points import (
    band_step,
    logits,
    looked_points,
    most_points,
    not_understood,
    product,
    softmax,
    with_bias,
)
from gbfl_compile.checking.strict.onnx.values import (
    EXACT,
    Array,
    Codes,
    Column,
    Constant,
    Ensemble,
    LookUp,
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
    WordColumn,
    Wording,
    Words,
    single,
    whole,
)

INTEGERS: Mapping[str, tuple[int, int]] = {
    "uint8": (0, 255),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
}


def _says(array: Array, numbers: list[int]) -> bool:
    """Whether a constant is this row of whole numbers: of another type, a runtime refuses the model."""
    return array.dtype == np.int64 and array.tolist() == numbers


def _split(node: Any, inputs: Sequence[Tensor]) -> list[Tensor]:
    axis = attributes(node, {"axis": 0})["axis"]
    match inputs:
        case [Matrix(features, dtype), Constant(sizes)] if axis in (1, -1) and sizes.ndim == 1:
            return [Matrix(part, dtype) for part in _parts(node, features, sizes)]
        case [Words(features, flags), Constant(sizes)] if axis in (1, -1) and sizes.ndim == 1:
            return [Words(part, flags) for part in _parts(node, features, sizes)]
        case _:
            raise not_understood(node)


def _parts(node: Any, features: tuple[int, ...], sizes: Array) -> list[tuple[int, ...]]:
    """Features cut into groups of these sizes, one per output."""
    widths = [whole(size) or 0 for size in sizes]
    fit = sum(widths) == len(features) and min(widths, default=0) > 0 and len(widths) == len(node.output)
    if sizes.dtype != np.int64 or not fit:
        raise not_understood(node)
    starts = [sum(widths[:i]) for i in range(len(widths))]
    return [features[at : at + width] for at, width in zip(starts, widths, strict=True)]


def _squeeze(node: Any, inputs: Sequence[Tensor]) -> Tensor:
    attributes(node, {})
    match inputs:
        case [Matrix((feature,), dtype), Constant(axes)] if _says(axes, [1]) or _says(axes, [-1]):
            return Column(feature, dtype)
        case [Words((feature,), flags), Constant(axes)] if _says(axes, [1]) or _says(axes, [-1]):
            return Truth(missing(feature)) if flags else WordColumn(feature)
        case _:
            raise not_understood(node)


def _shape(node: Any, inputs: Sequence[Tensor]) -> Tensor:
    attributes(node, {})
    match inputs:
        case [Matrix(features) | Words(features)]:
            return Shape(len(features))
        case _:
            raise not_understood(node)


def _gather(node: Any, inputs: Sequence[Tensor]) -> Tensor:
    axis = attributes(node, {"axis": 0})["axis"]
    match inputs:
        case [Shape(width), Constant(index)] if width is not None and axis == 0 and _says(index, [0]):
            return Shape(None)
        case [Constant(array) as labels, Winner(points) as winner] if axis == 0 and array.shape == (len(points.bias),):
            return WinnersLabel(labels, winner)
        case [Constant(array), Codes() as codes] if axis == 0 and array.ndim:
            return look_up(node, array, codes)
        case [Constant(array) as table, Number(value, dtype, True)] if axis == 0 and array.ndim and dtype != "uint8":
            if not ends(value) <= set(range(len(array))):
                raise Unread(f"{place(node)}: looks for a row that the table has not")
            return LookUp(table, value)
        case _:
            raise not_understood(node)


def _constant_of_shape(node: Any, inputs: Sequence[Tensor]) -> Tensor:
    tensor = attributes(node, {"value": None})["value"]
    match inputs:
        case [Shape(None)] if tensor is not None:
            return _everywhere(node, Constant(array_of(tensor)))
        case _:
            raise not_understood(node)


def _everywhere(node: Any, fixed: Constant) -> Tensor:
    """A constant as a column."""
    value = single(fixed)
    if isinstance(value, np.bool_):
        return Truth(constant(bool(value)))
    number = whole(value)
    if number is None or str(fixed.array.dtype) not in INTEGERS:
        raise not_understood(node)
    return Number(number, str(fixed.array.dtype), True)


def _compare(sign: Comparison) -> Callable[[Any, Sequence[Tensor]], Tensor]:
    def operator(node: Any, inputs: Sequence[Tensor]) -> Tensor:
        attributes(node, {})
        match inputs:
            case [Column(feature, dtype), Constant(array)] if array.dtype == dtype and single(inputs[1]) is not None:
                return Truth(compare(feature, sign, float(array.reshape(-1)[0])))
            case [Constant(array), Column(feature, dtype)] if array.dtype == dtype and single(inputs[0]) is not None:
                return Truth(compare(feature, MIRRORED[sign], float(array.reshape(-1)[0])))
            case [Column(feature), Column(other)] if feature == other:
                return Truth(compare_with_itself(feature, sign))
            case _:
                raise not_understood(node)

    return operator


def _truth(node: Any, tensor: Tensor) -> Condition:
    if isinstance(tensor, Truth):
        return tensor.condition
    if isinstance(value := single(tensor), np.bool_):
        return constant(bool(value))
    raise not_understood(node)


def _and(node: Any, inputs: Sequence[Tensor]) -> Tensor:
    attributes(node, {})
    return Truth(all_of(_pair(node, inputs)))


def _or(node: Any, inputs: Sequence[Tensor]) -> Tensor:
    attributes(node, {})
    return Truth(any_of(_pair(node, inputs)))


def _pair(node: Any, inputs: Sequence[Tensor]) -> list[Condition]:
    """Two truth values, one of them at least a column: two constants would not be one."""
    if len(inputs) != 2 or not any(isinstance(tensor, Truth) for tensor in inputs):
        raise not_understood(node)
    return [_truth(node, tensor) for tensor in inputs]


def _not(node: Any, inputs: Sequence[Tensor]) -> Tensor:
    attributes(node, {})
    match inputs:
        case [Truth(condition)]:
            return Truth(negate(condition))
        case _:
            raise not_understood(node)


def _is_nan(node: Any, inputs: Sequence[Tensor]) -> Tensor:
    attributes(node, {})
    match inputs:
        case [Column(feature)]:
            return Truth(missing(feature))
        case _:
            raise not_understood(node)


def _where(node: Any, inputs: Sequence[Tensor]) -> Tensor:
    attributes(node, {})
    match inputs:
        case [Truth(condition), then, Codes() as codes]:
            return with_missing(node, condition, then, codes)
        case [Truth(condition), then, otherwise]:
            sides = [_number(node, side) for side in (then, otherwise)]
            if sides[0].dtype != sides[1].dtype:
                raise not_understood(node)
            return Number(choice(condition, sides[0].value, sides[1].value), sides[0].dtype, True)
        case [Truths(conditions, "by row") as truths, Constant(texts), Constant() as silent] if (
            str(texts.dtype) == "object" and texts.shape == (len(conditions),) and single(silent) == ""
        ):
            return Wording(truths, tuple(str(text) for text in texts))
        case _:
            raise not_understood(node)


def _number(node: Any, tensor: Tensor) -> Number:
    if isinstance(tensor, Constant):
        everywhere = _everywhere(node, tensor) if single(tensor) is not None else None
        tensor = everywhere if everywhere is not None else tensor
    if isinstance(tensor, Number) and tensor.flat:
        return tensor
    raise not_understood(node)


def _cast(node: Any, inputs: Sequence[Tensor]) -> Tensor:
    from onnx import TensorProto, helper

    to = attributes(node, {"to": None})["to"]
    if len(inputs) != 1 or to is None or to not in TensorProto.DataType.values() or to == TensorProto.UNDEFINED:
        raise not_understood(node)
    kind = "str" if to == TensorProto.STRING else str(helper.tensor_dtype_to_np_dtype(to))
    match inputs[0]:
        case Truths(conditions, "lines") if kind in EXACT:
            return Ones(conditions, kind)
        case Number(value, _, flat) if kind in INTEGERS and _fits(ends(value), kind):
            return Number(value, kind, flat)
        case Ensemble((tree,), targets, weights, 1) as found if kind in INTEGERS and set(targets) <= {0}:
            return Number(_weigh(tree, found), kind, False) if _fits(set(weights), kind) else _refuse(node)
        case Points(bias, terms, dtype, lines) as points if kind in EXACT and points.most < EXACT[kind]:
            return Points(bias, terms, kind, lines)
        case Points(bias, terms, dtype, lines) if kind == "int64" and dtype in EXACT:
            return Points(bias, terms, kind, lines)
        case LookUp() as looked if (start := looked_points(looked)) is not None and kind in ("int64", "float64"):
            return Points(start.bias, (), kind, False)
        case _:
            raise not_understood(node)


def _refuse(node: Any) -> Tensor:
    raise not_understood(node)


def _fits(numbers: set[int], kind: str) -> bool:
    least, most = INTEGERS[kind]
    return all(least <= number <= most for number in numbers)


def _weigh(tree: Value, ensemble: Ensemble) -> Value:
    return map_ends(tree, lambda leaf: leaf if isinstance(leaf, Fall) else ensemble.weights[leaf])


def _reshape(node: Any, inputs: Sequence[Tensor]) -> Tensor:
    attributes(node, {"allowzero": 0})
    match inputs:
        case [Number(value, dtype), Constant(shape)] if _says(shape, [-1]):
            return Number(value, dtype, True)
        case [Truths(conditions, "end to end"), Constant(shape)] if _says(shape, [len(conditions), -1]):
            return Truths(conditions, "lines")
        case _:
            raise not_understood(node)


def _concat(node: Any, inputs: Sequence[Tensor]) -> Tensor:
    axis = attributes(node, {"axis": None})["axis"]
    if axis == 0 and inputs and all(isinstance(part, Truth) for part in inputs):
        return Truths(tuple(part.condition for part in inputs if isinstance(part, Truth)), "end to end")
    parts = [part for part in inputs if isinstance(part, Matrix)]
    if axis in (1, -1) and parts and len(parts) == len(inputs) and len({part.dtype for part in parts}) == 1:
        return Matrix(tuple(feature for part in parts for feature in part.features), parts[0].dtype)
    if axis in (1, -1) and inputs:
        return side_by_side(node, inputs)
    raise not_understood(node)


def _transpose(node: Any, inputs: Sequence[Tensor]) -> Tensor:
    if attributes(node, {"perm": [1, 0]})["perm"] != [1, 0]:
        raise not_understood(node)
    match inputs:
        case [Truths(conditions, "lines")]:
            return Truths(conditions, "by row")
        case [Points(bias, terms, dtype, lines)]:
            return Points(bias, terms, dtype, not lines)
        case _:
            raise not_understood(node)


def _identity(node: Any, inputs: Sequence[Tensor]) -> Tensor:
    attributes(node, {})
    if len(inputs) != 1:
        raise not_understood(node)
    return inputs[0]


def _constant(node: Any, inputs: Sequence[Tensor]) -> Tensor:
    tensor = attributes(node, {"value": None})["value"]
    if tensor is None or inputs:
        raise not_understood(node)
    return Constant(array_of(tensor))


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
    ("ai.onnx.ml", "LabelEncoder"): label_encoder,
}


def results(node: Any, inputs: Sequence[Tensor]) -> list[Tensor]:
    """What a node gives, output by output."""
    banded = band_step(node, inputs) if node.domain == "" else None
    if banded is not None:
        return banded if isinstance(banded, list) else [banded]
    operator = OPERATORS.get((node.domain, node.op_type))
    if operator is None:
        raise Unread(f"{place(node)}: the operator {node.domain or 'ai.onnx'}.{node.op_type} is not understood")
    outputs = operator(node, inputs)
    return outputs if isinstance(outputs, list) else [outputs]
