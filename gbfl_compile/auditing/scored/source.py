"""A scored table, in a file or in a database, and its rows in batches: one way to read them all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from gbfl_compile.auditing.answers import LabelCodes, LabelStorage
from gbfl_compile.auditing.scored.values import RowEncoder, fetched_column, numbers_column
from gbfl_compile.backends.base import as_frame
from gbfl_compile.backends.sql.engines import DIALECTS
from gbfl_compile.databases.base import Database
from gbfl_compile.errors import BadInput, CannotRun, ConnectionLost
from gbfl_compile.ir.nodes import Program
from gbfl_compile.tables.batches import CsvKinds, column_names, decode, rows_at_once, table_batches
from gbfl_compile.tables.read import MOST_NAMED, file_ending, some_names

LABEL_COLUMN = "label"
"""What `gbfl score` calls it."""


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """The columns to read: for each feature its column, and the column of labels."""

    features: tuple[str, ...]
    columns: tuple[str, ...]
    label: str
    keys: tuple[str, ...] = ()
    """The columns that name a row."""

    @property
    def distinct(self) -> list[str]:
        """Each column once: two features may share one, and the label or a key in one of them."""
        return list(dict.fromkeys((*self.columns, *self.keys, self.label)))


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows. `table` is Arrow or pandas, its columns called as the features are; words and dates are encoded."""

    first: int
    """How many rows came before."""
    count: int
    table: Any
    labels: LabelCodes
    keys: Any = None
    """A pandas table of the key columns, where there are any."""


def part_of(batch: Batch, start: int, count: int) -> Batch:
    """Some rows of a batch, not copied."""
    count = min(count, batch.count - start)
    table = batch.table
    table = table.slice(start, count) if hasattr(table, "slice") else table.iloc[start : start + count]
    labels = LabelCodes(batch.labels.codes[start : start + count], batch.labels.distinct)
    keys = None if batch.keys is None else batch.keys.iloc[start : start + count]
    return Batch(batch.first + start, count, table, labels, keys)


def rows_of(batch: Batch, places: Any) -> Any:
    """The rows at some places, as a table of the same make."""
    return batch.table.take(places) if hasattr(batch.table, "slice") else batch.table.iloc[places]


def choose_columns(
    features: Sequence[str], program: Program, label_column: str | None, columns: Mapping[str, str] | None
) -> ColumnChoice:
    """The columns of these features. A mapping of something that is not a feature is refused by name."""
    renamed = columns or {}
    if unknown := [name for name in renamed if name not in program.features]:
        raise BadInput(
            f"column of {unknown[0]!r}: the program has no such feature, it has {some_names(program.features)}"
        )
    label = LABEL_COLUMN if label_column is None else label_column
    return ColumnChoice(tuple(features), tuple(renamed.get(feature, feature) for feature in features), label)


def refuse_absent(there: Sequence[str], choice: ColumnChoice, where: str) -> None:
    """Every wanted column is there once, or the error names those that are not and the way out."""
    if absent := [name for name in choice.columns if name not in there]:
        raise BadInput(
            f"{where}: has no column {some_names(absent)}: it has {some_names(there)}; say which "
            "column holds a feature with --column FEATURE=COLUMN, or carry features along with gbfl score --key"
        )
    if choice.label not in there:
        raise BadInput(
            f"{where}: has no column {choice.label!r} of labels: it has {some_names(there)}; "
            "say which holds them with --label COLUMN"
        )
    if absent := [name for name in choice.keys if name not in there]:
        raise BadInput(f"{where}: has no column {some_names(absent)} for --key: it has {some_names(there)}")
    if repeated := [name for name in choice.distinct if list(there).count(name) > 1]:
        raise BadInput(
            f"{where}: the column {repeated[0]!r} appears {list(there).count(repeated[0])} times, rename one"
        )


