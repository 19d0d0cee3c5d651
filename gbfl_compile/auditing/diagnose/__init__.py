"""Which single slip explains the answers of a scorer that cannot be read: an inference that fits every row.

All small changes of the approved program are tried: in one clause, in what is done with the clauses, in the columns it
reads. The simplest one that answers like the scorer on all rows is reported, as inferred, with how many others would
fit as well. Two slips at once are not looked for.

Where the deployed item was read, a slip is reported only if the program with it is proved to be what was read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from gbfl_compile.auditing.answers import RowAnswers
from gbfl_compile.auditing.diagnose.answer import answer_slips, column_slips
from gbfl_compile.auditing.diagnose.clause import SIGN, clause_slips
from gbfl_compile.auditing.diagnose.joined import joined_slips
from gbfl_compile.auditing.diagnose.points import rounder_points
from gbfl_compile.auditing.diagnose.slip import Case, Slip, case_of, unlikeness
from gbfl_compile.auditing.region import Frame, row_in
from gbfl_compile.auditing.verdict import Change
from gbfl_compile.checking.prove.findings import Counterexample, Finding, OutOfTime, ProvedEqual, work_clock_of
from gbfl_compile.checking.reading.evaluate import reading_winners
from gbfl_compile.checking.reading.from_program import as_reading
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.kinds import Codebook, codebook
from gbfl_compile.ir.nodes import Program

SECONDS = 10.0
READ_SECONDS, ROUNDS, TRIED = 3.0, 12, 12
"""Limits for an item that was read: seconds of work, rounds of additional rows, slips compared with it in each."""

KINDS: tuple[Callable[[Case], Iterator[Slip]], ...] = (clause_slips, joined_slips, answer_slips, column_slips)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The simplest slip, and how many others explain the rows as well."""

    slip: Slip
    others: int
    """Of any cost."""

    def changes(self, fits: str) -> tuple[Change, ...]:
        """The changes to report, each called inferred, with what the rows leave open."""
        remarks = [f"inferred: it fits {fits}", *self.slip.left_open]
        if self.others:
            remarks.append(f"{self.others} other single change{'s' if self.others > 1 else ''} would too")
        first, *rest = self.slip.changes
        return (
            replace(first, deployed=f"{first.deployed} ({'; '.join(remarks)})"),
            *(replace(change, deployed=f"{change.deployed} (inferred)") for change in rest),
        )


def explain(
    program: Program, rows: Matrix, deployed: RowAnswers, only_signs: bool = False, book: Codebook | None = None
) -> Explanation | None:
    """The simplest slip that gives the `deployed` answers. With `only_signs`, only slips of a sign are tried.

    `book` has the codes of the rows' texts where they are not the program's own.
    """
    case = case_of(program, rows, deployed, work_clock_of(SECONDS), codebook(program) if book is None else book)
    if not case.differs.any():
        return None
    found: list[Slip] = []
    try:
        for kind in KINDS[:1] if only_signs else KINDS:
            found.extend(kind(case))
    except OutOfTime:
        pass  # what was found so far fits, and is reported
    found.sort(key=lambda slip: (slip.cost, slip.touched))
    if not found or (only_signs and found[0].cost > SIGN):
        return None
    return Explanation(found[0], len(found) - 1)


def explain_reading(frame: Frame, rows: Matrix, decide: Callable[[Program], Finding]) -> tuple[Slip, ...]:
    """The slips with which the program gives the labels that were read, the likeliest first: `decide` has proved each.

    Of slips that explain the labels alike, the likeliest leaves a program that is written as what was read: with the
    same conditions, points and answers in the same order. Where a slip fits the rows but is not what was read, the row
    that shows it is one more row to fit.
    """
    clock, reading, cells, book = work_clock_of(READ_SECONDS), frame.reading, frame.cells, frame.book
    for _ in range(ROUNDS):
        case = case_of(frame.program, rows, RowAnswers(reading_winners(reading, rows)), clock, book)
        slips: list[Slip] = []
        try:
            for kind in (rounder_points, *KINDS):
                slips.extend(kind(case))
        except OutOfTime:
            pass
        slips = [slip for slip in slips if _is_written_once(slip.program)]
        unlike = {id(slip): unlikeness(cells, as_reading(slip.program, book), reading) for slip in slips}
        slips.sort(key=lambda slip: (unlike[id(slip)], slip.cost, slip.touched))
        refuting: list[list[float]] = []
        proved = []
        for slip in slips[:TRIED]:
            finding = decide(slip.program)
            if isinstance(finding, ProvedEqual):
                proved.append(slip)
            elif isinstance(finding, Counterexample):
                refuting.append(row_in(frame, finding))
        if proved or not refuting:
            return tuple(proved)
        rows = np.concatenate([rows, np.array(refuting, dtype=np.float64)])
    return ()


def _is_written_once(program: Program) -> bool:
    """Whether no clause tests one feature twice, which programs never do."""
    return all(len({atom.feature for atom in clause.atoms}) == len(clause.atoms) for clause in program.clauses)
