"""Slips in the points of a rule set: other points for a clause, or to start with."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.auditing.answers import Bits, decided_by, differs_at
from gbfl_compile.auditing.diagnose.clause import clause_text
from gbfl_compile.auditing.diagnose.slip import Case, Slip
from gbfl_compile.auditing.verdict import Change
from gbfl_compile.ir.nodes import Scorecard
from gbfl_compile.ir.text import label_text

POINTS = 2
POINTS_WITHOUT_END = 4
"""Larger points would fit too, but would only mean "always this class"."""

Numbers = NDArray[np.int64]


def other_points(case: Case, card: Scorecard) -> Iterator[Slip]:
    """Other points for one class of one clause, or to start with: how many is what the rows allow."""
    for place, allowed in _allowed_places(case, card):
        yield from _points_slip(case, card, place, allowed, int(min(max(0, allowed[0]), allowed[1])))


def rounder_points(case: Case) -> Iterator[Slip]:
    """Other points where the rows allow several, in the steps of the approved ones: 15 for 20 and not 19.

    Which of them is written is for `unlikeness` to say: here all that are a few steps away are tried.
    """
    card = case.program.decision
    if not isinstance(card, Scorecard):
        return
    step = math.gcd(*(worth for row in card.points for worth in row)) or 1
    for place, (low, high) in _allowed_places(case, card):
        if step == 1 and place[0] == len(card.points):
            continue  # the points to start with are tried as they are allowed: a few more would fit too often
        tried = [sign * more * step for more in range(1, MOST_STEPS + 1) for sign in (1, -1)]
        for added in (each for each in tried if low <= each <= high):
            yield from _points_slip(case, card, place, (low, high), added)
    for place, (low, high) in _allowed_places(case, card, fails=True):
        tried = [sign * more * step for more in range(1, MOST_STEPS + 1) for sign in (1, -1)]
        for added in (each for each in tried if low <= each <= high):
            yield from _other_deduction(case, card, place, added)


def _other_deduction(case: Case, card: Scorecard, place: Place, added: int) -> Iterator[Slip]:
    """Points that are taken away where a clause fails: its points and those to start with change together."""
    number, c = place

    def more(row: tuple[int, ...], worth: int) -> tuple[int, ...]:
        return (*row[:c], row[c] + worth, *row[c + 1 :])

    table = (*card.points[:number], more(card.points[number], -added), *card.points[number + 1 :])
    other = replace(case.program, decision=replace(card, bias=more(card.bias, added), points=table))
    if differs_at(case.program, decided_by(other, case.held), case.deployed).any():
        return
    label, worth = label_text(case.program.classes[c]), card.points[number][c]
    rule = clause_text(case.program, case.program.clauses[number])
    deployed = f"{worth - added:+d} for {label}, and {added:+d} whether it holds or not"
    change = Change(f"points of clause {number}", f"{worth:+d} for {label}", deployed, rule=rule)
    yield Slip(POINTS + 1, int((~case.held[:, number]).sum()), (change,), other)


MOST_STEPS = 10
"""How many steps away other points are tried."""

Place: TypeAlias = tuple[int, int]
"""A clause, or past the last one the points to start with, and a class."""


def _allowed_places(case: Case, card: Scorecard, fails: bool = False) -> Iterator[tuple[Place, tuple[float, float]]]:
    """Where other points may explain the rows, and how many more, from least to most.

    With `fails` they are given where a clause does not hold.
    Of two classes one without any points is passed over: more for the one is less for the other.
    """
    points = decided_by(case.program, case.held).scores
    assert points is not None  # noqa: S101 - a rule set has points
    ones = np.ones(len(case.rows), dtype=bool)
    rows = (*card.points, card.bias)
    empty = [c for c in range(len(card.bias)) if not any(row[c] for row in rows)] if len(card.bias) == 2 else []
    for number in range(len(rows) - fails):
        case.clock.check()
        holds = ones if number == len(card.points) else case.held[:, number] ^ fails
        if (case.differs & ~holds).any():
            continue
        for c in range(len(card.bias)):
            allowed = None if empty == [c] else _allowed_points(case, points, holds, c)
            if allowed is not None:
                yield (number, c), allowed


def _points_slip(case: Case, card: Scorecard, place: Place, allowed: tuple[float, float], added: int) -> Iterator[Slip]:
    number, c = place
    is_bias = number == len(card.points)
    worths = card.bias if is_bias else card.points[number]
    changed = (*worths[:c], worths[c] + added, *worths[c + 1 :])
    table = (*card.points[:number], changed, *card.points[number + 1 :])
    decision = replace(card, bias=changed) if is_bias else replace(card, points=table)
    other = replace(case.program, decision=decision)
    if differs_at(case.program, decided_by(other, case.held), case.deployed).any():
        return
    where = "to start with" if is_bias else f"points of clause {number}"
    label = label_text(case.program.classes[c])
    rule = None if is_bias else clause_text(case.program, case.program.clauses[number])
    change = Change(where, f"{worths[c]:+d} for {label}", f"{worths[c] + added:+d} for {label}", rule=rule)
    left_open = () if allowed[0] == allowed[1] else (_points_open(worths[c], allowed),)
    cost = POINTS if math.isfinite(allowed[0]) and math.isfinite(allowed[1]) else POINTS_WITHOUT_END
    cost += not worths[c] and any(worths)  # people look for the points that the clause has
    touched = len(case.rows) if is_bias else int(case.held[:, number].sum())
    yield Slip(cost, touched, (change,), other, left_open)


def _points_open(worth: int, allowed: tuple[float, float]) -> str:
    low, high = (f"{worth + int(end):+d}" if math.isfinite(end) else "" for end in allowed)
    if low and high:
        return f"any from {low} to {high} fit"
    return f"any from {low} up fit" if low else f"any up to {high} fit"


def _allowed_points(case: Case, points: Numbers, holds: Bits, c: int) -> tuple[float, float] | None:
    """How many points more, from least to most, class c may get on the rows that hold; None where no number does."""
    if case.deployed.scores is not None:
        more = np.unique((case.deployed.scores - points)[holds, c]).tolist()
        return (float(more[0]), float(more[0])) if len(more) == 1 and abs(more[0]) < 2**53 else None
    if case.deployed.probabilities is not None:
        return _from_probabilities(case, points, holds, c)
    own, observed_classes = points[holds, c], case.deployed.classes[holds]
    others = points[holds].copy()
    others[:, c] = np.iinfo(np.int64).min
    rival = others.argmax(axis=1)
    gap = others.max(axis=1) - own  # this many more make a tie, which the lower class wins
    wins, loses = observed_classes == c, observed_classes != c
    if (loses & (observed_classes != rival)).any():
        return None
    least = (gap + (rival < c))[wins]
    most = (gap - (rival > c))[loses]
    low = float(least.max()) if len(least) else -math.inf
    high = float(most.min()) if len(most) else math.inf
    return (low, high) if low <= high else None


def _from_probabilities(case: Case, points: Numbers, holds: Bits, c: int) -> tuple[float, float] | None:
    """Probabilities tell points against those of another class, up to their last digits."""
    card, leaf_probabilities = case.program.decision, case.deployed.probabilities
    assert isinstance(card, Scorecard) and leaf_probabilities is not None  # noqa: S101, PT018 - checked before
    if len(case.program.classes) < 2 or card.bands:  # a band tells a range of leads, not the points
        return None
    against = 0 if c else 1
    known = holds & (leaf_probabilities[:, c] > 0) & (leaf_probabilities[:, against] > 0)
    if not known.any():
        return None
    logits = np.log(leaf_probabilities[known, c]) - np.log(leaf_probabilities[known, against])
    observed_classes = np.ldexp(logits, card.scale)
    more = float(np.median(np.rint(observed_classes - (points[known, c] - points[known, against]))))
    return (more, more) if math.isfinite(more) and abs(more) < 2**53 else None
