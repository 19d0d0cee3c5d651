"""Do two sides ever give different labels? Splits boxes of cells until in each both sides are sure.

For rule sets, and for a rule set beside a tree: whether some sum of points passes another has no short cut in general,
so this search may need more time than it is given. It prunes by what the open points can still do, and, where both
sides are rule sets, leaves every box in which the two differ by nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.check.cells import Atoms, Cells
from gbfl_compile.check.clock import Budget
from gbfl_compile.check.prove_graph import Graph, Step
from gbfl_compile.check.prove_points import Points, Sum

INT64_SAFE = 2**62


@dataclass(frozen=True, slots=True)
class Walker:
    """A tree on its way: a node of a graph whose outcomes are winners."""

    graph: Graph
    node: int


@dataclass(frozen=True, slots=True)
class Adder:
    """A rule set on its way: points so far, and the conjunctions still open."""

    points: Points
    open: tuple[tuple[Atoms, Points], ...]
    tie_to: Literal["lower", "higher"]


Side: TypeAlias = Walker | Adder

Split: TypeAlias = tuple[int, int]
"""A feature and a mask: in these cells, or in the others."""


def adder_of(total: Sum, classes: int, tie_to: Literal["lower", "higher"]) -> Adder:
    """A rule set before anything is known of the row."""
    return Adder(total.get((), (0,) * classes), tuple(item for item in total.items() if item[0]), tie_to)


def find_other_label(
    cells: Cells, clock: Budget, a: Side, b: Side, difference: Adder | None, within: Mapping[int, int] | None = None
) -> Mapping[int, int] | None:
    """A box (`within` another) in which the two sides give different labels everywhere, or None: they never do.

    `difference` is what two rule sets with the same rule for ties differ by: where it is nothing, labels are equal.
    """
    stack: list[tuple[dict[int, int], Side, Side, Adder | None]] = [(dict(within or {}), a, b, difference)]
    while stack:
        clock.check()
        box, a, b, difference = stack.pop()
        split: Split | None = None
        if difference is not None:
            difference, split = _added(difference, box)
            if split is None and not any(difference.points):
                continue
        a, winners_a, split_a = _winners(a, box)
        b, winners_b, split_b = _winners(b, box)
        if len(winners_a) == 1 and winners_a == winners_b:
            continue
        if winners_a.isdisjoint(winners_b):
            return box
        split = split or split_a or split_b
        if split is None:
            continue  # both are sure, and agree
        feature, mask = split
        have = box.get(feature, cells.everything(feature))
        stack.append(({**box, feature: have & ~mask}, a, b, difference))
        stack.append(({**box, feature: have & mask}, a, b, difference))
    return None


def _winners(side: Side, box: Mapping[int, int]) -> tuple[Side, frozenset[int], Split | None]:
    """The side as far as the box decides it, who can still win, and what to ask next."""
    if isinstance(side, Adder):
        added, split = _added(side, box)
        return added, _possible(added), split
    node = side.node
    while isinstance(step := side.graph.nodes[node], Step):
        left = _left(step.atoms, box)
        if left:
            return Walker(side.graph, node), _reachable(side.graph, node), left
        node = step.otherwise if left is None else step.then
    return Walker(side.graph, node), frozenset({side.graph.outcomes[node].winner}), None


def _reachable(graph: Graph, node: int) -> frozenset[int]:
    """Every winner there is: which of them can still be reached is left to the splitting."""
    return frozenset(outcome.winner for outcome in graph.outcomes.values())


def _left(atoms: Atoms, box: Mapping[int, int]) -> Split | tuple[()] | None:
    """An atom that is still open, `()` where all hold, None where one fails."""
    found: Split | tuple[()] = ()
    for feature, mask in atoms:
        have = box.get(feature)
        if have is None:
            found = (feature, mask)
        elif not have & mask:
            return None
        elif have & ~mask:
            found = (feature, mask)
    return found


def _added(side: Adder, box: Mapping[int, int]) -> tuple[Adder, Split | None]:
    """The points the box decides, added; and an atom of the open conjunction with most points."""
    points = list(side.points)
    left: list[tuple[Atoms, Points]] = []
    split: Split | None = None
    most = -1
    for atoms, more in side.open:
        found = _left(atoms, box)
        if found is None:
            continue
        if found:
            left.append((atoms, more))
            spread = max(more) - min(more) if len(more) > 1 else abs(more[0])
            if spread > most:
                most, split = spread, found
        else:
            points = [p + q for p, q in zip(points, more, strict=True)]
    return Adder(tuple(points), tuple(left), side.tie_to), split


def _possible(side: Adder) -> frozenset[int]:
    """The classes that can still win: no other class is ahead of them by more than the open points can make up."""
    now = _exact([side.points])[0]
    ahead = now[:, None] - now[None, :]
    if side.open:
        more = _exact(points for _, points in side.open)
        ahead = ahead + np.maximum(more[:, :, None] - more[:, None, :], 0).sum(axis=0)
    classes = range(len(side.points))
    lower = side.tie_to == "lower"
    return frozenset(
        c
        for c in classes
        if all(ahead[c, d] > 0 or (ahead[c, d] == 0 and (c < d if lower else c > d)) for d in classes if d != c)
    )


def _exact(rows: Iterable[Points]) -> NDArray[np.int64]:
    """Points as an array: of 64 bits where no sum can pass them, of Python's own whole numbers otherwise."""
    listed = list(rows)
    safe = sum(max(map(abs, row), default=0) for row in listed) < INT64_SAFE // 2
    return np.array(listed, dtype=np.int64 if safe else object)
