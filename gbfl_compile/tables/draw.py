"""The rows and columns that are mined: some rows of a file of any size, or a whole table of the user's database.

A file is read twice, one batch at a time, and only the rows drawn are kept. Of a database's table come every column and
every row, names quoted. Which columns are features, as what kinds, is the user's choice; keys are left out.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.nodes import Kind
from gbfl_compile.tables.batches import column_names, decode, table_batches
from gbfl_compile.tables.csv_shape import category_hint, shown_text
from gbfl_compile.tables.kinds import MOST_TEXTS, ColumnFacts, too_many_texts
from gbfl_compile.tables.read import csv_options, feature_names, file_ending, pyarrow_part, reading, refuse_absent

if TYPE_CHECKING:
    from gbfl_compile.databases.base import Database

Places: TypeAlias = NDArray[np.int64]

OF_EACH_CLASS = 2
"""Rows used of each class at least: one to learn from, one to measure on."""
MOST_CLASSES = 100
CLASSES_ONLY = (
    f"it must hold classes, at most {MOST_CLASSES} of them, and no fractions; to learn bands of a number, make a "
    "column of them, in pandas: t['band'] = pandas.cut(t[NUMBER], 3).astype(str)"
)
"""What is wrong with a target that is a quantity, and the way out."""
FOLLOWED_CLASSES = 1000
"""A column with more values holds no classes and is refused later: not all of its values are counted here."""


@dataclass(frozen=True, slots=True)
class RowDraw:
    """The rows drawn, by their places from 0 in ascending order, and how many there were to draw from."""

    places: Places
    of: int


def draw(classes: Iterable[NDArray[Any]], most: int, seed: int, target: str = "y") -> RowDraw:
    """At most `most` rows, and two of each class among them, of a table whose classes come in blocks of any size.

    Every row gets a random number, in the order of rows, and those with the smallest are drawn: the draw does not
    depend on the blocks, nor the memory on the number of rows.
    """
    random, total = np.random.default_rng(seed), 0
    smallest, firsts = _Smallest(most), dict[Any, _Smallest]()
    for block in classes:
        lots, places = random.random(len(block)), np.arange(total, total + len(block))
        total += len(block)
        smallest.add(lots, places)
        for label, own in _by_class(block):
            if label in firsts or len(firsts) < FOLLOWED_CLASSES:
                firsts.setdefault(label, _Smallest(OF_EACH_CLASS)).add(lots[own], places[own])
    firm = np.concatenate([first.places() for first in firsts.values()]) if firsts else np.empty(0, dtype=np.int64)
    if len(firm) > most:
        if len(firsts) > MOST_CLASSES:
            raise BadInput(f"the target {target!r} has {len(firsts)} different values or more: {CLASSES_ONLY}")
        raise BadInput(f"--rows {most}: too few for two rows of each of the {len(firsts)} classes")
    others = smallest.places()
    others = others[~np.isin(others, firm)][: most - len(firm)]
    return RowDraw(np.sort(np.concatenate((firm, others))), total)


class _Smallest:
    """The rows with the smallest numbers so far."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lots: NDArray[np.float64] = np.empty(0)
        self._places: Places = np.empty(0, dtype=np.int64)

    def add(self, lots: NDArray[np.float64], places: Places) -> None:
        if len(self._lots) == self._most:  # most rows of a long table are none of these
            low = lots < self._lots[-1]
            lots, places = lots[low], places[low]
        if len(lots) == 0:
            return
        lots, places = np.concatenate((self._lots, lots)), np.concatenate((self._places, places))
        order = np.argsort(lots, kind="stable")[: self._most]
        self._lots, self._places = lots[order], places[order]

    def places(self) -> Places:
        """By their numbers."""
        return self._places


def _by_class(block: NDArray[Any]) -> Iterable[tuple[Any, NDArray[np.intp]]]:
    """Each class in a block and the places of its rows there; missing values are one more class, None."""
    import pandas as pd

    codes, labels = pd.factorize(block, use_na_sentinel=False)
    if not 0 < len(labels) <= FOLLOWED_CLASSES:
        return ()
    names = [None if pd.isna(label) else label for label in labels.tolist()]
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(names)))
    return zip(names, np.split(order, ends[:-1]), strict=True)


CSV_ENDINGS = (".csv", ".csv.gz")


def most_rows(path: Path) -> int:
    """An upper bound on a file's rows: for a CSV file, its lines."""
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


