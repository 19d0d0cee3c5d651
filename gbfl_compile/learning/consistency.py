"""Local consistency (equations 3-4): counts of predictions, so that every model and target is measured alike.

Triplets, rows x with their PP and PN, are kept on disk, so that any target's local consistency can be measured.
A file of them may come from anyone: only the arrays expected are read, as large as they say, nothing unpickled.
"""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gbfl_compile.errors import BadInput
from gbfl_compile.files.atomic import refuse_bomb, whole_file
from gbfl_compile.ir.batch import recode_rows
from gbfl_compile.ir.kinds import Codebook, codebook
from gbfl_compile.ir.nodes import Kind, Program

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
    kinds: tuple[Kind, ...] = ()
    """Of the features, where some are words or dates or values are missing (NaN)."""
    texts: tuple[tuple[str, ...], ...] = ()
    """Which texts the codes of each category mean, from 1 on."""

    def in_book(self, book: Codebook) -> Triplets:
        """The same with the codes of a book that lists all of their texts."""
        x, pp, pn = (recode_rows(self.kinds, points, self.texts, book) for points in (self.x, self.pp, self.pn))
        return replace(self, x=x, pp=pp, pn=pn, texts=book.texts)


def save_triplets(path: Path, triplets: Triplets) -> None:
    """Write triplets as NPZ, whole or not at all, readable without pickle."""
    label = np.asarray(triplets.label)
    if label.dtype.kind == "O":
        kinds = {type(value) for value in label.tolist()}
        if len(kinds) == 1 and kinds <= {int, bool, str, float}:
            label = np.array(label.tolist())
    if label.dtype.kind not in "iubUf":
        raise BadInput(f"labels of type {label.dtype} cannot be stored: use numbers or text")
    columns: dict[str, Any] = (
        {"columns": np.array(json.dumps([triplets.kinds, triplets.texts]))} if triplets.kinds else {}
    )
    with whole_file(path) as partial, partial.open("wb") as file:
        np.savez_compressed(
            file,
            **columns,
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
    arrays = read_arrays(path, ARRAYS, "triplets", ("columns",))
    _check_arrays(path, arrays)
    x, pp, pn = (arrays[name].astype(np.float64) for name in ("x", "pp", "pn"))
    features = tuple(str(name) for name in arrays["features"])
    loaded = Triplets(x, pp, pn, arrays["has_pp"], arrays["has_pn"], arrays["label"], features)
    if "columns" not in arrays:
        _check_values(path, loaded)
        return loaded
    try:
        kinds, texts = json.loads(str(arrays["columns"]))
        loaded = replace(loaded, kinds=tuple(kinds), texts=tuple(map(tuple, texts)))
        listed = [text for own in loaded.texts for text in own]
        fits = len(loaded.kinds) == len(loaded.texts) == len(features) and set(kinds) <= set(get_args(Kind))
    except (ValueError, TypeError, RecursionError):
        raise BadInput(f"{path}: what it says of its columns cannot be read") from None
    if not fits or not all(isinstance(text, str) for text in listed):
        raise BadInput(f"{path}: what it says of its columns does not fit {len(features)} features")
    _check_values(path, loaded)
    return loaded


def triplets_for(program: Program, source: Triplets | str | os.PathLike[str]) -> Triplets:
    """Triplets of a program, as they are or from a file; the codes of texts begin with the program's own."""
    triplets = source if isinstance(source, Triplets) else load_triplets(Path(source))
    number: Kind = "number"
    kinds = triplets.kinds or (number,) * len(triplets.features)
    if triplets.features != program.features or kinds != (program.kinds or (number,) * len(program.features)):
        where = "the triplets" if isinstance(source, Triplets) else source
        raise BadInput(f"{where}: its features are not the program's, make triplets for this program")
    return triplets.in_book(codebook(program).with_texts(triplets.texts)) if program.kinds else triplets


def _check_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    if arrays["x"].ndim != 2:
        raise BadInput(f"{path}: x has shape {arrays['x'].shape}, not [rows, features]")
    rows, width = arrays["x"].shape
    shapes = {"pp": (rows, width), "pn": (rows, width), "features": (width,)}
    for name in ARRAYS[1:]:
        shape = shapes.get(name, (rows,))
        if arrays[name].shape != shape:
            raise BadInput(f"{path}: {name} has shape {arrays[name].shape} where x needs {shape}")
    kinds = {"x": "fiu", "pp": "fiu", "pn": "fiu", "has_pp": "b", "has_pn": "b", "label": "iubUf", "features": "U"}
    for name, allowed in kinds.items():
        if arrays[name].dtype.kind not in allowed:
            raise BadInput(f"{path}: {name} is of type {arrays[name].dtype}, which triplets cannot have")
    if "columns" in arrays and (arrays["columns"].shape != () or arrays["columns"].dtype.kind != "U"):
        raise BadInput(f"{path}: what it says of its columns is not a text")


def _check_values(path: Path, triplets: Triplets) -> None:
    for name, points in (("x", triplets.x), ("pp", triplets.pp), ("pn", triplets.pn)):
        if not (np.isfinite(points) | (np.isnan(points) if triplets.kinds else False)).all():
            raise BadInput(f"{path}: {name} holds a value that is not a finite number")
        for feature, kind in enumerate(triplets.kinds):
            values = points[~np.isnan(points[:, feature]), feature]
            most = {"category": len(triplets.texts[feature]), "boolean": 1}.get(kind, math.inf)
            least = -math.inf if most == math.inf else 0
            if kind != "number" and not ((values == np.rint(values)) & (values >= least) & (values <= most)).all():
                raise BadInput(f"{path}: {name} holds a value that is no {kind}: {triplets.features[feature]!r}")


@dataclass(frozen=True, slots=True)
class Consistency:
    """How often a model agrees with the black box at x, at the PP and (by differing) at the PN.

    Each `.._right` has one of the row counts as denominator; a percentage of nothing is None.
    """

    rows: int
    with_pp: int
    with_pn: int
    fidelity_right: int
    """T(x) = B(x)."""
    c_pp_right: int
    """T(PP) = B(x), over rows with a PP."""
    c_pn_right: int
    """T(PN) != B(x), over rows with a PN."""
    c_tb_right: int
    """All three, over rows with a PN."""
    c_tb_all_right: int
    """All three, over all rows; without a PN its condition is left out."""

    @property
    def fidelity(self) -> float | None:
        """Per cent of rows with the black box's class."""
        return _percent(self.fidelity_right, self.rows)

    @property
    def c_pp(self) -> float | None:
        """Per cent of PPs that get the class of their row."""
        return _percent(self.c_pp_right, self.with_pp)

    @property
    def c_pn(self) -> float | None:
        """Per cent of PNs that get another class than their row."""
        return _percent(self.c_pn_right, self.with_pn)

    @property
    def c_tb(self) -> float | None:
        """Per cent of rows with a PN that are consistent at x, PP and PN."""
        return _percent(self.c_tb_right, self.with_pn)

    @property
    def c_tb_all(self) -> float | None:
        """Per cent of all rows that are consistent wherever there is a point."""
        return _percent(self.c_tb_all_right, self.rows)

    def as_dict(self) -> dict[str, int | float | None]:
        """Percentages and counts, ready for JSON."""
        return {
            "c_tb": self.c_tb,
            "c_tb_right": self.c_tb_right,
            "c_tb_of": self.with_pn,
            "c_tb_all": self.c_tb_all,
            "c_tb_all_right": self.c_tb_all_right,
            "c_tb_all_of": self.rows,
            "c_pp": self.c_pp,
            "c_pp_right": self.c_pp_right,
            "c_pp_of": self.with_pp,
            "c_pn": self.c_pn,
            "c_pn_right": self.c_pn_right,
            "c_pn_of": self.with_pn,
            "fidelity": self.fidelity,
            "fidelity_right": self.fidelity_right,
            "fidelity_of": self.rows,
        }


def _percent(right: int, of: int) -> float | None:
    return 100.0 * right / of if of else None


def consistency(
    label: ArrayLike, on_x: ArrayLike, on_pp: ArrayLike, on_pn: ArrayLike, has_pp: ArrayLike, has_pn: ArrayLike
) -> Consistency:
    """Count agreement with `label`, the black box's class of x. Any labels do, as long as all five use the same."""
    expected = np.asarray(label)
    columns = {"on_x": on_x, "on_pp": on_pp, "on_pn": on_pn, "has_pp": has_pp, "has_pn": has_pn}
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    for name, array in arrays.items():
        if array.shape != expected.shape or expected.ndim != 1:
            raise BadInput(f"{name} has shape {array.shape} where label has {expected.shape}: one value per row")
    pp, pn = arrays["has_pp"].astype(bool), arrays["has_pn"].astype(bool)
    right_x = _same(arrays["on_x"], expected)
    right_pp = _same(arrays["on_pp"], expected)
    right_pn = ~_same(arrays["on_pn"], expected)
    whole = right_x & (right_pp | ~pp) & (right_pn | ~pn)
    return Consistency(
        rows=len(expected),
        with_pp=int(pp.sum()),
        with_pn=int(pn.sum()),
        fidelity_right=int(right_x.sum()),
        c_pp_right=int((right_pp & pp).sum()),
        c_pn_right=int((right_pn & pn).sum()),
        c_tb_right=int((whole & pn).sum()),
        c_tb_all_right=int(whole.sum()),
    )


def consistency_on(triplets: Triplets, predict: Callable[[NDArray[np.float64]], ArrayLike]) -> Consistency:
    """The consistency of `predict` on x, PP and PN."""
    on_x, on_pp, on_pn = (predict(points) for points in (triplets.x, triplets.pp, triplets.pn))
    return consistency(triplets.label, on_x, on_pp, on_pn, triplets.has_pp, triplets.has_pn)


def _same(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(left == right, dtype=bool)


LONGEST_HEADER = 10_000
"""Characters in which an array says its type and shape."""


def read_arrays(
    path: Path, names: Collection[str], what: str, optional: Collection[str] = ()
) -> dict[str, NDArray[Any]]:
    """The arrays of these names in a file of `what`; one that is absent, or there besides, is an error."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            return _arrays(path, archive, names, what, optional)
    except BadInput:
        raise
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from None
    except Exception as error:  # a broken archive fails in as many ways as there are bytes in it
        raise BadInput(f"{path}: not an NPZ file of {what}: {error or type(error).__name__}") from None


def _arrays(
    path: Path, archive: zipfile.ZipFile, names: Collection[str], what: str, optional: Collection[str]
) -> dict[str, NDArray[Any]]:
    members = archive.infolist()
    stored = [member.filename.removesuffix(".npy") for member in members]
    for name in stored:
        if name not in names and (name not in optional or stored.count(name) > 1):
            raise BadInput(f"{path}: holds an array {name!r} that {what} do not have")
    for name in names:
        if stored.count(name) != 1:
            lacks = "lacks the array" if name not in stored else "holds more than one array"
            raise BadInput(f"{path}: {lacks} {name!r}, it needs {', '.join(names)}")
    refuse_bomb(path, sum(member.file_size for member in members))
    return {name: _array(archive, member) for name, member in zip(stored, members, strict=True)}


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """One array. Its shape is believed once the bytes for it are there: room is made for a shape before it is read."""
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"{member.filename}: of format {version}")
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file, max_header_size=LONGEST_HEADER)
        size = member.file_size - file.tell()
    if any(type(length) is not int or length < 0 for length in shape) or math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"{member.filename}: says it has the shape {shape} of {dtype}, in {size} bytes")
    with archive.open(member) as file:
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    return array
