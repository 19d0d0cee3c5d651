"""A program that is wrong anywhere is wrong on a witness. Judged by brute force over every combination of values."""

import itertools
import math
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings

from gbfl_compile.checking.prove import prove
from gbfl_compile.checking.prove.findings import Counterexample
from gbfl_compile.checking.prove.solve import atoms_of
from gbfl_compile.checking.reading.from_program import as_reading
from gbfl_compile.checking.witnesses import find_witnesses, witnesses
from gbfl_compile.checking.witnesses.rule_set import move_to_ties
from gbfl_compile.checking.witnesses.search import any_row, cells_around, values_of_rows
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.intervals import above, below
from gbfl_compile.ir.kinds import codebook
from gbfl_compile.ir.nodes import Clause, Interval, Leaf, Program, Split, Tree, leaf_numbers
from gbfl_compile.ir.validate import validate
from gbfl_compile.passes import optimise
from tests.checking.prove.test_labels import rule_set
from tests.checking.respelling import random_program
from tests.programs import interesting_values, programs

FLIPPED = {
    "left": ("both", "neither"),
    "right": ("neither", "both"),
    "both": ("right", "left"),
    "neither": ("left", "right"),
}


def atom_mutants(atom):
    """One slip each: a bound one ulp off, an end open instead of closed, a bound lost, a missing value treated otherwise."""
    for side in ("lo", "hi"):
        bound = getattr(atom, side)
        if bound is not None:
            yield replace(atom, **{side: above(bound)})
            yield replace(atom, **{side: below(bound)})
            yield replace(atom, **{side: None})
    for closed in FLIPPED[atom.closed]:
        yield replace(atom, closed=closed)
    yield replace(atom, if_missing=not atom.if_missing)


def mutants(program):
    """Every program one slip away, as far as it is legal."""
    for c, clause in enumerate(program.clauses):
        for a, atom in enumerate(clause.atoms):
            for wrong in atom_mutants(atom):
                changed = Clause((*clause.atoms[:a], wrong, *clause.atoms[a + 1 :]))
                yield replace(program, clauses=(*program.clauses[:c], changed, *program.clauses[c + 1 :]))
    if isinstance(program.decision, Tree):
        nodes = program.decision.nodes
        for n, node in enumerate(nodes):
            if (
                isinstance(node, Split)
                and isinstance(nodes[node.then], Leaf)
                and isinstance(nodes[node.otherwise], Leaf)
            ):
                swapped = list(nodes)
                swapped[node.then], swapped[node.otherwise] = nodes[node.otherwise], nodes[node.then]
                yield replace(program, decision=Tree(tuple(swapped)))
            if isinstance(node, Leaf):
                moved = Leaf((*node.probabilities[1:], node.probabilities[0]))
                yield replace(program, decision=Tree((*nodes[:n], moved, *nodes[n + 1 :])))
    else:
        card = program.decision
        for i, row in enumerate(card.points):
            for c, points in enumerate(row):
                changed = (*row[:c], points + 1, *row[c + 1 :])
                yield replace(
                    program, decision=replace(card, points=(*card.points[:i], changed, *card.points[i + 1 :]))
                )
        yield replace(program, decision=replace(card, bias=(card.bias[0] + 1, *card.bias[1:])))


def observed(program, rows):
    answers = evaluate_many(program, rows)
    reason = answers.leaves[:, None] if answers.leaves is not None else answers.scores
    return np.concatenate([answers.probabilities, reason], axis=1)


@settings(max_examples=150, deadline=None)
@given(programs())
def test_every_slip_that_brute_force_sees_a_witness_sees(program):
    program = optimise(program)
    pools = [sorted(set(pool), key=str) for pool in interesting_values(program)]
    assume(math.prod(len(pool) for pool in pools) <= 60_000)
    everything = np.array(list(itertools.product(*pools)))
    rows = witnesses(program)
    right_everywhere, right_here = observed(program, everything), observed(program, rows)
    for wrong in mutants(program):
        try:
            validate(wrong)
        except BadInput:
            continue
        if (observed(wrong, everything) != right_everywhere).any():
            assert (observed(wrong, rows) != right_here).any(), wrong


@settings(max_examples=100, deadline=None)
@given(programs(kinds=("tree",)))
def test_every_leaf_that_can_be_reached_is_reached(program):
    pools = interesting_values(program)
    assume(math.prod(len(pool) for pool in pools) <= 60_000)
    reachable = set(evaluate_many(program, np.array(list(itertools.product(*pools)))).leaves.tolist())
    assert set(evaluate_many(program, witnesses(program)).leaves.tolist()) == reachable
    assert reachable <= set(leaf_numbers(program.decision).values())


