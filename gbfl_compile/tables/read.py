"""Whole tables, CSV, Parquet or Arrow by their ending: doubles stay the doubles they are."""

from __future__ import annotations

import contextlib
import csv
import gzip
import importlib
import os
import re
import shlex
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from gbfl_compile.errors import BadInput, CannotRun, GbflError, NotANumber, did_you_mean
from gbfl_compile.files.atomic import refuse_bomb
from gbfl_compile.files.formats import A_TABLE, similar_file, wrong_file
from gbfl_compile.tables.csv_shape import (
    number_hint,
    open_csv,
    other_encoding,
    other_separator,
    refuse_ragged,
    refuse_short_rows,
)
from gbfl_compile.tables.frames import named_table
from gbfl_compile.version import install_command

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gbfl_compile.ir.batch import Matrix

ARROW_ENDINGS = (".arrow", ".feather")
ENDINGS = (".csv", ".csv.gz", ".parquet", *ARROW_ENDINGS)

MOST_COLUMNS = 100_000
LONGEST_LINE = 64 * 2**20
"""Characters of a header."""

MOST_TEXT = 256 * 2**20
"""Bytes of text that a small .csv.gz may unpack to."""

DEFLATES_AT_MOST = 1032
"""One byte of gzip cannot stand for more than this."""


def feature_rows(source: Any, features: tuple[str, ...]) -> Matrix:
    """Rows of a table (a file, a DataFrame or a matrix) as float64, columns in the order of `features`."""
    import numpy as np

    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return feature_matrix(read_table(path), features, str(path))
    source = named_table(source)
    if hasattr(source, "columns"):
        return feature_matrix(source, features, "the table")
    try:
        matrix = np.asarray(source, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInput(f"rows are a file, a DataFrame or a matrix of numbers, not {type(source).__name__}") from None
    if matrix.ndim != 2 or matrix.shape[1] != len(features):
        raise BadInput(f"rows of shape {matrix.shape} do not have one column for each of the {len(features)} features")
    return matrix


def feature_row(source: Any, features: tuple[str, ...], number: int = 1) -> tuple[list[float], int]:
    """One row, features in this order, and how many rows there are: of a table the `number`-th, or a row by itself.

    A row by itself is a mapping of names to values, or a sequence of one value per feature; None is missing.
    """
    source = named_table(source)
    if isinstance(source, str | os.PathLike) or hasattr(source, "columns"):
        rows = feature_rows(source, features)
        where = source if isinstance(source, str | os.PathLike) else "the table"
        if not 1 <= number <= len(rows):
            raise BadInput(f"{where}: has no row {number}, there are {len(rows)}")
        return rows[number - 1].tolist(), len(rows)
    if isinstance(source, Mapping) or hasattr(source, "to_dict"):
        values = dict(source.items())
        refuse_absent([str(name) for name in values], features, "the row")
        source = [values[name] for name in features]
    try:
        row = [float("nan") if value is None else _number(value) for value in source]
    except (TypeError, ValueError):
        raise BadInput("a row is a mapping of features to numbers, or a sequence of one number per feature") from None
    if len(row) != len(features):
        raise BadInput(f"the row has {len(row)} values, and there are {len(features)} features")
    return row, 1


def read_table(path: Path, text: tuple[str, ...] = ()) -> Any:
    """The table in a file, as a pandas DataFrame. Columns named in `text` are kept as they are written."""
    import pandas as pd

    ending = file_ending(path)
    with reading(path):
        if path.stat().st_size == 0:
            raise BadInput(f"{path}: is empty")
        if ending == ".parquet":
            _refuse_parquet_bomb(path)
            return _with_pyarrow(pd.read_parquet, path)
        if ending in ARROW_ENDINGS:
            return _read_arrow(path)
        if ending == ".csv.gz":
            _refuse_text_bomb(path)
        return _read_csv(path, csv_header(path, ending), text)


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Whatever goes wrong with a table's file becomes one line that names the file."""
    try:
        if path.exists() and not path.is_file():
            raise BadInput(f"{path}: is not a file")  # it is read twice, and a pipe can be read once
        yield
    except GbflError:
        raise
    except FileNotFoundError:  # pyarrow's message has only the name
        raise BadInput(f"{path}: No such file or directory{similar_file(path)}") from None
    except MemoryError:
        raise BadInput(f"{path}: does not fit into memory") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: cannot be read as {file_ending(path)[1:]}: {other_encoding(error)}") from None
    except Exception as error:  # the libraries that read a broken file raise errors of many kinds
        problem = getattr(error, "strerror", None) or f"cannot be read as {file_ending(path)[1:]}: {first_line(error)}"
        raise BadInput(f"{path}: {problem}") from None


def _refuse_parquet_bomb(path: Path) -> None:
    """A column of a billion equal numbers takes a few bytes there, and eight each here."""
    about = pyarrow_part("parquet").read_metadata(path)
    refuse_bomb(path, 8 * about.num_rows * about.num_columns)


def _refuse_text_bomb(path: Path) -> None:
    """Unpack a .csv.gz once without keeping any of it: numbers take many times the room of their text."""
    if path.stat().st_size * DEFLATES_AT_MOST <= MOST_TEXT:
        return
    count = 0
    with gzip.open(path) as packed:
        while piece := packed.read(1 << 20):
            count += len(piece)
            refuse_bomb(path, count, MOST_TEXT)


MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "-nan", "-NaN", "null", "NULL", "None", "<NA>", "#N/A")
"""What a CSV file may say where a number is missing."""


