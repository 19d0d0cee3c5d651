"""Which kind each column of a table is, and its values as doubles: inferred with the reason, or as the user says.

Texts become codes, commonest first from 1 on; booleans 1 and 0; dates days and timestamps microseconds since
1970-01-01; a missing value NaN. Every step works on a column's different values, not on its rows.
"""

from __future__ import annotations

import datetime
import math
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from gbfl_compile.errors import BadInput, NotANumber
from gbfl_compile.ir.kinds import Codebook, Columns, Value, decode_value
from gbfl_compile.ir.nodes import TRUE, Kind
from gbfl_compile.ir.text import printable
from gbfl_compile.tables.conversion import DATE, NUMBER, TIME, TRUTH, convert, is_moment, is_number, text_of
from gbfl_compile.tables.csv_shape import MOSTLY, PADDED, number_hint
from gbfl_compile.tables.read import MISSING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gbfl_compile.ir.batch import Matrix

KINDS: tuple[Kind, ...] = get_args(Kind)

MARKS = (*MISSING, "?")
"""Texts that mean a missing value unless the user names others; empty and blank ones always do."""

MOST_TEXTS = 1000
"""How many different texts a category may have: more of them do not group the rows."""

LONGEST_TEXT = 1000
"""Characters of a text."""

STRAY = 0.5
"""Where more of the texts than this are numbers, a word among them is a mistake."""

WHEN_MINED = "give another --kind, or leave the column out with --drop"
"""The way out where a value is not of its column's kind, and the kinds are still to be chosen."""
AS_WRITTEN: Mapping[Kind, str] = {
    "category": "give texts, or whole numbers that a double holds",
    "boolean": "write true or false",
    "date": "write it as 2024-03-01",
    "timestamp": "write it as 2024-03-01 10:00:00",
}
"""The way out where the kind is the program's."""
CATEGORICAL = "its type is categorical"
"""Why numbers are a category: pandas or Arrow says that they are."""


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """What a column holds, why it got its kind, and how often each text occurs."""

    name: str
    kind: Kind
    why: str
    missing: int
    marks: tuple[str, ...]
    """Texts that mean a missing value, as they occur in it."""
    whole: bool
    texts: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    integers: int = 0
    """How many different values it has, where all of them are integers that no double holds for certain."""

    def as_json(self) -> dict[str, Any]:
        """For a program's metadata."""
        form: dict[str, Any] = {"name": self.name, "kind": self.kind, "why": self.why, "missing": self.missing}
        if self.marks:
            form["missing_texts"] = list(self.marks)
        if self.kind == "category":
            form["values"] = [[text, count] for text, count in zip(self.texts, self.counts, strict=True)]
        return form


@dataclass(frozen=True, slots=True)
class _Column:
    """A column by its different values: `values[code]` of each row, -1 where it is missing."""

    name: str
    where: str
    codes: NDArray[np.intp]
    values: tuple[Any, ...]
    places: NDArray[np.int64] | None

    def place(self, value: int) -> str:
        """The first row, from 1 on, that has the value of this number, as errors name it."""
        row = int((self.codes == value).argmax())
        return f"{self.where}: column {self.name!r}, row {int(row if self.places is None else self.places[row]) + 1}"

    def first(self, texts: Sequence[str]) -> tuple[str, str]:
        """The first of these texts in the table, after its place: values are in the order of their first rows."""
        number = min(map(self.values.index, texts))
        return self.place(number), self.values[number]


def marks_of(na: Sequence[str] | None) -> frozenset[str]:
    """The texts that mean a missing value: these, or the usual ones."""
    return frozenset(MARKS if na is None else na)


def is_mark(text: str, marks: Collection[str]) -> bool:
    """Whether a text means a missing value."""
    return not text.strip() or text in marks or text.strip() in marks


def na_flags(text: str, columns: Sequence[Sequence[Any]], marks: Collection[str]) -> str:
    """The options that add a text to those that mean a missing value in these columns: --na replaces the usual ones."""
    others = {value for column in columns for value in column if isinstance(value, str) and value.strip()}
    words = [text, *sorted({other.strip() for other in others if is_mark(other, marks)} - {text})]
    return " ".join(f"--na {shlex.quote(word)}" for word in words)


