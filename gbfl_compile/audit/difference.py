"""The semantic difference of two versions of a program, for change control: proved equal, or where and how not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gbfl_compile.audit.answer import Change, Moved, Region
from gbfl_compile.audit.clause_diff import program_changes
from gbfl_compile.audit.region import region_of
from gbfl_compile.audit.rows import moved_rows, reading_labels
from gbfl_compile.check.cells import cells_of, value_in
from gbfl_compile.check.clock import OutOfTime, clock_of
from gbfl_compile.check.proof import Counterexample, Proof
from gbfl_compile.check.prove import BUDGET_SECONDS, prove
from gbfl_compile.check.reading import Reading
from gbfl_compile.check.wide import aligned, as_reading, run_reading
from gbfl_compile.check.witnesses import witnesses
from gbfl_compile.ir.batch import Matrix, evaluate_many
from gbfl_compile.ir.digest import digest
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Program, Tree

MOST_REGIONS = 8
"""Examples of where two versions differ. There may be more places than these."""

MOST_CANDIDATES, REGION_SECONDS, SAMPLED = 60, 3.0, 20_000
"""Rows that a region is drawn around, seconds for all of them, and rows put together by chance to find some."""


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


def with_features_of(old: Program, new: Program) -> Program:
    """The old version with the features that only the new one has behind its own: it asks none of them."""
    return replace(old, features=(*old.features, *(name for name in new.features if name not in old.features)))


def difference(old: Program, new: Program, data: Matrix | None = None, budget: float = BUDGET_SECONDS) -> Difference:
    """The new version against the old one, features and classes matched by name.

    The columns of `data` are those of `with_features_of(old, new)`.
    """
    names = digest(old), digest(new)
    old = with_features_of(old, new)
    reading = aligned(replace(as_reading(new), place="the new version"), old.features, old.classes)
    proof = prove(old, reading, budget)
    shown = next((f for f in proof.findings.values() if isinstance(f, Counterexample)), None)
    if shown is None:
        changes = program_changes(old, new) if names[0] != names[1] else ()
        return Difference(*names, proof, changes)
    return Difference(
        *names,
        proof,
        program_changes(old, new),
        tuple(_regions(old, new, reading, shown, data)),
        None if data is None else moved_rows(old, reading, data),
    )


def _regions(old: Program, new: Program, reading: Reading, shown: Counterexample, data: Matrix | None) -> list[Region]:
    """Regions around rows that get another class: the proof's row, rows of the data, and rows of every cell.

    Those that ask least come first: they are the widest, and the ones people can read.
    """
    rows = np.concatenate([_rows_about(old, new, reading), *([] if data is None else [data])])
    other = evaluate_many(old, rows).labels != reading_labels(reading, rows)
    candidates = [shown.row] if shown.source.label != shown.target.label else []
    candidates += [tuple(float(value) for value in row) for row in rows[other][::-1][:MOST_CANDIDATES]]
    found: dict[tuple[Any, Any, str], Region] = {}
    clock = clock_of(REGION_SECONDS)
    try:
        for row in candidates:
            region = region_of(old, reading, Counterexample(row, evaluate(old, row), run_reading(reading, row)))
            found.setdefault((region.approved, region.deployed, region.rule), region)
            clock.check()
    except OutOfTime:
        pass  # the regions found so far are examples, as all of them are
    return list(_some_of_each(sorted(found.values(), key=lambda region: region.rule.count(" AND "))))


def _some_of_each(regions: list[Region]) -> Iterator[Region]:
    """The first few of each move from class to class."""
    told: Counter[tuple[Any, Any]] = Counter()
    kept: list[tuple[int, int, Region]] = []
    for region in regions:
        told[region.approved, region.deployed] += 1
        kept.append((told[region.approved, region.deployed], len(kept), region))
    return (region for _, _, region in sorted(kept, key=lambda each: each[:2])[:MOST_REGIONS])


def _rows_about(old: Program, new: Program, reading: Reading) -> Matrix:
    """Rows that a difference may show on: witnesses of trees, and for all programs values of cells put together."""
    cells = cells_of((as_reading(old), reading))
    choose = np.random.default_rng(0)
    columns = []
    for feature, starts in enumerate(cells.starts):
        values = np.array([value_in(cells, feature, 1 << cell) for cell in range(len(starts) + 2)])
        columns.append(choose.choice(values, SAMPLED))
    parts = [np.column_stack(columns) if columns else np.zeros((SAMPLED, 0))]
    if isinstance(old.decision, Tree) and isinstance(new.decision, Tree):  # quick to find; those of rule sets are not
        parts += [_reordered(old, old), _reordered(new, old)]
    return np.concatenate(parts)


def _reordered(program: Program, old: Program) -> Matrix:
    """The witnesses of a version, in the columns of the old one."""
    rows = witnesses(program)
    made = np.zeros((len(rows), len(old.features)))
    for place, name in enumerate(program.features):
        made[:, old.features.index(name)] = rows[:, place]
    return made
