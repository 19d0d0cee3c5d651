"""The ONNX target: a graph that ONNX Runtime runs exactly, with the usual outputs of classifiers.

Outputs: `label` `[rows]` (int64, string, bool or double: the labels as they are), `probabilities` `[rows, classes]`
in double, `score` `[rows, classes]` int64 for a rule set, and with reason=yes `reason`: the leaf reached, or which
rules held `[rows, rules]`. Labels, scores and a tree's probabilities are exact; a rule set's are within 1e-12.
Where the user gave reasons, the metadata has them by clause, and with reason=yes so has `reason_text`: a sentence
`[rows]` for a tree, `[rows, rules]` for a rule set, empty where a rule did not hold or has none.

Where features have kinds, the inputs are those of `inputs`: numbers, dates as days, timestamps as microseconds and
booleans as 1 and 0 in one matrix, categories as texts beside truth values that say which are missing; the metadata
`gbfl.columns` names the columns of each input. Texts are encoded inside the graph.

Options: dtype=float64|float32 (float32 is a program with other thresholds, see ir.float32), inputs=tensor|columns,
reason=no|yes, lowering=auto|logic|tree (a tree needs ONNX Runtime 1.21; logic ran in 1.18 and newer).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from gbfl_compile.backends.base import Artifact, Backend, Options, Predictor, take_options
from gbfl_compile.backends.onnx.graph import (
    ENCODER_OPSET,
    IR_VERSION,
    ML_OPSET,
    OPSET,
    Dtype,
    Interface,
    Lowering,
    inputs_of,
)
from gbfl_compile.backends.onnx.logic import as_numbers, word_atoms
from gbfl_compile.backends.onnx.outputs import FinishedGraph, build_graph
from gbfl_compile.backends.onnx.run import available, open_model
from gbfl_compile.backends.onnx.tree import NoTree, tree_nodes
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.json import digest
from gbfl_compile.ir.nodes import Program, Scorecard
from gbfl_compile.ir.text import leaf_reasons, listing, reasons_of
from gbfl_compile.version import GENERATOR, VERSION, install_command

EXTENSION = ".onnx"

KNOWN = {
    "dtype": ("float64", "float32"),
    "inputs": ("tensor", "columns"),
    "reason": ("no", "yes"),
    "lowering": ("auto", "logic", "tree"),
}


def interface_of(program: Program, options: Options) -> Interface:
    """The options, checked, with the lowering chosen."""
    chosen = take_options("onnx", options, KNOWN)
    by_columns, with_reason = chosen["inputs"] == "columns", chosen["reason"] == "yes"
    if chosen["dtype"] == "float32" and "timestamp" in program.kinds:
        name = program.features[program.kinds.index("timestamp")]
        raise BadInput(f"{name!r} is a timestamp, and float32 cannot hold its microseconds: use dtype=float64")
    lowering = quicker_lowering(program) if chosen["lowering"] == "auto" else chosen["lowering"]
    if lowering == "tree" and with_reason and isinstance(program.decision, Scorecard):
        raise BadInput("lowering=tree adds a rule set's points without saying which rules held: use lowering=logic")
    return Interface(cast(Dtype, chosen["dtype"]), by_columns, with_reason, cast(Lowering, lowering))


def quicker_lowering(program: Program) -> Lowering:
    """The faster lowering in ONNX Runtime, by tests/bench/group_onnx.py: a tree as a tree, a rule set as logic.

    At 1,000,000 rows a tree of 31 clauses took 92 ns per row as a TreeEnsemble and 269 as logic, alone 12 and 190 us;
    50 rules took 1,192 ns per row as trees and 445 as logic.
    """
    if isinstance(program.decision, Scorecard):
        return "logic"
    try:
        tree_nodes(as_numbers(program), program.decision)
    except NoTree:
        return "logic"
    return "tree"


def emit(program: Program, name: str, options: Options) -> Artifact:
    """One model `NAME.onnx`. The rule `IF age >= 18 AND income < 1e5` is written as::

    age, income = Split(input)
    age >= 18.0 = GreaterOrEqual(age, 18.0)
    income < 100000.0 = Less(income, 100000.0)
    rule 0 = And(age >= 18.0, income < 100000.0)
    leaf below split 0 = Where(rule 0, leaf 0, leaf 1)
    """
    interface = interface_of(program, options)
    source = digest(program)
    model = model_of(program, interface, name)
    return Artifact("onnx", name, {f"{name}{EXTENSION}": model.SerializeToString(deterministic=True)}, source)


def model_of(program: Program, interface: Interface, name: str) -> Any:
    """The program as an onnx.ModelProto."""
    try:
        import onnx
    except ImportError:
        raise CannotRun(f"writing ONNX models needs onnx: {install_command('onnx')}") from None
    compared = program
    if interface.dtype == "float32":
        from gbfl_compile.ir.float32 import narrow

        compared = narrow(program)
    written = build_graph(compared, interface, _words(program) if interface.reason else [])
    model = onnx.helper.make_model(
        _graph_proto(written, program, name),
        ir_version=IR_VERSION,
        opset_imports=_opsets(program, interface),
        producer_name="gbfl-compile",
        producer_version=VERSION,
        doc_string=listing(program),
    )
    onnx.helper.set_model_props(model, _metadata(program, interface))
    return model


def _words(program: Program) -> list[str]:
    """The user's reasons as in `reason_text`: a sentence per leaf or a text per rule; empty if there are none."""
    own = reasons_of(program)
    if not own:
        return []
    if isinstance(program.decision, Scorecard):
        return [own.get(clause, "") for clause in range(len(program.clauses))]
    return leaf_reasons(program, program.decision)


def _graph_proto(written: FinishedGraph, program: Program, name: str) -> Any:
    from onnx import helper

    graph = written.graph
    rules = listing(program)
    return helper.make_graph(graph.nodes, name, written.inputs, written.outputs, graph.constants, doc_string=rules)


def _opsets(program: Program, interface: Interface) -> list[Any]:
    from onnx import helper

    versions = [helper.make_opsetid("", OPSET)]
    if interface.lowering == "tree":
        return [*versions, helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    return [*versions, helper.make_opsetid("ai.onnx.ml", ENCODER_OPSET)] if word_atoms(program) else versions


def _metadata(program: Program, interface: Interface) -> dict[str, str]:
    """metadata_props: each value is JSON, so that labels keep their type."""
    fields: dict[str, Any] = {
        "digest": digest(program),
        "features": program.features,
        "classes": program.classes,
        "generator": GENERATOR,
        **interface.as_options,
    }
    if program.kinds:
        inputs = inputs_of(program.features, program.kinds, interface.columns)
        fields["kinds"] = program.kinds
        fields["columns"] = {each.name: [program.features[feature] for feature in each.features] for each in inputs}
    if own := reasons_of(program):
        fields["reasons"] = [[clause, text] for clause, text in own.items()]
    return {f"gbfl.{key}": json.dumps(value, ensure_ascii=True) for key, value in fields.items()}


def load(path: Path) -> Predictor:
    """The model in a file, run by ONNX Runtime on one thread; `run.open_model` takes more."""
    return open_model(path)


BACKEND = Backend(
    "onnx", "a graph for ONNX Runtime and scikit-learn pipelines", EXTENSION, emit, load, available, emits_bands=True
)
