"""Names of types that need not be the engine's own: refused before anything is read.

Users name types too. In quotes a name may be theirs, and PostgreSQL has no type `double`: after CREATE DOMAIN "double"
AS real it is one, of 32 bits. sqlglot takes either for a double, so it is the words of the text that are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gbfl_compile.check.readers.sql_engines import Engine
from gbfl_compile.check.reading import Unread

CASTS = {"CAST", "TRY_CAST", "SAFE_CAST"}

BEFORE_TEXTS = {"DOUBLE", "FLOAT", "DECIMAL", "INT", "BIGINT", "SMALLINT", "TEXT", "VARCHAR", "NVARCHAR", "BOOLEAN"}
"""Tokens that make a cast of a text right after them: FLOAT8 '0.4'."""

POSTGRES_OWN = {
    "DOUBLE PRECISION",
    "FLOAT8",
    "FLOAT",
    "INT",
    "INTEGER",
    "INT4",
    "INT8",
    "BIGINT",
    "TEXT",
    "VARCHAR",
    "CHARACTER VARYING",
    "BOOL",
    "BOOLEAN",
    "NUMERIC",
    "DECIMAL",
}
"""What PostgreSQL and Redshift have themselves, of the types that are read at all."""


SQLITE_OWN = {
    *("REAL", "DOUBLE", "FLOAT", "FLOAT8", "FLOAT64"),
    *("INT", "INTEGER", "BIGINT", "INT8", "INT64"),
    *("TEXT", "VARCHAR", "NVARCHAR", "CHAR", "CHARACTER", "BOOLEAN", "BOOL"),
}
"""What SQLite takes for what it seems to be: it goes by parts of a name, and STRING is a number to it."""


def refuse_types_of_others(engine: Engine, tokens: Sequence[Any]) -> None:
    """In a statement, refuse a quoted name of a type, and one that PostgreSQL would look for among the user's."""
    for token in _type_names(tokens):
        if token.token_type.name == "IDENTIFIER":
            raise Unread(f"the type {token.text!r} in quotes: it may be one that a user made")
        if engine.name in ("postgres", "redshift") and token.text.upper() not in POSTGRES_OWN:
            raise Unread(f"the type {token.text}: {engine.name} has none of this name, or it is not understood")
        if engine.name == "sqlite" and token.text.upper() not in SQLITE_OWN:
            raise Unread(f"the type {token.text}: SQLite takes its name for something else, or it is not understood")


def _type_names(tokens: Sequence[Any]) -> Iterator[Any]:
    """The first word of each type: after ::, after the AS of a CAST, before a text, after RETURNS, in definitions."""
    opened: list[str] = []
    defines = bool(tokens) and tokens[0].token_type.name == "CREATE"
    for place, token in enumerate(tokens[:-1]):
        following, text = tokens[place + 1], token.text.upper()
        match token.token_type.name:
            case "L_PAREN":
                opened.append(tokens[place - 1].text.upper() if place else "")
            case "R_PAREN" if opened:
                opened.pop()
            case "ALIAS" if opened and opened[-1] in CASTS:
                yield following
            case "DCOLON":
                yield following
            case _ if text == "RETURNS":
                yield following
        defines = defines and (bool(opened) or text not in ("AS", "RETURN"))
        if defines and len(opened) == 1 and place and tokens[place - 1].text in ("(", ","):
            if following.token_type.name not in ("COMMA", "R_PAREN") and token.token_type.name in ("IDENTIFIER", "VAR"):
                yield following
        elif following.token_type.name == "STRING" and token.token_type.name in BEFORE_TEXTS:
            yield token
