"""Columns of a scored table as doubles, where features are words or dates: read as `gbfl score` reads them.

Every text of the table gets a code of its own, after the program's, and keeps it from batch to batch: a row that
differs is shown with the text it has. From a database a column comes converted as the SQL targets convert it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gbfl_compile.backends.sql.conditions import exact_column
from gbfl_compile.backends.sql.engines import DIALECTS
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.kinds import Codebook, Columns, Value, codebook, decode_value, recorded_marks
from gbfl_compile.ir.nodes import Kind, Program

if TYPE_CHECKING:
    from gbfl_compile.databases.base import Database

FETCHED: Mapping[tuple[str, Kind], str] = {
    ("postgres", "number"): "CAST({column} AS DOUBLE PRECISION)",
    ("mariadb", "number"): "CAST({column} AS DOUBLE)",
    ("mariadb", "category"): "CONVERT({column} USING utf8mb4)",
    ("duckdb", "timestamp"): "epoch_us({column})",
    ("postgres", "timestamp"): "CAST(EXTRACT(EPOCH FROM {column}) * 1000000 AS BIGINT)",
    ("clickhouse", "timestamp"): "toUnixTimestamp64Micro(toDateTime64({column}, 6))",
    ("spark", "timestamp"): "unix_micros({column})",
    ("datafusion", "timestamp"): "CAST(to_timestamp_micros({column}) AS BIGINT)",
}
"""How a column is fetched where its client would change what the SQL targets compare: float32 would come with fewer
digits than it has, a time in the zone of its session and not as microseconds since 1970."""


def fetched_column(database: Database, kind: Kind, column: str) -> str:
    """A quoted column as an expression whose value is what the SQL targets compare."""
    template = FETCHED.get((database.dialect, kind))
    if template is not None:
        return template.format(column=column)
    dialect = DIALECTS.get(database.dialect)
    return column if dialect is None or kind not in dialect.kinds else exact_column(dialect, kind, column)


def numbers_column(column: tuple[Any, ...], where: str) -> Any:
    """A column as doubles; NULL and NaN are missing. Text is refused even where it looks like a number."""
    import numpy as np

    if any(issubclass(kind, str | bytes) for kind in set(map(type, column))):
        text = next(value for value in column if isinstance(value, str | bytes))
        raise BadInput(f"{where}: {text!r} is not a number")
    try:
        return np.array(column, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadInput(f"{where}: is not a column of numbers: {error}") from None


@dataclass(slots=True)
class RowEncoder:
    """Turns the columns of batches into doubles, and says what the codes of texts mean."""

    program: Program
    marks: frozenset[str]
    codes: dict[str, dict[str, None]] = field(default_factory=dict)
    """Feature -> its texts in the order of their codes."""

    def kind(self, name: str) -> Kind:
        """The kind of a column; what is not a feature, such as a probability, is a number."""
        features = self.program.features
        return self.program.kind(features.index(name)) if name in features else "number"

    def book(self, features: tuple[str, ...]) -> Codebook:
        """The codes of these features' texts."""
        return Codebook(tuple(tuple(self.codes.get(name, ())) for name in features))

    def encode(self, frame: Any, where: str, first: int) -> Any:
        """A pandas table of values as one of doubles; `first` is how many rows came before."""
        import numpy as np
        import pandas as pd

        from gbfl_compile.tables.kinds import encode_rows, known_texts

        names = tuple(frame.columns)
        for name in names:
            if self.kind(name) == "category":
                self.codes[name] |= dict.fromkeys(known_texts(frame[name]))
        kinds = tuple(map(self.kind, names))
        columns = Columns(names, kinds, self.book(names), ((),) * len(names), (False,) * len(names))
        if not names:
            return frame
        matrix = encode_rows(frame, columns, where, self.marks, np.arange(first, first + len(frame)))
        return pd.DataFrame(dict(zip(names, matrix.T, strict=True)), index=range(len(frame)), copy=False)

    def encode_fetched(self, columns: Mapping[str, tuple[Any, ...]], where: str, first: int) -> Any:
        """The same for columns that a database gave: text is not a number there, and an integer may be a moment."""
        import pandas as pd

        kept, encoded = {}, {}
        for name, column in columns.items():
            place = f"{where}: column {name!r}"
            if self.kind(name) == "number":
                encoded[name] = numbers_column(column, place)
            elif self.kind(name) == "timestamp" and _has_integers(column):
                encoded[name] = [_microseconds(value, place) for value in column]
            else:
                kept[name] = pd.Series(column, dtype=object)
        encoded |= dict(self.encode(pd.DataFrame(kept), where, first).items())
        return pd.DataFrame({name: encoded[name] for name in columns})

    def value(self, name: str, number: float) -> Value:
        """A double of an encoded row as the table has it."""
        return decode_value(self.kind(name), number, tuple(self.codes.get(name, ())))


def row_encoder(program: Program) -> RowEncoder | None:
    """The encoder for a program with words or dates, or of a table with marks of missing values; None for any other."""
    from gbfl_compile.tables.kinds import MARKS

    if not program.kinds and not recorded_marks(program):
        return None
    texts = zip(program.features, codebook(program).texts, strict=True)
    marks = frozenset((*MARKS, *recorded_marks(program)))
    return RowEncoder(program, marks, {name: dict.fromkeys(own) for name, own in texts})


def _has_integers(column: tuple[Any, ...]) -> bool:
    kinds = {type(value) for value in column if value is not None}
    return bool(kinds) and all(issubclass(kind, int) and kind is not bool for kind in kinds)


def _microseconds(value: int | None, where: str) -> float:
    if value is None:
        return float("nan")
    if abs(value) > 2**53:
        raise BadInput(f"{where}: a moment {value} microseconds from 1970 is too far away to be exact")
    return float(value)
