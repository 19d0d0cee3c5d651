"""A program as the searches look at it: every bound in one array, so that a box meets all clauses at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.ir.evaluate import evaluate, winner
from gbfl_compile.ir.nodes import Leaf, Program, Scorecard, Tree
from gbfl_compile.ir.regions import ANYTHING, Values, values_of

Box: TypeAlias = Mapping[int, Values]
"""The values each feature may have; a feature it does not name may have any."""

Truths: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The ranges of all clauses one after the other; a clause without any has one that every value is in."""

    feature: NDArray[np.int64]
    least: NDArray[np.float64]
    most: NDArray[np.float64]
    missing: Truths
    first: NDArray[np.int64]
    """Where each clause's ranges begin."""


@dataclass(frozen=True, slots=True)
class Ground:
    """A program with what the searches need of it, worked out once."""

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


def ground_of(program: Program) -> Ground:
    """The program, prepared."""
    ranges = tuple(tuple((atom.feature, values_of(atom)) for atom in clause.atoms) for clause in program.clauses)
    card = program.decision if isinstance(program.decision, Scorecard) else None
    points = None if card is None else np.array(card.points, dtype=np.int64).reshape(len(ranges), len(program.classes))
    answers = _answers(program.decision) if isinstance(program.decision, Tree) else ()
    return Ground(program, ranges, _bounds(ranges), points, answers)


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
    for index in reversed(range(len(tree.nodes))):  # children stand after their parents
        node = tree.nodes[index]
        below[index] = (
            frozenset({winner(node.probabilities)})
            if isinstance(node, Leaf)
            else below[node.then] | below[node.otherwise]
        )
    return tuple(below)


def clauses_in(ground: Ground, box: Box) -> tuple[Truths, Truths]:
    """For each clause whether it holds on every row of a box, and whether on some."""
    least, most = np.full(ground.width, -np.inf), np.full(ground.width, np.inf)
    missing = np.ones(ground.width, dtype=np.bool_)
    for feature, values in box.items():
        least[feature], most[feature], missing[feature] = values.least, values.most, values.missing
    wanted = ground.bounds
    if not len(wanted.first):
        return np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=np.bool_)
    low, high, may_miss = least[wanted.feature], most[wanted.feature], missing[wanted.feature]
    numbers = (low > high) | ((low >= wanted.least) & (high <= wanted.most))
    every = numbers & (~may_miss | wanted.missing)
    some = (np.maximum(low, wanted.least) <= np.minimum(high, wanted.most)) | (may_miss & wanted.missing)
    return np.logical_and.reduceat(every, wanted.first), np.logical_and.reduceat(some, wanted.first)


def class_of(ground: Ground, row: Sequence[float | None]) -> int:
    """The class of a row; None is missing. A rule set's clauses are asked at once."""
    card = ground.program.decision
    if ground.points is None or not isinstance(card, Scorecard):
        return ground.program.classes.index(evaluate(ground.program, row).label)
    values = {feature: _only(value) for feature, value in enumerate(row)}
    held, _ = clauses_in(ground, values)
    scores = np.array(card.bias, dtype=np.int64) + ground.points[held].sum(axis=0)
    return int(np.argmax(scores))  # the first of equal ones


def _only(value: float | None) -> Values:
    if value is None or value != value:
        return Values(np.inf, -np.inf, True)
    return Values(value + 0.0, value + 0.0, False)