def drawn_rows(path: Path, target: str, most: int, seed: int, text: tuple[str, ...] = ()) -> tuple[Any, RowDraw]:
    """At most `most` rows of the file as a pandas DataFrame, and which they are.

    Of a CSV file, columns named in `text` are kept as they are written.
    """
    names = column_names(path)
    with reading(path):
        # without the target column nothing is drawn: the caller names the columns there are
        drawn = draw(_classes(path, target) if target in names else (), most, seed, target)
        if file_ending(path) in CSV_ENDINGS:
            return _csv_rows(path, names, drawn.places, text), drawn
        return _arrow_rows(path, names, drawn.places), drawn


def _classes(path: Path, target: str) -> Iterator[NDArray[Any]]:
    for batch in table_batches(path, (target,), text=(target,)):
        if hasattr(batch, "iloc"):
            yield batch[target].to_numpy()
        else:
            yield decode(batch.column(batch.schema.names.index(target))).to_numpy(zero_copy_only=False)


def _rows_in_batches(batches: Iterator[Any], places: Places) -> Iterator[tuple[Any, Places]]:
    """Each batch with its rows among `places`, counted from its first; nothing is read beyond the last."""
    first = used = 0
    for batch in batches:
        here = int(np.searchsorted(places, first + len(batch)))
        yield batch, places[used:here] - first
        first, used = first + len(batch), here
        if used == len(places):
            return


def _arrow_rows(path: Path, names: list[str], places: Places) -> Any:
    import pyarrow as pa

    batches = [batch.take(pa.array(rows)) for batch, rows in _rows_in_batches(table_batches(path, names), places)]
    return pa.Table.from_batches(batches).to_pandas()


def _csv_rows(path: Path, names: list[str], places: Places, as_text: tuple[str, ...]) -> Any:
    """The drawn rows as text, parsed as if they were the whole file: a column's type is that of the rows drawn."""
    import pandas as pd

    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(names)
    for batch, rows in _rows_in_batches(table_batches(path, names, text=names), places):
        writer.writerows(batch.iloc[rows].itertuples(index=False, name=None))
    text.seek(0)
    return pd.read_csv(text, **csv_options(names, as_text))


def read_database_table(url: str, table: str) -> Any:
    """All of a table, or of a view. `schema.table` names one in a schema."""
    import pandas as pd

    from gbfl_compile.databases import connect

    database = connect(url)
    try:
        columns = _columns(database, table)
        chosen = ", ".join(_selection(database, name, kind) for name, kind in columns.items())
        place = ".".join(database.quote(part) for part in _parts(table))
        rows = database.fetch(f"SELECT {chosen} FROM {place}")  # noqa: S608 - every name in it is quoted
    finally:
        database.close()
    return pd.DataFrame.from_records(rows, columns=list(columns))


SELECTIONS = {
    ("postgres", "character"): "CAST({column} AS text)",  # it is sent with the blanks that no comparison sees
    ("duckdb", "TIMESTAMP WITH TIME ZONE"): "make_timestamp(epoch_us({column}))",  # which needs pytz to be fetched
}
"""By engine and type, a column as the SQL targets compare it, where it does not come so."""


def _selection(database: Database, name: str, kind: str) -> str:
    template = SELECTIONS.get((database.dialect, kind), "{column}")
    return template.format(column=database.quote(name))


def _parts(table: str) -> list[str]:
    parts = table.split(".")
    if not all(parts):
        raise BadInput(f"--table {table}: write it as table, or schema.table")
    return parts


def _columns(database: Database, table: str) -> dict[str, str]:
    """The columns in order, name to type, as the engine's own catalogue has them."""
    schema, name = ([None, *_parts(table)])[-2:]
    if database.dialect == "sqlite":
        query = f"SELECT name, type FROM pragma_table_info({_text(database, name)})"  # noqa: S608 - quoted
    else:
        where = f"table_name = {_text(database, name)}"
        if schema is not None:
            where += f" AND table_schema = {_text(database, schema)}"
        query = (
            "SELECT column_name, data_type, table_schema FROM information_schema.columns "  # noqa: S608 - quoted
            f"WHERE {where} ORDER BY table_schema, ordinal_position"
        )
    columns = database.fetch(query)
    if not columns:
        raise BadInput(f"the database has no table {table!r}, or does not let you see its columns")
    if len({row[2:] for row in columns}) > 1:
        raise BadInput(f"there is a table {table!r} in several schemas: write schema.table")
    return {str(row[0]): str(row[1]) for row in columns}


