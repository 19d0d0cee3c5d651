"""The clause matrix says what `evaluate` says, cell by cell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import clause_holds
from gbfl_compile.ir.nodes import Clause, Interval
from gbfl_compile.learn import matrix
from gbfl_compile.learn.matrix import clause_matrix

FEW = st.sampled_from([-1.0, -0.0, 0.0, 1.0, 5e-324, np.inf, -np.inf])
BOUND = st.none() | st.sampled_from([-1.0, 0.0, 1.0])


@st.composite
def clauses(draw):
    features = draw(st.lists(st.integers(0, 2), unique=True, max_size=3))
    closed = st.sampled_from(["left", "right", "both", "neither"])
    return Clause(
        tuple(Interval(j, draw(BOUND), draw(BOUND), draw(closed), draw(st.booleans())) for j in sorted(features))
    )


@given(st.lists(clauses(), max_size=6), st.lists(st.tuples(*[FEW | st.just(np.nan)] * 3), min_size=1, max_size=8))
def test_every_cell_is_what_the_living_definition_answers(some, rows):
    table = clause_matrix(some, np.array(rows, dtype=float))
    assert table.shape == (len(rows), len(some))
    assert table.dtype == bool
    assert table.tolist() == [[clause_holds(clause, row) for clause in some] for row in rows]


def test_blocks_of_rows_change_nothing(monkeypatch):
    x = np.random.default_rng(0).normal(size=(50, 2))
    some = [Clause((Interval(0, -0.5, 0.5), Interval(1, None, 0.2))), Clause((Interval(1, 0.0),))]
    whole = clause_matrix(some, x)
    monkeypatch.setattr(matrix, "BLOCK_ROWS", 7)
    assert np.array_equal(clause_matrix(some, x), whole)


def test_a_clause_on_a_feature_that_is_not_there_is_refused():
    with pytest.raises(BadInput, match="feature 4 and the rows have 2"):
        clause_matrix([Clause((Interval(4, 0.0),))], np.zeros((1, 2)))
