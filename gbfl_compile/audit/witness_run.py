"""Answers to the witnesses, from wherever they came, put beside the program's: the verdict and its first difference."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from gbfl_compile.audit.answer import Change, Region
from gbfl_compile.audit.explained import explained
from gbfl_compile.audit.labels import as_json, kind_of
from gbfl_compile.audit.observed import NO_SCORE, Bits, Observed, answers_of, differing, differs_at
from gbfl_compile.check.equivalence import Execution
from gbfl_compile.check.witnesses import witnesses
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.nodes import Program

Real: TypeAlias = Literal["float64", "float32"]


@dataclass(frozen=True, slots=True)
class Asked:
    """The rows to run, and what was approved for each."""

    program: Program
    rows: Matrix
    approved: Observed


def asked_rows(program: Program, real: Real = "float64") -> Asked:
    """The witnesses; for a float32 scorer rounded, with each value's two neighbours."""
    rows = witnesses(program)
    if real == "float32":
        with np.errstate(over="ignore", under="ignore"):  # a double beyond float32 is infinite there
            rounded = rows.astype(np.float32)
            both = [np.nextafter(rounded, np.float32(way)) for way in (-np.inf, np.inf)]
        rows = np.concatenate([rounded, *both]).astype(np.float64)
    return Asked(program, rows, answers_of(program, rows))


def execution(asked: Asked, engine: str, deployed: Observed, said: Sequence[Any], ran: Bits) -> Execution:
    """What running showed: the answers, the label as it was `said`, and which rows `ran` at all."""
    differs = ran & differs_at(asked.program, asked.approved, deployed)
    first = None
    if differs.any():
        place = _shown_first(asked, deployed, differs)
        row = asked.rows[place].tolist()
        target = {"label": as_json(said[place]), **_beside_the_label(deployed, place)}
        label = asked.program.classes[int(asked.approved.classes[place])]
        first = {
            "witness": place + 1,
            "row": {name: json_number(value) for name, value in zip(asked.program.features, row, strict=True)},
            "source": {"label": label, **_beside_the_label(asked.approved, place, target)},
            "target": target,
        }
    return Execution(engine, int(ran.sum()), int(differs.sum()), first)


def _shown_first(asked: Asked, deployed: Observed, differs: Bits) -> int:
    """A row with another label before one with the same label and another probability."""
    labels = differs & differing(asked.program, asked.approved, deployed)["labels"]
    return int(np.flatnonzero(labels if labels.any() else differs)[0])


def _beside_the_label(answers: Observed, place: int, like: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Probabilities and scores of a row as JSON; of those, only what `like` has too."""
    found: dict[str, Any] = {}
    if answers.probabilities is not None:
        found["probabilities"] = [json_number(value) for value in answers.probabilities[place].tolist()]
    if answers.scores is not None:
        found["scores"] = [None if value == NO_SCORE else value for value in answers.scores[place].tolist()]
    return found if like is None else {key: value for key, value in found.items() if key in like}


def first_reason(first: Mapping[str, Any]) -> str:
    """One line on the first difference: the labels, or what differs beside them."""
    source, target = first["source"], first["target"]
    same_label = (kind_of(source["label"]), source["label"]) == (kind_of(target["label"]), target["label"])
    beside = (key for key in ("probabilities", "scores") if same_label and source.get(key) != target.get(key))
    key = next(beside, "label")
    what = "" if key == "label" else f"the {key} "
    return f"witness {first['witness']}: {what}{source.get(key)!r} is answered {target.get(key)!r}"


def compared_text(asked: Asked, deployed: Observed, ran: Bits) -> str:
    """What was held against what was approved, and how much of it differs: `labels; probabilities, 7 different`."""
    parts = []
    for name, wrong in differing(asked.program, asked.approved, deployed).items():
        count = int((wrong & ran).sum())
        parts.append(f"{name}, {count:,} different" if count else f"{name}, none different")
    return "; ".join(parts)


def witness_changes(asked: Asked, shown: Execution, deployed: Observed, ran: Bits) -> tuple[Change, ...]:
    """The one slip that would explain all answers, where there is one."""
    if not shown.different:
        return ()
    found = explained(asked.program, asked.rows[ran], deployed.at(ran))
    return () if found is None else found.changes("every witness")


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
