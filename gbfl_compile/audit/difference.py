"""The semantic difference of two versions of a program, for change control: proved equal, or where and how not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gbfl_compile.audit.answer import Change, Moved, Region
from gbfl_compile.audit.changes import changes
from gbfl_compile.audit.region import region_of
from gbfl_compile.audit.rows import moved_rows, reading_labels
from gbfl_compile.check.proof import Counterexample, Proof
from gbfl_compile.check.prove import BUDGET_SECONDS, prove
from gbfl_compile.check.reading import Reading
from gbfl_compile.check.wide import aligned, as_reading, run_reading
from gbfl_compile.check.witnesses import witnesses
from gbfl_compile.ir.batch import Matrix, evaluate_many
from gbfl_compile.ir.digest import digest
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Program

MOST_REGIONS = 8
"""Examples of where two versions differ. There may be more places than these."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What a new version of a program does otherwise than the old one."""

    old: str
    new: str
    proof: Proof
    changes: tuple[Change, ...] = ()
    regions: tuple[Region, ...] = ()
    moved: Moved | None = None

    @property
    def verdict(self) -> str:
        """identical (the same digest), equal (proved, though written differently), different or undecided."""
        if self.old == self.new:
            return "identical"
        return {"proved": "equal", "counterexample": "different"}.get(self.proof.answer, "undecided")


def difference(old: Program, new: Program, data: Matrix | None = None, budget: float = BUDGET_SECONDS) -> Difference:
    """The new version against the old one, features and classes matched by name."""
    reading = aligned(replace(as_reading(new), place="the new version"), old.features, old.classes)
    proof = prove(old, reading, budget)
    shown = next((f for f in proof.findings.values() if isinstance(f, Counterexample)), None)
    if shown is None:
        return Difference(digest(old), digest(new), proof)
    return Difference(
        digest(old),
        digest(new),
        proof,
        changes(old, reading, shown),
        _regions(old, new, reading, shown),
        None if data is None else moved_rows(old, reading, data),
    )


def _regions(old: Program, new: Program, reading: Reading, shown: Counterexample) -> tuple[Region, ...]:
    """Regions around rows that get another class: the proof's row, and witnesses of both versions."""
    rows = np.concatenate([witnesses(old), _reordered(new, old)])
    other = evaluate_many(old, rows).labels != reading_labels(reading, rows)
    candidates = [shown] if shown.source.label != shown.target.label else []
    for row in rows[other]:
        values = tuple(float(value) for value in row)
        candidates.append(Counterexample(values, evaluate(old, values), run_reading(reading, values)))
    found: dict[tuple[Any, Any, str], Region] = {}
    for candidate in candidates[:200]:
        region = region_of(old, reading, candidate)
        found.setdefault((region.approved, region.deployed, region.rule), region)
        if len(found) == MOST_REGIONS:
            break
    return tuple(found.values())


def _reordered(new: Program, old: Program) -> Matrix:
    """The new version's witnesses, in the columns of the old one."""
    rows = witnesses(new)
    made = np.zeros((len(rows), len(old.features)))
    for place, name in enumerate(new.features):
        made[:, old.features.index(name)] = rows[:, place]
    return made
