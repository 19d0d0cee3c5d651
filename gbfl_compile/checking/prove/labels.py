"""Do two sides ever give different labels? Splits boxes of cells until in each both sides are sure.

For rule sets, and for a rule set beside a tree: whether some sum of points passes another has no short cut in general,
so this search may need more time than it is given. It prunes by what the open points can still do, and, where both
sides are rule sets, leaves every box in which the two differ by nothing.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.checking.prove.cells import Atoms, Cells, possible_winners
from gbfl_compile.checking.prove.findings import Budget
from gbfl_compile.checking.prove.points import Points, Sum
from gbfl_compile.checking.prove.solve import Graph, Step


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

    `difference` is what two rule sets with the same rule for ties differ by: where it is zero, labels are equal.
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


WALKS = 8
STEPS_A_WALK = 40
NEAREST = 8
"""The walk goes on to one of this many rows that come nearest to a tie."""

PAIRS, FEW = 20, 2
"""How many first moves are tried, each with how many second ones."""

LARGEST_TABLE = 20_000_000
EXACT_IN_DOUBLES = 2**53


@dataclass(frozen=True, slots=True)
class Column:
    """What one feature's value does: which conjunctions test it, and in which cells each of them holds."""

    asking: NDArray[np.int64]
    holds: NDArray[np.float64]
    """Cells by the conjunctions that test the feature: 1.0 where one holds."""


@dataclass(frozen=True, slots=True)
class Tables:
    """Both rule sets as tables. Points are doubles that hold them exactly."""

    columns: tuple[Column, ...]
    points: NDArray[np.float64]
    """Conjunctions by classes, the first side's and then the second's."""
    start: NDArray[np.float64]
    classes: int
    ties: tuple[str, str]


def walk_to_other_label(
    cells: Cells, clock: Budget, a: Adder, b: Adder, differing: Mapping[int, int]
) -> dict[int, int] | None:
    """A cell for every feature in which the labels differ, or None where the walk met none.

    `differing` gives some features a cell in which the points of the two differ, whatever the others are.
    """
    tables = _tables(cells, a, b)
    if tables is None:
        return None
    choose = random.Random(0)  # noqa: S311 - the same walk every time
    for _ in range(WALKS):
        row = [choose.randrange(len(column.holds)) for column in tables.columns]
        for feature, mask in differing.items():
            row[feature] = mask.bit_length() - 1
        end = _walk(tables, clock, row, choose)
        if end is not None:
            return {feature: 1 << cell for feature, cell in enumerate(end)}
    return None


def _tables(cells: Cells, a: Adder, b: Adder) -> Tables | None:
    """The tables, or None where they would be too large, or the points too large for doubles."""
    sides = [dict(a.open), dict(b.open)]
    listed: list[Atoms] = list(dict.fromkeys((*sides[0], *sides[1])))
    nothing: Points = (0,) * len(a.points)
    rows = [[*sides[0].get(atoms, nothing), *sides[1].get(atoms, nothing)] for atoms in listed]
    start = [*a.points, *b.points]
    size = sum(max(map(abs, row), default=0) for row in (*rows, start))
    wide = sum(len(starts) + 2 for starts in cells.starts)
    if size >= EXACT_IN_DOUBLES or wide * len(listed) > LARGEST_TABLE:
        return None
    columns = tuple(column_of(cells, feature, listed) for feature in range(len(cells.starts)))
    points = np.array(rows, dtype=np.float64).reshape(len(listed), len(start))
    return Tables(columns, points, np.array(start, dtype=np.float64), len(a.points), (a.tie_to, b.tie_to))


