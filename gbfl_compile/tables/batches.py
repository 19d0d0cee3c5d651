"""Tables of any size, some rows at a time: CSV, Parquet and Arrow, doubles as they are written, memory bounded.

A batch is a pandas DataFrame (CSV) or an Arrow RecordBatch (Parquet, Arrow): columns by name, in the file's order of
rows. How many rows a batch has changes no value: `column_numbers` says the same of a column however it was cut.

How much memory mining takes is estimated before it is taken: what does not fit is refused with the way out. The figures
are rounded up from measurements (`python -m tests.bench mine_scale` prints the peak beside each limit).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gbfl_compile.errors import BadInput
from gbfl_compile.tables.csv_shape import number_hint, refuse_short_rows
from gbfl_compile.tables.read import (
    ARROW_ENDINGS,
    MISSING,
    csv_header,
    csv_options,
    file_ending,
    is_packed,
    numbers,
    only_whole_rows,
    open_arrow,
    pyarrow_part,
    reading,
    refuse_other_names,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gbfl_compile.tables.sample import Split

CSV_ROWS = 50_000
ARROW_ROWS = 65_536
READ_AHEAD = 1 << 20
"""Bytes read of a Parquet column at a time, however large its row group is."""

CELLS_AT_ONCE = 4_000_000
"""Values held at a time: 32 MB of doubles, a few times that as Python numbers."""


def rows_at_once(most: int, columns: int) -> int:
    """How many rows a batch has: fewer where they are wide, so that memory stays bounded."""
    return max(1, min(most, CELLS_AT_ONCE // max(1, columns)))


def column_names(path: Path) -> list[str]:
    """The names of a file's columns, in order."""
    ending = file_ending(path)
    with reading(path):
        if ending == ".parquet":
            with _parquet(path) as file:
                return list(file.schema_arrow.names)
        if ending in ARROW_ENDINGS:
            with open_arrow(path) as file:
                return list(file.schema.names)
        if not (header := csv_header(path, ending)):
            raise BadInput(f"{path}: cannot be read as {ending[1:]}: it has no header")
        return header


def column_types(path: Path) -> dict[str, Any]:
    """The Arrow type of each column, where the file says so itself: a CSV file does not."""
    ending = file_ending(path)
    with reading(path):
        if ending == ".parquet":
            with _parquet(path) as file:
                return {part.name: part.type for part in file.schema_arrow}
        if ending in ARROW_ENDINGS:
            with open_arrow(path) as file:
                return {part.name: part.type for part in file.schema}
    return {}


def table_batches(
    path: Path,
    columns: Sequence[str],
    *,
    text: Sequence[str] = (),
    coded: Sequence[str] = (),
    rows: int | None = None,
    threads: bool = False,
) -> Iterator[Any]:
    """The rows of a file with at least these columns; they must be there.

    Of a CSV file, columns in `text` are kept as they are written; of a Parquet file, those in `coded` come as a
    dictionary and codes where the file has them so. `threads`: Parquet columns may be decoded side by side.
    """
    ending = file_ending(path)
    if ending == ".parquet":
        batches = _parquet_batches(path, columns, coded, rows, threads)
    elif ending in ARROW_ENDINGS:
        batches = _arrow_batches(path, columns, rows)
    else:
        batches = _csv_batches(path, text, rows)
    with reading(path), closing(batches):
        yield from batches


def _parquet(path: Path, coded: Sequence[str] = ()) -> Any:
    parquet = pyarrow_part("parquet")
    return parquet.ParquetFile(path, buffer_size=READ_AHEAD, pre_buffer=False, read_dictionary=list(coded) or None)


def _parquet_batches(
    path: Path, columns: Sequence[str], coded: Sequence[str], rows: int | None, threads: bool
) -> Generator[Any, None, None]:
    with _parquet(path, coded) as file:
        count = rows_at_once(ARROW_ROWS if rows is None else rows, len(columns))
        if not columns:  # an artifact that reads no column still answers every row
            yield from _empty_batches(file.metadata.num_rows, count)
            return
        for batch in file.iter_batches(count, columns=list(columns), use_threads=threads):
            batch.validate(full=True)  # bytes that are not UTF-8 would fail later, with a worse message
            yield batch


