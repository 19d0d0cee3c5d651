"""A head searched on some rows, its numbers fitted to all: rows are read in blocks, only sums are kept.

A tree's leaves count the points that end in them. A rule set's weights are refitted to each distinct pattern of clauses
once, with the mass of all points that have it: the same loss as over the points themselves, on far fewer lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from gbfl_compile.ir.batch import clause_column, evaluate_many
from gbfl_compile.ir.kinds import Codebook
from gbfl_compile.ir.nodes import Leaf, Program, Scorecard, Tree
from gbfl_compile.learning.black_box.ask import Ints, Matrix
from gbfl_compile.learning.explain.explanations import Explanations
from gbfl_compile.learning.heads.logistic import Targets, refit
from gbfl_compile.learning.heads.points import Head, leaf_of
from gbfl_compile.learning.heads.rules import RuleSettings, rounded_card

SEARCHED_ROWS = 20_000
"""A head is searched on at most this many rows."""


def searched_rows(label: Ints, most: int) -> tuple[Ints, Matrix]:
    """At most `most` rows, ascending, and how many rows each represents; the same every time.

    Each class has its share, but a rare one is not thinned out: all its rows, up to half an equal share, are included.
    """
    classes, counts = np.unique(label, return_counts=True)
    sizes = np.minimum(counts, most // (2 * len(classes)))
    free = most - int(sizes.sum())
    sizes = sizes + (counts - sizes) * free // max(1, int((counts - sizes).sum()))
    draw = np.random.default_rng(0)
    by_class, weights = [], []
    for one, count, size in zip(classes, counts.tolist(), sizes.tolist(), strict=True):
        by_class.append(draw.choice(np.flatnonzero(label == one), size=size, replace=False, shuffle=False))
        weights.append(np.full(size, count / size))
    rows = np.concatenate(by_class)
    order = np.argsort(rows)
    return rows[order], np.concatenate(weights)[order]


BLOCK_ROWS = 16_384

Roles: TypeAlias = tuple[float, float, float]


def fit_to_all_rows(
    head: Head,
    e: Explanations,
    own: Ints,
    n_classes: int,
    role_weights: Roles,
    row_weight: Matrix,
    settings: RuleSettings,
    book: Codebook | None = None,
) -> Head:
    """The same clauses and shape, with numbers fitted to all rows; a `book` has the codes of their words."""
    rows = (e, own, row_weight, n_classes, role_weights, book)
    match head.decision:
        case Tree():
            return replace(head, decision=_recount(head, head.decision, *rows))
        case Scorecard() if settings.points is not None:
            return head  # small points do not change with more rows
        case Scorecard():
            patterns, targets = _patterns(head, *rows)
            return replace(head, decision=_reweigh(head, head.decision, patterns, targets, settings))
        case _:
            assert_never(head.decision)


def _blocks(rows: int) -> Iterator[slice]:
    for begin in range(0, rows, BLOCK_ROWS):
        yield slice(begin, begin + BLOCK_ROWS)


def _recount(
    head: Head,
    tree: Tree,
    e: Explanations,
    own: Ints,
    row_weight: Matrix,
    n_classes: int,
    roles: Roles,
    book: Codebook | None,
) -> Tree:
    """The tree with the classes of all points in its leaves, answering as before; one without points is unchanged."""
    program = Program(e.features, tuple(range(n_classes)), head.clauses, tree)
    leaves = [node for node in tree.nodes if isinstance(node, Leaf)]
    mass = np.zeros(len(leaves) * n_classes)
    everywhere = np.ones(len(e.x), dtype=bool)
    sides = ((e.x, own, everywhere), (e.pp, e.label, e.has_pp), (e.pn, e.pn_label, e.has_pn))
    for block in _blocks(len(e.x)):
        for (points, label, exists), weight in zip(sides, roles, strict=True):
            ends = np.asarray(evaluate_many(program, points[block], book).leaves)
            counts = np.where(exists[block], weight * row_weight[block], 0.0)
            mass += np.bincount(ends * n_classes + label[block], counts, len(mass))
    by_leaf = iter(mass.reshape(-1, n_classes))

    def recount(leaf: Leaf) -> Leaf:
        own_mass = next(by_leaf)
        return leaf_of(own_mass, leaf.winner) if own_mass.any() else leaf

    return Tree(tuple(recount(node) if isinstance(node, Leaf) else node for node in tree.nodes))


def _reweigh(
    head: Head, card: Scorecard, patterns: NDArray[np.uint8], targets: Targets, settings: RuleSettings
) -> Scorecard:
    """The points of the scorecard, refitted from their current values."""
    holds = np.unpackbits(patterns, axis=1, count=len(head.clauses), bitorder="little")
    columns = np.column_stack((holds, np.ones(len(holds)))).astype(np.float32)
    weights = np.ldexp(np.array((*card.points, card.bias), dtype=np.float64), -card.scale)
    if targets.target.shape[1] == 2:  # the second class against the first
        weights = weights[:, 1:] - weights[:, :1]
    with threadpool_limits(1, user_api="blas"):
        weights = refit(columns, weights, targets, settings.search.ridge, 10 * settings.refit_steps)
    return rounded_card(weights)


def _patterns(
    head: Head, e: Explanations, own: Ints, row_weight: Matrix, n_classes: int, roles: Roles, book: Codebook | None
) -> tuple[NDArray[np.uint8], Targets]:
    """Each distinct pattern of clauses, as packed bits, with the mass of the classes it should and should not get."""
    width = 8 * -(-len(head.clauses) // 64)
    bits: list[NDArray[np.uint8]] = []
    masses: list[Matrix] = []
    waiting = distinct = 0
    for block in _blocks(len(e.x)):
        label, rows = e.label[block], np.arange(len(e.label[block]))
        by_role = np.zeros((3, len(rows), 2 * n_classes))
        by_role[0, rows, own[block]] = roles[0]
        by_role[1, rows, label] = np.where(e.has_pp[block], roles[1], 0.0)
        not_label = 1 - label if n_classes == 2 else n_classes + label
        by_role[2, rows, not_label] = np.where(e.has_pn[block], roles[2], 0.0)
        bits += [_bits(head, points[block], width, book) for points in (e.x, e.pp, e.pn)]
        masses += list(by_role * row_weight[block, None])
        waiting += 3 * len(rows)
        if waiting > distinct:  # merged when they have doubled: each is then sorted a few times, not with every block
            patterns, mass = _merge(np.concatenate(bits), np.concatenate(masses))
            bits, waiting, distinct = [patterns], 0, len(patterns)
            masses = [mass]
    patterns, mass = _merge(np.concatenate(bits), np.concatenate(masses))
    return patterns, Targets(mass[:, :n_classes], mass[:, n_classes:])


def _bits(head: Head, points: Matrix, width: int, book: Codebook | None) -> NDArray[np.uint8]:
    if width == 0:
        return np.empty((len(points), 0), dtype=np.uint8)
    holds = np.zeros((8 * width, len(points)), dtype=bool)
    for line, clause in zip(holds, head.clauses, strict=False):
        line[:] = clause_column(clause, points, book)
    return np.ascontiguousarray(np.packbits(holds, axis=0, bitorder="little").T)


def _merge(patterns: NDArray[np.uint8], mass: Matrix) -> tuple[NDArray[np.uint8], Matrix]:
    """Equal patterns as one, their masses added."""
    if patterns.shape[1] == 0:
        return patterns[:1], mass.sum(axis=0, keepdims=True)
    if patterns.shape[1] == 8:  # one number per pattern is sorted far quicker than eight bytes
        numbers, place = np.unique(patterns.view(np.uint64).ravel(), return_inverse=True)
        distinct = numbers[:, None].view(np.uint8)
    else:
        distinct, place = np.unique(patterns, axis=0, return_inverse=True)
    place = place.ravel()
    sums = [np.bincount(place, column, len(distinct)) for column in mass.T]
    return distinct, np.column_stack(sums).astype(np.float64, copy=False)
