"""Passes change how a program is written and never what it answers."""

import numpy as np
import pytest
from hypothesis import given, settings

from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Clause, Interval, Leaf, Program, Scorecard, Split, Tree, leaf, split
from gbfl_compile.ir.text import readable
from gbfl_compile.ir.validate import validate
from gbfl_compile.passes import (
    PASSES,
    collapse_splits,
    decide_by_path,
    drop_true_bounds,
    drop_unused_clauses,
    merge_equal_clauses,
    optimise,
    order_atoms,
)
from tests.programs import programs, programs_with_rows

A, B, C = leaf(1.0, 0.0, rows=10), leaf(0.0, 1.0, rows=20), leaf(0.5, 0.5, rows=30)


def x(lo=None, hi=None, **more):
    return Interval(0, lo, hi, **more)


def y(lo=None, hi=None, **more):
    return Interval(1, lo, hi, **more)


def program(decision, *clauses):
    return Program(("x", "y"), ("a", "b"), tuple(Clause(atoms) for atoms in clauses), decision)


def lines(made):
    return readable(made).split("\n")


def answers(made, rows):
    found = [evaluate(made, row) for row in rows]
    return [(one.label, one.probabilities, one.scores) for one in found]


@pytest.mark.parametrize("run", PASSES, ids=lambda run: run.__name__)
@settings(max_examples=300, deadline=None)
@given(case=programs_with_rows(("tree", "scorecard", "banded")))
def test_a_pass_is_harmless(run, case):
    before, rows = case
    assert answers(validate(run(before)), rows) == answers(before, rows)


@settings(max_examples=500, deadline=None)
@given(programs_with_rows(("tree", "scorecard", "banded")))
def test_all_passes_together_are_harmless(case):
    before, rows = case
    after = optimise(before)
    expected = answers(before, rows)
    assert answers(after, rows) == expected
    assert answers(order_atoms(after, np.array(rows)), rows) == expected


@settings(max_examples=200, deadline=None)
@given(programs(("tree", "scorecard", "banded")))
def test_optimising_twice_finds_nothing_more(made):
    once = optimise(made)
    assert optimise(once) == once


@settings(max_examples=200, deadline=None)
@given(programs(kinds=("tree",)))
def test_passes_lose_no_rows_and_never_grow(made):
    def total(p):
        rows = [node.rows for node in p.decision.nodes if isinstance(node, Leaf)]
        return None if None in rows else sum(rows)

    after = optimise(made)
    assert len(after.decision.nodes) <= len(made.decision.nodes)
    collapsed = collapse_splits(made)
    assert total(made) is None or total(collapsed) == total(made)


def test_equal_clauses_are_merged_in_any_spelling():
    made = program(
        split(0, A, split(1, B, C)), (x(1.0), y(None, 2.0)), (y(None, 2.0, closed="left"), x(1.0, closed="both"))
    )
    assert [node.clause for node in merge_equal_clauses(made).decision.nodes if isinstance(node, Split)] == [0, 0]
    assert lines(optimise(made)) == ["IF x >= 1 AND y < 2 THEN a (1.00, 10 rows)", "ELSE a (0.50, 30 rows)"]


def test_a_strict_bound_equals_the_next_double():
    made = program(split(0, A, split(1, B, C)), (x(1.0, closed="neither"),), (x(1.0000000000000002),))
    assert optimise(made).decision == split(0, A, C)


def test_points_of_equal_clauses_add_up():
    made = program(Scorecard((0, 1), ((0, 2), (0, 3), (0, -5)), 2), (x(1.0),), (x(1.0),), (y(1.0),))
    after = optimise(made)
    assert after.clauses == (Clause((x(1.0),)), Clause((y(1.0),)))
    assert after.decision == Scorecard((0, 1), ((0, 5), (0, -5)), 2)


def test_points_that_cancel_leave_no_clause():
    made = program(Scorecard((0, 1), ((0, 2), (0, -2)), 2), (x(1.0),), (x(1.0),))
    assert optimise(made).clauses == ()


def test_a_clause_that_always_holds_moves_into_the_bias():
    made = program(Scorecard((0, 1), ((0, 2), (0, 7)), 2), (), (x(if_missing=True),))
    after = optimise(made)
    assert (after.clauses, after.decision) == ((), Scorecard((0, 10), (), 2))


def test_a_test_implied_by_the_path_is_removed():
    made = program(split(0, split(1, A, B), C), (x(5.0),), (x(3.0),))
    assert decide_by_path(made).decision == split(0, A, C)