def missing_values(column: Any, marks: Collection[str]) -> NDArray[np.bool_]:
    """Which values of a column are missing, or texts that mean so."""
    means_missing = np.array(
        [isinstance(value, str) and is_mark(value, marks) for value in column.tolist()], dtype=bool
    )
    missing: NDArray[np.bool_] = np.asarray(column.isna(), dtype=bool) | means_missing
    return missing


def encode_table(
    table: Any,
    features: Sequence[str],
    where: str,
    *,
    kinds: Mapping[str, Kind] | None = None,
    marks: frozenset[str] = frozenset(MARKS),
    places: NDArray[np.int64] | None = None,
    limit: bool = True,
) -> tuple[Matrix, Columns, tuple[ColumnFacts, ...]]:
    """The columns of a pandas table as doubles, with what their codes mean and why each got its kind.

    `kinds` are those that the user chose; the others are inferred. `places` gives each row's place in its file. A
    column of too many texts is refused, unless `limit` leaves that to the caller.
    """
    wanted = dict(kinds or {})
    for name, kind in wanted.items():
        if name not in features:
            raise BadInput(f"--kind {name}={kind}: there is no feature of that name")
    encoded, facts = [], []
    for name in features:
        values, fact = _encode(table[name], name, where, wanted.get(name), marks, places)
        if limit and len(fact.texts) > MOST_TEXTS:
            raise BadInput(f"{where}: {too_many_texts(name, len(fact.texts))}")
        encoded.append(values)
        facts.append(fact)
    x = np.column_stack(encoded) if len(table) else np.empty((0, len(features)))
    return x, columns_of(facts), tuple(facts)


def columns_of(facts: Sequence[ColumnFacts]) -> Columns:
    """The columns that these facts describe."""
    return Columns(
        tuple(fact.name for fact in facts),
        tuple(fact.kind for fact in facts),
        Codebook(tuple((TRUE,) if fact.kind == "boolean" else fact.texts for fact in facts)),
        tuple(fact.marks if fact.kind == "category" else () for fact in facts),
        tuple(fact.whole for fact in facts),
    )


def kinds_text(facts: Sequence[ColumnFacts]) -> str:
    """Which column got which kind, on one line, and which values are missing how often."""
    parts = []
    for kind in KINDS:
        if names := [printable(fact.name) for fact in facts if fact.kind == kind]:
            parts.append(f"{kind}: {', '.join(names)}")
    if missing := [f"{printable(fact.name)} {fact.missing}" for fact in facts if fact.missing]:
        parts.append(f"missing: {', '.join(missing)}")
    return f"{'; '.join(parts)} (--kind COLUMN=KIND changes a kind)"


def known_texts(series: Any) -> tuple[str, ...]:
    """The different texts of a column."""
    texts = (text_of(value) for value in series.dropna().unique().tolist())
    return tuple(sorted({text for text in texts if text is not None}))


def encode_rows(
    table: Any,
    columns: Columns,
    where: str,
    marks: frozenset[str] = frozenset(MARKS),
    places: NDArray[np.int64] | None = None,
) -> Matrix:
    """The rows of another table with these columns; a text that they do not know has code 0.

    Of a category only the marks that the columns know are missing; every other text, the empty one too, is a text.
    """
    encoded = []
    for name, kind, texts, own in zip(columns.features, columns.kinds, columns.book.texts, columns.marks, strict=True):
        column, plain = _read_column(table[name], kind, name, where, marks, places)
        if kind == "category":
            code = {text: float(place) for place, text in enumerate(texts, start=1)}
            plain = [None if word in own else code.get(str(word), 0.0) for word in plain]
        encoded.append(_take(plain, column.codes))
    return np.column_stack(encoded) if len(table) else np.empty((0, len(columns.features)))


