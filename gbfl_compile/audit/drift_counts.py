"""Rows counted into the bins of the histograms that a program carries, batch by batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.audit.labels import UNKNOWN
from gbfl_compile.audit.scored_answers import Answered, matrix
from gbfl_compile.audit.scored_batches import Batch
from gbfl_compile.ir.batch import clause_column
from gbfl_compile.ir.nodes import Leaf, Program, Scorecard, Tree

Counts: TypeAlias = NDArray[np.int64]


@dataclass(slots=True)
class DriftCounts:
    """What was counted so far: numbers of rows, bin by bin."""

    rows: int
    labels: Counts
    """One a class, and one more for labels that are no class."""
    leaves: Counts
    """Of a tree."""
    scores: list[Counts]
    """Of a rule set: for each class, the bins of the training scores."""
    clauses: Counts
    features: dict[str, Counts]
    """For each feature with a histogram: its bins, then below its range, above it, and missing."""


def nothing_counted(program: Program) -> DriftCounts:
    """Counts before the first row."""
    leaves = sum(isinstance(node, Leaf) for node in program.decision.nodes) if isinstance(program.decision, Tree) else 0
    return DriftCounts(
        rows=0,
        labels=np.zeros(len(program.classes) + 1, dtype=np.int64),
        leaves=np.zeros(leaves, dtype=np.int64),
        scores=[np.zeros(_bins(form) + 3, dtype=np.int64) for form in score_histograms(program) or ()],
        clauses=np.zeros(len(program.clauses), dtype=np.int64),
        features={},
    )


def add_to_drift(
    counts: DriftCounts,
    program: Program,
    batch: Batch,
    answers: Answered,
    deployed: NDArray[np.int64],
) -> None:
    """Count one batch; `deployed` holds the class number of each stored label."""
    counts.rows += batch.count
    known = np.where(deployed == UNKNOWN, len(program.classes), deployed)
    counts.labels += np.bincount(known, minlength=len(counts.labels))
    if isinstance(program.decision, Tree):
        counts.leaves += np.bincount(answers.decided, minlength=len(counts.leaves))
    for number, form in enumerate(score_histograms(program) or ()):
        counts.scores[number] += _binned(form, answers.decided[:, number].astype(np.float64))
    names = getattr(batch.table, "column_names", None)  # Arrow: `columns` there are the columns themselves
    there = batch.table.columns if names is None else names
    features = tuple(name for name in there if name in program.features)  # probabilities may stand beside them
    rows = np.full((batch.count, len(program.features)), np.nan)
    present = [program.features.index(feature) for feature in features]
    rows[:, present] = matrix(batch, features)
    for number, clause in enumerate(program.clauses):
        counts.clauses[number] += int(clause_column(clause, rows).sum())
    histograms = feature_histograms(program) or ()
    for place, form in enumerate(histograms):
        if place in present and form["edges"]:
            name = program.features[place]
            counts.features[name] = counts.features.get(name, 0) + _binned(form, rows[:, place])


def feature_histograms(program: Program) -> Sequence[Mapping[str, Any]] | None:
    """One histogram a feature from the metadata, or None where they are not there or do not fit."""
    found = at(program.metadata, "training", "histograms")
    return found if _is_list_of(found, len(program.features)) and all(map(_is_histogram, found)) else None


def score_histograms(program: Program) -> Sequence[Mapping[str, Any]] | None:
    """One histogram a class of a rule set's training scores."""
    found = at(program.metadata, "mining", "scores")
    fits = _is_list_of(found, len(program.classes)) and all(_is_histogram(form) and form["edges"] for form in found)
    return found if isinstance(program.decision, Scorecard) and fits else None


def at(form: Any, *path: str) -> Any:
    for key in path:
        form = form.get(key) if isinstance(form, Mapping) else None
    return form


def _is_list_of(found: Any, length: int) -> bool:
    return isinstance(found, Sequence) and not isinstance(found, str) and len(found) == length


def _is_histogram(form: Any) -> bool:
    """Metadata may come from anywhere: what is used here must have the shape that `provenance.histogram` makes."""
    edges, counts = at(form, "edges"), at(form, "counts")
    if not isinstance(edges, Sequence) or not isinstance(counts, Sequence) or isinstance(edges, str):
        return False
    numbers = all(isinstance(each, int | float) for each in (*edges, *counts))
    rising = numbers and all(a < b for a, b in pairwise(edges))
    return rising and len(counts) == (max(1, len(edges) - 1) if edges else 0)


def _bins(form: Mapping[str, Any]) -> int:
    return len(form["counts"])


def _binned(form: Mapping[str, Any], values: NDArray[np.float64]) -> Counts:
    """Rows in each bin, below the range, above it, and missing; a bin holds its lower edge, the last both."""
    edges = form["edges"]
    numbers = values[np.isfinite(values)]
    below, above = int((numbers < edges[0]).sum()), int((numbers > edges[-1]).sum())
    inside = numbers[(numbers >= edges[0]) & (numbers <= edges[-1])]
    counts = np.bincount(np.searchsorted(edges[1:-1], inside, side="right"), minlength=_bins(form))
    return np.array([*counts, below, above, len(values) - len(numbers)], dtype=np.int64)
