"""What an explainer takes and returns: rows and a domain in; each row with its PP and its PN out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.files.atomic import whole_file
from gbfl_compile.learning.black_box import BlackBox, Bools, Ints, Matrix
from gbfl_compile.learning.consistency import Triplets, read_arrays
from gbfl_compile.learning.explain.domain import Domain as Domain
from gbfl_compile.learning.explain.domain import domain_of as domain_of
from gbfl_compile.learning.explain.domain import infer_kinds as infer_kinds
from gbfl_compile.learning.explain.domain import table_domain as table_domain
from gbfl_compile.version import install_command

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
"""The columns with one value per row, and the kind of each."""


def save_explanations(path: Path, explanations: Explanations, *, compressed: bool = True) -> None:
    """Write every row, PP, PN, flag, class and margin, the feature names and the counts."""
    e = explanations
    about: dict[str, Any] = {
        "format": FORMAT,
        "features": list(e.features),
        "queries": e.queries,
        "not_reached": e.not_reached,
    }
    columns = {name: getattr(e, name) for name in (*POINTS, *COLUMNS)}
    if any(np.isnan(columns[name]).any() for name in POINTS):
        about["missing_values"] = True
    if _is_parquet(path):
        _write_parquet(path, about, columns)
        return
    with whole_file(path) as partial, partial.open("wb") as file:
        write = np.savez_compressed if compressed else np.savez
        write(file, about=np.array(json.dumps(about)), **columns)


def load_explanations(path: Path) -> Explanations:
    """Read what `save_explanations` wrote, strictly: every array, of its kind and shape, and nothing else."""
    about, columns = _read_parquet(path) if _is_parquet(path) else _read_npz(path)
    features, queries, not_reached, has_gaps = _parse_about(path, about)
    _check_columns(path, columns, len(features), has_gaps=has_gaps)
    return Explanations(**columns, queries=queries, features=features, not_reached=not_reached)


def _is_parquet(path: Path) -> bool:
    if path.suffix not in (".parquet", ".npz"):
        raise BadInput(f"{path}: the suffix names no format, use .parquet or .npz")
    return path.suffix == ".parquet"


def _parse_about(path: Path, text: str) -> tuple[tuple[str, ...], int, int, bool]:
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
    has_gaps = about.get("missing_values") is True
    return tuple(features), int(about["queries"]), int(about["not_reached"]), has_gaps


def _check_columns(path: Path, columns: dict[str, NDArray[Any]], width: int, *, has_gaps: bool) -> None:
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
        if kind == "f" and not (~np.isinf(column) if has_gaps and name in POINTS else np.isfinite(column)).all():
            raise BadInput(f"{path}: {name} holds a value that is not a finite number")


def _read_npz(path: Path) -> tuple[str, dict[str, NDArray[Any]]]:
    columns = read_arrays(path, ("about", *POINTS, *COLUMNS), "explanations")
    return str(columns.pop("about")), columns


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise CannotRun(f"Parquet needs pyarrow: {install_command('parquet')}; or save as .npz") from None
    return pyarrow, pyarrow.parquet


def _write_parquet(path: Path, about: dict[str, Any], columns: dict[str, NDArray[Any]]) -> None:
    """One column per feature for each of x, PP and PN, `pp petal width`, then one for each of the rest."""
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
    except Exception as error:  # pyarrow's own, and any other that a broken file leads to
        raise BadInput(f"{path}: not a Parquet file of explanations: {error}") from None
    about = (table.schema.metadata or {}).get(b"gbfl", b"").decode("utf-8", "replace")
    features, _, _, _ = _parse_about(path, about)
    if len(set(table.column_names)) < table.num_columns:
        raise BadInput(f"{path}: two columns have the same name")
    flat = {name: _column(path, table, name) for name in table.column_names}
    columns: dict[str, NDArray[Any]] = {}
    for name in POINTS:
        names = [f"{name} {feature}" for feature in features]
        if absent := [column for column in names if column not in flat]:
            raise BadInput(f"{path}: lacks the column {absent[0]!r}")
        columns[name] = np.column_stack([flat.pop(column) for column in names])
    return about, columns | flat


def _column(path: Path, table: Any, name: str) -> NDArray[Any]:
    column = table.column(name)
    if column.null_count:
        raise BadInput(f"{path}: the column {name!r} has missing values")
    return np.asarray(column.to_numpy())


@dataclass(frozen=True, slots=True)
class Explanations:
    """Each row's pertinent positive and pertinent negative. Where there is none, x is repeated."""

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
    """The base point already has the class with its margin: an empty PP."""
    queries: int
    features: tuple[str, ...]
    not_reached: int = 0
    """How many rows at the end the query budget did not reach: they have neither PP nor PN."""

    def counts(self) -> dict[str, int]:
        """How many PPs and PNs were found, how many were not, and how many queries it took."""
        rows = len(self.x)
        pp, pn = int(self.has_pp.sum()), int(self.has_pn.sum())
        return {
            "rows": rows,
            "pp_found": pp,
            "pp_not_found": rows - pp,
            "pp_is_base": int(self.pp_is_base.sum()),
            "pn_found": pn,
            "pn_not_found": rows - pn,
            "not_reached": self.not_reached,
            "queries": self.queries,
        }

    def save(self, path: str | Path) -> None:
        """Write to `path`, Parquet or NPZ by its suffix, whole or not at all."""
        save_explanations(Path(path), self)

    @staticmethod
    def load(path: str | Path) -> Explanations:
        """What `save` wrote, to the bit."""
        return load_explanations(Path(path))


BY_ROW = ("pp", "pn", "has_pp", "has_pn", "label", "pn_label", "pp_margin", "pn_margin", "pp_is_base")
"""The fields an explainer fills in for each row."""


class Explainer(Protocol):
    """Anything that explains rows: all in one call, within the domain, by the direction rules of equations 1-2."""

    def __call__(self, black_box: BlackBox, x: Matrix, domain: Domain) -> Explanations: ...


def concatenate(several: Sequence[Explanations]) -> Explanations:
    """The rows of all, in order, as if explained together."""
    if not several:
        raise BadInput("no explanations to put together")
    if len(several) == 1:
        return several[0]
    features = several[0].features
    for place, e in enumerate(several):
        if e.features != features:
            raise BadInput(f"explanations {place} have features {e.features}, the first have {features}")
    return Explanations(
        **{name: np.concatenate([getattr(e, name) for e in several]) for name in ("x", *BY_ROW)},
        queries=sum(e.queries for e in several),
        features=features,
        not_reached=sum(e.not_reached for e in several),
    )


def some_rows(e: Explanations, rows: Ints) -> Explanations:
    """The explanations of some of the rows."""
    return replace(e, **{name: getattr(e, name)[rows] for name in ("x", *BY_ROW)})


def triplets_of(explanations: Explanations, classes: NDArray[Any]) -> Triplets:
    """The triplets of some explanations, their labels as the user has them."""
    e = explanations
    return Triplets(e.x, e.pp, e.pn, e.has_pp, e.has_pn, np.asarray(classes)[e.label], e.features)
