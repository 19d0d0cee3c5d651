"""Which classes can a row of a box get? Perhaps too many are named, never too few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.checking.prove.cells import Box, Cells, mask_of
from gbfl_compile.checking.reading.nodes import And, Ask, Condition, Not, Or, PointDecision, Reading, StepDecision, Test

INT64_SAFE = 2**62

Truth: TypeAlias = bool | None
"""None: it depends on where in the box a row lies."""


@dataclass(slots=True)
class Masks:
    """The masks of the tests of some readings, each worked out once: a box is asked about them thousands of times."""

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
