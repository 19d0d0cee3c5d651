"""Triplets on disk: rows x with their PP and PN, so that any target's local consistency can be measured."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.errors import BadInput
from gbfl_compile.files.atomic import whole_file
from gbfl_compile.files.npz import read_arrays

ARRAYS = ("x", "pp", "pn", "has_pp", "has_pn", "label", "features")


@dataclass(frozen=True, slots=True)
class Triplets:
    """x, PP and PN row by row. Where no PP or PN was found its flag is False and the row repeats x."""

    x: NDArray[np.float64]
    pp: NDArray[np.float64]
    pn: NDArray[np.float64]
    has_pp: NDArray[np.bool_]
    has_pn: NDArray[np.bool_]
    label: NDArray[Any]
    """The black box's class of x, as the original label."""
    features: tuple[str, ...]


def save_triplets(path: Path, triplets: Triplets) -> None:
    """Write triplets as NPZ, whole or not at all, readable without pickle."""
    label = np.asarray(triplets.label)
    if label.dtype.kind == "O":
        kinds = {type(value) for value in label.tolist()}
        if len(kinds) == 1 and kinds <= {int, bool, str, float}:
            label = np.array(label.tolist())
    if label.dtype.kind not in "iubUf":
        raise BadInput(f"labels of type {label.dtype} cannot be stored: use numbers or text")
    with whole_file(path) as partial, partial.open("wb") as file:
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


def load_triplets(path: Path) -> Triplets:
    """Read a triplet file strictly: every array, of its kind and shape, and nothing else."""
    arrays = read_arrays(path, ARRAYS, "triplets")
    _check_arrays(path, arrays)
    x, pp, pn = (arrays[name].astype(np.float64) for name in ("x", "pp", "pn"))
    features = tuple(str(name) for name in arrays["features"])
    return Triplets(x, pp, pn, arrays["has_pp"], arrays["has_pn"], arrays["label"], features)


def triplets_for(features: tuple[str, ...], source: Triplets | str | os.PathLike[str]) -> Triplets:
    """Triplets of a program with these features, as they are or from a file."""
    triplets = source if isinstance(source, Triplets) else load_triplets(Path(source))
    if triplets.features != features:
        where = "the triplets" if isinstance(source, Triplets) else source
        raise BadInput(f"{where}: its features are not the program's, make triplets for this program")
    return triplets


def _check_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    if arrays["x"].ndim != 2:
        raise BadInput(f"{path}: x has shape {arrays['x'].shape}, not [rows, features]")
    rows, width = arrays["x"].shape
    shapes = {"pp": (rows, width), "pn": (rows, width), "features": (width,)}
    for name in ARRAYS[1:]:
        shape = shapes.get(name, (rows,))
        if arrays[name].shape != shape:
            raise BadInput(f"{path}: {name} has shape {arrays[name].shape} where x asks for {shape}")
    kinds = {"x": "fiu", "pp": "fiu", "pn": "fiu", "has_pp": "b", "has_pn": "b", "label": "iubUf", "features": "U"}
    for name, allowed in kinds.items():
        if arrays[name].dtype.kind not in allowed:
            raise BadInput(f"{path}: {name} is of type {arrays[name].dtype}, which triplets cannot have")
    for name in ("x", "pp", "pn"):
        if not np.isfinite(arrays[name]).all():
            raise BadInput(f"{path}: {name} holds a value that is not a finite number")
