"""The ONNX target: a graph that ONNX Runtime runs exactly, with the usual outputs of classifiers, and its runner.

Outputs: `label` `[rows]` (int64, string, bool or double: the labels as they are), `probabilities` `[rows, classes]`
in double, `score` `[rows, classes]` int64 for a rule set, and with reason=yes `reason`: the leaf reached, or which
rules held `[rows, rules]`. Labels, scores and a tree's probabilities are exact; a rule set's are within 1e-12.
Where the user gave reasons, the metadata has them by clause, and with reason=yes so has `reason_text`: a sentence
`[rows]` for a tree, `[rows, rules]` for a rule set, empty where a rule did not hold or has none.

Where features have kinds, the inputs are those of `inputs`: numbers, dates as days, timestamps as microseconds and
booleans as 1 and 0 in one matrix, categories as texts beside truth values that say which are missing; the metadata
`gbfl.columns` names the columns of each input. Texts are encoded inside the graph.

Options: dtype=float64|float32 (float32 is a program with other thresholds, see ir.intervals), inputs=tensor|columns,
reason=no|yes, lowering=auto|logic|tree (a tree needs ONNX Runtime 1.21; logic ran in 1.18 and newer).
"""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, assert_never, cast

from gbfl_compile.backends.base import Artifact, Availability, Backend, Options, Predictor, take_options
from gbfl_compile.backends.onnx.graph import (
    ENCODER_OPSET,
    IR_VERSION,
    ML_OPSET,
    OPSET,
    Input,
    Interface,
    Lowering,
    inputs_of,
)
from gbfl_compile.backends.onnx.logic import as_numbers, word_atoms
from gbfl_compile.backends.onnx.outputs import FinishedGraph, build_graph
from gbfl_compile.backends.onnx.tree import NoTree, tree_nodes
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.files.atomic import read_whole
from gbfl_compile.ir.intervals import Dtype, narrow
from gbfl_compile.ir.json import digest
from gbfl_compile.ir.kinds import Value, plain_value
from gbfl_compile.ir.nodes import TRUE, Kind, Program, Scorecard
from gbfl_compile.ir.text import leaf_reasons, listing, reasons_of
from gbfl_compile.version import GENERATOR, VERSION, install_command

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Answers, Matrix

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
    return Interface(cast("Dtype", chosen["dtype"]), by_columns, with_reason, cast("Lowering", lowering))


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


BATCH = 32_768
"""Rows per run: columns of this length stay in cache between operators, and outweigh each node's overhead."""

LARGE = 200_000
"""Bytes beyond which the runtime's graph optimiser is off: loading would take many seconds for no gain."""


@dataclass(frozen=True, slots=True)
class Table:
    """What the rows of a model are: its features, their kinds, and the inputs that take them."""

    features: tuple[str, ...]
    kinds: tuple[Kind, ...]
    inputs: tuple[Input, ...]
    dtype: Literal["float64", "float32"]

    def kind(self, feature: int) -> Kind:
        """What the values of a feature are."""
        return self.kinds[feature] if self.kinds else "number"


def open_model(path: Path, threads: int = 1) -> Predictor:
    """The model in a file, run by ONNX Runtime. The answers do not depend on the number of threads."""
    content = read_whole(path)
    session = _session(content, str(path), threads)
    try:
        fields = {key: json.loads(value) for key, value in session.get_modelmeta().custom_metadata_map.items()}
        digest, features, classes = (
            fields["gbfl.digest"],
            fields["gbfl.features"],
            fields["gbfl.classes"],
        )
        dtype, kinds = fields["gbfl.dtype"], tuple(fields.get("gbfl.kinds", ()))
        table = Table(tuple(features), kinds, inputs_of(features, kinds, fields["gbfl.inputs"] == "columns"), dtype)
    except (KeyError, ValueError) as error:
        raise BadInput(f"{path}: is not a model this target emits, its metadata lacks {error}") from None

    def answer(rows: Matrix) -> Answers:
        return _answers(session, _number_feeds(table, rows))

    def answer_rows(rows: Sequence[Sequence[Value]]) -> Answers:
        return _answers(session, _word_feeds(table, rows))

    engine = _engine(dtype)
    return Predictor(
        "onnx",
        engine,
        digest,
        tuple(features),
        tuple(classes),
        answer,
        dtype,
        threads=True,
        kinds=kinds,
        answer_rows=answer_rows,
    )


