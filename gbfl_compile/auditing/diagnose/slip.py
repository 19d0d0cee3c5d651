"""One slip that would explain what a scorer answered: what all kinds of slips share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gbfl_compile.auditing.answers import Bits, RowAnswers, answers_of, clauses_held, differs_at
from gbfl_compile.auditing.verdict import Change
from gbfl_compile.checking.prove.findings import Clock
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.kinds import Codebook
from gbfl_compile.ir.nodes import Program

PROBED = 64
"""Rows of each sort, differing and not, that a whole program must fit before it is asked about all of them."""


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
    smaller one is told."""
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
