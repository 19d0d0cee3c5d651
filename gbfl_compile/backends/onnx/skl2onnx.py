"""GBFLClassifier inside scikit-learn pipelines that skl2onnx converts: call `register_converters()` once.

From the input of our node on, the answers are those of the program, for the type that arrives there. An earlier step
may round (StandardScaler in float32 does): that changes our node's input.
Probabilities have the type of the pipeline, as for every classifier of skl2onnx.

Where features are words or dates, there is one input per column, found by its name where all are called as the features
are: text for a category, numbers for the others (a date in days, a timestamp in microseconds since 1970-01-01, a
boolean as 1 and 0 or as it is), NaN where one is missing. A tensor of texts has no missing ones: with missing=TEXT
that text means a missing category, without it every text is a text.

Options, as for scikit-learn's own classifiers: zipmap=True|False|"columns"; raw_scores=True gives a rule set's
logits (a tree has none: refused); missing=TEXT. Rules are written as logic: skl2onnx stops at ai.onnx.ml 3, and
TreeEnsemble is in 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gbfl_compile.backends.onnx import interface_of, model_of
from gbfl_compile.backends.onnx.graph import INPUT, TEXTS, TEXTS_MISSING
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.nodes import Program, Scorecard
from gbfl_compile.version import install_command

OPTIONS: dict[str, list[Any] | None] = {
    "zipmap": [True, False, "columns"],
    "raw_scores": [True, False],
    "missing": None,  # any text
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
    double = _has_doubles(operator) and not zipmap
    operator.outputs[0].type = (StringTensorType if text else Int64TensorType)([rows])
    operator.outputs[1].type = (DoubleTensorType if double else FloatTensorType)([rows, len(classes)])


def convert(scope: Any, operator: Any, container: Any) -> None:
    """skl2onnx's call for one fitted model: our graph, then casts to the types that it announced."""
    from onnx import TensorProto
    from skl2onnx.common.data_types import DoubleTensorType

    from gbfl_compile.lowering import lower
    from gbfl_compile.passes import optimise

    model = operator.raw_operator
    options = container.get_options(model, {"raw_scores": False, "missing": None})
    program = optimise(lower(model))
    if options["raw_scores"] and not isinstance(program.decision, Scorecard):
        raise BadInput("raw_scores: a tree has no scores, leave the option out or use head='rules'")
    double = _has_doubles(operator)
    model_proto = _model(program, "float64" if double or program.kinds else "float32")
    if program.kinds:
        names = _inline(
            scope, container, model_proto, _inputs_by_kind(scope, operator, container, program, options["missing"])
        )
    else:
        inputs = {INPUT: _features_side_by_side(scope, operator.inputs, container, double)}
        names = _inline(scope, container, model_proto, inputs)
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


def _has_doubles(operator: Any) -> bool:
    from skl2onnx.common.data_types import DoubleTensorType

    return any(isinstance(source.type, DoubleTensorType) for source in operator.inputs)


def _features_side_by_side(scope: Any, sources: Sequence[Any], container: Any, double: bool) -> str:
    """The inputs as one matrix of the wanted type: several inputs are joined, integers are cast."""
    from onnx import TensorProto

    kind = TensorProto.DOUBLE if double else TensorProto.FLOAT
    return _join(scope, container, [_cast(scope, container, source.full_name, None, kind) for source in sources])


def _join(scope: Any, container: Any, parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else _node(scope, container, "Concat", parts, axis=1)


def _node(scope: Any, container: Any, operator: str, inputs: list[str], domain: str = "", **attributes: Any) -> str:
    made = str(scope.get_unique_variable_name(f"gbfl_{operator}"))
    name = scope.get_unique_operator_name("gbfl")
    version = 2 if domain else 13
    container.add_node(operator, inputs, made, op_domain=domain, op_version=version, name=name, **attributes)
    return made


def _inputs_by_kind(scope: Any, operator: Any, container: Any, program: Program, missing: str | None) -> dict[str, str]:
    """What goes into our graph: the numbers in one matrix, the texts in another, and which texts are missing ones."""
    from onnx import TensorProto, helper

    sources = _columns(operator, program)
    words = [source for source, kind in zip(sources, program.kinds, strict=True) if kind == "category"]
    others = [source for source, kind in zip(sources, program.kinds, strict=True) if kind != "category"]
    inputs = {INPUT: _features_side_by_side(scope, others, container, double=True)} if others else {}
    if not words:
        return inputs
    inputs[TEXTS] = _join(scope, container, [source.full_name for source in words])
    if missing is None:
        shape = _node(scope, container, "Shape", [inputs[TEXTS]])
        no = helper.make_tensor("value", TensorProto.BOOL, [1], [False])
        inputs[TEXTS_MISSING] = _node(scope, container, "ConstantOfShape", [shape], value=no)
    else:
        table = {"keys_strings": [missing], "values_int64s": [1], "default_int64": 0}
        found = _node(scope, container, "LabelEncoder", [inputs[TEXTS]], "ai.onnx.ml", **table)
        inputs[TEXTS_MISSING] = _cast(scope, container, found, None, TensorProto.BOOL)
    return inputs


def _columns(operator: Any, program: Program) -> list[Any]:
    """One input per feature: by its name where all are called as the features are, else in order."""
    from skl2onnx.common.data_types import StringTensorType

    sources = list(operator.inputs)
    names = [source.raw_name for source in sources]
    widths = [source.type.shape[1] if len(source.type.shape) > 1 else None for source in sources]
    if len(sources) != len(program.features) or set(widths) != {1}:
        raise BadInput(
            f"a pipeline whose rules test words or dates needs one input [None, 1] for each of "
            f"{len(program.features)} features: name each column in initial_types"
        )
    if sorted(names) == sorted(program.features):
        sources = [sources[names.index(feature)] for feature in program.features]
    for feature, (source, kind) in enumerate(zip(sources, program.kinds, strict=True)):
        if isinstance(source.type, StringTensorType) != (kind == "category"):
            wanted = "text" if kind == "category" else "numbers"
            raise BadInput(f"{program.features[feature]!r} is a {kind}: its input {source.raw_name!r} must be {wanted}")
    return sources


def _cast(scope: Any, container: Any, value: str, to: str | None, kind: int) -> str:
    cast = to or str(scope.get_unique_variable_name("gbfl_cast"))
    container.add_node("Cast", value, cast, op_version=13, name=scope.get_unique_operator_name("gbfl"), to=kind)
    return cast


def _inline(scope: Any, container: Any, model: Any, inputs: Mapping[str, str]) -> dict[str, str]:
    """Put our graph into skl2onnx's under unique names; our names -> those names."""
    names = {**inputs, "": ""}
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
