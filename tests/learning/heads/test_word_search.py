"""Conjunctions searched on tables with gaps can all be written as clauses, and hold on exactly the expected rows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbfl_compile.ir.batch import clause_column
from gbfl_compile.ir.kinds import Codebook, Columns
from gbfl_compile.ir.nodes import Clause, Interval, OneOf
from gbfl_compile.learning.classifier import GBFLClassifier
from gbfl_compile.learning.fit import HEADS
from gbfl_compile.learning.heads.box_search import SearchSettings, newton_gain
from gbfl_compile.learning.heads.word_search import promising_word_boxes, word_box_holds, word_clause_of, word_grid

COLUMNS = Columns(("size", "word"), ("number", "category"), Codebook(((), ("a", "b", "c"))), ((), ()), (False, False))
SETTINGS = SearchSettings(max_atoms=3)


def boxes_of(points, pull):
    cuts = (np.array([1.5, 2.5, 3.5]), None)
    grid = word_grid(points, np.ones(len(points)), COLUMNS, cuts)
    return grid, promising_word_boxes(grid, pull, np.full_like(pull, 0.25), SETTINGS, newton_gain)


def test_two_ranges_with_nothing_but_the_missing_in_common_make_no_clause():
    size = np.array([1.0, 2.0, 3.0, 4.0, np.nan] * 20)
    points = np.column_stack((size, np.tile([1.0, 2.0, 3.0, 1.0], 25)))
    grid, boxes = boxes_of(points, np.where(np.isnan(size), 0.9, -0.2)[:, None])
    assert boxes
    for box in boxes:
        assert (clause_column(word_clause_of(grid, box), points, COLUMNS.book) == word_box_holds(grid, box)).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.0, 0.8))
def test_every_conjunction_is_a_clause_that_holds_on_the_same_points(seed, gaps):
    choose = np.random.default_rng(seed)
    points = np.column_stack((choose.integers(1, 5, 80), choose.integers(1, 4, 80))).astype(float)
    points[choose.random((80, 2)) < gaps] = np.nan
    grid, boxes = boxes_of(points, choose.normal(size=(80, 1)))
    for box in boxes:
        assert (clause_column(word_clause_of(grid, box), points, COLUMNS.book) == word_box_holds(grid, box)).all()


@pytest.mark.parametrize("head", HEADS)
def test_a_value_that_is_there_at_all_is_a_condition(head):
    choose = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "income": choose.integers(10_000, 60_000, 400).astype(float),
            "age": np.where(choose.random(400) < 0.4, np.nan, choose.integers(18, 80, 400)),
            "job": choose.choice(["nurse", "cook"], 400),
        }
    )

    def no(rows):
        return (rows.income < 40_000) & rows.age.notna()

    model = GBFLClassifier(lambda rows: np.where(no(rows), 0.05, 0.95), head=head, random_state=0).fit(table)
    assert (model.predict(table) == ~no(table)).all()
    assert model.clauses_ == (Clause((Interval(0, None, 40_000.0), Interval(1))),)


@pytest.mark.parametrize("head", HEADS)
def test_a_word_that_is_not_there_is_a_condition(head):
    choose = np.random.default_rng(0)
    words = choose.choice(["nurse", "cook", "clerk", None], 400)
    table = pd.DataFrame({"income": choose.integers(10_000, 60_000, 400).astype(float), "job": words})

    def no(rows):
        return (rows.income < 40_000) & rows.job.isna()

    model = GBFLClassifier(lambda rows: np.where(no(rows), 0.05, 0.95), head=head, random_state=0).fit(table)
    assert (model.predict(table) == ~no(table)).all()
    assert model.clauses_ == (Clause((Interval(0, None, 40_000.0), OneOf(1, (), if_missing=True))),)
