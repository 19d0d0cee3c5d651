"""Views as PostgreSQL's `pg_get_viewdef` prints them, plain or pretty: `::` casts, names without quotes, full digits.

The session that asks must have standard_conforming_strings on, and an empty search path but for the table's schema: an
operator of another schema is then printed as OPERATOR(…), which is refused.
"""

from __future__ import annotations

import re
from dataclasses import replace

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql.cursor import Catalog, Cursor, take_phrase, take_sign
from gbfl_compile.checking.strict.sql.forms import finish
from gbfl_compile.checking.strict.sql.grammar import as_bigint, as_double, value_of
from gbfl_compile.checking.strict.sql.lexis import LEXIS
from gbfl_compile.checking.strict.sql.logic import Asked
from gbfl_compile.checking.strict.sql.numbers import NARROW, decimal
from gbfl_compile.checking.strict.sql.stages import Columns, query
from gbfl_compile.checking.strict.sql.values import Text, Value, Whole

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
    while take_sign(at, "::"):
        kind = next((kind for kind in _TYPES if take_phrase(at, kind)), None)
        if kind is None:
            raise Unread("a cast to a type that is none of the strict form")
        found = _cast(at, value_of(found), kind)
    return found


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


CATALOG = Catalog(after=_casts, prints_as=False)
