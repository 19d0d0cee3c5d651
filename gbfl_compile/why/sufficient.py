"""Which values of a row suffice for its class, for any values of the rest: a pertinent positive of the program itself.

The smallest set is found through counterexamples to smaller ones: each is a row of another class that differs from the
given row in some features, and a sufficient set must contain one of them. Then each range is widened as far as it goes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.intervals import Values
from gbfl_compile.ir.nodes import Program
from gbfl_compile.why.boxes import (
    Box,
    OutOfSteps,
    PreparedProgram,
    Steps,
    cell_of,
    cells,
    class_of,
    other_class,
    prepare,
    row_in,
)

STEPS = 100_000
"""Limit on the clauses examined in the search for the smallest set, and again for shrinking and for widening it.

At 300 clauses of 30 features that is about a second (`python -m tests.bench why`).
"""
FEW_STEPS = 300
"""What each later question may use even when the steps have run out."""
ROWS_PER_STEP = 8
"""How many counterexamples are compared with a set in the time of one step."""


@dataclass(frozen=True, slots=True)
class Sufficient:
    """Conditions of the row that suffice: every row on which they hold gets the same class."""

    conditions: tuple[tuple[int, Values], ...]
    """(feature, the values it may have)."""
    smallest: bool
    """Whether no smaller set of features suffices; otherwise it is only known that this one does."""


@dataclass(frozen=True, slots=True)
class _Problem:
    """One row of one program, prepared."""

    program: PreparedProgram
    row: Sequence[float | None]
    label: int
    cells: list[list[Values]]
    own: list[Values]
    """The cell of each value of the row."""


def sufficient(program: Program, row: Sequence[float | None]) -> Sufficient:
    """The fewest conditions that keep the row's class, each as wide as possible."""
    label = program.classes.index(evaluate(program, row).label)
    ranges = cells(program)
    plain = [None if value is None or math.isnan(value) else float(value) + 0.0 for value in row]
    problem = _Problem(
        prepare(program), plain, label, ranges, [cell_of(r, v) for r, v in zip(ranges, plain, strict=True)]
    )
    against: list[frozenset[int]] = []
    try:
        chosen, smallest = _fewest(problem, against, Steps(STEPS)), True
    except OutOfSteps:
        chosen, smallest = _fewer(problem, against), False
    box = _widen(problem, {feature: problem.own[feature] for feature in chosen})
    return Sufficient(tuple(sorted(box.items())), smallest)


def _features_used(problem: _Problem) -> list[int]:
    """The features that some clause tests; no other can matter."""
    return sorted({feature for clause in problem.program.ranges for feature, _ in clause})


def _fewest(problem: _Problem, against: list[frozenset[int]], steps: Steps) -> tuple[int, ...]:
    """The smallest set; `against` collects the features in which each counterexample differs from the row."""
    features = _features_used(problem)
    for size in range(len(features) + 1):
        for chosen in itertools.combinations(features, size):
            steps.take(1 + len(against) // ROWS_PER_STEP)
            if any(differing.isdisjoint(chosen) for differing in against):
                continue
            counterexample = other_class(problem.program, {f: problem.own[f] for f in chosen}, problem.label, steps)
            if counterexample is None:
                return chosen
            against.append(_differing(problem, counterexample))
    return tuple(features)


def _differing(problem: _Problem, box: Box) -> frozenset[int]:
    """The features in which some row of the box differs from ours; as few as possible, to rule out many sets."""
    other = row_in(box, problem.row)
    for feature, value in enumerate(problem.row):
        nearer = [*other[:feature], value, *other[feature + 1 :]]
        if class_of(problem.program, nearer) != problem.label:
            other = nearer
    return frozenset(
        feature for feature, value in enumerate(other) if cell_of(problem.cells[feature], value) != problem.own[feature]
    )


def _fewer(problem: _Problem, against: list[frozenset[int]]) -> tuple[int, ...]:
    """A set that suffices: features are dropped, least needed first, where the class is shown to stay the same."""
    chosen = _features_used(problem)
    steps = Steps(STEPS)
    needed = {feature: sum(feature in differing for differing in against) for feature in chosen}
    for feature in sorted(chosen, key=lambda feature: needed[feature]):
        rest = [f for f in chosen if f != feature]
        if _suffices(problem, {f: problem.own[f] for f in rest}, steps):
            chosen = rest
    return tuple(chosen)


def _suffices(problem: _Problem, box: Box, steps: Steps) -> bool:
    """Whether the box is shown to have only one class. Each question may use an eighth of the remaining steps."""
    share = Steps(max(FEW_STEPS, steps.left // 8))
    before = share.left
    try:
        return other_class(problem.program, box, problem.label, share) is None
    except OutOfSteps:
        return False
    finally:
        steps.left = max(0, steps.left - (before - share.left))


def _widen(problem: _Problem, box: dict[int, Values]) -> dict[int, Values]:
    """Extend each range cell by cell, first down and then up, as far as the class stays the same."""
    steps = Steps(STEPS)
    for feature in tuple(box):
        ranges = problem.cells[feature]
        if not box[feature].has_numbers:
            continue
        place = ranges.index(problem.own[feature])
        for upwards in (False, True):
            beyond = ranges[place + 1 :] if upwards else ranges[:place][::-1]
            extended = [_extend(box[feature], cell, upwards) for cell in beyond]
            low, high = 0, len(extended)  # extended[:low] are known to suffice, extended[high:] are not
            while low < high:
                middle = (low + high) // 2 if low or high < len(extended) else high - 1  # everything first
                if _suffices(problem, {**box, feature: extended[middle]}, steps):
                    low = middle + 1
                else:
                    high = middle
            if low:
                box[feature] = extended[low - 1]
    return box


def _extend(values: Values, cell: Values, upwards: bool) -> Values:
    return Values(values.least, cell.most, False) if upwards else Values(cell.least, values.most, False)
