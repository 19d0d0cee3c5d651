"""Values of every kind as doubles: texts get codes and dates become days, so that rows are matrices of known columns.

A category's code is the place of its text among those the program mentions, from 1 on; 0 is any other text. A boolean
is 1 or 0. A date is its days and a timestamp its microseconds since 1970-01-01 (UTC). A missing value is NaN.
`Columns` are those of a table as it was learned from: names, kinds, and which text each code means.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, assert_never

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import TRUE, Atom, Clause, Interval, Kind, OneOf, Program

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Matrix

Value: TypeAlias = float | str | bool | datetime.date | None
"""A value in Python: a number, a text, a boolean, a date, a datetime, or None."""

EPOCH = datetime.date(1970, 1, 1)
EPOCH_TIME = datetime.datetime(1970, 1, 1)
DAY = 86_400_000_000
"""Microseconds of a day."""

MICROSECOND = datetime.timedelta(microseconds=1)

ANY_OTHER = 0.0
"""The code of a text that is not listed."""

EARLIEST, LATEST = (float((day - EPOCH).days) for day in (datetime.date.min, datetime.date.max))
"""The first and the last day that a date can be."""


LIMITS: Mapping[Kind, tuple[float, float]] = {"date": (EARLIEST, LATEST), "timestamp": (-(2.0**53), 2.0**53)}
"""The first and the last day, and the first and the last microsecond, that a value can be."""


@dataclass(frozen=True, slots=True)
class Codebook:
    """Which text of a feature has which code: `texts[feature][code - 1]`. More texts may follow the program's own."""

    texts: tuple[tuple[str, ...], ...]

    def code(self, feature: int, text: str) -> float:
        """The code of a text; 0 where it is not listed."""
        listed = self.texts[feature]
        return float(listed.index(text) + 1) if text in listed else ANY_OTHER

    def with_texts(self, texts: Sequence[tuple[str, ...]]) -> Codebook:
        """The book with more texts of each feature, which get codes that the texts before them do not have."""
        return Codebook(tuple(_merge(own, more) for own, more in zip(self.texts, texts, strict=True)))

    def with_text(self, feature: int, text: str) -> Codebook:
        """The book with one more text, which gets a code that the texts before it do not have."""
        if text in self.texts[feature]:
            return self
        longer = (*self.texts[feature], text)  # the texts before it keep their codes
        return Codebook((*self.texts[:feature], longer, *self.texts[feature + 1 :]))


