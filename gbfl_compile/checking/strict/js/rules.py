"""The rules of an emitted JavaScript module: what `rules` does, token by token.

Its parameters are what the functions of their kinds return: a number, date or timestamp is a double, NaN where it is
missing; a category is a string and a boolean is true or false, null where they are missing. What is read: if, return,
`&&`, `||`, `!` before a bracket or a set, comparisons of a parameter with a literal of its kind or with itself, and
`has` of a set of texts. No value is ever converted by a comparison: each is with a literal of the same type or null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gbfl_compile.checking.reading.conditions import (
    FALL,
    Comparison,
    Value,
    all_of,
    any_of,
    choice,
    compare,
    compare_with_itself,
    constant,
    missing,
    negate,
    one_after_another,
)
from gbfl_compile.checking.reading.nodes import Condition, Test
from gbfl_compile.checking.strict.js.lexer import Cursor
from gbfl_compile.ir.intervals import Texts, code_values
from gbfl_compile.ir.kinds import Codebook
from gbfl_compile.ir.nodes import TRUE, Kind

SIGNS: Mapping[str, Comparison] = {"<": "<", "<=": "<=", ">": ">", ">=": ">=", "===": "==", "!==": "!="}


@dataclass(frozen=True, slots=True)
class Parameter:
    """The value of one feature."""

    index: int
    kind: Kind


@dataclass(slots=True)
class Scope:
    """What names mean in the rules: parameters first, then sets of texts."""

    sets: Mapping[str, frozenset[str]]
    names: list[str] = field(default_factory=list)
    parameters: dict[str, Parameter] = field(default_factory=dict)
    end: int = 0
    """Where the tokens after the rules begin."""
    book: Codebook = field(default_factory=lambda: Codebook(()))


def texts_in(words: Sequence[str], scope: Scope) -> tuple[str, ...]:
    """The texts that the rules mention, in their order, and those of the sets."""
    cursor = Cursor.of([word for word in words if word[0] == '"'])
    own = [cursor.text() for _ in cursor.words]
    return tuple(dict.fromkeys((*own, *(text for texts in scope.sets.values() for text in sorted(texts)))))


def steps_of(cursor: Cursor, scope: Scope) -> Value:
    """What statements return up to the brace that ends them; FALL where they do not."""
    parts: list[Value] = []
    while cursor.peek() != "}":
        if cursor.take("return"):
            parts.append(cursor.count())
            cursor.expect(";")
            continue
        cursor.expect("if (")
        holds = condition(cursor, scope)
        cursor.expect(") {")
        parts.append(choice(holds, steps_of(cursor, scope), FALL))
        cursor.expect("}")
    return one_after_another(parts)


def clause_conditions(cursor: Cursor, scope: Scope) -> tuple[Condition, ...]:
    """One truth value per clause."""
    cursor.expect("return [")
    conditions = []
    while not cursor.take("] ;"):
        conditions.append(condition(cursor, scope))
        cursor.expect(",")
    return tuple(conditions)


def condition(cursor: Cursor, scope: Scope) -> Condition:
    """Parts joined by `||`, which binds less than `&&`."""
    parts = [_both(cursor, scope)]
    while cursor.take("||"):
        parts.append(_both(cursor, scope))
    return any_of(parts)


def _both(cursor: Cursor, scope: Scope) -> Condition:
    parts = [_unit(cursor, scope)]
    while cursor.take("&&"):
        parts.append(_unit(cursor, scope))
    return all_of(parts)


def _unit(cursor: Cursor, scope: Scope) -> Condition:
    """A comparison, a set, or something in brackets. `!x < 1` would ask whether false or true is below 1."""
    if cursor.take("!"):
        if cursor.peek() != "(" and cursor.peek(1) != ".":
            cursor.refuse("! before something else than a bracket or a set")
        return negate(_unit(cursor, scope))
    if cursor.take("("):
        inner = condition(cursor, scope)
        cursor.expect(")")
        return inner
    word = cursor.next()
    if word in ("true", "false"):
        return constant(word == "true")
    if word in scope.parameters:
        return _comparison(cursor, word, scope)
    if word in scope.sets and word not in scope.parameters:
        cursor.expect(". has (")
        parameter = scope.parameters.get(cursor.next())
        if parameter is None or parameter.kind != "category":
            cursor.refuse(f"{word} is used on something that is not a category")
        cursor.expect(")")
        return _is_one_of(parameter, scope, scope.sets[word], negated=False, if_missing=False)
    cursor.refuse(f"{word[:60]} is not known here")


def _comparison(cursor: Cursor, name: str, scope: Scope) -> Condition:
    parameter, sign = scope.parameters[name], cursor.next()
    if sign not in SIGNS:
        cursor.refuse(f"{sign[:60]} is not a comparison")
    if parameter.kind not in ("category", "boolean"):
        if cursor.take(name):
            return compare_with_itself(parameter.index, SIGNS[sign])
        return compare(parameter.index, SIGNS[sign], cursor.double())
    if sign not in ("===", "!=="):
        cursor.refuse(f"{name} is a {parameter.kind}, which {sign} would convert")
    differs = sign == "!=="
    if cursor.take("null"):
        return negate(missing(parameter.index)) if differs else missing(parameter.index)
    if parameter.kind == "category":
        return _is_one_of(parameter, scope, frozenset((cursor.text(),)), differs, differs)
    is_true = cursor.truth() != differs
    return _is_one_of(parameter, scope, frozenset((TRUE,)), negated=not is_true, if_missing=differs)


def _is_one_of(parameter: Parameter, scope: Scope, texts: frozenset[str], negated: bool, if_missing: bool) -> Condition:
    return Test(parameter.index, code_values(Texts(texts, negated, if_missing), parameter.index, scope.book))
