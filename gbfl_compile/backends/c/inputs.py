"""Tables and values of any kind as memory a scorer reads: rows or one pointer per column, copied only if necessary."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.kinds import plain_value
from gbfl_compile.ir.nodes import TRUE, Kind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gbfl_compile.backends.base import Predictor
    from gbfl_compile.ir.batch import Answers, Matrix

LETTERS: dict[str, Kind] = {"n": "number", "c": "category", "b": "boolean", "d": "date", "t": "timestamp"}
"""What `NAME_kind` answers, and the kind it means."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """The kinds of a scorer's features and the function that knows the codes of its texts."""

    features: tuple[str, ...]
    kinds: tuple[Kind, ...]
    code: Callable[[int, bytes], float]

    def rows(self, rows: Sequence[Sequence[Any]]) -> Matrix:
        """Rows of Python values as a matrix; NaN is missing."""
        import numpy as np

        width = len(self.features)
        for row in rows:
            if len(row) != width:
                raise BadInput(f"the rows have {len(row)} values, the model has {width} features")
        columns = [self.column(feature, (row[feature] for row in rows)) for feature in range(width)]
        return np.array(columns, dtype=np.float64).reshape(width, len(rows)).T

    def column(self, feature: int, values: Iterable[Any]) -> list[float]:
        """The values of one feature as numbers; NaN is missing."""
        kind, name = self.kinds[feature], self.features[feature]
        codes: dict[str, float] = {}

        def number(value: Any) -> float:
            if kind == "category" and isinstance(value, str) and value in codes:
                return codes[value]
            plain = plain_value(kind, value, name)
            if plain is None or isinstance(plain, float):
                return math.nan if plain is None else plain
            if kind == "boolean":
                return float(plain == TRUE)
            return codes.setdefault(plain, self.code(feature, plain.encode("utf-8", "surrogatepass")))

        return [number(value) for value in values]


def encoding_of(name: str, features: tuple[str, ...], library: Any) -> Encoding | None:
    """How a loaded scorer encodes values; None where all features are numbers."""
    if not hasattr(library, f"{name}_kind"):
        return None
    letters = [getattr(library, f"{name}_kind")(feature).decode("ascii") for feature in range(len(features))]
    if unknown := sorted(set(letters) - LETTERS.keys()):
        raise BadInput(f"{name}_kind answers {unknown[0]!r}, which is not a kind: emit it again")

    def code(feature: int, text: bytes) -> float:
        return float(getattr(library, f"{name}_code")(feature, text, len(text)))

    return Encoding(features, tuple(LETTERS[letter] for letter in letters), code)


CLOSE = 1e-12
"""How far apart two of a rule set's probabilities may be: they go through exp."""


def takes_values(predictor: Predictor, encoding: Encoding) -> Predictor:
    """The predictor for rows of Python values: encoded once, and answered in all of its ways."""

    def answer_rows(rows: Sequence[Sequence[Any]]) -> Answers:
        matrix = encoding.rows(rows)
        answers = predictor.answer(matrix)
        for name, way in predictor.other_ways.items():
            _require_same(answers, way(matrix), name)
        return answers

    return replace(predictor, other_ways={}, columns=None, kinds=encoding.kinds, answer_rows=answer_rows)


