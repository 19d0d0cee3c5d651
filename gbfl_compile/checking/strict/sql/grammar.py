"""Expressions of the strict form, read straight into what they mean. Every token is accounted for, or it is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql import arithmetic, logic, words
from gbfl_compile.checking.strict.sql.cursor import (
    MOST_NESTED,
    Cursor,
    is_name,
    need_sign,
    need_words,
    peek,
    refuse,
    take,
    take_phrase,
    take_sign,
    take_words,
)
from gbfl_compile.checking.strict.sql.logic import Asked, Contests, HeldClause, LeafBelow, Logic, by_number, choice
from gbfl_compile.checking.strict.sql.values import (
    Case,
    Column,
    ExactFeature,
    Feature,
    Number,
    Numeric,
    Text,
    Truth,
    Value,
    Whole,
    kind_of,
)

OR, AND, COMPARED, ADDED, TIMES = range(1, 6)

BINDS: Mapping[str, int] = {
    "OR": OR,
    "AND": AND,
    "IS": COMPARED,
    "IN": COMPARED,
    "NOT": COMPARED,  # of NOT IN
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), COMPARED),
    **dict.fromkeys(("+", "-", "||"), ADDED),  # no two engines agree on ||, and no text can be added to
    **dict.fromkeys(("*", "/"), TIMES),
}

T = TypeVar("T")


def expression(at: Cursor, least: int = OR) -> Value | Asked:
    """An expression whose operators bind at least so strongly."""
    at.nested += 1
    if at.nested > MOST_NESTED:
        raise Unread("nested too deeply")
    left = _operand(at)
    while (operator := _operator(at)) is not None and BINDS[operator] >= least:
        at.position += 1
        if operator in ("IN", "NOT"):
            left = _one_of(at, left, operator == "NOT")
        else:
            left = _is_null(at, left) if operator == "IS" else _combine(at, left, operator, BINDS[operator])
    at.nested -= 1
    return left


def _operator(at: Cursor) -> str | None:
    key = at.tokens[at.position].key
    return key if key in BINDS else "<>" if key == "!=" else None


def _combine(at: Cursor, left: Value | Asked, operator: str, binds: int) -> Value | Asked:
    right = expression(at, binds + 1)
    match operator:
        case "OR":
            return logic.either(asked_of(left), asked_of(right))
        case "AND":
            return logic.both(asked_of(left), asked_of(right))
        case "+":
            return arithmetic.add(value_of(left), value_of(right))
        case "-":
            return arithmetic.subtract(value_of(left), value_of(right))
        case "*":
            return arithmetic.multiply(value_of(left), value_of(right))
        case "/":
            return arithmetic.divide(value_of(left), value_of(right))
        case "||":
            if not at.lexis.joins_by_bars:
                raise Unread(f"||, which is OR in {at.lexis.engine}")
            return arithmetic.join_texts(value_of(left), value_of(right))
    return _compare(at, value_of(left), operator, value_of(right))


def _compare(at: Cursor, left: Value, sign: str, right: Value) -> Asked:
    """A feature with a literal, a feature with itself, or integers."""
    match left, right:
        case Feature(feature), Number(bound):
            return logic.compare(at.lexis, feature, sign, bound)
        case Feature(feature), Feature(other) if feature == other and sign == "=" and at.lexis.nan == "ieee":
            return logic.present(feature)
        case ExactFeature(), _:
            return words.compare_converted(at, left, sign, right)
    if kind_of(left) == kind_of(right) == "integer":
        return arithmetic.compare_integers(left, sign, right)
    raise Unread(f"line {peek(at).line}: a comparison of {_name_of(left)} with {_name_of(right)}")


def _one_of(at: Cursor, left: Value | Asked, negated: bool) -> Asked:
    if negated:
        need_words(at, "IN")
    return words.one_of(at, left, negated)


def _name_of(value: Value) -> str:
    match value:
        case Column(name) | Feature(_, name):
            known = "" if isinstance(value, Feature) else " (not known to be a double)"
            return f"the column {name!r}{known}"
        case Numeric():
            return "a NUMERIC"
    kind = kind_of(value)
    return f"{'an' if kind == 'integer' else 'a'} {kind}"


def _is_null(at: Cursor, left: Value | Asked) -> Asked:
    negated = take_words(at, "NOT")
    need_words(at, "NULL")
    if isinstance(left, ExactFeature):
        return words.is_null_converted(left, negated)
    if not isinstance(left, Feature):
        raise Unread(f"line {peek(at).line}: IS NULL of something other than a feature")
    return logic.is_null(at.lexis, left.feature, negated)


def value_of(found: Value | Asked) -> Value:
    """What was read, if it is a value."""
    if isinstance(found, Logic | HeldClause | LeafBelow | Contests):
        raise Unread("a condition where a value belongs")
    return found


def asked_of(found: Value | Asked) -> Asked:
    """What was read, if it is a condition."""
    if isinstance(found, Logic | HeldClause | LeafBelow | Contests):
        return found
    raise Unread("a value where a condition belongs")


def value(at: Cursor) -> Value:
    """An expression that is a value."""
    return value_of(expression(at))


def arguments(at: Cursor) -> list[Value | Asked]:
    """What a function is called with."""
    need_sign(at, "(")
    return list_of(at, expression, ")")


def list_of(at: Cursor, one: Callable[[Cursor], T], closing: str) -> list[T]:
    """Things separated by commas, up to a closing bracket."""
    found = [one(at)]
    while take_sign(at, ","):
        found.append(one(at))
    need_sign(at, closing)
    return found


def _operand(at: Cursor) -> Value | Asked:
    found = _primary(at)
    return found if at.catalog is None or at.catalog.after is None else at.catalog.after(at, found)


def _primary(at: Cursor) -> Value | Asked:
    if at.expected.kinds and (converted := words.converted_operand(at)) is not None:
        return converted
    token = peek(at)
    if token.kind in ("whole", "number"):
        return _number(at, negative=False)
    if token.kind == "text":
        at.position += 1
        return Text(token.text)
    if at.lexis.negatives and take_sign(at, "-"):
        return _number(at, negative=True)
    if take_sign(at, "("):
        found = expression(at)
        need_sign(at, ")")
        return found
    if at.lexis.lists and take_sign(at, "["):
        return look_up(at, list_of(at, value, "]"))
    called = token.kind == "word" and peek(at, 1).kind == "sign" and peek(at, 1).text == "("
    return column(at) if is_name(at) and not called else _word(at)


def _number(at: Cursor, negative: bool) -> Number | Numeric | Whole:
    if peek(at).kind == "whole":
        return arithmetic.whole(take(at, "whole", "an integer").text, negative)
    return arithmetic.decimal(at.lexis, take(at, "number", "a number").text, negative)


def name(at: Cursor) -> str:
    """A name."""
    if not is_name(at):
        refuse(at, "a name in quotes")
    at.position += 1
    return at.tokens[at.position - 1].text


def column(at: Cursor) -> Value:
    """A column in scope, with or without what it belongs to where a catalog writes that."""
    parts = [name(at)]
    while at.catalog is not None and take_sign(at, "."):
        parts.append(name(at))
    *before, last = parts
    if tuple(before) not in at.qualifiers or last not in at.scope:
        raise Unread(f"line {peek(at).line}: the column {'.'.join(parts)!r} is not one that may be read here")
    at.used.add(last)
    return at.scope[last]


def _word(at: Cursor) -> Value | Asked:
    """CASE, CAST and the functions of the strict form."""
    token = peek(at)
    spelling, word = token.text, token.text.upper()
    if token.kind != "word":
        refuse(at, "an expression")
    at.position += 1
    if at.catalog is not None and spelling in at.catalog.words:
        return at.catalog.words[spelling](at)
    if word == "CASE":
        return _case(at)
    if word == "CAST":
        return _cast(at)
    if word in ("TRUE", "FALSE") and at.lexis.booleans:
        return Truth(word == "TRUE")
    if spelling == at.lexis.double_function:
        return as_double(at, value_of(_only(arguments(at), spelling)))
    if spelling == at.lexis.nan_test:
        tested = _only(arguments(at), spelling)
        if not isinstance(tested, Feature):
            raise Unread(f"line {token.line}: {spelling} of something other than a feature")
        return logic.is_nan(tested.feature)
    if word == "NOT" and at.lexis.infinities and peek(at).text == at.lexis.nan_test:
        return _not_nan(at)
    if word == "EXP":
        return arithmetic.exp_of(value_of(_only(arguments(at), word)))
    if word == at.lexis.greatest:
        return arithmetic.greatest_of([value_of(each) for each in arguments(at)])
    if word == at.lexis.least:
        return arithmetic.least_of([value_of(each) for each in arguments(at)])
    if word == "CONCAT" and not at.lexis.joins_by_bars:
        return join_all([value_of(each) for each in arguments(at)])
    raise Unread(f"line {token.line}: the word {spelling!r}, which is not part of the strict form")


def _not_nan(at: Cursor) -> Asked:
    """NOT isnan(x): the one NOT there is, unknown for NULL and false for every NaN."""
    tested = _operand(at)
    if not isinstance(tested, Logic) or len(tested.spans) != 1 or tested != logic.is_nan(tested.spans[0][0]):
        raise Unread("NOT before something other than a test for NaN")
    return logic.present(tested.spans[0][0])


def _only(found: Sequence[Value | Asked], what: str) -> Value | Asked:
    if len(found) != 1:
        raise Unread(f"{what} of {len(found)} values")
    return found[0]


def join_all(texts: Sequence[Value]) -> Value:
    """CONCAT."""
    if len(texts) < 2:
        raise Unread("CONCAT of a single text")
    first, *others = texts
    for each in others:
        first = arithmetic.join_texts(first, each)
    return first


def _case(at: Cursor) -> Value:
    whens: list[tuple[Asked, Value]] = []
    while take_words(at, "WHEN"):
        condition = asked_of(expression(at))
        need_words(at, "THEN")
        whens.append((condition, value(at)))
    need_words(at, "ELSE")
    otherwise = value(at)
    need_words(at, "END")
    return choice(at.book, at.expected.features, whens, otherwise)


def look_up(at: Cursor, values: Sequence[Value]) -> Value:
    """`[a, b, c][leaf + 1]`."""
    need_sign(at, "[")
    bracketed = take_sign(at, "(")
    leaf = column(at)
    need_sign(at, "+")
    if take(at, "whole", "1").text != "1" or not isinstance(leaf, Case):
        raise Unread(f"line {peek(at).line}: a list asked for something other than the leaf and one")
    if bracketed:
        need_sign(at, ")")
    need_sign(at, "]")
    return by_number(leaf, values)


def _cast(at: Cursor) -> Value:
    need_sign(at, "(")
    found = value(at)
    need_words(at, "AS")
    if take_phrase(at, at.lexis.double):
        made = cast_as_double(at, found)
    elif take_phrase(at, at.lexis.bigint):
        made = as_bigint(found)
    else:
        refuse(at, f"{at.lexis.double} or {at.lexis.bigint}")
    need_sign(at, ")")
    return made


def cast_as_double(at: Cursor, found: Value) -> Value:
    """CAST(… AS <double>); of a column only where NULL stays NULL.

    ClickHouse's Float64 holds no NULL: the cast of one fails, or is never evaluated because nothing can be NULL there.
    """
    if at.lexis.double_function and isinstance(found, Column | Feature):
        raise Unread(f"line {peek(at).line}: a CAST of a column: {at.lexis.double_function} keeps NULL")
    return as_double(at, found)


def as_double(at: Cursor, found: Value) -> Value:
    """A value made a double, NULL where it is NULL."""
    match found:
        case Column(name_, feature) if feature is not None and at.expected.kind(feature) == "number":
            return Feature(feature, name_)
        case Feature():
            return found
        case Numeric(number):
            return Number(number)
        case Text("NaN") if at.lexis.nan == "greatest":
            return Number(math.nan)
        case Text("Infinity") if at.lexis.infinities:
            return Number(math.inf)
        case Text("-Infinity") if at.lexis.infinities:
            return Number(-math.inf)
    if kind_of(found) == "integer":
        return arithmetic.logit_of(found)
    raise Unread(f"line {peek(at).line}: a cast of {_name_of(found)} to a double")


def as_bigint(found: Value) -> Value:
    """CAST(… AS <bigint>)."""
    if isinstance(found, Text):
        return arithmetic.whole_of_text(found.value)
    if kind_of(found) != "integer":
        raise Unread("a cast of something other than an integer to an integer")
    return arithmetic.wide_of(found)
