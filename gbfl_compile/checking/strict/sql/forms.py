"""The forms of an SQL artifact: each is a query, or its expressions, in a fixed frame.

A query is stages, each a SELECT from exactly the one before; every column of every stage is read at once. No column may
go by a name that another column of the same list reads: engines disagree on which of the two is meant.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import assert_never

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql.cursor import (
    Cursor,
    is_name,
    is_word,
    need_phrase,
    need_sign,
    need_words,
    peek,
    refuse,
    take_phrase,
    take_sign,
    take_words,
)
from gbfl_compile.checking.strict.sql.grammar import column, expression, list_of, name, value, value_of
from gbfl_compile.checking.strict.sql.lexis import one_name
from gbfl_compile.checking.strict.sql.values import Column, ExactFeature, Feature, Moment, Numeric, Value, longest_text
from gbfl_compile.checking.strict.sql.words import need_argument_type
from gbfl_compile.ir.nodes import Label

Columns = dict[str, Value]

_STAGE = re.compile(r"(?!__dbt)[A-Za-z_][A-Za-z0-9_]*")
"""A stage's name; with a dot in it, DataFusion would take it for a table of a schema."""


def query(at: Cursor) -> Columns:
    """`WITH … SELECT …`: the columns that come out."""
    expected = at.expected
    before: str | None = None
    columns = base_scope(at)
    taken = {one_name(at.lexis, expected.table)}  # SQLite takes a later stage of that name for the table
    if take_words(at, "WITH"):
        while True:
            stage = _stage_name(at)
            if one_name(at.lexis, stage) in taken:
                raise Unread(f"line {peek(at).line}: the stage {stage!r} has the name of a table or of another stage")
            taken.add(one_name(at.lexis, stage))
            need_words(at, "AS")
            need_sign(at, "(")
            columns = _select(at, before, columns, fenced=True)
            need_sign(at, ")")
            before = stage
            if not take_sign(at, ","):
                break
    return _select(at, before, columns, fenced=False)


def base_scope(at: Cursor) -> Columns:
    """The columns of the table that may be read."""
    names = [column for _, column in at.expected.columns]
    told_apart = {each if at.lexis.exact_names else one_name(at.lexis, each) for each in names}
    if len(told_apart) != len(names) or len({feature for feature, _ in at.expected.columns}) != len(names):
        raise Unread("two features are expected in one column, or one feature in two")
    scope: Columns = {key: Column(key, None) for key in at.expected.keys}
    for feature, column_name in at.expected.columns:
        known = column_name in at.expected.doubles
        scope[column_name] = Feature(feature, column_name) if known else Column(column_name, feature)
    return scope


def _stage_name(at: Cursor) -> str:
    token = peek(at)
    plain = token.kind == "word" and token.text.startswith("gbfl_") and token.text.islower()
    if token.kind == "name" or plain:
        at.position += 1
        if _STAGE.fullmatch(token.text) is None:
            raise Unread(f"line {token.line}: the stage {token.text!r}, a name with more than letters, digits and _")
        return token.text
    if is_name(at):
        return name(at)
    refuse(at, "a stage's name, in quotes or beginning with gbfl_")


def _select(at: Cursor, before: str | None, scope: Mapping[str, Value], fenced: bool) -> Columns:
    need_words(at, "SELECT")
    at.scope = scope
    at.qualifiers = _qualifiers(at, before)
    lateral = _lateral(at)
    if lateral is not None:
        return _lateral_select(at, before, scope, lateral)
    found = items(at)
    need_words(at, "FROM")
    _source(at, before)
    if fenced and at.lexis.fence:
        take_phrase(at, at.lexis.fence)
    return found


def _qualifiers(at: Cursor, before: str | None) -> frozenset[tuple[str, ...]]:
    if before is not None:
        return frozenset(((), (before,)))
    expected = at.expected
    return frozenset(((), (expected.table,), (expected.schema, expected.table)))


def items(at: Cursor) -> Columns:
    """The columns of a SELECT list, each with its name."""
    found: Columns = {}
    used: dict[str, frozenset[str]] = {}
    keys: set[str] = set()
    while True:
        at.used = set()
        start = at.position
        made = value_of(expression(at))
        read = at.tokens[start : at.position]
        bare = all(token.kind in ("name", "word") or token.text == "." for token in read) and len(at.used) == 1
        if take_words(at, "AS"):
            called = name(at)
        elif bare:
            called = read[-1].text
        else:
            refuse(at, "AS and a name")
        if (isinstance(made, Column) and called != made.name) or isinstance(made, Numeric | Moment):
            raise Unread(f"line {peek(at).line}: the column {called!r} of a type that is not certain")
        if one_name(at.lexis, called) in keys:
            raise Unread(f"line {peek(at).line}: two columns are called {called!r}")
        keys.add(one_name(at.lexis, called))
        found[called] = made
        used[called] = frozenset(one_name(at.lexis, each) for each in at.used)
        if not take_sign(at, ","):
            break
    _refuse_aliases_that_are_read(at, found, used)
    return found