def _empty_batches(total: int, count: int) -> Iterator[Any]:
    import pyarrow as pa

    for start in range(0, total, count):
        nothing = pa.nulls(min(count, total - start))
        yield pa.RecordBatch.from_arrays([nothing], names=[""])


def _arrow_batches(path: Path, columns: Sequence[str], rows: int | None) -> Generator[Any, None, None]:
    with open_arrow(path) as reader:
        count = rows_at_once(ARROW_ROWS if rows is None else rows, len(columns))
        there = getattr(reader, "num_record_batches", None)
        whole = iter(reader) if there is None else (reader.get_batch(number) for number in range(there))
        for batch in whole:
            batch.validate(full=True)  # offsets and codes beyond their buffers would be read
            for start in range(0, batch.num_rows, count):
                yield batch.slice(start, count)


def _csv_batches(path: Path, text: Sequence[str], rows: int | None) -> Generator[Any, None, None]:
    import pandas as pd

    header = csv_header(path, file_ending(path))
    count = rows_at_once(CSV_ROWS if rows is None else rows, len(header))
    with pd.read_csv(path, chunksize=count, **csv_options(header, text)) as reader:
        looked_at = False
        while (chunk := _next_chunk(reader, path, len(header))) is not None:
            refuse_other_names(path, header, list(chunk.columns))
            looked_at = looked_at or refuse_short_rows(path, chunk, text, packed=is_packed(path))
            if len(chunk):
                yield chunk


def _next_chunk(reader: Any, path: Path, names: int) -> Any:
    """The next rows. A generator must not yield inside the `with`: warning filters belong to the whole process."""
    with only_whole_rows(path, names):
        return next(reader, None)


@dataclass(slots=True)
class CsvKinds:
    """What each column of a CSV file has held so far: a number among truth values is a mistake, and vice versa.

    In one batch the two would have turned the column into text; the answer must not depend on where batches end.
    """

    where: str
    first_truth: dict[str, tuple[int, bool]] = field(default_factory=dict)
    """Column -> row (from 0) and the value there."""
    with_numbers: set[str] = field(default_factory=set)

    def doubles(self, column: Any, name: str, first: int) -> NDArray[np.float64]:
        """The column as doubles; one stray word makes text of all of it, and is named with its row."""
        import numpy as np
        import pandas as pd

        if not (is_plain := getattr(column.dtype, "kind", "O") in "fiub"):
            column = column.where(~column.isin(MISSING), np.nan)  # pandas keeps them where it makes text of a column
        here = column.notna().to_numpy()
        if here.any():
            self._take_note(column, name, first + int(np.flatnonzero(here)[0]))
        if is_plain:
            return column.to_numpy(dtype=np.float64)  # type: ignore[no-any-return]
        for row, value in enumerate(column):
            if isinstance(value, int) and abs(value) > sys.float_info.max:
                raise self._not_a_number(name, first + row, value)
        wrong = pd.to_numeric(column, errors="coerce").isna().to_numpy() & here
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise self._not_a_number(name, first + row, column.iloc[row])
        return np.array([np.nan if value != value else float(value) for value in column], dtype=np.float64)

    def _take_note(self, column: Any, name: str, row: int) -> None:
        """Note what the column holds here, `row` being the first that holds anything."""
        if _holds_truth(column):
            self.first_truth.setdefault(name, (row, bool(column.dropna().iloc[0])))
        else:
            self.with_numbers.add(name)
        if name in self.first_truth and name in self.with_numbers:
            raise self._not_a_number(name, *self.first_truth[name])

    def _not_a_number(self, name: str, row: int, value: Any) -> BadInput:
        hint = number_hint(value)
        return BadInput(f"{self.where}: column {name!r}, row {row + 1}: {str(value)!r} is not a number{hint}")


def _holds_truth(column: Any) -> bool:
    """Whether what the column holds, missing values aside, is truth values and nothing else."""
    kind = getattr(column.dtype, "kind", "O")
    return kind == "b" or (kind == "O" and all(isinstance(value, bool) for value in column[column.notna()]))


