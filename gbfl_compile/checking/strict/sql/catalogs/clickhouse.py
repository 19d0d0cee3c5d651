"""Views as ClickHouse's `create_table_query` prints them: multiIf for CASE, concat for ||, types as texts.

The declared columns are read too: ClickHouse converts what the query gives to the types that are declared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql.cursor import (
    Catalog,
    Cursor,
    ExpectedText,
    need_sign,
    need_words,
    peek,
    refuse,
    take_sign,
)
from gbfl_compile.checking.strict.sql.forms import finish
from gbfl_compile.checking.strict.sql.grammar import (
    arguments,
    as_bigint,
    asked_of,
    cast_as_double,
    expression,
    join_all,
    list_of,
    name,
    value_of,
)
from gbfl_compile.checking.strict.sql.lexer import tokens_of
from gbfl_compile.checking.strict.sql.lexis import LEXIS
from gbfl_compile.checking.strict.sql.logic import Asked, choice
from gbfl_compile.checking.strict.sql.stages import Columns, need_name, query
from gbfl_compile.checking.strict.sql.values import Case, LookUp, Text, Value, Whole, ends_of

_ESCAPES = {"\\": "\\", "'": "'", "`": "`", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}

LEXIS_OF_VIEWS = replace(
    LEXIS["clickhouse"],
    bare_names=True,
    signs=("!=",),
    numbers="any",  # 1. and 0.25 are doubles here
    name_escapes=_ESCAPES,
    string_escapes=_ESCAPES,
)

_INTEGERS = {f"{sign}Int{bits}": (sign, bits) for sign in ("", "U") for bits in (8, 16, 32, 64)}


def _multi_if(at: Cursor) -> Value:
    """multiIf(condition, value, …, value)."""
    need_sign(at, "(")
    whens: list[tuple[Asked, Value]] = []
    while True:
        found = expression(at)
        if take_sign(at, ")"):
            return choice(at.book, at.expected.features, whens, value_of(found))
        need_sign(at, ",")
        whens.append((asked_of(found), value_of(expression(at))))
        need_sign(at, ",")


def _cast(at: Cursor) -> Value:
    """CAST(value, 'type')."""
    match arguments(at):
        case [found, Text("Int64")]:
            return as_bigint(value_of(found))
        case [found, Text("Float64")]:
            return cast_as_double(at, value_of(found))
    raise Unread("a CAST to something other than Int64 or Float64")


def _concat(at: Cursor) -> Value:
    return join_all([value_of(each) for each in arguments(at)])


def read_view(at: Cursor) -> Columns:
    """The view with its CREATE VIEW and the columns it declares."""
    need_words(at, "CREATE VIEW")
    need_name(at, at.expected.schema, at.expected.made)
    need_sign(at, "(")
    declared = list_of(at, _declared_column, ")")
    need_words(at, "AS")
    found = finish(at, query(at), closed=True)
    if [called for called, _ in declared] != [*at.expected.keys, *(called for _, called in at.expected.outputs)]:
        raise Unread("the view declares other columns than it should give")
    _check_types(at, declared, found)
    return found


def refuse_conversions(definition: str, expected: ExpectedText) -> None:
    """Refuse a view that declares other types than its query gives, whatever the query is."""
    head = _HEAD.match(definition)
    if head is None:
        raise Unread("the view does not declare its columns where they are expected")
    at = Cursor(tokens_of(head[1], LEXIS_OF_VIEWS), LEXIS_OF_VIEWS, expected, CATALOG)
    need_sign(at, "(")
    _check_types(at, list_of(at, _declared_column, ")"), {})


_QUOTED = r"`(?:[^`\\]|\\.)*`|'(?:[^'\\]|\\.)*'"
_INNER = rf"(?:{_QUOTED}|[^`'()])*"
_NESTED = rf"(?:{_QUOTED}|[^`'()]|\({_INNER}\)|\({_INNER}\({_INNER}\){_INNER}\))*"
_HEAD = re.compile(rf"CREATE VIEW (?:`(?:[^`\\]|\\.)*`|[\w.])+ (\({_NESTED}\))", re.DOTALL)
"""CREATE VIEW, a name, and the declared columns in brackets."""

Type = tuple[str, ...]
"""A type, token by token."""


def _declared_column(at: Cursor) -> tuple[str, Type]:
    called = name(at)
    start, depth = at.position, 0
    while depth or peek(at).key not in (",", ")"):
        if peek(at).kind == "end":
            refuse(at, "a type")
        depth += {"(": 1, ")": -1}.get(peek(at).key, 0)
        at.position += 1
    return called, tuple(token.text for token in at.tokens[start : at.position])


def _check_types(at: Cursor, declared: Sequence[tuple[str, Type]], found: Mapping[str, Value]) -> None:
    """Whether what the query gives comes out as it is: answers of their own types, keys of the table's."""
    kinds = {called: kind for kind, called in at.expected.outputs}
    types = dict(at.expected.types)
    for called, whole in declared:
        if called in kinds:
            plain = whole[2] if whole[:2] == ("Nullable", "(") and len(whole) == 4 else "".join(whole)
            _check_type(at, kinds[called], called, plain, found.get(called))
        elif called in at.expected.keys:
            own = tuple(token.text for token in tokens_of(types.get(called, ""), at.lexis)[:-1])
            if whole != own:
                raise Unread(f"the view declares the key column {called!r} as {''.join(whole)}, and not as its table")


def _check_type(at: Cursor, kind: str, called: str, declared: str, made: Value | None) -> None:
    """Whether what the query gives comes out as it is."""
    classes = at.expected.classes
    match kind:
        case "reason":
            fits = declared == "String"
        case "probabilities":
            fits = declared == "Float64"
        case "score":
            fits = declared == "Int64"
        case "leaf":
            fits = declared in _INTEGERS and all(_fits(declared, number) for number in _integers(made))
            fits = fits and (made is not None or not declared.endswith("8"))
        case _ if isinstance(classes[0], bool):
            fits = declared == "Bool"
        case _ if isinstance(classes[0], str):
            fits = declared == "String"
        case _ if isinstance(classes[0], float):
            fits = declared == "Float64"
        case _:
            fits = declared in _INTEGERS and all(_fits(declared, int(label)) for label in classes)
    if not fits:
        raise Unread(f"the view declares {called!r} as {declared}, which may change what the query gives")


def _integers(made: Value | None) -> list[int]:
    """The numbers a leaf can have."""
    match made:
        case Case():
            ends = list(ends_of(made))
        case LookUp(_, steps):
            ends = [end for _, end in steps]
        case Whole():
            ends = [made]
        case _:
            ends = []
    return [end.value for end in ends if isinstance(end, Whole)]


def _fits(declared: str, number: int) -> bool:
    sign, bits = _INTEGERS[declared]
    least, most = (0, 1 << bits) if sign else (-(1 << (bits - 1)), 1 << (bits - 1))
    return least <= number < most


CATALOG = Catalog(
    words={"multiIf": _multi_if, "CAST": _cast, "concat": _concat},
    keywords=frozenset(("nan", "inf", "infinity", "interval", "date", "timestamp")),
    folds_names=True,
)
