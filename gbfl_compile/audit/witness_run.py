"""Answers to the witnesses, from wherever they came, put beside the program's: the verdict and its first difference."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.audit.answer import Change, Region
from gbfl_compile.audit.explained import class_numbers, explanation
from gbfl_compile.audit.labels import as_json
from gbfl_compile.check.equivalence import Execution
from gbfl_compile.check.witnesses import witnesses
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Program

Real: TypeAlias = Literal["float64", "float32"]


@dataclass(frozen=True, slots=True)
class Asked:
    """The rows to run, and the number of the class that was approved for each."""

    program: Program
    rows: Matrix
    classes: NDArray[np.int64]


def asked_rows(program: Program, real: Real = "float64") -> Asked:
    """The witnesses; for a float32 scorer rounded, with each value's two neighbours."""
    rows = witnesses(program)
    if real == "float32":
        with np.errstate(over="ignore", under="ignore"):  # a double beyond float32 is infinite there
            rounded = rows.astype(np.float32)
            both = [np.nextafter(rounded, np.float32(way)) for way in (-np.inf, np.inf)]
        rows = np.concatenate([rounded, *both]).astype(np.float64)
    return Asked(program, rows, class_numbers(program, rows))


def execution(
    asked: Asked, engine: str, numbers: NDArray[np.int64], said: Sequence[Any], ran: NDArray[np.bool_]
) -> Execution:
    """What running showed: class `numbers`, the label as it was `said`, and which rows `ran` at all."""
    differs = ran & (numbers != asked.classes)
    first = None
    if differs.any():
        place = int(np.flatnonzero(differs)[0])
        row = asked.rows[place].tolist()
        first = {
            "witness": place + 1,
            "row": {name: json_number(value) for name, value in zip(asked.program.features, row, strict=True)},
            "source": {"label": evaluate(asked.program, row).label},
            "target": {"label": as_json(said[place])},
        }
    return Execution(engine, int(ran.sum()), int(differs.sum()), first)


def witness_changes(
    asked: Asked, shown: Execution, numbers: NDArray[np.int64], ran: NDArray[np.bool_]
) -> tuple[Change, ...]:
    """The one slip that would explain all answers, where there is one."""
    return explanation(asked.program, asked.rows[ran], numbers[ran]) if shown.different else ()


def witness_region(asked: Asked, shown: Execution) -> Region | None:
    """The first difference as a place of its own: how far it reaches is not known from running."""
    if shown.first is None:
        return None
    number = shown.first["witness"]
    row = dict(zip(asked.program.features, asked.rows[number - 1].tolist(), strict=True))
    approved, deployed = shown.first["source"]["label"], shown.first["target"]["label"]
    return Region(f"the row is witness {number}", missing_as_none(row), approved, deployed)


def missing_as_none(row: Mapping[str, float]) -> dict[str, float | None]:
    """A row for a Region: missing is None."""
    return {name: None if math.isnan(value) else value for name, value in row.items()}


def json_number(value: float) -> float | str | None:
    """JSON has no NaN and no infinities: a missing value is null, an infinity its name."""
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else str(value)