def file_batches(path: Path, choice: ColumnChoice, encoder: RowEncoder | None = None) -> Iterator[Batch]:
    """The rows of a file, by its ending."""
    refuse_absent(column_names(path), choice, str(path))
    text = tuple(name for name in (choice.label, *choice.keys) if encoder is not None or name not in choice.columns)
    text += () if encoder is None else choice.columns
    kinds = CsvKinds(str(path))
    first = 0
    for batch in table_batches(path, choice.distinct, text=text, coded=(choice.label,), threads=True):
        if hasattr(batch, "schema"):
            converted = _arrow_batch(batch, choice, first)
        else:
            converted = _csv_batch(batch, choice, first, kinds, as_written=encoder is not None)
        if encoder is not None:
            frame = as_frame(converted.table, choice.features)
            converted = replace(converted, table=encoder.encode(frame, str(path), first))
        first += converted.count
        yield converted


def _arrow_batch(batch: Any, choice: ColumnChoice, first: int) -> Batch:
    import pyarrow as pa

    if choice.columns:
        arrays = [decode(batch.column(column)) for column in choice.columns]
        table = pa.RecordBatch.from_arrays(arrays, names=list(choice.features))
    else:
        table = batch.select([])
    keys = batch.select(list(choice.keys)).to_pandas(integer_object_nulls=True) if choice.keys else None  # no doubles
    return Batch(first, batch.num_rows, table, _arrow_labels(batch.column(choice.label)), keys)


def _arrow_labels(column: Any) -> LabelCodes:
    """Codes of a column: missing ones are the last."""
    coded = column if hasattr(column, "dictionary") else column.dictionary_encode()
    distinct = (*coded.dictionary.to_pylist(), None)
    codes = coded.indices.fill_null(len(distinct) - 1) if coded.indices.null_count else coded.indices
    return LabelCodes(codes.to_numpy(zero_copy_only=False), distinct)


def _csv_batch(chunk: Any, choice: ColumnChoice, first: int, kinds: CsvKinds, as_written: bool = False) -> Batch:
    import pandas as pd

    columns = {
        feature: chunk[column].to_numpy() if as_written else kinds.doubles(chunk[column], column, first)
        for feature, column in zip(choice.features, choice.columns, strict=True)
    }
    codes, distinct = pd.factorize(chunk[choice.label].astype(object), use_na_sentinel=False)
    labels = LabelCodes(codes, tuple(None if value != value or value == "" else value for value in distinct))
    keys = None
    if choice.keys:
        written = chunk[list(choice.keys)].reset_index(drop=True)
        keys = written.where(written.notna() & (written != ""))
    return Batch(first, len(chunk), pd.DataFrame(columns, index=range(len(chunk)), copy=False), labels, keys)


PAGE_ROWS = 100_000
CURSOR = "gbfl_audit_rows"

PAGES = {
    "tsql": "OFFSET {skip} ROWS FETCH NEXT {rows} ROWS ONLY",
    "oracle": "OFFSET {skip} ROWS FETCH NEXT {rows} ROWS ONLY",
}
"""Of engines without LIMIT. None of the two was ever run here."""


def database_batches(
    database: Database, table: str, schema: str, choice: ColumnChoice, encoder: RowEncoder | None = None
) -> Iterator[Batch]:
    """The rows of a table or view."""
    name, chosen, query = _query(database, table, schema, choice, encoder)
    _refuse_unreadable(database, query, table, choice)
    size = rows_at_once(PAGE_ROWS, len(chosen))
    by_cursor = database.dialect == "postgres"
    first = 0
    for rows in _cursor_pages(database, query, size) if by_cursor else _pages(database, query, chosen, name, size):
        yield _batch(rows, first, choice, table, encoder)
        first += len(rows)


def can_be_read(
    database: Database, table: str, schema: str, choice: ColumnChoice, encoder: RowEncoder | None = None
) -> bool:
    """Whether the table has all these columns."""
    try:
        _refuse_unreadable(database, _query(database, table, schema, choice, encoder)[2], table, choice)
    except BadInput:
        return False
    return True


