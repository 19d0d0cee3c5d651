"""Black boxes from files and modules: ONNX, skops, pickle on trust, `module:callable`, or trained here.

A module is imported and a pickle can do anything when it is opened, so the user has to allow both. ONNX is read as a
graph, and skops refuses types it does not know.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import os
import shlex
import sys
import warnings
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.errors import BadInput, CannotRun, GbflError, did_you_mean
from gbfl_compile.files.atomic import read_whole, refuse_bomb
from gbfl_compile.files.formats import A_BLACK_BOX, wrong_file
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.tables.conversion import text_of
from gbfl_compile.version import install_command

if TYPE_CHECKING:
    from gbfl_compile.ir.kinds import Columns
    from gbfl_compile.tables.values import Palette

Kind = Literal["mlp", "gbm", "forest"]
KINDS: tuple[Kind, ...] = ("mlp", "gbm", "forest")

MOST_NAMED = 20
"""Unknown types that one message names."""

PICKLES = (".pkl", ".pickle", ".joblib")

NUMBERS = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(float16)": np.float16,
    "tensor(bool)": np.bool_,
}
"""Numeric input types of ONNX. Rows are rounded to them, as for any caller of such a model."""

TEXT = "tensor(string)"

ROUNDING = 1e-4
"""Probabilities added up in float32 miss 0 and 1 by a little (a forest answered -1.2e-07): tolerate that much."""

PICKLE_WARNING = (
    "opening a pickle runs whatever code its author put into it, with your rights: "
    "do so only with files you made yourself or trust like a program"
)


@dataclass(frozen=True, slots=True)
class LoadedBlackBox:
    """A black box and where it came from."""

    model: Any
    """An object with `predict_proba`, or a callable from rows to probabilities."""
    kind: str
    """`onnx`, `skops`, `pickle`, `module`, `object`, or what was trained: `mlp`, `gbm`, `forest`."""
    name: str | None = None
    """The file's name without its folder, or module:callable."""
    sha256: str | None = None
    """Of the file."""
    takes_codes: bool = False
    """Whether it was trained here on codes of words, and takes them."""

    def as_json(self) -> dict[str, str | None]:
        """For a program's metadata."""
        return {"kind": self.kind, "name": self.name, "sha256": self.sha256}


def obtain_black_box(
    source: Any,
    kind: Kind | None,
    x: Matrix,
    y: Any,
    features: Sequence[str],
    *,
    seed: int = 0,
    trust_pickle: bool = False,
    trusted_types: Sequence[str] = (),
    columns: Columns | None = None,
    palettes: Sequence[Palette] = (),
) -> LoadedBlackBox:
    """The black box: of this kind, trained here; or the one that `source` names, or is.

    `columns` says what the codes in x mean where the table has words or gaps, `palettes` of which types they are.
    """
    if kind is not None:
        from gbfl_compile.learning.prepare import train_black_box

        return LoadedBlackBox(train_black_box(kind, x, y, seed, columns), kind, takes_codes=columns is not None)
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        sample: Any = x
        if columns is not None:
            from gbfl_compile.tables.values import as_table

            sample = as_table(columns, palettes, x)
        return load_black_box(name, features, sample, trust_pickle=trust_pickle, trusted_types=trusted_types)
    return LoadedBlackBox(source, "object", type(source).__name__)


def load_black_box(
    source: str,
    features: Sequence[str],
    sample: Any,
    *,
    trust_pickle: bool = False,
    trusted_types: Sequence[str] = (),
) -> LoadedBlackBox:
    """The black box that `source` names; `features` are the columns it will get, `sample` some rows of them."""
    path = Path(source)
    ending = path.suffix.lower()
    if ending == ".onnx":
        content = read_whole(path)
        return LoadedBlackBox(open_onnx(content, path, tuple(features), sample), "onnx", path.name, _sha256(content))
    if ending == ".skops":
        return LoadedBlackBox(_open_skops(path, trusted_types), "skops", path.name, _sha256(read_whole(path)))
    if ending in PICKLES:
        return LoadedBlackBox(_open_pickle(path, trust_pickle), "pickle", path.name, _sha256(read_whole(path)))
    module, colon, attribute = source.partition(":")
    if colon and module and attribute and "/" not in source and "\\" not in source and not _as_callable(source):
        return LoadedBlackBox(_import_attribute(module, attribute), "module", source)
    usual = f"give a file that ends in .onnx, .skops or {', '.join(PICKLES)}, or module:callable"
    raise BadInput(f"--black-box {source}: {_as_callable(source) or wrong_file(path, A_BLACK_BOX) or usual}")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _open_skops(path: Path, trusted_types: Sequence[str]) -> Any:
    try:
        skops_io = importlib.import_module("skops.io")
    except ImportError:
        raise CannotRun(f"{path}: needs skops: {install_command('skops')}") from None
    content = read_whole(path)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            refuse_bomb(path, sum(member.file_size for member in archive.infolist()))
        unknown = sorted(set(skops_io.get_untrusted_types(data=content)) - set(trusted_types))
        if unknown:
            allow = " ".join(f"--trust-type {name}" for name in unknown[:MOST_NAMED])
            raise BadInput(
                f"{path}: holds {len(unknown)} types that skops does not know to be harmless; "
                f"if you trust them, allow them: {allow}"
            )
        return skops_io.loads(content, trusted=sorted(trusted_types))
    except GbflError:
        raise
    except Exception as error:  # a broken file fails in as many ways as there are types
        raise BadInput(f"{path}: skops cannot load it: {_describe(error)}") from None


def _open_pickle(path: Path, trust: bool) -> Any:
    if not trust:
        raise BadInput(
            f"{path}: is a pickle, and {PICKLE_WARNING}; if so, add --trust-pickle. ONNX and skops files run no code"
        )
    read_whole(path)
    import joblib

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")  # a model of another scikit-learn version gets a warning, not a refusal
            return joblib.load(path)
    except Exception as error:  # its code may raise anything
        raise BadInput(f"{path}: cannot be loaded: {_describe(error)}") from None


def _as_callable(source: str) -> str:
    """What was meant by `model.predict` or `model.py:predict`."""
    module, dot, attribute = source.partition(".py:") if ".py:" in source else source.rpartition(".")
    if dot and Path(f"{module}.py").is_file() and attribute.isidentifier():
        return f"to name a function of a module: --black-box {shlex.quote(f'{module}:{attribute}')}"
    return ""


def _import_attribute(module: str, attribute: str) -> Any:
    """The object `attribute` of `module`, installed or in the current folder.

    The folder stays on the path, last: the object may import its neighbours later, and they hide nothing installed.
    """
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        value: Any = importlib.import_module(module)
        for name in attribute.split("."):
            value = getattr(value, name)
    except Exception as error:  # the module's own code ran
        raise BadInput(f"--black-box {module}:{attribute}: {_describe(error)}{_way_out(error, module)}") from None
    return value


def _way_out(error: Exception, module: str) -> str:
    """Where a module is looked for; which of its names was meant."""
    if isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]:
        return f": neither installed nor {module.partition('.')[0]}.py in {Path.cwd()}"
    if isinstance(error, AttributeError) and error.name and isinstance(error.obj, ModuleType):
        return did_you_mean(error.name, [name for name in vars(error.obj) if name[0] != "_"])
    return ""


def _describe(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__


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
                f"{path}: its input {entry.name!r} is a text, and ONNX has no missing text: give "
                "module:callable that runs the graph on a DataFrame, or fill the gaps with a text"
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
