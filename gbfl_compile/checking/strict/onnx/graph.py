"""An ONNX model taken apart: nodes, constants, inputs, outputs, metadata. Anything our models never have is refused.

Which features each input takes is as the metadata says and the declarations agree.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.onnx.values import Constant, Matrix, Words
from gbfl_compile.errors import CannotRun
from gbfl_compile.ir.nodes import Kind
from gbfl_compile.version import install_command

OPSETS = range(13, 24)
"""Operator sets of the main domain in which every operator read here means the same."""

ML_OPSETS = range(2, 6)
FIRST_OPSETS = {"LabelEncoder": 2, "TreeEnsemble": 5}
"""The first ai.onnx.ml in which an operator is the one that is read here."""

IR_VERSIONS = range(4, 14)
"""Versions of the file format in which a constant need not be an input as well, up to the last that is known."""

METADATA = ("digest", "features", "classes", "generator", "dtype", "inputs", "reason", "lowering")
OPTIONAL_METADATA = ("reasons", "kinds", "columns")
"""What the metadata must say, and what it may."""

KEPT_IN = {
    "DOUBLE": "double_data",
    "FLOAT": "float_data",
    "INT64": "int64_data",
    "INT32": "int32_data",
    "UINT8": "int32_data",
    "BOOL": "int32_data",
    "STRING": "string_data",
}
"""The types of constants, and where each has its values if not in raw_data, where no texts are."""

TENSORS = ("value", "nodes_splits", "nodes_modes", "leaf_weights")
LISTS = (
    "perm",
    "nodes_featureids",
    "nodes_truenodeids",
    "nodes_trueleafs",
    "nodes_falsenodeids",
    "nodes_falseleafs",
    "nodes_missing_value_tracks_true",
    "leaf_targetids",
    "tree_roots",
    "values_int64s",
)
TEXTS = ("keys_strings",)
"""Attributes that are a tensor, a row of whole numbers, or a row of texts; all others here are one whole number."""

DATA_FIELDS = ("raw_data", "float_data", "double_data", "int32_data", "int64_data", "uint64_data", "string_data")

FIELDS: Mapping[str, frozenset[str]] = {
    "ModelProto": frozenset(
        {
            *("ir_version", "producer_name", "producer_version", "domain", "model_version", "doc_string"),
            *("graph", "opset_import", "metadata_props"),
        }
    ),
    "GraphProto": frozenset({"name", "doc_string", "node", "initializer", "input", "output"}),
    "NodeProto": frozenset({"name", "doc_string", "op_type", "domain", "input", "output", "attribute"}),
    "AttributeProto": frozenset({"name", "doc_string", "type", "ref_attr_name"}),
    "TensorProto": frozenset(
        {"name", "doc_string", "dims", "data_type", "data_location", "external_data", *DATA_FIELDS}
    ),
    "ValueInfoProto": frozenset({"name", "doc_string", "type"}),
    "TypeProto": frozenset({"tensor_type"}),
    "Tensor": frozenset({"elem_type", "shape"}),
    "TensorShapeProto": frozenset({"dim"}),
    "Dimension": frozenset({"dim_value", "dim_param"}),
    "OperatorSetIdProto": frozenset({"domain", "version"}),
    "StringStringEntryProto": frozenset({"key", "value"}),
}
"""What each part of a model may have; functions, training, subgraphs and devices are not among it."""

VALUE_FIELDS = {2: "i", 4: "t", 7: "ints", 8: "strings"}
"""Where an attribute has its value, by its type: a whole number, a tensor, whole numbers, texts."""

MOST_DIMENSIONS = 2
LARGEST_CONSTANT = 50_000_000


@dataclass(frozen=True, slots=True)
class Model:
    """What a model is made of. Inputs are (name, type, width)."""

    nodes: tuple[Any, ...]
    constants: Mapping[str, Constant]
    inputs: tuple[tuple[str, str, int], ...]
    outputs: Mapping[str, tuple[str, tuple[int | None, ...]]]
    """The declared type and shape of each; None is any number of rows."""
    metadata: Mapping[str, Any]
    """The metadata, each value as JSON has it."""


def open_model(content: bytes) -> Model:
    """The model in a file's bytes."""
    try:
        import onnx
    except ImportError:
        raise CannotRun(f"reading ONNX models needs onnx: {install_command('onnx')}") from None
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except Exception as error:  # protobuf's errors have no common base class
        raise Unread(f"is not an ONNX model: {error}") from None
    _check_fields(model)
    graph = model.graph
    if not all(isinstance(text, str) for text in _texts(model)):
        raise Unread("a name in it is not UTF-8")
    if model.ir_version not in IR_VERSIONS:
        raise Unread(f"version {model.ir_version} of the format is not known")
    _check_opsets(model)
    constants = {tensor.name: Constant(array_of(tensor)) for tensor in graph.initializer}
    if len(constants) != len(graph.initializer):
        raise Unread("two constants have the same name")
    if "" in constants or any("" in node.output for node in graph.node):
        raise Unread("a constant or a result without a name, which is how an absent input is written")
    inputs = tuple(_input(each) for each in graph.input)
    outputs = {each.name: _type_and_shape(each) for each in graph.output}
    if len(outputs) != len(graph.output) or {name for name, _, _ in inputs} & set(constants):
        raise Unread("two outputs have the same name, or an input has a constant for a default")
    return Model(tuple(graph.node), constants, inputs, outputs, _metadata(model))


