"""GBFLClassifier inside scikit-learn pipelines that skl2onnx converts: call `register_converters()` once.

From the input of our node on, the answers are those of the program, for the type that arrives there. An earlier step
may round (StandardScaler in float32 does): that changes our node's input.
Probabilities have the type of the pipeline, as for every classifier of skl2onnx.

Options, as for scikit-learn's own classifiers: zipmap=True|False|"columns"; raw_scores=True gives a rule set's
logits (a tree has none: refused). Rules are written as logic: skl2onnx stops at ai.onnx.ml 3, and TreeEnsemble is in 5.
"""

from __future__ import annotations

from typing import Any

from gbfl_compile.backends.onnx import interface_of, model_of
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.kinds import require_numbers
from gbfl_compile.ir.nodes import Program, Scorecard
from gbfl_compile.version import install_command

OPTIONS: dict[str, list[Any]] = {
    "zipmap": [True, False, "columns"],
    "raw_scores": [True, False],
    "nocl": [False],  # skl2onnx's zipmap asks whether there are class labels: there always are
}


def register_converters() -> None:
    """Register the conversion of GBFLClassifier and the baselines with skl2onnx. Idempotent."""
    try:
        from skl2onnx import update_registered_converter
    except ImportError:
        raise CannotRun(f"converting pipelines needs skl2onnx: {install_command('onnx')}") from None
    from gbfl_compile.learning.baselines import AugmentedTree, DistilledTree, StandardTree
    from gbfl_compile.learning.classifier import GBFLClassifier

    for model in (GBFLClassifier, StandardTree, DistilledTree, AugmentedTree):
        update_registered_converter(model, f"Gbfl{model.__name__}", announce_outputs, convert, options=OPTIONS)


def announce_outputs(operator: Any) -> None:
    """skl2onnx's call before the conversion: the types and shapes of label and probabilities."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType

    classes = operator.raw_operator.classes_
    rows = operator.inputs[0].get_first_dimension()
    text = isinstance(classes.tolist()[0], str)
    # ZipMap takes float32 only, and skl2onnx puts it behind doubles too
    zipmap = operator.scope_inst.get_options(operator.raw_operator, {"zipmap": True})["zipmap"] is True
    double = isinstance(operator.inputs[0].type, DoubleTensorType) and not zipmap
    operator.outputs[0].type = (StringTensorType if text else Int64TensorType)([rows])
    operator.outputs[1].type = (DoubleTensorType if double else FloatTensorType)([rows, len(classes)])


def convert(scope: Any, operator: Any, container: Any) -> None:
    """skl2onnx's call for one fitted model: our graph, then casts to the types that it announced."""
    from onnx import TensorProto
    from skl2onnx.common.data_types import DoubleTensorType

    from gbfl_compile.lowering import lower
    from gbfl_compile.passes import optimise

    model = operator.raw_operator
    options = container.get_options(model, {"raw_scores": False})
    program = optimise(lower(model))
    require_numbers(program, "converting a pipeline with skl2onnx (compile the program with `gbfl compile --to onnx`)")
    if options["raw_scores"] and not isinstance(program.decision, Scorecard):
        raise BadInput("raw_scores: a tree has no scores, leave the option out or use head='rules'")
    double = isinstance(operator.inputs[0].type, DoubleTensorType)
    model_proto = _model(program, "float64" if double else "float32")
    names = _inline(scope, container, model_proto, _features_side_by_side(scope, operator, container, double))
    label, answer = names["label"], names["probabilities"]
    if options["raw_scores"]:
        answer = names["logits"]
    kind = TensorProto.DOUBLE if isinstance(operator.outputs[1].type, DoubleTensorType) else TensorProto.FLOAT
    text = isinstance(program.classes[0], str)
    _cast(scope, container, label, operator.outputs[0].full_name, TensorProto.STRING if text else TensorProto.INT64)
    _cast(scope, container, answer, operator.outputs[1].full_name, kind)


def _model(program: Program, dtype: str) -> Any:
    if isinstance(program.classes[0], float) and any(label != int(label) for label in program.classes):
        raise BadInput(f"classes {program.classes}: skl2onnx gives whole numbers or text as labels, rename them")
    return model_of(program, interface_of(program, {"dtype": dtype, "lowering": "logic"}), "gbfl")


def _features_side_by_side(scope: Any, operator: Any, container: Any, double: bool) -> str:
    """The input as one matrix of the wanted type: several inputs are joined, integers are cast."""
    from onnx import TensorProto

    kind = TensorProto.DOUBLE if double else TensorProto.FLOAT
    parts = [_cast(scope, container, source.full_name, None, kind) for source in operator.inputs]
    if len(parts) == 1:
        return parts[0]
    matrix = scope.get_unique_variable_name("gbfl_features")
    container.add_node("Concat", parts, matrix, op_version=13, name=scope.get_unique_operator_name("gbfl"), axis=1)
    return str(matrix)


def _cast(scope: Any, container: Any, value: str, to: str | None, kind: int) -> str:
    cast = to or str(scope.get_unique_variable_name("gbfl_cast"))
    container.add_node("Cast", value, cast, op_version=13, name=scope.get_unique_operator_name("gbfl"), to=kind)
    return cast


def _inline(scope: Any, container: Any, model: Any, matrix: str) -> dict[str, str]:
    """Put our graph into skl2onnx's under unique names; our names -> those names."""
    names = {"input": matrix, "": ""}
    for constant in model.graph.initializer:
        names[constant.name] = scope.get_unique_variable_name(f"gbfl {constant.name}")
        constant.name = names[constant.name]
        container.initializers.append(constant)
    for node in model.graph.node:
        node.name = scope.get_unique_operator_name(f"gbfl {node.name}")
        for output in node.output:
            names[output] = scope.get_unique_variable_name(f"gbfl {output}")
        node.input[:] = [names[value] for value in node.input]
        node.output[:] = [names[value] for value in node.output]
        container.nodes.append(node)
    for opset in model.opset_import:
        container.node_domain_version_pair_sets.add((opset.domain, opset.version))
    return names