def csv_options(header: Sequence[str], text: Sequence[str]) -> dict[str, Any]:
    """How pandas is to read a CSV file with these columns: those in `text` as written, the others as they look."""
    import pandas as pd

    return {
        "low_memory": False,
        "index_col": False,
        "keep_default_na": False,
        # a mapping takes long for many columns
        "na_values": dict.fromkeys([name for name in header if name not in text], MISSING) if text else list(MISSING),
        "dtype": dict.fromkeys(text, object),
        **exact_reading(pd.__version__),
    }


def _read_csv(path: Path, header: list[str], text: tuple[str, ...]) -> Any:
    import pandas as pd

    with only_whole_rows(path, len(header)):
        table = pd.read_csv(path, **csv_options(header, text))
    refuse_other_names(path, header, list(table.columns))
    refuse_short_rows(path, table, text, packed=is_packed(path))
    return table


@contextlib.contextmanager
def only_whole_rows(path: Path, names: int) -> Iterator[None]:
    """Where pandas finds a row with more fields than names, it is named.

    Of the first row pandas would take the first field for the name of the row, and warns if it may not.
    """
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            yield
        except (pd.errors.ParserWarning, pd.errors.ParserError):
            refuse_ragged(path, names, packed=is_packed(path))
            raise


def is_packed(path: Path) -> bool:
    return file_ending(path) == ".csv.gz"


def refuse_other_names(path: Path, header: list[str], columns: list[str]) -> None:
    """Refuse a header that is read in two ways. pandas gives a column without a name one of its own."""
    if len(header) != len(columns) or any(name != other for name, other in zip(header, columns, strict=True) if name):
        raise BadInput(f"{path}: its header is unclear: look for control characters and quotes in the first line")


@contextlib.contextmanager
def open_arrow(path: Path) -> Iterator[Any]:
    """A reader of Arrow's file or stream format, whichever the file begins with; it is read, not mapped into memory."""
    ipc = pyarrow_part("ipc")
    import pyarrow as pa

    with path.open("rb") as file:
        begins = file.read(6)
    if begins.startswith(b"FEA1"):
        raise BadInput(f"{path}: is Feather of version 1, which has no batches: write it as version 2")
    with pa.OSFile(str(path)) as source:
        opened = ipc.open_file(source) if begins == b"ARROW1" else ipc.open_stream(source)
        with opened as reader:
            yield reader


def _read_arrow(path: Path) -> Any:
    with open_arrow(path) as reader:
        table = reader.read_all()
    table.validate(full=True)  # offsets and codes beyond their buffers would be read
    return table.to_pandas()


def feature_matrix(
    table: Any, features: tuple[str, ...], where: str, places: NDArray[np.int64] | None = None
) -> Matrix:
    """The columns `features` as float64, missing as NaN; a column that is absent or not numbers is an error.

    `places` gives each row's place in the file it was drawn from.
    """
    import numpy as np

    refuse_absent(list(table.columns), features, where)
    columns = [numbers(table[name], name, where, places=places) for name in features]
    return np.column_stack(columns) if len(table) else np.empty((0, len(features)))


def feature_names(names: Sequence[str], target: str, drop: tuple[str, ...], where: str) -> tuple[str, ...]:
    """All columns but the target and those dropped; an error where one of them is absent, or none is left."""
    for flag, columns in (("--target", (target,)), ("--drop", drop)):
        for name in columns:
            if name not in names:
                hint = did_you_mean(name, names)
                raise BadInput(f"{where}: has no column {name!r} for {flag}: its columns are {some_names(names)}{hint}")
    if target in drop:
        raise BadInput(f"{where}: {target!r} is the target and cannot be dropped")
    features = tuple(name for name in names if name != target and name not in drop)
    if not features:
        raise BadInput(f"{where}: no column is left to learn from")
    refuse_absent(names, (target, *features), where)
    return features


def refuse_nameless(header: Sequence[str], drop: tuple[str, ...], where: str) -> None:
    """Refuse a CSV column without a name, mostly row numbers: no table to be scored has the name pandas makes up."""
    if "" in header and (substitute := f"Unnamed: {header.index('')}") not in drop:
        raise BadInput(
            f"{where}: column {header.index('') + 1} has no name in the header: name it, or leave it out with --drop "
            f"{shlex.quote(substitute)}"
        )