def _text(database: Database, text: str | None) -> str:
    """A string literal. What would need an escape in any dialect is refused: no table is called that."""
    if text is None or any(letter in text for letter in "'\\\0") or not text.isprintable():
        raise BadInput(f"a table called {text!r} cannot be looked up in {database.version}: rename it, or make a view")
    return f"'{text}'"


Missing: TypeAlias = Literal["keep", "drop", "refuse"]

MANY_ROWS = 100
"""With fewer, values that are all different are no sign of a key."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which columns of a table are used, as what, and what means a missing value."""

    target: str
    drop: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    """These and no others, where there are any."""
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    na: tuple[str, ...] | None = None
    missing: Missing = "keep"

    def names(self, there: Sequence[str], where: str) -> tuple[str, ...]:
        """The features among the columns of a table."""
        if self.features:
            refuse_absent(there, (self.target, *self.features), where)
            if self.target in self.features:
                raise BadInput(f"{where}: --features names the target, {self.target!r}: leave it out there")
            if both := [name for name in self.features if name in self.drop]:
                raise BadInput(f"{where}: {both[0]!r} is both in --features and in --drop: leave it out of one")
            return self.features
        return feature_names(there, self.target, self.drop, where)

    def is_asked_for(self, name: str) -> bool:
        """Whether the column is named as a feature."""
        return name in self.features or name in self.kinds


def used_columns(
    x: Matrix, facts: Sequence[ColumnFacts], choice: Choice, of: int, where: str
) -> tuple[list[int], tuple[str, ...], tuple[str, ...]]:
    """The places of the columns to learn from, a note about each of the others, and which of those are keys."""
    kept, notes, keys = [], [], []
    for place, fact in enumerate(facts):
        many = len(fact.texts) > MOST_TEXTS
        if many and choice.is_asked_for(fact.name):
            raise BadInput(f"{where}: {too_many_texts(fact.name, len(fact.texts))}")
        if choice.is_asked_for(fact.name):
            kept.append(place)
        elif fact.missing == len(x):
            notes.append(f"column {fact.name!r} is empty and is left out")
        elif fact.kind == "category" and len(fact.texts) == len(x) - fact.missing >= MANY_ROWS:
            keys += [] if fact.missing else [fact.name]
            notes.append(_unlike_in_every_row(fact))
        elif many:
            notes.append(
                f"column {fact.name!r} has {len(fact.texts):,} different texts, {MOST_TEXTS:,} at most, and is left "
                "out; put one text in place of all that are rare to learn from it"
            )
        elif fact.kind == "number" and (
            fact.integers == len(x) >= MANY_ROWS or is_number_key(x[:, place], of, fact.name)
        ):
            keys.append(fact.name)
            notes.append(
                f"column {fact.name!r} has another number in every row: it is a key and left out; "
                f"--kind {shlex.quote(fact.name)}=number takes it"
            )
        else:
            kept.append(place)
    return kept, tuple(notes), tuple(keys)


def _unlike_in_every_row(fact: ColumnFacts) -> str:
    """A key; or dates and amounts in a form that is not read as such, which are not a key."""
    if (hint := category_hint(fact.texts)) and hint.startswith("write "):
        such_as = f"such as {shown_text(fact.texts)!r}"
        return f"column {fact.name!r} has another text in every row, {such_as}, and is left out; {hint}"
    return (
        f"column {fact.name!r} has another text in every row: it is a key and left out; "
        f"--kind {shlex.quote(fact.name)}=category takes it"
    )


KEY_NAMES = frozenset({"id", "ids", "key", "index", "nr", "no", "number", "row", "rowid", "rownames", "uid", "uuid"})
"""Last words of the names that keys have: `loan_id`, `customerID`, `Policy No`."""


def is_number_key(values: Matrix, of: int, name: str) -> bool:
    """Whether a column is a key of the `of` rows of a table: whole numbers, all different, named or ordered so."""
    if len(values) < MANY_ROWS or np.isnan(values).any() or (values != np.rint(values)).any():
        return False
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    is_named = bool(words) and words[-1].lower() in KEY_NAMES
    is_ascending = bool((np.diff(values) > 0).all())
    is_numbered = float(values.max() - values.min()) < 3 * of
    return (is_named or is_ascending or is_numbered) and len(np.unique(values)) == len(values)
