"""The rules of an emitted Python module: what `_leaf` and `_held` do, followed statement by statement.

A row arrives as a list of floats (`_values` has seen to that), so comparisons are IEEE 754's and NaN is the missing
value; a category arrives as a str, or as None where it is missing. What is followed: assignments to locals, if and
elif, return, and, or, not, conditional expressions, chained comparisons, `isnan`, and for categories `==`, `!=`, `in`
and `not in` with texts, `is None` and `is not None`. Anything else is refused with its line.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from gbfl_compile.checking.reading.conditions import (
    MIRRORED,
    ON_NUMBERS,
    Choice,
    Comparison,
    Fall,
    Value,
    all_of,
    any_of,
    branch,
    choice,
    choose,
    compare,
    compare_with_itself,
    constant,
    missing,
    negate,
    one_after_another,
)
from gbfl_compile.checking.reading.nodes import And, Condition, Not, Or, Test, Unread
from gbfl_compile.ir.intervals import Texts, code_values
from gbfl_compile.ir.kinds import Codebook
from gbfl_compile.ir.nodes import Kind

NO_TEXTS = Codebook(())

SIGNS: Mapping[type[ast.cmpop], Comparison] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


@dataclass(frozen=True, slots=True)
class Row:
    """The list of a row's values."""

    width: int
    kinds: tuple[Kind, ...] = ()
    book: Codebook = NO_TEXTS
    """The codes of the texts that the rules mention."""


@dataclass(frozen=True, slots=True)
class Feature:
    """One value of the row."""

    index: int


@dataclass(frozen=True, slots=True)
class Word:
    """One value of the row that is a text, or None."""

    index: int
    book: Codebook


@dataclass(frozen=True, slots=True)
class Unclear:
    """A local that is not the same kind of thing, or not there at all, on every way to here."""


Listed: TypeAlias = tuple[str, ...]
"""Texts that a category may be one of."""

Known: TypeAlias = Row | Feature | Word | str | Listed | float | Condition | Choice | Unclear
"""What an expression can be: a number (int or float), a feature, a text, texts, a truth value, a number by the row."""

Locals: TypeAlias = Mapping[str, Known]


def refuse(node: ast.AST, what: str) -> NoReturn:
    """Say where, and what is not understood there."""
    raise Unread(f"line {getattr(node, 'lineno', 0)}: {what}")


def answer(statements: Sequence[ast.stmt], locals_before: Locals) -> tuple[Value, Locals]:
    """What the statements return, `FALL` where they do not, and the locals after them."""
    parts: list[Value] = []
    known = dict(locals_before)
    for statement in statements:
        match statement:
            case ast.Pass() | ast.Expr(ast.Constant(str())):
                pass
            case ast.Assign([ast.Name(name)], value):
                known[name] = expression(value, known)
            case ast.Return(ast.expr() as value):
                parts.append(_whole(value, expression(value, known)))
            case ast.If(test, body, orelse):
                test_holds = condition(test, known)
                part, known = branch(test_holds, answer(body, known), answer(orelse, known), _either)
                parts.append(part)
            case _:
                refuse(statement, f"a statement that is not understood: {_text(statement)}")
    return one_after_another(parts), known


def _either(condition: Condition, then: Known | None, otherwise: Known | None) -> Known:
    match then, otherwise:
        case Test() | And() | Or() | Not(), Test() | And() | Or() | Not():
            return choose(condition, then, otherwise)
        case int() | Choice(), int() | Choice():
            return _has_value(choice(condition, then, otherwise))
        case Feature() | Word(), Feature() | Word() if then == otherwise:
            return then
        case _:
            return Unclear()


def _has_value(value: Value) -> int | Choice:
    if isinstance(value, Fall):
        raise AssertionError("an expression always has a value")
    return value


def _whole(node: ast.expr, value: Known) -> int | Choice:
    if isinstance(value, int | Choice):
        return value
    refuse(node, f"returns something that is not a whole number: {_text(node)}")


def condition(node: ast.expr, known: Locals) -> Condition:
    """An expression that is a truth value; numbers are not taken for one."""
    value = expression(node, known)
    if isinstance(value, Test | And | Or | Not):
        return value
    refuse(node, f"is not a comparison: {_text(node)}")