def _query(
    database: Database, table: str, schema: str, choice: ColumnChoice, encoder: RowEncoder | None
) -> tuple[str, list[str], str]:
    """The table's name, the columns read and the query for them."""
    name = f"{database.quote(schema)}.{database.quote(table)}" if schema else database.quote(table)
    chosen = [
        fetched_column(database, "number" if encoder is None else encoder.kind(feature), database.quote(column))
        for feature, column in zip(choice.features, choice.columns, strict=True)
    ]
    chosen += [database.quote(name) for name in (*choice.keys, choice.label)]
    return name, chosen, f"SELECT {', '.join(chosen)} FROM {name}"  # noqa: S608 - quoted


def _refuse_unreadable(database: Database, query: str, table: str, choice: ColumnChoice) -> None:
    try:
        database.fetch(f"{query} WHERE 1 = 0")
    except ConnectionLost:
        raise
    except CannotRun as error:
        names = ", ".join(repr(name) for name in choice.distinct[:MOST_NAMED])
        more = ", …" if len(choice.distinct) > MOST_NAMED else ""
        raise BadInput(
            f"the scored table {table!r} cannot be read, its columns should be {names}{more}: {error}; "
            "say which column holds a feature with --column FEATURE=COLUMN, the labels with --label COLUMN"
        ) from None


def _cursor_pages(database: Database, query: str, size: int) -> Iterator[list[tuple[Any, ...]]]:
    """WITH HOLD needs no transaction of ours: the user's, if there is one, stays as it is."""
    database.execute(f"DECLARE {CURSOR} NO SCROLL CURSOR WITH HOLD FOR {query}")
    try:
        while rows := database.fetch(f"FETCH {size} FROM {CURSOR}"):
            yield rows
    finally:
        database.execute(f"CLOSE {CURSOR}")


def _pages(database: Database, query: str, chosen: list[str], name: str, size: int) -> Iterator[list[tuple[Any, ...]]]:
    counted = f"SELECT COUNT(*) FROM {name}"  # noqa: S608 - quoted
    ((before,),) = database.fetch(counted)
    if before <= size:
        yield from filter(None, [database.fetch(query)])
        return
    order = [str(number + 1) for number in range(len(chosen))]
    if database.dialect == "mariadb":
        order.append(f"BINARY {chosen[-1]}")  # to its collations 'a' and 'A' are one
    page = PAGES.get(database.dialect, "LIMIT {rows} OFFSET {skip}")
    skip = 0
    while rows := database.fetch(f"{query} ORDER BY {', '.join(order)} {page.format(rows=size, skip=skip)}"):
        yield rows
        skip += len(rows)
    ((after,),) = database.fetch(counted)
    if not before == after == skip:
        raise CannotRun(f"{name}: had {before:,} rows, then {after:,}: audit it while nothing writes to it")


def _batch(
    rows: list[tuple[Any, ...]], first: int, choice: ColumnChoice, table: str, encoder: RowEncoder | None
) -> Batch:
    import pandas as pd

    *values, labels = zip(*rows, strict=True)
    width = len(choice.columns)
    of_keys = dict(zip(choice.keys, values[width:], strict=True))
    keys = pd.DataFrame(of_keys, index=range(len(rows)), dtype=object) if choice.keys else None
    if encoder is not None:
        table_of_rows = encoder.encode_fetched(dict(zip(choice.features, values[:width], strict=True)), table, first)
    else:
        columns = {
            feature: numbers_column(column, f"{table}: column {name!r}")
            for feature, name, column in zip(choice.features, choice.columns, values[:width], strict=True)
        }
        table_of_rows = pd.DataFrame(columns, index=range(len(rows)), copy=False)
    return Batch(first, len(rows), table_of_rows, _label_codes(labels), keys)


