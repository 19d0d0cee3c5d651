"""The `bits` kernel's tables: a bin for each value, and for each bin the clauses it leaves standing.

The bounds of all clauses cut each feature's line into bins. Within a bin no atom changes its answer, so one
word of bits a bin says which of 64 clauses can still hold, and the clauses that hold on a row are the AND of
its bins' words: the cost a row grows with the number of features and words, not with the number of bounds.
Clauses of one atom need no bits: their points are added up a bin beforehand. (The idea is QuickScorer's.)
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

from gbfl_compile.backends.c_conditions import used_features
from gbfl_compile.backends.c_numbers import Real, bounds
from gbfl_compile.ir.narrow import float32_at_or_above
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard
from gbfl_compile.ir.regions import above

WORDS = 4
"""Words a group: 256 clauses, one AVX2 register."""


@dataclass(frozen=True, slots=True)
class Tables:
    """Bins are numbered through all used features; each feature's last one is for missing values."""

    features: tuple[int, ...]
    cuts: tuple[tuple[float, ...], ...]
    """For each feature the values at which a new bin begins, ascending; infinity for what only infinity reaches."""
    first_bin: tuple[int, ...]
    masks: tuple[tuple[tuple[int, ...], ...], ...]
    """Group, bin, word."""
    sums: tuple[tuple[int, ...], ...]
    """Bin, class: the points of the clauses of one atom that hold there."""
    points: tuple[tuple[int, ...], ...]
    """Bit, class."""
    bias: tuple[int, ...]

    @property
    def bins(self) -> int:
        """Bins of all features together."""
        return len(self.sums)


def tables(program: Program, card: Scorecard, real: Real) -> Tables:
    """The tables of a rule set."""
    features = used_features(program)
    by_feature = cut_points(program, real)
    cuts = tuple(by_feature[feature] for feature in features)
    first_bin = tuple(sum(len(c) + 2 for c in cuts[:u]) for u in range(len(features)))
    bins = sum(len(c) + 2 for c in cuts)
    clauses = [_asking(clause) for clause in program.clauses]
    bias = list(card.bias)
    sums = [[0] * len(program.classes) for _ in range(bins)]
    bits = []
    for atoms, points in zip(clauses, card.points, strict=True):
        if not any(points):
            continue
        if not atoms:
            bias = [b + p for b, p in zip(bias, points, strict=True)]
        elif len(atoms) == 1:
            u = features.index(atoms[0].feature)
            for number in _holding(atoms[0], cuts[u], real):
                row = sums[first_bin[u] + number]
                row[:] = [s + p for s, p in zip(row, points, strict=True)]
        else:
            bits.append((atoms, points))
    masks = _masks([atoms for atoms, _ in bits], features, cuts, first_bin, bins, real)
    return Tables(
        features, cuts, first_bin, masks, tuple(tuple(row) for row in sums), tuple(p for _, p in bits), tuple(bias)
    )


def _asking(clause: Clause) -> tuple[Interval, ...]:
    """The atoms that can fail."""
    return tuple(a for a in clause.atoms if a.lo is not None or a.hi is not None or not a.if_missing)


def _masks(
    clauses: list[tuple[Interval, ...]],
    features: tuple[int, ...],
    cuts: tuple[tuple[float, ...], ...],
    first_bin: tuple[int, ...],
    bins: int,
    real: Real,
) -> tuple[tuple[tuple[int, ...], ...], ...]:
    groups = -(-len(clauses) // (64 * WORDS))
    masks = [[[(1 << 64) - 1] * WORDS for _ in range(bins)] for _ in range(groups)]
    for bit, atoms in enumerate(clauses):
        group, word, clear = bit // (64 * WORDS), bit // 64 % WORDS, ~(1 << bit % 64)
        for atom in atoms:
            u = features.index(atom.feature)
            holding = set(_holding(atom, cuts[u], real))
            for number in range(len(cuts[u]) + 2):
                if number not in holding:
                    masks[group][first_bin[u] + number][word] &= clear
    for bit in range(len(clauses), groups * 64 * WORDS):  # bits that stand for no clause never hold
        for row in masks[-1]:
            row[bit // 64 % WORDS] &= ~(1 << bit % 64)
    return tuple(tuple(tuple(row) for row in group) for group in masks)


def cut_points(program: Program, real: Real) -> dict[int, tuple[float, ...]]:
    """For each feature asked, where the answer of some atom on it changes, as the first value on the upper side."""
    found: dict[int, set[float]] = {}
    for clause in program.clauses:
        for atom in clause.atoms:
            found.setdefault(atom.feature, set()).update(edge for edge in _edges(atom, real) if edge is not None)
    return {feature: tuple(sorted(cuts)) for feature, cuts in found.items()}


def _edges(atom: Interval, real: Real) -> tuple[float | None, float | None]:
    """The first value inside and the first value beyond, None where there is no such bound."""
    least = most = None
    for bound in bounds(atom, real):
        match bound.comparison:
            case ">=":
                least = bound.value
            case ">":
                least = _after(bound.value, real)
            case "<":
                most = bound.value
            case "<=":
                most = _after(bound.value, real)
    return least, most


def _after(value: float, real: Real) -> float:
    """The next value of the type."""
    return above(value) if real == "double" else float32_at_or_above(above(value)) + 0.0


def _holding(atom: Interval, cuts: tuple[float, ...], real: Real) -> range | list[int]:
    """The bins on which an atom holds: bin k has the values from cuts[k - 1] to below cuts[k], the last the missing."""
    least, most = _edges(atom, real)
    first = 0 if least is None else bisect_left(cuts, least) + 1
    last = len(cuts) if most is None else bisect_left(cuts, most)
    numbers = range(first, last + 1)
    return [*numbers, len(cuts) + 1] if atom.if_missing else numbers


def table_bytes(made: Tables) -> int:
    """What the tables take in memory."""
    return len(made.masks) * made.bins * WORDS * 8 + made.bins * len(made.bias) * 8 + math.prod((len(made.points), 8))
