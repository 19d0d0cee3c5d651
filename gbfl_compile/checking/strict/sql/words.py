"""Words, booleans, dates and timestamps of the strict form: columns converted in the one exact way, and their tests.

How each engine must convert a column is the checker's own table, which shares nothing with the emitter's. Each row
was seen to be exact on the engine itself: whatever the column's collation, in any session's time zone. Whatever is
written otherwise is not read.

A text is a code of its own feature, given when it is first met: a set of texts is then a few ranges of numbers, and
any text that is never met lies outside of them all. A boolean is 1 or not, a moment its days or microseconds.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql.cursor import (
    Cursor,
    is_name,
    need_phrase,
    need_sign,
    peek,
    take,
    take_phrase,
    take_sign,
)
from gbfl_compile.checking.strict.sql.logic import EVERY, Logic, Range, Span
from gbfl_compile.checking.strict.sql.values import (
    Book,
    Column,
    ExactFeature,
    Moment,
    Text,
    TextList,
    Truth,
    Value,
    Whole,
)
from gbfl_compile.ir.intervals import below
from gbfl_compile.ir.kinds import EPOCH, EPOCH_TIME, MICROSECOND
from gbfl_compile.ir.nodes import TRUE, Kind


@dataclass(frozen=True, slots=True)
class Conversion:
    """The fixed pieces of SQL around a column and around the text of a literal."""

    before: str
    after: str
    argument: str
    """The type of a function's argument."""
    literal: tuple[str, str] = ("", "")
    earliest: datetime.date = datetime.date.min
    latest: datetime.date = datetime.date.max
    """A literal outside of these is another day in some versions."""
    zone: str = ""
    """What the text of a moment must end in: without it the session's time zone would count."""


_AS_DATE = Conversion("CAST(", "AS DATE)", "DATE", ("DATE", ""))
_BOOLEAN = Conversion("CAST(", "AS BOOLEAN)", "BOOLEAN")
_SINCE, _UNTIL = datetime.date(1900, 1, 1), datetime.date(2299, 12, 31)

CONVERSIONS: Mapping[str, Mapping[Kind, Conversion]] = {
    "sqlite": {
        "category": Conversion("CAST(", "AS TEXT) COLLATE BINARY", "TEXT"),  # a plain CAST keeps NOCASE and RTRIM
        "boolean": Conversion("CAST(", "AS INTEGER)", "INTEGER"),
        "date": Conversion("CAST(", "AS TEXT) COLLATE BINARY", "TEXT"),  # ISO text
        "timestamp": Conversion("CAST(", "AS TEXT) COLLATE BINARY", "TEXT"),
    },
    "duckdb": {
        "category": Conversion("CAST(", "AS VARCHAR) COLLATE C", "VARCHAR"),  # else NOCASE or default_collation counts
        "boolean": _BOOLEAN,
        "date": _AS_DATE,
        "timestamp": Conversion("make_timestamp(epoch_us(", "))", "TIMESTAMP", ("TIMESTAMP", "")),
    },
    "postgres": {
        "category": Conversion("CAST(", 'AS TEXT) COLLATE "C"', "TEXT"),
        "boolean": _BOOLEAN,
        "date": _AS_DATE,
        "timestamp": Conversion("EXTRACT(EPOCH FROM", ")", "TIMESTAMP", ("EXTRACT(EPOCH FROM TIMESTAMP", ")")),
    },
    "mariadb": {
        "category": Conversion(
            "CAST(CONVERT(", "USING utf8mb4) AS BINARY)", "LONGTEXT CHARACTER SET utf8mb4"
        ),  # a text compared with bytes is compared by its bytes
        "boolean": Conversion("CAST(", "AS SIGNED)", "BOOLEAN"),
        "date": _AS_DATE,
        "timestamp": Conversion("CAST(", "AS DATETIME(6))", "DATETIME(6)", ("TIMESTAMP", "")),
    },
    "clickhouse": {
        "category": Conversion("toString(", ")", "String"),
        "boolean": Conversion("toBool(", ")", "Bool"),
        "date": Conversion("toDate32(", ")", "Date32", ("toDate32(", ")"), _SINCE, _UNTIL),
        "timestamp": Conversion(
            "toDateTime64(", ", 6)", "DateTime64(6)", ("toDateTime64(", ", 6, 'UTC')"), _SINCE, _UNTIL
        ),
    },
    "spark": {
        "category": Conversion("CAST(", "AS STRING) COLLATE UTF8_BINARY", "STRING"),
        "boolean": _BOOLEAN,
        "date": _AS_DATE,
        "timestamp": Conversion("timestamp_micros(unix_micros(", "))", "TIMESTAMP", ("TIMESTAMP", ""), zone=" UTC"),
    },
    "datafusion": {
        "category": Conversion("CAST(", "AS VARCHAR)", "VARCHAR"),
        "boolean": _BOOLEAN,
        "date": _AS_DATE,
        "timestamp": Conversion("to_timestamp_micros(", ")", "TIMESTAMP", ("to_timestamp_micros(", ")")),
    },
}