def expression(node: ast.expr, known: Locals) -> Known:
    """What an expression is on any row."""
    match node:
        case ast.Constant(bool() as value):
            return constant(value)
        case ast.Constant(int() | float() as value):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as value)) if not isinstance(value, bool):
            return -value
        case ast.UnaryOp(ast.Not(), operand):
            return negate(condition(operand, known))
        case ast.BoolOp(ast.And(), parts):
            return all_of([condition(part, known) for part in parts])
        case ast.BoolOp(ast.Or(), parts):
            return any_of([condition(part, known) for part in parts])
        case ast.BinOp(left, ast.BitAnd(), right):
            return all_of((condition(left, known), condition(right, known)))
        case ast.BinOp(left, ast.BitOr(), right):
            return any_of((condition(left, known), condition(right, known)))
        case ast.Compare(left, [ast.Is() | ast.IsNot() as sign], [ast.Constant(None)]):
            return _is_none(node, expression(left, known), isinstance(sign, ast.Is))
        case ast.Compare():
            return _comparison(node, known)
        case ast.Constant(str() as text):
            return text
        case ast.Tuple([*items]) if items and all(isinstance(item, ast.Constant) for item in items):
            return _text_list(node, items)
        case ast.IfExp(test, then, otherwise):
            found = _either(condition(test, known), expression(then, known), expression(otherwise, known))
            return found if not isinstance(found, Unclear) else refuse(node, f"is not understood: {_text(node)}")
        case ast.Name(name):
            return _looked_up(node, known.get(name, Unclear()))
        case ast.Attribute(ast.Name("_math"), "inf" | "nan" as which) if "_math" not in known:
            return float(which)
        case ast.Call(ast.Attribute(ast.Name("_math"), "isnan"), [value], []) if "_math" not in known:
            return missing(_feature(value, known).index)
        case ast.Subscript(ast.Name(name), index) if isinstance(row := known.get(name), Row):
            return _value_at(row, _place(index, row.width, known))
        case _:
            refuse(node, f"is not understood: {_text(node)}")


def _value_at(row: Row, place: int) -> Feature | Word:
    is_word = bool(row.kinds) and row.kinds[place] == "category"
    return Word(place, row.book) if is_word else Feature(place)


def _text_list(node: ast.expr, items: Sequence[ast.expr]) -> Listed:
    texts = [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    if len(texts) < len(items):
        refuse(node, f"lists something other than texts: {_text(node)}")
    return tuple(texts)


def _is_none(node: ast.expr, value: Known, holds: bool) -> Condition:
    """Only a category is None where it is missing; a number is NaN."""
    if not isinstance(value, Word):
        refuse(node, f"is not a category: {_text(node)}")
    return missing(value.index) if holds else negate(missing(value.index))


def _looked_up(node: ast.expr, value: Known) -> Known:
    if isinstance(value, Unclear):
        refuse(node, f"{_text(node)} is not known here, or differs by the way taken")
    return value


def _feature(node: ast.expr, known: Locals) -> Feature:
    value = expression(node, known)
    return value if isinstance(value, Feature) else refuse(node, f"is not a feature: {_text(node)}")


def _place(node: ast.expr, width: int, known: Locals) -> int:
    """An index into the row; from the end where it is negative, as Python has it."""
    index = expression(node, known)
    if not isinstance(index, int) or not -width <= index < width:
        refuse(node, f"the row has {width} values, this asks for {_text(node)}")
    return index % width


def _comparison(node: ast.Compare, known: Locals) -> Condition:
    """A chain: every link holds. Operands have no side effects, so asking one twice is the same."""
    operands = [expression(operand, known) for operand in (node.left, *node.comparators)]
    if any(isinstance(operand, Word) for operand in operands) and len(operands) != 2:
        refuse(node, f"a chain of comparisons with a category: {_text(node)}")
    links = zip(operands, node.ops, operands[1:], strict=False)
    return all_of([_link(node, left, sign, right) for left, sign, right in links])


def _word_link(node: ast.Compare, word: Word, sign: ast.cmpop, texts: str | Listed) -> Condition:
    """A category equal to a text, or in a set of texts: `in` a text would look for a part of it. None is neither."""
    match sign, texts:
        case ast.Eq() | ast.NotEq(), str():
            allowed = frozenset((texts,))
        case ast.In() | ast.NotIn(), tuple():
            allowed = frozenset(texts)
        case _:
            refuse(node, f"a comparison that is not understood: {_text(node)}")
    negated = isinstance(sign, ast.NotEq | ast.NotIn)
    return Test(word.index, code_values(Texts(allowed, negated, negated), word.index, word.book))


def _link(node: ast.Compare, left: Known, sign: ast.cmpop, right: Known) -> Condition:
    if isinstance(left, Word) and isinstance(right, str | tuple):
        return _word_link(node, left, sign, right)
    comparison = SIGNS.get(type(sign))
    if comparison is None:
        refuse(node, f"a comparison that is not understood: {_text(node)}")
    match left, right:
        case Feature(feature), int() | float():
            return compare(feature, comparison, _double(node, right))
        case int() | float(), Feature(feature):
            return compare(feature, MIRRORED[comparison], _double(node, left))
        case Feature(feature), Feature(other) if feature == other:
            return compare_with_itself(feature, comparison)
        case int() | float(), int() | float():
            return constant(ON_NUMBERS[comparison](left, right))
        case _:
            refuse(node, f"compares what is not a feature with a number: {_text(node)}")


def _double(node: ast.AST, number: float) -> float:
    """Python compares a float with a whole number exactly, so one that no double is stays as it is: refused."""
    try:
        double = float(number)
    except OverflowError:
        refuse(node, "a whole number beyond every double")
    if double != number and number == number:
        refuse(node, f"{number} is not a double")
    return double


def _text(node: ast.AST) -> str:
    text = ast.unparse(node).split("\n")[0]
    return text if len(text) <= 80 else f"{text[:77]}..."