def column_of(cells: Cells, feature: int, listed: Sequence[Atoms]) -> Column:
    """What a feature's value does to conjunctions."""
    width = len(cells.starts[feature]) + 2
    asking = [(i, mask) for i, atoms in enumerate(listed) for f, mask in atoms if f == feature]
    table = np.zeros((width, len(asking)))
    for place, (_, mask) in enumerate(asking):
        bits = np.frombuffer(mask.to_bytes(-(-width // 8), "little"), dtype=np.uint8)
        table[:, place] = np.unpackbits(bits, bitorder="little")[:width]
    return Column(np.array([i for i, _ in asking], dtype=np.int64), table)


def _walk(tables: Tables, clock: Budget, row: list[int], choose: random.Random) -> list[int] | None:
    """Go from row to row, each nearer to a tie where one is, until the labels differ or the steps are used up."""
    last = -1
    for _ in range(STEPS_A_WALK):
        clock.check()
        failing = _failing(tables, row)
        now = tables.start + tables.points[failing == 0].sum(axis=0)
        moves = _moves(tables, row, failing, now)
        differs, distance = _judge(tables, moves.scores)
        if differs.any():
            return _move(row, moves, int(np.flatnonzero(differs)[0]))
        pair = _two_at_once(tables, row, now, moves)
        if pair is not None:
            return pair
        distance[moves.feature == last] = np.inf
        near = [int(move) for move in np.argsort(distance, kind="stable")[:NEAREST] if distance[move] < np.inf]
        if not near:
            return None
        chosen = choose.choice(near)
        last, row = int(moves.feature[chosen]), _move(row, moves, chosen)
    return None


@dataclass(frozen=True, slots=True)
class Moves:
    """Every row that has another value in one feature, and the points of both sides there."""

    feature: NDArray[np.int64]
    cell: NDArray[np.int64]
    scores: NDArray[np.float64]


def _moves(tables: Tables, row: list[int], failing: NDArray[np.int64], now: NDArray[np.float64]) -> Moves:
    features = [feature for feature, column in enumerate(tables.columns) if len(column.asking)]
    parts = [_after_moves(tables, tables.columns[feature], row[feature], failing, now) for feature in features]
    return Moves(
        np.repeat(features, [len(part) for part in parts]),
        np.concatenate([np.arange(len(part)) for part in parts]),
        np.concatenate(parts),
    )


def _move(row: list[int], moves: Moves, move: int) -> list[int]:
    moved = list(row)
    moved[int(moves.feature[move])] = int(moves.cell[move])
    return moved


def _failing(tables: Tables, row: Sequence[int]) -> NDArray[np.int64]:
    """How many atoms of each conjunction fail."""
    failing = np.zeros(len(tables.points), dtype=np.int64)
    for cell, column in zip(row, tables.columns, strict=True):
        failing[column.asking] += column.holds[cell] == 0.0
    return failing


def _two_at_once(tables: Tables, row: list[int], now: NDArray[np.float64], moves: Moves) -> list[int] | None:
    """Two moves of different features whose points, if they add up, bring a class level with the winner.

    Whether they add up (no conjunction tests both) is not checked: a row made of them is examined like any other.
    """
    c = tables.classes
    best = int(_winner(now[None, :c], tables.ties[0])[0])
    for other in (k for k in range(c) if k != best):
        ahead = moves.scores[:, other] - moves.scores[:, best]
        gains = ahead - (now[other] - now[best])
        level = now[best] - now[other], now[c + best] - now[c + other]
        order = np.argsort(gains, kind="stable")
        ranked = gains[order]
        starts = np.searchsorted(ranked, min(level) - gains, "left")
        ends = np.searchsorted(ranked, max(level) + 1 - gains, "right")
        fitting = np.flatnonzero(ends > starts)[:: max(1, int((ends > starts).sum()) // PAIRS)]
        for first in fitting.tolist():
            for second in order[starts[first] : ends[first]][:FEW].tolist():
                if moves.feature[first] != moves.feature[second]:
                    pair = _move(_move(row, moves, first), moves, second)
                    points = tables.start + tables.points[_failing(tables, pair) == 0].sum(axis=0)
                    if _judge(tables, points[None, :])[0][0]:
                        return pair
    return None


def _after_moves(
    tables: Tables, column: Column, cell: int, failing: NDArray[np.int64], now: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The points of both sides with the feature in each of its cells."""
    here = column.holds[cell] == 0.0
    live = failing[column.asking] - here == 0  # only this feature keeps them from holding, or nothing does
    worth = tables.points[column.asking[live]]
    rest = now - worth[~here[live]].sum(axis=0)
    moved: NDArray[np.float64] = rest + column.holds[:, live] @ worth
    return moved


def _judge(tables: Tables, scores: NDArray[np.float64]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Where the labels differ; and elsewhere how far from it a row is, infinite where it cannot be near."""
    sides = scores[:, : tables.classes], scores[:, tables.classes :]
    winners = [_winner(side, tie) for side, tie in zip(sides, tables.ties, strict=True)]
    differs: NDArray[np.bool_] = winners[0] != winners[1]
    every = np.arange(len(scores))
    ahead = np.minimum(*(side[every, winners[0], None] - side for side in sides))
    ahead[every, winners[0]] = np.inf
    distance = ahead.min(axis=1)
    if len(set(tables.ties)) == 1:  # otherwise a tie is enough
        apart = sides[0] - sides[1]
        distance[(apart == apart[:, :1]).all(axis=1)] = np.inf
    return differs, distance


def _winner(scores: NDArray[np.float64], tie_to: str) -> NDArray[np.int64]:
    if tie_to == "lower":
        return np.asarray(scores.argmax(axis=1), dtype=np.int64)
    return np.asarray(scores.shape[1] - 1 - scores[:, ::-1].argmax(axis=1), dtype=np.int64)
