"""Which clause and bound changed, and how: `clause 7: income >= 50000 is deployed as income > 50000`.

Clauses that are the same on both sides are paired first; of those left over, the most similar pairs are what
changed. An artifact that does not keep clauses together (a graph of single comparisons) is compared cut by cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gbfl_compile.auditing.region import (
    Frame,
    atom_change,
    atoms_text,
    exact_text,
    lower_text,
    mask_text,
    moment_slips,
    with_swaps,
)
from gbfl_compile.auditing.verdict import Change
from gbfl_compile.checking.prove import prove
from gbfl_compile.checking.prove.cells import Atoms, Cells, cells_of, join, mask_of
from gbfl_compile.checking.prove.findings import Counterexample
from gbfl_compile.checking.reading.from_program import condition_of, test_of
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
from gbfl_compile.ir.nodes import Clause, Kind, Program
from gbfl_compile.ir.text import clause_text, leaf_rule

NOTHING, NO_CLAUSE = "nothing", "no clause"
MOST_TRIED, REPAIR_SECONDS = 100, 1.0
"""How many repairs are tried to explain a difference, and how long each may take to prove."""

MOST_CHANGES = 20
"""With more changes than this it is another program, and listing them is no help."""

Points = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """A conjunction on one side: its number there, what it tests, and its points (rule sets only)."""

    number: int
    atoms: Atoms
    points: Points = ()


def changes(frame: Frame, shown: Counterexample) -> tuple[Change, ...]:
    """What is deployed differently from the program, as far as it can be named; the row `shown` shows the rest."""
    if shown.source.label != shown.target.label:
        frame = by_leads(frame)
    approved = [Piece(i, atoms, points) for i, (atoms, points) in enumerate(_approved_pieces(frame))]
    listed = list(_by_clause(frame, approved)) or list(_by_cut(frame))
    listed = listed or list(_by_missing(frame, shown))
    return tuple(with_swaps(listed[:MOST_CHANGES])) or tuple(by_outcome(frame.program, shown))


def by_leads(frame: Frame) -> Frame:
    """The frame with the deployed points of two classes as the program has them: -3 for yes is +3 for no.

    Which of two classes wins depends on the one's lead alone, and people write it as one number.
    """
    source, card = frame.source.decision, frame.reading.decision
    if not isinstance(source, PointDecision) or not isinstance(card, PointDecision) or len(source.bias) != 2:
        return frame

    own = {conjunction(frame.cells, condition): points for condition, points in source.terms}
    alike = {_lead(points): points for _, points in source.terms}

    def in_form(condition: Condition, points: Points) -> Points:
        approved = own.get(conjunction(frame.cells, condition), alike.get(_lead(points), points))
        return _like(approved, _lead(points))

    terms = tuple((condition, in_form(condition, points)) for condition, points in card.terms)
    bias = _like(source.bias, _lead(card.bias))
    return replace(frame, reading=replace(frame.reading, decision=replace(card, bias=bias, terms=terms)))


def _lead(points: Points) -> int:
    return points[1] - points[0]


def _like(approved: Points, lead: int) -> Points:
    """The points of two classes with a lead, for the class that has points in the approved ones."""
    return (-lead, 0) if approved[0] and not approved[1] else (approved[0], approved[0] + lead)


def _approved_pieces(frame: Frame) -> Iterator[tuple[Atoms, Points]]:
    program, decision = frame.program, frame.source.decision
    points: Sequence[Points] = [()] * len(program.clauses)
    if isinstance(decision, PointDecision):
        points = [worth for _, worth in decision.terms]
    for clause, worth in zip(program.clauses, points, strict=True):
        yield conjunction(frame.cells, condition_of(program, clause, frame.book)) or (), worth


def conjunction(cells: Cells, condition: Condition) -> Atoms | None:
    """A condition as one mask per feature, all of which hold; None where it is not a conjunction, or can never hold."""
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
            return _one_feature([conjunction(cells, part) for part in parts], lambda a, b: a | b)
        case Not(part):
            inner = conjunction(cells, part)
            if inner is None or len(inner) != 1:
                return None
            feature, mask = inner[0]
            return ((feature, cells.everything(feature) & ~mask),)


def _one_feature(parts: list[Atoms | None], join: Callable[[int, int], int]) -> Atoms | None:
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


def _by_clause(frame: Frame, approved: list[Piece]) -> Iterator[Change]:
    program, source, decision = frame.program, frame.source.decision, frame.reading.decision
    deployed = _deployed_pieces(frame.cells, frame.reading)
    if deployed is None:
        return
    if not isinstance(source, PointDecision) or not isinstance(decision, PointDecision):  # one side has no points
        approved, deployed = ([replace(piece, points=()) for piece in side] for side in (approved, deployed))
    missing, extra = _left_over(approved, deployed)
    shapes = [sorted(len(piece.atoms) for piece in side) for side in (approved, deployed)]
    if len(missing) > len(approved) // 2 and shapes[0] != shapes[1]:  # it tests in pieces of its own
        return
    if isinstance(source, PointDecision) and isinstance(decision, PointDecision):
        yield from _points_changes(program, source, decision, missing, extra)
    for old in list(missing):
        new = max(extra, key=lambda piece: _likeness(old, piece), default=None)
        if new is None or _likeness(old, new) < 0:
            text = atoms_text(frame, old.atoms)
            yield Change(f"clause {old.number}", text, f"{NOTHING}: the clause is not there", "removed")
            continue
        extra.remove(new)
        yield from _atom_changes(frame, old, new)
    for new in extra:
        yield Change(NO_CLAUSE, NOTHING, atoms_text(frame, new.atoms), "added")


def _left_over(approved: list[Piece], deployed: list[Piece]) -> tuple[list[Piece], list[Piece]]:
    """The pieces of each side that the other does not have. A tree may test a clause in several places."""
    have = {(piece.atoms, piece.points) for piece in deployed}
    want = {(piece.atoms, piece.points) for piece in approved}
    missing = [piece for piece in approved if (piece.atoms, piece.points) not in have]
    extra = [piece for piece in deployed if (piece.atoms, piece.points) not in want]
    return missing, list({(piece.atoms, piece.points): piece for piece in reversed(extra)}.values())[::-1]


def _likeness(old: Piece, new: Piece) -> float:
    """How much two pieces have in common; below 0 if nothing suggests that they are the same clause."""
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
    program: Program, source: PointDecision, card: PointDecision, missing: list[Piece], extra: list[Piece]
) -> Iterator[Change]:
    """What the classes start with, ties, and clauses that give other points; those are taken off both lists."""
    if source.bias != card.bias:
        yield Change("to start with", *differing_points(source.bias, card.bias, program))
    if card.tie_to != "lower":
        yield Change("a tie", "goes to the earlier class", "one that goes to the later class")
    for old in list(missing):
        new = next((piece for piece in extra if piece.atoms == old.atoms), None)
        if new is not None:
            missing.remove(old)
            extra.remove(new)
            old_text, new_text = differing_points(old.points, new.points, program)
            rule = clause_text(program.clauses[old.number], program.features, program.kinds)
            yield Change(f"points of clause {old.number}", old_text, new_text, rule=rule)


def points_text(points: Points, program: Program) -> str:
    """Points class by class: `+3 for yes, -1 for no`."""
    return ", ".join(f"{worth:+d} for {label}" for worth, label in zip(points, program.classes, strict=True))


def differing_points(before: Points, after: Points, program: Program) -> tuple[str, str]:
    """Points of the classes for which they differ: `+3 for yes` and `+4 for yes`."""
    rows = [row for row in zip(before, after, program.classes, strict=True) if row[0] != row[1]]
    texts = [[f"{worth:+d} for {label}" for worth, label in ((row[side], row[2]) for row in rows)] for side in (0, 1)]
    return ", ".join(texts[0]), ", ".join(texts[1])


def _atom_changes(frame: Frame, old: Piece, new: Piece) -> Iterator[Change]:
    """What differs between two forms of a clause: bounds, atoms left out or added, and other columns."""
    where = f"clause {old.number}"
    a, b = dict(old.atoms), dict(new.atoms)
    gone = {f: mask for f, mask in a.items() if f not in b}
    come = {f: mask for f, mask in b.items() if f not in a}
    for f in sorted(a.keys() & b.keys()):
        if a[f] != b[f]:
            yield atom_change(frame, where, f, (a[f], b[f]), way(a[f], b[f]))
    while gone and come:
        (f, mask), (g, other) = next(iter(gone.items())), next(iter(come.items()))
        yield Change(where, mask_text(frame, f, mask), mask_text(frame, g, other))
        del gone[f], come[g]
    for f, mask in gone.items():
        yield Change(where, mask_text(frame, f, mask), f"{NOTHING}: the condition is left out", "loosened")
    for g, mask in come.items():
        yield Change(where, NOTHING, mask_text(frame, g, mask), "tightened")
    if old.points != new.points:
        yield Change(f"points of {where}", str(old.points), str(new.points))


def way(before: int, after: int) -> str:
    """Which way a condition went, by the values it lets through."""
    if before & ~after == 0:
        return "loosened"
    return "tightened" if after & ~before == 0 else "changed"


def _by_cut(frame: Frame) -> Iterator[Change]:
    """Cuts of one side that the other does not have, the nearest set against each other; of words, whole sets."""
    dtype = frame.reading.dtype
    ours, theirs = cells_of((frame.source,), dtype), cells_of((frame.reading,), dtype)
    clauses = _clauses_at(frame)
    for feature, name in enumerate(frame.program.features):
        kind = frame.program.kind(feature)
        if kind in ("category", "boolean"):
            yield from _by_set(frame, feature)
            continue
        gone = sorted(set(ours.starts[feature]) - set(theirs.starts[feature]))
        come = sorted(set(theirs.starts[feature]) - set(ours.starts[feature]))
        for cut in gone:
            where = clauses.get((feature, cut), "a clause")
            near = min(come, key=lambda other: abs(other - cut), default=None)
            if near is None:
                yield Change(where, _cut_text(name, cut, kind), f"{NOTHING}: the cut is not there")
            else:
                come.remove(near)
                slip = None if kind == "number" else ", ".join(moment_slips([cut], [near], kind))
                yield Change(where, _cut_text(name, cut, kind), _cut_text(name, near, kind), slip=slip)
        for cut in come:
            yield Change(NO_CLAUSE, NOTHING, _cut_text(name, cut, kind))


def _cut_text(name: str, cut: float, kind: Kind) -> str:
    sign, number = lower_text(cut, kind)
    return f"a cut at {name} {sign} {number}"


def _by_set(frame: Frame, feature: int) -> Iterator[Change]:
    """Sets of texts that one side tests and the other does not, neither as they are nor negated."""
    every, book = frame.cells.everything(feature), frame.book
    places = {
        mask_of(frame.cells, test_of(frame.program, atom, book)): f"clause {number}"
        for number, clause in reversed(list(enumerate(frame.program.clauses)))
        for atom in clause.atoms
        if atom.feature == feature
    }
    sets = [_sets(frame.cells, side, feature) for side in (frame.source, frame.reading)]
    gone, come = (
        [mask for mask in one if mask not in other and every & ~mask not in other] for one, other in (sets, sets[::-1])
    )
    for mask in gone:
        sides = [(other, turned) for other in come for turned in (other, every & ~other)]
        near = min(sides, key=lambda side: (side[1] ^ mask).bit_count(), default=None)
        where = places.get(mask, "a clause")
        if near is None:
            yield Change(where, mask_text(frame, feature, mask), f"{NOTHING}: the condition is not there")
        else:
            come.remove(near[0])
            yield atom_change(frame, where, feature, (mask, near[1]), way(mask, near[1]))
    for mask in come:
        yield Change(NO_CLAUSE, NOTHING, mask_text(frame, feature, mask))


def _sets(cells: Cells, reading: Reading, feature: int) -> list[int]:
    """The masks by which a side tests a feature, each once."""
    masks: dict[int, None] = {}

    def look(condition: Condition) -> None:
        match condition:
            case Test() as test:
                if test.feature == feature:
                    masks[mask_of(cells, test)] = None
            case And(parts) | Or(parts):
                for part in parts:
                    look(part)
            case Not(part):
                look(part)

    match reading.decision:
        case StepDecision(steps):
            for step in steps:
                if isinstance(step, Ask):
                    look(step.condition)
        case PointDecision(_, terms):
            for condition, _ in terms:
                look(condition)
    return list(masks)


def _clauses_at(frame: Frame) -> Mapping[tuple[int, float], str]:
    places: dict[tuple[int, float], str] = {}
    for number, clause in enumerate(frame.program.clauses):
        condition = condition_of(frame.program, clause, frame.book)
        alone = cells_of((_only(frame.program, condition),), frame.cells.dtype)
        for feature, starts in enumerate(alone.starts):
            for cut in starts:
                places.setdefault((feature, cut), f"clause {number}")
    return places


def _only(program: Program, condition: Condition) -> Reading:
    steps = (Ask(condition, 1, 2), Outcome(0), Outcome(0))
    return Reading(program.features, program.classes, StepDecision(steps))


def _by_missing(frame: Frame, shown: Counterexample) -> Iterator[Change]:
    """If a missing value shows the difference: the one interval whose answer to it, inverted, makes the two equal."""
    program = frame.program
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
        if prove(replace(program, clauses=clauses), frame.reading, REPAIR_SECONDS).answer == "proved":
            masks = [mask_of(frame.cells, test_of(program, atom, frame.book)) for atom in (atoms[place], turned)]
            yield atom_change(frame, f"clause {number}", turned.feature, (masks[0], masks[1]), "changed")
            return


def by_outcome(program: Program, shown: Counterexample) -> Iterator[Change]:
    """Every question is the same: what differs is an answer."""
    source, target = shown.source, shown.target
    where = "the answer" if source.leaf is None else f"leaf {source.leaf}"
    if source.label != target.label:
        rule = None if source.leaf is None else leaf_rule(program, source.leaf)
        yield Change(where, f"{source.label}", f"{target.label}", rule=rule)
    elif target.probabilities is not None and source.probabilities != target.probabilities:
        before, after = (", ".join(map(exact_text, side)) for side in (source.probabilities, target.probabilities))
        yield Change(f"probabilities of {where}", before, after)
    elif source.leaf != target.leaf:
        yield Change("the number of a leaf", str(source.leaf), str(target.leaf))
    elif target.scores is not None:
        yield Change("the points", str(source.scores), str(target.scores))
