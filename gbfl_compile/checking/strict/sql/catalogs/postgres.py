"""Views as PostgreSQL's `pg_get_viewdef` prints them, plain or pretty: `::` casts, names without quotes, full digits.

The session that asks must have standard_conforming_strings on, and an empty search path but for the table's schema: an
operator of another schema is then printed as OPERATOR(…), which is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql.arithmetic import NARROW, decimal
from gbfl_compile.checking.strict.sql.cursor import (
    Catalog,
    Cursor,
    need_phrase,
    need_sign,
    take,
    take_phrase,
    take_sign,
)
from gbfl_compile.checking.strict.sql.forms import finish
from gbfl_compile.checking.strict.sql.grammar import as_bigint, as_double, list_of, value_of
from gbfl_compile.checking.strict.sql.lexis import LEXIS
from gbfl_compile.checking.strict.sql.logic import Asked
from gbfl_compile.checking.strict.sql.stages import Columns, query
from gbfl_compile.checking.strict.sql.values import Column, ExactFeature, Text, TextList, Value, Whole
from gbfl_compile.ir.nodes import Kind

LEXIS_OF_VIEWS = replace(
    LEXIS["postgres"],
    bare_names=True,
    signs=("::",),
    numbers="any",  # a NUMERIC comes back with all of its digits and no exponent
    escape_prefix="",  # strings are printed plainly, whatever is in them
    negatives=False,  # a negative constant is '-1'::integer; -1::integer would be -(1::integer)
)

_TYPES = ("double precision", "bigint", "integer", "numeric", "text")


def _casts(at: Cursor, found: Value | Asked) -> Value | Asked:
    """`::type`, as often as it comes."""
    if isinstance(found, Column) and found.feature is not None and at.expected.kind(found.feature) != "number":
        return _word_column(at, found, at.expected.kind(found.feature), found.feature)
    while take_sign(at, "::"):
        kind = next((kind for kind in _TYPES if take_phrase(at, kind)), None)
        if kind is None:
            raise Unread("a cast to a type that is none of the strict form")
        found = _cast(at, value_of(found), kind)
    return found


def _word_column(at: Cursor, column: Column, kind: Kind, feature: int) -> Value:
    """A word, boolean or date: a cast of a column to the type that it has is not printed.

    The catalog decides whether that is its type. A CHAR(n) is always printed with its cast.
    """
    declared = dict(at.expected.types).get(column.name)
    start = at.position
    match kind:
        case "category":
            is_text = take_phrase(at, "::text") or declared == "text"
            if is_text and take_phrase(at, 'COLLATE "C"'):
                return ExactFeature(feature, column.name, kind)
        case "boolean" | "date" if declared == kind:
            return ExactFeature(feature, column.name, kind)
    at.position = start
    return column


def _texts(quantifier: Literal["ANY", "ALL"]) -> Callable[[Cursor], Value]:
    """(ARRAY['a'::text, 'b'::text]), which is how the list after IN and NOT IN is printed."""

    def read(at: Cursor) -> Value:
        need_phrase(at, "(ARRAY[")
        texts = list_of(at, _text, "]")
        need_sign(at, ")")
        return TextList(quantifier, tuple(texts))

    return read


def _text(at: Cursor) -> str:
    text = take(at, "text", "a text").text
    need_phrase(at, "::text")
    return text


def _cast(at: Cursor, found: Value, kind: str) -> Value:
    match found, kind:
        case _, "double precision":
            return as_double(at, found)
        case Text(text), "integer" if re.fullmatch(r"-[1-9][0-9]{0,9}", text) and int(text) > -NARROW:
            return Whole(int(text))
        case Text(text), "numeric" if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text):
            return decimal(at.lexis, text.removeprefix("-"), negative=text.startswith("-"))
        case Text(), "text":
            return found
        case _, "bigint":
            return as_bigint(found)
    raise Unread(f"a cast to {kind} of something other than its constants")


def read_view(at: Cursor) -> Columns:
    """The query of a view."""
    return finish(at, query(at), closed=True)


CATALOG = Catalog(
    words={"ANY": _texts("ANY"), "ALL": _texts("ALL")},
    after=_casts,
    moments={
        "date": ("", "::date"),
        "timestamp": ("EXTRACT(EPOCH FROM", "::timestamp without time zone)"),
    },
    prints_as=False,
)
