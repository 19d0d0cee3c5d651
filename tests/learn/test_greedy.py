"""Every PP and PN returned satisfies equations 1 and 2, whatever the black box."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbfl_compile.errors import BadInput
from gbfl_compile.learn.black_box import as_black_box, classes_of, probabilities
from gbfl_compile.learn.explanations import domain_of
from gbfl_compile.learn.greedy import WINS, Greedy, explain_greedily


def random_network(rng, features, classes):
    first, second = rng.normal(size=(features, 8)), 3 * rng.normal(size=(8, classes))
    shift = rng.normal(size=8)

    def answer(rows):
        # einsum, not @: BLAS rounds a row differently in blocks of different sizes
        hidden = np.tanh(np.einsum("nd,dh->nh", rows, first) + shift)
        logits = np.einsum("nh,hk->nk", hidden, second)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)

    return answer


def random_steps(rng, features, classes):
    """A black box of plateaus and exact ties, as forests are."""
    cuts, feature = rng.normal(size=12), rng.integers(features, size=12)
    votes = rng.integers(classes, size=(12, 2))

    def answer(rows):
        counts = np.zeros((len(rows), classes))
        for cut, j, (low, high) in zip(cuts, feature, votes, strict=True):
            counts[np.arange(len(rows)), np.where(rows[:, j] < cut, low, high)] += 1
        return counts / 12

    return answer


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    features, classes = draw(st.integers(1, 6)), draw(st.integers(2, 4))
    x = rng.normal(size=(draw(st.integers(1, 25)), features))
    if draw(st.booleans()):
        x = x.round(0)  # many values equal to the base
    answer = draw(st.sampled_from([random_network, random_steps]))(rng, features, classes)
    given_settings = Greedy(
        kappa=draw(st.sampled_from([0.0, 0.2, 0.5, 0.9])),
        max_restored=draw(st.sampled_from([None, 1, 3])),
        max_moved=draw(st.sampled_from([None, 1, 3])),
        shortlist=draw(st.sampled_from([1, 2, 8])),
        bisections=draw(st.sampled_from([0, 4])),
    )
    beyond = np.concatenate((x, 3 * x[:2]))  # and rows outside the training range
    return x, beyond, answer, given_settings


def margins(answer, points, label):
    table = answer(points)
    own = table[np.arange(len(points)), label].copy()
    table[np.arange(len(points)), label] = -1
    return own - table.max(axis=1)


@settings(max_examples=150)
@given(problems())
def test_every_explanation_keeps_the_constraints_of_the_equations(problem):
    train, x, answer, how = problem
    domain = domain_of(train)
    box = as_black_box(answer, train)
    e = explain_greedily(box, x, domain, how)
    base, lower, upper = domain.base, domain.lower, domain.upper
    assert np.array_equal(e.label, classes_of(box, x))

    pp, xp = e.pp[e.has_pp], x[e.has_pp]
    assert ((pp >= lower) & (pp <= upper)).all()
    assert ((pp >= np.minimum(base, xp)) & (pp <= np.maximum(base, xp))).all()
    assert (classes_of(box, pp) == e.label[e.has_pp]).all()
    assert np.array_equal(e.pp_margin[e.has_pp], margins(answer, pp, e.label[e.has_pp]))
    if how.max_restored is not None:
        assert ((pp != base).sum(axis=1) <= how.max_restored).all()

    pn, xn = e.pn[e.has_pn], x[e.has_pn]
    moved = pn != xn
    assert (((pn >= lower) & (pn <= upper)) | ~moved).all()
    assert (pn >= xn)[moved & (xn > base)].all()
    assert (pn <= xn)[moved & (xn < base)].all()
    assert (classes_of(box, pn) != e.label[e.has_pn]).all()
    assert np.array_equal(classes_of(box, pn), e.pn_label[e.has_pn])
    assert np.array_equal(e.pn_margin[e.has_pn], -margins(answer, pn, e.label[e.has_pn]))
    if how.max_moved is not None:
        assert (moved.sum(axis=1) <= how.max_moved).all()

    assert np.array_equal(e.pp[~e.has_pp], x[~e.has_pp])
    assert np.array_equal(e.pn[~e.has_pn], x[~e.has_pn])


@settings(max_examples=40)
@given(problems())
def test_a_row_within_the_bounds_always_has_a_pp_when_any_number_of_features_may_differ(problem):
    train, _, answer, how = problem
    how = Greedy(how.kappa, None, how.max_moved, shortlist=how.shortlist)
    assert explain_greedily(as_black_box(answer, train), train, domain_of(train), how).has_pp.all()


@settings(max_examples=40)
@given(problems())
def test_a_row_is_explained_alike_alone_and_among_others_and_in_small_blocks(problem):
    train, x, answer, how = problem
    domain = domain_of(train)
    whole = explain_greedily(as_black_box(answer, train), x, domain, how)
    blocks = explain_greedily(as_black_box(answer, train, block_rows=7), x, domain, how)
    alone = explain_greedily(as_black_box(answer, train), x[-1:], domain, how)
    assert np.array_equal(whole.pp, blocks.pp)
    assert np.array_equal(whole.pn, blocks.pn)
    assert whole.queries == blocks.queries
    assert np.array_equal(whole.pp[-1:], alone.pp)
    assert np.array_equal(whole.pn[-1:], alone.pn)


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
    # at the base both classes have 1/2, which reaches a margin of 0 and is no class at all for the rows above it
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


def test_the_black_box_is_asked_in_few_large_blocks():
    sizes = []

    def watched(rows):
        sizes.append(len(rows))
        return rises_with_the_first(rows)

    x = np.random.default_rng(0).normal(size=(2000, 6))
    e = explain_greedily(as_black_box(watched, x), x, domain_of(x))
    assert e.queries == sum(sizes[1:])
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
def test_settings_that_cannot_be_are_refused(how, says):
    with pytest.raises(BadInput, match=says):
        explain_greedily(as_black_box(rises_with_the_first, LINE), LINE, domain_of(LINE), how)


def test_a_missing_value_cannot_be_explained():
    x = LINE.copy()
    x[1, 1] = np.nan
    with pytest.raises(BadInput, match="row 1, feature x1"):
        explain_greedily(as_black_box(rises_with_the_first, LINE), x, domain_of(LINE))