def test_witnesses_are_the_same_every_time_and_never_twice():
    program = Program(
        ("a", "b"), (0, 1), (Clause((Interval(0, 1.0), Interval(1, None, 2.0))),), Tree((Split(0, 1, 2), Leaf((1.0, 0.0)), Leaf((0.0, 1.0))))
    )  # fmt: skip
    rows = witnesses(program)
    assert rows.tobytes() == witnesses(program).tobytes()
    assert len({row.tobytes() for row in rows}) == len(rows)
    for value in (1.0, above(1.0), below(1.0), math.inf, -math.inf, 0.0):
        assert (rows[:, 0] == value).any()
    assert np.isnan(rows[:, 0]).any()
    assert np.signbit(rows[:, 0][rows[:, 0] == 0.0]).any()


def test_a_long_rule_list_has_witnesses_for_every_rule():
    rules = 150
    nodes = []
    for i in range(rules):
        nodes += [Split(i, 2 * i + 1, 2 * i + 2), Leaf((1.0, 0.0) if i % 2 else (0.0, 1.0))]
    made = tuple(Clause((Interval(0, float(i)), Interval(1, None, float(i)))) for i in range(rules))
    program = validate(Program(("a", "b"), (0, 1), made, Tree((*nodes, Leaf((0.5, 0.5))))))
    assert len(set(evaluate_many(program, witnesses(program)).leaves.tolist())) == rules + 1


@pytest.mark.parametrize("classes", [1, 3])
def test_a_program_without_clauses_has_witnesses_too(classes):
    program = Program(("a",), tuple(range(classes)), (), Tree((Leaf((1.0, *[0.0] * (classes - 1))),)))
    assert len(witnesses(program)) > 0


def test_a_slip_that_changes_a_label_is_seen_in_the_labels_alone():
    """Not every artifact gives probabilities, scores or a leaf: witnesses have to show a slip in the label."""
    choose = random.Random(11)
    wrong_ones = 0
    for number in range(150):
        kind = ("tree", "list", "scorecard")[number % 3]
        program = optimise(random_program(choose, kind, features=4, most_clauses=8))
        rows = witnesses(program)
        right = evaluate_many(program, rows).labels
        for wrong in choose.sample(found := list(mutants(program)), min(12, len(found))):
            try:
                validate(wrong)
            except BadInput:
                continue
            if isinstance(prove(program, as_reading(wrong)).labels, Counterexample):
                wrong_ones += 1
                assert (evaluate_many(wrong, rows).labels != right).any(), (program, wrong)
    assert wrong_ones > 300


def test_what_no_row_reaches_is_named_and_what_a_row_reaches_is_not():
    choose = random.Random(12)
    named = 0
    for _ in range(100):
        program = random_program(choose, "tree", features=2, most_clauses=4)
        found = find_witnesses(program)
        assert not found.given_up
        pools = interesting_values(program)
        reached = set(evaluate_many(program, np.array(list(itertools.product(*pools)))).leaves.tolist())
        unreached = {node for node, leaf in leaf_numbers(program.decision).items() if leaf not in reached}
        unreachable = {
            node for node in unreached if any(place.split(",")[0] == f"node {node}" for place in found.unreachable)
        }
        assert unreachable == unreached
        named += len(unreachable)
    assert named > 20


@pytest.mark.parametrize("classes", [2, 3])
def test_nearly_every_clause_of_a_large_rule_set_has_a_row_that_its_label_shows(classes):
    program = rule_set(random.Random(1), 300, classes)
    atoms = sum(len(clause.atoms) for clause in program.clauses)
    assert len(find_witnesses(program).given_up) < atoms // 4  # each atom has up to five places


def test_a_row_moved_to_a_tie_shows_its_clause_in_the_label():
    program = rule_set(random.Random(2), 60, 3)
    cells = cells_around(program)
    clauses = [atoms_of(cells, program, clause, codebook(program)) for clause in program.clauses]
    choose = random.Random(0)
    boxes = [dict(atoms) for atoms in clauses]
    rows = [{**any_row(cells, choose), **{f: mask & -mask for f, mask in box.items()}} for box in boxes]
    start = np.array([[row[f].bit_length() - 1 for f in range(len(cells.starts))] for row in rows])
    turns = [(number, True, frozenset(box)) for number, box in enumerate(boxes)]
    moved, shown = move_to_ties(cells, program.decision, clauses, start, turns, choose)
    assert shown.sum() > 50
    values = values_of_rows(cells, [{f: 1 << int(cell) for f, cell in enumerate(row)} for row in moved])
    scores = evaluate_many(program, np.array(values)).scores
    without = scores - np.array(program.decision.points)
    assert (scores.argmax(axis=1) != without.argmax(axis=1))[shown].all()
