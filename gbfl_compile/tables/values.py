"""Rows of words, dates and numbers as Python has them: out of a file, a DataFrame, a mapping or a sequence."""

from __future__ import annotations

import datetime
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.kinds import (
    ANY_OTHER,
    Codebook,
    Value,
    codebook,
    is_missing,
    plain_value,
    recorded_marks,
    used_features,
)
from gbfl_compile.ir.nodes import Kind, Program
from gbfl_compile.tables.batches import column_names
from gbfl_compile.tables.kinds import MARKS, is_mark
from gbfl_compile.tables.read import feature_rows, read_table, refuse_absent

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Matrix

TRUE_TEXTS, FALSE_TEXTS = ("true", "1"), ("false", "0")
"""How a CSV file writes a boolean, in any letters."""


def has_values(program: Program, source: Any) -> bool:
    """Whether rows are more than numbers: there are words or dates, texts that mean missing, or columns not needed."""
    return bool(program.kinds or recorded_marks(program)) or _lacks_unused(program, source)


def _lacks_unused(program: Program, source: Any) -> bool:
    """Whether a table has no column for a feature that no rule asks about."""
    unused = [name for name, used in zip(program.features, used_features(program), strict=True) if not used]
    if not unused or not (isinstance(source, str | os.PathLike) or hasattr(source, "columns")):
        return False
    there = column_names(Path(source)) if isinstance(source, str | os.PathLike) else [str(c) for c in source.columns]
    return not set(unused) <= set(there)


def encoded_rows(source: Any, program: Program) -> Matrix:
    """Rows of a table (a file, a DataFrame or a matrix of numbers) as float64, words and dates encoded."""
    if not has_values(program, source):
        return feature_rows(source, program.features)
    return encode_values(program, value_rows(source, program), codebook(program))


def coded_rows(source: Any, program: Program) -> tuple[Matrix, Codebook]:
    """The same, with a code of its own for every text of the table, and the book of these codes."""
    book = codebook(program)
    if not has_values(program, source):
        return feature_rows(source, program.features), book
    texts = [dict.fromkeys(listed) for listed in book.texts]
    values = value_rows(source, program)
    for feature, kind in enumerate(program.kinds):
        if kind == "category":
            texts[feature] |= dict.fromkeys(row[feature] for row in values if isinstance(row[feature], str))  # type: ignore[misc]
    book = Codebook(tuple(map(tuple, texts)))
    return encode_values(program, values, book), book


def encode_values(program: Program, rows: Sequence[Sequence[Value]], book: Codebook) -> Matrix:
    """Rows as doubles, texts by the codes of a book that may be long."""
    import numpy as np

    codes = [{text: float(code) for code, text in enumerate(listed, 1)} for listed in book.texts]
    matrix = np.empty((len(rows), len(program.features)), dtype=np.float64)
    for feature, name in enumerate(program.features):
        kind = program.kind(feature)
        for place, row in enumerate(rows):
            plain = plain_value(kind, row[feature], name)
            coded = codes[feature].get(plain, ANY_OTHER) if isinstance(plain, str) else plain
            matrix[place, feature] = np.nan if coded is None else coded
    return matrix


def value_rows(source: Any, program: Program) -> list[list[Value]]:
    """Rows of a table (a file, a DataFrame or a sequence of rows), values in the order of the program's features.

    An empty field of a CSV file is a missing value. Dates and timestamps may be ISO 8601 texts.
    """
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        words = tuple(name for f, name in enumerate(program.features) if program.kind(f) != "number")
        return _table_rows(read_table(path, words), program, str(path), from_file=True)
    if hasattr(source, "columns"):
        return _table_rows(source, program, "the table", from_file=False)
    return [value_row(row, program) for row in source]


def one_value_row(source: Any, program: Program, number: int = 1) -> tuple[list[Value], int]:
    """One row and how many there are: of a table the `number`-th, or a row by itself."""
    if isinstance(source, str | os.PathLike) or hasattr(source, "columns"):
        rows = value_rows(source, program)
        if not 1 <= number <= len(rows):
            where = source if isinstance(source, str | os.PathLike) else "the table"
            raise BadInput(f"{where}: has no row {number}, there are {len(rows)}")
        return rows[number - 1], len(rows)
    return value_row(source, program), 1


