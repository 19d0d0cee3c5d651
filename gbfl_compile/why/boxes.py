"""Does every row in a box get the same class? Decided exactly, or said to be open when the steps run out.

A box gives each feature the values it may have; a feature it does not name may have any. The search splits boxes along
the clauses it meets, so it looks at no more of them than the class depends on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np

from gbfl_compile.ir.nodes import Clause, Leaf, Program, Scorecard, Tree
from gbfl_compile.ir.regions import ANYTHING, Values, above, below, both, outside, values_of, within
from gbfl_compile.why.ground import Box, Ground, clauses_in


class OutOfSteps(Exception):
    """The search was given up: nothing is known."""


@dataclass(slots=True)
class Steps:
    """How much work is left. Not frozen, for it is counted down; steps and not seconds, so that answers repeat."""

    left: int

    def take(self, count: int = 1) -> None:
        """Use some up."""
        if self.left <= 0:
            raise OutOfSteps
        self.left -= count


def other_class(ground: Ground, box: Box, label: int, steps: Steps) -> Box | None:
    """A smaller box whose rows all get another class than `label`; None where every row of `box` gets it."""
    match ground.program.decision:
        case Tree():
            return _other_leaf(ground, ground.program.decision, box, label, steps)
        case Scorecard():
            card, classes = ground.program.decision, range(len(ground.program.classes))
            found = (_beaten(ground, card, box, label, c, steps) for c in classes if c != label)
            return next((smaller for smaller in found if smaller is not None), None)
        case _:
            assert_never(ground.program.decision)


def _other_leaf(ground: Ground, tree: Tree, box: Box, label: int, steps: Steps) -> Box | None:
    """Down the tree with all that can get there; a box is cut only by a clause that holds on some of its rows."""
    waiting = [(0, box)]
    while waiting:
        steps.take()
        index, here = waiting.pop()
        if ground.answers[index] == {label}:
            continue
        node = tree.nodes[index]
        if isinstance(node, Leaf):
            return here
        holds = _holds(here, ground.ranges[node.clause])
        if holds is not None:
            waiting.append((node.then if holds else node.otherwise, here))
            continue
        inside, pieces = divided(here, ground.program.clauses[node.clause])
        waiting += [(node.otherwise, piece) for piece in pieces]
        if inside is not None:
            waiting.append((node.then, inside))
    return None


def _beaten(ground: Ground, card: Scorecard, box: Box, label: int, rival: int, steps: Steps) -> Box | None:
    """A box in which class `rival` beats `label`: branch on the clause worth most, bound by all that could still hold.

    A rival with as many points wins only where it stands before. A look at one open clause is one step.
    """
    assert ground.points is not None  # noqa: S101 - a rule set
    worth = ground.points[:, rival] - ground.points[:, label]
    start = card.bias[rival] - card.bias[label]
    least = 0 if rival < label else 1
    waiting = [box]
    while waiting:
        here = waiting.pop()
        always, sometimes = clauses_in(ground, here)
        left = np.where(sometimes & ~always, worth, 0)
        steps.take(1 + int(np.count_nonzero(left)))
        lead = start + int(worth[always].sum())
        if lead + int(left[left > 0].sum()) < least:
            continue
        if lead + int(left[left < 0].sum()) >= least:
            return here
        widest = int(np.argmax(np.abs(left)))
        inside, pieces = divided(here, ground.program.clauses[widest])
        inner = [] if inside is None else [inside]
        # the side that helps the rival is looked at first, so it is pushed last
        waiting += [*pieces, *inner] if worth[widest] > 0 else [*inner, *pieces]
    return None


def _holds(box: Box, ranges: Sequence[tuple[int, Values]]) -> bool | None:
    """Whether a clause of these ranges holds on every row of the box, on none (False), or on some (None)."""
    always = True
    for feature, wanted in ranges:
        known = box.get(feature)
        if known is None:
            always = always and wanted == ANYTHING
        elif both(known, wanted).empty:
            return False
        else:
            always = always and within(known, wanted)
    return True if always else None


def divided(box: Box, clause: Clause) -> tuple[Box | None, list[Box]]:
    """The part of a box where the clause holds, if any, and the rest of it in boxes that do not overlap."""
    here = dict(box)
    pieces: list[Box] = []
    for atom in clause.atoms:
        known = here.get(atom.feature, ANYTHING)
        for left in (both(known, piece) for piece in outside(atom)):
            if not left.empty:
                pieces.append({**here, atom.feature: left})
        held = both(known, values_of(atom))
        if held.empty:
            return None, pieces
        here[atom.feature] = held
    return here, pieces


def row_in(box: Box, like: Sequence[float | None]) -> list[float | None]:
    """A row of the box, as much like the given one as can be."""
    return [_nearest(box.get(feature, ANYTHING), value) for feature, value in enumerate(like)]


def _nearest(values: Values, value: float | None) -> float | None:
    if value is None or not values.has_numbers:
        return None if values.missing else _a_number(values)
    return min(max(value, values.least), values.most)


def _a_number(values: Values) -> float:
    """Some number of a range, finite where it can be."""
    finite = (v for v in (0.0, values.least, values.most) if values.least <= v <= values.most and math.isfinite(v))
    return next(finite, values.least)


def cells(program: Program) -> list[list[Values]]:
    """Feature by feature, the ranges of numbers between which no clause can tell a difference within, ascending."""
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
    """The cell a value lies in; the missing value has one of its own."""
    if value is None:
        return Values(math.inf, -math.inf, True)
    return next(cell for cell in ranges if cell.least <= value <= cell.most)
