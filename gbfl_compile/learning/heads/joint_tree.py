"""The tree head: conjunctions tested one after another, fitted so that whole triplets come out right.

A tree is grown twice, with conjunctions of several bounds and with single bounds, and each is then improved node by
node. With its subtrees fixed, a node only decides which of them answers a point: the search a rule set uses finds the
conjunctions that send most points to a subtree that is right about them, and the triplets decide which is used. Every
step raises the objective (triplets with x, PP and PN right, some credit for single points, a price for each condition)
and leaves enough rows of the table in every leaf. There is no randomness.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from gbfl_compile.ir.nodes import Clause, Leaf, Split, preorder
from gbfl_compile.learning.black_box import Bools, Ints, Matrix
from gbfl_compile.learning.heads import (
    Conjunction,
    Grid,
    Head,
    Triplets,
    clause_from,
    count_bounds,
    holds_on,
    leaf_of,
    part_of,
    promising,
    sum_of_pull,
    without_a_bound,
)
from gbfl_compile.learning.heads.box_search import SearchSettings
from gbfl_compile.learning.heads.word_search import WordGrid

NEARLY = 0.97
"""A shorter conjunction with this share of the best gain is preferred while a tree is grown."""
TINY_RIDGE = 1e-9
LEAST_WRONG = 5
"""A leaf is split if this many of its points have another class."""


@dataclass(frozen=True, slots=True)
class TreeSettings:
    """What a tree may be, and what it is fitted to."""

    max_depth: int = 5
    least_rows: int = 5
    """Every leaf holds at least this many of the user's own rows."""
    max_atoms: int = 4
    credit: float = 0.3
    """What a triplet counts whose points are right but for one: a third of this for each."""
    own_credit: float = 1.0
    """What a row of the user's own counts beside that, where it is right."""
    price: float = 0.001
    """What a condition costs, in shares of the triplets."""
    max_bounds: int = 30
    """The price is raised until the tree has at most this many conditions."""
    dearer: float = 1.3
    hopeless: float = 0.15
    """How much a point of a triplet that is lost anyway counts in the search."""
    sweeps: int = 8
    tried: int = 30
    """How many conjunctions are tried on the triplets, for each side they may be right on."""
    beam: int = 4
    shortlist: int = 12

    def search(self, most: int) -> SearchSettings:
        """How conjunctions of at most `most` bounds are searched."""
        return SearchSettings(max_atoms=most, beam=self.beam, shortlist=self.shortlist, ridge=TINY_RIDGE)


@dataclass(frozen=True, slots=True)
class _Node:
    """A subtree. A leaf has no box."""

    label: int
    right: Bools
    """Of all points, those the subtree would be right about."""
    box: Conjunction = ()
    holds: Bools | None = None
    """Where the box holds, of all points; None at a leaf."""
    below: tuple[_Node, ...] = ()
    """The subtrees for points where the box holds and where it does not."""
    bounds: int = 0


@dataclass(frozen=True, slots=True)
class _Fit:
    """What all steps share. `right` changes with the tree: the points the whole tree is right about."""

    triplets: Triplets
    grid: Grid
    settings: TreeSettings
    by_class: Bools
    """[classes, points]: whether the class is right for the point."""
    own: Ints
    """The user's own rows, as points."""
    credit: Matrix
    """What each point counts beside its triplet."""
    price: float
    right: Bools
    idle: set[int]
    """Searches that found nothing better, by their arguments."""