def _refuse_aliases_that_are_read(at: Cursor, found: Columns, used: Mapping[str, frozenset[str]]) -> None:
    """ClickHouse reads an alias before a column of the same name, and others do so in places."""
    passed = {called for called, made in found.items() if at.scope.get(called) is made}
    sources = {one_name(at.lexis, each) for each in at.scope}
    readers = Counter(key for reads in used.values() for key in reads)
    for called in found:
        if called in passed:
            continue
        key = one_name(at.lexis, called)
        if readers[key] > (key in used[called]):
            raise Unread(f"the name {called!r} is given to a column and read by another one of the same list")
        made = found[called]
        own = isinstance(made, Feature | ExactFeature) and made.column == called
        if key in sources and not own:
            raise Unread(f"the name {called!r} is given to a column and hides another one of that name")


def _source(at: Cursor, before: str | None) -> None:
    """The one thing a SELECT may read: the stage before, or the table that is expected."""
    if before is not None:
        if _stage_name(at) != before:
            raise Unread(f"line {peek(at).line}: a stage reads something other than the stage before it")
        return
    expected = at.expected
    if expected.form == "dbt" and at.catalog is None:
        token = peek(at)
        if (token.kind, token.schema, token.text) != ("source", expected.schema, expected.table):
            refuse(at, f"the dbt name of the table {expected.table!r}")
        at.position += 1
        return
    need_name(at, expected.schema, expected.table)


def need_name(at: Cursor, schema: str, wanted: str) -> None:
    """A table, view or function by the name that is expected. A catalog may leave the schema out.

    ClickHouse prints its schema `default` without quotes: before a dot, a keyword is nothing but a name.
    """
    bare_schema = at.catalog is not None and peek(at).text == schema != "" and peek(at, 1).text == "."
    if bare_schema and peek(at).kind == "word" and peek(at, 1).kind == "sign":
        at.position += 1
        found = [schema]
    else:
        found = [name(at)]
    if take_sign(at, "."):
        found.append(name(at))
    if found != ([schema, wanted] if schema else [wanted]) and not (at.catalog is not None and found == [wanted]):
        raise Unread(f"line {peek(at).line}: {'.'.join(found)!r} in place of {wanted!r}, which is expected")


def _lateral(at: Cursor) -> tuple[int, bool] | None:
    """Where CROSS JOIN LATERAL begins in this SELECT, if it does, and whether a catalog put the join in brackets."""
    depth, bracketed = 0, False
    for position in range(at.position, len(at.tokens) if at.lexis.lateral else 0):
        token = at.tokens[position]
        if token.kind == "sign" and token.text == "(":
            joins = at.catalog is not None and depth == 0 and is_word(at.tokens[position - 1], "FROM")
            depth, bracketed = (0, True) if joins else (depth + 1, bracketed)
        elif token.kind == "sign" and token.text == ")":
            depth -= 1
            if depth < 0:
                return None
        elif depth == 0 and is_word(token, "CROSS"):
            return position, bracketed
    return None


def _lateral_select(at: Cursor, before: str | None, scope: Mapping[str, Value], lateral: tuple[int, bool]) -> Columns:
    """`SELECT "key", "made" FROM source CROSS JOIN LATERAL (SELECT … AS "made" OFFSET 0) AS once`."""
    begins, bracketed = lateral
    listed_at, at.position = at.position, begins
    need_words(at, "CROSS JOIN LATERAL")
    need_sign(at, "(")
    need_words(at, "SELECT")
    inner = items(at)
    outer_names = {one_name(at.lexis, each) for each in scope}
    if any(one_name(at.lexis, called) in outer_names for called in inner):
        raise Unread("a column of a LATERAL subselect hides one outside")
    if not take_phrase(at, at.lexis.fence):
        refuse(at, at.lexis.fence)
    need_sign(at, ")")
    if at.catalog is None or at.catalog.prints_as:
        need_words(at, "AS")
    once = _stage_name(at)
    if bracketed:
        need_sign(at, ")")
    ends, at.position = at.position, listed_at
    at.scope, outside = {**scope, **inner}, at.qualifiers
    found: Columns = {}
    while True:
        beside = is_name(at) and _last_name(at) in inner
        at.qualifiers = frozenset(((), (once,))) if beside else outside
        at.used = set()
        made = column(at)
        called = next(iter(at.used))
        if called in found:
            raise Unread(f"two columns are called {called!r}")
        found[called] = made
        if not take_sign(at, ","):
            break
    need_words(at, "FROM")
    if bracketed:
        need_sign(at, "(")
    _source(at, before)
    if at.position != begins or not set(inner) <= set(found):
        raise Unread("a LATERAL subselect whose columns are not all handed on")
    at.position = ends
    return found


def _last_name(at: Cursor) -> str:
    """The name of the column that comes next, without what it belongs to."""
    ahead = 0
    while peek(at, ahead + 1).kind == "sign" and peek(at, ahead + 1).text == ".":
        ahead += 2
    return peek(at, ahead).text


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
        if at.lexis.longest_result is not None and longest_text(found[called]) > at.lexis.longest_result:
            raise Unread(f"the function {function!r} may return more than {at.lexis.longest_result} characters")
    return found


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
    for called, (feature, own) in zip(names, columns, strict=True):
        others = {one_name(at.lexis, other) for number, other in columns if number != feature}
        if one_name(at.lexis, called) in others:
            raise Unread(f"the argument {called!r} has the name of another feature's column than {own!r}")
        known = own in at.expected.doubles
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
