"""A temporary copy of a view's table, filled with rows that the table itself could hold.

The copy has the column types, collations and constraints of the table. A row that it refuses (NaN for an INTEGER, NULL
under NOT NULL, a value outside a CHECK) is a row the view never sees, and is not used against it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.view.computed import ComputedFeature, FillIn, computed_values
from gbfl_compile.auditing.view.domains import (
    around,
    below_the_last_decimal,
    can_hold,
    value_read,
    with_short_texts,
)
from gbfl_compile.auditing.view.places import UTC_LITERALS, are_members, as_compared
from gbfl_compile.auditing.view.view import View
from gbfl_compile.backends.sql.conditions import moment_text
from gbfl_compile.backends.sql.engines import DIALECTS
from gbfl_compile.backends.sql.text import string
from gbfl_compile.databases.base import ROW, Database, Missing
from gbfl_compile.databases.catalog import Catalog, Column, TableName, time_limit
from gbfl_compile.errors import BadInput, CannotRun, ConnectionLost, TimeLimitReached
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.kinds import Codebook, Value, codebook, decode_value
from gbfl_compile.ir.nodes import Kind, Program

COPY, STAGED, DOUBLES, PART = "gbfl_witnesses", "gbfl_staged", "gbfl_doubles", "gbfl_part"
NUMBER = "gbfl_staged_row"
"""The number of a staged row, a column beside those of the table."""

OWN_ROWS = 1000
"""Rows of the table itself that are run too."""

MOST_STATEMENTS = 4000
"""Refused rows are found by halving; a table that refuses nearly everything is given up."""


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows that the copy accepts: their numbers in the staging table, and the features as doubles, NaN for missing."""

    numbers: np.ndarray[Any, np.dtype[np.int64]]
    rows: Matrix
    columns: tuple[Column, ...]
    """The columns that were filled in."""
    values: tuple[tuple[Value, ...], ...] = ()
    """The features as Python has them, where some are words or dates."""
    refusal: str | None = None
    """Why the last refused row was refused."""
    by_copy: tuple[tuple[Column, ...], ...] = ()
    """The columns by the copy they belong to."""
    unreadable: int = 0
    """Rows left out because the program cannot take a value: a text among numbers, a date no calendar has."""


@dataclass(frozen=True, slots=True)
class TableCopies:
    """A copy of each table. Rows are staged first, one of each table per witness, and then put in in any selection."""

    database: Database
    features: tuple[Column | None, ...]
    """The column of each feature of the program, None where no table has one and the program does not use it."""
    copies: tuple[TableCopy, ...]
    program: Program
    filling: FillIn | None = None
    """How columns that are not features get their values, where features are computed from them."""

    def _kind(self, feature: int) -> Kind:
        return self.program.kind(feature)

    def names(self) -> dict[TableName, str]:
        """What goes in the place of each table."""
        return {name: copy.name for copy in self.copies for name in copy.named}

    def stage_witnesses(self, rows: Matrix, missing: Missing, book: Codebook) -> StagedRows:
        """Stage rows of doubles, each rounded to what the columns hold, and try them; texts are by their codes."""
        numbers = [column if self._kind(place) == "number" else None for place, column in enumerate(self.features)]
        if self.filling is not None:
            largest = np.inf if self.database.holds_infinity else np.finfo(np.float64).max
            rows = np.clip(self.filling.rows(rows), -largest, largest)
        rows = around(numbers, with_short_texts(numbers, rows))
        if not self.database.holds_infinity:  # a float32 past the largest one
            rows = rows[~np.isinf(rows).any(axis=1)]
        rows = below_the_last_decimal(
            numbers, rows[can_hold(self.features, rows, missing) & are_members(self.program, self.features, rows, book)]
        )
        self.database.insert(DOUBLES, [f"f{place}" for place in range(rows.shape[1])], rows, missing=missing)
        return self._together([copy.stage_witnesses(rows, book) for copy in self.copies])

    def stage_own_rows(self) -> StagedRows:
        """Stage some rows of the one table itself."""
        (copy,) = self.copies
        return self._together([copy.stage_own_rows()])

    def _together(self, staged: Sequence[StagedRows]) -> StagedRows:
        """The rows that every copy accepts."""
        numbers = staged[0].numbers
        for each in staged[1:]:
            numbers = np.intersect1d(numbers, each.numbers)
        rows = np.zeros((len(numbers), len(self.features)))
        for each, copy in zip(staged, self.copies, strict=True):
            places = np.searchsorted(each.numbers, numbers)
            for feature in copy.read_features():
                rows[:, feature] = each.rows[places, feature]
        rows = rows[:, : len(self.program.features)]
        columns = tuple(column for each in staged for column in each.columns)
        by_copy = tuple(each.columns for each in staged)
        refusal = next((each.refusal for each in staged if each.refusal), None)
        values, unreadable = self._values(staged, numbers), sum(each.unreadable for each in staged)
        return StagedRows(numbers, rows, columns, values, refusal, by_copy, unreadable)

    def _values(self, staged: Sequence[StagedRows], numbers: NDArray[np.int64]) -> tuple[tuple[Value, ...], ...]:
        """The features of rows as Python has them, each from the table that gives it."""
        if not self.program.kinds:
            return ()
        rows: list[list[Value]] = [[None] * len(self.program.features) for _ in numbers]
        for each, copy in zip(staged, self.copies, strict=True):
            for row, place in zip(rows, np.searchsorted(each.numbers, numbers).tolist(), strict=True):
                for feature in copy.read_features():
                    row[feature] = each.values[place][feature]
        return tuple(map(tuple, rows))

    def fill(self, staged: StagedRows, places: Sequence[int]) -> None:
        """Put a selection of the staged rows into the copies, in place of what they hold."""
        self.database.insert(PART, ["number"], staged.numbers[list(places)].astype(np.float64).reshape(-1, 1))
        for copy, columns in zip(self.copies, staged.by_copy, strict=True):
            copy.fill(columns)


