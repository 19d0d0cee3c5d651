"""Runs an emitted model in ONNX Runtime, in batches that stay in the processor's cache."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, assert_never

from gbfl_compile.backends.base import Availability, Predictor
from gbfl_compile.backends.onnx.graph import Input, inputs_of
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.files.atomic import read_whole
from gbfl_compile.ir.kinds import Value, plain_value
from gbfl_compile.ir.nodes import TRUE, Kind
from gbfl_compile.version import install_command

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Answers, Matrix

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

    engine = _engine(session, dtype)
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


def _engine(session: Any, dtype: str) -> str:
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