def column_values(series: Any, kind: Kind, name: str, where: str, marks: frozenset[str]) -> list[Value]:
    """The values of a column of another table as Python has them, read as `encode_rows` reads them."""
    column, plain = _read_column(series, kind, name, where, marks)
    values = [each if each is None or isinstance(each, str) else decode_value(kind, each) for each in plain]
    return [None if code < 0 else values[code] for code in column.codes.tolist()]


def _read_column(
    series: Any,
    kind: Kind,
    name: str,
    where: str,
    marks: frozenset[str],
    places: NDArray[np.int64] | None = None,
) -> tuple[_Column, list[float | str | None]]:
    """A column whose kind is known, and its different values; of a category every text is a value."""
    column = _by_value(series, name, where, places)
    return column, _plain_values(column, kind, None if kind == "category" else marks, AS_WRITTEN.get(kind))


def _encode(
    series: Any, name: str, where: str, wanted: Kind | None, marks: frozenset[str], places: NDArray[np.int64] | None
) -> tuple[Matrix, ColumnFacts]:
    column = _by_value(series, name, where, places)
    kind, why = (wanted, "asked for") if wanted is not None else _infer(column, marks, _is_categorical(series.dtype))
    plain = _plain_values(column, kind, marks)
    found = tuple(sorted({v for v in column.values if isinstance(v, str) and is_mark(v, marks)}))
    if kind != "category":
        values = _take(plain, column.codes)
        here = values[~np.isnan(values)]
        whole = bool((here == np.rint(here)).all())
        beyond = whole and bool((np.abs(here) >= 2.0**53).all())
        integers = len(column.values) if beyond and all(isinstance(value, int) for value in column.values) else 0
        return values, ColumnFacts(name, kind, why, int(np.isnan(values).sum()), found, whole, integers=integers)
    counts = np.bincount(column.codes[column.codes >= 0], minlength=len(plain))
    by_text: dict[str, int] = {}
    for text, count in zip(plain, counts.tolist(), strict=True):
        if text is not None:
            by_text[str(text)] = by_text.get(str(text), 0) + count
    _refuse_texts(by_text, name, where)
    texts = tuple(sorted(by_text, key=lambda text: (-by_text[text], text)))
    code = {text: float(place) for place, text in enumerate(texts, start=1)}
    values = _take([None if text is None else code[str(text)] for text in plain], column.codes)
    missing = int(np.isnan(values).sum())
    return values, ColumnFacts(
        name, "category", why, missing, found, False, texts, tuple(by_text[text] for text in texts)
    )


def _refuse_texts(by_text: Mapping[str, int], name: str, where: str) -> None:
    if long := next((text for text in by_text if len(text) > LONGEST_TEXT), None):
        raise BadInput(
            f"{where}: column {name!r} holds a text of {len(long)} characters, {LONGEST_TEXT} at most: leave the "
            "column out with --drop"
        )
    for text in by_text:
        if "\0" in text or any(0xD800 <= ord(letter) <= 0xDFFF for letter in text):
            raise BadInput(f"{where}: column {name!r} holds {text!r}, which is not a text for a database: replace it")


def too_many_texts(name: str, count: int) -> str:
    """The note on a column with more texts than a category may have."""
    return (
        f"column {name!r} has {count:,} different texts, {MOST_TEXTS:,} at most: leave it out with --drop, or put one "
        "text in place of all that are rare"
    )


def _by_value(series: Any, name: str, where: str, places: NDArray[np.int64] | None) -> _Column:
    import pandas as pd

    if series.dtype == object:
        types = {type(value) for value in series[series.notna()]}
        if bool in types and len(types) > 1:
            raise BadInput(f"{where}: column {name!r} holds booleans and other values: use one type")
    try:
        codes, values = pd.factorize(series, use_na_sentinel=True)
    except TypeError:
        raise BadInput(f"{where}: column {name!r} holds values that are not texts, numbers or dates") from None
    return _Column(name, where, codes, tuple(pd.Series(values).tolist()), places)


def _take(plain: Sequence[Any], codes: NDArray[np.intp]) -> Matrix:
    palette = np.array([math.nan if value is None else value for value in (*plain, None)], dtype=np.float64)
    return palette[codes]


