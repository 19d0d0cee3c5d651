"""What the approved program answers on batch after batch: few rows by `evaluate_many`, many by its own C scorer.

The C scorer is built once there are enough rows to pay for it, and where a compiler is. Before it is used its text is
read back and proved to be the program, and what was built must answer as `evaluate_many` on rows of the batch at hand.
Where it is not proved the reference goes on: slower, and the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.audit.scored_batches import Batch, part_of
from gbfl_compile.backends import emit
from gbfl_compile.backends.c_inputs import Columns, as_input
from gbfl_compile.check.artifact_proof import prove_artifact
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.files import temporary_folder
from gbfl_compile.ir.batch import Matrix, evaluate_many
from gbfl_compile.ir.evaluate import winner
from gbfl_compile.ir.nodes import Clause, Leaf, Program, Tree

if TYPE_CHECKING:
    from gbfl_compile.backends.c_scorer import Scorer

BUILD_AFTER = 200_000
"""Rows after which a build pays: `evaluate_many` needs about as long for them."""

BUILD_AFTER_ATOMS = 20_000_000
"""The same in rows times atoms, for large programs."""

CHECKED_ROWS = 10_000
"""So many rows of a batch are answered by both before the C scorer is trusted."""

PROOF_SECONDS = 5.0

REFERENCE = "evaluate_many"


@dataclass(frozen=True, slots=True)
class Answered:
    """A batch's answers: what decided (leaves, or points a class), and the class it gives."""

    decided: NDArray[np.int64]
    classes: NDArray[np.int64]


@dataclass(slots=True)
class Answerer:
    """Answers batches. What it is built on is settled by how many rows have come."""

    program: Program
    """With the features that a clause asks, and no others."""
    engine: str = REFERENCE
    scorer: Scorer | None = None
    tried: bool = False


def asked_only(program: Program) -> Program:
    """The same program over the features that some clause asks."""
    asked = sorted({atom.feature for clause in program.clauses for atom in clause.atoms})
    place = {feature: number for number, feature in enumerate(asked)}
    clauses = tuple(
        Clause(tuple(replace(atom, feature=place[atom.feature]) for atom in clause.atoms)) for clause in program.clauses
    )
    return Program(tuple(program.features[feature] for feature in asked), program.classes, clauses, program.decision)


def answered(by: Answerer, batch: Batch) -> Answered:
    """What the program answers on a batch."""
    if not by.program.features:
        return _by_reference(by.program, np.empty((batch.count, 0)))
    if not by.tried and batch.first + batch.count > _build_after(by.program):
        by.tried = True
        _build(by, batch)
    if by.scorer is None:
        return _by_reference(by.program, matrix(batch, by.program.features))
    return _by_scorer(by.program, by.scorer, batch)


def _build_after(program: Program) -> int:
    atoms = sum(len(clause.atoms) for clause in program.clauses)
    return min(BUILD_AFTER, BUILD_AFTER_ATOMS // max(1, atoms))


def matrix(batch: Batch, features: tuple[str, ...]) -> Matrix:
    """These columns of a batch as doubles, side by side."""
    return matrix_of(batch.table, features) if features else np.empty((batch.count, 0))


def matrix_of(table: Any, features: tuple[str, ...]) -> Matrix:
    """These columns of a table with names, at least one."""
    taken = as_input(table, features, (True,) * len(features), np.dtype(np.float64))
    assert isinstance(taken, Columns)  # noqa: S101 - a table with names
    return np.column_stack([column for column in taken.values if column is not None])


def _by_reference(program: Program, rows: Matrix) -> Answered:
    answers = evaluate_many(program, rows)
    if answers.leaves is not None:
        return _classified(program, answers.leaves)
    assert answers.scores is not None  # noqa: S101 - a program without leaves has scores
    return _classified(program, answers.scores)


def _by_scorer(program: Program, scorer: Scorer, batch: Batch) -> Answered:
    return _classified(program, scorer.score(batch.table))


def _classified(program: Program, decided: NDArray[Any]) -> Answered:
    """Ties go to the lower class, as argmax has it."""
    if isinstance(program.decision, Tree):
        of_leaf = np.array([winner(n.probabilities) for n in program.decision.nodes if isinstance(n, Leaf)])
        return Answered(decided, of_leaf[decided])
    return Answered(decided, decided.argmax(axis=1))


def wrong_scorer(engine: str) -> CannotRun:
    """The error that says who is to blame."""
    return CannotRun(f"what {engine} built does not answer as its program: name another compiler in CC")


def _build(by: Answerer, batch: Batch) -> None:
    from gbfl_compile.backends.c import available, load_scorer

    if available().cannot_run is not None:
        return
    with temporary_folder("audit") as folder:
        try:
            files = emit(by.program, "c", "approved").files
            if prove_artifact(by.program, "c", files, PROOF_SECONDS).answer != "proved":
                return
            for name, content in files.items():
                (folder / name).write_bytes(content)
            scorer = load_scorer(folder / "approved.c")
        except (BadInput, CannotRun):
            return  # the reference answers the same, and slower
    some = part_of(batch, 0, CHECKED_ROWS)
    expected = _by_reference(by.program, matrix(some, by.program.features))
    if not np.array_equal(expected.decided, _by_scorer(by.program, scorer, some).decided):
        raise wrong_scorer(scorer.engine)
    by.scorer, by.engine = scorer, f"C scorer, its text proved, {scorer.engine}"
