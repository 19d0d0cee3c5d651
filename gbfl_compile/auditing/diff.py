"""The semantic difference of two versions of a program, for change control: proved equal, or where and how not."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gbfl_compile.auditing.changes import Piece, conjunction, points_text, way
from gbfl_compile.auditing.compare import row_moves
from gbfl_compile.auditing.region import atoms_text, exact_text, mask_text, region_of
from gbfl_compile.auditing.verdict import (
    SCHEMA,
    Change,
    Region,
    RowMoves,
    moves_form,
    moves_lines,
    region_form,
    region_lines,
)
from gbfl_compile.checking.prove import BUDGET_SECONDS, prove
from gbfl_compile.checking.prove.budget import OutOfTime, clock_of
from gbfl_compile.checking.prove.cells import Cells, cells_of, value_in
from gbfl_compile.checking.prove.findings import Counterexample, Proof
from gbfl_compile.checking.reading.evaluate import reading_labels, run_reading
from gbfl_compile.checking.reading.from_program import align, as_reading, condition_of
from gbfl_compile.checking.reading.nodes import PointDecision, Reading
from gbfl_compile.checking.witnesses import witnesses
from gbfl_compile.ir.batch import Matrix, evaluate_many
from gbfl_compile.ir.digest import digest
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.json import as_program
from gbfl_compile.ir.kinds import codebook, require_numbers
from gbfl_compile.ir.nodes import Clause, Leaf, Program, Scorecard, Tree
from gbfl_compile.ir.text import bands_text, label_text, printable
from gbfl_compile.tables.read import feature_rows

LIKE_ENOUGH = 0.5
"""What two clauses must have in common, of 1, to be called two versions of one."""


def program_changes(old: Program, new: Program) -> tuple[Change, ...]:
    """Every clause that is not the same in both versions, and what is decided with them. `old` has all features."""
    cells = cells_of((as_reading(old), align(as_reading(new), old.features, old.classes)))
    before, after = _pieces(cells, old, old), _pieces(cells, new, old)
    pairs = dict(_same(before, after))
    left, come = [p for p in before if p.number not in pairs], [p for p in after if p.number not in pairs.values()]
    likely = list(_likeliest(left, come))
    pairs |= {a.number: b.number for a, b in likely}
    changes = [*_features(old, new)]
    for a, b in likely:
        changes.extend(_clause_changes(cells, old, a, b))
    gone = {a.number for a, _ in likely}
    arrived = {b.number for _, b in likely}
    for piece in left:
        if piece.number not in gone:
            text = atoms_text(cells, piece.atoms, old.features) + _worth(piece, old)
            changes.append(Change(f"clause {piece.number}", text, "nothing", "removed"))
    for piece in come:
        if piece.number not in arrived:
            text = atoms_text(cells, piece.atoms, old.features) + _worth(piece, old)
            changes.append(Change(f"clause {piece.number} of the new version", "nothing", text, "added"))
    changes.extend(_points_changes(old, before, after, pairs))
    changes.extend(_decision_changes(old, new, pairs))
    return tuple(changes)


def _features(old: Program, new: Program) -> Iterator[Change]:
    if come := [name for name in old.features if name not in new.features and _is_asked(old, name)]:
        yield Change("features", f"{', '.join(come)} asked", "no longer there", "removed")


def _is_asked(program: Program, name: str) -> bool:
    place = program.features.index(name)
    return any(atom.feature == place for clause in program.clauses for atom in clause.atoms)


def _pieces(cells: Cells, program: Program, frame: Program) -> list[Piece]:
    """The clauses as masks, their features as `frame` has them; what never holds is a clause of no value at all."""
    decision = as_reading(program).decision
    worth = (
        [points for _, points in decision.terms] if isinstance(decision, PointDecision) else [()] * len(program.clauses)
    )
    place = [frame.features.index(name) for name in program.features]
    pieces = []
    for number, clause in enumerate(program.clauses):
        moved = Clause(tuple(replace(atom, feature=place[atom.feature]) for atom in clause.atoms))
        atoms = conjunction(cells, condition_of(program, moved, codebook(program)))
        if atoms is None:  # no value does it
            atoms = ((moved.atoms[0].feature, 0),)
        pieces.append(Piece(number, tuple(sorted(atoms)), tuple(worth[number])))
    return pieces


def _same(before: list[Piece], after: list[Piece]) -> Iterator[tuple[int, int]]:
    """Clauses that hold on the same rows, each of one version with one of the other, same points first."""
    free = list(after)
    for exactly in (True, False):
        taken = set()
        for piece in before:
            other = next(
                (b for b in free if b.atoms == piece.atoms and (b.points == piece.points or not exactly)), None
            )
            if other is not None:
                free.remove(other)
                taken.add(piece.number)
                yield piece.number, other.number
        before = [piece for piece in before if piece.number not in taken]


def _likeliest(left: list[Piece], come: list[Piece]) -> Iterator[tuple[Piece, Piece]]:
    """Pairs of what is left on both sides, the likest first, as long as they are alike at all."""
    pairs = sorted(
        ((_likeness(a, b), -abs(a.number - b.number), a, b) for a in left for b in come), key=lambda p: p[:2]
    )
    used: set[tuple[str, int]] = set()
    for likeness, _, a, b in reversed(pairs):
        if likeness < LIKE_ENOUGH:
            return
        if ("old", a.number) not in used and ("new", b.number) not in used:
            used |= {("old", a.number), ("new", b.number)}
            yield a, b


def _likeness(old: Piece, new: Piece) -> float:
    """1 where all conditions are the same; a condition of one feature with other bounds counts for half."""
    a, b = dict(old.atoms), dict(new.atoms)
    shared = a.keys() & b.keys()
    every = len(a.keys() | b.keys())
    return sum(1.0 if a[f] == b[f] else 0.6 for f in shared) / every if every else 0.0


def _clause_changes(cells: Cells, program: Program, old: Piece, new: Piece) -> Iterator[Change]:
    """One line a condition that differs; the clause is loosened or tightened as a whole, or neither."""
    a, b = dict(old.atoms), dict(new.atoms)
    every = [(f, a.get(f, cells.everything(f)), b.get(f, cells.everything(f))) for f in sorted(a.keys() | b.keys())]
    ways = {way(before, after) for _, before, after in every if before != after}
    kind = ways.pop() if len(ways) == 1 else "changed"
    for f, before, after in every:
        if before != after:
            name = program.features[f]
            before_text, after_text = (_condition_text(cells, f, mask, name) for mask in (before, after))
            yield Change(f"clause {old.number}", before_text, after_text, kind)


def _condition_text(cells: Cells, feature: int, mask: int, name: str) -> str:
    text = mask_text(cells, feature, mask, name)
    return "no condition" if text == "always" else text


def _worth(piece: Piece, program: Program) -> str:
    return f" ({points_text(piece.points, program)})" if piece.points else ""


def _points_changes(old: Program, before: list[Piece], after: list[Piece], pairs: dict[int, int]) -> Iterator[Change]:
    for a, b in sorted(pairs.items()):
        if before[a].points != after[b].points and before[a].points and after[b].points:
            before_text, after_text = (points_text(piece.points, old) for piece in (before[a], after[b]))
            yield Change(f"points of clause {a}", before_text, after_text, "changed")


def _decision_changes(old: Program, new: Program, pairs: dict[int, int]) -> Iterator[Change]:
    """What the classes start with, or leaves of a tree of the same shape; another shape is said to be one."""
    before, after = old.decision, new.decision
    if isinstance(before, Tree) and isinstance(after, Tree):
        if _shape(before, pairs) != _shape(after, None):
            before_text, after_text = (f"a tree of {len(tree.nodes) // 2} splits" for tree in (before, after))
            yield Change("the tree", before_text, after_text, "rebuilt")
            return
        yield from _leaf_changes(old, new, before, after)
    elif isinstance(before, Tree) or isinstance(after, Tree):
        before_text, after_text = ("a tree" if isinstance(each, Tree) else "a rule set" for each in (before, after))
        yield Change("the decision", before_text, after_text, "rebuilt")
    else:
        if before.bias != after.bias:
            yield Change("to start with", points_text(before.bias, old), points_text(after.bias, old), "changed")
        if before.scale != after.scale:
            before_text, after_text = (f"2**-{each.scale} logits a point" for each in (before, after))
            yield Change("the scale", before_text, after_text, "changed")
        if before.bands != after.bands:
            yield Change("the probabilities", _rates_text(before), _rates_text(after), "changed")


def _rates_text(card: Scorecard) -> str:
    """How a rule set gets its probabilities."""
    rates = (f"{c} wins {bands_text(own, c)}" for c, own in enumerate(card.bands))
    return "; ".join(rates) or "through exp, from the points"


def _shape(tree: Tree, pairs: dict[int, int] | None) -> list[int | None]:
    """What is asked node by node, clauses numbered as the new version has them."""
    return [
        None if isinstance(node, Leaf) else node.clause if pairs is None else pairs.get(node.clause, -1)
        for node in tree.nodes
    ]


def _leaf_changes(old: Program, new: Program, before: Tree, after: Tree) -> Iterator[Change]:
    pairs = zip(before.nodes, after.nodes, strict=True)
    leaves = ((a, b) for a, b in pairs if isinstance(a, Leaf) and isinstance(b, Leaf))
    for number, (a, b) in enumerate(leaves):
        labels = (old.classes[a.winner], new.classes[b.winner])
        if labels[0] != labels[1]:
            yield Change(f"leaf {number}", label_text(labels[0]), label_text(labels[1]), "changed")
        elif a.probabilities != b.probabilities:
            before_text, after_text = (", ".join(map(exact_text, leaf.probabilities)) for leaf in (a, b))
            yield Change(f"probabilities of leaf {number}", before_text, after_text, "changed")


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
    moves: RowMoves | None = None
    features: tuple[str, ...] = ()
    """Of both versions; the rows that show a difference have a value for each."""

    @property
    def verdict(self) -> str:
        """identical (the same digest), equal (proved, though written differently), different or undecided."""
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
                for change in self.changes
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
            case verdict:
                yield f"{verdict}: {self.old} to {self.new}"
        counts = Counter(change.kind for change in self.changes)
        if counts:
            yield f"  {', '.join(f'{count} {kind}' for kind, count in counts.most_common())}"
        for change in self.changes[:CHANGES_SHOWN]:
            yield f"  {_change_text(change)}"
        if len(self.changes) > CHANGES_SHOWN:
            yield f"  and {len(self.changes) - CHANGES_SHOWN} more: --json has them all"
        if self.moves is not None:
            yield from moves_lines(self.moves)
        for region in self.regions[:REGIONS_SHOWN]:
            yield from region_lines(region, "old", "new")
        if len(self.regions) > REGIONS_SHOWN:
            yield f"  other such regions that --json has: {len(self.regions) - REGIONS_SHOWN}"


def with_features_of(old: Program, new: Program) -> Program:
    """The old version with the features that only the new one has behind its own: it asks none of them."""
    return replace(old, features=(*old.features, *(name for name in new.features if name not in old.features)))


def difference(old: Program, new: Program, data: Matrix | None = None, budget: float = BUDGET_SECONDS) -> Difference:
    """The new version against the old one, features and classes matched by name.

    The columns of `data` are those of `with_features_of(old, new)`.
    """
    names = digest(old), digest(new)
    old = with_features_of(old, new)
    reading = align(replace(as_reading(new), place="the new version"), old.features, old.classes)
    proof = prove(old, reading, budget)
    shown = next((f for f in proof.findings.values() if isinstance(f, Counterexample)), None)
    if shown is None:
        changes = program_changes(old, new) if names[0] != names[1] else ()
        return Difference(*names, proof, changes, features=old.features)
    return Difference(
        *names,
        proof,
        program_changes(old, new),
        tuple(_regions(old, new, reading, shown, data)),
        None if data is None else row_moves(old, reading, data),
        old.features,
    )


def _regions(old: Program, new: Program, reading: Reading, shown: Counterexample, data: Matrix | None) -> list[Region]:
    """Regions around rows that get another class: the proof's row, rows of the data, and rows of every cell.

    Those that ask least come first: they are the widest, and the ones people can read.
    """
    rows = np.concatenate([_rows_about(old, new, reading), *([] if data is None else [data])])
    other = evaluate_many(old, rows).labels != reading_labels(reading, rows)
    candidates = [shown.row] if shown.source.label != shown.target.label else []
    candidates += [tuple(float(value) for value in row) for row in rows[other][::-1][:MOST_CANDIDATES]]
    regions: dict[tuple[Any, Any, str], Region] = {}
    clock = clock_of(REGION_SECONDS)
    try:
        for row in candidates:
            region = region_of(old, reading, Counterexample(row, evaluate(old, row), run_reading(reading, row)))
            regions.setdefault((region.approved, region.deployed, region.rule), region)
            clock.check()
    except OutOfTime:
        pass  # the regions regions so far are examples, as all of them are
    return list(_some_of_each(sorted(regions.values(), key=lambda region: region.rule.count(" AND "))))


def _some_of_each(regions: list[Region]) -> Iterator[Region]:
    """The first few of each move from class to class."""
    counts: Counter[tuple[Any, Any]] = Counter()
    ranked: list[tuple[int, int, Region]] = []
    for region in regions:
        counts[region.approved, region.deployed] += 1
        ranked.append((counts[region.approved, region.deployed], len(ranked), region))
    return (region for _, _, region in sorted(ranked, key=lambda each: each[:2])[:MOST_REGIONS])


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
        parts += [_witnesses_of(old, old), _witnesses_of(new, old)]
    return np.concatenate(parts)


def _witnesses_of(program: Program, old: Program) -> Matrix:
    """The witnesses of a version, in the columns of the old one."""
    rows = witnesses(program)
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
    for each in (before, after):
        require_numbers(each, "a comparison of two versions")
    rows = None if data is None else feature_rows(data, with_features_of(before, after).features)
    return difference(before, after, rows, budget_seconds)


CHANGES_SHOWN, REGIONS_SHOWN = 30, 4


def _change_text(change: Change) -> str:
    where = printable(change.where)
    if change.kind == "removed":
        return f"{where} removed: {printable(change.approved)}"
    if change.kind == "added":
        return f"{where} added: {printable(change.deployed)}"
    kind = "" if change.kind == "changed" else f" {change.kind}"
    return f"{where}{kind}: {printable(change.approved)} becomes {printable(change.deployed)}"
