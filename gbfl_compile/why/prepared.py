"""A program prepared for searching: every bound in one array, so that a box is compared with all clauses at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.ir.evaluate import evaluate, winner
from gbfl_compile.ir.intervals import ANYTHING, Values, values_of
from gbfl_compile.ir.nodes import Leaf, Program, Scorecard, Tree

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
    ranges = tuple(tuple((atom.feature, values_of(atom)) for atom in clause.atoms) for clause in program.clauses)
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