def refuse_headless(header: Sequence[str], where: str) -> None:
    """Refuse a CSV file whose first line is a row: numbers among the names, and not 0, 1, 2 or years in order."""
    numbers = [name for name in header if NUMBER_AS_NAME.fullmatch(name.strip())]
    if not numbers:
        return
    try:
        whole = [int(name) for name in numbers]
    except ValueError:
        whole = []
    if whole != list(range(whole[0], whole[0] + len(whole)) if whole else [None]):
        raise BadInput(
            f"{where}: its first line holds {numbers[0].strip()!r} in place of a name: the file has no header, write "
            "the names of its columns in the first line"
        )


NUMBER_AS_NAME = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def refuse_absent(there: Sequence[str], names: Sequence[str], where: str) -> None:
    """Name the columns that are wanted and not there, and what there is; or one that is there twice."""
    among = set(there)
    if absent := [name for name in names if name not in among]:
        more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        hint = did_you_mean(absent[0], there)
        raise BadInput(f"{where}: has no column {absent[0]!r}{more}: its columns are {some_names(there)}{hint}")
    if len(among) == len(there):
        return
    times = Counter(there)
    if repeated := [name for name in names if times[name] > 1]:
        raise BadInput(f"{where}: the column {repeated[0]!r} appears {times[repeated[0]]} times, rename one")


MOST_NAMED = 10


def some_names(names: Sequence[str]) -> str:
    """The first few names, in quotes, so that a space at the end of one is visible."""
    shown = ", ".join(repr(name) for name in names[:MOST_NAMED])
    return shown if len(names) <= MOST_NAMED else f"{shown} and {len(names) - MOST_NAMED} more"


def numbers(column: Any, name: str, where: str, first: int = 0, places: NDArray[np.int64] | None = None) -> Any:
    """A pandas column as doubles. An error names the row of the file: `first` came before, or `places` has it."""
    import numpy as np
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    try:
        return np.array([np.nan if value is None or value is pd.NA else _number(value) for value in column])
    except (TypeError, ValueError, OverflowError):
        row, value = next(((r, v) for r, v in enumerate(column) if not _reads_as_number(v)), (0, column.iloc[0]))
        place = first + row if places is None else places[row]
        raise NotANumber(f"{where}: column {name!r}, row {place + 1}", value, number_hint(value)) from None


def _number(value: Any) -> float:
    if isinstance(value, str | bytes):
        raise TypeError("text is not a number")
    return float(value)


def _reads_as_number(value: Any) -> bool:
    """One stray word makes text of a whole CSV column: the word is what to name, not the numbers before it."""
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return value is None
    return True


def file_ending(path: Path) -> str:
    for ending in ENDINGS:
        if path.name.lower().endswith(ending):
            return ending
    unknown = f"the ending says nothing about the format, use {', '.join(ENDINGS)}"
    raise BadInput(f"{path}: {wrong_file(path, A_TABLE) or unknown}")


def exact_reading(pandas_version: str) -> dict[str, str]:
    """Before 3.1 the default reader of pandas was off by an ulp now and then; from then on it is exact."""
    major, minor = (int(part) for part in pandas_version.split(".")[:2])
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}


def csv_header(path: Path, ending: str) -> list[str]:
    """The names of the columns. A repeated name is refused: pandas would silently rename the second."""
    with open_csv(path, packed=ending == ".csv.gz") as file:
        rows = (line for line in csv.reader(_lines(path, file)) if line)
        header = next(rows, [])
        if hint := other_separator(header, rows):
            raise BadInput(f"{path}: {hint}")
    if len(header) > MOST_COLUMNS:
        raise BadInput(f"{path}: {len(header)} columns, at most {MOST_COLUMNS} are read")
    times = Counter(header)
    if times[""] > 1:
        raise BadInput(f"{path}: {times['']} columns have no name in the header: name them")
    if repeated := sorted(name for name, count in times.items() if count > 1):
        raise BadInput(f"{path}: the column {repeated[0]!r} appears {times[repeated[0]]} times in the header")
    return header


def _lines(path: Path, file: IO[str]) -> Iterator[str]:
    while line := file.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise BadInput(f"{path}: the header has a line of {LONGEST_LINE} characters or more")
        yield line


def _with_pyarrow(function: Any, *arguments: Any, **options: Any) -> Any:
    pyarrow_part("parquet")
    return function(*arguments, engine="pyarrow", **options)


def pyarrow_part(name: str) -> Any:
    """A module of pyarrow, loaded now; its absence names the extra that brings it."""
    try:
        return importlib.import_module(f"pyarrow.{name}")
    except ImportError:
        raise CannotRun(f"Parquet and Arrow files need pyarrow: {install_command('parquet')}") from None


def first_line(error: Exception) -> str:
    """What an error says, on one line."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
