"""The nearest change of two features at once: every pair of values tried, a rule set's as one matrix product a pair.

A clause holds at (v, w) where its bounds on the first feature hold at v, those on the second at w, and the rest at the
row; so the points at all (v, w) are a product of two tables of truth values. Points are whole and below 2**53: exact.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.ir.batch import Matrix, atom_column, evaluate_many
from gbfl_compile.ir.nodes import Label, Program, Scorecard

MOST_PAIRS = 500_000
"""Rows of a tree tried at most; a rule set's are not made one by one."""
ROWS_AT_ONCE = 20_000

Pair: TypeAlias = tuple[tuple[int, float], tuple[int, float]]


@dataclass(frozen=True, slots=True)
class PairFound:
    """Two new values, the class they give, and how far they are, added up."""

    values: Pair
    label: Label
    distance: float


def too_many(program: Program, options: Sequence[Matrix]) -> bool:
    """Whether the pairs of a tree are more than are tried."""
    counts = [len(one) for one in options]
    return not isinstance(program.decision, Scorecard) and sum(_products(counts)) > MOST_PAIRS


def _products(counts: Sequence[int]) -> Iterator[int]:
    return (a * b for a, b in itertools.combinations(counts, 2))


def nearest_pair(
    program: Program, row: Matrix, options: Sequence[Matrix], distances: Sequence[Matrix], label: int
) -> PairFound | None:
    """The pair of other values, of two features, that changes the class and is nearest; None where none does."""
    best: PairFound | None = None
    pairs = [(f, g) for f, g in itertools.combinations(range(len(options)), 2) if len(options[f]) and len(options[g])]
    card = isinstance(program.decision, Scorecard)
    found = _by_points(program, row, options, pairs) if card else _by_rows(program, row, options, pairs)
    for (f, g), classes in found:
        with np.errstate(over="ignore"):  # two distances near the largest double are infinitely far
            far = np.where(classes == label, np.inf, distances[f][:, None] + distances[g][None, :])
        flips = classes != label
        if not flips.any():
            continue
        v, w = np.unravel_index(int(np.argmin(far)) if np.isfinite(far).any() else int(np.argmax(flips)), far.shape)
        distance = float(distances[f][v]) + float(distances[g][w])
        if best is None or distance < best.distance:
            values = ((f, float(options[f][v])), (g, float(options[g][w])))
            best = PairFound(values, program.classes[int(classes[v, w])], distance)
    return best


Grid: TypeAlias = tuple[tuple[int, int], NDArray[np.intp]]
"""Two features, and the class at each pair of their options."""


def _by_points(
    program: Program, row: Matrix, options: Sequence[Matrix], pairs: Sequence[tuple[int, int]]
) -> Iterator[Grid]:
    card = program.decision
    assert isinstance(card, Scorecard)  # noqa: S101 - asked of rule sets only
    clauses, classes = len(program.clauses), len(program.classes)
    points = np.array(card.points, dtype=np.float64).reshape(clauses, classes)
    holds = [np.ones((len(one), clauses), dtype=np.float64) for one in options]
    fails = np.zeros((len(options), clauses), dtype=np.bool_)
    for number, clause in enumerate(program.clauses):
        for atom in clause.atoms:
            holds[atom.feature][:, number] = atom_column(atom, options[atom.feature])
            fails[atom.feature, number] = not atom_column(atom, row[[atom.feature]])[0]
    failing = fails.sum(axis=0)
    for f, g in pairs:
        asked = np.flatnonzero(failing == fails[f].astype(np.int64) + fails[g])
        left, right = holds[f][:, asked], holds[g][:, asked].T
        scores = np.stack([(left * points[asked, c]) @ right + card.bias[c] for c in range(classes)])
        yield (f, g), scores.argmax(axis=0)


def _by_rows(
    program: Program, row: Matrix, options: Sequence[Matrix], pairs: Sequence[tuple[int, int]]
) -> Iterator[Grid]:
    """Row by row, many pairs of features at once: asking each clause costs more than the rows do."""
    number = {label: index for index, label in enumerate(program.classes)}
    waiting: list[tuple[int, int]] = []
    rows = 0
    for place, (f, g) in enumerate(pairs):
        waiting.append((f, g))
        rows += len(options[f]) * len(options[g])
        if rows < ROWS_AT_ONCE and place + 1 < len(pairs):
            continue
        tried = np.concatenate([_product(row, options, f, g) for f, g in waiting])
        labels = evaluate_many(program, tried).labels
        classes = np.array([number[label] for label in labels], dtype=np.intp)
        start = 0
        for one, other in waiting:
            shape = (len(options[one]), len(options[other]))
            yield (one, other), classes[start : start + shape[0] * shape[1]].reshape(shape)
            start += shape[0] * shape[1]
        waiting, rows = [], 0


def _product(row: Matrix, options: Sequence[Matrix], f: int, g: int) -> Matrix:
    tried = np.tile(row, (len(options[f]) * len(options[g]), 1))
    tried[:, f] = np.repeat(options[f], len(options[g]))
    tried[:, g] = np.tile(options[g], len(options[f]))
    return tried
