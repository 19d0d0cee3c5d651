"""What every head is given and gives back: labelled points in, clauses and a decision over them out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gbfl_compile.ir.nodes import Clause, Decision
from gbfl_compile.learn.black_box import Ints, Matrix


@dataclass(frozen=True, slots=True)
class Points:
    """Points to fit: where, which class, how much each counts, and which training row each belongs to."""

    x: Matrix
    label: Ints
    weight: Matrix
    row: Ints
    """x, PP and PN of one training row stay together in cross-validation."""
    n_classes: int


@dataclass(frozen=True, slots=True)
class Head:
    """A fitted transparent model: clauses, and a tree or a scorecard over them."""

    clauses: tuple[Clause, ...]
    decision: Decision


def folds(rows: Ints, wanted: int, seed: int = 0) -> list[Ints]:
    """Training rows dealt into at most `wanted` folds, whole triplets together; the same every time."""
    distinct = np.unique(rows)
    count = min(wanted, len(distinct))
    dealt = np.random.default_rng(seed).permutation(distinct)
    return [np.sort(part) for part in np.array_split(dealt, count)] if count >= 2 else []
