"""One slip that would explain a scorer's answers, and which of several gives the program most like the deployed one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gbfl_compile.auditing.answers import Bits, RowAnswers, answers_of, clauses_held, differs_at
from gbfl_compile.auditing.changes import conjunction
from gbfl_compile.auditing.region import Frame
from gbfl_compile.auditing.verdict import Change
from gbfl_compile.checking.prove.cells import Cells, mask_of
from gbfl_compile.checking.prove.findings import Clock
from gbfl_compile.checking.reading.from_program import condition_of
from gbfl_compile.checking.reading.nodes import (
    And,
    Ask,
    Condition,
    Not,
    Outcome,
    PointDecision,
    Reading,
    StepDecision,
    Test,
)
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.kinds import Codebook
from gbfl_compile.ir.nodes import Program

PROBED = 64
"""Rows of each sort, differing and not, that a whole program must fit before it is run on all of them."""


@dataclass(frozen=True, slots=True)
class Case:
    """Rows, what was approved for them, and what was heard."""

    program: Program
    rows: Matrix
    deployed: RowAnswers
    approved: RowAnswers
    differs: Bits
    held: Bits
    """Which clauses hold, as approved."""
    probe: Bits
    clock: Clock
    book: Codebook
    """The codes of the rows' texts."""


@dataclass(frozen=True, slots=True)
class Slip:
    """A program one slip away whose answers are those that were heard."""

    cost: int
    """The simplest slip is the likeliest one: a sign costs least."""
    touched: int
    """The rows on which it makes something other, whether it shows or not; of two slips that cost the same, the
    smaller one is reported."""
    changes: tuple[Change, ...]
    program: Program
    left_open: tuple[str, ...] = ()


def case_of(program: Program, rows: Matrix, deployed: RowAnswers, clock: Clock, book: Codebook) -> Case:
    """The case to explain."""
    approved = answers_of(program, rows, book)
    differs = differs_at(program, approved, deployed)
    probe = np.zeros(len(rows), dtype=bool)
    for sort in (differs, ~differs):
        places = np.flatnonzero(sort)
        probe[places[:: max(1, len(places) // PROBED)]] = True
    return Case(program, rows, deployed, approved, differs, clauses_held(program, rows, book), probe, clock, book)


def explains(case: Case, other: Program) -> bool:
    """Whether another program answers every row as it was heard."""
    case.clock.check()
    some = answers_of(other, case.rows[case.probe], case.book)
    if differs_at(case.program, some, case.deployed.at(case.probe)).any():
        return False
    return not differs_at(case.program, answers_of(other, case.rows, case.book), case.deployed).any()


def rule_items(cells: Cells, reading: Reading) -> list[Hashable]:
    """What a side is written with, in order: conditions with the answers beside them, or with points."""
    match reading.decision:
        case PointDecision(bias, terms):
            listed = [
                (conjunction(cells, condition) or condition, _lead(points))
                for condition, points in terms
                if not _never(cells, condition)
            ]
            return [("to start with", _lead(bias)), *listed]
        case StepDecision(steps):
            items: list[Hashable] = []
            waiting, seen = [0], set[int]()
            while waiting:
                place = waiting.pop()
                step = steps[place]
                if place in seen or isinstance(step, Outcome):
                    continue
                seen.add(place)
                turned = isinstance(step.condition, Not)
                condition = step.condition.part if isinstance(step.condition, Not) else step.condition
                ways = (step.otherwise, step.then) if turned else (step.then, step.otherwise)
                answers = tuple(_winner(steps[way]) for way in ways)
                if _never(cells, condition):
                    ways = (ways[1], ways[1])
                else:
                    items.append((conjunction(cells, condition) or condition, answers))
                waiting += reversed(ways)
            return items


def _lead(points: tuple[int, ...]) -> Hashable:
    """Of two classes the lead of the second, whichever of them the points are written for."""
    return points[1] - points[0] if len(points) == 2 else points


def _never(cells: Cells, condition: Condition) -> bool:
    """Whether one of its tests lets nothing through."""
    return isinstance(condition, And) and any(
        isinstance(part, Test) and not mask_of(cells, part) for part in condition.parts
    )


def _winner(step: Ask | Outcome) -> int | None:
    return step.winner if isinstance(step, Outcome) else None


MOST_ITEMS = 300


def distance(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """How many items of either list are not in the other at their place in the order."""
    if max(len(a), len(b)) > MOST_ITEMS:
        return len(set(a) ^ set(b))
    longest = [0] * (len(b) + 1)
    for item in a:
        previous = 0
        for place, other in enumerate(b, 1):
            kept = longest[place]
            longest[place] = previous + 1 if item == other else max(longest[place], longest[place - 1])
            previous = kept
    return len(a) + len(b) - 2 * longest[-1]


def with_ways(frame: Frame, deployed: Program, listed: Sequence[Change]) -> tuple[Change, ...]:
    """The changes of a program into the deployed one, each saying which way its clause went."""
    ways: dict[str, str] = {}
    all_of = frame.cells.everything
    for number, pair in enumerate(zip(frame.program.clauses, deployed.clauses, strict=False)):
        conditions = [condition_of(frame.program, clause, frame.book) for clause in pair]
        before, after = (conjunction(frame.cells, condition) for condition in conditions)
        if _never(frame.cells, conditions[1]) or before is None or after is None:
            ways[f"clause {number}"] = "removed"
            continue
        old, new = dict(before), dict(after)
        pairs = [(old.get(f, all_of(f)), new.get(f, all_of(f))) for f in old.keys() | new.keys()]
        lets_more, lets_less = (all(a & ~b == 0 for a, b in each) for each in (pairs, [(b, a) for a, b in pairs]))
        if lets_more != lets_less:
            ways[f"clause {number}"] = "loosened" if lets_more else "tightened"
    return tuple(replace(change, kind=ways.get(change.where, change.kind)) for change in listed)
