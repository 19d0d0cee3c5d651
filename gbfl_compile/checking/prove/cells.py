"""Numbers cut into cells: values that no condition tells apart are one cell, and a set of values is a bit mask.

A feature with the cuts 1.0 and 2.0 has the cells `x < 1`, `1 <= x < 2`, `x >= 2` and missing: bits 0 to 3. And, or and
not of conditions on one feature are then `&`, `|` and `^`, exactly, for every double (or every float32).

Of the classes that a row of a box can get, perhaps too many are named, never too few.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray

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
)
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.intervals import Dtype, Values, above, below, float32_at_or_above, float32_at_or_below

Box: TypeAlias = Mapping[int, int]
"""Feature -> the mask of cells its value may be in; a feature that is not there may have any value."""

Atoms: TypeAlias = tuple[tuple[int, int], ...]
"""(feature, mask) pairs that all hold, in order of features; `()` is true."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Per feature the numbers at which a new cell begins: cell 0 lies below the first, the last mask bit is missing."""

    starts: tuple[tuple[float, ...], ...]
    dtype: Dtype = "float64"

    def everything(self, feature: int) -> int:
        """The mask of all cells of a feature, the missing one too."""
        return (1 << (len(self.starts[feature]) + 2)) - 1

    def missing(self, feature: int) -> int:
        """The mask of the missing value alone."""
        return 1 << (len(self.starts[feature]) + 1)


def cells_of(readings: Iterable[Reading], dtype: Dtype = "float64") -> Cells:
    """The cells that all tests in these readings cut; the readings share their features."""
    listed = tuple(readings)
    starts: list[set[float]] = [set() for _ in listed[0].features]
    for reading in listed:
        for test in _tests(_conditions(reading)):
            if not 0 <= test.feature < len(starts):
                raise BadInput(f"{reading.place}: unknown feature {test.feature}, there are {len(starts)}")
            for piece in test.values:
                starts[test.feature].update(_cuts(piece, dtype))
    return Cells(tuple(tuple(sorted(ends)) for ends in starts), dtype)


def _conditions(reading: Reading) -> Iterator[Condition]:
    match reading.decision:
        case StepDecision(steps):
            yield from (step.condition for step in steps if not isinstance(step, Outcome))
        case PointDecision(_, terms):
            yield from (condition for condition, _ in terms)
        case _:
            assert_never(reading.decision)


def _tests(conditions: Iterable[Condition]) -> Iterator[Test]:
    waiting = list(conditions)
    while waiting:
        match waiting.pop():
            case Test() as test:
                yield test
            case And(parts) | Or(parts):
                waiting += parts
            case Not(part):
                waiting.append(part)


def _cuts(values: Values, dtype: Dtype) -> Iterator[float]:
    ends = _ends(values.least, values.most, dtype)
    if ends is None:
        return
    least, after = ends
    if least > -math.inf:
        yield least
    if after is not None:
        yield after


@lru_cache(maxsize=100_000)
def _ends(least: float, most: float, dtype: Dtype) -> tuple[float, float | None] | None:
    """The first number in a range and the first one past it (None: there is none); None where no number is in it."""
    if math.isnan(least) or math.isnan(most):
        raise BadInput("a range from or to NaN: a missing value is not a bound")
    least, most = ends_of(Values(least, most, missing=False), dtype)
    if least > most:
        return None
    return least + 0.0, None if most == math.inf else above(most, dtype)


def mask_of(cells: Cells, test: Test) -> int:
    """The cells in which a test holds."""
    starts = cells.starts[test.feature]
    mask = 0
    for piece in test.values:
        if piece.missing:
            mask |= cells.missing(test.feature)
        ends = _ends(piece.least, piece.most, cells.dtype)
        if ends is not None:
            first = 0 if ends[0] == -math.inf else bisect_left(starts, ends[0]) + 1
            past = len(starts) + 1 if ends[1] is None else bisect_left(starts, ends[1]) + 1
            mask |= (1 << past) - (1 << first)
    return mask


def ends_of(values: Values, dtype: Dtype) -> tuple[float, float]:
    """The first and the last number of a kind in a range; the last lies below the first where there is none."""
    if dtype == "float32":
        return float32_at_or_above(values.least), float32_at_or_below(values.most)
    return values.least, values.most


def join(a: Atoms, b: Atoms) -> Atoms | None:
    """Both hold, or None where no value can do that."""
    masks = dict(a)
    for feature, mask in b:
        masks[feature] = masks.get(feature, mask) & mask
        if not masks[feature]:
            return None
    return tuple(sorted(masks.items()))


def value_in(cells: Cells, feature: int, mask: int) -> float:
    """An ordinary number of the cells in `mask`, NaN where only the missing value is in it."""
    numbers = mask & ~cells.missing(feature)
    if not numbers:
        return math.nan
    starts = cells.starts[feature]
    if numbers.bit_count() > 1:
        numbers &= ~1  # a number next to a cut says more than one far below all of them
    cell = (numbers & -numbers).bit_length() - 1
    least = starts[cell - 1] if cell else -math.inf
    most = math.inf
    if cell < len(starts):
        most = below(starts[cell], cells.dtype)
    value = representative(Values(least, most, missing=False))
    return min(max(float32_at_or_below(value), least), most) if cells.dtype == "float32" else value


