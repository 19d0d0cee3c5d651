"""MACEM obeys the equations, finds what it should, and draws the same wherever a row is in the table."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbfl_compile.errors import BadInput
from gbfl_compile.learning.black_box import as_black_box
from gbfl_compile.learning.explain import domain_of
from gbfl_compile.learning.explain.greedy import explain_greedily
from gbfl_compile.learning.explain.macem import Macem, explain_by_macem
from tests.learning.explain.explaining import assert_keeps_the_equations, assert_same, problems

QUICK = {"iterations": 8, "directions": 4, "searches": 2}
HOW = st.builds(
    Macem,
    kappa=st.sampled_from([0.0, 0.2, 0.5, 0.9]),
    max_restored=st.sampled_from([None, 1, 3]),
    max_moved=st.sampled_from([None, 1, 3]),
    seed=st.integers(0, 3),
    mu=st.sampled_from([0.05, 0.5]),
    **{name: st.just(value) for name, value in QUICK.items()},
)

RNG = np.random.default_rng(5)
ROWS = RNG.normal(size=(200, 4))


def slope(rows):
    return 1 / (1 + np.exp(-np.einsum("nd,d->n", rows, np.array([2.0, -1.0, 0.5, 0.0]))))


@settings(max_examples=120)
@given(problems(), HOW)
def test_every_explanation_keeps_the_constraints_of_the_equations_and_the_domain(problem, how):
    train, domain, x, answer = problem
    e = explain_by_macem(as_black_box(answer, train), x, domain, how)
    assert_keeps_the_equations(e, answer, train, domain, how)


@settings(max_examples=15)
@given(problems(), HOW)
def test_a_row_is_explained_the_same_alone_and_among_others_and_in_small_blocks(problem, how):
    train, domain, x, answer = problem
    whole = explain_by_macem(as_black_box(answer, train), x, domain, how)
    assert_same(whole, explain_by_macem(as_black_box(answer, train, block_rows=7), x, domain, how))
    alone = explain_by_macem(as_black_box(answer, train), x[-1:], domain, how)
    assert np.array_equal(whole.pp[-1:], alone.pp)
    assert np.array_equal(whole.pn[-1:], alone.pn)


def test_a_row_that_the_gradient_can_move_finds_its_pn_and_every_row_its_pp():
    e = explain_by_macem(as_black_box(slope, ROWS), ROWS, domain_of(ROWS), Macem(kappa=0.2))
    greedy = explain_greedily(as_black_box(slope, ROWS), ROWS, domain_of(ROWS))
    assert e.has_pp.all()
    assert (e.has_pn | ~greedy.has_pn).mean() > 0.9
    # the fourth feature says nothing: only noise of the estimated gradient ever moves it
    assert (e.pn[:, 3] != ROWS[:, 3]).mean() < 0.1


def test_whole_numbers_and_codes_move_too():
    rows = np.column_stack((RNG.integers(0, 6, 100), RNG.choice([1.0, 2.0, 9.0], 100), RNG.normal(size=100)))
    domain = domain_of(rows, kinds=["integer", (1, 2, 9), "float"])
    box = as_black_box(lambda x: 1 / (1 + np.exp(4 - 2 * x[:, 0] - 0.5 * x[:, 1])), rows)
    e = explain_by_macem(box, rows, domain, Macem(kappa=0.2))
    assert (e.pn[:, 0] != rows[:, 0]).any()
    assert (e.pn[:, 1] != rows[:, 1]).any()


def test_the_black_box_is_queried_only_with_values_of_the_kind():
    seen = set()

    def watched(x):
        seen.update(x[:, 0].tolist())
        return 1 / (1 + np.exp(4 - x[:, 0] - x[:, 1]))

    rows = np.column_stack((RNG.choice([1.0, 2.0, 9.0], 50), RNG.normal(size=50)))
    explain_by_macem(as_black_box(watched, rows), rows, domain_of(rows, kinds={0: (1, 2, 9)}), Macem(**QUICK))
    explain_greedily(as_black_box(watched, rows), rows, domain_of(rows, kinds={0: (1, 2, 9)}))
    assert seen == {1.0, 2.0, 9.0}


def test_the_seed_decides_and_equal_rows_draw_the_same():
    box, domain = as_black_box(slope, ROWS), domain_of(ROWS)
    twice = np.concatenate((ROWS[:20], ROWS[:20]))
    one = explain_by_macem(box, twice, domain, Macem(seed=1))
    assert np.array_equal(one.pn[:20], one.pn[20:])
    assert_same(one, explain_by_macem(box, twice, domain, Macem(seed=1)))
    assert not np.array_equal(one.pn, explain_by_macem(box, twice, domain, Macem(seed=2)).pn)


def test_a_budget_explains_the_first_rows_and_says_how_many_it_did_not_reach():
    how = Macem(**QUICK)
    free = explain_by_macem(as_black_box(slope, ROWS), ROWS, domain_of(ROWS), how)
    budget = Macem(**QUICK, max_queries=free.queries // 2)
    e = explain_by_macem(as_black_box(slope, ROWS), ROWS, domain_of(ROWS), budget)
    assert e.queries <= free.queries // 2
    assert 90 < e.not_reached < 110
    assert np.array_equal(e.pn[: -e.not_reached], free.pn[: -e.not_reached])


@pytest.mark.parametrize(
    ("how", "says"),
    [
        (Macem(iterations=0), "iterations 0"),
        (Macem(mu=0.0), r"mu 0\.0"),
        (Macem(step=np.inf), "step inf"),
        (Macem(beta=-1.0), "beta -1"),
        (Macem(kappa=1.0), "kappa 1"),
        (Macem(max_moved=0), "limit of 0"),
    ],
)
def test_impossible_settings_are_refused(how, says):
    with pytest.raises(BadInput, match=says):
        explain_by_macem(as_black_box(slope, ROWS), ROWS, domain_of(ROWS), how)
