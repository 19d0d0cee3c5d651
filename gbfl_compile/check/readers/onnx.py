"""Reads an emitted ONNX model back, from its bytes alone: no runtime is asked.

The graph is followed node by node with columns, truth values, choices and points in the place of tensors
(onnx_nodes). Its outputs must come from one and the same decision, and then are one reading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from gbfl_compile.check.readers.choices import decided
from gbfl_compile.check.readers.onnx_graph import Model, opened, place
from gbfl_compile.check.readers.onnx_nodes import results
from gbfl_compile.check.readers.onnx_values import (
    Looked,
    Matrix,
    Number,
    Points,
    Softmax,
    Tensor,
    Truths,
    WinnersLabel,
    Worded,
)
from gbfl_compile.check.readers.tables import class_labels, feature_names, leaf_outcome, one_file, scale_of
from gbfl_compile.check.reading import Decided, Outcome, Reading, Scored, Unread
from gbfl_compile.ir.nodes import Label

OUTPUTS = ("label", "probabilities", "score", "reason", "reason_text")


def read_onnx(files: Mapping[str, bytes]) -> tuple[Reading, ...]:
    """The reading of the one .onnx file."""
    name, content = one_file(files, ".onnx")
    try:
        return (_reading(opened(content)),)
    except Unread as error:
        raise Unread(f"{name}: {error}") from None


def _reading(model: Model) -> Reading:
    features = feature_names(model.told["features"])
    classes = class_labels(model.told["classes"])
    dtype = _dtype(model)
    inputs = _inputs(model, features, dtype)
    found = _outputs(model, inputs)
    rule_set = "score" in found
    decision = _rule_set(found, classes) if rule_set else _tree(found, classes)
    reasons = _own_reasons(model.told.get("reasons", []), found.get("reason_text"), found.get("reason"))
    _check_told(model, found)
    _check_announced(model, found, len(classes))
    digest = model.told["digest"]
    if not isinstance(digest, str):
        raise Unread("its digest is not a text")
    return Reading(features, classes, decision, dtype, ", ".join(model.outputs), digest, None, reasons)


def _own_reasons(told: object, texts: Tensor | None, reason: Tensor | None) -> tuple[tuple[int, str], ...]:
    """The user's reasons as the metadata has them, clause and text; `reason_text` of a rule set must say just these."""
    if not isinstance(told, list) or not all(isinstance(one, list) and len(one) == 2 for one in told):
        raise Unread("the reasons are not texts by clause")
    found: dict[int, str] = {}
    for clause, text in told:
        if type(clause) is not int or clause in found or not isinstance(text, str) or not text:
            raise Unread("the reasons are not a text a clause")
        found[clause] = text
    if isinstance(texts, Worded):
        if texts.truths is not reason:
            raise Unread("reason_text does not tell of the rules that reason does")
        if {clause: text for clause, text in enumerate(texts.texts) if text} != found:
            raise Unread("reason_text does not say the reasons that the metadata has")
    return tuple(sorted(found.items()))


def _dtype(model: Model) -> Literal["float64", "float32"]:
    kinds = {dtype for _, dtype, _ in model.inputs}
    if kinds == {"float64"}:
        return "float64"
    if kinds == {"float32"}:
        return "float32"
    raise Unread("its inputs are not of one type")


def _inputs(model: Model, features: tuple[str, ...], dtype: str) -> dict[str, Tensor]:
    """One matrix with all features, or one column a feature, by name."""
    if model.told["inputs"] == "columns":
        if sorted(name for name, _, _ in model.inputs) != sorted(features) or {w for _, _, w in model.inputs} != {1}:
            raise Unread("its inputs are not one column a feature")
        return {name: Matrix((features.index(name),), dtype) for name, _, _ in model.inputs}
    if len(model.inputs) != 1 or model.inputs[0][2] != len(features):
        raise Unread(f"its input is not one matrix of {len(features)} features")
    return {model.inputs[0][0]: Matrix(tuple(range(len(features))), dtype)}


