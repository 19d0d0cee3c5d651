"""A matrix as an Arrow table: how DataFusion, ClickHouse and Spark like their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gbfl_compile.databases.base import ROW, Missing, library

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Matrix


def arrow_table(columns: Sequence[str], rows: Matrix, missing: Missing) -> Any:
    """ROW and one double column a name. Doubles are handed over as they lie in memory."""
    import numpy as np

    pa = library("pyarrow", "engines")
    arrays = [pa.array(np.arange(len(rows), dtype=np.int64))]
    for index in range(rows.shape[1]):
        values = np.ascontiguousarray(rows[:, index])
        arrays.append(pa.array(values, mask=np.isnan(values) if missing == "null" else None, type=pa.float64()))
    return pa.Table.from_arrays(arrays, names=[ROW, *columns])


def row_tuples(table: Any) -> list[tuple[Any, ...]]:
    """The rows of an Arrow table as Python values."""
    if table.num_columns == 0:
        return []
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
