"""Finds rows that hold these clauses and fail those: how a witness gets to the place it is to test."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from gbfl_compile.ir.nodes import Clause
from gbfl_compile.ir.regions import ANYTHING, Values, both, outside, values_of

MOST_STEPS = 2_000
"""A search that has tried this often gives up: the place is then taken as one no row reaches."""

Box = Mapping[int, Values]


def find_box(held: Sequence[Clause], failed: Sequence[Clause], pinned: Box) -> Box | None:
    """Ranges for some features such that every row within them holds `held` and fails `failed`, or None.

    `pinned` are ranges to start from. Depth first: each clause that has to fail gets one atom to fail at.
    """
    box: dict[int, Values] | None = dict(pinned)
    for clause in held:
        box = None if box is None else _narrowed(box, clause)
    if box is None:
        return None
    open_clauses = sorted(failed, key=lambda clause: len(clause.atoms))
    ways = [_ways_to_fail(open_clauses[0], box)] if open_clauses else []
    boxes = [box]
    for _ in range(MOST_STEPS):
        if len(boxes) > len(open_clauses):
            return boxes[-1]
        found = next(ways[-1], None)
        if found is not None:
            boxes.append(found)
            if len(ways) < len(open_clauses):
                ways.append(_ways_to_fail(open_clauses[len(ways)], found))
            continue
        ways.pop()
        boxes.pop()
        if not ways:
            return None
    return None


def _narrowed(box: dict[int, Values], clause: Clause) -> dict[int, Values] | None:
    narrowed = dict(box)
    for atom in clause.atoms:
        left = both(narrowed.get(atom.feature, ANYTHING), values_of(atom))
        if left.empty:
            return None
        narrowed[atom.feature] = left
    return narrowed


def _ways_to_fail(clause: Clause, box: dict[int, Values]) -> Iterator[dict[int, Values]]:
    """The box itself where the clause fails in it anyway, then the box narrowed to fail at one atom after another."""
    if any(both(box.get(atom.feature, ANYTHING), values_of(atom)).empty for atom in clause.atoms):
        yield box
        return
    for atom in clause.atoms:
        for piece in outside(atom):
            left = both(box.get(atom.feature, ANYTHING), piece)
            if not left.empty:
                yield {**box, atom.feature: left}


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
