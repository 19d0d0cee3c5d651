"""Twenty ways to tamper with a program that was approved, each with the place that an audit should name."""

import math
from dataclasses import replace

from gbfl_compile.ir.nodes import Clause, Interval, Leaf, Program, Scorecard, Tree, leaf, split
from gbfl_compile.ir.validate import validate

FEATURES = ("income", "age", "debt", "years")
CLAUSES = (
    Clause((Interval(0, 50000.0), Interval(1, 25.0, 65.5))),
    Clause((Interval(2, None, 0.35),)),
    Clause((Interval(3, 2.0, None), Interval(2, 0.1, 0.9, "both"))),
    Clause((Interval(1, None, 30.25, "right", if_missing=True), Interval(0, 20000.0, 90000.0))),
)
TREE = validate(
    Program(
        FEATURES,
        ("no", "maybe", "yes"),
        CLAUSES,
        split(
            0,
            split(1, leaf(0.0, 0.25, 0.75), leaf(0.5, 0.375, 0.125)),
            split(2, leaf(0.125, 0.625, 0.25), split(3, leaf(0.25, 0.5, 0.25), leaf(0.875, 0.125, 0.0))),
        ),
    )
)
CARD = validate(Program(FEATURES, ("no", "yes"), CLAUSES, Scorecard((0, -7), ((0, 9), (0, 5), (0, -4), (0, 3)), 2)))


def _atom(program, clause, place, **changed):
    atoms = list(program.clauses[clause].atoms)
    atoms[place] = replace(atoms[place], **changed)
    return _clause(program, clause, tuple(atoms))


def _clause(program, number, atoms):
    clauses = list(program.clauses)
    clauses[number] = Clause(tuple(sorted(atoms, key=lambda atom: atom.feature)))
    return replace(program, clauses=tuple(clauses))


def _swapped_columns(program, a, b):
    other = {a: b, b: a}
    clauses = tuple(
        Clause(tuple(replace(atom, feature=other.get(atom.feature, atom.feature)) for atom in clause.atoms))
        for clause in program.clauses
    )
    return replace(program, clauses=clauses)


def of_clauses(program):
    """(name, tampered program, the words an audit's changes should contain), by changes to clauses."""
    up, down = (lambda x: math.nextafter(x, math.inf)), (lambda x: math.nextafter(x, -math.inf))
    yield "one ulp up", _atom(program, 0, 0, lo=up(50000.0)), "clause 0"
    yield "one ulp down", _atom(program, 0, 1, hi=down(65.5)), "clause 0"
    yield "one ulp of another", _atom(program, 1, 0, hi=up(0.35)), "clause 1"
    yield "greater for at least", _atom(program, 0, 0, closed="neither"), "clause 0"
    yield "at most for less", _atom(program, 1, 0, closed="right"), "clause 1"
    yield "both ends open", _atom(program, 2, 0, closed="neither"), "clause 2"
    yield "less for at most", _atom(program, 3, 0, closed="left"), "clause 3"
    yield "another number", _atom(program, 0, 0, lo=60000.0), "clause 0"
    yield "a bound left out", _atom(program, 0, 1, hi=None), "clause 0"
    yield "a condition left out", _clause(program, 2, program.clauses[2].atoms[:1]), "clause 2"
    yield "another condition left out", _clause(program, 3, program.clauses[3].atoms[1:]), "clause 3"
    yield "a condition added", _clause(program, 1, (*program.clauses[1].atoms, Interval(3, 1.0))), "clause 1"
    yield "missing let through", _atom(program, 1, 0, if_missing=True), "clause 1"
    yield "missing kept out", _atom(program, 3, 0, if_missing=False), "clause 3"
    yield "two columns swapped", _swapped_columns(program, 0, 1), "clause"
    yield "another column", _clause(program, 1, (Interval(3, None, 0.35),)), "clause 1"


def of_trees():
    """Tamperings of the tree's answers and shape."""
    nodes = TREE.decision.nodes
    leaves = [i for i, node in enumerate(nodes) if isinstance(node, Leaf)]

    def with_nodes(changed):
        return replace(TREE, decision=Tree(tuple(changed.get(i, node) for i, node in enumerate(nodes))))

    a, b, c, d = (leaves[place] for place in (0, 1, 3, 4))
    yield "two leaves swapped", with_nodes({a: nodes[b], b: nodes[a]}), "leaf"
    yield "a class swapped", with_nodes({leaves[2]: Leaf((0.625, 0.125, 0.25))}), "leaf 2"
    yield "sides swapped", with_nodes({c: nodes[d], d: nodes[c]}), "leaf"
    yield "probabilities changed", with_nodes({leaves[4]: Leaf((0.75, 0.25, 0.0))}), "leaf 4"


def of_cards():
    """Tamperings of the points."""
    card = CARD.decision

    def with_card(**changed):
        return replace(CARD, decision=replace(card, **changed))

    yield "points off by one", with_card(points=((0, 9), (0, 6), (0, -4), (0, 3))), "clause 1"
    yield "the sign of points", with_card(points=((0, 9), (0, 5), (0, 4), (0, 3))), "clause 2"
    yield "another start", with_card(bias=(0, -6)), "to start with"
    yield "a clause that gives nothing", with_card(points=((0, 9), (0, 5), (0, -4), (0, 0))), "clause 3"


TAMPERED_TREES = [*of_clauses(TREE), *of_trees()]
TAMPERED_CARDS = [*of_clauses(CARD), *of_cards()]

BESIDE_THE_LABEL = ("probabilities changed", "points off by one", "another start")
"""They change no label on any input: what gives labels alone is not different."""


def _that_show(tampered, more):
    kept = [case for case in tampered if case[0] not in BESIDE_THE_LABEL]
    return [*kept, *more][:20]


def _points(program, clause, worth):
    points = list(program.decision.points)
    points[clause] = (0, worth)
    return replace(program, decision=replace(program.decision, points=tuple(points)))


OTHER_LABELS_OF_TREES = _that_show(
    TAMPERED_TREES,
    [("a clause that always holds", replace(TREE, clauses=(*CLAUSES[:2], Clause(()), CLAUSES[3])), "clause 2")],
)
OTHER_LABELS_OF_CARDS = _that_show(
    TAMPERED_CARDS,
    [
        ("a clause left out", _points(CARD, 1, 0), "clause 1"),
        ("points of another size", _points(CARD, 2, -40), "clause 2"),
    ],
)
"""Twenty each that change the label of some row: what must be found from labels alone."""
