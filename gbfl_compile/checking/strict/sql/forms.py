"""The forms an artifact comes in: each is a query, or its expressions, in a fixed frame of its own."""

from __future__ import annotations

from typing import assert_never

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql.cursor import (
    Cursor,
    is_word,
    need_phrase,
    need_sign,
    need_words,
    peek,
    refuse,
    take_sign,
    take_words,
)
from gbfl_compile.checking.strict.sql.grammar import list_of, name, value
from gbfl_compile.checking.strict.sql.lexis import one_name
from gbfl_compile.checking.strict.sql.stages import Columns, base_scope, items, need_name, query
from gbfl_compile.checking.strict.sql.values import (
    Case,
    Column,
    DoubtfulValue,
    Feature,
    JoinedText,
    Text,
    Value,
    ends_of,
)
from gbfl_compile.checking.strict.sql.words import need_argument_type
from gbfl_compile.ir.nodes import Label


def artifact(at: Cursor) -> Columns:
    """The answers of an artifact, by name; every token of it was read."""
    expected = at.expected
    if expected.form not in ("expression", "dbt"):
        _limits(at)
    match expected.form:
        case "expression":
            found = _expressions(at)
        case "macro":
            found = _functions(at)
        case "select" | "dbt":
            found = query(at)
        case "view":
            need_words(at, "CREATE")
            if at.lexis.replaces_views:
                take_words(at, "OR REPLACE")
            need_words(at, "VIEW")
            need_name(at, expected.schema, expected.made)
            need_words(at, "AS")
            found = query(at)
        case "table":
            before, after = at.lexis.table_as
            need_phrase(at, before)
            need_name(at, expected.schema, expected.made)
            need_phrase(at, after)
            found = query(at)
        case _:
            assert_never(expected.form)
    return finish(at, found, closed=expected.form not in ("expression", "dbt"))


def finish(at: Cursor, found: Columns, closed: bool) -> Columns:
    """The answers alone, where nothing comes after them and the columns are those that are expected."""
    if closed:
        take_sign(at, ";")
    if peek(at).kind != "end":
        refuse(at, "the end")
    expected = at.expected
    keys = () if expected.form in ("expression", "macro") else expected.keys
    wanted = [*keys, *(called for _, called in expected.outputs)]
    if list(found) != wanted:
        raise Unread(f"the columns {', '.join(found)} where {', '.join(wanted)} are expected")
    table = base_scope(at)
    for key in keys:
        if found[key] != table[key]:
            raise Unread(f"the key column {key!r} is not the table's own")
    return {called: made for called, made in found.items() if called not in keys}


def _limits(at: Cursor) -> None:
    """The statements that lift an engine's limits: all of them or none."""
    if at.lexis.limits and is_word(peek(at), "SET"):
        for statement in at.lexis.limits:
            need_phrase(at, statement)
            need_sign(at, ";")


def _expressions(at: Cursor) -> Columns:
    """One expression without a name, or several with theirs."""
    at.scope = base_scope(at)
    if len(at.expected.outputs) == 1:
        return {at.expected.outputs[0][1]: value(at)}
    return items(at)


def _functions(at: Cursor) -> Columns:
    """One function for each answer, of the features in order."""
    if at.lexis.function is None:
        raise Unread(f"functions, which are not made in {at.lexis.engine}")
    before, opening, closing, after = at.lexis.function
    expected = at.expected
    found: Columns = {}
    for (kind, called), function in zip(expected.outputs, expected.functions, strict=True):
        if found:
            need_sign(at, ";")
        need_phrase(at, before)
        need_name(at, expected.schema, function)
        need_phrase(at, opening)
        _arguments(at)
        need_phrase(at, closing.removeprefix(")"))
        if after:
            need_phrase(at, f"{_result(at, kind)} {after}")
        found[called] = value(at)
        if at.lexis.longest_result is not None and _longest(found[called]) > at.lexis.longest_result:
            raise Unread(f"the function {function!r} may return more than {at.lexis.longest_result} characters")
    return found


def _longest(found: Value) -> int:
    """The most characters a text can have."""
    match found:
        case Text(text):
            return len(text)
        case Case():
            return max(_longest(end) for end in ends_of(found))
        case JoinedText(parts):
            return sum(len(text) for _, text in parts)
        case DoubtfulValue(whens, otherwise):
            return max(_longest(end) for end in (otherwise, *(end for _, end in whens)))
    return 0


def _arguments(at: Cursor) -> None:
    """The features by position. An argument may have any name but that of another feature's column."""
    columns = at.expected.columns
    features = iter(feature for feature, _ in columns)

    def argument(at: Cursor) -> str:
        called = name(at)
        feature = next(features, None)
        if at.lexis.typed_arguments and feature is not None:
            need_argument_type(at, feature)
        return called

    names = [] if take_sign(at, ")") else list_of(at, argument, ")")
    if len(names) != len(columns) or len({one_name(at.lexis, each) for each in names}) != len(names):
        raise Unread(f"a function of {len(names)} arguments, where {len(columns)} features are expected")
    scope: dict[str, Value] = {}
    for called, (feature, column) in zip(names, columns, strict=True):
        others = {one_name(at.lexis, other) for number, other in columns if number != feature}
        if one_name(at.lexis, called) in others:
            raise Unread(f"the argument {called!r} has the name of another feature's column than {column!r}")
        known = column in at.expected.doubles
        scope[called] = Feature(feature, called) if known else Column(called, feature)
    at.scope = scope


def _result(at: Cursor, kind: str) -> str:
    """The type a function must declare for an answer."""
    match kind:
        case "label":
            return _label_type(at, at.expected.classes[0])
        case "probabilities":
            return at.lexis.double
        case "score" | "leaf":
            return at.lexis.bigint_result
        case _:
            return at.lexis.text


def _label_type(at: Cursor, label: Label) -> str:
    if isinstance(label, bool):
        return "BOOLEAN" if at.lexis.booleans else at.lexis.bigint_result
    if isinstance(label, int):
        return at.lexis.bigint_result
    return at.lexis.text if isinstance(label, str) else at.lexis.double
