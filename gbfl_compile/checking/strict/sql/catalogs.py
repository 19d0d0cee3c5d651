"""The views of each engine, as its catalog prints them: which lexis, which productions, which frame.

SQLite keeps the text of CREATE VIEW as it was written. DuckDB prints names without quotes, `!=`, and lists as
list_value(…), and dates as CAST(… AS DATE). MariaDB qualifies every column, leaves CREATE VIEW out, puts a backslash
before quotes in strings, and prints AS BINARY as AS CHAR CHARSET BINARY. PostgreSQL's `pg_get_viewdef` prints, plain
or pretty, `::` casts, names without quotes and full digits. The session that asks must have
standard_conforming_strings on, and an empty search path but for the table's schema: an operator of another schema is
then printed as OPERATOR(…), which is refused. ClickHouse's `create_table_query` prints multiIf for CASE, concat for
||, types as texts. The declared columns are read too: ClickHouse converts what the query gives to the types that are
declared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql.arithmetic import NARROW, decimal
from gbfl_compile.checking.strict.sql.cursor import (
    Catalog,
    Cursor,
    ExpectedText,
    need_phrase,
    need_sign,
    need_words,
    peek,
    refuse,
    take,
    take_phrase,
    take_sign,
)
from gbfl_compile.checking.strict.sql.forms import Columns, artifact, finish, need_name, query
from gbfl_compile.checking.strict.sql.grammar import (
    ADDED,
    arguments,
    as_bigint,
    as_double,
    asked_of,
    cast_as_double,
    expression,
    join_all,
    list_of,
    look_up,
    name,
    value,
    value_of,
)
from gbfl_compile.checking.strict.sql.lexer import tokens_of
from gbfl_compile.checking.strict.sql.lexis import LEXIS, Lexis, lexis_of
from gbfl_compile.checking.strict.sql.logic import Asked, choice
from gbfl_compile.checking.strict.sql.values import (
    Case,
    Column,
    ExactFeature,
    LookUp,
    Text,
    TextList,
    Value,
    Whole,
    ends_of,
)
from gbfl_compile.checking.strict.sql.words import one_of
from gbfl_compile.ir.nodes import Kind

POSTGRES_LEXIS = replace(
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
            raise Unread("a cast to a type that is not part of the strict form")
        found = _postgres_cast(at, value_of(found), kind)
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


def _postgres_cast(at: Cursor, found: Value, kind: str) -> Value:
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


def read_postgres_view(at: Cursor) -> Columns:
    """The query of a view."""
    return finish(at, query(at), closed=True)


POSTGRES_CATALOG = Catalog(
    words={"ANY": _texts("ANY"), "ALL": _texts("ALL")},
    after=_casts,
    moments={
        "date": ("", "::date"),
        "timestamp": ("EXTRACT(EPOCH FROM", "::timestamp without time zone)"),
    },
    prints_as=False,
)


_ESCAPES = {"\\": "\\", "'": "'", "`": "`", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}

CLICKHOUSE_LEXIS = replace(
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


def _clickhouse_cast(at: Cursor) -> Value:
    """CAST(value, 'type')."""
    match arguments(at):
        case [found, Text("Int64")]:
            return as_bigint(value_of(found))
        case [found, Text("Float64")]:
            return cast_as_double(at, value_of(found))
    raise Unread("a CAST to something other than Int64 or Float64")


def _concat(at: Cursor) -> Value:
    return join_all([value_of(each) for each in arguments(at)])


def read_clickhouse_view(at: Cursor) -> Columns:
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


def refuse_declared_conversions(definition: str, expected: ExpectedText) -> None:
    """Refuse a view that declares other types than its query gives, whatever the query is."""
    head = _HEAD.match(definition)
    if head is None:
        raise Unread("the view does not declare its columns where they are expected")
    at = Cursor(tokens_of(head[1], CLICKHOUSE_LEXIS), CLICKHOUSE_LEXIS, expected, CLICKHOUSE_CATALOG)
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


CLICKHOUSE_CATALOG = Catalog(
    words={"multiIf": _multi_if, "CAST": _clickhouse_cast, "concat": _concat},
    keywords=frozenset(("nan", "inf", "infinity", "interval", "date", "timestamp")),
    folds_names=True,
)


Reader: TypeAlias = tuple[Lexis, Catalog, Callable[[Cursor], Columns]]


def _list_value(at: Cursor) -> Value:
    """list_value(a, b)[leaf + 1]."""
    need_sign(at, "(")
    return look_up(at, list_of(at, value, ")"))


def _not_in(at: Cursor) -> Asked:
    """NOT (word IN ('a', 'b')), which is how NOT IN is printed, and no other NOT."""
    need_sign(at, "(")
    left = expression(at, ADDED)
    need_words(at, "IN")
    found = one_of(at, left, negated=True)
    need_sign(at, ")")
    return found


def _query_alone(at: Cursor) -> Columns:
    return finish(at, query(at), closed=False)


CATALOGS: Mapping[str, Reader] = {
    "sqlite": (LEXIS["sqlite"], Catalog(), artifact),
    "duckdb": (
        replace(LEXIS["duckdb"], bare_names=True, signs=("!=",)),
        Catalog(words={"list_value": _list_value, "NOT": _not_in}, folds_names=True, casts_moments=True),
        artifact,
    ),
    "mariadb": (
        replace(
            LEXIS["mariadb"],
            string_escapes={"\\": "\\", "n": "\n", "r": "\r", "'": "'", "Z": "\x1a"},
            doubled_quotes=False,
            before_quotes=("DATE", "TIMESTAMP"),
        ),
        Catalog(conversion_ends={"category": "USING utf8mb4) AS CHAR CHARSET BINARY)"}),
        _query_alone,
    ),
    "postgres": (POSTGRES_LEXIS, POSTGRES_CATALOG, read_postgres_view),
    "clickhouse": (CLICKHOUSE_LEXIS, CLICKHOUSE_CATALOG, read_clickhouse_view),
}


def catalog_of(dialect: str) -> Reader:
    """How the views of an engine are read back, or Unread where it keeps none."""
    lexis = lexis_of(dialect)
    if dialect not in CATALOGS:
        raise Unread(f"{lexis.engine} keeps no text of its views that is read here")
    return CATALOGS[dialect]