def _is_categorical(dtype: Any) -> bool:
    """Whether a column is one of categories, of pandas or of Arrow."""
    return str(dtype) == "category" or str(dtype).startswith("dictionary<")


def _infer(column: _Column, marks: frozenset[str], categorical: bool) -> tuple[Kind, str]:
    """The kind of a column by its values, and the reason in a few words."""
    values = [value for value in column.values if not (isinstance(value, str) and is_mark(value, marks))]
    if not values:
        return "number", "it holds nothing"
    if all(isinstance(value, bool | np.bool_) for value in values):
        return "boolean", "its values are true and false"
    if categorical:
        return "category", CATEGORICAL
    if all(isinstance(value, str) for value in values):
        return _infer_text(column, values, marks)
    if all(isinstance(value, datetime.datetime) for value in values):
        return "timestamp", "its values are timestamps"
    if all(isinstance(value, datetime.date) and not isinstance(value, datetime.datetime) for value in values):
        return "date", "its values are dates"
    if all(is_number(value) for value in values):
        return "number", "its values are numbers"
    kinds = sorted({type(value).__name__ for value in values})
    if kinds and set(kinds) <= {"str", "int", "float"}:
        _refuse_stray(column, [value for value in column.values if isinstance(value, str)])
    way = "make texts or numbers of them" if len(kinds) == 1 else "use one type"
    raise BadInput(
        f"{column.where}: column {column.name!r} holds values of type {' and '.join(kinds)}: {way}, or "
        f"leave the column out with --drop {shlex.quote(column.name)}"
    )


def _infer_text(column: _Column, values: Sequence[str], marks: frozenset[str]) -> tuple[Kind, str]:
    numbers = [value for value in values if NUMBER.fullmatch(value)]
    if len(numbers) == len(values):
        if any(PADDED.fullmatch(value) for value in values):
            return "category", "its numbers begin with a zero: they are codes"
        return "number", "its texts are numbers"
    if len(numbers) > STRAY * len(values):
        _refuse_stray(column, [value for value in values if not NUMBER.fullmatch(value)])
    if all(value.strip().lower() in TRUTH for value in values):
        return "boolean", "its texts are true and false"
    if all(is_moment(value, DATE) for value in values):
        return "date", "its texts are dates"
    others = [value for value in values if not is_moment(value, DATE) and not is_moment(value, TIME)]
    if not others:
        return "timestamp", "its texts are timestamps"
    if len(others) < (1 - MOSTLY) * len(values):
        place, value = column.first(others)
        flags = na_flags(value, (column.values,), marks)
        raise BadInput(
            f"{place}: {value!r} is not a date, and nearly all others are: correct it, say {flags} if it means "
            f"missing, or --kind {shlex.quote(column.name)}=category"
        )
    return "category", "its values are texts"


def _refuse_stray(column: _Column, words: Sequence[str]) -> None:
    """Refuse the first word: among this many numbers it is most likely a mistake."""
    place, value = column.first(words)
    raise NotANumber(place, value, number_hint(value))


def _plain_values(
    column: _Column, kind: Kind, marks: Collection[str] | None, way_out: str | None = None
) -> list[float | str | None]:
    """Each different value of a column as its kind compares it: a double, a text, or None where it is missing."""
    plain: list[float | str | None] = []
    for number, value in enumerate(column.values):
        if marks is not None and isinstance(value, str) and is_mark(value, marks):
            plain.append(None)
            continue
        try:
            own = convert(value, kind)
        except (BadInput, OverflowError) as error:
            drop = ", or leave the column out with --drop" if way_out is None else ""
            raise BadInput(f"{column.place(number)}: {error}: put another value there{drop}") from None
        if own is None:
            if kind == "number":
                raise NotANumber(column.place(number), value, number_hint(value))
            raise BadInput(f"{column.place(number)}: {value!r} is not a {kind}: {way_out or WHEN_MINED}")
        plain.append(own)
    return plain
