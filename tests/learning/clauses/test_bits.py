"""The packed bits agree with `evaluate`, cell by cell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import clause_holds
from gbfl_compile.ir.nodes import Clause, Interval
from gbfl_compile.learning.clauses import Bits, clause_bits, count, counts, pack, unpack

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
    found = clause_bits(some, np.array(rows, dtype=float))
    for clause, words in zip(some, found.words, strict=True):
        assert unpack(words, len(rows)).tolist() == [clause_holds(clause, row) for row in rows]
        assert count(words) == sum(clause_holds(clause, row) for row in rows)  # nothing beyond the last row


def test_blocks_of_rows_change_nothing(monkeypatch):
    x = np.random.default_rng(0).normal(size=(500, 2))
    some = [Clause((Interval(0, -0.5, 0.5), Interval(1, None, 0.2))), Clause((Interval(1, 0.0),))]
    whole = clause_bits(some, x)
    monkeypatch.setattr("gbfl_compile.learning.clauses.BLOCK_ROWS", 64)
    assert np.array_equal(clause_bits(some, x).words, whole.words)


def test_a_clause_on_an_absent_feature_is_refused():
    with pytest.raises(BadInput, match="feature 4 and the rows have 2"):
        clause_bits([Clause((Interval(4, 0.0),))], np.zeros((1, 2)))


@given(st.lists(st.booleans(), max_size=200))
def test_packing_loses_nothing(column):
    words = pack(np.array(column, dtype=bool))
    assert unpack(words, len(column)).tolist() == column
    assert count(words) == sum(column)


def test_counts_are_counts_over_the_mask():
    rng = np.random.default_rng(0)
    table = rng.random((1500, 130)) < 0.3
    mask = rng.random(130) < 0.5
    found = counts(Bits(np.array([pack(column) for column in table]), 130), pack(mask))
    assert found.tolist() == (table & mask).sum(axis=1).tolist()


def test_resolution_16_thirty_thousand_rows_and_twenty_thousand_clauses_stay_below_200_mb():
    import tracemalloc

    rng = np.random.default_rng(0)
    x = rng.normal(size=(30_000, 4))
    cuts = np.round(rng.normal(size=200), 3).tolist()
    some = [
        Clause((Interval(j % 4, cuts[j % 200]), Interval((j + 1) % 4, None, cuts[j // 100]))) for j in range(20_000)
    ]
    tracemalloc.start()
    found = clause_bits(some, x)
    counts(found, pack(x[:, 0] > 0))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.words.nbytes < 80e6
    assert peak < 200e6