def row_in(cells: Cells, box: Box) -> list[float]:
    """A row of a box; features the box leaves open get an ordinary number."""
    every = range(len(cells.starts))
    return [value_in(cells, feature, box.get(feature, cells.everything(feature))) for feature in every]


def cell_at(cells: Cells, feature: int, value: float) -> int:
    """The mask of the one cell a value lies in; NaN is missing."""
    if math.isnan(value):
        return cells.missing(feature)
    return 1 << bisect_right(cells.starts[feature], value)


def representative(values: Values) -> float:
    """An ordinary number from a range, NaN where only the missing value is in it."""
    if not values.has_numbers:
        return math.nan
    least, most = values.least, values.most
    if least == most:
        return least
    if math.isinf(least) and math.isinf(most):
        return 0.0
    if math.isinf(most):
        middle = least + max(1.0, abs(least))
    elif math.isinf(least):
        middle = most - max(1.0, abs(most))
    else:
        middle = least / 2 + most / 2
    return min(max(middle, least), most)


INT64_SAFE = 2**62

Truth: TypeAlias = bool | None
"""None: it depends on where in the box a row lies."""


@dataclass(slots=True)
class Masks:
    """The masks of the tests of some readings, each computed once: they are needed for thousands of boxes."""

    cells: Cells
    known: dict[int, int] = field(default_factory=dict)
    """By identity: the readings outlive this."""

    def of(self, test: Test) -> int:
        """The cells in which a test holds."""
        mask = self.known.get(id(test))
        if mask is None:
            mask = self.known[id(test)] = mask_of(self.cells, test)
        return mask


def truth(masks: Masks, condition: Condition, box: Box) -> Truth:
    """Whether a condition holds for every row of a box, for none, or it depends."""
    match condition:
        case Test(feature, _):
            have, mask = box.get(feature, masks.cells.everything(feature)), masks.of(condition)
            return True if have & ~mask == 0 else False if have & mask == 0 else None
        case And(parts):
            return _all_or_any(masks, parts, box, False)
        case Or(parts):
            return _all_or_any(masks, parts, box, True)
        case Not(part):
            inner = truth(masks, part, box)
            return None if inner is None else not inner
        case _:
            assert_never(condition)


def _all_or_any(masks: Masks, parts: Sequence[Condition], box: Box, by: bool) -> Truth:
    """One part that answers `by` decides; else it depends where one does."""
    answer: Truth = not by
    for part in parts:
        held = truth(masks, part, box)
        if held is by:
            return by
        answer = None if held is None else answer
    return answer


def winners(masks: Masks, reading: Reading, box: Box) -> frozenset[int]:
    """The classes a row of the box may get: perhaps too many, never too few."""
    match reading.decision:
        case StepDecision():
            return _reachable(masks, reading.decision, box)
        case PointDecision():
            return _highest(masks, reading.decision, box)
        case _:
            assert_never(reading.decision)


def _reachable(masks: Masks, decided: StepDecision, box: Box) -> frozenset[int]:
    seen, waiting, classes = {0}, [0], set()
    while waiting:
        step = decided.steps[waiting.pop()]
        if not isinstance(step, Ask):
            classes.add(step.winner)
            continue
        held = truth(masks, step.condition, box)
        ways = {step.then} if held else {step.otherwise} if held is False else {step.then, step.otherwise}
        waiting += ways - seen
        seen |= ways
    return frozenset(classes)


def _highest(masks: Masks, scored: PointDecision, box: Box) -> frozenset[int]:
    points, open_points = list(scored.bias), []
    for condition, more in scored.terms:
        held = truth(masks, condition, box)
        if held:
            points = [a + b for a, b in zip(points, more, strict=True)]
        elif held is None:
            open_points.append(more)
    return possible_winners(points, open_points, scored.tie_to)


def possible_winners(
    points: Sequence[int], open_points: Sequence[Sequence[int]], tie_to: Literal["lower", "higher"]
) -> frozenset[int]:
    """The classes that can still win: no other class is ahead of them by more than the open points can make up."""
    now = _exact([points])[0]
    ahead = now[:, None] - now[None, :]
    if open_points:
        more = _exact(open_points)
        ahead = ahead + np.maximum(more[:, :, None] - more[:, None, :], 0).sum(axis=0)
    classes = range(len(points))
    lower = tie_to == "lower"
    return frozenset(
        c
        for c in classes
        if all(ahead[c, d] > 0 or (ahead[c, d] == 0 and (c < d if lower else c > d)) for d in classes if d != c)
    )


def _exact(rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """Points as an array: of 64 bits where no sum can pass them, of Python's own whole numbers otherwise."""
    safe = sum(max(map(abs, row), default=0) for row in rows) < INT64_SAFE // 2
    return np.array(rows, dtype=np.int64 if safe else object)
