"""Every PP and PN returned satisfies equations 1 and 2, whatever the black box and the domain."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbfl_compile.errors import BadInput
from gbfl_compile.learning.black_box import as_black_box, probabilities
from gbfl_compile.learning.explain import domain_of
from gbfl_compile.learning.explain.greedy import WINS, Greedy, explain_greedily
from tests.learning.explain.explaining import assert_keeps_the_equations, assert_same, problems

HOW = st.builds(
    Greedy,
    kappa=st.sampled_from([0.0, 0.2, 0.5, 0.9]),
    max_restored=st.sampled_from([None, 1, 3]),
    max_moved=st.sampled_from([None, 1, 3]),
    shortlist=st.sampled_from([1, 2, 8]),
    bisections=st.sampled_from([0, 4]),
)


@settings(max_examples=250)
@given(problems(), HOW)
def test_every_explanation_keeps_the_constraints_of_the_equations_and_the_domain(problem, how):
    train, domain, x, answer = problem
    e = explain_greedily(as_black_box(answer, train), x, domain, how)
    assert_keeps_the_equations(e, answer, train, domain, how)


@settings(max_examples=60)
@given(problems(), HOW)
def test_a_row_within_the_bounds_always_has_a_pp_when_any_number_of_features_may_differ(problem, how):
    train, domain, _, answer = problem
    how = Greedy(how.kappa, None, how.max_moved, shortlist=how.shortlist)
    assert explain_greedily(as_black_box(answer, train), train, domain, how).has_pp.all()


@settings(max_examples=40)
@given(problems(), HOW)
def test_a_row_is_explained_the_same_alone_and_among_others_and_in_small_blocks(problem, how):
    train, domain, x, answer = problem
    whole = explain_greedily(as_black_box(answer, train), x, domain, how)
    assert_same(whole, explain_greedily(as_black_box(answer, train, block_rows=7), x, domain, how))
    alone = explain_greedily(as_black_box(answer, train), x[-1:], domain, how)
    assert np.array_equal(whole.pp[-1:], alone.pp)
    assert np.array_equal(whole.pn[-1:], alone.pn)


@settings(max_examples=60)
@given(problems(), HOW, st.floats(0, 1))
def test_a_budget_is_never_overdrawn_and_explains_the_first_rows_as_if_it_were_not_there(problem, how, share):
    train, domain, x, answer = problem
    free = explain_greedily(as_black_box(answer, train), x, domain, how)
    budget = len(x) + int(share * 3 * (free.queries - len(x)))
    how = Greedy(how.kappa, how.max_restored, how.max_moved, budget, 0, how.steps, how.shortlist, how.bisections)
    e = explain_greedily(as_black_box(answer, train), x, domain, how)
    assert e.queries <= budget
    reached = len(x) - e.not_reached
    assert e.counts()["not_reached"] == e.not_reached
    for name in ("pp", "pn", "has_pp", "has_pn", "pp_margin", "pn_margin", "pn_label"):
        assert np.array_equal(getattr(e, name)[:reached], getattr(free, name)[:reached])
    assert not e.has_pp[reached:].any()
    assert not e.has_pn[reached:].any()
    assert np.array_equal(e.label, free.label)
    assert_same(e, explain_greedily(as_black_box(answer, train, block_rows=3), x, domain, how))


def test_a_budget_that_does_not_cover_the_classes_is_refused():
    with pytest.raises(BadInput, match="max_queries 4 does not even cover the classes of the 5 rows"):
        explain_greedily(as_black_box(rises_with_the_first, LINE), LINE, domain_of(LINE), Greedy(max_queries=4))


def test_an_immutable_feature_is_a_reason_but_never_a_change():
    box = as_black_box(rises_with_the_first, LINE)
    e = explain_greedily(box, LINE, domain_of(LINE, immutable=["x0"]))
    assert not e.has_pn.any()
    # x0 alone decides: the PP of the rows above 1 keeps its value whole, with no value nobody had
    assert e.pp[3:].tolist() == [[2.0, 0.0], [4.0, 0.0]]


def test_a_direction_closes_the_other_way():
    box = as_black_box(lambda rows: 1 / (1 + np.exp(4 - 4 * np.abs(rows[:, 0]))), LINE)
    middle = LINE[2:3]
    down, up = (explain_greedily(box, middle, domain_of(LINE, directions={"x0": way})) for way in ("down", "up"))
    assert down.pn[0, 0] < 0 < up.pn[0, 0]


def test_codes_are_tried_by_their_rank_so_that_a_far_one_hides_none():
    x = np.zeros((1, 1))
    domain = domain_of(x, base=0.0, bounds=(0.0, 1000.0), kinds=[(0, 1, 2, 1000)])
    box = as_black_box(lambda rows: np.where(rows[:, 0] == 1, 0.9, 0.1), x)
    assert explain_greedily(box, x, domain).pn.tolist() == [[1.0]]


LINE = np.array([[-4.0, 0.0], [-1.0, 3.0], [0.0, 0.0], [2.0, -3.0], [4.0, 0.0]])


def rises_with_the_first(rows):
    return 1 / (1 + np.exp(-4 * (rows[:, 0] - 1)))


def test_resolution_10_a_pn_stays_inside_the_bounds_itself_not_its_step():
    e = explain_greedily(as_black_box(rises_with_the_first, LINE), LINE, domain_of(LINE), Greedy(kappa=0.9))
    assert e.has_pn[2]
    assert e.pn[2, 0] <= 4.0
    # x = -1 may only move down, where the class never changes: a step bounded instead of a point would allow it
    assert not e.has_pn[1]


def test_resolution_11_the_class_explained_is_the_black_boxs_own():
    box = as_black_box(rises_with_the_first, LINE)
    e = explain_greedily(box, LINE, domain_of(LINE))
    assert np.array_equal(e.label, probabilities(box, LINE).argmax(axis=1))


def test_resolution_12_the_margin_kappa_keeps_the_base_from_being_a_pp_and_empty_pps_are_counted():
    sure = explain_greedily(as_black_box(rises_with_the_first, LINE), LINE, domain_of(LINE), Greedy(kappa=0.5))
    assert sure.pp_is_base.tolist() == [True, True, True, False, False]
    assert sure.counts()["pp_is_base"] == 3
    # P(class 0) at the base is 0.982: below a margin of 0.99 the base alone is not enough
    surer = explain_greedily(as_black_box(rises_with_the_first, LINE), LINE, domain_of(LINE), Greedy(kappa=0.99))
    assert surer.pp_is_base.tolist() == [False, False, True, False, False]
    assert (surer.pp_margin[:2] >= 0.99).all()


def test_resolution_13_rows_without_a_pn_are_reported():
    e = explain_greedily(as_black_box(lambda rows: np.full(len(rows), 0.9), LINE), LINE, domain_of(LINE))
    counts = e.counts()
    assert (counts["pn_found"], counts["pn_not_found"], counts["pp_found"]) == (0, 5, 5)
    assert np.array_equal(e.pn, LINE)
    assert (e.pn_margin < 0).all()


def test_a_tie_is_not_another_class():
    e = explain_greedily(as_black_box(lambda rows: np.full(len(rows), 0.5), LINE), LINE, domain_of(LINE))
    assert not e.has_pn.any()
    assert e.has_pp.all()
    assert WINS > 0


def test_kappa_0_does_not_stop_at_a_tie():
    # at the base both classes have 1/2, which reaches a margin of 0 and is not a class at all for the rows above it
    e = explain_greedily(
        as_black_box(lambda rows: (1 + np.sign(rows[:, 0])) / 2, LINE), LINE, domain_of(LINE), Greedy(kappa=0.0)
    )
    assert e.label.tolist() == [0, 0, 0, 1, 1]
    assert e.has_pp.all()
    assert (e.pp[3:, 0] > 0).all()


def test_a_pp_gives_back_what_it_does_not_need():
    e = explain_greedily(as_black_box(rises_with_the_first, LINE), LINE, domain_of(LINE), Greedy(bisections=20))
    assert e.pp[4, 1] == 0.0
    # margin 0.5 is P = 0.75, so x0 = 1 + ln(3)/4; 20 bisections of a width of 4 leave 4e-6
    assert abs(e.pp[4, 0] - (1 + np.log(3) / 4)) < 4e-6


def test_the_shortest_move_that_suffices_is_taken():
    x = np.zeros((1, 2))
    domain = domain_of(x, base=0.0, bounds=(0.0, 10.0))
    box = as_black_box(lambda rows: np.where((rows[:, 0] >= 8) | (rows[:, 1] >= 1), 0.9, 0.1), x)
    e = explain_greedily(box, x, domain)
    assert e.pn.tolist() == [[0.0, 1.0]]


def test_once_the_class_holds_the_best_margin_is_taken_not_the_best_ratio():
    table = {
        (0, 0): (0.4, 0.3, 0.3, 0.0),
        (1, 0): (0.4, 0.2, 0.2, 0.2),  # the better ratio, 2 to 1
        (0, 1): (0.6, 0.35, 0.05, 0.0),  # the better margin, 0.25
        (1, 1): (0.4, 0.3, 0.3, 0.0),
    }
    x = np.ones((1, 2))
    box = as_black_box(lambda rows: np.array([table[a, b] for a, b in rows.astype(int).tolist()]), x)
    e = explain_greedily(box, x, domain_of(x, base=0.0, bounds=(0.0, 1.0)), Greedy(kappa=0.9, bisections=0))
    assert e.pp.tolist() == [[0.0, 1.0]]
    assert e.pp_margin.tolist() == [0.25]


def test_the_black_box_is_queried_in_few_large_blocks():
    sizes = []

    def watched(rows):
        sizes.append(len(rows))
        return rises_with_the_first(rows)

    x = np.random.default_rng(0).normal(size=(2000, 6))
    e = explain_greedily(as_black_box(watched, x), x, domain_of(x))
    assert e.queries == sum(sizes[2:])  # after the few rows asked twice
    assert len(sizes) < 150


@pytest.mark.parametrize(
    ("how", "says"),
    [
        (Greedy(kappa=1.0), "kappa 1.0"),
        (Greedy(kappa=-0.1), "kappa -0.1"),
        (Greedy(max_moved=0), "limit of 0"),
        (Greedy(steps=(2.0,)), "0 < step <= 1"),
        (Greedy(shortlist=0), "shortlist"),
    ],
)
def test_impossible_settings_are_refused(how, says):
    with pytest.raises(BadInput, match=says):
        explain_greedily(as_black_box(rises_with_the_first, LINE), LINE, domain_of(LINE), how)


def test_a_missing_value_cannot_be_explained():
    x = LINE.copy()
    x[1, 1] = np.nan
    with pytest.raises(BadInput, match="row 1, feature x1"):
        explain_greedily(as_black_box(rises_with_the_first, LINE), x, domain_of(LINE))
