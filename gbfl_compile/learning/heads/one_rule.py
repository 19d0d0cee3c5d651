"""One conjunction in place of a whole model, where nothing more is needed: `income > 30000 AND member`.

It is searched on finer cuts than a model of many clauses, because it has no other clause to correct it.
"""

from __future__ import annotations

import numpy as np

from gbfl_compile.ir.kinds import Codebook
from gbfl_compile.ir.nodes import Interval, Split, Tree
from gbfl_compile.learning.black_box.ask import Bools, Ints, Matrix
from gbfl_compile.learning.heads.box_search import SearchSettings
from gbfl_compile.learning.heads.grids import (
    Conjunction,
    Grid,
    clause_from,
    count_bounds,
    holds_on,
    promising,
    sum_of_pull,
    without_a_bound,
)
from gbfl_compile.learning.heads.points import Head, Triplets, leaf_of
from gbfl_compile.learning.heads.rounding import head_answers

FINE = 256
"""Cuts per feature and role."""
NEARLY = 0.005
"""A single conjunction may lose this share of the triplets that a longer model has right."""


def one_rule(
    head: Head, triplets: Triplets, grid: Grid, settings: SearchSettings, least_rows: int, book: Codebook | None
) -> Head | None:
    """A tree of one question, where it is shorter than a fitted model and about as good; None elsewhere.

    Each side has at least `least_rows` of the user's own rows.
    """
    box = _best_rule(triplets, grid, settings, least_rows) if head.clauses else None
    if box is None or not _is_longer(head, grid, box):
        return None
    answers = head_answers(head, triplets.x, book)
    return _as_tree(triplets, grid, box) if _is_enough(triplets, grid, box, answers) else None


def _best_rule(triplets: Triplets, grid: Grid, settings: SearchSettings, least_rows: int) -> Conjunction | None:
    """The conjunction that, alone, makes most triplets of two classes right; the shortest of equals."""
    if triplets.n_classes != 2:
        return None
    pull = (np.where(triplets.goal == 1, 1.0, -1.0) * triplets.counts * triplets.exists)[:, None]
    best: tuple[float, Conjunction] | None = None
    for sign in (1.0, -1.0):
        boxes = promising(grid, sign * pull, np.zeros_like(pull), settings, sum_of_pull)
        for box in list(boxes)[: settings.shortlist]:
            worth = _worth(triplets, grid, box, least_rows)
            if best is None or worth > best[0]:
                best = worth, box
    if best is None or best[0] < 0.0:
        return None
    worth, box = best
    while True:
        shorter = {other: _worth(triplets, grid, other, least_rows) for other in without_a_bound(grid, box)}
        other = max(shorter, key=lambda each: shorter[each], default=box)
        if other == box or shorter[other] < worth:
            return box
        box = other


def _worth(triplets: Triplets, grid: Grid, box: Conjunction, least_rows: int) -> float:
    """The weight of the triplets it makes right, either way round; -1 where a side has too few of the user's rows."""
    holds = holds_on(grid, box)
    rows = int(holds[triplets.own].sum())
    if not least_rows <= rows <= int(triplets.own.sum()) - least_rows:
        return -1.0
    return _right_weight(triplets, np.where(holds, *_sides(triplets, holds)))


def _sides(triplets: Triplets, holds: Bools) -> tuple[int, int]:
    """The classes where it holds and where it does not."""
    mass = np.bincount(2 * holds + triplets.goal, triplets.counts * triplets.exists, 4)
    inside = int(mass[3] * (mass[0] + mass[1]) > mass[1] * (mass[2] + mass[3]))
    return inside, 1 - inside


def _right_weight(triplets: Triplets, answers: Ints) -> float:
    """The weight of the triplets whose x, PP and PN all get a right answer."""
    right = ((answers == triplets.label) ^ triplets.avoids) | ~triplets.exists
    return float(triplets.weight[right.reshape(-1, 3).all(axis=1)].sum())


def _is_enough(triplets: Triplets, grid: Grid, box: Conjunction, answers: Ints) -> bool:
    """Whether the conjunction is about as good on triplets, and as good on own rows, as a model with these answers."""
    holds = holds_on(grid, box)
    alone = np.where(holds, *_sides(triplets, holds))
    own = triplets.own
    wrong, others = (int((each[own] != triplets.label[own]).sum()) for each in (alone, answers))
    least = _right_weight(triplets, answers) - NEARLY * float(triplets.weight.sum())
    return wrong <= others and _right_weight(triplets, alone) >= least


def _as_tree(triplets: Triplets, grid: Grid, box: Conjunction) -> Head:
    """The conjunction as a tree of one question, with the classes of all points in its two leaves."""
    holds = holds_on(grid, box)
    inside, outside = _sides(triplets, holds)

    def mass(here: Bools) -> Matrix:
        return np.bincount(triplets.goal[here], triplets.counts[here], 2).astype(np.float64)

    leaves = leaf_of(mass(holds & triplets.exists), inside), leaf_of(mass(~holds & triplets.exists), outside)
    return Head((clause_from(grid, box),), Tree((Split(0, 1, 2), *leaves)))


def _is_longer(head: Head, grid: Grid, box: Conjunction) -> bool:
    """Whether a model has more to read than the conjunction."""
    sides = [
        max(1, (atom.lo is not None) + (atom.hi is not None)) if isinstance(atom, Interval) else 1
        for clause in head.clauses
        for atom in clause.atoms
    ]
    return len(head.clauses) > 1 or sum(sides) > count_bounds(grid, box)
