"""From text to tokens, as one engine takes it apart. What engines or their clients might see otherwise is refused.

Of dbt's templates the strict form has a plain config and the table's ref or source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql.lexis import Lexis, keeps_name

Kind: TypeAlias = Literal["word", "name", "text", "whole", "number", "sign", "source", "end"]

SIGNS = ("||", "<=", ">=", "<>", "->", "(", ")", ",", ".", ";", "=", "<", ">", "+", "-", "*", "/", "[", "]")

BRACE = "{{ '{' }}"
"""An opening brace inside a string or name, where dbt would take a bare one for a template."""

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?(?![0-9A-Za-z_.$])")
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_NO_LAYOUT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")
"""Characters that end a line for one engine and not for another."""

_CALLED = frozenset(("CAST", "EXP", "LEAST", "GREATEST", "CONCAT"))


class Token(NamedTuple):
    """A piece of text with its meaning: names and strings without their quotes and escapes."""

    kind: Kind
    text: str
    line: int
    key: str = ""
    """What the grammar compares: a word in capitals, a sign as it is; empty for everything else."""
    schema: str = ""
    """Of a dbt source."""


Template: TypeAlias = Callable[[str, int], tuple[Token | None, int]]
"""Reads a dbt template at a brace: its token, if it has one, and where it ends."""


@cache
def _plain(quote: str, signs: tuple[str, ...]) -> re.Pattern[str]:
    """Layout, and then a token that nothing before or after it can change.

    Whatever this does not match (escapes, comments, a word right before a quote) is read letter by letter. A
    carriage return ends a line comment in some engines and not in others, so it is not a layout.
    """
    alternatives = "|".join(re.escape(sign) for sign in (*signs, *SIGNS))
    return re.compile(
        r"([ \n\t]*)(?:"
        r"(?P<word>[A-Za-z_][A-Za-z0-9_]*)(?=[ \n\t(),.;=<>+*/\[\]-])"
        rf"|{quote}(?P<name>[^{quote}\\{{]+){quote}(?!{quote})"
        r"|'(?P<text>[^'\\{]*)'(?!')"
        rf"|(?P<number>{_NUMBER.pattern})"
        rf"|(?!--|/\*)(?P<sign>{alternatives})"
        r"|(?P<other>))"
    )


def tokens_of(text: str, lexis: Lexis, template: Template | None = None, comments: bool = True) -> list[Token]:
    """Every token of the text. In an expression, where a comment may swallow what comes after, there are no comments
    but those before the first token.
    """
    for piece in lexis.replaced:
        if piece in text:
            raise Unread(f"{piece!r}, which {lexis.engine} replaces before it reads the query")
    if _NO_TEXT.search(text):
        raise Unread("a NUL or half a surrogate pair")
    if template is not None and "\r" in text:
        raise Unread("a carriage return, which dbt replaces by a new line even in strings")
    found: list[Token] = []
    plain = _plain(lexis.quote, lexis.signs).match
    at, line, end = 0, 1, len(text)
    while at < end:
        match = plain(text, at)
        assert match is not None and match.lastgroup is not None  # noqa: S101, PT018 - `other` matches anywhere
        layout, content = match[1], match[match.lastgroup]
        if "\n" in layout:
            line += layout.count("\n")
        at = match.end()
        match match.lastgroup:
            case "sign":
                found.append(Token("sign", content, line, content))
            case "word" if not lexis.tight_calls or content.upper() not in _CALLED:
                found.append(Token("word", content, line, content.upper()))
            case "number":
                found.append(Token("whole" if content.isdigit() else "number", content, line))
            case "name" | "text" as kind:
                found.append(Token(kind, content, line))
                line += content.count("\n")
            case _ if at < end:
                at -= len(content)
                line, at = _other(text, at, line, lexis, template, comments, found)
    _refuse_names_that_change(lexis, found)
    return [*found, Token("end", "", line)]


def _other(
    text: str, at: int, line: int, lexis: Lexis, template: Template | None, comments: bool, found: list[Token]
) -> tuple[int, int]:
    """A comment or a token that is not plain, which is added to the others: the line and the place after it."""
    start = at
    if text.startswith(("--", "/*"), at):
        if found and not comments:
            raise Unread(f"line {line}: a comment in an expression, where it may swallow what comes after it")
        at = _after_comment(text, at, line, lexis, template is not None)
    else:
        token, at = _token(text, at, line, lexis, template)
        if token is not None:
            found.append(token)
        elif found:
            raise Unread(f"line {line}: a dbt config after the beginning of the query")
    return line + text.count("\n", start, at), at


def _refuse_names_that_change(lexis: Lexis, tokens: list[Token]) -> None:
    """PostgreSQL cuts a long name off, MariaDB writes a question mark for some letters: two names may become one."""
    names = {token.text for token in tokens if token.kind in ("name", "word", "source")}
    for name in names:
        if not keeps_name(lexis, name):
            raise Unread(f"the name {name[:40]!r}, which {lexis.engine} does not keep as it is")


def _token(text: str, at: int, line: int, lexis: Lexis, template: Template | None) -> tuple[Token | None, int]:
    """A token that is not plain: with escapes, beside something that may change it, or a template."""
    letter = text[at]
    if letter == lexis.quote:
        name, end = _quoted_text(text, at, line, lexis.quote, lexis.name_escapes, not lexis.name_escapes, template)
        if not name:
            raise Unread(f"line {line}: an empty name")
        return Token("name", name, line), end
    if letter == "'" or (lexis.escape_prefix and text.startswith(f"{lexis.escape_prefix}'", at)):
        return _string(text, at, line, lexis, template)
    if letter == "{" and template is not None:
        return template(text, at)
    if (word := _WORD.match(text, at)) is not None:
        _check_what_follows(text, word, line, lexis)
        return Token("word", word.group(), line, word.group().upper()), word.end()
    raise Unread(f"line {line}: the character {letter!r}, which is not part of the strict form")


def _check_what_follows(text: str, word: re.Match[str], line: int, lexis: Lexis) -> None:
    """`N'a'`, `U&"a"`, `a$b` and a letter beyond ASCII make something else of a word."""
    following = text[word.end() : word.end() + 1]
    if following == "'" and word.group() in lexis.before_quotes:
        return
    if following and (not following.isascii() or (following in "'\"`$@#:&" and not text.startswith("::", word.end()))):
        raise Unread(f"line {line}: the word {word.group()!r} right before {following!r}")
    if lexis.tight_calls and word.group().upper() in _CALLED and following != "(":
        raise Unread(f"line {line}: {word.group()} without its bracket, which {lexis.engine} may take for a function")


def _string(text: str, at: int, line: int, lexis: Lexis, template: Template | None) -> tuple[Token, int]:
    escapes = lexis.string_escapes
    if text[at] != "'":
        at, escapes = at + 1, {"\\": "\\"}
    value, end = _quoted_text(text, at, line, "'", escapes, lexis.doubled_quotes, template)
    if lexis.escape_prefix and not escapes and "\\" in value:
        raise Unread(f"line {line}: a backslash in a plain string, which a setting may make an escape")
    return Token("text", value, line), end


def _quoted_text(
    text: str,
    start: int,
    line: int,
    quote: str,
    escapes: Mapping[str, str],
    doubled: bool,
    template: Template | None,
) -> tuple[str, int]:
    """What is between quotes, and where it ends."""
    letters: list[str] = []
    at = start + 1
    while at < len(text):
        letter, following = text[at], text[at + 1 : at + 2]
        if letter == "\\" and escapes:
            if following not in escapes:
                raise Unread(f"line {line}: the escape \\{following}, which is not part of the strict form")
            letters.append(escapes[following])
            at += 2
        elif letter == quote:
            if following != quote:
                return "".join(letters), at + 1
            if not doubled:
                raise Unread(f"line {line}: two strings or names one after the other")
            letters.append(quote)
            at += 2
        elif letter == "{" and template is not None:
            if not text.startswith(BRACE, at):
                raise Unread(f"line {line}: a brace, which dbt may take for a template")
            letters.append("{")
            at += len(BRACE)
        else:
            letters.append(letter)
            at += 1
    raise Unread(f"line {line}: a string or name that does not end")


def _after_comment(text: str, at: int, line: int, lexis: Lexis, templates: bool) -> int:
    """Where a comment ends, if every engine and client agrees on that."""
    if text.startswith("--", at):
        if lexis.dashes_need_blank and text[at + 2 : at + 3] not in (" ", "\t", "\n", ""):
            raise Unread(f"line {line}: -- without a blank, which is arithmetic to {lexis.engine}")
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        body, after = text[at + 2 : end], end
        unclear = lexis.continued_comments and body.endswith("\\")
    else:
        end = text.find("*/", at + 2)
        if end < 0:
            raise Unread(f"line {line}: a comment that does not end")
        body, after = text[at + 2 : end], end + 2
        # /*! and /*+ are code; some engines nest comments; a quote or -- in one makes DuckDB rewrite later strings
        unclear = body.startswith(("!", "+", "M!", "/")) or any(mark in body for mark in ("/*", "--", *"'\"`$\\"))
        unclear = unclear or body.endswith("/")
    if unclear or _NO_LAYOUT.search(body) or (templates and "{" in body):
        raise Unread(f"line {line}: a comment that may be read as something else")
    return after


_PLAIN = r"[\w .:+-]+"
_LABELS = rf'\[(?:"{_PLAIN}"|[\w.+-]+)(?:, (?:"{_PLAIN}"|[\w.+-]+))*\]'

SCHEMA = re.compile(
    r"version: 2\n+models:\n"
    r"  - name: \w+\n"
    r"(?:    description: [A-Za-z][A-Za-z0-9 ,.;-]*\n)?"
    r"    columns:\n"
    r"(?:      - name: \w+\n"
    r"        data_tests:\n"
    r"          - not_null\n"
    rf"(?:          - accepted_values:\n              values: {_LABELS}\n              quote: (?:true|false)\n)?"
    r")+\n*"
)
"""A schema.yml that says names and tests, and nothing that dbt would run on the rows."""


_QUOTED_WORD = r"'([A-Za-z_][A-Za-z0-9_]*)'"
_TEMPLATE = re.compile(
    r"\{\{ (?:"
    r"(?P<config>config\(materialized='(?:view|table)'\))"
    rf"|ref\((?P<model>{_QUOTED_WORD})\)"
    rf"|source\((?P<schema>{_QUOTED_WORD}), (?P<table>{_QUOTED_WORD})\)"
    r") \}\}"
)


def dbt_template(text: str, at: int) -> tuple[Token | None, int]:
    """The template at a brace; anything but literals in it is a program of its own and refused."""
    line = text.count("\n", 0, at) + 1
    found = _TEMPLATE.match(text, at)
    if found is None:
        raise Unread(f"line {line}: a template that is not part of the strict form")
    if found["config"] is not None:
        return None, found.end()
    if found["model"] is not None:
        return Token("source", found["model"].strip("'"), line), found.end()
    return Token("source", found["table"].strip("'"), line, schema=found["schema"].strip("'")), found.end()


def refuse_other_schemas(content: bytes) -> None:
    """Refuse a schema.yml that could say more than names and tests: a hook there changes rows."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise Unread("schema.yml: is not UTF-8") from None
    if not SCHEMA.fullmatch(text.replace("\r\n", "\n")):
        raise Unread("schema.yml: says more than the columns and their tests, which could change rows (config, hooks)")
