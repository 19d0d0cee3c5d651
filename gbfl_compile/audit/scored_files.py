"""Scored CSV and Parquet files in batches, doubles as they are written, memory bounded whatever the file's size."""

from __future__ import annotations

import csv
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gbfl_compile.audit.labels import Found
from gbfl_compile.audit.scored_batches import Batch, Wanted, refuse_absent, rows_at_once
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.tables import MISSING, csv_header, exact_reading, file_ending

CSV_ROWS = 50_000
PARQUET_ROWS = 65_536
READ_AHEAD = 1 << 20
"""Bytes read of a column at a time: a row group of any size passes through so much."""


def columns_of(path: Path) -> list[str]:
    """The names of a file's columns."""
    with _named(path):
        if file_ending(path) == ".parquet":
            with _parquet(path) as file:
                return list(file.schema_arrow.names)
        return csv_header(path, file_ending(path))


def file_batches(path: Path, wanted: Wanted) -> Iterator[Batch]:
    """The rows of a file, by its ending."""
    refuse_absent(columns_of(path), wanted, str(path))
    batches = _parquet_batches(path, wanted) if file_ending(path) == ".parquet" else _csv_batches(path, wanted)
    with _named(path):
        yield from batches


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Whatever reading raises becomes one line that names the file."""
    try:
        yield
    except (BadInput, CannotRun):
        raise
    except (OSError, ValueError, csv.Error, EOFError, zlib.error) as error:
        said = getattr(error, "strerror", None) or (str(error).strip() or type(error).__name__).splitlines()[0]
        raise BadInput(f"{path}: cannot be read: {said}") from None


def _parquet(path: Path, text: str | None = None) -> Any:
    try:
        from pyarrow import parquet
    except ImportError:
        raise CannotRun("Parquet needs pyarrow: pip install 'gbfl-compile[parquet]'") from None
    kept = None if text is None else [text]
    return parquet.ParquetFile(path, buffer_size=READ_AHEAD, pre_buffer=False, read_dictionary=kept)


def _parquet_batches(path: Path, wanted: Wanted) -> Iterator[Batch]:
    import pyarrow as pa

    first = 0
    with _parquet(path, wanted.label) as file:
        rows = rows_at_once(PARQUET_ROWS, len(wanted.distinct))
        for batch in file.iter_batches(rows, columns=wanted.distinct):
            arrays = [_decoded(batch.column(column)) for column in wanted.columns]
            table = pa.RecordBatch.from_arrays(arrays, names=list(wanted.features))
            yield Batch(first, batch.num_rows, table, _arrow_labels(batch.column(wanted.label)))
            first += batch.num_rows


def _decoded(column: Any) -> Any:
    return column.dictionary_decode() if hasattr(column, "dictionary_decode") else column


def _arrow_labels(column: Any) -> Found:
    """Codes of a column: missing ones are the last."""
    coded = column if hasattr(column, "dictionary") else column.dictionary_encode()
    distinct = (*coded.dictionary.to_pylist(), None)
    codes = coded.indices.fill_null(len(distinct) - 1) if coded.indices.null_count else coded.indices
    return Found(codes.to_numpy(zero_copy_only=False), distinct)


def _csv_batches(path: Path, wanted: Wanted) -> Iterator[Batch]:
    import pandas as pd

    header = csv_header(path, file_ending(path))
    numbers = [name for name in header if name != wanted.label or name in wanted.columns]
    reader = pd.read_csv(
        path,
        chunksize=rows_at_once(CSV_ROWS, len(header)),
        low_memory=False,
        index_col=False,
        keep_default_na=False,
        na_values=dict.fromkeys(numbers, MISSING),
        dtype={} if wanted.label in wanted.columns else {wanted.label: object},
        **exact_reading(pd.__version__),
    )
    first = 0
    with reader:
        while (chunk := _next_chunk(reader, path)) is not None:
            columns = {
                feature: _numbers(chunk[column], f"{path}: column {column!r}", first)
                for feature, column in zip(wanted.features, wanted.columns, strict=True)
            }
            codes, distinct = pd.factorize(chunk[wanted.label].astype(object), use_na_sentinel=False)
            found = Found(codes, tuple(None if value != value or value == "" else value for value in distinct))
            yield Batch(first, len(chunk), pd.DataFrame(columns, index=range(len(chunk)), copy=False), found)
            first += len(chunk)


def _next_chunk(reader: Any, path: Path) -> Any:
    """The next rows. With a field more than the header pandas drops it and only warns: that is refused."""
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return next(reader, None)
        except pd.errors.ParserWarning:
            raise BadInput(f"{path}: rows have more fields than the header has names") from None


def _numbers(column: Any, where: str, first: int) -> Any:
    """The column as numpy numbers; one stray word makes text of all of it, and is named with its row."""
    import numpy as np
    import pandas as pd

    if getattr(column.dtype, "kind", "O") in "fiub":
        return column.to_numpy(dtype=np.float64)
    wrong = (pd.to_numeric(column, errors="coerce").isna() & column.notna()).to_numpy()
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise BadInput(f"{where}, row {first + row + 1}: {column.iloc[row]!r} is not a number")
    return np.array([float("nan") if value != value else float(value) for value in column], dtype=np.float64)
