"""Runs a view's own query on witnesses, in its own database: they stand in a temporary table in place of the view's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gbfl_compile.audit.files import Given
from gbfl_compile.audit.view_answers import Expected, Outputs, expected_answers
from gbfl_compile.audit.view_query import WITNESSES, carried_columns, over_witnesses, refuse_stored
from gbfl_compile.audit.witness_run import json_number
from gbfl_compile.check.equivalence import Execution
from gbfl_compile.check.witnesses import witnesses
from gbfl_compile.databases.base import Database, Missing
from gbfl_compile.ir.nodes import Program, Tree

LABEL = "label"


class OtherRows(Exception):
    """A view that does not give an answer a row."""


def run_on_witnesses(given: Given, database: Database, definition: str, outputs: Outputs) -> Execution:
    """The view's query over witnesses, for these (kind, column).

    How many are different is a lower bound where a row may have got the answer of another row of its part.
    """
    program = given.program
    rows = witnesses(program)
    if not database.holds_infinity:
        rows = np.clip(rows, -np.finfo(np.float64).max, np.finfo(np.float64).max)
    query = over_witnesses(database, definition, outputs)
    columns = [given.columns.get(name, name) for name in program.features]
    carried = carried_columns(database, definition, columns)
    refuse_stored(database, definition, outputs, carried)

    def answers(part: Expected, missing: Missing) -> list[tuple[Any, ...]]:
        filled = np.hstack([part.rows, np.zeros((len(part.rows), len(carried)))])
        database.insert(WITNESSES, [*columns, *carried], filled, missing=missing)
        found = database.fetch(query)
        if len(found) != len(part.rows):
            raise OtherRows(f"the view gives {len(found)} answers for {len(part.rows)} rows")
        return found

    ways: tuple[Missing, ...] = ("null", "nan") if database.holds_nan else ("null",)
    different, first = 0, None
    for parts in expected_answers(program, rows, outputs).parts():
        for missing in ways:
            counts = [part.wrong(answers(part, missing)) for part in parts]
            different = max(different, sum(counts))
            if first is None and any(counts):
                shown = next(part for part, count in zip(parts, counts, strict=True) if count)
                first = _first(program, shown, partial(answers, missing=missing))
    return Execution(database.version, len(rows), different, first)


def outputs_run(program: Program, outputs: Outputs) -> Outputs:
    """Those that the program has an answer for: a tree has no scores, a rule set no leaf."""
    other = "score" if isinstance(program.decision, Tree) else "leaf"
    return [output for output in outputs if output[0] != other]


def _first(program: Program, part: Expected, answers: Callable[[Expected], list[tuple[Any, ...]]]) -> dict[str, Any]:
    """One row that gets another answer, found by halving: the fewer rows, the fewer answers are right."""
    while len(part.rows) > 1:
        halves = np.array_split(np.arange(len(part.rows)), 2)
        half = part.at(halves[0])
        part = half if half.wrong(answers(half)) else part.at(halves[1])
    names = [name for _, name in part.outputs]
    values = [None if np.isnan(value) else repr(float(value)) for value in part.rows[0]]
    return {
        "row": dict(zip(program.features, values, strict=True)),
        "source": _as_json(names, part.answers[0]),
        "target": _as_json(names, part.read(answers(part)[0])),
    }


def _as_json(names: list[str], answer: tuple[Any, ...]) -> dict[str, Any]:
    values = [json_number(value) if isinstance(value, float) else value for value in answer]
    return dict(zip(names, values, strict=True))
