"""Which clause and bound changed, and how: `clause 7: income >= 50000 is deployed as income > 50000`.

Clauses that are the same on both sides are set against each other first; of those left over, the likest pairs are what
changed. An artifact that does not keep clauses together (a graph of single comparisons) is compared cut by cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gbfl_compile.auditing.region import atoms_text, exact_text, lower_text, mask_text
from gbfl_compile.auditing.verdict import Change
from gbfl_compile.checking.prove import prove
from gbfl_compile.checking.prove.cells import Atoms, Cells, cells_of, join, mask_of
from gbfl_compile.checking.prove.findings import Counterexample
from gbfl_compile.checking.reading.from_program import as_reading, condition_of, test_of
from gbfl_compile.checking.reading.nodes import (
    And,
    Ask,
    Condition,
    Not,
    Or,
    Outcome,
    PointDecision,
    Reading,
    StepDecision,
    Test,
)
from gbfl_compile.ir.kinds import codebook
from gbfl_compile.ir.nodes import Clause, Program

NOTHING = "nothing"
MOST_TRIED, REPAIR_SECONDS = 100, 1.0
"""How many repairs are tried to explain a difference, and how long each may take to prove."""

MOST_CHANGES = 20
"""More than this is another program, and a list of it is no help."""

Points = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """A conjunction on one side: its number there, what it asks, and the points it gives (rule sets only)."""

    number: int
    atoms: Atoms
    points: Points = ()


def changes(program: Program, reading: Reading, shown: Counterexample) -> tuple[Change, ...]:
    """What of the program is deployed otherwise, as far as it can be told; the row `shown` tells the rest."""
    source = as_reading(program)
    cells = cells_of((source, reading), reading.dtype)
    approved = [Piece(i, atoms, points) for i, (atoms, points) in enumerate(_approved_pieces(cells, program, source))]
    listed = list(_by_clause(program, cells, approved, reading)) or list(_by_cut(program, cells, source, reading))
    listed = listed or list(_by_missing(program, cells, reading, shown))
    return tuple(listed[:MOST_CHANGES]) or tuple(_by_outcome(program, shown))


def _approved_pieces(cells: Cells, program: Program, source: Reading) -> Iterator[tuple[Atoms, Points]]:
    points: Sequence[Points] = [()] * len(program.clauses)
    if isinstance(source.decision, PointDecision):
        points = [worth for _, worth in source.decision.terms]
    book = codebook(program)
    for clause, worth in zip(program.clauses, points, strict=True):
        yield conjunction(cells, condition_of(program, clause, book)) or (), worth


def conjunction(cells: Cells, condition: Condition) -> Atoms | None:
    """A condition as one mask per feature, all of which hold; None where it is no conjunction, or can never hold."""
    match condition:
        case Test(feature, _):
            mask = mask_of(cells, condition)
            return ((feature, mask),) if mask else None
        case And(parts):
            atoms: Atoms | None = ()
            for part in parts:
                one = conjunction(cells, part)
                atoms = None if atoms is None or one is None else join(atoms, one)
            return atoms
        case Or(parts):
            return _one_feature(cells, [conjunction(cells, part) for part in parts], lambda a, b: a | b)
        case Not(part):
            inner = conjunction(cells, part)
            if inner is None or len(inner) != 1:
                return None
            feature, mask = inner[0]
            return ((feature, cells.everything(feature) & ~mask),)


def _one_feature(cells: Cells, parts: list[Atoms | None], join: Callable[[int, int], int]) -> Atoms | None:
    features = {feature for part in parts if part is not None for feature, _ in part}
    if len(features) != 1 or any(part is None or len(part) != 1 for part in parts):
        return None
    mask = 0
    for part in parts:
        mask = join(mask, part[0][1]) if part else mask
    return ((features.pop(), mask),)


def _deployed_pieces(cells: Cells, reading: Reading) -> list[Piece] | None:
    """The conjunctions of the artifact, None where it does not keep them together."""
    listed: list[tuple[Condition, Points]]
    match reading.decision:
        case StepDecision(steps):
            questions = [step.condition for step in steps if isinstance(step, Ask)]
            listed = [(condition.part if isinstance(condition, Not) else condition, ()) for condition in questions]
        case PointDecision(_, terms):
            listed = list(terms)
    pieces = []
    for number, (condition, points) in enumerate(listed):
        atoms = conjunction(cells, condition)
        if atoms is None:
            return None
        pieces.append(Piece(number, atoms, points))
    return pieces


def _by_clause(program: Program, cells: Cells, approved: list[Piece], reading: Reading) -> Iterator[Change]:
    deployed = _deployed_pieces(cells, reading)
    if deployed is None:
        return
    missing, extra = _left_over(approved, deployed)
    shapes = [sorted(len(piece.atoms) for piece in side) for side in (approved, deployed)]
    if len(missing) > len(approved) // 2 and shapes[0] != shapes[1]:  # it asks in pieces of its own
        return
    if isinstance(reading.decision, PointDecision):
        yield from _points_changes(program, reading.decision, missing, extra)
    for old in list(missing):
        new = max(extra, key=lambda piece: _likeness(old, piece), default=None)
        if new is None or _likeness(old, new) < 0:
            text = atoms_text(cells, old.atoms, program.features)
            yield Change(f"clause {old.number}", text, f"{NOTHING}: the clause is not there", "removed")
            continue
        extra.remove(new)
        yield from _atom_changes(cells, program.features, old, new)
    for new in extra:
        yield Change("no clause", NOTHING, atoms_text(cells, new.atoms, program.features), "added")


def _left_over(approved: list[Piece], deployed: list[Piece]) -> tuple[list[Piece], list[Piece]]:
    """The pieces of each side that the other does not have. A clause may be asked in several places of a tree."""
    have = {(piece.atoms, piece.points) for piece in deployed}
    want = {(piece.atoms, piece.points) for piece in approved}
    missing = [piece for piece in approved if (piece.atoms, piece.points) not in have]
    extra = [piece for piece in deployed if (piece.atoms, piece.points) not in want]
    return missing, list({(piece.atoms, piece.points): piece for piece in reversed(extra)}.values())[::-1]


def _likeness(old: Piece, new: Piece) -> float:
    """How much two pieces have in common; below 0 where nothing speaks for their being the same clause."""
    a, b = dict(old.atoms), dict(new.atoms)
    same = sum(a[f] == b[f] for f in a.keys() & b.keys())
    features = len(a.keys() & b.keys())
    other = len(a.keys() ^ b.keys())
    masks = len(set(a.values()) & set(b.values()))
    near = 1.0 / (1 + abs(old.number - new.number))
    if same + features + masks == 0 and old.points != new.points:
        return -1.0
    return 3.0 * same + 2.0 * features + masks - other + near + (2.0 if old.points == new.points else 0.0)


def _points_changes(
    program: Program, card: PointDecision, missing: list[Piece], extra: list[Piece]
) -> Iterator[Change]:
    """What the classes start with, ties, and clauses that give other points; those are taken off both lists."""
    source = as_reading(program).decision
    assert isinstance(source, PointDecision)  # noqa: S101 - both are rule sets
    if source.bias != card.bias:
        yield Change("to start with", points_text(source.bias, program), points_text(card.bias, program))
    if card.tie_to != "lower":
        yield Change("a tie", "goes to the earlier class", "one that goes to the later class")
    for old in list(missing):
        new = next((piece for piece in extra if piece.atoms == old.atoms), None)
        if new is not None:
            missing.remove(old)
            extra.remove(new)
            old_text, new_text = points_text(old.points, program), points_text(new.points, program)
            yield Change(f"points of clause {old.number}", old_text, new_text)


def points_text(points: Points, program: Program) -> str:
    """Points class by class: `+3 yes, -1 no`."""
    return ", ".join(f"{worth:+d} for {label}" for worth, label in zip(points, program.classes, strict=True))


def _atom_changes(cells: Cells, features: tuple[str, ...], old: Piece, new: Piece) -> Iterator[Change]:
    """What differs between two forms of a clause: bounds, atoms left out or added, and other columns."""
    where = f"clause {old.number}"
    a, b = dict(old.atoms), dict(new.atoms)
    gone = {f: mask for f, mask in a.items() if f not in b}
    come = {f: mask for f, mask in b.items() if f not in a}
    for f in sorted(a.keys() & b.keys()):
        if a[f] != b[f]:
            texts = [mask_text(cells, f, mask, features[f]) for mask in (a[f], b[f])]
            yield Change(where, texts[0], texts[1], way(a[f], b[f]))
    while gone and come:
        (f, mask), (g, other) = next(iter(gone.items())), next(iter(come.items()))
        yield Change(where, mask_text(cells, f, mask, features[f]), mask_text(cells, g, other, features[g]))
        del gone[f], come[g]
    for f, mask in gone.items():
        yield Change(where, mask_text(cells, f, mask, features[f]), f"{NOTHING}: the condition is left out", "loosened")
    for g, mask in come.items():
        yield Change(where, NOTHING, mask_text(cells, g, mask, features[g]), "tightened")
    if old.points != new.points:
        yield Change(f"points of {where}", str(old.points), str(new.points))


def way(before: int, after: int) -> str:
    """Which way a condition went, by the values it lets through."""
    if before & ~after == 0:
        return "loosened"
    return "tightened" if after & ~before == 0 else "changed"


def _by_cut(program: Program, cells: Cells, source: Reading, reading: Reading) -> Iterator[Change]:
    """Cuts of one side that the other does not have, the nearest set against each other."""
    ours, theirs = cells_of((source,), reading.dtype), cells_of((reading,), reading.dtype)
    clauses = _clauses_at(program, cells)
    for feature, name in enumerate(program.features):
        gone = sorted(set(ours.starts[feature]) - set(theirs.starts[feature]))
        come = sorted(set(theirs.starts[feature]) - set(ours.starts[feature]))
        for cut in gone:
            where = clauses.get((feature, cut), "a clause")
            near = min(come, key=lambda other: abs(other - cut), default=None)
            if near is None:
                yield Change(where, _cut_text(name, cut), f"{NOTHING}: the cut is not there")
            else:
                come.remove(near)
                yield Change(where, _cut_text(name, cut), _cut_text(name, near))
        for cut in come:
            yield Change("no clause", NOTHING, _cut_text(name, cut))


def _cut_text(name: str, cut: float) -> str:
    sign, number = lower_text(cut)
    return f"a cut at {name} {sign} {number}"


def _clauses_at(program: Program, cells: Cells) -> Mapping[tuple[int, float], str]:
    places: dict[tuple[int, float], str] = {}
    book = codebook(program)
    for number, clause in enumerate(program.clauses):
        alone = cells_of((_only(program, condition_of(program, clause, book)),), cells.dtype)
        for feature, starts in enumerate(alone.starts):
            for cut in starts:
                places.setdefault((feature, cut), f"clause {number}")
    return places


def _only(program: Program, condition: Condition) -> Reading:
    steps = (Ask(condition, 1, 2), Outcome(0), Outcome(0))
    return Reading(program.features, program.classes, StepDecision(steps))


def _by_missing(program: Program, cells: Cells, reading: Reading, shown: Counterexample) -> Iterator[Change]:
    """Where a missing value shows it: the one interval whose answer to it, turned round, makes the two equal."""
    absent = {feature for feature, value in enumerate(shown.row) if math.isnan(value)}
    places = [
        (n, k)
        for n, clause in enumerate(program.clauses)
        for k, atom in enumerate(clause.atoms)
        if atom.feature in absent
    ]
    for number, place in places[:MOST_TRIED]:
        atoms = program.clauses[number].atoms
        turned = replace(atoms[place], if_missing=not atoms[place].if_missing)
        other = Clause((*atoms[:place], turned, *atoms[place + 1 :]))
        clauses = (*program.clauses[:number], other, *program.clauses[number + 1 :])
        if prove(replace(program, clauses=clauses), reading, REPAIR_SECONDS).answer == "proved":
            texts = [
                mask_text(
                    cells,
                    atom.feature,
                    mask_of(cells, test_of(program, atom, codebook(program))),
                    program.features[atom.feature],
                )
                for atom in (atoms[place], turned)
            ]
            yield Change(f"clause {number}", *texts)
            return


def _by_outcome(program: Program, shown: Counterexample) -> Iterator[Change]:
    """Every question is the same: what differs is an answer."""
    source, target = shown.source, shown.target
    where = "the answer" if source.leaf is None else f"leaf {source.leaf}"
    if source.label != target.label:
        yield Change(where, f"{source.label}", f"{target.label}")
    elif target.probabilities is not None and source.probabilities != target.probabilities:
        before, after = (", ".join(map(exact_text, side)) for side in (source.probabilities, target.probabilities))
        yield Change(f"probabilities of {where}", before, after)
    elif source.leaf != target.leaf:
        yield Change("the number of a leaf", str(source.leaf), str(target.leaf))
    elif target.scores is not None:
        yield Change("the points", str(source.scores), str(target.scores))