def _check_fields(model: Any) -> None:
    """Everything that is written in the file is something this reader knows of."""
    size = model.ByteSize()
    model.DiscardUnknownFields()
    if model.ByteSize() != size:
        raise Unread("has a field of a later version of the format")
    waiting = [model]
    while waiting:
        message = waiting.pop()
        name = message.DESCRIPTOR.name
        for field, value in message.ListFields():
            is_value = name == "AttributeProto" and field.name == VALUE_FIELDS.get(message.type)
            if field.name not in FIELDS[name] and not is_value:
                raise Unread(f"has a {name} with {field.name}, which is not understood")
            if field.message_type is not None:
                waiting += [value] if hasattr(value, "ListFields") else value


def _texts(model: Any) -> Iterator[object]:
    """Every name that is read: protobuf gives bytes where one is not UTF-8."""
    for named in (*model.graph.initializer, *model.graph.input, *model.graph.output, *model.graph.node):
        yield named.name
    for node in model.graph.node:
        yield from (node.op_type, node.domain, *node.input, *node.output)
        yield from (text for attribute in node.attribute for text in (attribute.name, attribute.ref_attr_name))
    yield from (text for prop in model.metadata_props for text in (prop.key, prop.value))
    yield from (opset.domain for opset in model.opset_import)


def _check_opsets(model: Any) -> None:
    versions = [(opset.domain, opset.version) for opset in model.opset_import]
    if len({domain for domain, _ in versions}) != len(versions):
        raise Unread("names an operator set twice")
    if lacking := {"", *(node.domain for node in model.graph.node)} - {domain for domain, _ in versions}:
        raise Unread(f"does not say which version of {min(lacking) or 'ai.onnx'} it is written for")
    for domain, version in versions:
        known = {"": OPSETS, "ai.onnx.ml": ML_OPSETS}.get(domain, range(0))
        if version not in known:
            raise Unread(f"operator set {domain or 'ai.onnx'} {version} is not known")
    for node in model.graph.node:
        if dict(versions).get(node.domain, 0) < FIRST_OPSETS.get(node.op_type, 0):
            raise Unread(f"{node.op_type} is another operator in its operator set")


MOST = {"BOOL": 1, "UINT8": 255}
"""What the bytes, or the wider numbers, in which values of a type are kept may come to."""


def _kept_wider(kind: str, tensor: Any) -> Iterator[int]:
    if kind in MOST:
        yield from tensor.int32_data
    if kind == "BOOL":
        yield from tensor.raw_data


