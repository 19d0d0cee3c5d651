"""What would change a row's class: the nearest other value of one feature, or of two where one alone does not.

Exact: between two cuts of the program no value differs from another, so the ends of each cell are all there is to try.
Where two do not either, some row of another class is brought as near as it goes: a change, not shown to be smallest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Label, Program
from gbfl_compile.ir.regions import Values
from gbfl_compile.why.boxes import OutOfSteps, Steps, cells, other_class, row_in
from gbfl_compile.why.ground import class_of, ground_of
from gbfl_compile.why.pairs import nearest_pair, too_many

STEPS = 100_000
"""Clauses looked at in the search for a row of another class."""


@dataclass(frozen=True, slots=True)
class Change:
    """New values for some features, and the class the row would then get."""

    values: tuple[tuple[int, float], ...]
    """(feature, value)."""
    label: Label
    distance: float
    """In widths of the training range, added up; infinite where a missing value is given a number."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes that change the class, nearest first."""

    found: tuple[Change, ...]
    searched: int
    """How many features at once were tried through: no change of so few does but those found."""

    @property
    def smallest(self) -> bool:
        """Whether no change of fewer features than those found would do."""
        return all(len(change.values) <= self.searched for change in self.found)


def changes(program: Program, row: Sequence[float | None]) -> Changes:
    """The nearest change of each feature, and each way, that changes the class.

    Where no single feature can, the nearest change of two.
    """
    plain = [math.nan if value is None else float(value) for value in row]
    label = evaluate(program, plain).label
    whole = _whole_numbered(program)
    options = [
        _options(ranges, value, feature in whole)
        for feature, (ranges, value) in enumerate(zip(cells(program), plain, strict=True))
    ]
    widths = _widths(program, options, plain)
    found = [
        change
        for feature, (down, up) in enumerate(options)
        for side in (down, up)
        if (change := _first_flip(program, plain, feature, side, label, widths[feature])) is not None
    ]
    if found:
        return Changes(tuple(sorted(found, key=lambda change: (change.distance, change.values))), 1)
    every = [np.array([*down, *up], dtype=np.float64) for down, up in options]
    searched = 1
    if not too_many(program, every):
        searched = 2
        far = [np.array([_distance(plain[f], v, widths[f]) for v in one.tolist()]) for f, one in enumerate(every)]
        two = nearest_pair(program, np.array(plain), every, far, program.classes.index(label))
        if two is not None:
            return Changes((Change(two.values, two.label, two.distance),), searched)
    return Changes(_of_many(program, plain, label, widths), searched)


def _options(ranges: Sequence[Values], value: float, whole: bool) -> tuple[list[float], list[float]]:
    """The nearest value of each other cell, those below and those above, nearest first.

    Of a feature of whole numbers the nearest whole one, where the cell has any.
    """
    if math.isnan(value):
        return [], [_a_number(cell) for cell in ranges]
    down = [cell.most for cell in ranges if cell.most < value]
    up = [cell.least for cell in ranges if cell.least > value]
    if whole:
        least = {cell.most: cell.least for cell in ranges}
        most = {cell.least: cell.most for cell in ranges}
        down = [math.floor(v) + 0.0 for v in down if math.isfinite(v) and math.floor(v) >= least[v]]
        up = [math.ceil(v) + 0.0 for v in up if math.isfinite(v) and math.ceil(v) <= most[v]]
    return down[::-1], up


def _a_number(cell: Values) -> float:
    """Some number of a cell: finite where it can be, and the next whole one where there is one."""
    if cell.least <= 0.0 <= cell.most:
        return 0.0
    nearest = cell.least if cell.least > 0 else cell.most
    if math.isinf(nearest):
        return nearest
    whole = float(math.ceil(nearest) if nearest > 0 else math.floor(nearest)) + 0.0
    return whole if cell.least <= whole <= cell.most else nearest


def _whole_numbered(program: Program) -> set[int]:
    """The features whose training rows held whole numbers only, where the miner has noted them."""
    mining = program.metadata.get("mining")
    names = mining.get("whole_numbers") if isinstance(mining, dict) else None
    return {i for i, name in enumerate(program.features) if isinstance(names, list) and name in names}


def _first_flip(
    program: Program, row: list[float], feature: int, values: list[float], label: Label, width: float
) -> Change | None:
    tried = np.tile(np.array(row), (len(values), 1))
    tried[:, feature] = values
    answers = evaluate_many(program, tried).labels
    flips = np.flatnonzero(answers != label)
    if not len(flips):
        return None
    value = values[int(flips[0])]
    return Change(((feature, value),), answers[flips[0]], _distance(row[feature], value, width))


def _of_many(program: Program, row: list[float], label: Label, widths: list[float]) -> tuple[Change, ...]:
    """A change of as many features as it takes: a row of another class, each value put back where it stays one."""
    ground, own = ground_of(program), program.classes.index(label)
    plain = [None if math.isnan(value) else value for value in row]
    try:
        box = other_class(ground, {}, own, Steps(STEPS))
    except OutOfSteps:
        return ()
    if box is None:
        return ()
    other = row_in(box, plain)
    for feature, value in enumerate(plain):
        nearer = [*other[:feature], value, *other[feature + 1 :]]
        if class_of(ground, nearer) != own:
            other = nearer
    values = tuple(
        (f, v) for f, (v, before) in enumerate(zip(other, plain, strict=True)) if v is not None and v != before
    )
    if any(v is None and before is not None for v, before in zip(other, plain, strict=True)):
        return ()  # it would have to lose a value: nothing anybody can do
    reached = program.classes[class_of(ground, other)]
    return (Change(values, reached, sum(_distance(row[f], v, widths[f]) for f, v in values)),)


def _distance(before: float, after: float, width: float) -> float:
    return math.inf if math.isnan(before) else abs(after - before) / width


def _widths(program: Program, options: list[tuple[list[float], list[float]]], row: list[float]) -> list[float]:
    """How wide each feature's training rows were spread; where that is not known, its cuts and the row's value."""
    training = program.metadata.get("training")
    histograms = training.get("histograms") if isinstance(training, dict) else None
    known = histograms if isinstance(histograms, list) and len(histograms) == len(row) else [None] * len(row)
    return [
        _spread(told) or _span([*down, *up, *(value for value in (row[feature],) if math.isfinite(value))]) or 1.0
        for feature, (told, (down, up)) in enumerate(zip(known, options, strict=True))
    ]


def _spread(told: object) -> float | None:
    """The spread of a histogram in the metadata, which may come from anyone."""
    edges = told.get("edges") if isinstance(told, dict) else None
    if not isinstance(edges, list) or not all(isinstance(edge, float) for edge in edges):
        return None
    return _span(edges)


def _span(values: list[float]) -> float | None:
    width = max(values) - min(values) if values else 0.0
    return width if 0 < width < math.inf else None
