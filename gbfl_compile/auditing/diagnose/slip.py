"""One slip that would explain a scorer's answers, and which of several gives the program most like the deployed one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import TypeAlias

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
    """Rows, what was approved for them, and what was observed."""

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
    """A program, one slip away, whose answers are those that were observed."""

    cost: int
    """The simplest slip is the likeliest one: a sign costs least."""
    touched: int
    """The rows on which it changes something, whether that shows or not; of two slips that cost the same, the
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
    """Whether another program gives every row the answer that was observed."""
    case.clock.check()
    some = answers_of(other, case.rows[case.probe], case.book)
    if differs_at(case.program, some, case.deployed.at(case.probe)).any():
        return False
    return not differs_at(case.program, answers_of(other, case.rows, case.book), case.deployed).any()


def unlikeness(cells: Cells, own: Reading, written: Reading) -> int:
    """How much two sides are written with that the other is not; 0 where they are written alike.

    Rule sets of two classes are compared by the points that each step of a feature brings: `40 from 4000 on, 25 from
    2000 on` is `25 from 2000 on and 15 more from 4000 on`, and a deployed text may count points in tens.
    """
    cards = [_steps(cells, each.decision) for each in (own, written) if isinstance(each.decision, PointDecision)]
    if len(cards) == 2 and all(len(each.classes) == 2 for each in (own, written)):
        units = [gcd(*steps.values()) or 1 for _, steps in cards]
        factors = {1, units[0] // units[1]} if units[0] % units[1] == 0 else {1}
        return min(_unlike_cards(cards[0], cards[1], factor) for factor in factors)
    return distance(rule_items(cells, own), rule_items(cells, written))


Card: TypeAlias = tuple[int, dict[Hashable, int]]
"""The lead to start with, and what each step from one cell of a feature to the next adds to it."""


def _steps(cells: Cells, card: PointDecision) -> Card:
    """A rule set of two classes; a test of several features is a step of its own."""
    bias, steps = card.bias[1] - card.bias[0], dict[Hashable, int]()
    totals: dict[int, list[int]] = {}
    for condition, points in card.terms:
        atoms, worth = conjunction(cells, condition), points[1] - points[0]
        if _never(cells, condition):
            continue
        if atoms is None or len(atoms) != 1:
            key = atoms or condition
            steps[key] = steps.get(key, 0) + worth
            continue
        ((feature, mask),) = atoms
        own = totals.setdefault(feature, [0] * cells.everything(feature).bit_length())
        totals[feature] = [total + worth * (mask >> cell & 1) for cell, total in enumerate(own)]
    for feature, own in totals.items():
        bias += min(own)
        steps |= {("from nothing", feature): own[0] - min(own)}
        steps |= {(feature, cell): own[cell] - own[cell - 1] for cell in range(1, len(own))}
    return bias, {key: worth for key, worth in steps.items() if worth}


def _unlike_cards(own: Card, written: Card, factor: int) -> int:
    """The number of steps that differ, plus one if the required points differ, with points scaled by `factor`."""
    steps = {key: worth * factor for key, worth in written[1].items()}
    unit = gcd(*own[1].values(), *steps.values()) or 1
    needed = (-own[0] // unit, -(written[0] * factor) // unit)
    return (needed[0] != needed[1]) + sum(
        own[1].get(key, 0) != steps.get(key, 0) for key in own[1].keys() | steps.keys()
    )


def rule_items(cells: Cells, reading: Reading) -> list[Hashable]:
    """What a side consists of, in order: conditions with the answers beside them, or with points."""
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
                masks = conjunction(cells, condition)
                if masks is not None and len(masks) == 1 and masks[0][1] & cells.missing(masks[0][0]):
                    ((feature, mask),) = masks  # the same question the other way round: x < 6 or missing, x >= 6
                    masks, ways = ((feature, cells.everything(feature) & ~mask),), (ways[1], ways[0])
                answers = tuple(_winner(steps[way]) for way in ways)
                if _never(cells, condition):
                    ways = (ways[1], ways[1])
                else:
                    items.append((masks or condition, answers))
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