@dataclass(frozen=True, slots=True)
class TableCopy:
    """The copy of one table."""

    database: Database
    catalog: Catalog
    table: TableName
    columns: tuple[Column, ...]
    """Of the table."""
    features: tuple[Column | None, ...]
    """The column of each feature that this table has."""
    program: Program
    name: str = COPY
    staged: str = STAGED
    fillers: Mapping[str, str] = field(default_factory=dict)
    """Values for columns that are not features, by their names in lower case."""
    keys: frozenset[str] = frozenset()
    """Columns that get the row's number whatever their type, in lower case."""
    named: tuple[TableName, ...] = ()
    """The names under which queries read it."""
    computed: tuple[ComputedFeature, ...] = ()
    """Features that are expressions over its columns."""
    own_values: frozenset[str] = frozenset()
    """Columns that get a value of the table itself, in lower case."""
    stays_empty: bool = False

    def read_features(self) -> list[int]:
        """The features whose values this table gives."""
        return [place for place, _ in self._feature_columns()] + [each.feature for each in self.computed]

    def stage_witnesses(self, rows: Matrix, book: Codebook) -> StagedRows:
        """Stage what was inserted as doubles, and try it."""
        chosen = [
            (column, self._value(f"f{place}", column))
            if self._kind(place) == "number"
            else (column, self._word(f"f{place}", column, place, rows[:, place], book))
            for place, column in self._feature_columns()
        ]
        for column in self.columns:
            if not column.generated and column.name not in {own.name for own, _ in chosen}:
                filler = self._filler(column)
                chosen += [] if filler is None else [(column, filler)]
        self._stage(chosen, f"{DOUBLES} gbfl_source", self.database.quote(ROW))
        return self._try_all([column for column, _ in chosen])

    def stage_own_rows(self) -> StagedRows:
        """Stage some rows of the table itself."""
        chosen = [(column, self.database.quote(column.name)) for column in self.columns if not column.generated]
        self._stage(
            chosen, f"{self.table.in_quotes(self.database)} gbfl_source LIMIT {OWN_ROWS}", "ROW_NUMBER() OVER () - 1"
        )
        return self._try_all([column for column, _ in chosen])

    def fill(self, columns: Sequence[Column]) -> None:
        """Put the rows whose numbers are in PART into the copy, in place of what it holds."""
        self.database.execute(self.catalog.empty.format(name=self.name))
        if not self.stays_empty:
            self._put(columns, f"{NUMBER} IN (SELECT number FROM {PART})")  # noqa: S608 - our own table

    def _kind(self, feature: int) -> Kind:
        return self.program.kind(feature)

    def _word(self, value: str, column: Column, feature: int, codes: Matrix, book: Codebook) -> str:
        """A word or date out of its code: one WHEN for each value that occurs, and NULL where it is missing."""
        kind, dialect = self._kind(feature), DIALECTS[self.database.dialect]
        whens = []
        for code in np.unique(codes[~np.isnan(codes)]).tolist():
            plain = decode_value(kind, code, book.texts[feature])
            if isinstance(plain, bool):
                literal = (("FALSE", "TRUE") if dialect.booleans else ("0", "1"))[plain]
            elif isinstance(plain, str):
                literal = string(dialect, plain)
            else:
                assert kind == "date" or kind == "timestamp"  # noqa: S101 - numbers have no words
                literal = string(dialect, moment_text(kind, int(code)))
            whens.append(f"WHEN {value} = {code!r} THEN {self._as_declared(literal, column, kind)}")
        return f"CASE {' '.join(whens)} ELSE NULL END" if whens else "NULL"

    def _as_declared(self, literal: str, column: Column, kind: Kind) -> str:
        dialect = self.database.dialect
        if dialect == "sqlite" or (dialect == "mariadb" and kind in ("category", "boolean")):  # which has no such CAST
            return literal
        return f"CAST({UTC_LITERALS.get((dialect, kind), '{}').format(literal)} AS {column.declared})"

    def _feature_columns(self) -> Iterator[tuple[int, Column]]:
        for place, column in enumerate(self.features):
            if column is not None:
                yield place, column

    def _value(self, value: str, column: Column) -> str:
        catalog = self.catalog
        if column.type.kind == "boolean" and "{type}" in catalog.value:
            return f"CAST({catalog.not_nan.format(value=value, type='INTEGER')} AS {column.declared})"
        if column.type.kind == "text":
            return catalog.text.format(value=value, type=column.declared)
        template = catalog.value if column.type.holds_nan else catalog.not_nan
        return template.format(value=value, type=column.declared)

    def _filler(self, column: Column) -> str | None:
        """A value for a column that is not a feature: the row's number, or what some row of the table has there."""
        row, catalog, key = self.database.quote(ROW), self.catalog, column.name.casefold()
        if key in self.fillers:
            return catalog.value.format(value=self.fillers[key], type=column.declared)
        own = f"(SELECT {self.database.quote(column.name)} FROM {self.table.in_quotes(self.database)} LIMIT 1)"  # noqa: S608
        if key in self.own_values:
            return own
        if key in self.keys and column.type.kind == "text":
            return catalog.text.format(value=row, type=column.declared)
        if column.type.most >= 2.0**31 - 1 and column.type.kind in ("integer", "double", "float32", "decimal"):
            return catalog.value.format(value=row, type=column.declared)
        if column.nullable:
            return None
        return own

    def _stage(self, chosen: Sequence[tuple[Column, str]], source: str, number: str) -> None:
        quote, catalog = self.database.quote, self.catalog
        columns = ", ".join([f"{number} AS {NUMBER}", *(f"{value} AS {quote(c.name)}" for c, value in chosen)])
        rounding = [f"{quote(column.name)} {column.declared}" for column, _ in chosen if self._may_round(column)]
        name = f"{self.staged} ({', '.join(rounding)})" if rounding else self.staged
        self.database.execute(catalog.drop.format(name=self.staged))
        self.database.execute(catalog.staging.format(name=name, query=f"SELECT {columns} FROM {source}"))  # noqa: S608

    def _may_round(self, column: Column) -> bool:
        """Whether a column must be staged as it is, because only the column itself shows what it makes of a number."""
        numbers = [own.name for place, own in self._feature_columns() if self._kind(place) == "number"]
        is_unknown = self.database.dialect == "mariadb" and column.type.kind == "other" and column.name in numbers
        return column.rounds or is_unknown

    def _put(self, columns: Sequence[Column], where: str) -> None:
        names = ", ".join(self.database.quote(column.name) for column in columns)
        self.database.execute(f"INSERT INTO {self.name} ({names}) SELECT {names} FROM {self.staged} WHERE {where}")  # noqa: S608

    def _try_all(self, columns: Sequence[Column]) -> StagedRows:
        """The staged rows that the copy accepts. One that it refuses is found by halving."""
        self.database.execute(self.catalog.empty.format(name=self.name))
        ((count,),) = self.database.fetch(f"SELECT COUNT(*) FROM {self.staged}")  # noqa: S608 - our own table
        accepted, parts = np.zeros(int(count), dtype=bool), []
        waiting, statements, refusal = [(0, int(count))] if count else [], 0, None
        while waiting:
            begin, end = waiting.pop()
            statements += 1
            if statements > MOST_STATEMENTS:
                raise CannotRun(f"the table refuses nearly every row: {refusal}")
            try:
                self._put(columns, f"{NUMBER} >= {begin} AND {NUMBER} < {end}")
                accepted[begin:end] = True
                parts.append((begin, end))
            except (TimeLimitReached, ConnectionLost):
                raise
            except CannotRun as error:
                refusal = str(error)
                middle = (begin + end) // 2
                waiting += [(middle, end), (begin, middle)] if end - begin > 1 else []
        numbers, rows, values, readable = self._read_back()
        if self.computed:
            names = [self.database.quote(column.name) for column in columns]
            values_of = computed_values(self.database, self.catalog, self.computed, self.staged, NUMBER, names, parts)
            for place, number in enumerate(numbers.tolist()):
                readable[place] &= number in values_of
                rows[place, [each.feature for each in self.computed]] = values_of.get(number, math.nan)
        keep = (
            accepted[numbers] & ~np.isinf(rows).any(axis=1) if not self.database.holds_infinity else accepted[numbers]
        )
        kept = keep & readable
        native = tuple(each for each, is_kept in zip(values, kept, strict=True) if is_kept) if values else ()
        return StagedRows(
            numbers[kept], rows[kept], tuple(columns), native, refusal, unreadable=int((keep & ~readable).sum())
        )

    def _read_back(self) -> tuple[NDArray[np.int64], Matrix, list[tuple[Value, ...]], NDArray[np.bool_]]:
        """The features of the staged rows as the table holds them, and which rows have nothing but such values."""
        catalog, quote = self.catalog, self.database.quote
        chosen = []
        for feature, column in self._feature_columns():
            template = {"text": "{value}", "boolean": catalog.truth_as_double}.get(column.type.kind, catalog.as_double)
            if self._kind(feature) != "number":
                template = as_compared(self.database.dialect, self._kind(feature), column)
            chosen.append(template.format(value=quote(column.name)))
        listed = ", ".join([NUMBER, *chosen])
        answers = self.database.fetch(f"SELECT {listed} FROM {self.staged} ORDER BY {NUMBER}")  # noqa: S608
        rows, readable = np.zeros((len(answers), len(self.features))), np.ones(len(answers), dtype=bool)
        native: list[list[Value]] = [[None] * len(self.features) for _ in answers] if self.program.kinds else []
        book = codebook(self.program)
        for place, (feature, column) in enumerate(self._feature_columns(), 1):
            kind, name = self._kind(feature), column.name
            holds_infinity = kind == "number" and column.type.kind not in ("text", "other")
            for number, row in enumerate(answers):
                try:
                    value, plain = value_read(kind, row[place], name, book, feature)
                except BadInput:
                    value, plain = math.nan, None
                    readable[number] = False
                readable[number] &= holds_infinity or not math.isinf(value)
                rows[number, feature] = value
                if native:
                    native[number][feature] = plain
        return np.array([int(row[0]) for row in answers], dtype=np.int64), rows, list(map(tuple, native)), readable


@contextmanager
def copied_tables(
    view: View,
    inputs: AuditInput,
    features: Sequence[Column | None],
    copies: Sequence[TableCopy],
    filling: FillIn | None = None,
) -> Iterator[TableCopies]:
    """The copies, while they are needed, in which nothing runs past the time limit of the audit."""
    with time_limit(view.database, view.catalog, inputs.time_limit) as database:
        made = [replace(copy, database=database) for copy in copies]
        for copy in made:
            database.execute(view.catalog.drop.format(name=copy.name))
            view.catalog.copy(database, copy.table, copy.name)
        try:
            yield TableCopies(database, tuple(features), tuple(made), inputs.program, filling)
        finally:
            for name in (name for copy in made for name in (copy.name, copy.staged)):
                with suppress(CannotRun):  # temporary tables end with the connection in any case
                    database.execute(view.catalog.drop.format(name=name))


def one_copy(view: View, features: Sequence[Column | None], program: Program) -> list[TableCopy]:
    """The copy of the table of a view that reads one table."""
    assert view.table is not None  # noqa: S101 - the caller has looked
    columns, named = view.table_columns, (view.table,)
    return [TableCopy(view.database, view.catalog, view.table, columns, tuple(features), program, named=named)]