def fit_joint_tree(triplets: Triplets, grid: Grid, settings: TreeSettings) -> Head:
    """The tree with the highest objective; the grid has the triplets' points."""
    label = np.arange(triplets.n_classes)[:, None]
    by_class = np.where(triplets.avoids, label != triplets.label, label == triplets.label) | ~triplets.exists
    start = _Fit(
        triplets,
        grid,
        settings,
        by_class,
        np.flatnonzero(triplets.own),
        (settings.credit / 3) * triplets.counts + settings.own_credit * np.repeat(triplets.weight, 3) * triplets.own,
        settings.price * float(triplets.weight.sum()),
        np.ones(len(triplets.exists), dtype=bool),
        set(),
    )
    everywhere = np.flatnonzero(triplets.exists)
    atoms = sorted({1, settings.max_atoms}, reverse=True)
    roots = [_improve(start, _grow(start, everywhere, settings.max_depth, most)) for most in atoms]
    root, fit = max(roots, key=lambda root: _objective(start, root)), start
    while root.bounds > settings.max_bounds:
        start.right[everywhere] = root.right[everywhere]
        while root.bounds > settings.max_bounds:
            fit = replace(fit, price=settings.dearer * fit.price)
            root = _sweep(fit, root, everywhere, 0, downwards=False)
        root = _improve(fit, root)
    return _head(start, root)


def _objective(fit: _Fit, root: _Node) -> float:
    everywhere = np.flatnonzero(fit.triplets.exists)
    return float(_worth(fit, everywhere, root.right[everywhere][:, None])[0]) - fit.price * root.bounds


def _worth(fit: _Fit, at: Ints, right: Bools) -> Matrix:
    """What the triplets of some points count, for each column of answers to these points; other points stay."""
    if not len(at):
        return np.zeros(right.shape[1])
    now = fit.right.copy()
    now[at] = True
    triplet = at // 3
    first = np.flatnonzero(np.diff(triplet, prepend=-1))
    mine = triplet[first]
    whole = np.logical_and.reduceat(right, first, axis=0)
    can_be_whole = fit.triplets.weight[mine] * now.reshape(-1, 3)[mine].all(axis=1)
    return np.asarray(can_be_whole @ whole + fit.credit[at] @ right)


def _leaf(fit: _Fit, label: int) -> _Node:
    return _Node(label, fit.by_class[label])


def _split(fit: _Fit, box: Conjunction, then: _Node, otherwise: _Node) -> _Node:
    holds = holds_on(fit.grid, box)
    bounds = then.bounds + otherwise.bounds + count_bounds(fit.grid, box)
    return _Node(-1, np.where(holds, then.right, otherwise.right), box, holds, (then, otherwise), bounds)


def _grow(fit: _Fit, at: Ints, depth: int, atoms: int) -> _Node:
    """A tree by the purity of its leaves alone."""
    mass = _mass(fit, at)
    total = mass.sum(axis=0)
    box = _purest(fit, at, mass, atoms) if depth and np.count_nonzero(total) > 1 else None
    if box is None:
        return _leaf(fit, int(total.argmax()))
    holds = holds_on(part_of(fit.grid, at), box)
    then, otherwise = (_grow(fit, side, depth - 1, atoms) for side in (at[holds], at[~holds]))
    return _split(fit, box, then, otherwise)


def _mass(fit: _Fit, at: Ints) -> Matrix:
    """[points, classes]: what each point counts, under its class."""
    mass = np.zeros((len(at), fit.triplets.n_classes))
    mass[np.arange(len(at)), fit.triplets.goal[at]] = fit.triplets.counts[at]
    return mass


def _purest(fit: _Fit, at: Ints, mass: Matrix, atoms: int) -> Conjunction | None:
    """The shortest of the conjunctions that separate the classes about best and leave both sides their rows."""
    part, own = part_of(fit.grid, at), fit.triplets.own[at]
    weight = mass.sum(axis=1, keepdims=True)
    pull = mass - weight * (mass.sum(axis=0) / mass.sum())
    gains = promising(part, pull, np.repeat(weight, mass.shape[1], axis=1), fit.settings.search(atoms))
    rows, least = int(own.sum()), fit.settings.least_rows
    mine = part_of(part, own)
    honest = {box: gain for box, gain in gains.items() if least <= int(holds_on(mine, box).sum()) <= rows - least}
    if not honest:
        return None
    enough = NEARLY * max(honest.values())
    about_best = (box for box in honest if honest[box] >= enough)
    return min(about_best, key=lambda box: (count_bounds(part, box), -honest[box]))


