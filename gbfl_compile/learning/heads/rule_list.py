"""The rule list head: IF, ELSE IF, …, ELSE on clauses, the most certain rules first.

Each round searches, class by class, for the conjunction that gets most of the undecided points right, where a
wrong one costs as much as several right ones. When no rule pays at that price the price is lowered. Every rule, and the
default, decides rows of the table itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gbfl_compile.ir.nodes import Leaf, Split, Tree
from gbfl_compile.learning.black_box import Bools, Ints, Matrix
from gbfl_compile.learning.heads import (
    Conjunction,
    Grid,
    Head,
    Points,
    clause_from,
    count_bounds,
    deal_rows,
    holds_on,
    part_of,
    promising,
    sum_of_pull,
)
from gbfl_compile.learning.heads.box_search import SearchSettings

SCHEDULES: tuple[tuple[float, ...], ...] = ((8.0, 4.0, 2.0, 1.0), (4.0, 2.0, 1.0), (2.5, 1.0))
"""What a wrong point costs, in right ones, from the first rules to the last. Held-out points choose which."""
FOLDS = 3
CHOOSING_ROWS = 4_000
"""About this many rows are used to choose the schedule."""


@dataclass(frozen=True, slots=True)
class _OpenPoints:
    """Points that no rule decides yet."""

    grid: Grid
    mass: Matrix
    """[points, classes]: what each point counts, under its class."""
    own: Bools
    """Which of them are the user's own rows."""

    def part(self, at: Ints | Bools) -> _OpenPoints:
        """Some of them."""
        return _OpenPoints(part_of(self.grid, at), self.mass[at], self.own[at])


def fit_rule_list(points: Points, own: Bools, grid: Grid, max_clauses: int, settings: SearchSettings) -> Head:
    """The rule list with at most this many rules; the grid has the points, and `own` says which are the user's rows."""
    mass = np.zeros((len(points.x), points.n_classes))
    mass[np.arange(len(points.x)), points.label] = points.weight
    everything = _OpenPoints(grid, mass, own)
    some = points.row % max(1, -(-int(points.row.max()) // CHOOSING_ROWS)) == 0
    few, row = everything.part(some), points.row[some]
    lists = {prices: _rules(everything, max_clauses, prices, settings) for prices in SCHEDULES}

    def shares(prices: tuple[float, ...]) -> float:
        """Held-out points choose; a list that does badly on all points is not chosen either."""
        held_out = _held_out_right(few, row, max_clauses, prices, settings) / few.mass.sum()
        return float(held_out + _right(grid, mass, lists[prices]) / mass.sum())

    prices = max(SCHEDULES, key=shares)
    boxes = lists[prices]
    if points.n_classes == 2:  # a list that names the rows of one class may be shorter
        for only in (0, 1):
            others = _rules(everything, len(boxes), prices, settings, only)
            if _size(grid, others) < _size(grid, boxes) and _right(grid, mass, others) >= _right(grid, mass, boxes):
                boxes = others
    return _head(grid, mass, boxes)


def _size(grid: Grid, boxes: list[Conjunction]) -> tuple[int, int]:
    return sum(count_bounds(grid, box) for box in boxes), len(boxes)


def _right(grid: Grid, mass: Matrix, boxes: list[Conjunction]) -> float:
    """The weight of the points whose rule has their class."""
    return sum(float(mass[here].sum(axis=0).max()) for here in _decisions(grid, boxes))


def _held_out_right(
    points: _OpenPoints, row: Ints, max_clauses: int, prices: tuple[float, ...], settings: SearchSettings
) -> float:
    """The weight of held-out points that rules found on the others get right."""
    right, mass = 0.0, points.mass
    for fold in deal_rows(row, FOLDS):
        held_out = np.isin(row, fold)
        train = mass * ~held_out[:, None]
        boxes = _rules(points.part(~held_out), max_clauses, prices, settings)
        for here in _decisions(points.grid, boxes):
            right += float(mass[here & held_out][:, int(train[here].sum(axis=0).argmax())].sum())
    return right


def _rules(
    points: _OpenPoints,
    max_clauses: int,
    prices: tuple[float, ...],
    settings: SearchSettings,
    only: int | None = None,
) -> list[Conjunction]:
    """The rules in order, for every class or `only` one. A price is kept until no rule pays at it."""
    left = points.part(np.flatnonzero(points.mass.any(axis=1)))
    boxes: list[Conjunction] = []
    price = 0
    while len(boxes) < max_clauses and price < len(prices):
        box = _best_rule(left, prices[price], settings, only)
        if box is None:
            price += 1
        else:
            boxes.append(box)
            left = left.part(~holds_on(left.grid, box))
    return boxes


def _best_rule(left: _OpenPoints, price: float, settings: SearchSettings, only: int | None) -> Conjunction | None:
    """The conjunction worth most at this price: for some class, right minus `price` times wrong."""
    mass = left.mass
    present = np.flatnonzero(mass.sum(axis=0))
    own = part_of(left.grid, left.own)
    best: tuple[float, Conjunction] = (0.0, ())
    for label in present if len(present) > 1 else ():
        if only not in (None, label):
            continue
        worth = (mass[:, label] - price * (mass.sum(axis=1) - mass[:, label]))[:, None]
        for box, gain in promising(left.grid, worth, np.zeros_like(worth), settings, sum_of_pull).items():
            if gain <= best[0]:
                break
            decides = holds_on(own, box)
            if decides.any() and not decides.all():  # the default keeps rows too
                best = gain, box
                break
    return best[1] if best[0] >= settings.min_points else None


def _decisions(grid: Grid, boxes: list[Conjunction]) -> Iterator[Bools]:
    """The points each rule decides, then those left to the default."""
    undecided = np.ones(grid.codes.shape[1], dtype=bool)
    for box in boxes:
        here = undecided & holds_on(grid, box)
        yield here
        undecided &= ~here
    yield undecided


def _head(grid: Grid, mass: Matrix, boxes: list[Conjunction]) -> Head:
    """The rules as a tree whose every THEN is a leaf. A default that no point reaches has the classes of all points."""
    masses = [mass[here].sum(axis=0) for here in _decisions(grid, boxes)]
    leaves = [Leaf(tuple((m / m.sum() if m.any() else mass.sum(axis=0) / mass.sum()).tolist())) for m in masses]
    nodes: list[Split | Leaf] = []
    for number, leaf in enumerate(leaves[:-1]):
        nodes += [Split(number, len(nodes) + 1, len(nodes) + 2), leaf]
    return Head(tuple(clause_from(grid, box) for box in boxes), Tree((*nodes, leaves[-1])))
