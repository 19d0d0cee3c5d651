"""The inputs of an ONNX model: which features each takes, as its metadata says and its declarations agree."""

from __future__ import annotations

from typing import Literal, get_args

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.onnx.graph import Model
from gbfl_compile.checking.strict.onnx.values import Matrix, Words
from gbfl_compile.ir.nodes import Kind


def kinds_of(model: Model, features: tuple[str, ...]) -> tuple[Kind, ...]:
    """The kind of each feature; `()` where all are numbers."""
    kinds = model.metadata.get("kinds", [])
    if not isinstance(kinds, list) or not all(kind in get_args(Kind) for kind in kinds):
        raise Unread("its kinds are not a list of kinds")
    if ("kinds" in model.metadata) != ("columns" in model.metadata):
        raise Unread("says kinds without the columns of its inputs, or these without kinds")
    if "kinds" in model.metadata and (len(kinds) != len(features) or set(kinds) == {"number"}):
        raise Unread("does not have one kind per feature, or says that all are numbers")
    return tuple(kinds)


def dtype_of(model: Model, kinds: tuple[Kind, ...]) -> Literal["float64", "float32"]:
    """The type of the numbers; a model whose inputs are all texts has none, and says which it would be."""
    numbers = {dtype for _, dtype, _ in model.inputs} - {"text", "flag"}
    dtype = numbers.pop() if len(numbers) == 1 else model.metadata["dtype"]
    if numbers or dtype not in ("float64", "float32"):
        raise Unread("its inputs are not of one type")
    if dtype == "float32" and "timestamp" in kinds:
        raise Unread("float32 does not hold the microseconds of a timestamp")
    return "float64" if dtype == "float64" else "float32"


def inputs_of(
    model: Model, features: tuple[str, ...], kinds: tuple[Kind, ...], dtype: str
) -> dict[str, Matrix | Words]:
    """One matrix with all numbers and two with all categories, or one column per feature, by name."""
    words = tuple(feature for feature, kind in enumerate(kinds) if kind == "category")
    plain = tuple(feature for feature in range(len(features)) if feature not in set(words))
    by_columns = model.metadata["inputs"] == "columns"
    wanted = _by_column(features, plain, words, dtype) if by_columns else _whole(model, plain, words, dtype)
    inputs = dict(wanted)
    expected = {name: (_type_of(tensor), len(tensor.features)) for name, tensor in wanted}
    declared = {name: (kind, width) for name, kind, width in model.inputs}
    if not wanted or len(inputs) < len(wanted) or len(declared) < len(model.inputs) or declared != expected:
        what = "one column per feature" if by_columns else f"one matrix of {len(plain)} features"
        raise Unread(f"its inputs are not {what}" + (", and the texts of its categories" if words else ""))
    columns = {name: [features[feature] for feature in tensor.features] for name, tensor in wanted}
    if kinds and model.metadata["columns"] != columns:
        raise Unread("the metadata gbfl.columns does not name the columns of its inputs")
    return inputs


def _by_column(
    features: tuple[str, ...], plain: tuple[int, ...], words: tuple[int, ...], dtype: str
) -> list[tuple[str, Matrix | Words]]:
    return [
        *((features[feature], Matrix((feature,), dtype)) for feature in plain),
        *((features[feature], Words((feature,), False)) for feature in words),
        *((f"{features[feature]} is missing", Words((feature,), True)) for feature in words),
    ]


def _whole(
    model: Model, plain: tuple[int, ...], words: tuple[int, ...], dtype: str
) -> list[tuple[str, Matrix | Words]]:
    if not words:
        return [(name, Matrix(plain, dtype)) for name, _, _ in model.inputs[:1]]  # the one matrix may have any name
    numbers: list[tuple[str, Matrix | Words]] = [("input", Matrix(plain, dtype))] if plain else []
    return [*numbers, ("texts", Words(words, False)), ("texts_missing", Words(words, True))]


def _type_of(tensor: Matrix | Words) -> str:
    if isinstance(tensor, Matrix):
        return tensor.dtype
    return "flag" if tensor.flags else "text"
