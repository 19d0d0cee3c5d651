"""Rows of words, dates and numbers as Python has them: out of a file, a DataFrame, a mapping or a sequence.

A `Palette` keeps the values of a column with their own types, so that rows of codes can become a table like the
original.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.kinds import (
    Codebook,
    Columns,
    Value,
    codebook,
    decode_value,
    encode_values,
    read_value,
    recorded_marks,
    used_features,
)
from gbfl_compile.ir.nodes import Kind, Program
from gbfl_compile.tables.batches import column_names
from gbfl_compile.tables.conversion import text_of
from gbfl_compile.tables.frames import named_table
from gbfl_compile.tables.kinds import MARKS, ColumnFacts, column_values, encode_table
from gbfl_compile.tables.read import feature_rows, file_ending, read_table, refuse_absent

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Matrix


def has_values(program: Program, source: Any) -> bool:
    """Whether rows are more than numbers: words, dates, texts that mean missing, or not every column."""
    return bool(program.kinds or recorded_marks(program)) or _lacks_unused(program, source)


def _lacks_unused(program: Program, source: Any) -> bool:
    """Whether a table, or a row with names, has no value for a feature that no rule asks about."""
    unused = [name for name, used in zip(program.features, used_features(program), strict=True) if not used]
    if not unused:
        return False
    if isinstance(source, str | os.PathLike):
        there = column_names(Path(source))
    elif hasattr(source, "columns"):
        there = list(source.columns)
    elif isinstance(source, Mapping) or hasattr(source, "to_dict"):
        there = [str(name) for name in dict(source.items())]
    else:
        return False
    return not set(unused) <= set(there)


def encoded_rows(source: Any, program: Program) -> Matrix:
    """Rows of a table (a file, a DataFrame or a matrix of numbers) as float64, words and dates encoded."""
    source = named_table(source)
    if not has_values(program, source):
        return feature_rows(source, program.features)
    return encode_values(program, value_rows(source, program), codebook(program))


def coded_rows(source: Any, program: Program) -> tuple[Matrix, Codebook]:
    """The same, with a code of its own for every text of the table, and the book of these codes."""
    book, source = codebook(program), named_table(source)
    if not has_values(program, source):
        return feature_rows(source, program.features), book
    texts = [dict.fromkeys(listed) for listed in book.texts]
    values = value_rows(source, program)
    for feature, kind in enumerate(program.kinds):
        if kind == "category":
            texts[feature] |= dict.fromkeys(row[feature] for row in values if isinstance(row[feature], str))  # type: ignore[misc]
    book = Codebook(tuple(map(tuple, texts)))
    return encode_values(program, values, book), book


def value_rows(source: Any, program: Program) -> list[list[Value]]:
    """Rows of a table (a file, a DataFrame or a sequence of rows), values in the order of the program's features.

    A table is read as `score` reads it: an empty field of a CSV file is a missing value, and a number, date or boolean
    may be written as text.
    """
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        table = read_table(path, program.features)
        if file_ending(path).startswith(".csv"):
            table = table.where(table != "")
        return _table_rows(table, program, str(path))
    source = named_table(source)
    if hasattr(source, "columns"):
        return _table_rows(source, program, "the table")
    return [value_row(row, program) for row in source]


def one_value_row(source: Any, program: Program, number: int = 1) -> tuple[list[Value], int]:
    """One row and how many there are: of a table the `number`-th, or a row by itself."""
    source = named_table(source)
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
    """The features that some rule asks about."""
    used = zip(program.features, used_features(program), strict=True)
    return tuple(name for name, is_used in used if is_used)


def _table_rows(table: Any, program: Program, where: str) -> list[list[Value]]:
    used = _used_names(program)
    refuse_absent(list(table.columns), used, where)
    marks = frozenset((*MARKS, *recorded_marks(program)))
    columns: list[list[Value]] = []
    for feature, name in enumerate(program.features):
        try:
            columns.append(column_values(table[name], program.kind(feature), name, where, marks))
        except (BadInput, LookupError, AttributeError):  # it is not there, or twice, or holds something else
            if name in used:
                raise
            columns.append([None] * len(table))
    return [list(row) for row in zip(*columns, strict=True)]


@dataclass(frozen=True, slots=True)
class Palette:
    """One column's type, and for a category the value that each code means, in that type."""

    dtype: Any
    values: Any = None
    """A pandas array: `values[code - 1]`; None where the column is not a category."""
    mark: bool = False
    """Whether one more value at the end is what the table has in place of a missing one, such as "?"."""
    spelling: Spelling | None = None
    """How the table writes numbers, dates or truth values where it has texts; None where a model gets the values."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """The text of each value of a column, and of a missing one."""

    dtype: Any
    texts: Mapping[float, str]
    missing: str | None


def palettes_of(table: Any, facts: Sequence[ColumnFacts], *, typed: bool = True) -> tuple[Palette, ...]:
    """The palette of each column that is described; a table that is not `typed` is a CSV file, where all is text."""
    return tuple(_palette(table[fact.name], fact, typed) for fact in facts)


def _palette(column: Any, fact: ColumnFacts, typed: bool) -> Palette:
    import pandas as pd

    spelling = _spelling(column, fact) if typed and fact.kind != "category" else None
    if fact.kind in ("date", "timestamp"):
        values = column.dropna()
        is_text = len(values) and isinstance(values.iloc[0], str)
        return Palette(np.dtype("M8[us]") if is_text else column.dtype, spelling=spelling)
    if fact.kind != "category":
        return Palette(column.dtype, spelling=spelling)
    first: dict[str, Any] = {}
    for value in column.dropna().unique().tolist():
        first.setdefault(str(text_of(value)), value)
    originals = [first.get(text, text) for text in fact.texts]
    mark = len(fact.marks) == 1 and not column.isna().any()
    originals += fact.marks if mark else ()
    if all(isinstance(value, str) for value in originals) and column.dtype == object:
        return Palette(column.dtype, pd.array(originals, dtype=pd.Series(["text"]).dtype), mark)
    return Palette(column.dtype, pd.Series(originals).astype(column.dtype).array, mark)


def _spelling(column: Any, fact: ColumnFacts) -> Spelling | None:
    """How the table writes the values of this column, where it writes texts; of several ways the first."""
    import pandas as pd

    if getattr(column.dtype, "kind", "O") in "fiubM":
        return None
    own = [value for value in column.dropna().unique().tolist() if value not in fact.marks]
    if not own or not all(isinstance(value, str) for value in own):
        return None
    x, _, _ = encode_table(pd.DataFrame({fact.name: own}), (fact.name,), "the table", kinds={fact.name: fact.kind})
    missing = fact.marks[0] if len(fact.marks) == 1 and not column.isna().any() else None
    return Spelling(column.dtype, dict(zip(x[::-1, 0].tolist(), own[::-1], strict=True)), missing)


def other_forms(palettes: Sequence[Palette]) -> list[tuple[Palette, ...]]:
    """How else the same table may have been given to a model: values instead of their texts, then words otherwise."""
    values = tuple(replace(each, spelling=None) for each in palettes)
    first = [values] if any(each.spelling is not None for each in palettes) else []
    return [*first, *_forms_of_words(values)]


def _forms_of_words(palettes: Sequence[Palette]) -> list[tuple[Palette, ...]]:
    """Gaps instead of marks, pandas categories, or both."""
    gaps = tuple(replace(each, values=each.values[:-1], mark=False) if each.mark else each for each in palettes)
    forms = [gaps, *(tuple(_as_category(each) for each in form) for form in (tuple(palettes), gaps))]
    return [form for place, form in enumerate(forms) if not any(form is earlier for earlier in forms[:place])]


def _as_category(palette: Palette) -> Palette:
    import pandas as pd

    if palette.values is None or not len(palette.values) or isinstance(palette.dtype, pd.CategoricalDtype):
        return palette
    values = pd.Series(palette.values).astype("category").array
    return replace(palette, dtype=values.dtype, values=values)


def as_table(columns: Columns, palettes: Sequence[Palette], x: Matrix) -> Any:
    """The rows as a DataFrame with the columns' own names and types, as a model was trained on."""
    import pandas as pd

    return pd.DataFrame(
        {
            name: _palette_column(columns, palettes[place], place, np.ascontiguousarray(x[:, place]))
            for place, name in enumerate(columns.features)
        }
    )