def array_of(tensor: Any) -> Any:
    """The constant in a tensor; one that lies in another file is refused."""
    from onnx import TensorProto, numpy_helper

    where = f"constant {tensor.name!r}"
    kind = TensorProto.DataType.Name(tensor.data_type) if tensor.data_type in TensorProto.DataType.values() else "?"
    if kind not in KEPT_IN:
        raise Unread(f"{where}: values of type {kind}")
    if tensor.data_location != TensorProto.DEFAULT or len(tensor.external_data):
        raise Unread(f"{where}: lies in another file")
    used = {field for field in DATA_FIELDS if len(getattr(tensor, field))}
    if len(used) > 1:
        raise Unread(f"{where}: says its values twice, and a runtime may take either")
    if used - {KEPT_IN[kind], "string_data" if kind == "STRING" else "raw_data"}:
        raise Unread(f"{where}: has its values where those of another type are")
    if len(tensor.dims) > MOST_DIMENSIONS or any(not 0 <= size <= LARGEST_CONSTANT for size in tensor.dims):
        raise Unread(f"{where}: has the shape {list(tensor.dims)[:5]}")
    if int(np.prod(tensor.dims, dtype=object)) > LARGEST_CONSTANT:
        raise Unread(f"{where}: has the shape {list(tensor.dims)}")
    if any(not 0 <= value <= MOST.get(kind, value) for value in _kept_wider(kind, tensor)):
        raise Unread(f"{where}: holds a value past its type, and a runtime need not take it as this reader does")
    try:
        array = numpy_helper.to_array(tensor)
        if kind == "STRING":
            texts = [text.decode("utf-8") for text in tensor.string_data]
            array = np.array(texts, dtype=object).reshape(tuple(tensor.dims))
    except Exception as error:  # bytes that do not fill the shape, in as many ways as there are types
        raise Unread(f"{where}: {error}") from None
    return array


INPUT_TYPES = {"DOUBLE": "float64", "FLOAT": "float32", "STRING": "text", "BOOL": "flag"}


def _input(info: Any) -> tuple[str, str, int]:
    from onnx import TensorProto

    tensor, known = info.type.tensor_type, TensorProto.DataType.values()
    dtype = INPUT_TYPES.get(TensorProto.DataType.Name(tensor.elem_type)) if tensor.elem_type in known else None
    dims = tensor.shape.dim
    if dtype is None or len(dims) != 2 or dims[0].HasField("dim_value") or not dims[1].HasField("dim_value"):
        raise Unread(f"input {info.name!r}: is not a matrix of numbers, texts or truth values with any number of rows")
    if not 0 < dims[1].dim_value <= LARGEST_CONSTANT:
        raise Unread(f"input {info.name!r}: has {dims[1].dim_value} columns")
    return info.name, dtype, dims[1].dim_value


def _type_and_shape(info: Any) -> tuple[str, tuple[int | None, ...]]:
    from onnx import TensorProto

    tensor = info.type.tensor_type
    kinds = TensorProto.DataType
    kind = kinds.Name(tensor.elem_type) if tensor.elem_type in kinds.values() else "?"
    return kind, tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim)


def _metadata(model: Any) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for prop in model.metadata_props:
        key = prop.key.removeprefix("gbfl.")
        if key not in (*METADATA, *OPTIONAL_METADATA) or key == prop.key or key in values:
            raise Unread(f"metadata {prop.key!r} is not known, or there twice")
        try:
            values[key] = json.loads(prop.value)
        except (ValueError, RecursionError):
            raise Unread(f"metadata {prop.key!r} is not JSON") from None
    if lacking := [key for key in METADATA if key not in values]:
        raise Unread(f"has no metadata gbfl.{lacking[0]}")
    return values


def attributes(node: Any, known: Mapping[str, Any]) -> dict[str, Any]:
    """A node's attributes, with defaults; one that is not known, or not of its kind, is refused."""
    from onnx import AttributeProto, helper

    values = dict(known)
    seen: set[str] = set()
    for attribute in node.attribute:
        if attribute.name not in known or attribute.name in seen or attribute.ref_attr_name:
            raise Unread(f"{place(node)}: the attribute {attribute.name!r} is not understood")
        seen.add(attribute.name)
        if attribute.type != AttributeProto.AttributeType.Value(_attribute_kind(attribute.name)):
            raise Unread(f"{place(node)}: the attribute {attribute.name!r} is not of its kind")
        try:
            values[attribute.name] = helper.get_attribute_value(attribute)
        except ValueError:
            raise Unread(f"{place(node)}: the attribute {attribute.name!r} has no value") from None
    return values


def _attribute_kind(name: str) -> str:
    for kind, names in (("TENSOR", TENSORS), ("INTS", LISTS), ("STRINGS", TEXTS)):
        if name in names:
            return kind
    return "INT"


def place(node: Any) -> str:
    """How a node is named in a message."""
    return f"node {node.name or node.op_type!r}"


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