def _session(content: bytes, where: str, threads: int) -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise CannotRun(f"{where}: running ONNX models needs onnxruntime: {install_command('onnx')}") from None
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.inter_op_num_threads = 1
    if len(content) > LARGE:
        settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.log_severity_level = 3  # errors only: they are raised anyway
    try:
        return onnxruntime.InferenceSession(content, settings, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime's exceptions have no common base class
        reason = str(error).strip().splitlines()[0]
        if "TreeEnsemble" in reason:
            reason += " (emit it with lowering=logic, or use onnxruntime 1.21 or newer)"
        raise BadInput(f"{where}: ONNX Runtime {onnxruntime.__version__} cannot load it: {reason}") from error


def _engine(dtype: str) -> str:
    version = metadata.version("onnxruntime")
    return f"onnxruntime {version}" if dtype == "float64" else f"onnxruntime {version}, rows rounded to {dtype}"


def _number_feeds(table: Table, rows: Matrix) -> Iterator[dict[str, Any]]:
    """Rows of numbers as the inputs of each run."""
    import numpy as np

    if "category" in table.kinds:
        raise BadInput("the model takes texts, which no matrix of numbers has: give rows of values")
    if rows.ndim != 2 or rows.shape[1] != len(table.features):
        raise BadInput(f"rows of shape {rows.shape}: the model has {len(table.features)} features")
    for start in range(0, max(len(rows), 1), BATCH):
        with np.errstate(over="ignore"):  # a double beyond float32 is infinite there
            batch = np.ascontiguousarray(rows[start : start + BATCH], dtype=table.dtype)
        whole = len(table.inputs) == 1 and len(table.inputs[0].features) == len(table.features)
        yield {each.name: batch if whole else batch[:, list(each.features)] for each in table.inputs}


def _word_feeds(table: Table, rows: Sequence[Sequence[Value]]) -> Iterator[dict[str, Any]]:
    """Rows of values as the inputs of each run: texts, truth values where they are missing, and numbers."""
    for row in rows:
        if len(row) != len(table.features):
            raise BadInput(f"a row of {len(row)} values: the model has {len(table.features)} features")
    for start in range(0, max(len(rows), 1), BATCH):
        batch = rows[start : start + BATCH]
        plain = [
            [plain_value(table.kind(feature), row[feature], name) for row in batch]
            for feature, name in enumerate(table.features)
        ]
        yield {each.name: _tensor(table, each, plain) for each in table.inputs}


def _tensor(table: Table, taken: Input, plain: list[list[float | str | None]]) -> Any:
    """One input: a column of each of its features, given column by column."""
    import numpy as np

    columns = [plain[feature] for feature in taken.features]
    match taken.holds:
        case "numbers":
            with np.errstate(over="ignore"):
                numbers = np.array([[_number(value) for value in column] for column in columns], dtype=np.float64)
                return np.ascontiguousarray(numbers.reshape(len(columns), -1).T, dtype=table.dtype)
        case "texts":  # as objects: a numpy text would lose NUL characters at its end
            texts = np.empty((len(columns[0]), len(columns)), dtype=object)
            for place, (feature, column) in enumerate(zip(taken.features, columns, strict=True)):
                texts[:, place] = [
                    _unicode("" if text is None else str(text), table.features[feature]) for text in column
                ]
            return texts
        case "missing":
            flags = np.array([[value is None for value in column] for column in columns], dtype=bool)
            return np.ascontiguousarray(flags.reshape(len(columns), -1).T)
        case _:
            assert_never(taken.holds)


def _number(value: float | str | None) -> float:
    """A number as the model takes it: a boolean is 1 or 0, NaN is missing."""
    if isinstance(value, str):
        return float(value == TRUE)
    return math.nan if value is None else value


def _unicode(text: str, name: str) -> str:
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise BadInput(f"{name!r}: {text!r} has a lone surrogate, which is not valid Unicode")
    return text


def _answers(session: Any, feeds: Iterator[dict[str, Any]]) -> Answers:
    import numpy as np

    from gbfl_compile.ir.batch import Answers, label_array

    names = [output.name for output in session.get_outputs()]
    parts = [session.run(names, feed) for feed in feeds]
    outputs = {name: np.concatenate([part[i] for part in parts]) for i, name in enumerate(names)}
    by_leaf = "reason" in outputs and "score" not in outputs
    return Answers(
        labels=label_array(tuple(outputs["label"].tolist())),
        probabilities=outputs["probabilities"],
        leaves=outputs["reason"] if by_leaf else None,
        scores=outputs.get("score"),
    )


def available() -> Availability:
    """Whether onnx and onnxruntime are installed; neither is imported to find out."""
    missing = [name for name in ("onnx", "onnxruntime") if importlib.util.find_spec(name) is None]
    engine = "onnxruntime" if "onnxruntime" in missing else f"onnxruntime {metadata.version('onnxruntime')}"
    return Availability(
        engine,
        cannot_emit=f"onnx is not installed: {install_command('onnx')}" if "onnx" in missing else None,
        cannot_run=f"onnxruntime is not installed: {install_command('onnx')}" if "onnxruntime" in missing else None,
    )


def load(path: Path) -> Predictor:
    """The model in a file, run by ONNX Runtime on one thread; `run.open_model` takes more."""
    return open_model(path)


BACKEND = Backend(
    "onnx", "a graph for ONNX Runtime and scikit-learn pipelines", EXTENSION, emit, load, available, emits_bands=True
)