def test_a_question_contradicted_by_the_path_is_dropped():
    made = program(split(0, split(1, A, B), C), (x(5.0),), (x(None, 3.0),))
    assert decide_by_path(made).decision == split(0, B, C)


def test_a_failed_test_adds_information_too():
    made = program(split(0, A, split(1, B, C)), (x(5.0),), (x(7.0),))
    assert decide_by_path(made).decision == split(0, A, C)


def test_a_failed_conjunction_with_one_open_atom_means_that_this_atom_failed():
    # x >= 5 holds, (x >= 5 AND y >= 2) fails: so y >= 2 fails.
    made = program(split(0, split(1, A, split(2, B, C)), A), (x(5.0),), (x(5.0), y(2.0)), (y(3.0),))
    assert decide_by_path(made).decision == split(0, split(1, A, C), A)


def test_a_missing_value_keeps_a_question_open():
    # x < 5 fails for a missing x, so x >= 5 is not implied.
    made = program(split(0, A, split(1, B, C)), (x(None, 5.0),), (x(5.0),))
    assert decide_by_path(made) == made
    # ... but once the value is known to be there, it is.
    known = program(split(2, split(0, A, split(1, B, C)), A), (x(None, 5.0),), (x(5.0),), (x(),))
    assert decide_by_path(known).decision == split(2, split(0, A, B), A)


def test_the_same_test_below_itself_is_removed():
    made = program(split(0, split(0, A, B), split(0, B, C)), (x(1.0), y(2.0)))
    assert decide_by_path(made).decision == split(0, A, C)


def test_branches_that_agree_collapse_and_add_their_rows():
    assert collapse_splits(program(split(0, A, A), (x(1.0),))).decision == leaf(1.0, 0.0, rows=20)


def test_equal_subtrees_collapse_too():
    made = program(split(0, split(1, A, B), split(1, A, B)), (x(1.0),), (y(1.0),))
    assert collapse_splits(made).decision == split(1, leaf(1.0, 0.0, rows=20), leaf(0.0, 1.0, rows=40))


def test_leaves_with_the_same_label_but_other_probabilities_stay_apart():
    made = program(split(0, leaf(0.9, 0.1), leaf(0.8, 0.2)), (x(1.0),))
    assert collapse_splits(made) == made


def test_a_bound_known_from_the_path_is_dropped():
    made = program(split(0, split(1, A, B), C), (x(5.0),), (x(3.0), y(None, 2.0)))
    assert lines(drop_true_bounds(made))[1].strip() == "IF y < 2 THEN a (1.00, 10 rows)"


def test_one_of_two_bounds_is_dropped():
    made = program(split(0, split(1, A, B), C), (x(5.0),), (x(3.0, 8.0),))
    assert lines(drop_true_bounds(made))[1].strip() == "IF x < 8 THEN a (1.00, 10 rows)"


def test_a_clause_tested_in_two_places_may_become_two():
    made = program(split(0, split(1, A, B), split(1, B, C)), (x(5.0),), (x(3.0), y(None, 2.0)))
    assert lines(optimise(made)) == [
        "IF x >= 5 THEN",
        "    IF y < 2 THEN a (1.00, 10 rows)",
        "    ELSE b (1.00, 20 rows)",
        "ELSE IF x >= 3 AND y < 2 THEN b (1.00, 20 rows)",
        "ELSE a (0.50, 30 rows)",
    ]


def test_unused_clauses_are_dropped_and_the_rest_numbered_in_reading_order():
    made = program(split(2, A, split(0, B, C)), (x(1.0),), (x(2.0),), (y(3.0),))
    after = drop_unused_clauses(made)
    assert after.clauses == (Clause((y(3.0),)), Clause((x(1.0),)))
    assert after.decision == split(0, A, split(1, B, C))


def test_the_atom_that_rejects_most_rows_is_tested_first():
    made = program(split(0, A, B), (x(0.0), y(5.0)))
    rows = np.array([[float(i), float(i)] for i in range(8)])
    assert order_atoms(made, rows).clauses[0].atoms == (y(5.0), x(0.0))


def test_a_deep_rule_list_is_optimised():
    nodes = []
    for rule in range(400):
        nodes += [Split(rule, 2 * rule + 1, 2 * rule + 2), Leaf((1.0, 0.0) if rule % 2 else (0.0, 1.0))]
    made = program(Tree((*nodes, Leaf((0.5, 0.5)))), *((x(float(rule), rule + 0.5),) for rule in range(400)))
    assert optimise(made) == made
