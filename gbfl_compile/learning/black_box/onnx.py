"""An ONNX file as a black box: rows in and one probability per class out, for any layout of inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.tables.kinds import text_of
from gbfl_compile.version import install_command

NUMBERS = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(float16)": np.float16,
    "tensor(bool)": np.bool_,
}
"""Numeric input types. Rows are rounded to them, as for any caller of such a model."""

TEXT = "tensor(string)"

ROUNDING = 1e-4
"""Probabilities added up in float32 miss 0 and 1 by a little (a forest answered -1.2e-07): tolerate that much."""


@dataclass(frozen=True, slots=True)
class OnnxFile:
    """What a session is made of. Sessions cannot be sent to another process; this can."""

    content: bytes
    path: Path
    features: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A graph that does not name its classes: they are taken to be those of the data, in order."""

    file: OnnxFile
    ask: Callable[[Any], Matrix]

    def __call__(self, rows: Any) -> Matrix:
        return self.ask(rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return _model, (self.file, None)


@dataclass(frozen=True, slots=True)
class NamedOnnxModel:
    """A graph whose answers say which class is which."""

    file: OnnxFile
    ask: Callable[[Any], Matrix]
    classes_: NDArray[Any]

    def predict_proba(self, rows: Any) -> Matrix:
        """One probability per class, in the order of `classes_`."""
        return self.ask(rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return _model, (self.file, self.classes_)


def open_onnx(content: bytes, path: Path, features: tuple[str, ...], sample: Any) -> OnnxModel | NamedOnnxModel:
    """The model in an ONNX file, as a black box over these features; `sample` rows show what it answers.

    Rows are a matrix, or a DataFrame where there are words.
    """
    file = OnnxFile(content, path, features)
    session = _session(file)
    feeds, output = _feeds(session.get_inputs(), path, features), _probability_output(session.get_outputs(), path)
    first = _run(session, output, feeds(sample[:1]), path)
    if isinstance(first, list):  # a ZipMap: one dictionary per row, probabilities by class
        return _model(file, np.array(sorted(first[0])))
    labels = next((o.name for o in session.get_outputs() if o.type in ("tensor(string)", "tensor(int64)")), None)
    if labels is None:
        return _model(file, None)
    answers, named = (_run(session, name, feeds(sample), path) for name in (output, labels))
    return _model(file, _names(_table(answers), np.asarray(named).ravel()))


def _session(file: OnnxFile) -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise CannotRun(f"{file.path}: needs ONNX Runtime: {install_command('onnx')}") from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1  # more threads could change a bit; `--jobs` uses more processors
    try:
        return onnxruntime.InferenceSession(file.content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has an exception for each kind of broken graph
        raise BadInput(f"{file.path}: ONNX Runtime cannot load it: {_first_line(error)}") from None


def _run(session: Any, name: str, inputs: dict[str, Any], path: Path) -> Any:
    try:
        return session.run([name], inputs)[0]
    except Exception as error:
        raise BadInput(f"{path}: ONNX Runtime cannot run it: {_first_line(error)}") from None


def _model(file: OnnxFile, classes: NDArray[Any] | None) -> OnnxModel | NamedOnnxModel:
    session = _session(file)
    feeds = _feeds(session.get_inputs(), file.path, file.features)
    output = _probability_output(session.get_outputs(), file.path)

    def ask(rows: Any) -> Matrix:
        answer = _run(session, output, feeds(rows), file.path)
        if isinstance(answer, list):
            names = sorted(answer[0])
            answer = [[by_class[name] for name in names] for by_class in answer]
        return _table(answer)

    return OnnxModel(file, ask) if classes is None else NamedOnnxModel(file, ask, classes)


def _feeds(inputs: list[Any], path: Path, features: tuple[str, ...]) -> Callable[[Any], dict[str, Any]]:
    """How rows become the graph's inputs: one matrix of all features, or one column per feature, matched by name."""
    for entry in inputs:
        if entry.type not in (*NUMBERS, TEXT):
            raise BadInput(f"{path}: its input {entry.name!r} is {entry.type}, and features are numbers or texts")
    if len(inputs) == 1 and (len(features) > 1 or inputs[0].name not in features):
        only, width = inputs[0], inputs[0].shape[-1] if inputs[0].shape else None
        if isinstance(width, int) and width != len(features):
            raise BadInput(f"{path}: takes {width} features, the data has {len(features)}: see --drop")

        def all_at_once(rows: Any) -> dict[str, Any]:
            columns = [_values(_column(rows, place, name), only, path) for place, name in enumerate(features)]
            return {only.name: np.column_stack(columns)}

        return all_at_once
    if absent := [entry.name for entry in inputs if entry.name not in features]:
        raise BadInput(f"{path}: has an input {absent[0]!r} that is not a column of the data")
    places = [(entry, features.index(entry.name)) for entry in inputs]

    def by_column(rows: Any) -> dict[str, Any]:
        columns = {entry.name: _values(_column(rows, place, entry.name), entry, path) for entry, place in places}
        flat = {entry.name: len(entry.shape) < 2 for entry in inputs}
        return {name: column if flat[name] else column.reshape(-1, 1) for name, column in columns.items()}

    return by_column


def _column(rows: Any, place: int, name: str) -> Any:
    return rows[name] if hasattr(rows, "columns") else rows[:, place]


def _values(column: Any, entry: Any, path: Path) -> NDArray[Any]:
    """A column in the type of a graph's input. A text that is missing has no agreed spelling, so it is refused."""
    if entry.type == TEXT:
        values = column.tolist()
        if any(value is None or value != value for value in values):  # NaN is not itself
            raise BadInput(
                f"{path}: its input {entry.name!r} is a text and has no spelling for a missing one: give "
                "module:callable that runs the graph on a DataFrame, or put a text there"
            )
        return np.array([text_of(value) for value in values], dtype=object)
    try:
        return np.asarray(column).astype(NUMBERS[entry.type])
    except (TypeError, ValueError) as error:
        raise BadInput(f"{path}: its input {entry.name!r} is a number: {_first_line(error)}") from None


def _probability_output(outputs: list[Any], path: Path) -> str:
    """The output with probabilities: by its name, or the only one that can be."""
    able = [o for o in outputs if o.type in ("tensor(float)", "tensor(double)") or o.type.startswith("seq(map")]
    likely = [o for o in able if "proba" in o.name.lower()] or able
    if len(likely) != 1:
        names = ", ".join(repr(o.name) for o in outputs)
        raise BadInput(f"{path}: which of its outputs {names} has the probabilities? Name one 'probabilities'")
    return str(likely[0].name)


def _table(answer: Any) -> Matrix:
    table = np.asarray(answer, dtype=np.float64)
    nearly = (table > -ROUNDING) & (table < 1 + ROUNDING)
    table = np.where(nearly, np.clip(table, 0.0, 1.0), table)
    return table.ravel() if table.ndim == 2 and table.shape[1] == 1 else table


def _names(table: Matrix, labels: NDArray[Any]) -> NDArray[Any] | None:
    """The label of each column, from the rows where it is highest; None where the rows do not show it."""
    if table.ndim != 2 or len(labels) != len(table):
        return None
    names = []
    for column in range(table.shape[1]):
        alone = (table[:, column] > np.delete(table, column, axis=1).max(axis=1)).nonzero()[0]
        candidates = sorted(set(labels[alone].tolist()))
        if len(candidates) != 1:
            return None
        names += candidates
    return np.array(names) if len(set(names)) == len(names) else None


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]