def arrow_numbers(column: Any, name: str, where: str, first: int) -> NDArray[np.float64]:
    """An Arrow column as doubles, nulls as NaN: not copied where it is that already."""
    import pandas as pd

    array = decode(column).to_numpy(zero_copy_only=False)
    if array.dtype == "float64":
        return array  # type: ignore[no-any-return]
    return numbers(pd.Series(array, copy=False), name, where, first)  # type: ignore[no-any-return]


def decode(column: Any) -> Any:
    """A column of codes as its values."""
    return column.dictionary_decode() if hasattr(column, "dictionary_decode") else column


UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}

WORKER = 230 * 10**6
"""Bytes of a worker process: its libraries and the rows it explains, without the black box."""
SEARCH = 200 * 10**6
"""Bytes for the search for a head, which sees at most 20,000 rows."""
SEARCHED = 20_000 * 3 * 8 * 4
"""And bytes per feature: x, PP and PN of those rows, four times."""
READING = 4
"""Copies of a table's numbers at once: it is read, turned into a matrix and sorted."""
EXPLAINED = 4
"""Numbers held per number of a row: the row, its PP and PN, and what a fit makes of them; for each method."""
STACKED = 3
"""And for each of several methods: their rows, PPs and PNs one after the other, as a head is fitted to them."""
BESIDE = 5
"""And more of them where several jobs fit the head, explain held-out rows and fit the baselines at the same time."""
A_ROW = 200
"""Bytes per row: classes, flags, margins, answers and scores."""


def bytes_of(text: str) -> int:
    """A size as people write it.

    >>> bytes_of("2GB"), bytes_of("1.5 GiB")
    (2000000000, 1610612736)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?\s*", text.upper())
    if match is None or match[2] not in UNITS or not 0 < (size := float(match[1]) * UNITS[match[2]]) < 2**63:
        raise BadInput(f"--memory {text}: is not a size, such as 2GB or 500MB")
    return int(size)


def resident() -> int:
    """Bytes this process holds now, where the system says; elsewhere its peak, or 0 where not even that is known."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * resource.getpagesize()
    except ImportError:
        return 0
    except (OSError, ValueError, IndexError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else 1024 * peak


def give_back() -> None:
    """Return freed memory to the system: pyarrow keeps a table's memory for the next one."""
    if (pyarrow := sys.modules.get("pyarrow")) is not None:
        pyarrow.default_memory_pool().release_unused()


def refuse_many_rows(where: str, rows: int, columns: int, most: int) -> None:
    """Refuse rows whose numbers alone would exceed the limit while they are read."""
    own, each = resident(), READING * 8 * columns
    needed = own + each * rows
    if needed > most:
        fitting = max(0, (most - own) // each)
        raise BadInput(
            f"{where}: {rows:,} rows of {columns} columns take about {_size_text(needed)} while they are read, and "
            f"--memory allows {_size_text(most)}: give {_fewer_rows(fitting)}a table of fewer columns, or more memory"
        )


def jobs_within(most: int, split: Split, jobs: int, methods: int = 1) -> int:
    """How many worker processes fit beside the rows; an error where the rows alone do not.

    Called once rows and black box are loaded: what they take is measured, the rest is estimated. Each of the `methods`
    explains every row.
    """
    own = resident()
    numbers, rows = split.x.size + split.x_test.size, len(split.x) + len(split.x_test)
    width = split.x.shape[1]
    search = SEARCH + SEARCHED * width
    each = 8 * (EXPLAINED + (STACKED if methods > 1 else 0))
    needed = own + search + methods * (each * numbers + A_ROW * rows)
    if needed > most:
        fitting = max(0, (most - own - search) // (methods * (each * width + A_ROW)))
        raise BadInput(
            f"--memory {_size_text(most)}: {_size_text(own)} are taken by the libraries, the rows and the black box, "
            f"and mining {rows:,} rows takes about {_size_text(needed)} in all: give {_fewer_rows(fitting)}"
            "fewer columns with --drop, or more memory"
        )
    return max(1, min(jobs, (most - needed - methods * BESIDE * 8 * numbers) // WORKER)) if jobs > 1 else 1


def _fewer_rows(fitting: int) -> str:
    return f"at most {fitting:,} rows with --rows, " if fitting >= 1000 else ""


def _size_text(size: int) -> str:
    return f"{size / 10**9:.1f} GB" if size >= 10**9 else f"{size / 10**6:.0f} MB"
