"""What an explainer is given and what it gives back: each row with its PP, its PN and what was found."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.errors import BadInput
from gbfl_compile.learn.black_box import BlackBox, Bools, Ints, Matrix


@dataclass(frozen=True, slots=True)
class Domain:
    """Where explanations may go: base values b, bounds [L, U] and a name for each feature."""

    base: Matrix
    lower: Matrix
    upper: Matrix
    features: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanations:
    """Each row's pertinent positive and pertinent negative. Where none was found the row repeats x."""

    x: Matrix
    pp: Matrix
    pn: Matrix
    has_pp: Bools
    has_pn: Bools
    label: Ints
    """The black box's class of x, as an index."""
    pn_label: Ints
    """The black box's class of the PN; of x where there is no PN."""
    pp_margin: Matrix
    """C(y) - max of the others at the PP."""
    pn_margin: Matrix
    """Max of the others - C(y) at the PN; negative where there is no PN."""
    pp_is_base: Bools
    """The base point alone already has the class with its margin: an empty PP."""
    queries: int
    features: tuple[str, ...]

    def counts(self) -> dict[str, int]:
        """How many were found, how many were not, and what it cost."""
        rows = len(self.x)
        pp, pn = int(self.has_pp.sum()), int(self.has_pn.sum())
        return {
            "rows": rows,
            "pp_found": pp,
            "pp_not_found": rows - pp,
            "pp_is_base": int(self.pp_is_base.sum()),
            "pn_found": pn,
            "pn_not_found": rows - pn,
            "queries": self.queries,
        }


class Explainer(Protocol):
    """Anything that explains rows: batched, within the domain, keeping the direction rules of equations 1-2."""

    def __call__(self, black_box: BlackBox, x: Matrix, domain: Domain) -> Explanations: ...


@dataclass(frozen=True, slots=True)
class Triplets:
    """What a triplet file holds: x, PP and PN with the original class labels."""

    x: Matrix
    pp: Matrix
    pn: Matrix
    has_pp: Bools
    has_pn: Bools
    label: NDArray[Any]
    features: tuple[str, ...]


def domain_of(
    x: Matrix,
    *,
    base: Any = None,
    bounds: Any = None,
    features: Sequence[str] | None = None,
) -> Domain:
    """The domain of training rows: the median as base, the smallest and largest value as bounds, unless given.

    `base` is one value a feature; `bounds` a pair (lower, upper), each one number or one a feature.
    """
    width = x.shape[1]
    lower, upper = (x.min(axis=0), x.max(axis=0)) if bounds is None else _pair(bounds, width)
    middle = np.median(x, axis=0) if base is None else _one_a_feature(base, width, "base")
    if base is None and bounds is not None:
        middle = np.clip(middle, lower, upper)
    names = tuple(f"x{j}" for j in range(width)) if features is None else tuple(str(name) for name in features)
    for j in range(width):
        if not lower[j] <= upper[j]:
            raise BadInput(f"feature {names[j]}: lower bound {lower[j]} is above upper bound {upper[j]}")
        if not lower[j] <= middle[j] <= upper[j]:
            raise BadInput(f"feature {names[j]}: base {middle[j]} lies outside [{lower[j]}, {upper[j]}]")
    return Domain(middle, lower, upper, names)


def _pair(bounds: Any, width: int) -> tuple[Matrix, Matrix]:
    try:
        lower, upper = bounds
    except (TypeError, ValueError):
        raise BadInput("bounds must be a pair (lower, upper), each one number or one a feature") from None
    return _one_a_feature(lower, width, "lower bound"), _one_a_feature(upper, width, "upper bound")


def _one_a_feature(values: Any, width: int, what: str) -> Matrix:
    try:
        array = np.broadcast_to(np.asarray(values, dtype=np.float64), (width,)).copy()
    except (TypeError, ValueError):
        raise BadInput(f"{what} must be one number, or one number for each of the {width} features") from None
    if not np.isfinite(array).all():
        raise BadInput(f"{what} of feature {int(np.flatnonzero(~np.isfinite(array))[0])} is not a finite number")
    return array