def _label_codes(labels: tuple[Any, ...]) -> LabelCodes:
    """1, True and '1' keep codes of their own."""
    import numpy as np

    if any(kind.__hash__ is None for kind in set(map(type, labels))):  # an array is not a label of any program
        labels = tuple(map(repr, labels))
    numbers: dict[tuple[type, Any], int] = {}
    codes = np.fromiter((numbers.setdefault((type(v), v), len(numbers)) for v in labels), np.int64, len(labels))
    return LabelCodes(codes, tuple(value for _, value in numbers))


Source: TypeAlias = Path | tuple[Database, str]
"""A CSV, Parquet or Arrow file, or a database and the name of a table or view in it."""


def source_batches(
    source: Source, choice: ColumnChoice, schema: str = "", encoder: RowEncoder | None = None
) -> Iterator[Batch]:
    """The rows, a batch at a time; the encoder turns words and dates into doubles."""
    if isinstance(source, Path):
        return file_batches(source, choice, encoder)
    return database_batches(*source, schema, choice, encoder)


def source_name(source: Source, schema: str = "") -> str:
    """What the user called it."""
    if isinstance(source, Path):
        return str(source)
    return f"{schema}.{source[1]}" if schema else source[1]


def labels_held(source: Source) -> LabelStorage:
    """How the labels are to be read there."""
    if isinstance(source, Path):
        return "text" if file_ending(source).startswith(".csv") else "typed"
    dialect = DIALECTS.get(source[0].dialect)
    return "typed" if dialect is None or dialect.booleans else "truth as numbers"


def columns_to_read(
    program: Program,
    used: tuple[str, ...],
    source: Source,
    label_column: str | None,
    columns: Mapping[str, str] | None,
    schema: str = "",
    every_feature: bool = False,
    beside: tuple[str, ...] = (),
    keys: tuple[str, ...] = (),
    encoder: RowEncoder | None = None,
) -> ColumnChoice:
    """The columns that the program uses and those `beside`; with `every_feature`, its other features as well."""
    choice = _column_choice(program, used, source, label_column, columns, schema, every_feature, beside, encoder)
    return replace(choice, keys=keys)


def _column_choice(
    program: Program,
    used: tuple[str, ...],
    source: Source,
    label_column: str | None,
    columns: Mapping[str, str] | None,
    schema: str,
    every_feature: bool,
    beside: tuple[str, ...],
    encoder: RowEncoder | None,
) -> ColumnChoice:
    least = _with(choose_columns(used, program, label_column, columns), beside)
    if not every_feature:
        return least
    most = _with(choose_columns(program.features, program, label_column, columns), beside)
    if not isinstance(source, Path):
        return most if can_be_read(*source, schema, most, encoder) else least
    there = set(column_names(source))
    pairs = zip(program.features, most.columns, strict=False)
    present = [feature for feature, column in pairs if feature in used or column in there]
    return _with(choose_columns(present, program, label_column, columns), beside)


def _with(choice: ColumnChoice, beside: tuple[str, ...]) -> ColumnChoice:
    return replace(choice, features=(*choice.features, *beside), columns=(*choice.columns, *beside))


@contextmanager
def fingerprint_beside(source: Source) -> Iterator[Callable[[], str | None]]:
    """The SHA-256 of a file, worked out on another core while its rows are compared. A database table has none."""
    if not isinstance(source, Path) or not source.is_file():
        yield lambda: None
        return
    before = _state(source)
    with ThreadPoolExecutor(1) as pool:
        hashed = pool.submit(_sha256, source)

        def fingerprint() -> str:
            digest = hashed.result()
            if _state(source) != before:
                raise BadInput(f"{source}: was changed while it was audited, audit it again")
            return digest

        yield fingerprint


def _state(path: Path) -> tuple[int, ...]:
    known = path.stat()
    return known.st_ino, known.st_size, known.st_mtime_ns


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def name_source(source: Source, error: BadInput) -> BadInput:
    """An error about a column, with its file or table."""
    where, message = source_name(source), str(error)
    return error if message.startswith(where) else BadInput(f"{where}: {message}")
