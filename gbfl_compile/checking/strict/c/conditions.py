"""Rules as C writes them: comparisons of a value with a number, joined by and, or and not; nested ifs that return.

(x[3] >= 0x1.8p+1) && ((x[0] != x[0]) || (x[0] < 0x1p+0))        one row
(x3 >= 0x1.8p+1) & ((x0 != x0) | (x0 < 0x1p+0))                  one lane of many
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal, TypeAlias, cast

from gbfl_compile.checking.reading.conditions import (
    FALSE,
    TRUE,
    Comparison,
    Value,
    all_of,
    any_of,
    choice,
    compare,
    compare_with_itself,
    negate,
)
from gbfl_compile.checking.reading.nodes import Condition, Test
from gbfl_compile.checking.strict.c.lexer import Real, count, real
from gbfl_compile.ir.intervals import Values, both


class Misfit(Exception):
    """The tokens from here on are not what is known. Not an error yet: another part of a known file may fit."""

    def __init__(self, at: int, expected: str) -> None:
        super().__init__(expected)
        self.at = at
        self.expected = expected


@dataclass(frozen=True, slots=True)
class Source:
    """The type of the values, the number of features, and what has come up on the way."""

    real: Real
    features: int
    tests: dict[tuple[int, str, str, str], Condition] = field(default_factory=dict)
    """Comparisons made before: kernels repeat what the function of one row says."""
    misfits: list[Misfit] = field(default_factory=list)
    """Where each repeated part ended, to tell the user how far a file was understood."""
    has_codes: bool = False
    """Whether values may be codes, which rules compare by == and !=; a rule may then be `0`, which never holds."""


Spelling: TypeAlias = Literal["x[i]", "xi"]
"""How a rule names a value: by its place in a row, or by the number in the name of a local."""

DEEPEST = 40
"""Brackets within brackets in a rule; emitted ones have 5."""


def _both(parts: Sequence[Condition]) -> Condition:
    """Every part holds; `x >= 1 && x < 2` is one test of x, as it is in the program."""
    tests: list[Condition] = []
    for feature, run in groupby(parts, lambda part: part.feature if isinstance(part, Test) else None):
        if feature is None:
            tests += run
            continue
        common = _common([part.values for part in run if isinstance(part, Test)])
        tests.append(Test(feature, common) if common else FALSE)
    return all_of(tests)


def _common(tests: Sequence[tuple[Values, ...]]) -> tuple[Values, ...]:
    """The values that are in one of the ranges of each test; by halves, for a set may have a thousand codes."""
    if len(tests) == 1:
        return tests[0]
    half = len(tests) // 2
    a, b = _common(tests[:half]), _common(tests[half:])
    if len(a) == len(b) == 1:
        values = both(a[0], b[0])
        return () if values.empty else (values,)
    ranges = []
    left, right = ([piece for piece in _union(side) if piece.has_numbers] for side in (a, b))
    while left and right:
        values = both(left[-1], right[-1])
        if values.has_numbers:
            ranges.append(values)
        (left if left[-1].least >= right[-1].least else right).pop()
    missing = all(any(piece.missing for piece in side) for side in (a, b))
    return (*reversed(ranges), *([Values(math.inf, -math.inf, missing=True)] * missing))


def _either(parts: Sequence[Condition]) -> Condition:
    """At least one part holds; `x != x || x < 2` is one test of x."""
    match parts:
        case [Test(feature, (Values(missing=True) as none,)), Test(same, (values,))] if (
            same == feature and not none.has_numbers
        ):
            return Test(feature, (Values(values.least, values.most, missing=True),))
        case [Test(feature), *_] if all(isinstance(part, Test) and part.feature == feature for part in parts):
            return Test(feature, _union([piece for part in parts if isinstance(part, Test) for piece in part.values]))
        case _:
            return any_of(parts)


def _union(pieces: Sequence[Values]) -> tuple[Values, ...]:
    """The same values as ranges that do not overlap, ascending, and the missing one last."""
    ranges: list[Values] = []
    for piece in sorted((piece for piece in pieces if piece.has_numbers), key=lambda piece: piece.least):
        if ranges and piece.least <= ranges[-1].most:
            ranges[-1] = Values(ranges[-1].least, max(ranges[-1].most, piece.most), missing=False)
        else:
            ranges.append(Values(piece.least, piece.most, missing=False))
    if any(piece.missing for piece in pieces):
        ranges.append(Values(math.inf, -math.inf, missing=True))
    return tuple(ranges)


JOINS: tuple[tuple[str, Callable[[Sequence[Condition]], Condition]], ...] = (
    ("||", _either),
    ("&&", _both),
    ("|", _either),
    ("&", _both),
)
"""What joins comparisons, loosest first. Each gives 0 or 1 where both sides do, and no side has an effect."""

SIGNS = {sign for sign, _ in JOINS}


def rule(words: Sequence[str], at: int, source: Source, spelling: Spelling, depth: int = 0) -> tuple[Condition, int]:
    """The condition that begins at a token, and where the tokens after it begin."""
    part, at = _part(words, at, source, spelling, depth)
    if words[at] not in SIGNS:
        return part, at
    parts, signs = [part], []
    while words[at] in SIGNS:
        signs.append(words[at])
        part, at = _part(words, at + 1, source, spelling, depth)
        parts.append(part)
    return _join(parts, signs, 0), at


def _join(parts: Sequence[Condition], signs: Sequence[str], level: int) -> Condition:
    """The parts put together, the loosest sign last."""
    loosest, join = JOINS[level]
    if loosest not in signs:
        return _join(parts, signs, level + 1) if signs else parts[0]
    if len(set(signs)) == 1:
        return join(parts)
    ends = [index + 1 for index, sign in enumerate(signs) if sign == loosest]
    pieces = zip([0, *ends], [*ends, len(parts)], strict=True)
    return join([_join(parts[first:last], signs[first : last - 1], level) for first, last in pieces])


def _part(words: Sequence[str], at: int, source: Source, spelling: Spelling, depth: int) -> tuple[Condition, int]:
    """`(rule)`, `!(rule)`, `0`, `1` or a comparison. Where C would read on (`1 < 2 < 3`), no rule does."""
    word = words[at]
    if word == "(" or (word == "!" and words[at + 1] == "("):
        if words[at + 1][:1] == "x":  # the most common by far: a comparison in brackets
            test, after = _comparison(words, at + 1, source, spelling)
            if words[after] == ")":
                return test, after + 1
        if depth > DEEPEST:
            raise Misfit(at, f"at most {DEEPEST} brackets within each other")
        inner, after = rule(words, at + 1 + (word == "!"), source, spelling, depth + 1)
        if words[after] != ")":
            raise Misfit(after, ")")
        return (negate(inner) if word == "!" else inner), after + 1
    if word == "1" or (word == "0" and source.has_codes):
        return (TRUE if word == "1" else FALSE), at + 1
    return _comparison(words, at, source, spelling)


def _comparison(words: Sequence[str], at: int, source: Source, spelling: Spelling) -> tuple[Condition, int]:
    feature, after = _value(words, at, source, spelling)
    sign = words[after]
    if sign in ("==", "!=") and not (source.has_codes and words[after + 1][:1] != "x"):
        other, end = _value(words, after + 1, source, spelling)
        if other != feature:
            raise Misfit(after + 1, "the value itself: only a code is compared with a number by == or !=")
        return compare_with_itself(feature, cast(Comparison, sign)), end
    if sign not in ("<", "<=", ">", ">=", "==", "!="):
        raise Misfit(after, "a comparison")
    minus = "-" if words[after + 1] == "-" else ""
    text = words[after + 1 + len(minus)]
    test = source.tests.get((feature, sign, minus, text))
    if test is None:
        bound = real(text, source.real)
        if bound is None:
            raise Misfit(after + 1 + len(minus), f"a literal that is exactly a {source.real}, best in hexadecimal")
        test = compare(feature, cast(Comparison, sign), -bound if minus else bound)
        source.tests[feature, sign, minus, text] = test
    return test, after + 2 + len(minus)


def _value(words: Sequence[str], at: int, source: Source, spelling: Spelling) -> tuple[int, int]:
    """The feature that is named, one of those there are."""
    match spelling:
        case "x[i]":
            feature = count(words[at + 2]) if words[at] == "x" and words[at + 1] == "[" else None
            if words[at + 3] != "]":
                feature = None
            after = at + 4
        case "xi":
            feature = count(words[at][1:]) if words[at][:1] == "x" and words[at][1:].isdecimal() else None
            after = at + 1
    if feature is None or feature >= source.features:
        raise Misfit(at, "a value, a bracket or 1")
    return feature, after


def nested_ifs(words: Sequence[str], at: int, source: Source) -> tuple[Value, int]:
    """`if (rule) { ... } ... return 3;`, where each block ends in a return: the number that is returned.

    A loop and no recursion, for a list of rules may be thousands of ifs long and blocks may be deep.
    """
    blocks: list[list[tuple[Condition, Value]]] = [[]]
    conditions: list[Condition] = []
    while True:
        if words[at] == "if" and words[at + 1] == "(":
            holds, at = rule(words, at + 2, source, "x[i]")
            if words[at : at + 2] != [")", "{"]:
                raise Misfit(at, ") {")
            conditions.append(holds)
            blocks.append([])
            at += 2
            continue
        number = count(words[at + 1]) if words[at] == "return" else None
        if number is None or words[at + 2] != ";":
            raise Misfit(at, "if (rule) { or return with a number")
        value: Value = number
        for holds, inner in reversed(blocks.pop()):
            value = choice(holds, inner, value)
        at += 3
        if not blocks:
            return value, at
        if words[at] != "}":
            raise Misfit(at, "} after a return")
        blocks[-1].append((conditions.pop(), value))
        at += 1