def triplets_of(explanations: Explanations, classes: NDArray[Any]) -> Triplets:
    """The triplets of some explanations, their labels as the user has them."""
    e = explanations
    return Triplets(e.x, e.pp, e.pn, e.has_pp, e.has_pn, np.asarray(classes)[e.label], e.features)


def save_triplets(path: str | os.PathLike[str], triplets: Triplets) -> None:
    """Write triplets as NPZ, whole or not at all."""
    label = np.asarray(triplets.label)
    if label.dtype.kind == "O":
        kinds = {type(value) for value in label.tolist()}
        if kinds <= {int} or kinds <= {bool} or kinds <= {str}:
            label = np.array(label.tolist())
    if label.dtype.kind not in "iubUf":
        raise BadInput(f"labels of type {label.dtype} cannot be stored: use numbers or text")
    path = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as trouble:
        raise BadInput(f"cannot write {path}: {trouble.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(
                file,
                x=triplets.x,
                pp=triplets.pp,
                pn=triplets.pn,
                has_pp=triplets.has_pp,
                has_pn=triplets.has_pn,
                label=label,
                features=np.array(triplets.features, dtype=np.str_),
            )
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(path)
    except BaseException as trouble:
        Path(name).unlink()
        if isinstance(trouble, OSError):
            raise BadInput(f"cannot write {path}: {trouble.strerror}") from None
        raise


def _umask() -> int:
    """The process's umask, which mkstemp does not follow; there is no way to read it without setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


_ARRAYS = ("x", "pp", "pn", "has_pp", "has_pn", "label", "features")


def load_triplets(path: str | os.PathLike[str]) -> Triplets:
    """Read a triplet file, strictly: every array there, of its kind, of one shape, and nothing else."""
    found = _arrays_in(path)
    for name in _ARRAYS:
        if name not in found:
            raise BadInput(f"{path} lacks the array {name!r}: it needs {', '.join(_ARRAYS)}")
    for name in found:
        if name not in _ARRAYS:
            raise BadInput(f"{path} holds an array {name!r} that triplets do not have")
    _check_arrays(str(path), found)
    x, pp, pn = (found[name].astype(np.float64) for name in ("x", "pp", "pn"))
    features = tuple(str(name) for name in found["features"])
    return Triplets(x, pp, pn, found["has_pp"], found["has_pn"], found["label"], features)


def _arrays_in(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    try:
        # opened here, because numpy forgets to close a file that turns out to be no archive
        with Path(path).open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise BadInput(f"{path} holds one array and is not an NPZ of triplets")
            return {name: archive[name] for name in archive.files}
    except BadInput:
        raise
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except OSError as trouble:
        raise BadInput(f"cannot read {path}: {trouble.strerror or trouble}") from None
    except (ValueError, EOFError, KeyError, AttributeError, zipfile.BadZipFile) as trouble:
        raise BadInput(f"{path} is not an NPZ of triplets: {trouble}") from None


def _check_arrays(path: str, found: dict[str, NDArray[Any]]) -> None:
    x = found["x"]
    if x.ndim != 2:
        raise BadInput(f"{path}: x has shape {x.shape}, not [rows, features]")
    rows, width = x.shape
    shapes = {"pp": (rows, width), "pn": (rows, width), "features": (width,)}
    for name in _ARRAYS[1:]:
        shape = shapes.get(name, (rows,))
        if found[name].shape != shape:
            raise BadInput(f"{path}: {name} has shape {found[name].shape} where x asks for {shape}")
    kinds = {"x": "fiu", "pp": "fiu", "pn": "fiu", "has_pp": "b", "has_pn": "b", "label": "iubUf", "features": "U"}
    for name, allowed in kinds.items():
        if found[name].dtype.kind not in allowed:
            raise BadInput(f"{path}: {name} is of type {found[name].dtype}, which triplets cannot have")
    for name in ("x", "pp", "pn"):
        if not np.isfinite(found[name]).all():
            raise BadInput(f"{path}: {name} holds a value that is not a finite number")
