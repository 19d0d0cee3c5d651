"""An ONNX graph under construction: nodes and constants whose names say what they hold, and its inputs.

A loader feeds rows by the same rule as the inputs are declared. Numbers, dates (days), timestamps (microseconds since
1970-01-01, UTC) and booleans (1 or 0) are numbers here, NaN where they are missing. Categories are texts, with a
truth value beside each that says whether it is missing: no text is set aside for that, and ONNX Runtime would take
None for the text "None".

    inputs=tensor     input [rows, numbers], texts [rows, categories], texts_missing [rows, categories]
    inputs=columns    one [rows, 1] per feature, named after it, and for a category `NAME is missing`
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from gbfl_compile.backends.base import Options
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.intervals import Dtype
from gbfl_compile.ir.nodes import Kind

OPSET = 15
ML_OPSET = 5
ENCODER_OPSET = 3
IR_VERSION = 8
"""The lowest that have every operator used. Logic ran exactly in ONNX Runtime 1.18, 1.20, 1.22 and 1.31.

TreeEnsemble, which `lowering=tree` uses, is in ai.onnx.ml 5 and runs since ONNX Runtime 1.21. LabelEncoder, which
categories use, is the same in ai.onnx.ml 2 and all later ones.
"""

ROWS = "rows"
"""The name of the batch dimension."""

Lowering: TypeAlias = Literal["logic", "tree"]


@dataclass(frozen=True, slots=True)
class Interface:
    """The inputs and outputs of a graph, as the options choose them."""

    dtype: Dtype
    columns: bool
    """One input `[rows, 1]` per feature, named after it; otherwise one `[rows, features]` called input."""
    reason: bool
    lowering: Lowering

    @property
    def as_options(self) -> Options:
        """The options that ask for this interface."""
        return {
            "dtype": self.dtype,
            "inputs": "columns" if self.columns else "tensor",
            "reason": "yes" if self.reason else "no",
            "lowering": self.lowering,
        }


@dataclass(slots=True)
class Graph:
    """The nodes so far: `add` and `constant` append, the end reads them once."""

    dtype: Dtype
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    taken: dict[str, int] = field(default_factory=dict)
    """Each name in use, and how often it was requested."""


def add(graph: Graph, operator: str, inputs: list[str], name: str, doc: str = "", **attributes: Any) -> str:
    """One node with one output; the name of the output, which is `name` or, where that is taken, `name (2)`."""
    return add_many(graph, operator, inputs, [name], doc, **attributes)[0]


def add_many(
    graph: Graph, operator: str, inputs: list[str], names: list[str], doc: str = "", **attributes: Any
) -> list[str]:
    """One node with several outputs; their names."""
    from onnx import helper

    outputs = [_free_name(graph, name) for name in names]
    node = helper.make_node(operator, inputs, outputs, name=f"{operator}: {outputs[0]}", **attributes)
    if doc:
        node.doc_string = doc
    graph.nodes.append(node)
    return outputs


def constant(graph: Graph, array: Any, name: str) -> str:
    """An array kept in the graph; its name."""
    from onnx import numpy_helper

    free = _free_name(graph, name)
    graph.constants.append(numpy_helper.from_array(array, free))
    return free


def reserve(graph: Graph, name: str) -> str:
    """Reserve a name for an input or an output."""
    graph.taken[name] = 1
    return name


def add_output(graph: Graph, operator: str, inputs: list[str], name: str, doc: str = "", **attributes: Any) -> str:
    """The node of the graph output with this reserved name."""
    from onnx import helper

    node = helper.make_node(operator, inputs, [name], name=f"{operator}: {name}", doc_string=doc, **attributes)
    graph.nodes.append(node)
    return name


def numbers(graph: Graph) -> Any:
    """The numpy type of values and thresholds."""
    import numpy as np

    return np.float64 if graph.dtype == "float64" else np.float32


def tensor_type(array_type: Any) -> int:
    """ONNX's number for a numpy type; text is an object array."""
    import numpy as np
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(np.dtype(array_type)))


def label_tensor(labels: list[Any]) -> Any:
    """Class labels as an array of the type ONNX keeps them in: int64, string, bool or double."""
    import numpy as np

    kinds: dict[type, Any] = {int: np.int64, str: object, bool: np.bool_, float: np.float64}
    return np.array(labels, dtype=kinds[type(labels[0])])


def _free_name(graph: Graph, name: str) -> str:
    free = name
    while free in graph.taken:
        graph.taken[name] += 1
        free = f"{name} ({graph.taken[name]})"
    graph.taken[free] = 1
    return free


INPUT, TEXTS, TEXTS_MISSING = "input", "texts", "texts_missing"

Holds: TypeAlias = Literal["numbers", "texts", "missing"]


@dataclass(frozen=True, slots=True)
class Input:
    """One input `[rows, columns]`: its name, the feature of each column, and what of these features it holds."""

    name: str
    features: tuple[int, ...]
    holds: Holds


def inputs_of(features: Sequence[str], kinds: Sequence[Kind], by_columns: bool) -> tuple[Input, ...]:
    """The inputs of a program with these features, in order."""
    words = tuple(feature for feature, kind in enumerate(kinds) if kind == "category")
    if by_columns:
        every = [_column_inputs(feature, name, feature in words) for feature, name in enumerate(features)]
        return tuple(each for several in every for each in several)
    plain = tuple(feature for feature in range(len(features)) if feature not in set(words))
    numbers = Input(INPUT, plain, "numbers")
    if not words:
        return (numbers,)
    texts = (Input(TEXTS, words, "texts"), Input(TEXTS_MISSING, words, "missing"))
    return (numbers, *texts) if plain else texts


def _column_inputs(feature: int, name: str, is_word: bool) -> tuple[Input, ...]:
    if not is_word:
        return (Input(name, (feature,), "numbers"),)
    return Input(name, (feature,), "texts"), Input(missing_name(name), (feature,), "missing")


def missing_name(name: str) -> str:
    """The input that says where a category is missing."""
    return f"{name} is missing"


def refuse_clashes(inputs: Sequence[Input], outputs: Collection[str]) -> None:
    """Refuse names that are two things at once, which only columns named by the user can be."""
    names = [each.name for each in inputs]
    if clash := [name for name in names if name in outputs]:
        raise BadInput(f"feature {clash[0]!r} is also the name of an output: rename the column or use inputs=tensor")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"{twice!r} is the name of two inputs: rename the column or use inputs=tensor")
