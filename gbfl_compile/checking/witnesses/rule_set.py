"""For every atom of a rule set, rows on which a slip in it changes the scores and, where one is found, the label.

With the other atoms of its clause held, an atom that turns over adds or takes away the clause's points: the scores
always show that. The label shows it where the points decide who wins. Such rows are tried for at random, all clauses
at once, and then searched for, as long as the steps last.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.checking.prove.cells import INT64_SAFE, Atoms, Cells, cell_at, join
from gbfl_compile.checking.prove.findings import OutOfTime, Steps
from gbfl_compile.checking.prove.labels import EXACT_IN_DOUBLES, Adder, Column, column_of, find_other_label
from gbfl_compile.checking.prove.points import won_by
from gbfl_compile.checking.prove.solve import atoms_of
from gbfl_compile.checking.reading.nodes import And, PointDecision
from gbfl_compile.checking.witnesses.search import PINS, Row, WitnessSearch, any_row, turning_cells, values_of_rows
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.kinds import codebook
from gbfl_compile.ir.nodes import Program, Scorecard

MOVES, VALUES = 8, 40
"""Features tried for each row, and cells of each."""

ROWS_AT_ONCE = 2_000
MOST_WORK = 30_000_000_000
"""Multiplications, of all rows together: a few seconds."""


def move_to_ties(
    cells: Cells,
    card: Scorecard,
    clauses: Sequence[Atoms],
    rows: NDArray[np.int64],
    turns: Sequence[tuple[int, bool, frozenset[int]]],
    choose: random.Random,
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The rows (one cell per feature) moved, and whether turning its clause over changes the label of each.

    A turn is the number of a clause, whether it holds on the row, and the features that stay as they are.
    """
    seen = np.zeros(len(rows), dtype=bool)
    size = sum(max(map(abs, points), default=0) for points in (card.bias, *card.points))
    if size >= min(EXACT_IN_DOUBLES, INT64_SAFE) or len(card.bias) < 2:
        return rows, seen
    columns = [column_of(cells, feature, clauses) for feature in range(len(cells.starts))]
    points = np.array(card.points, dtype=np.float64).reshape(len(clauses), len(card.bias))
    moved, left = rows.copy(), MOST_WORK
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        ties = _Ties(columns, points, np.array(card.bias, dtype=np.float64), moved[part], turns[part])
        for feature in choose.sample(range(len(columns)), min(len(columns), 3 * MOVES)):
            left -= ties.work(feature)
            if left < 0:
                break
            width = len(columns[feature].holds)
            ties.move(feature, np.array(choose.sample(range(width), min(width, VALUES)), dtype=np.int64))
        seen[part] = ties.shown
    return moved, seen


class _Ties:
    """Some rows on their way: not frozen, moving changes them."""

    def __init__(
        self,
        columns: Sequence[Column],
        points: NDArray[np.float64],
        bias: NDArray[np.float64],
        rows: NDArray[np.int64],
        turns: Sequence[tuple[int, bool, frozenset[int]]],
    ) -> None:
        self.columns, self.points, self.rows = columns, points, rows
        self.failing = np.zeros((len(rows), len(points)), dtype=np.int16)
        for feature, column in enumerate(columns):
            self.failing[:, column.asking] += (column.holds[rows[:, feature]] == 0.0).astype(np.int16)
        self.worth = points[[clause for clause, _, _ in turns]]
        held = np.array([[float(holds)] for _, holds, _ in turns])
        self.without = bias + (self.failing == 0).astype(np.float64) @ points - held * self.worth
        self.free = np.ones((len(rows), len(columns)), dtype=bool)
        for row, (_, _, pinned) in enumerate(turns):
            self.free[row, list(pinned)] = False
        self.shown = self.without.argmax(axis=1) != (self.without + self.worth).argmax(axis=1)
        self.tries = np.zeros(len(rows), dtype=np.int64)

    def _waiting(self, feature: int) -> NDArray[np.int64]:
        return np.flatnonzero(self.free[:, feature] & ~self.shown & (self.tries < MOVES))

    def work(self, feature: int) -> int:
        """Multiplications that a move takes."""
        column = self.columns[feature]
        wide = len(column.asking) * min(len(column.holds), VALUES) * int(self.points.shape[1])
        return len(self._waiting(feature)) * wide

    def move(self, feature: int, values: NDArray[np.int64]) -> None:
        """Put one feature of every row that is not there yet in that one of some cells where a tie is nearest."""
        column, waiting = self.columns[feature], self._waiting(feature)
        if not len(waiting) or not len(column.asking):
            return
        here = column.holds[self.rows[waiting, feature]]
        live = self.failing[np.ix_(waiting, column.asking)] == (here == 0.0)
        points = self.points[column.asking]
        rest = self.without[waiting] - (live * here) @ points
        after = np.stack([(live * worth) @ column.holds[values].T for worth in points.T], axis=2) + rest[:, None, :]
        differs, distance = _judge(after, self.worth[waiting, None, :])
        best = np.where(differs.any(axis=1), differs.argmax(axis=1), distance.argmin(axis=1))
        every = np.arange(len(waiting))
        self.shown[waiting] = differs[every, best]
        self.without[waiting] = after[every, best]
        cell = values[best]
        change = (column.holds[cell] == 0.0).astype(np.int16) - (here == 0.0).astype(np.int16)
        self.failing[np.ix_(waiting, column.asking)] += change
        self.rows[waiting, feature] = cell
        self.tries[waiting] += 1


