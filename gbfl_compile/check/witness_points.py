"""For every atom of a rule set, rows on which a slip in it changes the scores and, where one is found, the label.

With the other atoms of its clause held, an atom that turns over adds or takes away the clause's points: the scores
always show that. The label shows it where the points decide who wins. Such rows are tried for at random, all clauses
at once, and then searched for, as long as the steps last.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.check.cells import Cells, cell_at, joined
from gbfl_compile.check.clock import OutOfTime, Steps
from gbfl_compile.check.prove_labels import Adder, find_other_label
from gbfl_compile.check.ways import atoms_of
from gbfl_compile.check.witness_search import PINS, Found, Row, any_row, turning_cells, values_of_rows
from gbfl_compile.check.witness_ties import moved_to_ties
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.nodes import Program, Scorecard

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


def rule_set_rows(program: Program, card: Scorecard, cells: Cells, choose: random.Random) -> Found:
    """Rows for every atom of every clause, and rows that hold as many clauses as fit together."""
    found = Found()
    turns = list(_turns(program, cells))
    shown = np.zeros(len(turns), dtype=bool)
    for number in range(ROUNDS):
        left = [index for index in range(len(turns)) if not shown[index]]
        if not left or (number and len(left) * len(program.clauses) > MOST_IN_A_ROUND):
            break
        rows = [_row_in(turns[index].box, cells, choose) for index in left]
        seen = _seen_in_label(program, card, cells, [turns[index] for index in left], rows)
        found.rows += rows if number == 0 else [row for row, yes in zip(rows, seen, strict=True) if yes]
        shown[left] = seen
    unseen = [turn for turn, yes in zip(turns, shown, strict=True) if not yes]
    unseen = _moved_to_ties(program, card, cells, unseen, choose, found)
    _search(program, card, cells, unseen, found)
    found.rows += _pinned_rows(program, cells, choose)
    found.rows += _mixed_rows(program, cells, choose)
    return found


def _moved_to_ties(
    program: Program, card: Scorecard, cells: Cells, turns: list[Turn], choose: random.Random, found: Found
) -> list[Turn]:
    """Add rows for turns that no random row showed, moved to where the clause's points decide; the turns left over."""
    if not turns:
        return []
    width = range(len(cells.starts))
    rows = [_row_in(turn.box, cells, choose) for turn in turns]
    given = np.array([[row[feature].bit_length() - 1 for feature in width] for row in rows], dtype=np.int64)
    kept = [(turn.clause, turn.holds, frozenset(turn.box)) for turn in turns]
    atoms = [atoms_of(cells, clause) for clause in program.clauses]
    moved, shown = moved_to_ties(cells, card, atoms, given, kept, choose)
    found.rows += [{feature: 1 << int(row[feature]) for feature in width} for row in moved[shown]]
    return [turn for turn, yes in zip(turns, shown, strict=True) if not yes]


def _turns(program: Program, cells: Cells) -> Iterator[Turn]:
    for number, clause in enumerate(program.clauses):
        box = dict(atoms_of(cells, clause))
        for atom in clause.atoms:
            if all(mask for feature, mask in box.items() if feature != atom.feature):
                for masks in turning_cells(cells, atom):
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


def _search(program: Program, card: Scorecard, cells: Cells, turns: list[Turn], found: Found) -> None:
    """Boxes in which the points of a clause decide who wins, for turns that no tried row showed."""
    atoms = [atoms_of(cells, clause) for clause in program.clauses]
    in_all = WORK_IN_ALL // (len(atoms) + 1)
    for turn in turns:
        if in_all <= 0:
            found.given_up.append(_label_of(turn))
            continue
        others = tuple((a, p) for i, (a, p) in enumerate(zip(atoms, card.points, strict=True)) if i != turn.clause)
        without = Adder(card.bias, others, "lower")
        more = tuple(b + p for b, p in zip(card.bias, card.points[turn.clause], strict=True))
        steps = Steps(min(STEPS_TO_SHOW, in_all))
        allowed = steps.left
        try:
            box = find_other_label(cells, steps, without, Adder(more, others, "lower"), None, turn.box)
        except OutOfTime:
            found.given_up.append(_label_of(turn))
            box = None
        in_all -= allowed - max(0, steps.left)
        if box is not None:
            every = {feature: box.get(feature, 1) for feature in range(len(cells.starts))}
            found.rows.append({feature: mask & -mask for feature, mask in every.items()})


def _label_of(turn: Turn) -> str:
    return f"clause {turn.clause}, feature {turn.feature}: a slip that the label alone shows"


def _pinned_rows(program: Program, cells: Cells, choose: random.Random) -> Iterator[Row]:
    for clause in program.clauses:
        box = dict(atoms_of(cells, clause))
        for atom in clause.atoms:
            for value in PINS:
                pinned = {**box, atom.feature: cell_at(cells, atom.feature, value)}
                if all(pinned.values()):
                    yield _row_in(pinned, cells, choose)


def _mixed_rows(program: Program, cells: Cells, choose: random.Random) -> Iterator[Row]:
    """For a rule set: as many clauses held as fit together, in one order after another, and none at all."""
    listed = [atoms_of(cells, clause) for clause in program.clauses]
    yield {feature: cells.missing(feature) for feature in range(len(cells.starts))}
    for number in range(SUBSETS):
        order = listed if number == 0 else choose.sample(listed, choose.randrange(len(listed) + 1))
        box: dict[int, int] = {}
        for atoms in order:
            box = dict(joined(tuple(box.items()), atoms) or box)
        held = {feature: mask & -mask for feature, mask in box.items() if mask}
        yield {**any_row(cells, choose), **held}
