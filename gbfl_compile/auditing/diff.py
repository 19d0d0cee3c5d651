"""The semantic difference between two versions of a program, for change control: proved equal, or where they differ."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gbfl_compile.auditing.compare import row_moves
from gbfl_compile.auditing.region import Frame, both_answers, frame_of, region_of
from gbfl_compile.auditing.story import RowMoves, moves_form, moves_lines
from gbfl_compile.auditing.verdict import (
    SCHEMA,
    Change,
    Region,
    region_form,
    region_lines,
)
from gbfl_compile.auditing.versions import asks, program_changes, reason_changes
from gbfl_compile.checking.prove import BUDGET_SECONDS, prove
from gbfl_compile.checking.prove.cells import value_in
from gbfl_compile.checking.prove.findings import Counterexample, OutOfTime, Proof, clock_of
from gbfl_compile.checking.reading.evaluate import reading_labels
from gbfl_compile.checking.reading.from_program import align, as_reading
from gbfl_compile.checking.witnesses import find_witnesses
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import Matrix, evaluate_many
from gbfl_compile.ir.json import as_program, digest
from gbfl_compile.ir.kinds import Codebook, decode_rows, encode_row
from gbfl_compile.ir.nodes import Kind, Program, Tree
from gbfl_compile.ir.text import printable
from gbfl_compile.tables.values import coded_rows

MOST_REGIONS = 8
"""Examples of where two versions differ. There may be more places than these."""

MOST_CANDIDATES, REGION_SECONDS, SAMPLED = 60, 3.0, 20_000
"""Rows that a region is drawn around, seconds for all of them, and rows put together by chance to find some."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How a new version of a program differs from the old one."""

    old: str
    new: str
    proof: Proof
    changes: tuple[Change, ...] = ()
    regions: tuple[Region, ...] = ()
    moves: RowMoves | None = None
    features: tuple[str, ...] = ()
    """Of both versions; the rows that show a difference have a value for each."""
    reasons: tuple[Change, ...] = ()
    """The user's reasons whose wording changed, which no digest covers."""

    @property
    def verdict(self) -> str:
        """identical (the same digest), equal (proved, though written differently), different or undecided.

        Other reasons for the same answers are a difference too, because people receive them.
        """
        if self.reasons:
            return "different"
        if self.old == self.new:
            return "identical"
        return {"proved": "equal", "counterexample": "different"}.get(self.proof.answer, "undecided")

    def as_json(self) -> dict[str, Any]:
        """The stable form scripts read."""
        return {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "old": self.old,
            "new": self.new,
            "proof": self.proof.as_json(self.features),
            "differences": [
                {"where": change.where, "kind": change.kind, "old": change.approved, "new": change.deployed}
                | ({} if change.slip is None else {"slip": change.slip})
                for change in (*self.changes, *self.reasons)
            ],
            "regions": [region_form(region) for region in self.regions],
            "moved": None if self.moves is None else moves_form(self.moves),
        }

    def lines(self) -> list[str]:
        """As text for people."""
        return list(self._lines())

    def _lines(self) -> Iterator[str]:
        match self.verdict:
            case "identical":
                yield f"identical: both are {self.old}"
            case "equal":
                yield f"equal: proved on every input, though written differently ({self.old} and {self.new})"
            case "different" if self.proof.answer == "proved":
                yield f"different: the same answers on every input, and other reasons ({self.old} to {self.new})"
            case verdict:
                yield f"{verdict}: {self.old} to {self.new}"
        changes = (*self.changes, *self.reasons)
        counts = Counter(change.kind for change in changes)
        if counts:
            yield f"  {', '.join(f'{count} {kind}' for kind, count in counts.most_common())}"
        for change in changes[:CHANGES_SHOWN]:
            yield f"  {_change_text(change)}"
        if len(changes) > CHANGES_SHOWN:
            yield f"  and {len(changes) - CHANGES_SHOWN} more: --json has them all"
        if self.moves is not None:
            yield from moves_lines(self.moves)
        for region in self.regions[:REGIONS_SHOWN]:
            yield from region_lines(region, "old", "new")
        if len(self.regions) > REGIONS_SHOWN:
            yield f"  other such regions that --json has: {len(self.regions) - REGIONS_SHOWN}"


def with_features_of(old: Program, new: Program) -> Program:
    """The old version with the new one's additional features appended; it uses none of them."""
    more = [name for name in new.features if name not in old.features]
    kinds = [_kind_in_both(old, new, name) for name in (*old.features, *more)]
    return replace(old, features=(*old.features, *more), kinds=() if set(kinds) <= {"number"} else tuple(kinds))


def _kind_in_both(old: Program, new: Program, name: str) -> Kind:
    """The kind of a feature; where the versions disagree, that of the version that uses it."""
    sides = [each for each in (old, new) if name in each.features]
    kinds = {each.kind(each.features.index(name)): each for each in sides if asks(each, name)}
    if len(kinds) > 1:
        words = " and ".join(f"a {kind} in the {'old' if each is old else 'new'} one" for kind, each in kinds.items())
        raise BadInput(f"{name!r} has two kinds, so these are not versions of one program: it is {words}")
    return next(iter(kinds), sides[0].kind(sides[0].features.index(name)))


