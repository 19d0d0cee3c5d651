"""The tree head on tables with words: each node asks the conjunction that separates its points best.

Conjunctions come from the same search as a rule set's. The shortest one within a few per cent of the best is asked.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gbfl_compile.ir.nodes import Clause, Leaf, Split
from gbfl_compile.ir.trees import preorder
from gbfl_compile.learning.black_box.ask import Bools, Ints, Matrix
from gbfl_compile.learning.heads.box_search import SearchSettings
from gbfl_compile.learning.heads.grids import promising
from gbfl_compile.learning.heads.points import Head, Points
from gbfl_compile.learning.heads.word_search import WordGrid, word_box_holds, word_clause_of

NEARLY = 0.97
"""A shorter conjunction with this share of the best gain is preferred."""
TINY_RIDGE = 1e-9


def fit_search_tree(points: Points, grid: WordGrid, max_depth: int, min_leaf: int, settings: SearchSettings) -> Head:
    """The tree of at most this depth; the grid has the points."""
    mass = np.zeros((len(points.x), points.n_classes))
    mass[np.arange(len(points.x)), points.label] = points.weight
    exact = replace(settings, ridge=TINY_RIDGE)
    clauses: list[Clause] = []
    nodes: list[Split | Leaf] = []
    waiting: list[tuple[Ints, int, int, bool]] = [(np.arange(len(points.x)), 0, -1, False)]
    while waiting:
        here, depth, parent, side = waiting.pop()
        index = len(nodes)
        if parent >= 0:
            above = nodes[parent]
            assert isinstance(above, Split)  # noqa: S101 - only a split has children
            nodes[parent] = replace(above, then=index) if side else replace(above, otherwise=index)
        question = _best_question(grid, mass, here, min_leaf, exact) if depth < max_depth else None
        if question is None:
            own = mass[here].sum(axis=0)
            nodes.append(Leaf(tuple((own / own.sum()).tolist())))
            continue
        clause, holds = question
        if clause not in clauses:
            clauses.append(clause)
        nodes.append(Split(clauses.index(clause), -1, -1))
        waiting += ((here[~holds], depth + 1, index, False), (here[holds], depth + 1, index, True))
    return Head(tuple(clauses), preorder(nodes))


def _best_question(
    grid: WordGrid, mass: Matrix, here: Ints, min_leaf: int, settings: SearchSettings
) -> tuple[Clause, Bools] | None:
    """The clause to ask of these points and where it holds; None where nothing separates them."""
    own, weight = mass[here], mass[here].sum(axis=1, keepdims=True)
    if np.count_nonzero(own.sum(axis=0)) < 2:
        return None
    part = replace(grid, codes=grid.codes[:, here], own=grid.own[here])
    pull = own - weight * (own.sum(axis=0) / own.sum())
    boxes = promising(part, pull, np.repeat(weight, own.shape[1], axis=1), settings)
    fitting = []
    for box, gain in boxes.items():
        holds = word_box_holds(part, box)  # type: ignore[arg-type]  # a grid of words has boxes of words
        rows = float(part.own[~holds].sum())
        if rows >= grid.least_own and min(int(holds.sum()), int((~holds).sum())) >= min_leaf:
            fitting.append((gain, box, holds))
    if not fitting:
        return None
    best = max(gain for gain, _, _ in fitting)
    gain, box, holds = min((one for one in fitting if one[0] >= NEARLY * best), key=lambda one: (len(one[1]), -one[0]))
    return word_clause_of(part, box), holds  # type: ignore[arg-type]  # as above
