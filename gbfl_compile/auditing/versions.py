"""Every clause, point and leaf that is not the same in two versions of a program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gbfl_compile.auditing.changes import Piece, conjunction, points_text, way
from gbfl_compile.auditing.region import Frame, atoms_text, exact_text, frame_of, mask_text, slip_text, with_swaps
from gbfl_compile.auditing.verdict import (
    Change,
)
from gbfl_compile.checking.reading.from_program import align, as_reading, condition_of
from gbfl_compile.checking.reading.nodes import PointDecision
from gbfl_compile.ir.kinds import Codebook
from gbfl_compile.ir.nodes import Clause, Leaf, Program, Scorecard, Tree
from gbfl_compile.ir.text import bands_text, label_text, reasons_of

LIKE_ENOUGH = 0.5
"""What two clauses must have in common, of 1, to be called two versions of one."""


def program_changes(old: Program, new: Program, book: Codebook | None = None) -> tuple[Change, ...]:
    """Every clause that is not the same in both versions, and what is decided with them. `old` has all features."""
    frame = frame_of(old, align(as_reading(new), old.features, old.classes, old.kinds), book)
    before, after = _pieces(frame, old), _pieces(frame, new)
    pairs = dict(_same(before, after))
    left, come = [p for p in before if p.number not in pairs], [p for p in after if p.number not in pairs.values()]
    likely = list(_likeliest(left, come))
    pairs |= {a.number: b.number for a, b in likely}
    changes = [*_features(old, new)]
    for a, b in likely:
        changes.extend(_clause_changes(frame, a, b))
    gone = {a.number for a, _ in likely}
    arrived = {b.number for _, b in likely}
    for piece in left:
        if piece.number not in gone:
            text = atoms_text(frame, piece.atoms) + _worth(piece, old)
            changes.append(Change(f"clause {piece.number}", text, "nothing", "removed"))
    for piece in come:
        if piece.number not in arrived:
            text = atoms_text(frame, piece.atoms) + _worth(piece, old)
            changes.append(Change(f"clause {piece.number} of the new version", "nothing", text, "added"))
    changes.extend(_points_changes(old, before, after, pairs))
    changes.extend(_decision_changes(old, new, pairs))
    return tuple(with_swaps(changes))


def reason_changes(old: Program, new: Program, book: Codebook | None = None) -> tuple[Change, ...]:
    """The user's reasons that have other words in the new version, by the clauses that are in both."""
    before, after = reasons_of(old), reasons_of(new)
    if not before and not after:
        return ()
    frame = frame_of(old, align(as_reading(new), old.features, old.classes, old.kinds), book)
    pairs = _same(_pieces(frame, old), _pieces(frame, new))
    return tuple(
        Change(f"reason of clause {a}", before.get(a, "none"), after.get(b, "none"))
        for a, b in sorted(pairs)
        if before.get(a) != after.get(b)
    )


def _features(old: Program, new: Program) -> Iterator[Change]:
    if come := [name for name in old.features if name not in new.features and asks(old, name)]:
        yield Change("features", f"{', '.join(come)} asked", "no longer there", "removed")


def asks(program: Program, name: str) -> bool:
    """Whether some clause tests a feature."""
    place = program.features.index(name)
    return any(atom.feature == place for clause in program.clauses for atom in clause.atoms)


def _pieces(frame: Frame, program: Program) -> list[Piece]:
    """The clauses as masks, their features as the frame has them; a clause that never holds has no value at all."""
    decision = as_reading(program).decision
    worth = (
        [points for _, points in decision.terms] if isinstance(decision, PointDecision) else [()] * len(program.clauses)
    )
    place = [frame.program.features.index(name) for name in program.features]
    pieces = []
    for number, clause in enumerate(program.clauses):
        moved = Clause(tuple(replace(atom, feature=place[atom.feature]) for atom in clause.atoms))
        atoms = conjunction(frame.cells, condition_of(frame.program, moved, frame.book))
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


def _clause_changes(frame: Frame, old: Piece, new: Piece) -> Iterator[Change]:
    """One line per condition that differs; the clause is loosened or tightened as a whole, or neither."""
    a, b, cells = dict(old.atoms), dict(new.atoms), frame.cells
    every = [(f, a.get(f, cells.everything(f)), b.get(f, cells.everything(f))) for f in sorted(a.keys() | b.keys())]
    ways = {way(before, after) for _, before, after in every if before != after}
    kind = ways.pop() if len(ways) == 1 else "changed"
    for f, before, after in every:
        if before != after:
            before_text, after_text = (_condition_text(frame, f, mask) for mask in (before, after))
            slip = slip_text(frame, f, before, after) if f in a and f in b else None
            yield Change(f"clause {old.number}", before_text, after_text, kind, slip)


def _condition_text(frame: Frame, feature: int, mask: int) -> str:
    text = mask_text(frame, feature, mask)
    return "no condition" if text == "always" else text


def _worth(piece: Piece, program: Program) -> str:
    return f" ({points_text(piece.points, program)})" if piece.points else ""


def _points_changes(old: Program, before: list[Piece], after: list[Piece], pairs: dict[int, int]) -> Iterator[Change]:
    for a, b in sorted(pairs.items()):
        if before[a].points != after[b].points and before[a].points and after[b].points:
            before_text, after_text = (points_text(piece.points, old) for piece in (before[a], after[b]))
            yield Change(f"points of clause {a}", before_text, after_text, "changed")


def _decision_changes(old: Program, new: Program, pairs: dict[int, int]) -> Iterator[Change]:
    """Changes of the starting points, or of leaves in a tree of the same shape; another shape is one change."""
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
    """The test at each node, with the clause numbers of the new version."""
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
