"""Do two sides ever give different labels? Splits boxes of cells until in each both sides are sure.

For rule sets, and for a rule set beside a tree: whether some sum of points passes another has no short cut in general,
so this search may need more time than it is given. It prunes by what the open points can still do, and, where both
sides are rule sets, leaves every box in which the two differ by nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from gbfl_compile.checking.prove.boxes import possible_winners
from gbfl_compile.checking.prove.budget import Budget
from gbfl_compile.checking.prove.cells import Atoms, Cells
from gbfl_compile.checking.prove.graph import Graph, Step
from gbfl_compile.checking.prove.points import Points, Sum


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
    """A rule set before anything is known about the row."""
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
            difference, split = _add_known(difference, box)
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
        adder, split = _add_known(side, box)
        return adder, possible_winners(adder.points, [points for _, points in adder.open], adder.tie_to), split
    node = side.node
    while isinstance(step := side.graph.nodes[node], Step):
        left = _open_atom(step.atoms, box)
        if left:
            return Walker(side.graph, node), _every_winner(side.graph), left
        node = step.otherwise if left is None else step.then
    return Walker(side.graph, node), frozenset({side.graph.outcomes[node].winner}), None


def _every_winner(graph: Graph) -> frozenset[int]:
    """Every class that some outcome gives: which of them can still be reached is left to the splitting."""
    return frozenset(outcome.winner for outcome in graph.outcomes.values())


def _open_atom(atoms: Atoms, box: Mapping[int, int]) -> Split | tuple[()] | None:
    """An atom that is still open, `()` where all hold, None where one fails."""
    atom: Split | tuple[()] = ()
    for feature, mask in atoms:
        have = box.get(feature)
        if have is None:
            atom = (feature, mask)
        elif not have & mask:
            return None
        elif have & ~mask:
            atom = (feature, mask)
    return atom


def _add_known(side: Adder, box: Mapping[int, int]) -> tuple[Adder, Split | None]:
    """The points the box decides, added; and an atom of the open conjunction with most points."""
    points = list(side.points)
    left: list[tuple[Atoms, Points]] = []
    split: Split | None = None
    most = -1
    for atoms, more in side.open:
        atom = _open_atom(atoms, box)
        if atom is None:
            continue
        if atom:
            left.append((atoms, more))
            spread = max(more) - min(more) if len(more) > 1 else abs(more[0])
            if spread > most:
                most, split = spread, atom
        else:
            points = [p + q for p, q in zip(points, more, strict=True)]
    return Adder(tuple(points), tuple(left), side.tie_to), split