def difference(
    old: Program,
    new: Program,
    data: Matrix | None = None,
    budget: float = BUDGET_SECONDS,
    book: Codebook | None = None,
) -> Difference:
    """The new version against the old one, features and classes matched by name.

    The columns of `data` are those of `with_features_of(old, new)`, and `book` has the codes of its texts.
    """
    names = digest(old), digest(new)
    old = with_features_of(old, new)
    kinds = tuple(old.kind(old.features.index(name)) for name in new.features)
    new = replace(new, kinds=() if set(kinds) <= {"number"} else kinds)
    reading = align(replace(as_reading(new), place="the new version"), old.features, old.classes, old.kinds)
    proof = prove(old, reading, budget)
    frame = frame_of(old, reading, book)
    shown = next((f for f in proof.findings.values() if isinstance(f, Counterexample)), None)
    if shown is None:
        changes = program_changes(old, new) if names[0] != names[1] else ()
        return Difference(*names, proof, changes, features=old.features, reasons=reason_changes(old, new))
    return Difference(
        *names,
        proof,
        program_changes(old, new),
        tuple(_regions(frame, new, shown, data)),
        None if data is None else row_moves(frame, data),
        old.features,
        reason_changes(old, new),
    )


def _regions(frame: Frame, new: Program, shown: Counterexample, data: Matrix | None) -> list[Region]:
    """Regions around rows that get another class: the proof's row, rows of the data, and rows of every cell.

    Those with the fewest conditions come first: they are the widest, and people can read them.
    """
    rows = np.concatenate([_rows_about(frame, new), *([] if data is None else [data])])
    other = evaluate_many(frame.program, rows, frame.book).labels != reading_labels(frame.reading, rows)
    candidates = [shown] if shown.source.label != shown.target.label else []
    regions: dict[tuple[Any, Any, str], Region] = {}
    clock = clock_of(REGION_SECONDS)
    try:
        for row in (None, *rows[other][::-1][:MOST_CANDIDATES].tolist()):
            for found in candidates if row is None else [both_answers(frame, row)]:
                region = region_of(frame, found)
                regions.setdefault((region.approved, region.deployed, region.rule), region)
            clock.check()
    except OutOfTime:
        pass  # the regions so far are examples, as all of them are
    return list(_some_of_each(sorted(regions.values(), key=lambda region: region.rule.count(" AND "))))


def _some_of_each(regions: list[Region]) -> Iterator[Region]:
    """The first few of each move from class to class."""
    counts: Counter[tuple[Any, Any]] = Counter()
    ranked: list[tuple[int, int, Region]] = []
    for region in regions:
        counts[region.approved, region.deployed] += 1
        ranked.append((counts[region.approved, region.deployed], len(ranked), region))
    return (region for _, _, region in sorted(ranked, key=lambda each: each[:2])[:MOST_REGIONS])


def _rows_about(frame: Frame, new: Program) -> Matrix:
    """Rows that a difference may show on: witnesses of trees, and for all programs values of cells put together."""
    cells, old = frame.cells, frame.program
    choose = np.random.default_rng(0)
    columns = []
    for feature, starts in enumerate(cells.starts):
        values = np.array([value_in(cells, feature, 1 << cell) for cell in range(len(starts) + 2)])
        columns.append(choose.choice(values if old.kind(feature) == "number" else np.floor(values), SAMPLED))
    parts = [np.column_stack(columns) if columns else np.zeros((SAMPLED, 0))]
    if isinstance(old.decision, Tree) and isinstance(new.decision, Tree):  # quick to find; those of rule sets are not
        parts += [_witnesses_of(old, frame), _witnesses_of(new, frame)]
    return np.concatenate(parts)


def _witnesses_of(program: Program, frame: Frame) -> Matrix:
    """The witnesses of a version, in the columns and codes of the frame."""
    witness_set, old = find_witnesses(program), frame.program
    rows = witness_set.rows
    if program.kinds:
        values = decode_rows(program, rows.tolist(), witness_set.book)
        moved = replace(program, kinds=tuple(old.kind(old.features.index(name)) for name in program.features))
        places = [frame.book.texts[old.features.index(name)] for name in program.features]
        rows = np.array([encode_row(moved, row, Codebook(tuple(places))) for row in values]).reshape(rows.shape)
    aligned_rows = np.zeros((len(rows), len(old.features)))
    for place, name in enumerate(program.features):
        aligned_rows[:, old.features.index(name)] = rows[:, place]
    return aligned_rows


def diff(
    old: Program | str | os.PathLike[str],
    new: Program | str | os.PathLike[str],
    *,
    data: Any = None,
    budget_seconds: float = BUDGET_SECONDS,
) -> Difference:
    """Compare two versions of a program by what they mean: proved equal, or where and how they differ.

    With `data` (a file, DataFrame or matrix), how many of its rows get another class.
    """
    before, after = as_program(old), as_program(new)
    rows, book = (None, None) if data is None else coded_rows(data, with_features_of(before, after))
    return difference(before, after, rows, budget_seconds, book)


CHANGES_SHOWN, REGIONS_SHOWN = 30, 4


def _change_text(change: Change) -> str:
    where = printable(change.where)
    if change.kind == "removed":
        return f"{where} removed: {printable(change.approved)}"
    if change.kind == "added":
        return f"{where} added: {printable(change.deployed)}"
    kind = "" if change.kind == "changed" else f" {change.kind}"
    slip = "" if change.slip is None else f" ({printable(change.slip)})"
    return f"{where}{kind}: {printable(change.approved)} becomes {printable(change.deployed)}{slip}"