def _outputs(model: Model, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What each output is, node by node; a graph is written in the order it runs."""
    known: dict[str, Tensor] = {**model.constants, **inputs}
    for node in model.nodes:
        given = [known[name] if name in known else _absent(node, name) for name in node.input]
        made = results(node, given)
        if (
            len(made) != len(node.output)
            or len(set(node.output)) != len(made)
            or any(name in known for name in node.output)
        ):
            raise Unread(f"{place(node)}: its outputs are not new names, one each")
        known.update(zip(node.output, made, strict=True))
    if lacking := [name for name in model.outputs if name not in known or name not in OUTPUTS]:
        raise Unread(f"output {lacking[0]!r} is not made, or not known")
    if lacking := [name for name in ("label", "probabilities") if name not in model.outputs]:
        raise Unread(f"has no output {lacking[0]!r}")
    return {name: known[name] for name in model.outputs}


def _absent(node: Any, name: str) -> Tensor:
    raise Unread(f"{place(node)}: takes {name!r}, which nothing before it gives")


def _tree(found: Mapping[str, Tensor], classes: tuple[Label, ...]) -> Decided:
    label, probabilities, reason = found["label"], found["probabilities"], found.get("reason")
    sentences = _sentences(label, found.get("reason_text"))
    if not isinstance(label, Looked) or not isinstance(probabilities, Looked):
        raise Unread("label and probabilities are not looked up by leaf")
    if label.number is not probabilities.number and label.number != probabilities.number:
        raise Unread("label and probabilities are not looked up by the same leaf")
    if reason is not None and (not isinstance(reason, Number) or reason.value is not label.number):
        raise Unread("the reason is not the leaf that label and probabilities are looked up by")
    labels, table = label.table.array, probabilities.table.array
    if labels.ndim != 1 or table.ndim != 2 or str(table.dtype) != "float64":
        raise Unread("the tables of leaves are not labels and rows of doubles")

    def outcome(leaf: int) -> Outcome:
        winner = _class_of(labels[leaf], classes)
        row = tuple(float(p) for p in table[leaf])
        made = leaf_outcome(f"leaf {leaf}", winner, row, len(classes), leaf)
        told = made if reason is not None else Outcome(made.winner, made.probabilities)
        return replace(told, text=None if sentences is None else str(sentences[leaf]))

    return decided(label.number, outcome)


def _sentences(label: Tensor, texts: Tensor | None) -> Any:
    """The reason of each leaf in words, where it is told."""
    if texts is None:
        return None
    if not isinstance(texts, Looked) or not isinstance(label, Looked) or texts.number is not label.number:
        raise Unread("reason_text is not looked up by the leaf")
    if texts.table.array.ndim != 1 or str(texts.table.array.dtype) != "object":
        raise Unread("reason_text is not a text a leaf")
    return texts.table.array


def _class_of(label: Any, classes: Sequence[Label]) -> int:
    value = label if isinstance(label, str) else label.item()
    for index, known in enumerate(classes):
        if type(known) is type(value) and known == value:
            return index
    raise Unread(f"the label {value!r} is not one of its classes")


def _rule_set(found: Mapping[str, Tensor], classes: tuple[Label, ...]) -> Scored:
    label, probabilities, score, reason, texts = (found.get(name) for name in OUTPUTS)
    if not isinstance(label, WinnersLabel) or not isinstance(probabilities, Softmax) or not isinstance(score, Points):
        raise Unread("label, probabilities and score are not made of points")
    points = label.winner.points
    for other in (probabilities.points, score):
        if other.bias != points.bias or other.terms != points.terms:
            raise Unread("label, probabilities and score are not made of the same points")
    if score.dtype != "int64" or score.lines or len(points.bias) != len(classes):
        raise Unread("the score is not a whole number a class")
    if [_class_of(value, classes) for value in label.labels.array] != list(range(len(classes))):
        raise Unread("the labels are not the classes in their order")
    if reason is not None and (not isinstance(reason, Truths) or reason.form != "by row"):
        raise Unread("the reason is not a truth value a rule")
    if texts is not None and not isinstance(texts, Worded):
        raise Unread("reason_text is not a text a rule")
    held = None if reason is None else reason.conditions
    tie: Literal["lower", "higher"] = "higher" if label.winner.last else "lower"
    return Scored(points.bias, points.terms, scale_of(probabilities.worth), tie, held)


def _check_told(model: Model, found: Mapping[str, Tensor]) -> None:
    """What the metadata says of the model is so: whoever runs it prepares rows by that."""
    uses_trees = any(node.op_type == "TreeEnsemble" for node in model.nodes)
    wanted = {
        "dtype": model.inputs[0][1],
        "inputs": "columns" if model.told["inputs"] == "columns" else "tensor",
        "reason": "yes" if "reason" in found else "no",
        "lowering": "tree" if uses_trees else "logic",
    }
    for key, value in wanted.items():
        if model.told[key] != value:
            raise Unread(f"metadata gbfl.{key} says {model.told[key]!r}, it is {value!r}")


KINDS = {"float64": "DOUBLE", "int64": "INT64", "bool": "BOOL", "object": "STRING"}


def _check_announced(model: Model, found: Mapping[str, Tensor], classes: int) -> None:
    """Each output is of the type and shape that it is announced with: a runtime refuses the model otherwise."""
    for name, tensor in found.items():
        match tensor:
            case Looked(table):
                dtype, shape = table.array.dtype, (None, *table.array.shape[1:])
            case WinnersLabel(labels):
                dtype, shape = labels.array.dtype, (None,)
            case Number():
                dtype, shape = np.dtype(tensor.dtype), (None,)
            case Truths(conditions):
                dtype, shape = np.dtype(bool), (None, len(conditions))
            case Worded(_, texts):
                dtype, shape = np.dtype(object), (None, len(texts))
            case Points():
                dtype, shape = np.dtype(tensor.dtype), (None, classes)
            case _:
                dtype, shape = np.dtype(np.float64), (None, classes)
        if model.outputs[name] != (KINDS.get(str(dtype), "?"), shape):
            raise Unread(f"output {name!r} is {dtype} {list(shape)}, announced as {model.outputs[name]}")
