"""Black boxes from files and modules: ONNX, skops, pickle on trust, `module:callable`, or trained here.

A module is imported and a pickle can do anything when it is opened, so both must be asked for. ONNX is read as a graph,
and skops refuses types it does not know.
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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, assert_never

from gbfl_compile.errors import BadInput, CannotRun, GbflError, did_you_mean
from gbfl_compile.files.atomic import read_whole, refuse_bomb
from gbfl_compile.files.formats import A_BLACK_BOX, wrong_file
from gbfl_compile.version import install_command

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Matrix
    from gbfl_compile.ir.kinds import Columns
    from gbfl_compile.tables.values import Palette

Kind = Literal["mlp", "gbm", "forest"]
KINDS: tuple[Kind, ...] = ("mlp", "gbm", "forest")

MOST_NAMED = 20
"""Unknown types that one message names."""

PICKLES = (".pkl", ".pickle", ".joblib")

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
    """Whether it was trained here on codes of words, and is asked with them."""

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
        return train(kind, x, y, seed, columns)
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
        from gbfl_compile.learning.black_box.onnx import open_onnx

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


def train(kind: Kind, x: Any, y: Any, seed: int, columns: Columns | None = None) -> LoadedBlackBox:
    """A black box fitted here, by scikit-learn, with one thread: the same one for the same seed."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        if columns is not None:
            from gbfl_compile.learning.tables import train_on_codes

            return LoadedBlackBox(train_on_codes(kind, x, y, columns, seed), kind, takes_codes=True)
        return LoadedBlackBox(_fit(kind, x, y, seed), kind)


def _fit(kind: Kind, x: Any, y: Any, seed: int) -> Any:
    match kind:
        case "mlp":
            from gbfl_compile.learning.prepare import default_black_box

            return default_black_box(x, y, seed)
        case "gbm":
            from sklearn.ensemble import HistGradientBoostingClassifier

            return HistGradientBoostingClassifier(max_leaf_nodes=15, learning_rate=0.05, random_state=seed).fit(x, y)
        case "forest":
            from sklearn.ensemble import RandomForestClassifier

            # one job: trees that add up their votes in parallel do so in another order each time
            return RandomForestClassifier(100, min_samples_leaf=3, random_state=seed, n_jobs=1).fit(x, y)
        case _:
            assert_never(kind)


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
                f"if you know them, allow them: {allow}"
            )
        return skops_io.loads(content, trusted=sorted(trusted_types))
    except GbflError:
        raise
    except Exception as error:  # a broken file fails in as many ways as there are types
        raise BadInput(f"{path}: skops cannot load it: {_describe(error)}") from None


def _open_pickle(path: Path, trust: bool) -> Any:
    if not trust:
        raise BadInput(f"{path}: is a pickle, and {PICKLE_WARNING}; if so, add --trust-pickle. ONNX and skops do not")
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
