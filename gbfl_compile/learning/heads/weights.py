"""The numbers of a head: the loss of a rule set's scores, weights that minimise it, and integer points in their place.

A head searched on some rows gets numbers fitted to all: rows are read in blocks, only sums are kept. A tree's leaves
count the points that end in them. A rule set's weights are refitted to each distinct pattern of clauses once, with the
mass of all points that have it: the same loss as over the points themselves, on far fewer lines.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from gbfl_compile.ir.batch import clause_column, evaluate_many
from gbfl_compile.ir.kinds import Codebook
from gbfl_compile.ir.nodes import Leaf, Program, Scorecard, Tree
from gbfl_compile.learning.black_box import Ints, Matrix
from gbfl_compile.learning.explain import Explanations
from gbfl_compile.learning.heads import Head, TripletRows, leaf_of, with_counts

SCALE = 10
"""A point is 2**-10 of a logit: rounding moves no weight by more than half a thousandth."""
LONG_REFIT = 100
"""Quasi-Newton steps of the last refit."""
CURVATURE_FLOOR = 1e-4
"""A row the model is certain of still counts this much, so that a gain never divides by zero."""


class HasTargets(Protocol):
    """Points with the weights of the classes they should and should not get, [points, classes] each."""

    @property
    def target(self) -> Matrix: ...

    @property
    def avoid(self) -> Matrix: ...


@dataclass(frozen=True, slots=True)
class Targets:
    """Nothing but those weights."""

    target: Matrix
    avoid: Matrix


def loss_of(scores: Matrix, rows: HasTargets) -> tuple[float, Matrix, Matrix]:
    """Minus the log likelihood of the triplets, its gradient by score and its curvature, [points, score columns].

    With two classes there is one score column, the second class against the first.
    """
    full = np.column_stack((np.zeros(len(scores)), scores)) if scores.shape[1] == 1 else scores
    log_p = full - _by_column(np.maximum, full)
    log_p -= np.log(_by_column(np.add, np.exp(log_p)))
    p = np.exp(log_p)
    mass = _by_column(np.add, rows.target)
    loss = -float((rows.target * log_p).sum())
    gradient = mass * p - rows.target
    if full is scores:
        others = np.maximum(1.0 - p, 1e-12)
        loss -= float((rows.avoid * np.log(others)).sum())
        odds = rows.avoid * p / others
        gradient += odds - p * _by_column(np.add, odds)
        mass = mass + _by_column(np.add, rows.avoid)
    curvature = mass * np.maximum(p * (1.0 - p), CURVATURE_FLOOR)
    first = full.shape[1] - scores.shape[1]
    return loss, gradient[:, first:], curvature[:, first:]


def _by_column(add: np.ufunc, table: Matrix) -> Matrix:
    """`add.reduce(table, axis=1)`, to the bit, as a column. With few columns numpy takes ten times as long."""
    if table.shape[1] >= 8:  # from here on numpy adds in another order
        return np.asarray(add.reduce(table, axis=1, keepdims=True))
    total = table[:, :1].copy()
    for k in range(1, table.shape[1]):
        add(total, table[:, k : k + 1], out=total)
    return total


def refit(columns: NDArray[np.float32], weights: Matrix, rows: HasTargets, ridge: float, steps: int) -> Matrix:
    """All weights fitted again, starting from these; the last column is the bias and is (almost) not penalised."""
    penalty = np.full((len(weights), 1), ridge)
    penalty[-1] = 1e-3

    def loss_and_slope(flat: Matrix) -> tuple[float, Matrix]:
        w = flat.reshape(weights.shape)
        with np.errstate(invalid="ignore", over="ignore"):  # a step that is far too long is rejected by its loss
            scores = (columns @ w.astype(np.float32)).astype(np.float64)
        loss, gradient, _ = loss_of(scores, rows)
        slope = (columns.T @ gradient.astype(np.float32)).astype(np.float64) + penalty * w
        return loss + 0.5 * float((penalty * w * w).sum()), slope.ravel()

    optimum = minimize(loss_and_slope, weights.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": steps})
    return np.asarray(optimum.x).reshape(weights.shape)


LOST = 0.3
"""What a point still counts whose triplet is lost at another of its points."""


def count_whole_triplets(rows: TripletRows, scores: Matrix) -> TripletRows:
    """The rows, each point counting by how surely these scores make the other two points of its triplet right.

    A triplet is right as a whole or not at all, so a point is worth most where the others are right already.
    """
    full = np.column_stack((np.zeros(len(scores)), scores)) if scores.shape[1] == 1 else scores
    p = np.exp(full - full.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    on_x = p[rows.x, rows.own]
    on_pp = np.where(rows.has_pp & (rows.roles[1] > 0), p[rows.pp, rows.label], 1.0)
    on_pn = np.where(rows.has_pn & (rows.roles[2] > 0), 1.0 - p[rows.pn, rows.label], 1.0)
    others = (on_pp * on_pn, on_x * on_pn, on_x * on_pp)
    counts = [role * rows.weight * (LOST + (1.0 - LOST) * both) for role, both in zip(rows.roles, others, strict=True)]
    reweighed = with_counts(rows, *counts)
    before, after = (float(each.target.sum() + each.avoid.sum()) for each in (rows, reweighed))
    return with_counts(rows, *(each * (before / after) for each in counts))


SCALES = 40
"""How many worths of a point are tried."""
CUT_OFF = 2.0
"""The largest weight may be this many times what the most points express."""
TWEAKED = 40_000
"""With more points than this no single number is tried one higher and one lower."""
CREDIT = 0.3
"""What a triplet counts whose points are right but for one: a third of this for each, so that near misses count too."""


def rounded_card(weights: Matrix) -> Scorecard:
    """Integer points, the bias from the last line; with two classes the second is weighed against the first."""
    if weights.shape[1] == 1:
        weights = np.column_stack((np.zeros(len(weights)), weights))
    points = np.rint(np.ldexp(weights, SCALE)).astype(np.int64).tolist()
    return Scorecard(tuple(points[-1]), tuple(tuple(row) for row in points[:-1]), SCALE)


def small_card(weights: Matrix, columns: NDArray[np.float32], rows: TripletRows, most: int) -> Scorecard:
    """Points between -most and most that make most triplets right; the last line of the weights is the bias.

    What a point is worth is searched; then each number is tried one higher and one lower.
    """
    largest = float(np.abs(weights[:-1]).max())
    best, chosen, worth = -1.0, np.zeros(0), 1.0
    for unit in np.geomspace(largest / most / CUT_OFF, 2.0 * largest / most, SCALES):
        numbers = np.rint(weights / unit)
        numbers[:-1] = np.clip(numbers[:-1], -most, most)
        right = _right(columns.astype(np.float64) @ numbers, rows)
        if right > best:
            best, chosen, worth = right, numbers, float(unit)
    if len(columns) <= TWEAKED:
        chosen = _tweak(chosen, columns, rows, most, best)
    return _card(chosen, max(0, round(-math.log2(worth))))


def constant_card(weights: Matrix, most: int) -> Scorecard:
    """The same class for every row, with points between -most and most where they separate the classes."""
    exact = rounded_card(weights)
    unit = float(np.abs(weights).max()) / most
    card = _card(np.rint(weights / unit), max(0, round(-math.log2(unit)))) if unit else exact
    return card if np.argmax(card.bias) == np.argmax(exact.bias) else exact


def _tweak(numbers: Matrix, columns: NDArray[np.float32], rows: TripletRows, most: int, right: float) -> Matrix:
    """Each number one higher or lower where that makes more triplets right, twice."""
    scores = columns.astype(np.float64) @ numbers
    for line, k in 2 * list(np.ndindex(*numbers.shape)):
        for step in (1.0, -1.0):
            if line < len(numbers) - 1 and abs(numbers[line, k] + step) > most:
                continue
            scores[:, k] += step * columns[:, line]
            now = _right(scores, rows)
            if now > right:
                right = now
                numbers[line, k] += step
                break
            scores[:, k] -= step * columns[:, line]
    return numbers


def _right(scores: Matrix, rows: TripletRows) -> float:
    """What the triplets count that come out right at x, PP and PN, with some credit for single points."""
    predicted = (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(axis=1)
    at_x = predicted[rows.x] == rows.label
    at_pp = (predicted[rows.pp] == rows.label) | ~rows.has_pp
    at_pn = (predicted[rows.pn] != rows.label) | ~rows.has_pn
    points = sum(float(rows.weight[each].sum()) for each in (at_x, at_pp, at_pn))
    return float(rows.weight[at_x & at_pp & at_pn].sum()) + CREDIT / 3 * points


def _card(numbers: Matrix, scale: int) -> Scorecard:
    if numbers.shape[1] == 1:
        numbers = np.column_stack((np.zeros(len(numbers)), numbers))
    points = numbers.astype(np.int64).tolist()
    return Scorecard(tuple(points[-1]), tuple(tuple(row) for row in points[:-1]), scale)


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
    ridge: float | None,
    book: Codebook | None = None,
) -> Head:
    """The same clauses and shape, with numbers fitted to all rows; a `book` has the codes of their words.

    Without a `ridge` the points of a rule set stay: small ones do not change with more rows.
    """
    rows = (e, own, row_weight, n_classes, role_weights, book)
    match head.decision:
        case Tree():
            return replace(head, decision=_recount(head, head.decision, *rows))
        case Scorecard() if ridge is None:
            return head
        case Scorecard():
            patterns, targets = _patterns(head, *rows)
            return replace(head, decision=_reweigh(head, head.decision, patterns, targets, ridge))
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


def _reweigh(head: Head, card: Scorecard, patterns: NDArray[np.uint8], targets: Targets, ridge: float) -> Scorecard:
    """The points of the scorecard, refitted from their current values."""
    holds = np.unpackbits(patterns, axis=1, count=len(head.clauses), bitorder="little")
    columns = np.column_stack((holds, np.ones(len(holds)))).astype(np.float32)
    weights = np.ldexp(np.array((*card.points, card.bias), dtype=np.float64), -card.scale)
    if targets.target.shape[1] == 2:  # the second class against the first
        weights = weights[:, 1:] - weights[:, :1]
    with threadpool_limits(1, user_api="blas"):
        weights = refit(columns, weights, targets, ridge, LONG_REFIT)
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
