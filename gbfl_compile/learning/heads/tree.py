"""The tree head: CART on clauses, grown on packed bits, its depth fixed or chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gbfl_compile.ir.nodes import Clause, Leaf, Split, preorder
from gbfl_compile.learning.black_box import Ints, Matrix
from gbfl_compile.learning.clauses import Bits, Words, clause_bits, count, counts, pack
from gbfl_compile.learning.heads import Head, Points, deal_rows

MAX_DEPTH = 5
"""The paper's limit: a deeper tree is no longer readable."""
FOLDS = 10
LEAST_GAIN = 1e-12
"""A split that lowers the impurity by less is rounding, not information."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Points of one class and one weight, as bits: a weighted count is a few popcounts."""

    words: tuple[Words, ...]
    label: Ints
    weight: Matrix
    n_classes: int


@dataclass(frozen=True, slots=True)
class _Node:
    """A grown node. `clause` is -1 at the bottom; a shallower tree ends earlier, so every node has its class masses."""

    clause: int
    then: int
    otherwise: int
    mass: Matrix
    depth: int


def fit_tree(clauses: Sequence[Clause], points: Points, max_depth: int | str, min_leaf: int) -> Head:
    """The tree on these candidate clauses; max_depth "cv" lets held-out points choose."""
    bits = clause_bits(clauses, points.x)
    groups = group_points(points)
    everything = pack(np.ones(len(points.x), dtype=bool))
    depth = _best_depth(bits, groups, points, min_leaf) if max_depth == "cv" else int(max_depth)
    return _head(clauses, grow(bits, groups, everything, depth, min_leaf))


def group_points(points: Points) -> Groups:
    """The points by class and weight."""
    pairs = sorted({(int(label), float(w)) for label, w in zip(points.label, points.weight, strict=True) if w > 0})
    words = tuple(pack((points.label == label) & (points.weight == weight)) for label, weight in pairs)
    return Groups(words, np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs]), points.n_classes)


def grow(bits: Bits, groups: Groups, among: Words, max_depth: int, min_leaf: int) -> list[_Node]:
    """Nodes of the tree grown on the points in `among`, each split the one that lowers the Gini impurity most."""
    nodes: list[_Node] = []
    waiting: list[tuple[Words, int, int, bool]] = [(among, 0, -1, False)]
    while waiting:
        here, depth, parent, side = waiting.pop()
        index = len(nodes)
        if parent >= 0:
            above = nodes[parent]
            then, otherwise = (index, above.otherwise) if side else (above.then, index)
            nodes[parent] = _Node(above.clause, then, otherwise, above.mass, above.depth)
        mass = _mass(groups, here)
        clause = _best_clause(bits, groups, here, mass, min_leaf) if depth < max_depth else -1
        nodes.append(_Node(clause, -1, -1, mass, depth))
        if clause >= 0:
            holds = bits.words[clause]
            waiting += ((here & ~holds, depth + 1, index, False), (here & holds, depth + 1, index, True))
    return nodes


def _mass(groups: Groups, here: Words) -> Matrix:
    mass = np.zeros(groups.n_classes)
    for words, label, weight in zip(groups.words, groups.label, groups.weight, strict=True):
        mass[label] += weight * count(words & here)
    return mass


def _best_clause(bits: Bits, groups: Groups, here: Words, mass: Matrix, min_leaf: int) -> int:
    """The clause whose split lowers the impurity most, the earliest of equals; -1 where none does."""
    if len(bits.words) == 0 or np.count_nonzero(mass) < 2:
        return -1
    inside = np.zeros((groups.n_classes, len(bits.words)))
    rows = np.zeros(len(bits.words), dtype=np.int64)
    for words, label, weight in zip(groups.words, groups.label, groups.weight, strict=True):
        held = counts(bits, words & here)
        rows += held
        inside[label] += weight * held
    outside = mass[:, None] - inside
    gain = _purity(inside) + _purity(outside) - _purity(mass[:, None])
    gain[(rows < min_leaf) | (count(here) - rows < min_leaf)] = -np.inf
    best = int(gain.argmax())
    return best if gain[best] > LEAST_GAIN * mass.sum() else -1


def _purity(mass: Matrix) -> Matrix:
    """Weight times (1 - Gini impurity), column by column."""
    total = mass.sum(axis=0)
    squares = np.square(mass).sum(axis=0)
    return np.asarray(np.divide(squares, total, out=np.zeros_like(total), where=total > 0))


def _head(clauses: Sequence[Clause], nodes: list[_Node]) -> Head:
    """The clauses the tree asks, in the order it asks them, and the tree."""
    used = list(dict.fromkeys(node.clause for node in nodes if node.clause >= 0))
    number = {old: new for new, old in enumerate(used)}
    lowered: list[Split | Leaf] = [
        Leaf(tuple((node.mass / node.mass.sum()).tolist()))
        if node.clause < 0
        else Split(number[node.clause], node.then, node.otherwise)
        for node in nodes
    ]
    return Head(tuple(clauses[i] for i in used), preorder(lowered))


def _best_depth(bits: Bits, groups: Groups, points: Points, min_leaf: int) -> int:
    """The depth that gets most held-out points right, the shallowest of equals. One tree per fold serves all depths."""
    right = np.zeros(MAX_DEPTH + 1)
    for fold in deal_rows(points.row, FOLDS):
        held_out = pack(np.isin(points.row, fold))
        nodes = grow(bits, groups, pack(~np.isin(points.row, fold)), MAX_DEPTH, min_leaf)
        right += _right_by_depth(bits, groups, nodes, held_out)
    return max(1, int(right.argmax()))


def _right_by_depth(bits: Bits, groups: Groups, nodes: list[_Node], among: Words) -> Matrix:
    """The weight of points that one grown tree gets right when cut off at depth 0, 1, .."""
    right = np.zeros(MAX_DEPTH + 1)
    waiting = [(0, among)]
    while waiting:
        index, here = waiting.pop()
        node = nodes[index]
        own = _mass(groups, here)[int(node.mass.argmax())]
        last = node.depth + 1 if node.clause >= 0 else MAX_DEPTH + 1
        right[node.depth : last] += own
        if node.clause >= 0:
            holds = bits.words[node.clause]
            waiting += ((node.otherwise, here & ~holds), (node.then, here & holds))
    return right
