"""Does every row in a box get the same class? Decided exactly, or left open when the steps run out.

A box lists the values each feature may have; a feature it does not name may have any. The search splits boxes along
the clauses it meets, so it looks only at those the class depends on. A program is prepared for it once: every bound in
one array, so that a box is compared with all clauses together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.ir.evaluate import evaluate, winner
from gbfl_compile.ir.intervals import ANYTHING, Values, above, below, both, outside, values_of, within
from gbfl_compile.ir.kinds import intervals_in
from gbfl_compile.ir.nodes import Clause, Leaf, Program, Scorecard, Tree


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
    for atom in intervals_in(clause):
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
        for atom in intervals_in(clause):
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


Box: TypeAlias = Mapping[int, Values]
"""The values each feature may have; a feature it does not name may have any."""

Truths: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The ranges of all clauses one after the other; a clause without any gets one that contains every value."""

    feature: NDArray[np.int64]
    least: NDArray[np.float64]
    most: NDArray[np.float64]
    missing: Truths
    first: NDArray[np.int64]
    """Where each clause's ranges begin."""


@dataclass(frozen=True, slots=True)
class PreparedProgram:
    """A program with everything the searches need, computed once."""

    program: Program
    ranges: tuple[tuple[tuple[int, Values], ...], ...]
    """For each clause its (feature, values)."""
    bounds: Bounds
    points: NDArray[np.int64] | None
    """`[clauses, classes]` of a rule set."""
    answers: tuple[frozenset[int], ...]
    """For each node of a tree the classes of the leaves below it."""

    @property
    def width(self) -> int:
        """How many features a row has."""
        return len(self.program.features)


def prepare(program: Program) -> PreparedProgram:
    """Compute what the searches need, once per program."""
    ranges = tuple(
        tuple((atom.feature, values_of(atom)) for atom in intervals_in(clause)) for clause in program.clauses
    )
    card = program.decision if isinstance(program.decision, Scorecard) else None
    points = None if card is None else np.array(card.points, dtype=np.int64).reshape(len(ranges), len(program.classes))
    answers = _answers(program.decision) if isinstance(program.decision, Tree) else ()
    return PreparedProgram(program, ranges, _bounds(ranges), points, answers)


def _bounds(ranges: Sequence[tuple[tuple[int, Values], ...]]) -> Bounds:
    listed = [clause or ((0, ANYTHING),) for clause in ranges]
    flat = [pair for clause in listed for pair in clause]
    starts = np.cumsum([0, *(len(clause) for clause in listed)])[:-1]
    return Bounds(
        np.array([feature for feature, _ in flat], dtype=np.int64),
        np.array([values.least for _, values in flat], dtype=np.float64),
        np.array([values.most for _, values in flat], dtype=np.float64),
        np.array([values.missing for _, values in flat], dtype=np.bool_),
        starts.astype(np.int64),
    )


def _answers(tree: Tree) -> tuple[frozenset[int], ...]:
    below: list[frozenset[int]] = [frozenset()] * len(tree.nodes)
    for index in reversed(range(len(tree.nodes))):  # children come after their parents
        node = tree.nodes[index]
        below[index] = (
            frozenset({winner(node.probabilities)})
            if isinstance(node, Leaf)
            else below[node.then] | below[node.otherwise]
        )
    return tuple(below)


def clauses_in(prepared: PreparedProgram, box: Box) -> tuple[Truths, Truths]:
    """For each clause whether it holds on every row of a box, and whether on some."""
    least, most = np.full(prepared.width, -np.inf), np.full(prepared.width, np.inf)
    missing = np.ones(prepared.width, dtype=np.bool_)
    for feature, values in box.items():
        least[feature], most[feature], missing[feature] = values.least, values.most, values.missing
    bounds = prepared.bounds
    if not len(bounds.first):
        return np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=np.bool_)
    low, high, may_miss = least[bounds.feature], most[bounds.feature], missing[bounds.feature]
    numbers = (low > high) | ((low >= bounds.least) & (high <= bounds.most))
    every = numbers & (~may_miss | bounds.missing)
    some = (np.maximum(low, bounds.least) <= np.minimum(high, bounds.most)) | (may_miss & bounds.missing)
    return np.logical_and.reduceat(every, bounds.first), np.logical_and.reduceat(some, bounds.first)


def class_of(prepared: PreparedProgram, row: Sequence[float | None]) -> int:
    """The class of a row; None is missing. All clauses of a rule set are evaluated at once."""
    card = prepared.program.decision
    if prepared.points is None or not isinstance(card, Scorecard):
        return prepared.program.classes.index(evaluate(prepared.program, row).label)
    values = {feature: _only(value) for feature, value in enumerate(row)}
    holds, _ = clauses_in(prepared, values)
    scores = np.array(card.bias, dtype=np.int64) + prepared.points[holds].sum(axis=0)
    return int(np.argmax(scores))  # the first of equal ones


def _only(value: float | None) -> Values:
    if value is None or value != value:
        return Values(np.inf, -np.inf, True)
    return Values(value + 0.0, value + 0.0, False)