def _merge(own: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    return (*own, *(text for text in others if text not in own))


def codebook(program: Program) -> Codebook:
    """The codes of the texts that a program mentions, in the order of their code points."""
    mentioned: list[set[str]] = [set() for _ in program.features]
    if not program.kinds:
        return Codebook(((),) * len(mentioned))
    for clause in program.clauses:
        for atom in clause.atoms:
            if isinstance(atom, OneOf):
                mentioned[atom.feature].update(atom.values)
    for feature, kind in enumerate(program.kinds):
        if kind == "boolean":
            mentioned[feature] = {TRUE}
    return Codebook(tuple(tuple(sorted(texts)) for texts in mentioned))


def other_text(listed: Iterable[str]) -> str:
    """A text that is none of these."""
    text, taken = "other", set(listed)
    while text in taken:
        text += "_"
    return text


def is_missing(value: Any) -> bool:
    """Whether a value is missing: None, NaN, pandas' NA and NaT."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas' NA has no truth value
        return True


def plain_value(kind: Kind, value: Any, name: str) -> float | str | None:
    """A value as the language compares it: a double, a text, or None where it is missing.

    >>> plain_value("date", datetime.date(1970, 1, 31), "opened")
    30.0
    """
    if is_missing(value):
        return None
    match kind:
        case "number":
            return _double(value)
        case "category":
            if not isinstance(value, str):
                raise BadInput(f"{name!r} is a category: {value!r} is a {type(value).__name__}, give text")
            return str.__str__(value)  # the text itself: str() of an Enum of texts is its name
        case "boolean":
            if type(value).__name__ not in ("bool", "bool_") and value not in (0, 1):
                raise BadInput(f"{name!r} is a boolean: {value!r} is neither true nor false")
            return TRUE if value else "false"
        case "date":
            return _days(value, name)
        case "timestamp":
            return _microseconds(value, name)
        case _:
            assert_never(kind)


def _double(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise BadInput(f"{value!r} is not a number that a double can hold") from None


def _days(value: Any, name: str) -> float:
    if not isinstance(value, datetime.date) or isinstance(value, datetime.datetime):
        raise BadInput(f"{name!r} is a date: {value!r} is a {type(value).__name__}, give a datetime.date")
    return float((value - EPOCH).days)


def _microseconds(value: Any, name: str) -> float:
    if not isinstance(value, datetime.datetime):
        raise BadInput(f"{name!r} is a timestamp: {value!r} is a {type(value).__name__}, give a datetime.datetime")
    if getattr(value, "nanosecond", 0):
        raise BadInput(f"{name!r}: {value!r} has nanoseconds, timestamps are compared in microseconds")
    if value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    micros = (value - EPOCH_TIME) // MICROSECOND
    if abs(micros) > 2**53:
        raise BadInput(f"{name!r}: {value!r} is too far from 1970 for exact microseconds")
    return float(micros)


def encode_row(program: Program, row: Sequence[Any], book: Codebook | None = None) -> list[float]:
    """A row as doubles; NaN is missing. Texts that the book does not list are any other text."""
    texts = codebook(program) if book is None else book
    encoded = []
    for feature, value in enumerate(row):
        plain = plain_value(program.kind(feature), value, program.features[feature])
        if isinstance(plain, str):
            plain = texts.code(feature, plain)
        encoded.append(math.nan if plain is None else plain)
    return encoded


def decode_value(kind: Kind, value: float, texts: Sequence[str] = ()) -> Value:
    """A double of an encoded row as Python has it: None where a word or date is missing, a number as it is."""
    if kind == "number":
        return value
    if math.isnan(value):
        return None
    match kind:
        case "category":
            return texts[int(value) - 1] if 1 <= value < len(texts) + 1 else other_text(texts)
        case "boolean":
            return 1.0 <= value < 2.0  # any other code is any other text, and so is false
        case "date" | "timestamp":
            return moment(kind, value)
        case _:
            assert_never(kind)


TRUE_TEXTS, FALSE_TEXTS = ("true", "1"), ("false", "0")
"""How a CSV file writes a boolean, in any letters."""


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


def decode_rows(program: Program, rows: Iterable[Sequence[float]], book: Codebook) -> list[list[Value]]:
    """Encoded rows as Python has them."""
    kinds = [program.kind(feature) for feature in range(len(program.features))]
    return [
        [decode_value(kind, value, texts) for kind, value, texts in zip(kinds, row, book.texts, strict=True)]
        for row in rows
    ]


def moment(kind: Literal["date", "timestamp"], value: float) -> datetime.date:
    """A number of days or microseconds since 1970-01-01 as a date or datetime; past the last one, that one."""
    first, last = LIMITS[kind]
    whole = math.floor(min(max(value, first), last))
    return EPOCH + datetime.timedelta(days=whole) if kind == "date" else EPOCH_TIME + whole * MICROSECOND


def as_interval(atom: Atom) -> Interval:
    """The atom where only intervals are supported."""
    if isinstance(atom, OneOf):
        raise BadInput(f"feature {atom.feature} is a category, and only numbers are supported here")
    return atom


def intervals_in(clause: Clause) -> tuple[Interval, ...]:
    """The atoms of a clause where only intervals are supported."""
    return tuple(map(as_interval, clause.atoms))


@dataclass(frozen=True, slots=True)
class Columns:
    """What is known of each column of a table that has words, dates or missing values."""

    features: tuple[str, ...]
    kinds: tuple[Kind, ...]
    book: Codebook
    """The known texts of each category, commonest first; their codes in a row are 1, 2, ..."""
    marks: tuple[tuple[str, ...], ...]
    """Texts that mean a missing value, as each category column has them."""
    whole: tuple[bool, ...]
    """Whether the values of a column are whole numbers; dates are."""

    @property
    def program_kinds(self) -> tuple[Kind, ...]:
        """The kinds as a program has them: none where all are numbers."""
        return () if set(self.kinds) == {"number"} else self.kinds

    def one_of(self, feature: int, texts: tuple[str, ...], *, negated: bool, if_missing: bool) -> OneOf:
        """An atom that answers a mark of a missing value as it answers a missing value: the table need not be cleaned.

        >>> Columns(("job",), ("category",), Codebook((("a", "b"),)), (("?",),), (False,)).one_of(
        ...     0, ("a",), negated=True, if_missing=False
        ... )
        OneOf(feature=0, values=('?', 'a'), negated=True, if_missing=False)
        """
        listed = (*texts, *self.marks[feature]) if negated != if_missing else texts
        return OneOf(feature, tuple(sorted(set(listed))), negated, if_missing)


@dataclass(frozen=True, slots=True)
class EncodedTable:
    """Rows of such a table as doubles: texts by their codes, NaN where a value is missing."""

    columns: Columns
    x: Matrix


def recorded_marks(program: Program) -> tuple[str, ...]:
    """The texts that meant a missing value in the table a program was mined from."""
    marks = [column.get("missing_texts", ()) for column in _recorded_columns(program)]
    return tuple(sorted({str(mark) for each in marks for mark in each}))


def recorded_texts(program: Program, name: str) -> tuple[str, ...]:
    """The texts that a category had in the table a program was mined from."""
    values = [column.get("values", ()) for column in _recorded_columns(program) if column.get("name") == name]
    return tuple(str(text) for each in values for text, *_ in each)


def _recorded_columns(program: Program) -> list[dict[str, Any]]:
    mining = program.metadata.get("mining")
    columns = mining.get("data", {}).get("columns", ()) if isinstance(mining, dict) else ()
    return [column for column in columns if isinstance(column, dict)]


def used_features(program: Program) -> tuple[bool, ...]:
    """Which features some clause tests: a table need not have the others."""
    mentioned = {atom.feature for clause in program.clauses for atom in clause.atoms}
    return tuple(feature in mentioned for feature in range(len(program.features)))