DOUBTFUL_NOT_IN = frozenset({"clickhouse"})
"""Where NULL NOT IN ('a') holds or does not, by a setting: transform_null_in."""


_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{0,5}[1-9])?")
"""Without zeros after the last digit: text sorts right only then."""


def conversion_of(at: Cursor, feature: int) -> Conversion | None:
    """How a feature must be converted; None where it is a number."""
    return CONVERSIONS[at.lexis.name].get(at.expected.kind(feature))


def converted_operand(at: Cursor) -> ExactFeature | Moment | None:
    """A converted column or the literal of a moment, if one comes next."""
    start = at.position
    for conversion in set(CONVERSIONS[at.lexis.name].values()):
        if take_phrase(at, conversion.before):
            column = _table_column(at)
            if column is not None and column.feature is not None:
                kind = at.expected.kind(column.feature)
                if CONVERSIONS[at.lexis.name].get(kind) == conversion and _take_end(at, conversion, kind):
                    at.used.add(column.name)
                    return ExactFeature(column.feature, column.name, kind)
        at.position = start
    return _literal(at)


def _table_column(at: Cursor) -> Column | None:
    """A column of the table, with or without what it belongs to where a catalog writes that."""
    parts: list[str] = []
    while is_name(at):
        parts.append(peek(at).text)
        at.position += 1
        if at.catalog is None or not take_sign(at, "."):
            break
    found = at.scope.get(parts[-1]) if parts and tuple(parts[:-1]) in at.qualifiers else None
    return found if isinstance(found, Column) else None


def _take_end(at: Cursor, conversion: Conversion, kind: Kind) -> bool:
    """Pass over what follows the column, as it is written or as the catalog prints it."""
    printed = None if at.catalog is None else at.catalog.conversion_ends.get(kind)
    return take_phrase(at, conversion.after) or (printed is not None and take_phrase(at, printed))


def _literal(at: Cursor) -> Moment | None:
    """`DATE '2024-02-29'` and what other engines write for it."""
    start = at.position
    for kind in ("date", "timestamp"):
        conversion = CONVERSIONS[at.lexis.name][kind]
        before, after = conversion.literal
        if before and take_phrase(at, before) and peek(at).kind == "text":
            text = take(at, "text", "a moment").text
            if not after or take_phrase(at, after):
                return Moment(kind, moment_of(kind, text, conversion))
        at.position = start
        if at.catalog is not None and at.catalog.casts_moments and take_phrase(at, "CAST(") and peek(at).kind == "text":
            text = take(at, "text", "a moment").text
            if take_phrase(at, f"AS {kind.upper()})"):
                return Moment(kind, moment_of(kind, text, conversion))
        at.position = start
        printed = ("", "") if at.catalog is None else at.catalog.moments.get(kind, ("", ""))
        if printed[1] and (not printed[0] or take_phrase(at, printed[0])) and peek(at).kind == "text":
            text = take(at, "text", "a moment").text
            if take_phrase(at, printed[1]):
                return Moment(kind, moment_of(kind, text, conversion))
        at.position = start
    return None


