"""A view run on few rows at a time: which label each row gets, and whether a row that a proof found is a difference.

A view whose text is not understood is run on the rows that should get one label, which are split where its answers
differ, since answers come back in no order. A proof is about the text as it was read, and the engine has the last word
on what the text means: a row that it answers as approved, or that the tables cannot hold, shows no difference.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gbfl_compile.auditing.answers import UNKNOWN, RowAnswers
from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.diagnose import explain
from gbfl_compile.auditing.verdict import DeployedVerdict
from gbfl_compile.auditing.view.run import (
    ExpectedAnswers,
    Outputs,
    as_held,
    compared_value,
    expected_answers,
    witness_batches,
)
from gbfl_compile.auditing.view.table_copy import StagedRows, TableCopies, TableCopy, copied_tables, one_copy
from gbfl_compile.auditing.view.view import View, feature_columns, other_inputs, query_over
from gbfl_compile.checking.prove.findings import Counterexample
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.databases.base import Missing
from gbfl_compile.databases.catalog import Column
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.kinds import codebook, encode_values
from gbfl_compile.ir.nodes import Program

SECONDS = 3.0
"""Time limit for the queries; rows whose label is not known by then are left out."""


def with_inferred_slip(
    inputs: AuditInput,
    view: View,
    label: str,
    verdict: DeployedVerdict,
    features: Sequence[Column | None] | None = None,
    copies: Sequence[TableCopy] = (),
) -> DeployedVerdict:
    """The verdict on a view that differs and was not read, with the one slip that fits the labels of its rows.

    With `copies`, of the tables of a view that reads several layers, only the table's own rows are queried.
    """
    if verdict.changes or inputs.program.kinds:
        return verdict
    try:
        rows, deployed = _run(inputs, view, label, features, copies)
    except (BadInput, CannotRun, Unread):
        return verdict
    explanation = explain(inputs.program, rows, deployed) if len(rows) else None
    return verdict if explanation is None else replace(verdict, changes=explanation.changes(f"{len(rows)} rows"))


def _run(
    inputs: AuditInput,
    view: View,
    label: str,
    features: Sequence[Column | None] | None,
    copies: Sequence[TableCopy],
) -> tuple[Matrix, RowAnswers]:
    program = as_held(inputs.program, view)
    only_own = features is not None
    if features is None:
        features = feature_columns(inputs, view)
        copies = one_copy(view, features, program)
        only_own = bool(other_inputs(view, [inputs.columns.get(name, name) for name in program.features]))
    batches = [] if only_own else witness_batches(inputs, view, features)
    with copied_tables(view, inputs, features, copies) as copy:
        staged = copy.stage_own_rows() if only_own else copy.stage_witnesses(*batches[0])

        def answers(part: ExpectedAnswers) -> list[tuple[Any, ...]]:
            copy.fill(staged, part.places)
            return copy.database.fetch(query_over(view, copy.names(), part.outputs))

        return _labels(program, expected_answers(program, staged.rows, [("label", label)]), answers)


def _labels(
    program: Program, expected: ExpectedAnswers, answers: Callable[[ExpectedAnswers], list[tuple[Any, ...]]]
) -> tuple[Matrix, RowAnswers]:
    """The rows whose labels could be determined, and those labels."""
    classes = {compared_value("label", label): number for number, label in enumerate(program.classes)}
    groups: dict[tuple[Any, ...], list[int]] = {}
    for place, answer in enumerate(expected.answers):
        groups.setdefault(answer, []).append(place)
    waiting = deque(expected.at(np.array(places)) for places in groups.values())
    rows, numbers = [expected.rows[:0]], []
    deadline = time.monotonic() + SECONDS
    while waiting and time.monotonic() < deadline:
        part = waiting.popleft()
        labels = [part.read(answer)[0] for answer in answers(part)]
        if len(labels) == len(part.places) and len(set(labels)) == 1:
            rows.append(part.rows)
            numbers += [classes.get(labels[0], UNKNOWN)] * len(labels)
        elif len(part.places) > 1:
            waiting += [part.at(half) for half in np.array_split(np.arange(len(part.places)), 2)]
    return np.concatenate(rows), RowAnswers(np.array(numbers, dtype=np.int64))


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
    """The reason why a row shows no difference, with missing values as NULL or NaN; None if it may show one."""
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
    """Whether the view answers the row as approved each time that it was staged; no answer counts as no."""
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
