"""Tables out, batch after batch and whole or not at all: CSV by pandas, Parquet and Arrow by pyarrow.

The columns of a batch may be pandas or Arrow columns, arrays of doubles, or codes of a few known values. `Writer.form`
puts a batch into the file's own form and may be called from any thread; `Writer.put` appends what it made, in order.
`in_order` has several threads work on batches and yields the results in the batches' own order.
"""

from __future__ import annotations

import gzip
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

from gbfl_compile.files.atomic import clear_leftovers, whole_file
from gbfl_compile.tables.batches import decode, rows_at_once
from gbfl_compile.tables.read import ARROW_ENDINGS, file_ending, pyarrow_part

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(items: Iterator[Item], work: Callable[[Item], Result], jobs: int, threads: int) -> Iterator[Result]:
    """`map` on threads: the next item is fetched ahead, and up to `threads` run at once (0: none).

    No more than `threads` + 2 items are held. The first error, in the order of the items, is the one that is raised.
    """
    if jobs <= 1:
        yield from map(work, items)
        return
    end = object()
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(1) as fetching, ThreadPoolExecutor(max(1, threads)) as working:
        ahead: Future[Any] = fetching.submit(next, items, end)
        try:
            while not _is_failed(ahead) and (item := ahead.result()) is not end:
                ahead = fetching.submit(next, items, end)
                if not threads:
                    yield work(item)
                    continue
                waiting.append(working.submit(work, item))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:  # before an error in fetching: an earlier failure is reported first
                yield waiting.popleft().result()
            ahead.result()
        finally:
            for future in (ahead, *waiting):
                future.cancel()


def _is_failed(fetched: Future[Any]) -> bool:
    return fetched.exception() is not None


GROUP_ROWS = 1 << 18
"""Rows of a Parquet row group, fewer where they are wide: a group is held until it is complete."""


@dataclass(frozen=True, slots=True)
class CodedColumn:
    """A column of few distinct values, as a code per row."""

    codes: NDArray[np.int32]
    values: tuple[Any, ...]


Columns = Mapping[str, Any]
"""Name -> column."""


@dataclass(frozen=True, slots=True)
class Writer:
    """An open file. The first batch settles the types of the columns; every later one must have the same."""

    form: Callable[[Columns], Any]
    put: Callable[[Any], None]


@contextmanager
def table_writer(path: Path) -> Iterator[Writer]:
    """A writer for the file at `path`, which appears once the block has succeeded. Leftovers are cleared."""
    ending = file_ending(path)
    clear_leftovers(path.parent)
    if not ending.startswith(".csv"):
        pyarrow_part("parquet")
    with whole_file(path) as partial, ExitStack() as open_files:
        if ending == ".parquet":
            yield open_files.enter_context(_parquet_writer(partial))
        elif ending in ARROW_ENDINGS:
            yield open_files.enter_context(_arrow_writer(partial, "lz4" if ending == ".feather" else None))
        else:
            file: IO[bytes] = open_files.enter_context(partial.open("wb"))
            if ending == ".csv.gz":  # no name and no time in it: the same rows are the same bytes
                packed = gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0)
                file = cast(IO[bytes], open_files.enter_context(packed))
            yield _csv_writer(file)


def _csv_writer(file: IO[bytes]) -> Writer:
    import pandas as pd

    begun: list[bool] = []

    def form(columns: Columns) -> tuple[bytes, bytes]:
        plain = {name: _as_pandas(column) for name, column in columns.items()}
        text = pd.DataFrame(plain).to_csv(index=False, header=False, lineterminator="\n")
        header = pd.DataFrame(columns=list(columns)).to_csv(index=False, lineterminator="\n")
        return header.encode("utf-8"), text.encode("utf-8")

    def put(piece: tuple[bytes, bytes]) -> None:
        header, text = piece
        file.write(text if begun else header + text)
        begun.append(True)

    return Writer(form, put)


