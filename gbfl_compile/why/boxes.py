"""Does every row in a box get the same class? Decided exactly, or said to be open when the steps run out.

A box gives each feature the values it may have; a feature it does not name may have any. The search splits boxes along
the clauses it meets, so it looks at no more of them than the class depends on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from gbfl_compile.ir.evaluate import winner
from gbfl_compile.ir.nodes import Clause, Leaf, Program, Scorecard, Tree
from gbfl_compile.ir.regions import ANYTHING, Values, above, below, both, outside, values_of, within

Box: TypeAlias = Mapping[int, Values]


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


def other_class(program: Program, box: Box, label: int, steps: Steps) -> Box | None:
    """A smaller box whose rows all get another class than `label`; None where every row of `box` gets it."""
    match program.decision:
        case Tree():
            return _other_leaf(program, program.decision, box, label, steps)
        case Scorecard():
            found = (_beaten(program, program.decision, box, label, c, steps) for c in range(len(program.classes)))
            return next((smaller for smaller in found if smaller is not None), None)
        case _:
            assert_never(program.decision)


def _other_leaf(program: Program, tree: Tree, box: Box, label: int, steps: Steps) -> Box | None:
    waiting = [(0, box)]
    while waiting:
        steps.take()
        index, here = waiting.pop()
        node = tree.nodes[index]
        if isinstance(node, Leaf):
            if winner(node.probabilities) != label:
                return here
            continue
        inside, pieces = divided(here, program.clauses[node.clause])
        waiting += [(node.otherwise, piece) for piece in pieces]
        if inside is not None:
            waiting.append((node.then, inside))
    return None


def _beaten(program: Program, card: Scorecard, box: Box, label: int, rival: int, steps: Steps) -> Box | None:
    """A box in which class `rival` beats `label`: branch on the clause worth most, bound by all that could still hold.

    A rival with as many points wins only where it stands before. A look at one clause is one step.
    """
    if rival == label:
        return None
    worth = [points[rival] - points[label] for points in card.points]
    ranges = [[(atom.feature, values_of(atom)) for atom in clause.atoms] for clause in program.clauses]
    least = 0 if rival < label else 1
    waiting = [(box, card.bias[rival] - card.bias[label], [number for number, w in enumerate(worth) if w])]
    while waiting:
        here, lead, asked = waiting.pop()
        steps.take(1 + len(asked))
        undecided = []
        for number in asked:
            holds = _holds(here, ranges[number])
            if holds is None:
                undecided.append(number)
            elif holds:
                lead += worth[number]
        if lead + sum(worth[number] for number in undecided if worth[number] > 0) < least:
            continue
        if lead + sum(worth[number] for number in undecided if worth[number] < 0) >= least:
            return here
        widest = max(undecided, key=lambda number: abs(worth[number]))
        inside, pieces = divided(here, program.clauses[widest])
        inner = [] if inside is None else [inside]
        # the side that helps the rival is looked at first, so it is pushed last
        parts = [*pieces, *inner] if worth[widest] > 0 else [*inner, *pieces]
        waiting += [(part, lead, undecided) for part in parts]
    return None


def _holds(box: Box, ranges: list[tuple[int, Values]]) -> bool | None:
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
