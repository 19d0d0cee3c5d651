"""The living definition of the rule language: what every target must agree with.

One row, plain Python, nothing clever. `ir.batch` says the same for many rows at once and is tested
equal to this file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.kinds import Value, plain_value
from gbfl_compile.ir.nodes import Atom, Band, Clause, Interval, Label, Leaf, OneOf, Program, Scorecard, Tree

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Answer:
    """A prediction and its reason."""

    label: Label
    probabilities: tuple[float, ...]
    leaf: int | None
    """The leaf reached, numbered from 0 in reading order; None for a rule set."""
    scores: tuple[int, ...] | None
    """Integer points per class; None for a tree."""
    held: tuple[int, ...]
    """The clauses that held: those tested on the way to the leaf, or all of a rule set's."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Predictions for n rows, column by column.

    `leaves` is None for a rule set, `scores` is None for a tree; a target that was not asked for a
    reason leaves both None.
    """

    labels: NDArray[np.object_]
    """The class labels themselves, as Python objects: 1, True and '1' stay what they are."""
    probabilities: NDArray[np.float64]
    """One column per class; no column at all where an artifact gives labels alone."""
    leaves: NDArray[np.int64] | None = None
    scores: NDArray[np.int64] | None = None


def evaluate(program: Program, row: Sequence[Value]) -> Answer:
    """What `program` answers for one row.

    NaN and None are missing. A number is taken as a double; a category is a `str`, a boolean a `bool`, a date a
    `datetime.date` and a timestamp a `datetime.datetime`.
    """
    if len(row) != len(program.features):
        raise BadInput(f"the row has {len(row)} values, the program has {len(program.features)} features")
    plain = [plain_value(program.kind(i), value, program.features[i]) for i, value in enumerate(row)]
    match program.decision:
        case Tree():
            return _walk(program, program.decision, plain)
        case Scorecard():
            return _add_up(program, program.decision, plain)
        case _:
            assert_never(program.decision)


def _walk(program: Program, tree: Tree, row: Sequence[float | str | None]) -> Answer:
    held = []
    index = 0
    while not isinstance(node := tree.nodes[index], Leaf):
        if clause_holds(program.clauses[node.clause], row):
            held.append(node.clause)
            index = node.then
        else:
            index = node.otherwise
    leaf = sum(isinstance(node, Leaf) for node in tree.nodes[:index])
    return Answer(program.classes[node.winner], node.probabilities, leaf, None, tuple(sorted(held)))


def _add_up(program: Program, card: Scorecard, row: Sequence[float | str | None]) -> Answer:
    held = tuple(i for i, clause in enumerate(program.clauses) if clause_holds(clause, row))
    scores = tuple(card.bias[c] + sum(card.points[i][c] for i in held) for c in range(len(program.classes)))
    return Answer(program.classes[winner(scores)], card_probabilities(card, scores), None, scores, held)


def clause_holds(clause: Clause, row: Sequence[float | str | None]) -> bool:
    """Whether every atom of `clause` holds on `row`."""
    return all(atom_holds(atom, row[atom.feature]) for atom in clause.atoms)


def atom_holds(atom: Atom, value: float | str | None) -> bool:
    """Whether an atom holds for one value, which is None where it is missing."""
    if value is None or value != value:
        return atom.if_missing
    match atom:
        case Interval():
            return _lies_between(atom, value)
        case OneOf(_, values, negated):
            return (value in values) != negated
        case _:
            assert_never(atom)


def _lies_between(atom: Interval, value: float | str) -> bool:
    """Whether a number lies in the interval; -0.0 equals 0.0."""
    assert not isinstance(value, str)  # noqa: S101 - only numbers and dates have intervals
    if atom.lo is not None and not (value >= atom.lo if atom.lo_closed else value > atom.lo):
        return False
    return atom.hi is None or (value <= atom.hi if atom.hi_closed else value < atom.hi)


def winner(scores: Sequence[float]) -> int:
    """The highest score's index; ties go to the lower index."""
    return max(range(len(scores)), key=lambda c: (scores[c], -c))


def card_probabilities(card: Scorecard, scores: Sequence[int]) -> tuple[float, ...]:
    """The probabilities that a rule set gives to scores: constants of a band, or their softmax."""
    return band_probabilities(card.bands, scores) if card.bands else softmax(scores, card.scale)


def band_probabilities(bands: Sequence[Sequence[Band]], scores: Sequence[int]) -> tuple[float, ...]:
    """The constants of the winning class's last band whose `least` its lead over the runner-up reaches."""
    best = winner(scores)
    lead = scores[best] - max(score for c, score in enumerate(scores) if c != best)
    return next(band.probabilities for band in reversed(bands[best]) if lead >= band.least)


def softmax(scores: Sequence[int], scale: int) -> tuple[float, ...]:
    """Probabilities of integer scores worth 2**-scale logits each.

    The only inexact numbers in the language: they go through exp, so targets agree to a stated bound.
    """
    top = max(scores)
    weights = [math.exp(math.ldexp(score - top, -scale)) for score in scores]
    total = math.fsum(weights)
    return tuple(weight / total for weight in weights)
