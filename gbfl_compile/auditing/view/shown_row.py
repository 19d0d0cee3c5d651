"""Whether a row that a proof found shows a difference: tables must be able to hold it, and the view must answer it so.

The proof is about the text as it was read. The engine has the last word on what the text means: a row that it answers
as the approved program does shows no difference, whatever was read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.view.run import Outputs, as_held, expected_answers
from gbfl_compile.auditing.view.table_copy import StagedRows, TableCopies, TableCopy, copied_tables
from gbfl_compile.auditing.view.view import View, query_over
from gbfl_compile.checking.prove.findings import Counterexample
from gbfl_compile.databases.base import Missing
from gbfl_compile.databases.catalog import Column
from gbfl_compile.errors import CannotRun
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.kinds import codebook, encode_values

REFUSED = "its text differs from the program, but the row that shows it is one the table's constraints refuse"
ANSWERED = (
    "its text differs from the program as it was read, but the view answers the row that should show it as approved"
)


def doubt_of(
    inputs: AuditInput,
    view: View,
    outputs: Outputs,
    features: Sequence[Column | None],
    copies: Sequence[TableCopy],
    shown: Counterexample,
) -> str | None:
    """Why a row shows no difference, however its missing values are written; None where it may."""
    book = codebook(inputs.program)
    rows = np.array([shown.row], dtype=np.float64)
    if shown.values is not None:
        for feature, value in enumerate(shown.values):
            book = book.with_text(feature, value) if isinstance(value, str) else book
        rows = encode_values(inputs.program, [shown.values], book)
    with copied_tables(view, inputs, features, copies) as copy:
        ways: tuple[Missing, ...] = ("null", "nan") if copy.database.holds_nan else ("null",)
        rounding = [place for place, column in enumerate(features) if column is not None and column.rounds]
        was_held, answers = False, []
        for way in ways:
            staged = copy.stage_witnesses(rows, way, book)
            was_held |= any(np.array_equal(row, rows[0, rounding], equal_nan=True) for row in staged.rows[:, rounding])
            answers += _are_approved(inputs, view, outputs, copy, staged, rows[0])
    if not was_held:
        return REFUSED
    return ANSWERED if answers and all(answers) else None


def _are_approved(
    inputs: AuditInput, view: View, outputs: Outputs, copy: TableCopies, staged: StagedRows, row: Matrix
) -> list[bool]:
    """Whether the view answers the row as approved, each time that it was staged; a row without an answer says no."""
    used = [place for place, column in enumerate(copy.features[: row.size]) if column is not None]
    same = [place for place, each in enumerate(staged.rows) if np.array_equal(each[used], row[used], equal_nan=True)]
    found = []
    for place in same:
        program = as_held(inputs.program, view)
        expected = expected_answers(program, staged.rows[[place]], outputs, inputs.class_names)
        try:
            copy.fill(staged, (place,))
            answers = copy.database.fetch(query_over(view, copy.names(), outputs))
        except CannotRun:
            return [False]
        found.append(bool(answers) and not expected.wrong(answers))
    return found
