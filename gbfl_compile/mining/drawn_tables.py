"""Some rows of a file of any size: it is read twice, a batch at a time, and only the rows that were drawn stay."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.mining.draw import Drawn, Places, draw
from gbfl_compile.table_batches import column_names, decoded, table_batches
from gbfl_compile.tables import csv_options, file_ending, pyarrow_part, reading

CSV_ENDINGS = (".csv", ".csv.gz")


def most_rows(path: Path) -> int:
    """How many rows a file may have, and not fewer than it has: the lines of a CSV file."""
    ending = file_ending(path)
    with reading(path):
        if ending == ".parquet":
            return int(pyarrow_part("parquet").read_metadata(path).num_rows)
        if ending not in CSV_ENDINGS:
            return sum(len(batch) for batch in table_batches(path, ()))
        with gzip.open(path, "rb") if ending == ".csv.gz" else path.open("rb") as file:
            return sum(
                block.count(b"\n") + block.count(b"\r") - block.count(b"\r\n")
                for block in iter(lambda: file.read(2**20), b"")
            )


def drawn_rows(path: Path, target: str, most: int, seed: int) -> tuple[Any, Drawn]:
    """At most `most` rows of the file as a pandas DataFrame, and which they are."""
    names = column_names(path)
    rows_at = _csv_rows if file_ending(path) in CSV_ENDINGS else _arrow_rows
    with reading(path):
        # without a target none are drawn: who takes the table for one that has it says what there is instead
        drawn = draw(_classes(path, target) if target in names else (), most, seed)
        return rows_at(path, names, drawn.places), drawn


def _classes(path: Path, target: str) -> Iterator[NDArray[Any]]:
    for batch in table_batches(path, (target,), text=(target,)):
        if hasattr(batch, "iloc"):
            yield batch[target].to_numpy()
        else:
            yield decoded(batch.column(batch.schema.names.index(target))).to_numpy(zero_copy_only=False)


def _wanted(batches: Iterator[Any], places: Places) -> Iterator[tuple[Any, Places]]:
    """Each batch with the rows in it that are wanted, counted from its first; what comes after the last is not read."""
    first = used = 0
    for batch in batches:
        here = int(np.searchsorted(places, first + len(batch)))
        yield batch, places[used:here] - first
        first, used = first + len(batch), here
        if used == len(places):
            return


def _arrow_rows(path: Path, names: list[str], places: Places) -> Any:
    import pyarrow as pa

    found = [batch.take(pa.array(rows)) for batch, rows in _wanted(table_batches(path, names), places)]
    return pa.Table.from_batches(found).to_pandas()


def _csv_rows(path: Path, names: list[str], places: Places) -> Any:
    """The rows as they are written, read as a file of their own: what a column holds is seen on the rows drawn."""
    import pandas as pd

    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(names)
    for batch, rows in _wanted(table_batches(path, names, text=names), places):
        writer.writerows(batch.iloc[rows].itertuples(index=False, name=None))
    text.seek(0)
    return pd.read_csv(text, **csv_options(names, ()))