def _palette_column(columns: Columns, palette: Palette, place: int, values: Matrix) -> Any:
    import pandas as pd

    missing = np.isnan(values)
    kind = columns.kinds[place]
    if palette.spelling is not None:
        return _texts(palette.spelling, kind, values)
    if kind == "category":
        codes = np.where(missing, len(palette.values) if palette.mark else 0, values).astype(np.int64) - 1
        return pd.api.extensions.take(palette.values, codes, allow_fill=True)
    if kind == "number":
        return _numbers(values, palette.dtype, bool(missing.any()))
    if kind == "boolean":
        if palette.dtype == bool and not missing.any():
            return values >= 1.0
        truth = np.where(missing, None, values >= 1.0)  # type: ignore[call-overload]  # numpy's booleans include no None
        return pd.array(truth, dtype=palette.dtype) if str(palette.dtype) in ("boolean", "category") else truth
    unit = "D" if kind == "date" else "us"
    times = np.where(missing, np.iinfo(np.int64).min, np.where(missing, 0, values).astype(np.int64)).view(f"M8[{unit}]")
    if getattr(palette.dtype, "kind", "O") == "M":
        moments = pd.Series(times.astype("M8[us]"))
        zone = getattr(palette.dtype, "tz", None)
        return moments.dt.tz_localize("UTC").astype(palette.dtype) if zone else moments.astype(palette.dtype)
    return times.astype(object)


def _numbers(values: Matrix, dtype: Any, has_missing: bool) -> Any:
    """Numbers in the column's own type; doubles where that type holds no missing value, or was text."""
    if getattr(dtype, "kind", "O") in "iub" and not has_missing and isinstance(dtype, np.dtype):
        return values.astype(dtype)
    return values


def _texts(spelling: Spelling, kind: Kind, values: Matrix) -> Any:
    """Values as the table writes them; those that it does not have, as they are written in general."""
    import pandas as pd

    distinct, places = np.unique(values, return_inverse=True)
    own: list[str | None] = []
    for value in distinct.tolist():
        if np.isnan(value):
            own.append(spelling.missing)
        else:
            own.append(spelling.texts.get(value) or str(text_of(decode_value(kind, value)) or value))
    return pd.array(np.array(own, dtype=object)[places], dtype=spelling.dtype)
