"""Where two programs differ, described as a rule: the box around a counterexample, as wide as can be shown.

A box is widened one feature at a time, and kept only while every row in it is known to get the one class from one side
and the other class from the other. So the rule may be narrower than the truth, and never wider.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from gbfl_compile.audit.answer import Region
from gbfl_compile.audit.words import atoms_text
from gbfl_compile.check.cells import Box, Cells, cell_at, cells_of, mask_of, value_in
from gbfl_compile.check.proof import Counterexample
from gbfl_compile.check.reading import All, Any, Ask, Condition, Decided, Not, Reading, Scored, Test
from gbfl_compile.check.wide import as_reading
from gbfl_compile.ir.nodes import Program

Truth = bool | None
"""None: it depends on where in the box a row lies."""


def region_of(program: Program, reading: Reading, shown: Counterexample) -> Region:
    """The widest box found around a row on which the labels differ."""
    source = as_reading(program)
    cells = cells_of((source, reading), reading.dtype)
    masks = Masks(cells)
    box = {f: cell_at(cells, f, value) for f, value in enumerate(shown.row)}
    approved, deployed = shown.source.label, shown.target.label
    if approved != deployed:
        want = program.classes.index(approved), reading.classes.index(deployed)
        for feature in sorted(box, key=lambda f: len(cells.starts[f])):
            box = _widened(masks, source, reading, box, feature, want)
    kept = tuple((f, mask) for f, mask in sorted(box.items()) if mask != cells.everything(f))
    row = [simple_value(cells, f, dict(kept), value) for f, value in enumerate(shown.row)]
    if approved == deployed:  # only something beside the label differs, and only this row is known to show it
        row = list(shown.row)
    values = {name: None if math.isnan(value) else value for name, value in zip(program.features, row, strict=True)}
    beside = _beside(shown) if approved == deployed else None
    return Region(atoms_text(cells, kept, program.features), values, approved, deployed, beside)


def _beside(shown: Counterexample) -> tuple[str, list[float] | int, list[float] | int] | None:
    """What differs beside the label, the plainest first."""
    source, target = shown.source, shown.target
    if target.scores is not None and source.scores is not None and source.scores != target.scores:
        return "scores", list(source.scores), list(target.scores)
    if target.leaf is not None and source.leaf is not None and source.leaf != target.leaf:
        return "leaves", source.leaf, target.leaf
    if target.probabilities is not None and source.probabilities != target.probabilities:
        return "probabilities", list(source.probabilities), list(target.probabilities)
    return None


def simple_value(cells: Cells, feature: int, box: Box, value: float) -> float:
    """The value, or the shortest number in the same cells of the box: rows that people can look at."""
    allowed = box.get(feature, cells.everything(feature))
    ordinary = value_in(cells, feature, allowed)
    if math.isnan(ordinary):
        return value
    for digits in range(17):
        rounded = round(ordinary, digits) + 0.0
        if cell_at(cells, feature, rounded) & allowed and (cells.dtype == "float64" or digits == 0):
            return rounded
    return ordinary


def _widened(
    masks: Masks, source: Reading, reading: Reading, box: Box, feature: int, want: tuple[int, int]
) -> dict[int, int]:
    """The box with more cells of one feature: all of them, or neighbour by neighbour."""

    def holds(mask: int) -> bool:
        tried = {**box, feature: mask}
        return winners(masks, source, tried) == {want[0]} and winners(masks, reading, tried) == {want[1]}

    cells, mask = masks.cells, box[feature]
    if holds(cells.everything(feature)):
        return {**box, feature: cells.everything(feature)}
    if mask != cells.missing(feature):
        for more in _neighbours(cells, feature, mask):
            if not holds(mask | more):
                break
            mask |= more
        for more in _neighbours(cells, feature, mask, down=True):
            if not holds(mask | more):
                break
            mask |= more
    return {**box, feature: mask}


def _neighbours(cells: Cells, feature: int, mask: int, down: bool = False) -> Iterator[int]:
    """The cells above (or below) those of a mask, one after another; the missing one is no neighbour."""
    if down:
        cell = (mask & -mask).bit_length() - 2
        while cell >= 0:
            yield 1 << cell
            cell -= 1
        return
    cell = mask.bit_length()
    while cell <= len(cells.starts[feature]):
        yield 1 << cell
        cell += 1


@dataclass(slots=True)
class Masks:
    """The masks of the tests of some readings, each worked out once: a box is asked about them thousands of times."""

    cells: Cells
    known: dict[int, int] = field(default_factory=dict)
    """By identity: the readings outlive this."""

    def of(self, test: Test) -> int:
        """The cells in which a test holds."""
        found = self.known.get(id(test))
        if found is None:
            found = self.known[id(test)] = mask_of(self.cells, test)
        return found


def truth(masks: Masks, condition: Condition, box: Box) -> Truth:
    """Whether a condition holds for every row of a box, for none, or it depends."""
    match condition:
        case Test(feature, _):
            mask, asked = box.get(feature, masks.cells.everything(feature)), masks.of(condition)
            return True if mask & ~asked == 0 else False if mask & asked == 0 else None
        case All(parts):
            return _decided(masks, parts, box, False)
        case Any(parts):
            return _decided(masks, parts, box, True)
        case Not(part):
            inner = truth(masks, part, box)
            return None if inner is None else not inner
        case _:
            assert_never(condition)


def _decided(masks: Masks, parts: Sequence[Condition], box: Box, by: bool) -> Truth:
    """One part that answers `by` decides; else it depends where one does."""
    found: Truth = not by
    for part in parts:
        held = truth(masks, part, box)
        if held is by:
            return by
        found = None if held is None else found
    return found


def winners(masks: Masks, reading: Reading, box: Box) -> set[int]:
    """The classes a row of the box may get: perhaps too many, never too few."""
    match reading.decision:
        case Decided():
            return _reached(masks, reading.decision, box)
        case Scored():
            return _scored(masks, reading.decision, box)
        case _:
            assert_never(reading.decision)


def _reached(masks: Masks, decided: Decided, box: Box) -> set[int]:
    seen, waiting, found = {0}, [0], set()
    while waiting:
        step = decided.steps[waiting.pop()]
        if not isinstance(step, Ask):
            found.add(step.winner)
            continue
        held = truth(masks, step.condition, box)
        ways = {step.then} if held else {step.otherwise} if held is False else {step.then, step.otherwise}
        waiting += ways - seen
        seen |= ways
    return found


def _scored(masks: Masks, scored: Scored, box: Box) -> set[int]:
    """A class can win where no other is ahead of it for sure."""
    classes = range(len(scored.bias))
    known, open_points = list(scored.bias), []
    for condition, points in scored.terms:
        held = truth(masks, condition, box)
        if held:
            known = [a + b for a, b in zip(known, points, strict=True)]
        elif held is None:
            open_points.append(points)

    def surely_ahead(a: int, b: int) -> bool:
        least = known[a] - known[b] + sum(min(0, points[a] - points[b]) for points in open_points)
        tie_wins = a < b if scored.tie_to == "lower" else a > b
        return least > 0 or (least == 0 and tie_wins)

    return {c for c in classes if not any(surely_ahead(other, c) for other in classes if other != c)}
