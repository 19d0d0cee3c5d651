"""How a mined program answers on the training rows: counts of classes, probabilities and clauses, for its metadata."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.ir.batch import Matrix, clause_column, evaluate_many
from gbfl_compile.ir.nodes import Program
from gbfl_compile.lowering.provenance import histogram

BINS = 10


def distributions(program: Program, x: Matrix, y: NDArray[Any], y_test: NDArray[Any]) -> dict[str, Any]:
    """Counts over training rows, classes in the program's order and clauses in the program's numbering."""
    answers = evaluate_many(program, x)
    counts: dict[str, Any] = {
        "class_counts": {"training": _counts(program, y.tolist()), "test": _counts(program, y_test.tolist())},
        "label_counts": _counts(program, answers.labels.tolist()),
        "probabilities": [share_histogram(answers.probabilities[:, c]) for c in range(len(program.classes))],
        "whole_numbers": [name for name, whole in zip(program.features, _are_whole(x), strict=True) if whole],
        "clause_support": [int(clause_column(clause, x).sum()) for clause in program.clauses],
    }
    if answers.scores is not None:
        scores = answers.scores.astype(np.float64)
        counts["scores"] = [histogram(scores[:, c]) for c in range(len(program.classes))]
    return counts


def share_histogram(shares: Matrix) -> dict[str, Any]:
    """Counts of probabilities in ten equal bins; each includes its lower end, the last one 1 as well."""
    edges = [tenth / BINS for tenth in range(BINS + 1)]
    counts = np.bincount(np.searchsorted(edges[1:-1], shares, side="right"), minlength=BINS)
    return {"edges": edges, "counts": counts.tolist()}


def _are_whole(x: Matrix) -> list[bool]:
    """Whether each column holds whole numbers only: nobody can then make a change to 1.3."""
    return (x == np.rint(x)).all(axis=0).tolist()  # type: ignore[no-any-return]  # numpy types a list of anything


def _counts(program: Program, labels: list[Any]) -> list[int]:
    return [sum(label == one for one in labels) for label in program.classes]
