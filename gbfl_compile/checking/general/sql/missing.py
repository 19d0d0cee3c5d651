"""NULL and NaN, both missing to the rule language: one reading where the text treats them alike, several where not.

Where every single condition treats them alike there is one reading. Where one does not, there is a reading for each way
the features concerned can be missing, and the text is the program only if all of them are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import product
from random import Random
from typing import TypeAlias, assert_never

from gbfl_compile.checking.general.sql.decisions import RuleSet, Step, Tree
from gbfl_compile.checking.general.sql.logic import Among, Both, Either, Formula, Sign
from gbfl_compile.checking.reading import conditions
from gbfl_compile.checking.reading.evaluate import run_reading
from gbfl_compile.checking.reading.nodes import (
    And,
    Ask,
    Condition,
    Not,
    Or,
    Outcome,
    PointDecision,
    Reading,
    StepDecision,
    Test,
    Unread,
    pay,
)
from gbfl_compile.ir.intervals import Values

MOST_UNEQUAL = 4
"""Features whose NULL and NaN are distinguished: each doubles the readings."""

TRIED_ROWS = 2_000
MOST_CLASSES = 10_000

Way: TypeAlias = frozenset[int]
"""The features whose missing value is NaN; it is NULL for the others."""


def decisions(made: Tree | RuleSet) -> list[tuple[StepDecision | PointDecision, str, Way | None]]:
    """The decision for each way values can be missing, and that way in words and as the features that are NaN."""
    atoms = list(_atoms(_formulas(made)))
    if any(part.nan != part.low for part in atoms):
        raise Unread("a comparison that NaN passes or not by its sign: write x < 5 AND NOT isnan(x)")
    unequal = sorted({part.feature for part in atoms if part.null != part.nan})
    if not unequal:
        return [(_as_read(made, frozenset()), "", None)]
    ways: Iterable[tuple[bool, ...]] = product((False, True), repeat=len(unequal))
    if len(unequal) > MOST_UNEQUAL:
        ways = [(False,) * len(unequal), (True,) * len(unequal)]
        if not _are_told_apart(*(_as_read(made, frozenset(f for f in unequal if way[0])) for way in ways)):
            raise Unread(f"NULL and NaN are not treated alike for {len(unequal)} features: too many to try all ways")
    return [_one_way(made, [f for f, is_nan in zip(unequal, way, strict=True) if is_nan], unequal) for way in ways]


def _are_told_apart(null: StepDecision | PointDecision, nan: StepDecision | PointDecision) -> bool:
    """Whether some row is seen to be answered differently: then one of the two is not the program."""
    cuts = sorted({edge for test in _tests(null) for piece in test.values for edge in (piece.least, piece.most)})
    width = 1 + max((test.feature for test in (*_tests(null), *_tests(nan))), default=0)
    choose = Random(0)  # noqa: S311 - for rows, not for secrets
    names, classes = tuple(map(str, range(width))), tuple(range(MOST_CLASSES))
    both_ = [Reading(names, classes, decision) for decision in (null, nan)]
    for _ in range(TRIED_ROWS):
        row = [math.nan if choose.random() < 0.5 else choose.choice(cuts or [0.0]) for _ in names]
        first, second = (run_reading(reading, row) for reading in both_)
        if first.label != second.label:
            return True
    return False


def _tests(decision: StepDecision | PointDecision) -> Iterator[Test]:
    match decision:
        case StepDecision(steps):
            waiting = [step.condition for step in steps if isinstance(step, Ask)]
        case PointDecision(_, terms):
            waiting = [condition for condition, _ in terms]
        case _:
            assert_never(decision)
    while waiting:
        pay(1)
        match waiting.pop():
            case Test() as test:
                yield test
            case And(parts) | Or(parts):
                waiting += parts
            case Not(part):
                waiting.append(part)


def _one_way(made: Tree | RuleSet, nan: list[int], unequal: list[int]) -> tuple[StepDecision | PointDecision, str, Way]:
    if not nan:
        words = "missing is NULL"
    elif nan == unequal:
        words = "missing is NaN"
    else:
        words = f"missing is NaN for feature {', '.join(map(str, nan))}, NULL for the others"
    return _as_read(made, frozenset(nan)), words, frozenset(nan)


def _formulas(made: Tree | RuleSet) -> Iterator[Formula]:
    match made:
        case Tree(steps):
            yield from (step.formula for step in steps if isinstance(step, Step))
        case RuleSet():
            yield from (formula for formula, _ in made.terms)
        case _:
            assert_never(made)


def _atoms(formulas: Iterable[Formula]) -> Iterator[Among]:
    waiting = list(formulas)
    while waiting:
        pay(1)
        match waiting.pop():
            case Among() as part:
                yield part
            case Both(parts) | Either(parts):
                waiting += parts
            case Sign():
                raise Unread("points where a condition on features is expected")


def _as_read(made: Tree | RuleSet, nan: Way) -> StepDecision | PointDecision:
    match made:
        case Tree(steps):
            return StepDecision(
                tuple(
                    step if isinstance(step, Outcome) else Ask(_read(step.formula, nan), step.then, step.otherwise)
                    for step in steps
                )
            )
        case RuleSet(bias, terms, tie_to, says_scores):
            read = tuple((_read(formula, nan), points) for formula, points in terms)
            return PointDecision(bias, read, None, tie_to, None, says_scores, None)
        case _:
            assert_never(made)


def _read(formula: Formula, nan: Way) -> Condition:
    """A formula as the prover takes it."""
    pay(1)
    match formula:
        case Among(feature, numbers, null, is_nan):
            ranges = [Values(least, most, missing=False) for least, most in numbers]
            if is_nan if feature in nan else null:
                ranges.append(Values(math.inf, -math.inf, missing=True))
            return Test(feature, tuple(ranges)) if ranges else conditions.FALSE
        case Both(parts):
            return conditions.all_of(_read(part, nan) for part in parts)
        case Either(parts):
            return conditions.any_of(_read(part, nan) for part in parts)
        case Sign():
            raise Unread("points where a condition on features is expected")
        case _:
            assert_never(formula)
