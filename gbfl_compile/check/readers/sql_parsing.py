"""A SQL text cut into statements, and each of them as sqlglot's nodes. What sqlglot does not take is Unread."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import zip_longest
from typing import Any

from gbfl_compile.check.readers.sql_chains import refuse_chains
from gbfl_compile.check.readers.sql_engines import Engine
from gbfl_compile.check.readers.sql_names import refuse_unclear_characters, refuse_words_of_the_engine
from gbfl_compile.check.readers.sql_type_names import refuse_types_of_others
from gbfl_compile.check.reading import Unread

LONGEST_TEXT = 8 * 2**20

UNDERLINED = re.compile(r"\x1b\[[0-9;]*m")
"""How sqlglot marks a place in its errors, for terminals."""


def statements(engine: Engine, text: str) -> list[list[Any]]:
    """The tokens of each statement, cut at the semicolons."""
    from sqlglot import tokenize
    from sqlglot.tokens import TokenType  # type: ignore[attr-defined]  # it is there, and says so nowhere

    if len(text) > LONGEST_TEXT:
        raise Unread(f"{len(text)} characters of SQL, at most {LONGEST_TEXT} are read")
    if engine.executed_comments and ("/*!" in text or "/*M!" in text):
        raise Unread("a comment that the engine may execute: /*! … */")
    tokens = parsed(lambda: tokenize(text, read=engine.parsed_as))
    refuse_unclear_characters(text, tokens)
    if engine.float_is_single and any(token.text.upper() == "FLOAT" for token in tokens):
        raise Unread(f"FLOAT, which has 32 bits in {engine.name}: write DOUBLE")
    if not engine.null_after:
        _refuse_tests_after(engine, tokens)
    parts: list[list[Any]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            parts.append([])
        else:
            parts[-1].append(token)
    for part in parts:
        refuse_types_of_others(engine, part)
        refuse_words_of_the_engine(engine, part)
        refuse_chains(part)
    return [part for part in parts if part]


def _refuse_tests_after(engine: Engine, tokens: list[Any]) -> None:
    """Refuse `x ISNULL`, which sqlglot takes for a test everywhere; `isNull(x)` is a function."""
    for token, following in zip_longest(tokens, tokens[1:]):
        if token.text.upper() in ("ISNULL", "NOTNULL") and (following is None or following.text != "("):
            raise Unread(f"{token.text} after a value, which is no test in {engine.name}: write IS NULL")


def parsed(parse: Callable[[], Any]) -> Any:
    """What sqlglot makes of a text; its errors, of many kinds, are Unread."""
    try:
        return parse()
    except RecursionError:
        raise Unread("nested too deeply") from None
    except Exception as error:
        words = " ".join(UNDERLINED.sub("", str(error)).split())
        raise Unread(f"is not SQL that is understood: {words[:160]}") from None


def nodes_of(engine: Engine, tokens: list[Any], text: str) -> Any:
    """One statement as sqlglot's nodes."""
    from sqlglot import Dialect

    parser = Dialect.get_or_raise(engine.parsed_as).parser()
    found = parsed(lambda: parser.parse(tokens, text))
    if len(found) != 1 or found[0] is None:
        raise Unread("is not one statement")
    return found[0]


def parse_one(engine: Engine, text: str) -> Any:
    """A text that is one statement."""
    (tokens,) = statements(engine, text) or [[]]
    return nodes_of(engine, tokens, text)
