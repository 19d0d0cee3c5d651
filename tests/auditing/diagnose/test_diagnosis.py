"""What cannot be read is explained by one slip that fits every row: the right place is named, and no nonsense."""

import doctest
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbfl_compile.auditing.answers import RowAnswers, answers_of, clauses_held, decided_by, differs_at
from gbfl_compile.auditing.diagnose import clause, explain
from gbfl_compile.checking.witnesses import witnesses
from gbfl_compile.ir.nodes import Clause, Interval, Scorecard
from tests.auditing.diagnose.unread_cases import (
    BY_EVERYTHING,
    BY_LABELS,
    NAMED_AT_LEAST,
    rows_that_show,
    rows_with_boundaries,
)
from tests.auditing.tampering import BESIDE_THE_LABEL, CARD, TREE
from tests.programs import programs_with_rows

ROWS = {"witnesses": witnesses, "a table with boundaries": rows_with_boundaries}


def test_the_examples_hold():
    assert doctest.testmod(clause).failed == 0


def class_numbers(program, rows):
    return answers_of(program, rows).classes


def labels_of(program, rows):
    return RowAnswers(class_numbers(program, rows))


@pytest.mark.parametrize("kind", BY_LABELS)
def test_tamperings_that_change_no_label_are_those_that_are_said_to(kind):
    approved, cases = BY_EVERYTHING[kind]
    for name, tampered, _ in cases:
        same = (class_numbers(approved, witnesses(approved)) == class_numbers(tampered, witnesses(approved))).all()
        assert same == (name in BESIDE_THE_LABEL), name
        assert rows_that_show(approved, tampered), name


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("kind", BY_LABELS)
@pytest.mark.parametrize("cases", [BY_LABELS, BY_EVERYTHING], ids=["labels", "everything"])
def test_the_right_place_is_named_in_nine_of_ten_tamperings(cases, kind, rows):
    approved, tampered = cases[kind]
    rows_asked = ROWS[rows](approved)
    answers = labels_of if cases is BY_LABELS else answers_of
    named = []
    for name, program, words in tampered:
        found = explain(approved, rows_asked, answers(program, rows_asked))
        named.append((name, found is not None and any(words in change.text() for change in found.changes("them"))))
    assert sum(ok for _, ok in named) >= NAMED_AT_LEAST * len(named), [name for name, ok in named if not ok]


@pytest.mark.parametrize("kind", BY_LABELS)
def test_what_is_reported_really_gives_the_answers_that_were_heard(kind):
    approved, cases = BY_EVERYTHING[kind]
    rows = rows_with_boundaries(approved)
    for name, program, _ in cases:
        answers = answers_of(program, rows)
        found = explain(approved, rows, answers)
        assert found is not None, name
        assert not differs_at(approved, answers_of(found.slip.program, rows), answers).any(), name


def test_an_explanation_is_called_inferred_and_says_what_rows_leave_open():
    moved = replace(TREE, clauses=(Clause((Interval(0, 60000.0), TREE.clauses[0].atoms[1])), *TREE.clauses[1:]))
    rows = np.array([[income, 30.0, 0.0, 0.0] for income in (20000.0, 50000.0, 59000.0, 61000.0, 90000.0)])
    (change,) = explain(TREE, rows, labels_of(moved, rows)).changes("5 rows")
    assert change.text() == (
        "clause 0: income >= 50000 is deployed as income >= 60000 "
        "(inferred: it fits 5 rows; any lower bound above 59000 up to 61000 fits)"
    )


def test_other_slips_that_fit_as_well_are_counted():
    card = replace(CARD, decision=Scorecard((0, 0), ((0, 1),) * 4, 0), clauses=(CARD.clauses[1],) * 4)
    rows = np.array([[0.0, 0.0, 0.2, 0.0], [0.0, 0.0, 0.5, 0.0]])
    found = explain(card, rows, RowAnswers(np.array([0, 0])))
    assert found.others > 0
    assert f"{found.others} other single change" in found.changes("them")[0].text()


def test_answers_that_no_one_slip_explains_are_not_explained():
    rows = witnesses(TREE)
    assert explain(TREE, rows, RowAnswers(np.random.default_rng(0).integers(0, 3, len(rows)))) is None
    assert explain(TREE, rows, RowAnswers(np.full(len(rows), -1))) is None


@settings(max_examples=40)
@given(programs_with_rows(), programs_with_rows())
def test_any_two_programs_get_an_answer_and_no_error(one, two):
    rows = witnesses(one[0])
    answers = RowAnswers(np.resize(class_numbers(two[0], witnesses(two[0])), len(rows)))
    found = explain(one[0], rows, answers)
    if found is not None:
        assert (answers_of(found.slip.program, rows).classes == answers.classes).all()
        assert all(change.approved != change.deployed for change in found.slip.changes)


@settings(max_examples=40)
@given(programs_with_rows())
def test_a_program_decides_by_its_clauses_as_it_does_by_its_rows(drawn):
    program, rows = drawn
    rows = np.array(rows, dtype=np.float64)
    by_rows, by_clauses = answers_of(program, rows), decided_by(program, clauses_held(program, rows))
    assert (by_rows.classes == by_clauses.classes).all()
    assert np.array_equal(by_rows.probabilities, by_clauses.probabilities)
    assert by_rows.scores is None or np.array_equal(by_rows.scores, by_clauses.scores)


NUMBERS = st.sampled_from([-np.inf, -1.0, 0.0, 0.1, float(np.nextafter(0.1, 1)), 2.0, 50.0, np.inf, np.nan])


@given(st.lists(st.tuples(NUMBERS, st.sampled_from(["in", "out", "free"])), min_size=1, max_size=12))
def test_a_fitted_interval_has_what_is_wanted_and_nothing_unwanted(drawn):
    from gbfl_compile.ir.batch import atom_column

    column = np.array([value for value, _ in drawn])
    wanted, unwanted = (np.array([how == word for _, how in drawn]) for word in ("in", "out"))
    found = clause.fit_atom(Interval(0, 0.1, 50.0), column, wanted, unwanted)
    if found is not None:
        holds = atom_column(found.atom, column)
        assert holds[wanted].all()
        assert not holds[unwanted].any()