def _improve(fit: _Fit, root: _Node) -> _Node:
    """Sweeps, upwards and downwards in turn, until none raises the objective."""
    everywhere = np.flatnonzero(fit.triplets.exists)
    fit.right[everywhere] = root.right[everywhere]
    objective = _objective(fit, root)
    for sweep in range(fit.settings.sweeps):
        root = _sweep(fit, root, everywhere, fit.settings.max_depth, downwards=sweep % 2 == 1)
        before, objective = objective, _objective(fit, root)
        if objective <= before + 1e-9:
            break
    return root


def _sweep(fit: _Fit, node: _Node, at: Ints, depth: int, *, downwards: bool) -> _Node:
    """The subtree with each of its nodes improved, given the points that reach it and the levels it may have."""
    if downwards:
        node = _better(fit, node, at, depth)
    if node.holds is not None:
        holds = node.holds[at]
        then, otherwise = (
            _sweep(fit, side, part, depth - 1, downwards=downwards)
            for side, part in zip(node.below, (at[holds], at[~holds]), strict=True)
        )
        node = _split(fit, node.box, then, otherwise)
    if not downwards:
        node = _better(fit, node, at, depth)
    return node


def _better(fit: _Fit, node: _Node, at: Ints, depth: int) -> _Node:
    """The node with another class, another question, or less to ask, where that raises the objective."""
    if node.holds is None:
        node = _best_leaf(fit, at, node.label)
        candidates = _openings(fit, node, at) if depth > 0 else iter(())
    else:
        candidates = chain(_questions(fit, at, *node.below), _restarts(fit, node, at)) if depth > 0 else iter(())
    triplets = np.unique(at // 3)
    state = (at, fit.right.reshape(-1, 3)[triplets], *(side.right[at] for side in node.below))
    question = hash((fit.price, node.label, node.box, *(part.tobytes() for part in state)))
    if question not in fit.idle:
        other = _first_better(fit, node, at, candidates)
        if other is node:
            fit.idle.add(question)
        node = other
    while (shorter := _first_better(fit, node, at, _shorter(fit, node, at))) is not node:
        node = shorter
    fit.right[at] = node.right[at]
    return node


def _first_better(fit: _Fit, node: _Node, at: Ints, candidates: Iterator[_Node]) -> _Node:
    """The first candidate that is worth more than the node; the node itself where none is."""
    now = _worth(fit, at, node.right[at][:, None])[0] - fit.price * node.bounds
    for other in candidates:
        if _worth(fit, at, other.right[at][:, None])[0] - fit.price * other.bounds > now + 1e-9:
            return other
    return node


def _best_leaf(fit: _Fit, at: Ints, label: int) -> _Node:
    """The leaf whose class is worth most; of equals the one it has."""
    worth = _worth(fit, at, fit.by_class[:, at].T)
    return _leaf(fit, int(worth.argmax()) if worth.max() > worth[label] + 1e-9 else label)


def _openings(fit: _Fit, node: _Node, at: Ints) -> Iterator[_Node]:
    """A leaf as a split: one side has the class of the points that the leaf gets wrong."""
    wrong = at[~node.right[at]]
    wanted = np.bincount(fit.triplets.goal[wrong], fit.triplets.counts[wrong], fit.triplets.n_classes)
    wanted[node.label] = 0.0
    label = int(wanted.argmax())
    if wanted[label] >= LEAST_WRONG:
        yield from _questions(fit, at, _leaf(fit, label), node)


def _restarts(fit: _Fit, node: _Node, at: Ints) -> Iterator[_Node]:
    """One question in place of several that ask little together."""
    if 0 < node.bounds - count_bounds(fit.grid, node.box) <= fit.settings.max_atoms:
        mass = _mass(fit, at)
        if np.count_nonzero(mass.sum(axis=0)) > 1 and (box := _purest(fit, at, mass, fit.settings.max_atoms)):
            holds = holds_on(part_of(fit.grid, at), box)
            then, otherwise = (_leaf(fit, int(mass[side].sum(axis=0).argmax())) for side in (holds, ~holds))
            yield _split(fit, box, then, otherwise)


def _questions(fit: _Fit, at: Ints, then: _Node, otherwise: _Node) -> Iterator[_Node]:
    """The most valuable question between two subtrees, either way round, that leaves the leaves their rows."""
    own = at[fit.triplets.own[at]]
    contested = at[then.right[at] != otherwise.right[at]]
    if len(own) < 2 * fit.settings.least_rows or not len(contested):
        return
    # on a table with words the search itself counts the user's rows
    searched = np.union1d(contested, own) if isinstance(fit.grid, WordGrid) else contested
    part, place = part_of(fit.grid, contested), then.right[contested]
    now = fit.right.copy()
    now[at] = then.right[at] | otherwise.right[at]
    can_be_whole = np.asarray(now.reshape(-1, 3).all(axis=1))[searched // 3]
    pull = then.right[searched].astype(np.float64) - otherwise.right[searched]
    hope = np.where(can_be_whole, 1.0, fit.settings.hopeless)
    pull *= fit.triplets.counts[searched] * hope + fit.settings.own_credit * fit.triplets.own[searched]
    columns, boxes = [], []
    for sign in (1.0, -1.0):
        gains = promising(
            part_of(fit.grid, searched),
            sign * pull[:, None],
            np.zeros((len(pull), 1)),
            fit.settings.search(fit.settings.max_atoms),
            sum_of_pull,
        )
        for box in list(gains)[: fit.settings.tried]:
            boxes.append((box, sign))
            columns.append(holds_on(part, box) == (place if sign > 0 else ~place))
    if not boxes:
        return
    worth = _worth(fit, contested, np.column_stack(columns))
    worth -= fit.price * np.array([count_bounds(fit.grid, box) for box, _ in boxes])
    for index in np.argsort(-worth, kind="stable"):
        box, sign = boxes[index]
        sides = (then, otherwise) if sign > 0 else (otherwise, then)
        if _is_honest(fit, box, sides, own):
            yield _split(fit, box, *sides)
            return


def _is_honest(fit: _Fit, box: Conjunction, sides: tuple[_Node, ...], own: Ints) -> bool:
    """Whether every leaf below such a question has its rows."""
    holds = holds_on(part_of(fit.grid, own), box)
    return all(
        _fewest_rows(side, rows) >= fit.settings.least_rows
        for side, rows in zip(sides, (own[holds], own[~holds]), strict=True)
    )


def _fewest_rows(node: _Node, own: Ints) -> int:
    if node.holds is None or not len(own):
        return len(own)
    holds = node.holds[own]
    return min(_fewest_rows(side, rows) for side, rows in zip(node.below, (own[holds], own[~holds]), strict=True))


def _shorter(fit: _Fit, node: _Node, at: Ints) -> Iterator[_Node]:
    """What asks less: one class, one side alone, or the same question with a condition less."""
    if node.holds is None:
        return
    yield _best_leaf(fit, at, 0)
    yield from node.below
    own = at[fit.triplets.own[at]]
    for box in without_a_bound(fit.grid, node.box):
        if _is_honest(fit, box, node.below, own):
            yield _split(fit, box, *node.below)


def _head(fit: _Fit, root: _Node) -> Head:
    """The clauses in the order they are tested, and the tree with the classes of all points in its leaves."""
    clauses: list[Clause] = []
    nodes: list[Split | Leaf] = []

    def add(node: _Node, at: Ints) -> int:
        index = len(nodes)
        if node.holds is None:
            mass = np.zeros(fit.triplets.n_classes)
            np.add.at(mass, fit.triplets.goal[at], fit.triplets.counts[at])
            nodes.append(leaf_of(mass, node.label))
            return index
        clause = clause_from(fit.grid, node.box)
        if clause not in clauses:
            clauses.append(clause)
        question = Split(clauses.index(clause), -1, -1)
        nodes.append(question)
        holds = node.holds[at]
        then, otherwise = (add(side, rows) for side, rows in zip(node.below, (at[holds], at[~holds]), strict=True))
        nodes[index] = replace(question, then=then, otherwise=otherwise)
        return index

    add(root, np.flatnonzero(fit.triplets.exists))
    return Head(tuple(clauses), preorder(nodes))
