"""Explanations on disk, Parquet or NPZ by the ending: whole or not at all, and back to the bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.archives import read_arrays
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.files import whole_file
from gbfl_compile.learn.explanations import Explanations

FORMAT = "gbfl explanations 1"

POINTS = ("x", "pp", "pn")
COLUMNS = {
    "has_pp": "b",
    "has_pn": "b",
    "label": "i",
    "pn_label": "i",
    "pp_margin": "f",
    "pn_margin": "f",
    "pp_is_base": "b",
}
"""What there is one of a row, with the kind of its numbers."""


def save_explanations(path: Path, explanations: Explanations, *, compressed: bool = True) -> None:
    """Write every row, PP, PN, flag, class and margin, the feature names and what it cost."""
    e = explanations
    about = {"format": FORMAT, "features": list(e.features), "queries": e.queries, "not_reached": e.not_reached}
    columns = {name: getattr(e, name) for name in (*POINTS, *COLUMNS)}
    if _is_parquet(path):
        _write_parquet(path, about, columns)
        return
    with whole_file(path) as partial, partial.open("wb") as file:
        write = np.savez_compressed if compressed else np.savez
        write(file, about=np.array(json.dumps(about)), **columns)


def load_explanations(path: Path) -> Explanations:
    """Read what `save_explanations` wrote, strictly: everything there, of its kind and shape, and nothing else."""
    about, columns = _read_parquet(path) if _is_parquet(path) else _read_npz(path)
    features, queries, not_reached = _checked_about(path, about)
    _check_columns(path, columns, len(features))
    return Explanations(**columns, queries=queries, features=features, not_reached=not_reached)


def _is_parquet(path: Path) -> bool:
    if path.suffix not in (".parquet", ".npz"):
        raise BadInput(f"{path}: the ending says nothing about the format, use .parquet or .npz")
    return path.suffix == ".parquet"


def _checked_about(path: Path, text: str) -> tuple[tuple[str, ...], int, int]:
    try:
        about = json.loads(text)
    except (ValueError, RecursionError):
        about = None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise BadInput(f"{path}: does not say it holds {FORMAT!r}")
    features, counts = about.get("features"), (about.get("queries"), about.get("not_reached"))
    if not isinstance(features, list) or not all(isinstance(name, str) for name in features):
        raise BadInput(f"{path}: its features are not a list of names")
    for count in counts:
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise BadInput(f"{path}: {count!r} is not a number of queries or rows")
    return tuple(features), int(about["queries"]), int(about["not_reached"])


def _check_columns(path: Path, columns: dict[str, NDArray[Any]], width: int) -> None:
    names = {*POINTS, *COLUMNS}
    for name in sorted(names ^ columns.keys()):
        what = "lacks the array" if name in names else "holds what explanations do not have,"
        raise BadInput(f"{path}: {what} {name!r}")
    rows = len(columns["x"]) if columns["x"].ndim else 0
    for name, column in columns.items():
        kind, shape = COLUMNS.get(name, "f"), (rows, width) if name in POINTS else (rows,)
        if column.dtype.kind != kind or column.dtype.itemsize not in (1, 8):
            raise BadInput(f"{path}: {name} is of type {column.dtype}, which explanations cannot have")
        if column.shape != shape:
            raise BadInput(f"{path}: {name} has shape {column.shape} where {shape} is needed")
        if kind == "f" and not np.isfinite(column).all():
            raise BadInput(f"{path}: {name} holds a value that is not a finite number")


def _read_npz(path: Path) -> tuple[str, dict[str, NDArray[Any]]]:
    columns = read_arrays(path, ("about", *POINTS, *COLUMNS), "explanations")
    return str(columns.pop("about")), columns


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise CannotRun("Parquet needs pyarrow: pip install 'gbfl-compile[parquet]', or save as .npz") from None
    return pyarrow, pyarrow.parquet


def _write_parquet(path: Path, about: dict[str, Any], columns: dict[str, NDArray[Any]]) -> None:
    """One column a feature of x, PP and PN, `pp petal width`, then one each of the rest."""
    pyarrow, parquet = _pyarrow()
    if repeated := sorted({name for name in about["features"] if about["features"].count(name) > 1}):
        raise BadInput(f"{path}: two features are named {repeated[0]!r}: rename one, or save as .npz")
    flat = {f"{name} {f}": columns[name][:, j] for name in POINTS for j, f in enumerate(about["features"])}
    flat |= {name: columns[name] for name in COLUMNS}
    schema_note = {"gbfl": json.dumps(about)}
    table = pyarrow.table({name: pyarrow.array(column) for name, column in flat.items()})
    with whole_file(path) as partial:
        parquet.write_table(table.replace_schema_metadata(schema_note), partial)


def _read_parquet(path: Path) -> tuple[str, dict[str, NDArray[Any]]]:
    _, parquet = _pyarrow()
    try:
        with path.open("rb") as file:
            table = parquet.read_table(file)
    except OSError as error:  # pyarrow raises it for a broken file too, without strerror
        raise BadInput(f"{path}: {error.strerror or error}") from None
    except Exception as error:  # pyarrow's own, and whatever else a broken file leads to
        raise BadInput(f"{path}: not a Parquet file of explanations: {error}") from None
    about = (table.schema.metadata or {}).get(b"gbfl", b"").decode("utf-8", "replace")
    features, _, _ = _checked_about(path, about)
    if len(set(table.column_names)) < table.num_columns:
        raise BadInput(f"{path}: two columns have the same name")
    flat = {name: _column(path, table, name) for name in table.column_names}
    columns: dict[str, NDArray[Any]] = {}
    for name in POINTS:
        wanted = [f"{name} {feature}" for feature in features]
        if absent := [column for column in wanted if column not in flat]:
            raise BadInput(f"{path}: lacks the column {absent[0]!r}")
        columns[name] = np.column_stack([flat.pop(column) for column in wanted])
    return about, columns | flat


def _column(path: Path, table: Any, name: str) -> NDArray[Any]:
    column = table.column(name)
    if column.null_count:
        raise BadInput(f"{path}: the column {name!r} has missing values")
    return np.asarray(column.to_numpy())
