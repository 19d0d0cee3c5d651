"""The living definition, case by case, and its batch form."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.evaluate import atom_holds, clause_holds, evaluate, softmax, winner
from gbfl_compile.ir.intervals import above, below
from gbfl_compile.ir.nodes import Band, Clause, Interval, Leaf, Program, Scorecard, Tree, leaf, split
from tests.programs import programs_with_rows


@pytest.mark.parametrize(
    ("closed", "at_lo", "at_hi"),
    [("left", True, False), ("right", False, True), ("both", True, True), ("neither", False, False)],
)
def test_an_interval_is_open_or_closed_as_it_says(closed, at_lo, at_hi):
    atom = Interval(0, 1.0, 2.0, closed)
    assert [atom_holds(atom, v) for v in (below(1.0), 1.0, above(1.0))] == [False, at_lo, True]
    assert [atom_holds(atom, v) for v in (below(2.0), 2.0, above(2.0))] == [True, at_hi, False]


def test_a_bound_at_zero_is_a_bound():
    assert not atom_holds(Interval(0, lo=0.0), -1.0)
    assert not atom_holds(Interval(0, hi=0.0), 1.0)


def test_negative_zero_is_zero():
    for value in (0.0, -0.0):
        assert atom_holds(Interval(0, lo=0.0), value)
        assert not atom_holds(Interval(0, hi=0.0), value)


@pytest.mark.parametrize("missing", [None, math.nan, -math.nan])
def test_a_missing_value_is_decided_by_the_atom_alone(missing):
    for atom in (Interval(0), Interval(0, 1.0), Interval(0, None, 1.0), Interval(0, 0.0, 1.0, "both")):
        assert not atom_holds(atom, missing)
    for atom in (Interval(0, if_missing=True), Interval(0, 1.0, if_missing=True)):
        assert atom_holds(atom, missing)


def test_infinities_are_numbers():
    assert atom_holds(Interval(0, lo=1e308), math.inf)
    assert atom_holds(Interval(0, hi=-1e308), -math.inf)
    assert not atom_holds(Interval(0, lo=-1e308), -math.inf)
    assert atom_holds(Interval(0), math.inf)


def test_a_leaf_may_answer_another_class_than_the_most_probable_one():
    program = Program(("a",), ("no", "yes"), (), Tree((Leaf((0.6, 0.4), answer=1),)))
    assert evaluate(program, [1.0]).label == "yes"
    assert evaluate(program, [1.0]).probabilities == (0.6, 0.4)
    assert evaluate_many(program, [[1.0]]).labels.tolist() == ["yes"]


def test_bands_give_the_constants_of_the_winners_lead():
    few, many, lost = (0.5, 0.3, 0.2), (0.9, 0.05, 0.05), (0.25, 0.5, 0.25)
    bands = ((Band(0, few), Band(3, many)), (Band(0, lost),), (Band(0, lost),))
    clauses = tuple(Clause((Interval(0, float(cut)),)) for cut in (1, 2))
    program = Program(("a",), ("x", "y", "z"), clauses, Scorecard((1, 1, 0), ((2, 0, 0), (0, 0, 2)), 0, bands))
    # a tie goes to the lower class, by a lead of 0; then 3 - 1 = 2 points; then the third class follows with 2
    assert [evaluate(program, [a]).probabilities for a in (0.0, 1.0, 2.0)] == [few, few, few]
    ahead = replace(program, decision=replace(program.decision, bias=(2, 1, 0)))
    assert [evaluate(ahead, [a]).probabilities for a in (0.0, 1.0, 2.0)] == [few, many, few]


def test_an_empty_clause_is_true_and_a_clause_is_an_and():
    assert clause_holds(Clause(), [])
    both = Clause((Interval(0, 1.0), Interval(1, None, 2.0)))
    rows = [[1.0, 1.0], [0.0, 1.0], [1.0, 2.0]]
    assert [clause_holds(both, row) for row in rows] == [True, False, False]


def test_the_highest_score_wins_and_ties_go_to_the_lower_class():
    assert winner((1, 3, 2)) == 1
    assert winner((2, 2, 1)) == 0
    assert winner((-1, -1)) == 0


def test_a_tree_answers_with_its_leaf_and_the_clauses_that_held():
    program = Program(
        ("a", "b"),
        ("no", "yes"),
        (Clause((Interval(0, 1.0),)), Clause((Interval(1, 1.0),))),
        split(0, split(1, leaf(0.0, 1.0), leaf(0.25, 0.75)), leaf(1.0, 0.0)),
    )
    answers = [evaluate(program, row) for row in ([1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [None, 1.0])]
    assert [a.leaf for a in answers] == [0, 1, 2, 2]
    assert [a.label for a in answers] == ["yes", "yes", "no", "no"]
    assert [a.held for a in answers] == [(0, 1), (0,), (), ()]
    assert answers[1].probabilities == (0.25, 0.75)


def test_a_rule_set_adds_whole_points():
    program = Program(
        ("a", "b"),
        ("no", "yes"),
        (Clause((Interval(0, 1.0),)), Clause((Interval(1, 1.0),))),
        Scorecard((0, -3), ((0, 2), (0, 1)), scale=0),
    )
    answers = [evaluate(program, row) for row in ([1.0, 1.0], [1.0, 0.0], [0.0, 0.0])]
    assert [a.scores for a in answers] == [(0, 0), (0, -1), (0, -3)]
    assert [a.label for a in answers] == ["no", "no", "no"]
    assert answers[0].probabilities == (0.5, 0.5)
    assert answers[0].held == (0, 1)


def test_softmax_survives_any_legal_score():
    assert softmax((0, 2**52), 0) == (0.0, 1.0)
    assert softmax((-(2**52), 2**52), 1000) == (0.5, 0.5)


@settings(max_examples=500, deadline=None)
@given(programs_with_rows(("tree", "scorecard", "banded")))
def test_the_batch_form_says_the_same_on_every_program(case):
    program, rows = case
    many = evaluate_many(program, np.array(rows))
    for index, row in enumerate(rows):
        one = evaluate(program, row)
        assert many.labels[index] is one.label or many.labels[index] == one.label
        assert type(many.labels[index]) is type(one.label)
        assert (many.leaves is None) == (one.leaf is None)
        if one.leaf is not None:
            assert many.leaves[index] == one.leaf
            assert tuple(many.probabilities[index]) == one.probabilities
        else:
            assert tuple(many.scores[index]) == one.scores
            # numpy's exp and the C library's may round differently in the last place; 4 ulp covers both and the sum.
            np.testing.assert_array_max_ulp(many.probabilities[index], np.array(one.probabilities), maxulp=4)


def test_no_rows_give_no_answers():
    program = Program(("a",), ("x", "y"), (Clause((Interval(0, 1.0),)),), split(0, leaf(1.0, 0.0), leaf(0.0, 1.0)))
    answers = evaluate_many(program, np.empty((0, 1)))
    assert answers.labels.shape == (0,)
    assert answers.probabilities.shape == (0, 2)


def test_every_number_is_taken_as_a_double():
    import decimal

    threshold = float(np.float32(0.1)) + 1e-10
    program = Program(("a",), (0, 1), (Clause((Interval(0, threshold),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)))
    for value in (np.float32(0.1), np.float16(0.1), decimal.Decimal("0.1")):
        expected = int(float(value) >= threshold)
        assert evaluate(program, [value]).label == expected
        assert evaluate_many(program, np.array([[value]], dtype=object).astype(float)).labels[0] == expected
    assert evaluate_many(program, np.array([[0.1]], dtype=np.float32)).labels[0] == 0


@pytest.mark.parametrize("row", [[], [1.0, 2.0], ["x"], [10**400]])
def test_what_is_not_a_row_of_the_program_is_refused(row):
    program = Program(("a",), (0,), (), leaf(1.0))
    with pytest.raises(BadInput):
        evaluate(program, row)
