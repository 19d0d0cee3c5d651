"""The state of reading: the tokens, the columns in scope, and what was met so far."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql.expected import ExpectedText
from gbfl_compile.checking.strict.sql.lexer import Kind, Token, tokens_of
from gbfl_compile.checking.strict.sql.lexis import Lexis
from gbfl_compile.checking.strict.sql.logic import Asked
from gbfl_compile.checking.strict.sql.values import Book, Value
from gbfl_compile.ir.nodes import Kind as FeatureKind

KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """select from with as case when then else end and or is not null cast true false create replace view table
        cross join lateral offset limit where group order by having union values distinct all any some in on using
        over default array user current_user session_user current_role current_catalog current_schema current_date
        current_time current_timestamp localtime localtimestamp rowid""",
    )
)
"""Words that are no names without quotes, or that mean something other than a column of that name."""

MOST_NESTED = 150
"""Expressions inside expressions: emitted artifacts go about twenty deep."""


@dataclass(slots=True)
class Cursor:
    """A place in the tokens. Mutable, because reading moves it; nothing outlives one call of a reader."""

    tokens: list[Token]
    lexis: Lexis
    expected: ExpectedText
    catalog: Catalog | None = None
    """What an engine's catalog writes in its own way, for a view that was read back from it."""
    position: int = 0
    scope: Mapping[str, Value] = field(default_factory=dict)
    """The columns an expression may name."""
    qualifiers: frozenset[tuple[str, ...]] = frozenset(((),))
    """What may come before a column's name."""
    used: set[str] = field(default_factory=set)
    """The columns the present item has named."""
    book: Book = field(default_factory=Book)
    nested: int = 0
    phrases: dict[str, list[Token]] = field(default_factory=dict)
    """The tokens of fixed pieces of SQL, taken apart once."""

    def __post_init__(self) -> None:
        """Repeat the end as far as anyone looks ahead."""
        self.tokens = [*self.tokens, self.tokens[-1], self.tokens[-1]]


Production: TypeAlias = Callable[[Cursor], Value | Asked]


@dataclass(frozen=True, slots=True)
class Catalog:
    """The productions a catalog adds to the grammar."""

    words: Mapping[str, Production] = field(default_factory=dict)
    """Functions, by their exact spelling."""
    after: Callable[[Cursor, Value | Asked], Value | Asked] | None = None
    """What may follow an operand: casts written `::type`."""
    keywords: frozenset[str] = frozenset()
    """Words that are no names, even without quotes, in lower case."""
    folds_names: bool = False
    """Whether an unquoted name may have capital letters and still be itself."""
    casts_moments: bool = False
    """Whether DATE '2024-02-29' is printed as CAST('2024-02-29' AS DATE)."""
    moments: Mapping[FeatureKind, tuple[str, str]] = field(default_factory=dict)
    """What is printed before and after the text of a moment instead, by its kind."""
    conversion_ends: Mapping[FeatureKind, str] = field(default_factory=dict)
    """What is printed after a converted column instead, by its kind."""
    prints_as: bool = True
    """Whether AS is printed before the name of a LATERAL subselect."""


def peek(at: Cursor, ahead: int = 0) -> Token:
    """The token so many places ahead, at most two."""
    return at.tokens[at.position + ahead]


def refuse(at: Cursor, wanted: str) -> NoReturn:
    """Say what was expected and what is there."""
    token = peek(at)
    shown = "the end" if token.kind == "end" else repr(token.text[:40])
    raise Unread(f"line {token.line}: expected {wanted}, found {shown}")


def take(at: Cursor, kind: Kind, wanted: str) -> Token:
    """The next token, which must be of this kind."""
    token = peek(at)
    if token.kind != kind:
        refuse(at, wanted)
    at.position += 1
    return token


def is_word(token: Token, word: str) -> bool:
    """Whether a token is this keyword, in capitals, small letters or both."""
    return token.key == word


def take_words(at: Cursor, words: str) -> bool:
    """Pass over these keywords if they come next."""
    for number, word in enumerate(words.split(" ")):
        if at.tokens[at.position + number].key != word:
            return False
    at.position += words.count(" ") + 1
    return True


def need_words(at: Cursor, words: str) -> None:
    """Pass over these keywords, which must come next."""
    if not take_words(at, words):
        refuse(at, words)


def take_sign(at: Cursor, sign: str) -> bool:
    """Pass over a sign if it comes next."""
    if at.tokens[at.position].key != sign:
        return False
    at.position += 1
    return True


def need_sign(at: Cursor, sign: str) -> None:
    """Pass over a sign, which must come next."""
    if not take_sign(at, sign):
        refuse(at, sign)


def take_phrase(at: Cursor, phrase: str) -> bool:
    """Pass over the tokens of a fixed piece of SQL if they come next. Words in capitals may come in small letters."""
    if phrase not in at.phrases:
        at.phrases[phrase] = tokens_of(phrase, at.lexis)[:-1]
    wanted = at.phrases[phrase]
    for number, token in enumerate(wanted):
        found = peek(at, number)
        same = found.text == token.text or (
            token.kind == "word" and token.text.isupper() and found.text.upper() == token.text
        )
        if found.kind != token.kind or not same:
            return False
    at.position += len(wanted)
    return True


def need_phrase(at: Cursor, phrase: str) -> None:
    """Pass over a fixed piece of SQL, which must come next."""
    if not take_phrase(at, phrase):
        refuse(at, phrase)


def is_name(at: Cursor) -> bool:
    """Whether a name comes next: in quotes, or without them where a catalog leaves them out."""
    token = peek(at)
    if token.kind == "name":
        return True
    if token.kind != "word" or at.catalog is None or not at.lexis.bare_names:
        return False
    lowered = token.text.lower()
    if lowered in KEYWORDS or lowered in at.catalog.keywords:
        return False
    return at.catalog.folds_names or lowered == token.text
