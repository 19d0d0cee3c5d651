"""Scored CSV, Parquet and Arrow files in batches: memory stays bounded whatever the file's size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gbfl_compile.audit.labels import Found
from gbfl_compile.audit.scored_batches import Batch, Wanted, refuse_absent
from gbfl_compile.table_batches import CsvKinds, column_names, decoded, table_batches


def file_batches(path: Path, wanted: Wanted) -> Iterator[Batch]:
    """The rows of a file, by its ending."""
    refuse_absent(column_names(path), wanted, str(path))
    text = () if wanted.label in wanted.columns else (wanted.label,)
    kinds = CsvKinds(str(path))
    first = 0
    for batch in table_batches(path, wanted.distinct, text=text, coded=(wanted.label,), threads=True):
        made = (
            _arrow_batch(batch, wanted, first) if hasattr(batch, "schema") else _csv_batch(batch, wanted, first, kinds)
        )
        first += made.count
        yield made


def _arrow_batch(batch: Any, wanted: Wanted, first: int) -> Batch:
    import pyarrow as pa

    if wanted.columns:
        arrays = [decoded(batch.column(column)) for column in wanted.columns]
        table = pa.RecordBatch.from_arrays(arrays, names=list(wanted.features))
    else:
        table = batch.select([])
    return Batch(first, batch.num_rows, table, _arrow_labels(batch.column(wanted.label)))


def _arrow_labels(column: Any) -> Found:
    """Codes of a column: missing ones are the last."""
    coded = column if hasattr(column, "dictionary") else column.dictionary_encode()
    distinct = (*coded.dictionary.to_pylist(), None)
    codes = coded.indices.fill_null(len(distinct) - 1) if coded.indices.null_count else coded.indices
    return Found(codes.to_numpy(zero_copy_only=False), distinct)


def _csv_batch(chunk: Any, wanted: Wanted, first: int, kinds: CsvKinds) -> Batch:
    import pandas as pd

    columns = {
        feature: kinds.doubles(chunk[column], column, first)
        for feature, column in zip(wanted.features, wanted.columns, strict=True)
    }
    codes, distinct = pd.factorize(chunk[wanted.label].astype(object), use_na_sentinel=False)
    found = Found(codes, tuple(None if value != value or value == "" else value for value in distinct))
    return Batch(first, len(chunk), pd.DataFrame(columns, index=range(len(chunk)), copy=False), found)
