"""What of a row is enough for its class, whatever the rest of it were: a pertinent positive of the program itself.

The fewest features are found by the rows that speak against smaller sets: each such row differs from the given one in
some features, and a set that suffices must hold one of them. Then each feature's range is widened as far as it goes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Program
from gbfl_compile.ir.regions import Values
from gbfl_compile.why.boxes import OutOfSteps, Steps, cell_of, cells, other_class, row_in
from gbfl_compile.why.ground import Box, Ground, class_of, ground_of

STEPS = 100_000
"""Clauses looked at before the search for the smallest set is given up; and again, before making it smaller and wider.

At 300 clauses of 30 features that is about a second, by `python -m tests.bench why`.
"""
FEW_STEPS = 300
"""What each later question may still take."""
ROWS_A_STEP = 8
"""So many rows that speak against a set are looked at in the time of a step."""


@dataclass(frozen=True, slots=True)
class Sufficient:
    """Conditions of the row that suffice: every row on which they hold gets the same class."""

    conditions: tuple[tuple[int, Values], ...]
    """(feature, the values it may have)."""
    smallest: bool
    """Whether no set of fewer features would do; else it is only known that these do."""


@dataclass(frozen=True, slots=True)
class _Given:
    ground: Ground
    row: Sequence[float | None]
    label: int
    cells: list[list[Values]]
    own: list[Values]
    """The cell of each value of the row."""


def sufficient(program: Program, row: Sequence[float | None]) -> Sufficient:
    """The fewest conditions that keep the row's class, as wide as they can be."""
    label = program.classes.index(evaluate(program, row).label)
    ranges = cells(program)
    plain = [None if value is None or math.isnan(value) else float(value) + 0.0 for value in row]
    given = _Given(
        ground_of(program), plain, label, ranges, [cell_of(r, v) for r, v in zip(ranges, plain, strict=True)]
    )
    against: list[frozenset[int]] = []
    try:
        chosen, smallest = _fewest(given, against, Steps(STEPS)), True
    except OutOfSteps:
        chosen, smallest = _fewer(given, against), False
    box = _widened(given, {feature: given.own[feature] for feature in chosen})
    return Sufficient(tuple(sorted(box.items())), smallest)


def _asked(given: _Given) -> list[int]:
    """The features that any clause asks; no other can matter."""
    return sorted({feature for clause in given.ground.ranges for feature, _ in clause})


def _fewest(given: _Given, against: list[frozenset[int]], steps: Steps) -> tuple[int, ...]:
    """The smallest set; `against` gets the features in which each row found to speak against a set differs."""
    features = _asked(given)
    for size in range(len(features) + 1):
        for chosen in itertools.combinations(features, size):
            steps.take(1 + len(against) // ROWS_A_STEP)
            if any(differing.isdisjoint(chosen) for differing in against):
                continue
            found = other_class(given.ground, {f: given.own[f] for f in chosen}, given.label, steps)
            if found is None:
                return chosen
            against.append(_differing(given, found))
    return tuple(features)


def _differing(given: _Given, box: Box) -> frozenset[int]:
    """The features in which a row of another class differs from ours; few, so that it speaks against many sets."""
    other = row_in(box, given.row)
    for feature, value in enumerate(given.row):
        nearer = [*other[:feature], value, *other[feature + 1 :]]
        if class_of(given.ground, nearer) != given.label:
            other = nearer
    return frozenset(
        feature for feature, value in enumerate(other) if cell_of(given.cells[feature], value) != given.own[feature]
    )


def _fewer(given: _Given, against: list[frozenset[int]]) -> tuple[int, ...]:
    """A set that suffices: each feature is let go where that can be shown to keep the class, the least needed first."""
    chosen = _asked(given)
    steps = Steps(STEPS)
    needed = {feature: sum(feature in differing for differing in against) for feature in chosen}
    for feature in sorted(chosen, key=lambda feature: needed[feature]):
        rest = [f for f in chosen if f != feature]
        if _suffices(given, {f: given.own[f] for f in rest}, steps):
            chosen = rest
    return tuple(chosen)


def _suffices(given: _Given, box: Box, steps: Steps) -> bool:
    """Whether the box is shown to have one class. One question may use an eighth of the steps that are left."""
    share = Steps(max(FEW_STEPS, steps.left // 8))
    before = share.left
    try:
        return other_class(given.ground, box, given.label, share) is None
    except OutOfSteps:
        return False
    finally:
        steps.left = max(0, steps.left - (before - share.left))


def _widened(given: _Given, box: dict[int, Values]) -> dict[int, Values]:
    """Each range grown cell by cell, first down and then up, as far as the class stays."""
    steps = Steps(STEPS)
    for feature in tuple(box):
        ranges = given.cells[feature]
        if not box[feature].has_numbers:
            continue
        place = ranges.index(given.own[feature])
        for upwards in (False, True):
            beyond = ranges[place + 1 :] if upwards else ranges[:place][::-1]
            grown = [_grown(box[feature], cell, upwards) for cell in beyond]
            low, high = 0, len(grown)  # grown[:low] are known to do, grown[high:] not
            while low < high:
                middle = (low + high) // 2 if low or high < len(grown) else high - 1  # all of it first
                if _suffices(given, {**box, feature: grown[middle]}, steps):
                    low = middle + 1
                else:
                    high = middle
            if low:
                box[feature] = grown[low - 1]
    return box


def _grown(values: Values, cell: Values, upwards: bool) -> Values:
    return Values(values.least, cell.most, False) if upwards else Values(cell.least, values.most, False)
