"""What a scorer was heard to answer, row by row: the class, and probabilities and scores where it gives them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.checking.run import PROBABILITY_BOUND
from gbfl_compile.ir.batch import Matrix, clause_column, evaluate_many, score_probabilities
from gbfl_compile.ir.nodes import Leaf, Program, Tree

Bits = NDArray[np.bool_]

NO_SCORE = int(np.iinfo(np.int64).min)
"""In place of a score that are no whole number of 64 bits, or are not there: no program has so few."""


@dataclass(frozen=True, slots=True)
class RowAnswers:
    """Answers to some rows. What a scorer does not give at all is None; what it left out of one row is NaN there."""

    classes: NDArray[np.int64]
    """The number of the class, or UNKNOWN."""
    probabilities: Matrix | None = None
    scores: NDArray[np.int64] | None = None

    def at(self, rows: Bits) -> RowAnswers:
        """The answers to some of the rows."""
        probabilities = None if self.probabilities is None else self.probabilities[rows]
        return RowAnswers(self.classes[rows], probabilities, None if self.scores is None else self.scores[rows])


def answers_of(program: Program, rows: Matrix) -> RowAnswers:
    """What the program itself answers."""
    answers = evaluate_many(program, rows)
    decided = answers.probabilities if answers.scores is None else answers.scores
    return RowAnswers(decided.argmax(axis=1), answers.probabilities, answers.scores)


def clauses_held(program: Program, rows: Matrix) -> Bits:
    """Whether each clause holds: a row a row, a column a clause."""
    held = np.empty((len(rows), len(program.clauses)), dtype=bool)
    for number, clause in enumerate(program.clauses):
        held[:, number] = clause_column(clause, rows)
    return held


def decided_by(program: Program, held: Bits) -> RowAnswers:
    """What the program decides where its clauses hold like this, whatever the rows."""
    card = program.decision
    if not isinstance(card, Tree):
        points = held.astype(np.int64) @ np.array(card.points, dtype=np.int64).reshape(held.shape[1], len(card.bias))
        points += np.array(card.bias, dtype=np.int64)
        return RowAnswers(points.argmax(axis=1), score_probabilities(card, points), points)
    leaves = leaves_reached(card, held)
    table = np.array([node.probabilities for node in card.nodes if isinstance(node, Leaf)], dtype=np.float64)
    return RowAnswers(table.argmax(axis=1)[leaves], table[leaves])


def leaves_reached(tree: Tree, held: Bits) -> NDArray[np.int64]:
    """The number of the leaf each row ends in."""
    at: dict[int, NDArray[np.intp]] = {0: np.arange(len(held))}
    leaves, number = np.zeros(len(held), dtype=np.int64), 0
    for index, node in enumerate(tree.nodes):
        here = at.pop(index)
        if isinstance(node, Leaf):
            leaves[here] = number
            number += 1
            continue
        yes = held[here, node.clause]
        at[node.then], at[node.otherwise] = here[yes], here[~yes]
    return leaves


def differing(program: Program, approved: RowAnswers, deployed: RowAnswers) -> dict[str, Bits]:
    """For each thing that was given, the rows on which it is not the approved one."""
    wrong_rows = {"labels": approved.classes != deployed.classes}
    if deployed.probabilities is not None and approved.probabilities is not None:
        if isinstance(program.decision, Tree):
            wrong = approved.probabilities != deployed.probabilities
        else:
            with np.errstate(invalid="ignore"):
                wrong = ~(np.abs(approved.probabilities - deployed.probabilities) <= PROBABILITY_BOUND)  # NaN is wrong
        wrong_rows["probabilities"] = wrong.any(axis=1)
    if deployed.scores is not None and approved.scores is not None:
        wrong_rows["scores"] = (approved.scores != deployed.scores).any(axis=1)
    return wrong_rows


def differs_at(program: Program, approved: RowAnswers, deployed: RowAnswers) -> Bits:
    """The rows on which anything that was given is not the approved one."""
    any_wrong = np.zeros(len(approved.classes), dtype=bool)
    for wrong in differing(program, approved, deployed).values():
        any_wrong |= wrong
    return any_wrong
