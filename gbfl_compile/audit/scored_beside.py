"""Probabilities that stand beside the labels of a scored table, in columns as `gbfl score` names them: `p_yes`."""

from __future__ import annotations

import numpy as np

from gbfl_compile.audit.observed import Bits, Observed, differing
from gbfl_compile.audit.scored_answers import Answered, matrix
from gbfl_compile.audit.scored_batches import Batch
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import Matrix, score_probabilities
from gbfl_compile.ir.nodes import Leaf, Program, Tree


def probability_columns(program: Program) -> tuple[str, ...]:
    """The columns, a class each."""
    names = tuple(f"p_{label}" for label in program.classes)
    if taken := next((name for name in names if name in program.features), None):
        raise BadInput(f"the program has a feature {taken!r}: its column is no probability, leave out --probabilities")
    return names


def approved_probabilities(program: Program, answers: Answered) -> Matrix:
    """What the program gives the rows of a batch."""
    card = program.decision
    if not isinstance(card, Tree):
        return score_probabilities(card, answers.decided)
    table = np.array([node.probabilities for node in card.nodes if isinstance(node, Leaf)], dtype=np.float64)
    found: Matrix = table[answers.decided]
    return found


def wrong_probabilities(program: Program, batch: Batch, answers: Answered) -> Bits:
    """The rows whose probabilities are not the approved ones: not the same, or for a rule set not within the bound."""
    names = probability_columns(program)
    approved = Observed(answers.classes, approved_probabilities(program, answers))
    return differing(program, approved, Observed(answers.classes, matrix(batch, names)))["probabilities"]