def _as_pandas(column: Any) -> Any:
    """A column whose text in a CSV file is the same however the rows are cut into batches."""
    import pandas as pd

    from gbfl_compile.ir.batch import label_array

    if isinstance(column, CodedColumn):
        return label_array(column.values)[column.codes]
    if isinstance(column, pd.Series):
        return column.to_numpy()
    if not hasattr(column, "to_pandas"):
        return _spell(column)
    # Integers beside a null stay integers; a time is written in full even where a whole batch falls on midnight.
    plain = decode(column).to_pandas(integer_object_nulls=True)
    if plain.dtype.kind in "Mm":
        return plain.astype(object).map(str, na_action="ignore").to_numpy()
    return plain.to_numpy()


def _spell(doubles: NDArray[np.float64]) -> NDArray[Any]:
    """Doubles as text, each distinct one spelled once: a tree has as many probabilities as leaves."""
    import numpy as np
    import pandas as pd

    if np.signbit(doubles).any() or np.isnan(doubles).any():  # -0.0 would pass for 0.0, and NaN is written as nothing
        return doubles
    codes, distinct = pd.factorize(doubles)
    return distinct.astype(str).astype(object)[codes] if len(distinct) * FEW <= len(doubles) else doubles


FEW = 8
"""Values a distinct one, from which on spelling each one once pays."""


def _as_arrow(column: Any) -> Any:
    import pandas as pd
    import pyarrow as pa

    if isinstance(column, CodedColumn):
        return pa.array(column.values).take(pa.array(column.codes))
    if isinstance(column, pd.Series):
        return pa.array(column, pa.string() if column.dtype.kind == "O" else None)
    return column if hasattr(column, "to_pandas") else pa.array(column)


def _record_batch(columns: Columns) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([_as_arrow(column) for column in columns.values()], names=list(columns))


@contextmanager
def _parquet_writer(partial: Path) -> Iterator[Writer]:
    import pyarrow as pa
    from pyarrow import parquet

    held: list[Any] = []
    writers: list[Any] = []

    def put(batch: Any) -> None:
        if not writers:
            writers.append(parquet.ParquetWriter(sink, batch.schema, use_dictionary=_repeating(batch.schema)))
        held.append(batch)
        if sum(part.num_rows for part in held) >= rows_at_once(GROUP_ROWS, batch.num_columns):
            flush()

    def flush() -> None:
        table = pa.Table.from_batches(held)
        writers[0].write_table(table, row_group_size=max(1, table.num_rows))
        held.clear()

    with pa.OSFile(str(partial), "wb") as sink:
        try:
            yield Writer(_record_batch, put)
            if held:
                flush()
            for writer in writers:
                writer.close()
        finally:
            _discard(writers)


def _repeating(schema: Any) -> list[str]:
    """Columns worth a dictionary. Keys of integers and times seldom repeat, and looking for it takes its time."""
    import pyarrow as pa

    return [part.name for part in schema if not (pa.types.is_integer(part.type) or pa.types.is_temporal(part.type))]


def _discard(writers: Sequence[Any]) -> None:
    """A writer that failed must not write its footer into the file when it is garbage-collected."""
    for writer in writers:
        writer.is_open = False


@contextmanager
def _arrow_writer(partial: Path, compression: str | None) -> Iterator[Writer]:
    """Arrow's file format. A file has one dictionary per column but each batch its own, so plain values are written."""
    import pyarrow as pa

    if compression is not None and not pa.Codec.is_available(compression):
        compression = None
    writers: list[Any] = []

    def form(columns: Columns) -> Any:
        return _record_batch({name: decode(_as_arrow(column)) for name, column in columns.items()})

    def put(batch: Any) -> None:
        if not writers:
            options = pa.ipc.IpcWriteOptions(compression=compression)
            writers.append(pa.ipc.new_file(sink, batch.schema, options=options))
        writers[0].write_batch(batch)

    with pa.OSFile(str(partial), "wb") as sink:
        yield Writer(form, put)
        for writer in writers:
            writer.close()
