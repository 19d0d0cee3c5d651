"""Reads an emitted ONNX model back, from its bytes alone, without a runtime.

The graph is followed node by node with columns, truth values, choices and points in the place of tensors
(`nodes`). Its outputs must come from one and the same decision, and then are one reading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from gbfl_compile.checking.reading.conditions import decision_of
from gbfl_compile.checking.reading.nodes import (
    Outcome,
    PointDecision,
    Reading,
    StepDecision,
    Unread,
    class_labels,
    feature_names,
    is_minus_nothing,
    leaf_outcome,
    one_file,
    scale_of,
)
from gbfl_compile.checking.strict.onnx.graph import Model, dtype_of, inputs_of, kinds_of, open_model, place
from gbfl_compile.checking.strict.onnx.ml_nodes import texts_of
from gbfl_compile.checking.strict.onnx.nodes import results
from gbfl_compile.checking.strict.onnx.values import (
    LookUp,
    Number,
    Points,
    Rates,
    Softmax,
    Tensor,
    Truths,
    WinnersLabel,
    Wording,
)
from gbfl_compile.ir.nodes import TRUE, Kind, Label

OUTPUTS = ("label", "probabilities", "score", "reason", "reason_text")


def read_onnx(files: Mapping[str, bytes]) -> tuple[Reading, ...]:
    """The reading of the one .onnx file."""
    name, content = one_file(files, ".onnx")
    try:
        return (_reading(open_model(content)),)
    except Unread as error:
        raise Unread(f"{name}: {error}") from None


def _reading(model: Model) -> Reading:
    features = feature_names(model.metadata["features"])
    classes = class_labels(model.metadata["classes"])
    kinds = kinds_of(model, features)
    dtype = dtype_of(model, kinds)
    tensors = _tensors(model, inputs_of(model, features, kinds, dtype))
    outputs = {name: tensors[name] for name in model.outputs}
    rule_set = "score" in outputs
    decision = _rule_set(outputs, classes) if rule_set else _tree(outputs, classes)
    reasons = _own_reasons(model.metadata.get("reasons", []), outputs.get("reason_text"), outputs.get("reason"))
    _check_metadata(model, outputs, dtype)
    _check_outputs(model, outputs, len(classes))
    digest = model.metadata["digest"]
    if not isinstance(digest, str):
        raise Unread("its digest is not a text")
    reading = Reading(features, classes, decision, dtype, ", ".join(model.outputs), digest, None, reasons)
    return replace(reading, kinds=kinds, book=_book(kinds, tensors)) if kinds else reading


def _book(kinds: tuple[Kind, ...], tensors: Mapping[str, Tensor]) -> tuple[tuple[str, ...], ...]:
    """Per feature the texts that its codes mean."""
    encoded = texts_of(tensors.values())
    return tuple((TRUE,) if kind == "boolean" else encoded.get(feature, ()) for feature, kind in enumerate(kinds))


def _own_reasons(metadata: object, texts: Tensor | None, reason: Tensor | None) -> tuple[tuple[int, str], ...]:
    """The user's reasons as the metadata has them, clause and text; `reason_text` of a rule set must say just these."""
    if not isinstance(metadata, list) or not all(isinstance(one, list) and len(one) == 2 for one in metadata):
        raise Unread("the reasons are not texts by clause")
    reasons: dict[int, str] = {}
    for clause, text in metadata:
        if type(clause) is not int or clause in reasons or not isinstance(text, str) or not text:
            raise Unread("the reasons are not one text per clause")
        reasons[clause] = text
    if isinstance(texts, Wording):
        if texts.truths is not reason:
            raise Unread("reason_text names other rules than reason does")
        if {clause: text for clause, text in enumerate(texts.texts) if text} != reasons:
            raise Unread("reason_text does not say the reasons that the metadata has")
    return tuple(sorted(reasons.items()))