def moment_of(kind: Kind, text: str, conversion: Conversion) -> float:
    """The days or microseconds of a text in the one form that is written."""
    if not text.endswith(conversion.zone):
        raise Unread(f"the moment {text[:40]!r} without{conversion.zone}")
    plain = text.removesuffix(conversion.zone)
    if (_DATE if kind == "date" else _TIME).fullmatch(plain) is None:
        raise Unread(f"the {kind} {plain[:40]!r}, which is not written in the one way that every engine reads")
    try:
        moment = datetime.datetime.fromisoformat(plain)
    except ValueError:
        raise Unread(f"the {kind} {plain[:40]!r}, which no calendar has") from None
    if not conversion.earliest <= moment.date() <= conversion.latest:
        raise Unread(f"the {kind} {plain!r} is before {conversion.earliest} or after {conversion.latest}")
    number = (moment.date() - EPOCH).days if kind == "date" else (moment - EPOCH_TIME) // MICROSECOND
    if abs(number) > 2**53:
        raise Unread(f"the {kind} {plain!r} is too far from 1970 for exact microseconds")
    return float(number)


def compare_converted(at: Cursor, left: ExactFeature, sign: str, right: Value) -> Logic:
    """A converted column with a literal of its kind."""
    match left.kind, sign, right:
        case "category", "=" | "<>", Text(text):
            return _single(left.feature, _texts(at.book, left.feature, (text,), negated=sign == "<>"))
        case "category", "=", TextList("ANY", texts):
            return _single(left.feature, _texts(at.book, left.feature, texts, negated=False))
        case "category", "<>", TextList("ALL", texts):
            return _single(left.feature, _texts(at.book, left.feature, texts, negated=True))
        case "boolean", "=", Truth(truth) if at.lexis.booleans:
            return _single(left.feature, _texts(at.book, left.feature, (TRUE,), negated=not truth))
        case "boolean", "=", Whole(number) if not at.lexis.booleans and number in (0, 1):
            return _single(left.feature, _texts(at.book, left.feature, (TRUE,), negated=number == 0))
        case "date" | "timestamp", ">=" | "<", Moment(kind, number) if kind == left.kind:
            return _single(left.feature, _from(sign, number))
        case "date" | "timestamp", ">=" | "<", Text(text):
            conversion = CONVERSIONS[at.lexis.name][left.kind]
            if conversion.literal == ("", ""):
                return _single(left.feature, _from(sign, moment_of(left.kind, text, conversion)))
    raise Unread(f"line {peek(at).line}: a comparison {sign} of the {left.kind} {left.column!r} with something else")


def _from(sign: str, number: float) -> tuple[Range, ...]:
    return ((number, math.inf),) if sign == ">=" else ((-math.inf, below(number)),)


def one_of(at: Cursor, left: object, negated: bool) -> Logic:
    """`IN ('a', 'b')`, after its IN: texts and nothing else, never NULL."""
    if not isinstance(left, ExactFeature) or left.kind != "category":
        raise Unread(f"line {peek(at).line}: IN after something other than a converted word")
    need_sign(at, "(")
    texts = [take(at, "text", "a text").text]
    while take_sign(at, ","):
        texts.append(take(at, "text", "a text").text)
    need_sign(at, ")")
    doubtful = negated and at.lexis.name in DOUBTFUL_NOT_IN
    # where a setting decides about NULL, one of its two answers is kept as that of NaN: they must come out alike
    span = Span(_texts(at.book, left.feature, texts, negated), False, doubtful, doubtful)
    return Logic("all", ((left.feature, span),))


def is_null_converted(left: ExactFeature, negated: bool) -> Logic:
    """NULL, or not: the one missing value of a word or date."""
    return Logic("all", ((left.feature, Span((EVERY,) if negated else (), not negated, not negated, not negated)),))


def _single(feature: int, ranges: tuple[Range, ...]) -> Logic:
    """A comparison, which NULL makes unknown. There is no NaN among words and dates."""
    return Logic("all", ((feature, Span(ranges, False, False, False)),))


def _texts(book: Book, feature: int, texts: Iterable[str], negated: bool) -> tuple[Range, ...]:
    """The codes of the texts, or all numbers but these."""
    codes = sorted({book.code(feature, text) for text in texts})
    if not negated:
        return tuple((float(code), below(code + 1.0)) for code in codes)
    starts = [-math.inf, *(code + 1.0 for code in codes)]
    ends = [*(below(code) for code in codes), math.inf]
    return tuple((least, most) for least, most in zip(starts, ends, strict=True) if least <= most)


def need_argument_type(at: Cursor, feature: int) -> None:
    """The type that a function's argument must declare for a feature."""
    conversion = conversion_of(at, feature)
    need_phrase(at, at.lexis.double if conversion is None else conversion.argument)
