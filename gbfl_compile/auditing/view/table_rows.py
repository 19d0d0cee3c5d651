"""The rows of a view's table as they are now, in the program's terms, and which of them get another class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gbfl_compile.auditing.compare import moves_between
from gbfl_compile.auditing.region import frame_of
from gbfl_compile.auditing.story import RowMoves
from gbfl_compile.auditing.view.domains import value_read
from gbfl_compile.auditing.view.places import as_compared
from gbfl_compile.auditing.view.view import View
from gbfl_compile.checking.reading.evaluate import reading_labels
from gbfl_compile.checking.reading.nodes import Reading, Unread
from gbfl_compile.databases.catalog import Column, TableName
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import Matrix, evaluate_many
from gbfl_compile.ir.kinds import Codebook, codebook
from gbfl_compile.ir.nodes import Kind, Program

MOST_ROWS = 1_000_000
"""Of a table that are counted."""

Places = Sequence[tuple[TableName, Column] | None]
"""Where each feature is: a table and a column of it."""


@dataclass(frozen=True, slots=True)
class TableRows:
    """The features of a table's rows as they are now, and a key beside them."""

    name: str
    key: str | None
    keys: tuple[Any, ...]
    rows: Matrix
    is_nan: Matrix
    """Where a missing value is NaN and not NULL."""
    is_whole: bool
    """Whether these are all its rows."""
    book: Codebook
    """The codes of the texts that either side mentions; any other text has none."""
    words: Mapping[int, Sequence[Any]]
    """The values of features that are no numbers, as the database gives them."""

    def row(self, program: Program, place: int) -> tuple[list[float], Codebook]:
        """A row, and the book with its own texts."""
        row, book = self.rows[place].tolist(), self.book
        for feature, values in self.words.items():
            value = values[place]
            if isinstance(value, str) and program.kind(feature) == "category":
                book = book.with_text(feature, value)
                row[feature] = book.code(feature, value)
        return row, book


def rows_now(program: Program, view: View, table: TableName, places: Places, readings: Sequence[Reading]) -> TableRows:
    """The rows of the one table that has the features; Unread where a value is not what its feature takes."""
    database = view.database
    chosen = [
        _template(view, program.kind(feature), place[1]).format(value=database.quote(place[1].name))
        for feature, place in enumerate(places)
        if place is not None
    ]
    key = _key(view, table, places)
    listed = ", ".join([*chosen, *([] if key is None else [database.quote(key)])])
    name = table.in_quotes(database)
    raw = database.fetch(f"SELECT {listed} FROM {name} LIMIT {MOST_ROWS + 1}")  # noqa: S608 - names of the catalog
    rows = np.zeros((min(len(raw), MOST_ROWS), len(places)))
    is_nan = np.zeros(rows.shape, dtype=bool)
    book = codebook(program)
    for reading in readings if program.kinds else ():
        book = book.with_texts(reading.book)
    words: dict[int, Sequence[Any]] = {}
    for at, feature in enumerate(feature for feature, place in enumerate(places) if place is not None):
        values = [each[at] for each in raw[:MOST_ROWS]]
        if program.kind(feature) != "number":
            words[feature] = values
        rows[:, feature] = _as_doubles(program, feature, values, book)
        is_nan[:, feature] = np.isnan(rows[:, feature]) & np.array([value is not None for value in values], dtype=bool)
    keys = tuple(each[-1] for each in raw[:MOST_ROWS]) if key is not None else ()
    return TableRows(table.name, key, keys, rows, is_nan, len(raw) <= MOST_ROWS, book, words)


def _template(view: View, kind: Kind, column: Column) -> str:
    """How a column is read: words and dates as the rules compare them, anything else as a double."""
    if kind != "number":
        return as_compared(view.database.dialect, kind, column)
    catalog = view.catalog
    return {"text": "{value}", "boolean": catalog.truth_as_double}.get(column.type.kind, catalog.as_double)


def _as_doubles(program: Program, feature: int, values: Sequence[Any], book: Codebook) -> list[float]:
    """The values of a column; each that occurs is looked at once."""
    kind, name = program.kind(feature), program.features[feature]
    try:
        known = {value: value_read(kind, value, name, book, feature)[0] for value in dict.fromkeys(values)}
    except (BadInput, TypeError, ValueError) as error:
        raise Unread(f"the table holds a value that is no {kind}: {error}") from None
    return [known[value] for value in values]


def _key(view: View, table: TableName, places: Places) -> str | None:
    """A column of the table that the view passes on and that is no feature."""
    columns = view.layers.bases[table].columns if view.layers is not None and table in view.layers.bases else ()
    features = {place[1].name for place in places if place is not None}
    passed_on = set(view.columns or ())
    return next(
        (column.name for column in columns if column.name in passed_on and column.name not in features),
        None,
    )


def moved_rows(program: Program, readings: Sequence[Reading], rows: TableRows) -> tuple[RowMoves, int | None]:
    """The rows that get another class, and one of them: of the commonest move, with few missing values."""
    approved = evaluate_many(program, rows.rows, rows.book).labels
    deployed = approved.copy()
    missing = np.isnan(rows.rows)
    for reading in readings:
        nan = sorted(reading.nan_features or ())
        if reading.nan_features is None:
            fits = np.ones(len(rows.rows), dtype=bool)
        else:
            unequal = sorted(set().union(*(each.nan_features or () for each in readings)))
            wanted = np.isin(unequal, nan)
            here = rows.is_nan[:, unequal]
            fits = (~missing[:, unequal] | (here == wanted)).all(axis=1)
        if fits.any():
            in_codes = frame_of(program, reading, rows.book).reading
            deployed[fits] = reading_labels(in_codes, rows.rows[fits])
    counted = f"{rows.name} now" if rows.is_whole else f"the first {MOST_ROWS:,} of {rows.name} now"
    moves = replace(moves_between(approved, deployed), where=counted)
    if not moves.moves:
        return moves, None
    before, after, _ = moves.moves[0]
    places = np.flatnonzero((approved == before) & (deployed == after))
    return moves, int(min(places.tolist()[:1000], key=lambda place: (int(missing[place].sum()), place)))