def _tensors(model: Model, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What each name means, node by node; a graph is written in the order it runs."""
    known: dict[str, Tensor] = {**model.constants, **inputs}
    for node in model.nodes:
        inputs_here = [known[name] if name in known else _absent(node, name) for name in node.input]
        tensors = results(node, inputs_here)
        if (
            len(tensors) != len(node.output)
            or len(set(node.output)) != len(tensors)
            or any(name in known for name in node.output)
        ):
            raise Unread(f"{place(node)}: its outputs are not new names, one each")
        known.update(zip(node.output, tensors, strict=True))
    if lacking := [name for name in model.outputs if name not in known or name not in OUTPUTS]:
        raise Unread(f"output {lacking[0]!r} is not made, or not known")
    if lacking := [name for name in ("label", "probabilities") if name not in model.outputs]:
        raise Unread(f"has no output {lacking[0]!r}")
    return known


def _absent(node: Any, name: str) -> Tensor:
    raise Unread(f"{place(node)}: takes {name!r}, which nothing before it gives")


def _tree(outputs: Mapping[str, Tensor], classes: tuple[Label, ...]) -> StepDecision:
    label, probabilities, reason = outputs["label"], outputs["probabilities"], outputs.get("reason")
    sentences = _sentences(label, outputs.get("reason_text"))
    if not isinstance(label, LookUp) or not isinstance(probabilities, LookUp):
        raise Unread("label and probabilities are not looked up by leaf")
    if label.number is not probabilities.number and label.number != probabilities.number:
        raise Unread("label and probabilities are not looked up by the same leaf")
    if reason is not None and not (isinstance(reason, Number) and reason.flat and reason.value is label.number):
        raise Unread("the reason is not the leaf that label and probabilities are looked up by")
    labels, table = label.table.array, probabilities.table.array
    if labels.ndim != 1 or table.ndim != 2 or str(table.dtype) != "float64":
        raise Unread("the tables of leaves are not labels and rows of doubles")

    def outcome(leaf: int) -> Outcome:
        winner = _class_of(labels[leaf], classes)
        row = tuple(float(p) for p in table[leaf])
        full = leaf_outcome(f"leaf {leaf}", winner, row, len(classes), leaf)
        answer = full if reason is not None else Outcome(full.winner, full.probabilities)
        return replace(answer, text=None if sentences is None else str(sentences[leaf]))

    return decision_of(label.number, outcome)


def _sentences(label: Tensor, texts: Tensor | None) -> Any:
    """The reason of each leaf in words, where the model has one."""
    if texts is None:
        return None
    if not isinstance(texts, LookUp) or not isinstance(label, LookUp) or texts.number is not label.number:
        raise Unread("reason_text is not looked up by the leaf")
    if texts.table.array.ndim != 1 or str(texts.table.array.dtype) != "object":
        raise Unread("reason_text is not one text per leaf")
    return texts.table.array


def _class_of(label: Any, classes: Sequence[Label]) -> int:
    value = label if isinstance(label, str) else label.item()
    if is_minus_nothing(value):
        raise Unread("a label is -0.0, which no program has")
    for index, known in enumerate(classes):
        if type(known) is type(value) and known == value:
            return index
    raise Unread(f"the label {value!r} is not one of its classes")


def _rule_set(outputs: Mapping[str, Tensor], classes: tuple[Label, ...]) -> PointDecision:
    label, probabilities, score, reason, texts = (outputs.get(name) for name in OUTPUTS)
    if not isinstance(label, WinnersLabel) or not isinstance(score, Points):
        raise Unread("label and score are not made of points")
    if not isinstance(probabilities, Softmax | Rates):
        raise Unread("the probabilities are not made of points")
    points = label.winner.points
    for other in (probabilities.points, score):
        if other.bias != points.bias or other.terms != points.terms:
            raise Unread("label, probabilities and score are not made of the same points")
    if score.dtype != "int64" or score.lines or len(points.bias) != len(classes):
        raise Unread("the score is not a whole number a class")
    if [_class_of(value, classes) for value in label.labels.array] != list(range(len(classes))):
        raise Unread("the labels are not the classes in their order")
    if reason is not None and (not isinstance(reason, Truths) or reason.form != "by row"):
        raise Unread("the reason is not one truth value per rule")
    if texts is not None and not isinstance(texts, Wording):
        raise Unread("reason_text is not one text per rule")
    held = None if reason is None else reason.conditions
    tie: Literal["lower", "higher"] = "higher" if label.winner.last else "lower"
    if isinstance(probabilities, Rates):
        if label.winner.last:
            raise Unread("bands of the first of equal classes, and the label of the last")
        return PointDecision(points.bias, points.terms, None, tie, held, bands=probabilities.bands)
    return PointDecision(points.bias, points.terms, scale_of(probabilities.worth), tie, held)


def _check_metadata(model: Model, outputs: Mapping[str, Tensor], dtype: str) -> None:
    """What the metadata says about the model is true: rows are prepared by it."""
    uses_trees = any(node.op_type == "TreeEnsemble" for node in model.nodes)
    expected = {
        "dtype": dtype,
        "inputs": "columns" if model.metadata["inputs"] == "columns" else "tensor",
        "reason": "yes" if "reason" in outputs else "no",
        "lowering": "tree" if uses_trees else "logic",
    }
    for key, value in expected.items():
        if model.metadata[key] != value:
            raise Unread(f"metadata gbfl.{key} says {model.metadata[key]!r}, it is {value!r}")


KINDS = {"float64": "DOUBLE", "int64": "INT64", "bool": "BOOL", "object": "STRING"}


def _check_outputs(model: Model, outputs: Mapping[str, Tensor], classes: int) -> None:
    """Each output is of the type and shape that the model declares: a runtime refuses the model otherwise."""
    for name, tensor in outputs.items():
        match tensor:
            case LookUp(table):
                dtype, shape = table.array.dtype, (None, *table.array.shape[1:])
            case WinnersLabel(labels):
                dtype, shape = labels.array.dtype, (None,)
            case Number(flat=flat):
                dtype, shape = np.dtype(tensor.dtype), (None,) if flat else (None, 1)
            case Truths(conditions):
                dtype, shape = np.dtype(bool), (None, len(conditions))
            case Wording(_, texts):
                dtype, shape = np.dtype(object), (None, len(texts))
            case Points():
                dtype, shape = np.dtype(tensor.dtype), (None, classes)
            case _:
                dtype, shape = np.dtype(np.float64), (None, classes)
        if model.outputs[name] != (KINDS.get(str(dtype), "?"), shape):
            raise Unread(f"output {name!r} is {dtype} {list(shape)}, declared as {model.outputs[name]}")
