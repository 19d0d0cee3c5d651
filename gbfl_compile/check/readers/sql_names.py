"""Names and characters that an engine could take otherwise than they are read here: refused before anything is read.

Engines fold A to Z and nothing else, or more than that; PostgreSQL cuts long names; some end a comment at a carriage
return. Where that could matter the text is Unread.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from gbfl_compile.check.readers.sql_engines import Engine
from gbfl_compile.check.reading import Unread

UNCLEAR = re.compile(r"\r(?!\n)|[\0-\x08\x0b\x0c\x0e-\x1f\x7f\x85\u2028\u2029]")
"""Characters that end a line for some and not for others."""

OUTSIDE_QUOTES = re.compile(
    UNCLEAR.pattern
    + r"|(?![ \t\r\n])\s|[\u00ad\u200b-\u200f\u2060\ufeff]"  # space for some, part of a name for others
    + r"|/\*(?:[^*/]|\*(?!/)|/(?!\*))*/\*"  # a comment within a comment: some engines nest them
)
"""What is refused in a query but for its texts and quoted names."""

LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
UPPER = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")

LONGEST_NAME = {"postgres": 63, "redshift": 127}
"""Bytes of a name after which the engine cuts it, so that two names become one."""


WITHOUT_QUOTES = {
    "clickhouse": {"INF", "INFINITY", "NAN"},
    "oracle": {"UID", "USER", "ROWNUM", "LEVEL", "ROWID", "SYSDATE", "SYSTIMESTAMP", "ORA_ROWSCN"},
    **{name: {"UTC_DATE", "UTC_TIME", "UTC_TIMESTAMP", "ROWNUM"} for name in ("mariadb", "mysql")},
    **{name: {"USER", "SESSION_USER", "SYSTEM_USER"} for name in ("postgres", "redshift", "datafusion", "tsql")},
}
"""Words that an engine takes for a number or a function where they stand for themselves; sqlglot has them for names."""


def refuse_words_of_the_engine(engine: Engine, tokens: Sequence[Any]) -> None:
    """Refuse a column whose name means something else without its quotes."""
    words = WITHOUT_QUOTES.get(engine.name, set())
    for before, token in pairwise((None, *tokens)):
        if token is None or token.text.upper() not in words or _is_text(token) or token.token_type.name == "IDENTIFIER":
            continue
        if before is None or before.text != ".":
            raise Unread(f"{token.text} without quotes, which is no column to {engine.name}")


def folded_name(engine: Engine, name: str, quoted: bool) -> str:
    """What two names must differ in to be two names."""
    match engine.names:
        case "fold":
            return name.translate(LOWER)
        case "exact":
            return name
        case "lower" | "upper" if quoted:
            return name
        case "lower" | "upper" if not name.isascii():
            raise Unread(f"the name {name!r} without quotes: what case {engine.name} gives it is not certain")
        case "lower":
            return name.translate(LOWER)
        case "upper":
            return name.translate(UPPER)


def refuse_unclear_names(engine: Engine, names: Iterable[str]) -> None:
    """Refuse names the engine would cut, and two that are one or two according to who folds them."""
    seen: dict[str, str] = {}
    longest = LONGEST_NAME.get(engine.name)
    for name in names:
        if longest is not None and len(name.encode("utf-8", "surrogatepass")) > longest:
            raise Unread(f"the name {name[:40]!r}...: {engine.name} cuts names at {longest} bytes")
        if engine.names != "fold":
            continue
        key = folded_name(engine, name, quoted=True)
        wide = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
        if seen.setdefault(wide, key) != key:
            raise Unread(f"the names {seen[wide]!r} and {key!r}: whether {engine.name} has them for one is not certain")


def names_among(tokens: Iterable[Any]) -> Iterator[str]:
    """The texts of the tokens that could be names."""
    return (str(token.text) for token in tokens if not _is_text(token) and token.token_type.name != "NUMBER")


def _is_text(token: Any) -> bool:
    return bool(token.token_type.name.endswith("STRING"))


def refuse_unclear_lines(header: str) -> None:
    """Refuse a header that some engine would see end within a line."""
    if (found := UNCLEAR.search(header)) is not None:
        raise Unread(f"the character {found.group()!r}: it ends a line for some engines and not for others")


def refuse_unclear_characters(text: str, tokens: Iterable[Any]) -> None:
    """Refuse what may end a line, a name or a comment, but in quotes: there it is part of a text or a name."""
    quoted = [(token.start, token.end) for token in tokens if _is_text(token) or token.token_type.name == "IDENTIFIER"]
    start = 0
    for first, last in [*quoted, (len(text), len(text))]:
        if (found := OUTSIDE_QUOTES.search(text, start, first)) is not None:
            raise Unread(f"{found.group()[:40]!r} outside of quotes: engines take it in different ways")
        start = last + 1
    if "\0" in text:
        raise Unread("the character '\\x00': some engines end a text there")