def _require_same(answers: Answers, others: Answers, way: str) -> None:
    import numpy as np

    same = np.array_equal(answers.labels, others.labels)
    for one, other in ((answers.leaves, others.leaves), (answers.scores, others.scores)):
        same = same and (one is None or other is None or np.array_equal(one, other))
    apart = 0.0 if answers.scores is None else CLOSE
    if not same or not (np.abs(answers.probabilities - others.probabilities) <= apart).all():
        raise BadInput(f"{way}: other answers than in a batch of rows")


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows in memory, each contiguous; `stride` values from one row to the next."""

    values: NDArray[Any]
    stride: int
    count: int


@dataclass(frozen=True, slots=True)
class Columns:
    """A contiguous array for each feature the scorer reads, None for the others."""

    values: tuple[NDArray[Any] | None, ...]
    count: int


def as_input(
    table: Any,
    features: tuple[str, ...],
    used: Sequence[bool],
    real: np.dtype[Any],
    encoding: Encoding | None = None,
) -> Rows | Columns:
    """A matrix in the order of the features, or a table (pandas, Arrow, Polars) that has them by name.

    With words or dates (`encoding`) a table and a list have Python's values; a matrix of numbers is encoded already.
    """
    import numpy as np

    if isinstance(table, Columns):
        return table
    if hasattr(table, "columns") or hasattr(table, "column_names"):
        return _named_columns(table, features, used, real, encoding)
    if encoding is not None and (isinstance(table, list | tuple) or str(getattr(table, "dtype", "")) == "object"):
        table = encoding.rows(list(table))
    try:
        array = np.ma.filled(table.astype(real), np.nan) if isinstance(table, np.ma.MaskedArray) else np.asarray(table)
    except ValueError as error:
        raise BadInput(f"the rows are not a table: {error}") from None
    if array.ndim != 2:
        raise BadInput(f"the rows have {array.ndim} dimensions, give 2: rows and {len(features)} features")
    if array.shape[1] != len(features):
        raise BadInput(f"the rows have {array.shape[1]} values, the model has {len(features)} features")
    array = as_real(array, real, "the rows")
    size = array.dtype.itemsize
    if array.shape[0] > 1 and array.strides[0] == size and array.flags.aligned:
        columns = tuple(array[:, f] if used[f] else None for f in range(len(features)))
        return Columns(columns, array.shape[0])
    if not array.flags.aligned or (array.shape[1] > 1 and array.strides[1] != size) or array.strides[0] % size:
        array = np.ascontiguousarray(array) if array.flags.aligned else np.array(array, order="C")
    stride = array.strides[0] // size if array.shape[0] > 1 else len(features)
    return Rows(array, stride, array.shape[0])


def as_real(array: NDArray[Any], real: np.dtype[Any], where: str) -> NDArray[Any]:
    """The array as the scorer's own type. A conversion that would change a number is refused."""
    import numpy as np

    if array.dtype == real and array.dtype.isnative:
        return array
    if array.dtype.kind == "O":
        array = _from_objects(array, where)
    if array.dtype.kind not in "fiub":
        raise BadInput(f"{where}: {array.dtype} values are not numbers")
    with np.errstate(all="ignore"):
        converted = array.astype(real)
    if array.dtype.kind == "f" and array.dtype.itemsize > real.itemsize:
        changed = (converted != array) & (array == array)
        if changed.any():
            first = array[changed][0]
            raise BadInput(f"{where}: {first!r} is not a {real} number, convert or emit with --set c.dtype=float64")
    if real.itemsize == 4 and array.dtype.kind in "iu" and array.dtype.itemsize > 2:
        changed = converted.astype(np.float64) != array.astype(np.float64)
        if changed.any():
            raise BadInput(f"{where}: {array[changed][0]!r} is not a {real} number, emit with --set c.dtype=float64")
    return converted


def _from_objects(array: NDArray[Any], where: str) -> NDArray[np.float64]:
    import numpy as np

    def number(value: Any) -> float:
        if value is None or type(value).__name__ == "NAType":
            return float("nan")
        if isinstance(value, str | bytes):
            raise BadInput(f"{where}: {value!r} is not a number")
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            raise BadInput(f"{where}: {value!r} is not a number") from None

    flat = np.array([number(value) for value in array.ravel()], dtype=np.float64)
    return flat.reshape(array.shape)


def _named_columns(
    table: Any, features: tuple[str, ...], used: Sequence[bool], real: np.dtype[Any], encoding: Encoding | None
) -> Columns:
    listed = getattr(table, "column_names", None)  # Arrow: `columns` there are the columns themselves
    names = list(table.columns if listed is None else listed)
    for feature in features:
        if names.count(feature) != 1:
            columns = "no column" if feature not in names else f"{names.count(feature)} columns"
            raise BadInput(f"the table has {columns} {feature!r}")
    count = int(table.num_rows) if hasattr(table, "num_rows") else len(table)
    values = tuple(_column_of_kind(table, i, f, real, encoding) if used[i] else None for i, f in enumerate(features))
    return Columns(values, count)


def _column_of_kind(
    table: Any, place: int, feature: str, real: np.dtype[Any], encoding: Encoding | None
) -> NDArray[Any]:
    """The column of a feature: numbers in place, other kinds encoded value by value."""
    import numpy as np

    if encoding is None or encoding.kinds[place] == "number":
        return _column(table, feature, real)
    column = table.column(feature) if hasattr(table, "num_rows") else table[feature]
    listed = next(getattr(column, way) for way in ("to_pylist", "to_list", "tolist") if hasattr(column, way))
    return np.array(encoding.column(place, listed()), dtype=real)


def _column(table: Any, feature: str, real: np.dtype[Any]) -> NDArray[Any]:
    import numpy as np

    column = table.column(feature) if hasattr(table, "num_rows") else table[feature]
    where = f"column {feature!r}"
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    if hasattr(column, "null_count") and hasattr(column, "to_numpy"):  # Arrow and Polars: nulls become NaN
        array = column.to_numpy(zero_copy_only=False) if hasattr(column, "type") else column.to_numpy()
    elif getattr(column.dtype, "kind", "O") in "fiub" and not isinstance(column.dtype, np.dtype):
        array = column.to_numpy(dtype=np.float64, na_value=np.nan)  # pandas' nullable numbers
    else:
        array = column.to_numpy()
    array = as_real(np.asarray(array), real, where)
    if array.ndim != 1:
        raise BadInput(f"{where}: is not one column")
    contiguous = array.flags.aligned and array.flags.c_contiguous
    return array if contiguous else np.array(array, order="C")
