"""Words, booleans, dates and timestamps in SQL that people write: read only where the engine is certain to be exact.

Texts are equal when they are the same, whatever a column's collation has to say. Where the catalog says that a column
compares so by itself its comparison is read as it is; elsewhere the text must convert it in the one way that was seen
to be exact on the engine. A text is a code of its own feature, given when it is first met.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gbfl_compile.checking.general.sql.engines import Engine
from gbfl_compile.checking.general.sql.logic import Ranges, Truth, among, either, is_known, outside, tidy
from gbfl_compile.checking.general.sql.values import USES, Constant, Moment, Value, Word, describe, ends, note_use
from gbfl_compile.checking.reading.conditions import Comparison
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql.words import Conversion, moment_of
from gbfl_compile.ir.intervals import below
from gbfl_compile.ir.nodes import TRUE

UNKNOWN_TEXTS = (
    "it compares texts that may have other bytes than the catalog shows: the session that created it used a "
    "character set other than UTF-8, or a text has one of its own (_binary'…'). Create it again after SET NAMES utf8mb4"
)

EXACT: Mapping[str, str] = {
    "sqlite": "{} COLLATE BINARY",
    "duckdb": "{} COLLATE C",
    "postgres": 'CAST({} AS TEXT) COLLATE "C"',
    "mariadb": "CAST(CONVERT({} USING utf8mb4) AS BINARY)",
    "clickhouse": "toString({})",
}
"""How a column is compared exactly, whatever its type and collation: the way out that a refusal names."""

COLLATIONS: Mapping[str, frozenset[str]] = {
    "sqlite": frozenset(["BINARY"]),
    "duckdb": frozenset(["C"]),
    "postgres": frozenset(["C", "POSIX"]),
}
"""Collations by which texts are equal only when they are the same."""

PLAIN = Conversion("", "", "")
MOMENTS: Mapping[str, Conversion] = {
    "clickhouse": replace(PLAIN, earliest=datetime.date(1970, 1, 1), latest=datetime.date(2105, 12, 31))
}
"""Days that every type of an engine has; others hold any that a calendar has."""


def compare_word(engine: Engine, word: Word, comparison: Comparison, other: Value) -> Truth:
    """A word, boolean or moment compared with a constant."""
    note_use(word)
    match word.kind, other:
        case "category", Constant(str() as text) if comparison in ("==", "!="):
            _require_exact(engine, word)
            if "\\" in text:
                raise Unread(f"{describe(other)}: whether its backslash is an escape is not certain")
            held = code_range(word.code(text))
        case "boolean", Constant(bool() as truth) if comparison in ("==", "!="):
            held = code_range(word.code(TRUE))
            held = held if truth else outside(held)
        case "boolean", Constant(int() as whole) if (
            comparison in ("==", "!=") and whole in (0, 1) and engine.numbers_are_truths
        ):
            held = code_range(word.code(TRUE))
            held = held if whole else outside(held)
        case "timestamp", _ if word.by_day:
            return _among(word, _since(comparison, _day_of(engine, other) * DAY_LONG, DAY_LONG))
        case "timestamp", Constant(str() as text) if _is_midnight(engine, comparison, text):
            _require_zone(engine, word, False)
            return _among(word, _since(comparison, moment_of("timestamp", f"{text} 00:00:00", PLAIN)))
        case "date" | "timestamp", Constant(str() as text):
            _require_zone(engine, word, False)
            held = _since(comparison, moment_of(word.kind, text, MOMENTS.get(engine.name, PLAIN)))
            return _among(word, held)
        case "date" | "timestamp", Moment(kind, number, is_instant) if kind == word.kind:
            _require_zone(engine, word, is_instant)
            return _among(word, _since(comparison, number))
        case _:
            raise Unread(f"the {word.kind} {word.name} compared with {describe(other)}")
    return _among(word, held if comparison == "==" else outside(held))


DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _is_midnight(engine: Engine, comparison: Comparison, text: str) -> bool:
    """Whether the text of a day beside a timestamp is its midnight. To SQLite both are texts, and the longer one is
    larger.
    """
    known = engine.name in UNZONED or (engine.name == "sqlite" and comparison in (">=", "<"))
    return known and DAY.fullmatch(text) is not None


UTC = ("utc", "etc/utc")
ZONELESS: Mapping[str, re.Pattern[str]] = {
    "sqlite": re.compile(".*"),  # texts
    "duckdb": re.compile("timestamp"),
    "postgres": re.compile(r"timestamp(\(\d\))? without time zone"),
    "mariadb": re.compile(r"datetime(\(\d\))?"),
}
"""Types of moments that do not depend on a time zone, as the catalog writes them in small letters."""
ZONED: Mapping[str, re.Pattern[str]] = {
    "postgres": re.compile(r"timestamp(\(\d\))? with time zone"),
    "clickhouse": re.compile(r"datetime(?:\('(?P<zone>[^']*)'\)|64\(\d(?:, '(?P<fine_zone>[^']*)')?\))?"),
}
"""Types of moments beside which a text means what its own zone, the column's or the session's makes of it."""


def _require_zone(engine: Engine, word: Word, is_instant: bool) -> None:
    """Refuse to compare a moment with one that a column's or a session's time zone moves."""
    if word.kind != "timestamp":
        return
    declared = word.declared.casefold()
    declared = declared[9:-1] if declared.startswith("nullable(") else declared
    zoned = ZONED[engine.name].fullmatch(declared) if engine.name in ZONED else None
    if is_instant and zoned is not None:
        return
    if not is_instant and engine.name in ZONELESS and ZONELESS[engine.name].fullmatch(declared):
        return
    zone = None
    if not is_instant and zoned is not None and engine.name == "clickhouse":
        zone = zoned["zone"] or zoned["fine_zone"] or engine.zone
        if zone.casefold() in UTC:
            if not (zoned["zone"] or zoned["fine_zone"]) and (uses := USES.get()) is not None:
                uses.zoneless[word.name] = None
            return
    if is_instant or zoned is None:
        raise Unread(f"{word.name} ({word.declared}) compared with a moment with a time zone")
    way = INSTANTS[engine.name]
    raise Unread(
        f"{word.name} ({word.declared}) beside a text without a time zone, which is read in "
        f"{zone or 'that of the session'}: write {way}"
    )


INSTANTS = {
    "postgres": "TIMESTAMPTZ '2024-03-01 00:00:00+00'",
    "clickhouse": "toDateTime64('2024-03-01 00:00:00', 6, 'UTC')",
}
"""How a moment is written that is the same in every session."""
OFFSET = re.compile(r"(.*[0-9])([+-])([0-9]{2})(?::([0-9]{2}))?")


def _instant_of(text: str) -> Moment:
    """`2024-03-01 01:00:00+01`."""
    match = OFFSET.fullmatch(text)
    if match is None:
        raise Unread(f"the moment {text[:40]!r} without its offset from UTC, as in {INSTANTS['postgres']}")
    seconds = int(match[3]) * 3600 + int(match[4] or 0) * 60
    if seconds >= 16 * 3600:
        raise Unread(f"the moment {text[:40]!r}, whose offset from UTC is too large")
    number = moment_of("timestamp", match[1], PLAIN)
    return Moment("timestamp", number + (-seconds if match[2] == "+" else seconds) * 1e6, True)


def _require_exact(engine: Engine, word: Word) -> None:
    if not engine.known_texts:
        raise Unread(UNKNOWN_TEXTS)
    if not word.exact:
        way = EXACT.get(engine.name, "{}").format(word.name)
        raise Unread(
            f"{word.name} ({word.declared}) is compared by its type and collation, which may treat different texts as "
            f"equal: write {way}"
        )
    if not word.has_collation and (uses := USES.get()) is not None:
        uses.words[word.name] = None


def code_range(code: int) -> Ranges:
    """The numbers that mean one text."""
    return ((float(code), below(code + 1.0)),)


DAY_LONG = 86_400e6
"""Microseconds of a day."""


def _day_of(engine: Engine, other: Value) -> float:
    """The day that the day of a moment is compared with."""
    match other:
        case Moment("date", number):
            return number
        case Constant(str() as text) if DAY.fullmatch(text):
            return moment_of("date", text, MOMENTS.get(engine.name, PLAIN))
        case _:
            raise Unread(f"the day of a moment compared with {describe(other)}")


def _since(comparison: Comparison, number: float, size: float = 1.0) -> Ranges:
    """The whole days or microseconds that compare so, or the moments of days: `> d` is from the next one on."""
    match comparison:
        case ">=":
            return ((number, math.inf),)
        case ">":
            return ((number + size, math.inf),)
        case "<":
            return ((-math.inf, below(number)),)
        case "<=":
            return ((-math.inf, below(number + size)),)
        case "==":
            return ((number, below(number + size)),)
        case "!=":
            return outside(((number, below(number + size)),))


def _among(word: Word, held: Ranges) -> Truth:
    """NULL is unknown. There is no NaN among words and moments, and it is answered as NULL is."""
    held = tidy(held)
    return Truth(among(word.feature, held, False, False), among(word.feature, outside(held), False, False))


def word_is_null(word: Word) -> Truth:
    """`x IS NULL`."""
    note_use(word)
    return is_known(among(word.feature, (), True, True))


def word_truth(engine: Engine, word: Word) -> Truth:
    """A boolean column where SQL expects a condition."""
    if word.kind != "boolean":
        raise Unread(f"the {word.kind} {word.name} where a condition is expected")
    return compare_word(engine, word, "==", Constant(True))


def with_collation(engine: Engine, value: Value, name: str, is_quoted: bool) -> Value:
    """`value COLLATE name`."""
    as_written = name if is_quoted or engine.name != "postgres" else name.lower()
    known = as_written if engine.name == "postgres" else as_written.upper()
    if not isinstance(value, Word) or value.kind not in ("category", "date", "timestamp"):
        raise Unread(f"{describe(value)} with a collation")
    if known not in COLLATIONS.get(engine.name, ()):
        raise Unread(f"{value.name} COLLATE {name}, which may treat different texts as equal")
    if value.pads and not value.cast:
        raise Unread(f"{value.name} ({value.declared}), which ignores blanks at the end: write {EXACT[engine.name]}")
    return replace(value, exact=True, has_collation=True)


TEXT_TYPES = frozenset(["TEXT", "VARCHAR"])
TRUTH_TYPES: Mapping[str, frozenset[str]] = {
    "sqlite": frozenset(["INT", "BIGINT"]),
    "mariadb": frozenset(["BIGINT"]),
    "duckdb": frozenset(["BOOLEAN"]),
    "postgres": frozenset(["BOOLEAN"]),
}
"""Types to which a boolean is cast and stays one."""


def cast_word(engine: Engine, end: Value, to: Any) -> Value:
    """CAST of a word or moment, or of the text of one; every other cast of one is refused."""
    name = getattr(getattr(to, "this", None), "name", str(to))
    plain = not to.expressions and not to.args.get("values")
    charset = str(to.args["kind"].this).lower() if name == "CHARACTER_SET" and to.args.get("kind") else None
    match end:
        case Word(kind="category") if engine.name == "mariadb" and plain:
            if charset == "utf8mb4" and not end.cast:
                return replace(end, cast=True)
            if (charset == "binary" or name == "BINARY") and end.cast:
                return replace(end, exact=True)
        case Word(kind="category") if name in TEXT_TYPES and plain and engine.name in COLLATIONS:
            return replace(end, cast=True)
        case Word(kind="category") if name in TEXT_TYPES and plain and to.args.get("nullable"):
            return end
        case Word(kind="boolean") if name in TRUTH_TYPES.get(engine.name, ()) and plain:
            return end
        case Word(kind="date") if name == "DATE" and plain and engine.name != "sqlite":
            return end
        case Word(kind="date" | "timestamp") if name in TEXT_TYPES and plain and engine.name == "sqlite":
            return end
        case Word(kind="timestamp") if name == "DATE" and plain and engine.name in ("duckdb", "postgres"):
            _require_zone(engine, end, False)
            return replace(end, by_day=True)
        case Constant(str() as text) if name == "DATE" and plain and engine.name != "sqlite":
            return Moment("date", moment_of("date", text, MOMENTS.get(engine.name, PLAIN)))
        case Constant(str() as text) if name in ("TIMESTAMP", "DATETIME") and plain and engine.name in UNZONED:
            return Moment("timestamp", moment_of("timestamp", text, PLAIN))
        case Constant(str() as text) if name == "TIMESTAMPTZ" and plain and engine.name == "postgres":
            return _instant_of(text)
        case Constant(str() | None) if name in TEXT_TYPES and plain:
            return end
    raise Unread(f"{describe(end)} cast to {to}")


UNZONED = frozenset(["postgres", "duckdb", "mariadb"])
"""Engines whose TIMESTAMP '…', or DATETIME, is read in no time zone."""


def is_of_words(end: Value, type_name: str) -> bool:
    """Whether a cast is one of a word or moment, or makes a moment of a text."""
    return isinstance(end, Word | Moment) or (
        isinstance(end, Constant) and isinstance(end.value, str) and type_name in MOMENT_TYPES
    )


MOMENT_TYPES = frozenset(["DATE", "TIMESTAMP", "DATETIME", "TIMESTAMPTZ"])


def word_call(engine: Engine, name: str, value: Value, *rest: Value) -> Value | None:
    """ClickHouse's functions around a word or the text of a moment; None where it is something else."""
    if engine.name != "clickhouse":
        return None
    match name, value, rest:
        case "toDateTime", Constant(str() as text), (Constant("UTC"),) if "." not in text:
            return Moment("timestamp", moment_of("timestamp", text, MOMENTS["clickhouse"]), True)
        case "toDateTime64", Constant(str() as text), (Constant(int() as digits), Constant("UTC")) if (
            0 <= digits <= 6 and len(text.partition(".")[2]) <= digits
        ):
            return Moment("timestamp", moment_of("timestamp", text, MOMENTS["clickhouse"]), True)
        case "toString", Word(kind="category"), ():
            return replace(value, exact=True)
        case "toBool", Word(kind="boolean"), ():
            return value
        case "toDate32", Word(kind="date"), ():
            return value
        case "toDate" | "toDate32", Constant(str() as text), ():
            return Moment("date", moment_of("date", text, MOMENTS["clickhouse"]))
    return None


def doubtful_in(engine: Engine, value: Value, truth: Truth) -> Truth:
    """IN of a word: whether NULL is not in a list is up to a setting of ClickHouse, and both answers must do.

    One of the two is kept as that of NaN, which no word is.
    """
    words = [end for end in ends(value) if isinstance(end, Word)]
    if engine.name != "clickhouse" or not words:
        return truth
    if not isinstance(value, Word):
        raise Unread("IN on a choice between words, whose answer depends on a setting (transform_null_in)")
    return Truth(truth.true, either((truth.false, among(value.feature, (), False, True))))


def is_text_array(node: Any) -> bool:
    """PostgreSQL's (ARRAY['a'::character varying, …])::text[], which changes no text."""
    if type(node).__name__ != "Cast" or node.to.this.name != "ARRAY":
        return False
    inner = node.to.expressions
    return len(inner) == 1 and inner[0].this.name in TEXT_TYPES and not inner[0].expressions
