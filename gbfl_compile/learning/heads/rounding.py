"""Thresholds as people would write them: the fewest digits that leave as many training triplets right.

`age < 29.8731` becomes `age < 30` where the rows between the two do not matter. A tree's leaves keep their rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, assert_never

import numpy as np

from gbfl_compile.ir.batch import clause_column
from gbfl_compile.ir.kinds import Codebook, Columns
from gbfl_compile.ir.nodes import Clause, Decision, Interval, Leaf, Scorecard, Tree
from gbfl_compile.learning.black_box.ask import Bools, Ints, Matrix
from gbfl_compile.learning.heads.points import Head, Triplets

MOST_DIGITS = 6
"""A threshold that needs more significant digits than this is left as it is."""


def round_thresholds(head: Head, triplets: Triplets, least_rows: int = 0, columns: Columns | None = None) -> Head:
    """The head with rounder thresholds, where no fewer triplets are right; leaves keep `least_rows` own rows."""
    if not head.clauses:
        return head
    book = None if columns is None else columns.book
    holds = np.stack([clause_column(clause, triplets.x, book) for clause in head.clauses])
    right = _right(head.decision, holds, triplets, np.arange(len(triplets.x)))
    clauses = list(head.clauses)
    for number, place, side in _bounds(head.clauses, columns):
        for candidate in _rounder(clauses[number], place, side):
            column = clause_column(candidate, triplets.x, book)
            changed = np.flatnonzero(column != holds[number])
            before = holds[number].copy()
            holds[number] = column
            there = _right(head.decision, holds, triplets, changed)
            if _change_in_triplets(right, there, changed, triplets) >= 0.0 and (
                not changed.size or _fewest_rows(head.decision, holds, triplets) >= least_rows
            ):
                right[changed] = there
                clauses[number] = candidate
                break
            holds[number] = before
    return replace(head, clauses=tuple(clauses))


def head_answers(head: Head, points: Matrix, book: Codebook | None) -> Ints:
    """The class index that a head gives each point."""
    if not head.clauses:
        return _answers(head.decision, np.zeros((0, len(points)), dtype=bool))
    return _answers(head.decision, np.stack([clause_column(clause, points, book) for clause in head.clauses]))


def _bounds(clauses: tuple[Clause, ...], columns: Columns | None) -> Iterator[tuple[int, int, Literal["lo", "hi"]]]:
    """Every threshold on a number, not on a date: its clause, its atom, its side."""
    for number, clause in enumerate(clauses):
        for place, atom in enumerate(clause.atoms):
            if isinstance(atom, Interval) and (columns is None or columns.kinds[atom.feature] == "number"):
                for side, value in (("lo", atom.lo), ("hi", atom.hi)):
                    if value is not None and np.isfinite(value):
                        yield number, place, "lo" if side == "lo" else "hi"


def _rounder(clause: Clause, place: int, side: Literal["lo", "hi"]) -> Iterator[Clause]:
    """The clause with fewer digits in one threshold, fewest first."""
    atom = clause.atoms[place]
    assert isinstance(atom, Interval)  # noqa: S101 - only intervals are listed
    value = atom.lo if side == "lo" else atom.hi
    seen = {value}
    for digits in range(1, MOST_DIGITS):
        rounded = float(f"{value:.{digits}g}") + 0.0
        other = replace(atom, lo=rounded) if side == "lo" else replace(atom, hi=rounded)
        if rounded == value:
            return
        if rounded in seen or (other.lo is not None and other.hi is not None and other.lo >= other.hi):
            continue
        seen.add(rounded)
        yield Clause((*clause.atoms[:place], other, *clause.atoms[place + 1 :]))


def _right(decision: Decision, holds: Bools, triplets: Triplets, at: Ints) -> Bools:
    """Of some points those that get the right class."""
    answer = _answers(decision, holds[:, at])
    same = answer == triplets.label[at]
    return np.asarray((same ^ triplets.avoids[at]) | ~triplets.exists[at])


def _answers(decision: Decision, holds: Bools) -> Ints:
    match decision:
        case Scorecard(bias, points):
            scores = np.array(points, dtype=np.float64).T @ holds + np.array(bias, dtype=np.float64)[:, None]
            return np.asarray(scores.argmax(axis=0))
        case Tree():
            answer = np.zeros(holds.shape[1], dtype=np.int64)
            for here, leaf in _leaves(decision, holds):
                answer[here] = leaf.winner
            return answer
        case _:
            assert_never(decision)


def _leaves(tree: Tree, holds: Bools) -> Iterator[tuple[Ints, Leaf]]:
    """Each leaf and the points that end in it."""
    at = {0: np.arange(holds.shape[1])}
    for index, node in enumerate(tree.nodes):
        here = at.pop(index)
        if isinstance(node, Leaf):
            yield here, node
            continue
        there = holds[node.clause, here]
        at[node.then], at[node.otherwise] = here[there], here[~there]


def _change_in_triplets(before: Bools, there: Bools, changed: Ints, triplets: Triplets) -> float:
    """The weight of triplets that become right as a whole, less that of those that no longer are."""
    touched = np.unique(changed // 3)
    after = before.reshape(-1, 3)[touched].copy()
    after[np.searchsorted(touched, changed // 3), changed % 3] = there
    whole, was = after.all(axis=1), before.reshape(-1, 3)[touched].all(axis=1)
    return float(triplets.weight[touched][whole].sum() - triplets.weight[touched][was].sum())


def _fewest_rows(decision: Decision, holds: Bools, triplets: Triplets) -> int:
    if isinstance(decision, Scorecard):
        return int(triplets.own.sum())
    return min(len(here) for here, _ in _leaves(decision, holds[:, triplets.own]))