def _judge(scores: NDArray[np.float64], worth: NDArray[np.float64]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """For each row and cell: whether the clause's points change the winner, and how far from that it is."""
    with_it = scores + worth
    winner = scores.argmax(axis=2)
    differs: NDArray[np.bool_] = winner != with_it.argmax(axis=2)
    ahead = np.minimum(*(np.take_along_axis(s, winner[..., None], axis=2) - s for s in (scores, with_it)))
    np.put_along_axis(ahead, winner[..., None], np.inf, axis=2)
    return differs, ahead.min(axis=2)


SUBSETS = 50
ROUNDS = 6
MOST_IN_A_ROUND = 3_000_000
"""Rows times clauses: a large rule set gets one round only."""

STEPS_TO_SHOW = 200
WORK_IN_ALL = 500_000
"""Steps times clauses, of all searches together."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A clause, and a box in which all of its atoms hold but one, whose feature lies where a slip turns it over."""

    clause: int
    feature: int
    box: dict[int, int]
    holds: bool


def rule_set_rows(program: Program, card: Scorecard, cells: Cells, choose: random.Random) -> WitnessSearch:
    """Rows for every atom of every clause, and rows that hold as many clauses as fit together."""
    search = WitnessSearch()
    turns = list(_turns(program, cells))
    done = np.zeros(len(turns), dtype=bool)
    for number in range(ROUNDS):
        left = [index for index in range(len(turns)) if not done[index]]
        if not left or (number and len(left) * len(program.clauses) > MOST_IN_A_ROUND):
            break
        rows = [_row_in(turns[index].box, cells, choose) for index in left]
        seen = _seen_in_label(program, card, cells, [turns[index] for index in left], rows)
        search.rows += rows if number == 0 else [row for row, yes in zip(rows, seen, strict=True) if yes]
        done[left] = seen
    unseen = [turn for turn, yes in zip(turns, done, strict=True) if not yes]
    unseen = _move_to_ties(program, card, cells, unseen, choose, search)
    _search(program, card, cells, unseen, search)
    _search_band_edges(program, card, cells, search)
    search.rows += _pinned_rows(program, cells, choose)
    search.rows += _mixed_rows(program, cells, choose)
    return search


def _move_to_ties(
    program: Program, card: Scorecard, cells: Cells, turns: list[Turn], choose: random.Random, search: WitnessSearch
) -> list[Turn]:
    """Add rows for turns that no random row showed, moved to where the clause's points decide; the turns left over."""
    if not turns:
        return []
    width = range(len(cells.starts))
    rows = [_row_in(turn.box, cells, choose) for turn in turns]
    start = np.array([[row[feature].bit_length() - 1 for feature in width] for row in rows], dtype=np.int64)
    pinned = [(turn.clause, turn.holds, frozenset(turn.box)) for turn in turns]
    book = codebook(program)
    atoms = [atoms_of(cells, program, clause, book) for clause in program.clauses]
    moved, seen = move_to_ties(cells, card, atoms, start, pinned, choose)
    search.rows += [{feature: 1 << int(row[feature]) for feature in width} for row in moved[seen]]
    return [turn for turn, yes in zip(turns, seen, strict=True) if not yes]


def _turns(program: Program, cells: Cells) -> Iterator[Turn]:
    book = codebook(program)
    for number, clause in enumerate(program.clauses):
        box = dict(atoms_of(cells, program, clause, book))
        for atom in clause.atoms:
            if all(mask for feature, mask in box.items() if feature != atom.feature):
                for masks in turning_cells(cells, atom, book):
                    pinned = {**box, atom.feature: masks[0]}
                    yield Turn(number, atom.feature, pinned, bool(masks[0] & box[atom.feature]))


def _row_in(box: dict[int, int], cells: Cells, choose: random.Random) -> Row:
    return {**any_row(cells, choose), **{feature: mask & -mask for feature, mask in box.items()}}


def _seen_in_label(
    program: Program, card: Scorecard, cells: Cells, turns: list[Turn], rows: list[Row]
) -> NDArray[np.bool_]:
    """Whether the label of each row changes with its turn."""
    scores = evaluate_many(program, np.array(values_of_rows(cells, rows))).scores
    assert scores is not None  # noqa: S101 - a rule set has scores
    points = np.array(card.points, dtype=np.int64)[[turn.clause for turn in turns]]
    signs = np.array([-1 if turn.holds else 1 for turn in turns])
    changed: NDArray[np.bool_] = scores.argmax(axis=1) != (scores + signs[:, None] * points).argmax(axis=1)
    return changed


def _search(program: Program, card: Scorecard, cells: Cells, turns: list[Turn], search: WitnessSearch) -> None:
    """Boxes in which the points of a clause decide who wins, for turns that no tried row showed."""
    book = codebook(program)
    atoms = [atoms_of(cells, program, clause, book) for clause in program.clauses]
    in_all = WORK_IN_ALL // (len(atoms) + 1)
    for turn in turns:
        if in_all <= 0:
            search.given_up.append(_label_of(turn))
            continue
        others = tuple((a, p) for i, (a, p) in enumerate(zip(atoms, card.points, strict=True)) if i != turn.clause)
        without = Adder(card.bias, others, "lower")
        more = tuple(b + p for b, p in zip(card.bias, card.points[turn.clause], strict=True))
        steps = Steps(min(STEPS_TO_SHOW, in_all))
        allowed = steps.left
        try:
            box = find_other_label(cells, steps, without, Adder(more, others, "lower"), None, turn.box)
        except OutOfTime:
            search.given_up.append(_label_of(turn))
            box = None
        in_all -= allowed - max(0, steps.left)
        if box is not None:
            every = {feature: box.get(feature, 1) for feature in range(len(cells.starts))}
            search.rows.append({feature: mask & -mask for feature, mask in every.items()})


def _search_band_edges(program: Program, card: Scorecard, cells: Cells, search: WitnessSearch) -> None:
    """Rows on which a class wins by just the lead at which a band begins, and by one point less."""
    book = codebook(program)
    atoms = [atoms_of(cells, program, clause, book) for clause in program.clauses]
    steps_each = min(STEPS_TO_SHOW, WORK_IN_ALL // ((len(atoms) + 1) * max(1, sum(map(len, card.bands)))))
    scored = PointDecision(card.bias, tuple((And(()), points) for points in card.points))
    for c, own in enumerate(card.bands):
        for lead in sorted({lead for band in own[1:] for lead in (band.least - 1, band.least)}):
            won, won_by_more = (_adder(won_by(scored, c, least), atoms) for least in (lead, lead + 1))
            try:
                box = find_other_label(cells, Steps(steps_each), won, won_by_more, None)
            except OutOfTime:
                search.given_up.append(f"class {c}, a lead of {lead}: the edge of a band")
                continue
            if box is not None:
                every = {feature: box.get(feature, 1) for feature in range(len(cells.starts))}
                search.rows.append({feature: mask & -mask for feature, mask in every.items()})


def _adder(scored: PointDecision, atoms: Sequence[Atoms]) -> Adder:
    return Adder(scored.bias, tuple(zip(atoms, (points for _, points in scored.terms), strict=True)), "lower")


def _label_of(turn: Turn) -> str:
    return f"clause {turn.clause}, feature {turn.feature}: a slip that the label alone shows"


def _pinned_rows(program: Program, cells: Cells, choose: random.Random) -> Iterator[Row]:
    book = codebook(program)
    for clause in program.clauses:
        box = dict(atoms_of(cells, program, clause, book))
        for atom in clause.atoms:
            for value in PINS:
                pinned = {**box, atom.feature: cell_at(cells, atom.feature, value)}
                if all(pinned.values()):
                    yield _row_in(pinned, cells, choose)


def _mixed_rows(program: Program, cells: Cells, choose: random.Random) -> Iterator[Row]:
    """For a rule set: as many clauses held as fit together, in one order after another, and none at all."""
    book = codebook(program)
    listed = [atoms_of(cells, program, clause, book) for clause in program.clauses]
    yield {feature: cells.missing(feature) for feature in range(len(cells.starts))}
    for number in range(SUBSETS):
        order = listed if number == 0 else choose.sample(listed, choose.randrange(len(listed) + 1))
        box: dict[int, int] = {}
        for atoms in order:
            box = dict(join(tuple(box.items()), atoms) or box)
        held = {feature: mask & -mask for feature, mask in box.items() if mask}
        yield {**any_row(cells, choose), **held}
