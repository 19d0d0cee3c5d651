"""SQL conditions, node by node: AND, OR, NOT, comparisons, BETWEEN, IN, IS, and what NULL and NaN make of them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from gbfl_compile.checking.general.sql import words
from gbfl_compile.checking.general.sql.arithmetic import subtract
from gbfl_compile.checking.general.sql.engines import Engine, as_double, as_narrowed, text_as_double
from gbfl_compile.checking.general.sql.finite import compare_numbers, compute
from gbfl_compile.checking.general.sql.linear import threshold_of
from gbfl_compile.checking.general.sql.logic import (
    EVERY_NUMBER,
    UNKNOWN,
    Among,
    Both,
    Either,
    Formula,
    Points,
    Sign,
    Truth,
    among,
    both,
    compare,
    compared_with_itself,
    conjunction,
    constant,
    disjunction,
    either,
    is_known,
    is_null,
    negate,
    sign,
    unknown,
)
from gbfl_compile.checking.general.sql.parsing import Scope, kind, only, operands, refuse
from gbfl_compile.checking.general.sql.types import as_together, kinds_together, refuse_narrowed
from gbfl_compile.checking.general.sql.values import (
    Column,
    Constant,
    Fractions,
    LinearFeature,
    Moment,
    Near,
    Pick,
    Total,
    Value,
    Word,
    describe,
    fold,
    kinds_of,
    map_ends,
    note_use,
    number_of_truth,
)
from gbfl_compile.checking.reading.conditions import MIRRORED, ON_NUMBERS, Comparison
from gbfl_compile.checking.reading.nodes import Unread, pay

WORD = re.compile(r"[A-Za-z0-9_]+")
"""Texts that are equal to every engine or, where they differ in more than case, to none."""


def truth_of(engine: Engine, value: Value) -> Truth:
    """A value where a condition is expected."""

    def of(end: Value) -> Truth:
        match end:
            case Truth():
                return end
            case Word():
                return words.word_truth(engine, end)
            case Constant(None):
                return UNKNOWN
            case Constant(bool() as holds):
                return constant(holds)
            case Constant(int() as number) if engine.numbers_are_truths:
                return constant(number != 0)
            case _:
                raise Unread(f"{describe(end)} where a condition is expected")

    return fold(value, of)


def truths_of(engine: Engine, parts: list[Value]) -> list[Value]:
    """The parts of a choice, boolean columns as truth values where other parts are: COALESCE(smoker, FALSE)."""
    kinds = frozenset[str]().union(*map(kinds_of, parts))
    if "boolean" not in kinds or not kinds & {"truth", "whole"}:
        return parts

    def of(end: Value) -> Value:
        return words.word_truth(engine, end) if isinstance(end, Word) and end.kind == "boolean" else end

    return [map_ends(part, of) for part in parts]


def null_test(engine: Engine, value: Value) -> Truth:
    """IS NULL."""

    def of(end: Value) -> Truth:
        match end:
            case Column(feature):
                note_use(end)
                return is_null(engine.nan, feature)
            case LinearFeature(column):
                return null_test(engine, column)
            case Word():
                return words.word_is_null(end)
            case Constant(content):
                return constant(content is None)
            case Truth():
                return is_known(unknown(end))
            case Total() | Fractions() | Near():
                return constant(False)
            case _:
                raise Unread(f"{describe(end)} IS NULL")

    return fold(value, of)


def comparison_of(engine: Engine, left: Value, comparison: Comparison, right: Value) -> Truth:
    """`left <comparison> right`."""
    left, right = number_of_truth(engine, left), number_of_truth(engine, right)
    if isinstance(left, Pick):
        return fold(left, lambda end: comparison_of(engine, end, comparison, right))
    if isinstance(right, Pick):
        return fold(right, lambda end: comparison_of(engine, left, comparison, end))
    match left, right:
        case (Constant(None), _) | (_, Constant(None)):
            return UNKNOWN
        case Column(feature), Constant():
            note_use(left)
            return compare(engine.nan, feature, comparison, _bound_of(engine, left, right))
        case LinearFeature(column), Constant():
            sign_, bound = threshold_of(engine, left, comparison, right)
            return comparison_of(engine, column, sign_, Constant(bound))
        case (Constant() | Moment(), Column() | Word() | LinearFeature()):
            return comparison_of(engine, right, MIRRORED[comparison], left)
        case Word(), Constant() | Moment():
            return words.compare_word(engine, left, comparison, right)
        case Column(feature), Column(other) if feature == other:
            note_use(left)
            note_use(right)
            return compared_with_itself(engine.nan, feature, comparison)
        case Constant(), Constant():
            return constant(_constants_compared(engine, left, comparison, right))
        case (Near() | Total() | Fractions() | Constant(), Near()) | (Near(), Total() | Fractions() | Constant()):
            return fold(
                compute(engine, lambda a, b: constant(compare_numbers(a, comparison, b)), left, right),
                lambda end: truth_of(engine, end),
            )
        case (Total() | Fractions() | Constant(), Total() | Fractions() | Constant()):
            return _sign(subtract(engine, left, right).points, comparison)
        case _:
            raise Unread(f"{describe(left)} compared with {describe(right)}")


def _sign(points: Points, comparison: Comparison) -> Truth:
    if not points.terms:
        return constant(ON_NUMBERS[comparison](points.bias, 0))
    divisor = math.gcd(points.bias, *(worth for _, worth in points.terms))
    points = Points(points.bias // divisor, tuple((formula, worth // divisor) for formula, worth in points.terms))
    return is_known(sign(points, comparison))


SHORT_WHOLE = re.compile(r"-?[0-9]{1,7}")
"""A text that is the same number in every type of number that has it."""


def _bound_of(engine: Engine, column: Column, constant_: Constant) -> float:
    value = constant_.value
    if isinstance(value, str) and engine.bare_texts:
        bound = text_as_double(engine, value)
        if engine.name == "duckdb" and math.isfinite(bound) and not column.cast and not SHORT_WHOLE.fullmatch(value):
            raise Unread(f"a feature compared with the text {value!r}, which DuckDB makes a value of the column's type")
        return bound
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise Unread(f"a feature compared with {describe(constant_)}")
    return as_narrowed(value) if column.is_single else as_double(engine, value)


def _constants_compared(engine: Engine, left: Constant, comparison: Comparison, right: Constant) -> bool:
    a, b = left.value, right.value
    if isinstance(a, str) and isinstance(b, str) and comparison in ("==", "!="):
        if not engine.known_texts:
            raise Unread(words.UNKNOWN_TEXTS)
        if not engine.exact_texts and not (
            WORD.fullmatch(a) and WORD.fullmatch(b) and (a == b or a.lower() != b.lower())
        ):
            raise Unread(f"texts compared: {engine.name} may take different ones for equal")
        return (a == b) == (comparison == "==")
    if isinstance(a, bool) and isinstance(b, bool) and comparison in ("==", "!="):
        return (a == b) == (comparison == "==")
    if isinstance(a, bool | str) or isinstance(b, bool | str) or a is None or b is None:
        raise Unread(f"{describe(left)} compared with {describe(right)}")
    if isinstance(a, float) != isinstance(b, float):
        a, b = as_double(engine, a), as_double(engine, b)
    if a != a or b != b:
        raise Unread("NaN compared with a constant")
    return ON_NUMBERS[comparison](a, b)  # type: ignore[arg-type]  # decimals compare exactly too


COMPARISONS: Mapping[str, Comparison] = {"LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "EQ": "==", "NEQ": "!="}

UNCLEAR = {*COMPARISONS, "Is", "Between", "In", "NullSafeEQ", "NullSafeNEQ", "Not", "And", "Or"}
"""`a < b < c`, `a = b IS NULL`: engines and sqlglot may disagree on which comes first, so brackets are required."""


def operand(node: Any, scope: Scope) -> Value:
    """An expression beside a comparison."""
    if kind(node) in UNCLEAR:
        refuse(node, "a comparison within a comparison, without brackets")
    return scope.follow(node, scope)


def condition(node: Any, scope: Scope) -> Truth:
    """An expression where a condition is expected."""
    return truth_of(scope.engine, scope.follow(node, scope))


def _and(node: Any, scope: Scope) -> Value:
    parts = [condition(part, scope) for part in operands(node)]
    refuse_bits(node, [part.false for part in parts], scope)
    return conjunction(parts)


def _or(node: Any, scope: Scope) -> Value:
    parts = [condition(part, scope) for part in operands(node)]
    refuse_bits(node, [part.true for part in parts], scope)
    return disjunction(parts)


def _not(node: Any, scope: Scope) -> Value:
    only(node, "this")
    if kind(node.this) == "Between" and scope.engine.nan == "ieee":
        refuse(node, f"NOT BETWEEN, which is false for NaN in {scope.engine.name}: write NOT (… BETWEEN …)")
    return negate(condition(node.this, scope))


def _compare(node: Any, scope: Scope) -> Value:
    only(node, "this", "expression")
    sign = COMPARISONS[kind(node)]
    left, right = node.this, node.args["expression"]
    if kind(right) in ("Any", "All"):
        return _quantify(node, left, sign, right.this, kind(right) == "Any", scope)
    if (array := _array_of_all(right, scope.engine)) is not None:
        return _quantify(node, left, sign, array, False, scope)
    return comparison_of(scope.engine, operand(left, scope), sign, operand(right, scope))


def _array_of_all(node: Any, engine: Engine) -> Any:
    """The array of `<> ALL (ARRAY[1, 2])`, in PostgreSQL's NOT IN; sqlglot takes ALL, which no function can be called
    there, for a function.
    """
    is_all = kind(node) == "Anonymous" and isinstance(node.this, str) and node.this.upper() == "ALL"
    return node.expressions[0] if is_all and engine.name == "postgres" and len(node.expressions) == 1 else None


def _quantify(node: Any, left: Any, sign: Comparison, array: Any, is_any: bool, scope: Scope) -> Value:
    """`x = ANY (ARRAY[1, 2])` and `x <> ALL (ARRAY[1, 2])`, which are how PostgreSQL writes IN and NOT IN."""
    while kind(array) == "Paren" or words.is_text_array(array):
        array = array.this
    if kind(array) != "Array":
        refuse(node, "ANY or ALL of something that is not a list")
    value = operand(left, scope)
    items = [scope.follow(item, scope) for item in array.expressions]
    for item in items:
        refuse_other_equality(node, item, scope)
    if "text" in kinds_together(scope.engine, items) and kinds_of(value) != {"text"}:
        refuse(node, "texts in an array: the array has its own type, and they are cast to it")
    items = [as_together(scope.engine, item, kinds_together(scope.engine, items)) for item in items]
    parts = [comparison_of(scope.engine, value, sign, item) for item in items]
    refuse_bits(node, [part.true for part in parts], scope)
    refuse_bits(node, [part.false for part in parts], scope)
    return disjunction(parts) if is_any else conjunction(parts)


def _between(node: Any, scope: Scope) -> Value:
    only(node, "this", "low", "high")
    value = operand(node.this, scope)
    low, high = (operand(node.args[side], scope) for side in ("low", "high"))
    refuse_narrowed([value, low, high])
    engine = scope.engine
    return conjunction([comparison_of(engine, value, ">=", low), comparison_of(engine, value, "<=", high)])


def _in(node: Any, scope: Scope) -> Value:
    only(node, "this", "expressions")
    value = operand(node.this, scope)
    items = [scope.follow(item, scope) for item in node.expressions]
    if not items:
        refuse(node, "IN of nothing")
    refuse_narrowed([value, *items])
    for item in items:
        refuse_other_equality(node, item, scope)
    found = disjunction([comparison_of(scope.engine, value, "==", item) for item in items])
    return words.doubtful_in(scope.engine, value, found)


def refuse_bits(node: Any, formulas: Iterable[Formula], scope: Scope) -> None:
    """Refuse x = 0 beside x = 1: from some number of them on, some engines make a list of it that -0.0 is not in."""
    if not scope.engine.looks_up_bits:
        return
    points: dict[int, set[float]] = {}
    waiting = list(formulas)
    while waiting:
        pay(1)
        match waiting.pop():
            case Among(feature, numbers):
                points.setdefault(feature, set()).update(least for least, most in numbers if least == most)
            case Both(parts) | Either(parts):
                waiting += parts
            case Sign():
                pass
    if any(0.0 in found and len(found) > 1 for found in points.values()):
        refuse(node, f"zero among values of one column, which {scope.engine.name} may look up by their bits")


def refuse_other_equality(node: Any, item: Value, scope: Scope) -> None:
    """IN and CASE x WHEN look up bits in some engines: NULL is found or passed over, and -0.0 is not 0.0."""
    if scope.engine.looks_up_bits and not (isinstance(item, Constant) and item.value and item.value == item.value):
        refuse(node, f"what may be NULL, NaN or zero, among values that {scope.engine.name} looks up by their bits")


def _is(node: Any, scope: Scope) -> Value:
    only(node, "this", "expression", "negate")
    right_side = node.args["expression"]
    value = operand(node.this, scope)
    if kind(right_side) == "Null":
        found = null_test(scope.engine, value)
        return negate(found) if node.args.get("negate") else found
    only(node, "this", "expression")
    if kind(right_side) == "Boolean":
        truth = truth_of(scope.engine, value)
        return is_known(truth.true if right_side.this else truth.false)
    refuse(node, "IS with something else than NULL, TRUE or FALSE")


def _null_safe(node: Any, scope: Scope) -> Value:
    only(node, "this", "expression")
    engine = scope.engine
    if engine.distinct_takes_all and kind(node.parent) not in ("Paren", "If"):
        refuse(node, f"IS DISTINCT FROM, which {engine.name} compares with all that follows: put it in brackets")
    if engine.nan == "ieee":
        refuse(node, f"IS DISTINCT FROM, by which {engine.name} may find NaN equal to NaN")
    left, right = operand(node.this, scope), operand(node.args["expression"], scope)
    nulls = both((null_test(engine, left).true, null_test(engine, right).true))
    equal = is_known(either((comparison_of(engine, left, "==", right).true, nulls)))
    return equal if kind(node) == "NullSafeEQ" else negate(equal)


def _is_nan(node: Any, scope: Scope) -> Value:
    only(node, "this")
    engine = scope.engine
    if engine.nan == "none":
        refuse(node, f"{engine.name} has no NaN")

    def of(end: Value) -> Truth:
        if not isinstance(end, Column):
            raise Unread(f"{describe(end)} tested for NaN")
        return Truth(
            among(end.feature, (), False, True), among(end.feature, EVERY_NUMBER, engine.null_is_not_nan, False)
        )

    return fold(scope.follow(node.this, scope), of)


PREDICATES: Mapping[str, Callable[[Any, Scope], Value]] = {
    "And": _and,
    "Or": _or,
    "Not": _not,
    **dict.fromkeys(COMPARISONS, _compare),
    "Between": _between,
    "In": _in,
    "Is": _is,
    "NullSafeEQ": _null_safe,
    "NullSafeNEQ": _null_safe,
    "IsNan": _is_nan,
}