def value_row(source: Any, program: Program) -> list[Value]:
    """A mapping of names to values, or a sequence of one value per feature; None is missing."""
    if isinstance(source, Mapping) or hasattr(source, "to_dict"):
        named = dict(source.items())
        refuse_absent([str(name) for name in named], _used_names(program), "the row")
        source = [named.get(name) for name in program.features]
    if isinstance(source, str | bytes) or not hasattr(source, "__iter__"):
        raise BadInput("a row is a mapping of features to values, or a sequence of one value per feature")
    values = list(source)
    if len(values) != len(program.features):
        raise BadInput(f"the row has {len(values)} values, and there are {len(program.features)} features")
    return [
        read_value(program.kind(feature), value, name)
        for feature, (name, value) in enumerate(zip(program.features, values, strict=True))
    ]


def _used_names(program: Program) -> tuple[str, ...]:
    """The features that some rule asks about.."""
    used = zip(program.features, used_features(program), strict=True)
    return tuple(name for name, is_used in used if is_used)


def _table_rows(table: Any, program: Program, where: str, from_file: bool) -> list[list[Value]]:
    refuse_absent(list(table.columns), _used_names(program), where)
    marks = {*MARKS, *recorded_marks(program)} if from_file else None
    columns = [
        _column(table[name].tolist(), program.kind(feature), name, where, marks)
        if name in table.columns
        else [None] * len(table)
        for feature, name in enumerate(program.features)
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def _column(values: Sequence[Any], kind: Kind, name: str, where: str, marks: Collection[str] | None) -> list[Value]:
    """The values of a column; `marks` are the texts that mean missing in a file, None where it is none."""
    column = []
    for place, value in enumerate(values):
        try:
            written = marks is not None and isinstance(value, str)
            column.append(_written_value(kind, value, name, marks or ()) if written else read_value(kind, value, name))
        except BadInput as error:
            raise BadInput(f"{where}: row {place + 1}: {error}") from None
    return column


def _written_value(kind: Kind, text: str, name: str, marks: Collection[str]) -> Value:
    """A value as a file writes it. Only the empty text is a missing category: every other one may be a word."""
    if text == "" if kind == "category" else is_mark(text, marks):
        return None
    if kind != "number":
        return read_value(kind, text, name)
    try:
        return float(text)
    except ValueError:
        raise BadInput(f"{name!r} is a number: {text!r} is a text") from None


def read_value(kind: Kind, value: Any, name: str) -> Value:
    """A value as `evaluate` takes it; dates, timestamps and booleans may be written as texts."""
    if is_missing(value):
        return None
    match kind:
        case "number":
            if isinstance(value, str | bytes):
                raise BadInput(f"{name!r} is a number: {value!r} is a text")
            plain_value(kind, value, name)
            return float(value)
        case "category":
            pass
        case "boolean":
            value = _boolean(value)
        case "date" | "timestamp":
            value = _moment(kind, value, name)
        case _:
            assert_never(kind)
    plain_value(kind, value, name)  # which refuses what is of another kind
    checked: Value = value
    return bool(checked) if kind == "boolean" else checked


def _boolean(value: Any) -> Any:
    if isinstance(value, str) and value.lower() in (*TRUE_TEXTS, *FALSE_TEXTS):
        return value.lower() in TRUE_TEXTS
    return value


def _moment(kind: Kind, value: Any, name: str) -> Any:
    """An ISO 8601 text as a date or datetime; midnight as a date, and a date as midnight."""
    if isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(value)
        except ValueError:
            raise BadInput(f"{name!r} is a {kind}: {value!r} is not written as 2024-03-01") from None
    if kind == "date" and isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date()
    if kind == "timestamp" and isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return datetime.datetime.combine(value, datetime.time())
    return value
