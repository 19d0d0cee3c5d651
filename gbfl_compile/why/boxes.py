"""Does every row in a box get the same class? Decided exactly, or left open when the steps run out.

A box lists the values each feature may have; a feature it does not name may have any. The search splits boxes along
the clauses it meets, so it looks only at those the class depends on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np

from gbfl_compile.ir.intervals import ANYTHING, Values, above, below, both, outside, values_of, within
from gbfl_compile.ir.nodes import Clause, Leaf, Program, Scorecard, Tree
from gbfl_compile.why.prepared import Box, PreparedProgram, clauses_in


class OutOfSteps(Exception):
    """The search was abandoned: nothing is known."""


@dataclass(slots=True)
class Steps:
    """How much work is left. Not frozen, since it counts down; steps, not seconds, so that answers are repeatable."""

    left: int

    def take(self, count: int = 1) -> None:
        """Use up `count` steps."""
        if self.left <= 0:
            raise OutOfSteps
        self.left -= count


def other_class(prepared: PreparedProgram, box: Box, label: int, steps: Steps) -> Box | None:
    """A smaller box whose rows all get a class other than `label`; None where every row of `box` gets `label`."""
    match prepared.program.decision:
        case Tree():
            return _other_leaf(prepared, prepared.program.decision, box, label, steps)
        case Scorecard():
            card, classes = prepared.program.decision, range(len(prepared.program.classes))
            boxes = (_rival_wins(prepared, card, box, label, c, steps) for c in classes if c != label)
            return next((smaller for smaller in boxes if smaller is not None), None)
        case _:
            assert_never(prepared.program.decision)


def _other_leaf(prepared: PreparedProgram, tree: Tree, box: Box, label: int, steps: Steps) -> Box | None:
    """Walk down the tree with what can get there; a box is split only by a clause that holds on some of its rows."""
    waiting = [(0, box)]
    while waiting:
        steps.take()
        index, here = waiting.pop()
        if prepared.answers[index] == {label}:
            continue
        node = tree.nodes[index]
        if isinstance(node, Leaf):
            return here
        holds = _holds(here, prepared.ranges[node.clause])
        if holds is not None:
            waiting.append((node.then if holds else node.otherwise, here))
            continue
        inside, pieces = divide(here, prepared.program.clauses[node.clause])
        waiting += [(node.otherwise, piece) for piece in pieces]
        if inside is not None:
            waiting.append((node.then, inside))
    return None


def _rival_wins(
    prepared: PreparedProgram, card: Scorecard, box: Box, label: int, rival: int, steps: Steps
) -> Box | None:
    """A box in which class `rival` beats `label`: branch on the clause worth most, bound by all that could still hold.

    A rival with equally many points wins only if it comes first. Looking at one open clause is one step.
    """
    assert prepared.points is not None  # noqa: S101 - a rule set
    worth = prepared.points[:, rival] - prepared.points[:, label]
    start = card.bias[rival] - card.bias[label]
    least = 0 if rival < label else 1
    waiting = [box]
    while waiting:
        here = waiting.pop()
        always, sometimes = clauses_in(prepared, here)
        left = np.where(sometimes & ~always, worth, 0)
        steps.take(1 + int(np.count_nonzero(left)))
        lead = start + int(worth[always].sum())
        if lead + int(left[left > 0].sum()) < least:
            continue
        if lead + int(left[left < 0].sum()) >= least:
            return here
        widest = int(np.argmax(np.abs(left)))
        inside, pieces = divide(here, prepared.program.clauses[widest])
        inner = [] if inside is None else [inside]
        # the side that helps the rival is examined first, so it is pushed last
        waiting += [*pieces, *inner] if worth[widest] > 0 else [*inner, *pieces]
    return None


def _holds(box: Box, ranges: Sequence[tuple[int, Values]]) -> bool | None:
    """Whether a clause of these ranges holds on every row of the box, on none (False), or on some (None)."""
    always = True
    for feature, values in ranges:
        known = box.get(feature)
        if known is None:
            always = always and values == ANYTHING
        elif both(known, values).empty:
            return False
        else:
            always = always and within(known, values)
    return True if always else None


def divide(box: Box, clause: Clause) -> tuple[Box | None, list[Box]]:
    """The part of a box where the clause holds, if any, and the rest of it in boxes that do not overlap."""
    here = dict(box)
    pieces: list[Box] = []
    for atom in clause.atoms:
        known = here.get(atom.feature, ANYTHING)
        for left in (both(known, piece) for piece in outside(atom)):
            if not left.empty:
                pieces.append({**here, atom.feature: left})
        inside = both(known, values_of(atom))
        if inside.empty:
            return None, pieces
        here[atom.feature] = inside
    return here, pieces


def row_in(box: Box, like: Sequence[float | None]) -> list[float | None]:
    """The row of the box that is nearest to `like`."""
    return [_nearest(box.get(feature, ANYTHING), value) for feature, value in enumerate(like)]


def _nearest(values: Values, value: float | None) -> float | None:
    if value is None or not values.has_numbers:
        return None if values.missing else _a_number(values)
    return min(max(value, values.least), values.most)


def _a_number(values: Values) -> float:
    """Some number in the range, a finite one if there is any."""
    finite = (v for v in (0.0, values.least, values.most) if values.least <= v <= values.most and math.isfinite(v))
    return next(finite, values.least)


def cells(program: Program) -> list[list[Values]]:
    """For each feature its cells, ascending: ranges of numbers that no clause can tell apart."""
    starts: list[set[float]] = [{-math.inf} for _ in program.features]
    for clause in program.clauses:
        for atom in clause.atoms:
            inside = values_of(atom)
            starts[atom.feature].add(inside.least)
            if inside.most < math.inf:
                starts[atom.feature].add(above(inside.most))
    return [list(_ranges(sorted(one))) for one in starts]


def _ranges(starts: list[float]) -> Iterator[Values]:
    for start, following in zip(starts, [*starts[1:], None], strict=True):
        yield Values(start, math.inf if following is None else below(following), False)


def cell_of(ranges: Sequence[Values], value: float | None) -> Values:
    """The cell that contains a value; the missing value has its own."""
    if value is None:
        return Values(math.inf, -math.inf, True)
    return next(cell for cell in ranges if cell.least <= value <= cell.most)
