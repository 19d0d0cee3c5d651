"""Which one slip would explain what a scorer that cannot be read answered: a guess that fits every row it was asked.

All small changes of the approved program are tried: in one clause, in what is done with the clauses, in the columns it
is given. The simplest whose answers are the scorer's on all rows is told, as inferred, with how many others would fit
as well. Two slips at once are not looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from gbfl_compile.auditing.answers import RowAnswers
from gbfl_compile.auditing.diagnose.answer import answer_slips, column_slips
from gbfl_compile.auditing.diagnose.clause import SIGN, clause_slips
from gbfl_compile.auditing.diagnose.slip import Case, Slip, case_of
from gbfl_compile.auditing.verdict import Change
from gbfl_compile.checking.prove.findings import OutOfTime, clock_of
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.kinds import Codebook, codebook
from gbfl_compile.ir.nodes import Program

SECONDS = 10.0
KINDS: tuple[Callable[[Case], Iterator[Slip]], ...] = (clause_slips, answer_slips, column_slips)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The simplest slip, and how many others explain the rows as well."""

    slip: Slip
    others: int
    """Of any cost."""

    def changes(self, fits: str) -> tuple[Change, ...]:
        """What is told: each change, called inferred, with what the rows leave open."""
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
    """The simplest slip that gives the `deployed` answers. With `only_signs` no larger one is looked for.

    `book` has the codes of the rows' texts where they are not the program's own.
    """
    case = case_of(program, rows, deployed, clock_of(SECONDS), codebook(program) if book is None else book)
    if not case.differs.any():
        return None
    found: list[Slip] = []
    try:
        for kind in KINDS[:1] if only_signs else KINDS:
            found.extend(kind(case))
    except OutOfTime:
        pass  # what was found until then fits, and is told
    found.sort(key=lambda slip: (slip.cost, slip.touched))
    if not found or (only_signs and found[0].cost > SIGN):
        return None
    return Explanation(found[0], len(found) - 1)
