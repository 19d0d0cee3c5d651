"""The miner: one promise per resolution, and what they promise together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import clause_holds
from gbfl_compile.ir.nodes import Clause, Interval
from gbfl_compile.learning.clauses import grid_of
from gbfl_compile.learning.clauses.mine import mine, single_bounds
from gbfl_compile.learning.explain import Domain, Explanations

TENS = np.arange(0.0, 101.0, 10.0)
"""A grid of 0, 10, .. 100 with the base at 50."""


def domain_on(grid, base=50.0):
    width = len(grid)
    lower, upper = np.array([g[0] for g in grid]), np.array([g[-1] for g in grid])
    return Domain(np.full(width, base), lower, upper, tuple(f"x{j}" for j in range(width)))


def explained(x, pp=None, pn=None):
    """Explanations with given points; None is not found."""
    x = np.atleast_2d(np.asarray(x, dtype=float))
    rows = len(x)
    p = x if pp is None else np.atleast_2d(np.asarray(pp, dtype=float))
    n = x if pn is None else np.atleast_2d(np.asarray(pn, dtype=float))
    zeros, flat = np.zeros(rows, dtype=np.int64), np.zeros(rows)
    has_pp, has_pn = np.full(rows, pp is not None), np.full(rows, pn is not None)
    return Explanations(x, p, n, has_pp, has_pn, zeros, zeros, flat, flat, has_pn, 0, ("a",) * x.shape[1])


def mined(x, pp=None, pn=None, skip=1, mode="faithful", grid=None):
    grid = grid or (TENS,) * np.atleast_2d(x).shape[1]
    return mine(explained(x, pp, pn), domain_on(grid), grid, skip, mode)


def only(found):
    (clause,) = found.clauses
    return clause.atoms


def test_a_pp_above_the_base_gives_the_grid_point_below_it_and_a_reach_above_x():
    assert only(mined([85.0], [72.0])) == (Interval(0, 70.0, None),)  # 90 + one point is the end of the grid
    assert only(mined([75.0], [72.0])) == (Interval(0, 70.0, 90.0),)


def test_a_pp_below_the_base_gives_the_mirror_image():
    assert only(mined([25.0], [28.0])) == (Interval(0, 10.0, 30.0),)


def test_a_pn_above_x_gives_the_grid_point_below_it_and_a_reach_below_x():
    assert only(mined([55.0], None, [78.0])) == (Interval(0, 40.0, 70.0),)


def test_a_pn_below_x_gives_the_mirror_image():
    assert only(mined([45.0], None, [22.0])) == (Interval(0, 30.0, 60.0),)


def test_resolution_1_a_pp_at_the_base_gives_no_bound():
    assert only(mined([75.0, 75.0], [50.0, 72.0])) == (Interval(1, 70.0, 90.0),)


def test_resolution_2_a_pn_at_x_gives_no_bound():
    assert only(mined([55.0, 55.0], None, [55.0, 78.0])) == (Interval(1, 40.0, 70.0),)


def test_resolution_3_the_reach_is_anchored_on_the_row_and_its_pp_together():
    # x moved up to 75 for the PN, its PP stays at 51: a reach below x alone would start at 60 and cut off the PP
    (atom,) = only(mined([75.0], [51.0], [88.0], skip=1))
    assert atom == Interval(0, 40.0, 80.0)


def test_resolution_4_without_a_grid_point_for_the_bound_it_is_left_out():
    # no grid point between the base 50 and the PP 55
    assert only(mined([57.0], [55.0])) == (Interval(0, None, 70.0),)


def test_resolution_5_a_clause_is_false_at_its_pn_even_without_a_grid_point():
    found = mined([51.0, 51.0], None, [53.0, 58.0], skip=20)
    assert only(found) == (Interval(1, None, 54.5),)
    assert found.off_grid == 1


def test_resolution_5_between_neighbouring_floats_the_cut_is_the_upper_one():
    x = 51.0
    assert only(mined([x], None, [np.nextafter(x, 100)], skip=20)) == (Interval(0, None, float(np.nextafter(x, 100))),)
    x = 49.0
    assert only(mined([x], None, [np.nextafter(x, 0)], skip=20)) == (Interval(0, x, None),)


def test_resolution_6_without_a_grid_point_to_reach_from_the_bound_is_left_out():
    # x lies above the whole grid, as a row outside the training range does
    assert only(mined([120.0], [100.0], skip=0)) == (Interval(0, 100.0, None),)


def test_resolution_7_a_reach_beyond_the_grid_is_not_a_bound_and_neither_is_its_end():
    assert only(mined([75.0], [72.0], skip=3)) == (Interval(0, 70.0, None),)
    assert only(mined([75.0], [72.0], skip=2)) == (Interval(0, 70.0, None),)
    assert only(mined([25.0], [28.0], skip=2)) == (Interval(0, None, 30.0),)


def test_resolution_8_every_faithful_interval_is_half_open():
    (atom,) = only(mined([70.0], [70.0], [80.0], skip=1))
    assert atom == Interval(0, 70.0, 80.0, closed="left")
    assert clause_holds(Clause((atom,)), [70.0])
    assert not clause_holds(Clause((atom,)), [80.0])


def test_a_grid_point_at_x_itself_separates_a_pn_below_it():
    found = mined([40.0], None, [33.0], skip=20)
    assert only(found) == (Interval(0, 40.0, None),)
    assert found.off_grid == 0


def test_resolution_9_at_the_base_the_branch_follows_the_pn():
    assert only(mined([50.0], None, [78.0])) == (Interval(0, 40.0, 70.0),)
    assert only(mined([50.0], None, [22.0])) == (Interval(0, 30.0, 70.0),)


def test_resolution_13_a_row_without_a_pn_gives_a_pp_only_clause_and_is_counted():
    found = mined([[75.0], [25.0]], [[72.0], [28.0]])
    assert found.pp_only == 2
    assert len(found.clauses) == 2


def test_resolution_16_equal_clauses_are_merged_and_always_true_ones_dropped():
    found = mined([[75.0], [55.0], [76.0]], [[72.0], [50.0], [73.0]])
    assert only(found) == (Interval(0, 70.0, 90.0),)
    assert found.sources == ((0, 2),)
    assert found.always_true == 1


def test_a_pn_between_x_and_the_pp_gives_no_clause_and_is_counted():
    # no explainer that keeps the direction rules returns this; a foreign one might
    found = mined([75.0], [55.0], [65.0])
    assert found.clauses == ()
    assert found.never_true == 1


def test_literal_mode_emits_the_bounds_that_the_resolutions_leave_out():
    # PP at the base falls into the ELSE branch (resolution 1), PN at x still reaches (resolution 2)
    found = mined([75.0], [50.0], [75.0], mode="literal")
    assert only(found) == (Interval(0, 60.0, None),)


def test_literal_mode_follows_algorithm_1_above_the_base():
    # PP: 60 <= z < 90 (lines 8-9); PN: z < 90, z >= 60 (lines 16-17)
    assert only(mined([75.0], [65.0], [95.0], mode="literal")) == (Interval(0, 60.0, 90.0),)


def test_literal_mode_keeps_the_strict_bound_of_line_20():
    # x <= b: z > 20 from the PN at 15, which meets z >= 10 of the PP's reach and is the tighter
    assert only(mined([25.0], [45.0], [15.0], mode="literal", skip=0)) == (Interval(0, 20.0, 30.0, closed="neither"),)


def test_literal_mode_counts_from_x_itself_in_line_19_and_from_below_it_in_line_11():
    assert only(mined([30.0], [50.0], [30.0], mode="literal")) == (Interval(0, 10.0, 40.0),)


def test_literal_mode_stops_at_the_end_of_the_grid():
    assert only(mined([75.0], [65.0], [75.0], mode="literal", skip=9)) == (Interval(0, 60.0, 100.0),)
    assert only(mined([25.0], [35.0], [25.0], mode="literal", skip=9)) == (Interval(0, 0.0, 40.0),)


def test_literal_clauses_that_can_never_hold_are_dropped_and_counted():
    # the PP's branch below the base asks z < 20, x above the base asks z >= 60: possible only to the letter
    found = mined([75.0], [15.0], [95.0], mode="literal")
    assert found.clauses == ()
    assert found.never_true == 1


def test_bounds_are_plain_finite_floats_and_never_minus_zero():
    grid = (np.array([-10.0, -0.0, 5.0, 10.0]) + 0.0,)
    found = mine(explained([[7.0]], [[6.0]], [[9.0]]), domain_on(grid, base=-5.0), grid, 1, "faithful")
    for clause in found.clauses:
        for atom in clause.atoms:
            for bound in (atom.lo, atom.hi):
                assert bound is None or (type(bound) is float and np.isfinite(bound))
                assert bound != 0 or not np.signbit(bound)


def test_single_bounds_are_one_sided_and_appear_once():
    clauses = [Clause((Interval(0, 1.0, 2.0), Interval(1, None, 3.0, closed="right"))), Clause((Interval(0, 1.0),))]
    assert single_bounds(clauses) == (
        Clause((Interval(0, 1.0),)),
        Clause((Interval(0, None, 2.0),)),
        Clause((Interval(1, None, 3.0, closed="right"),)),
    )


def test_an_unknown_mode_and_a_negative_skip_are_refused():
    with pytest.raises(BadInput, match="'strict' is not one of faithful, literal"):
        mined([75.0], [72.0], mode="strict")
    with pytest.raises(BadInput, match="skip -1"):
        mined([75.0], [72.0], skip=-1)


@st.composite
def triplets_by_the_rules(draw):
    """Random rows with PPs between base and row and PNs beyond the row; rounding makes ties with the grid common."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows, width = draw(st.integers(1, 20)), draw(st.integers(1, 4))
    digits = draw(st.sampled_from([0, 1, 15]))
    x = (rng.normal(size=(rows, width)) * 3).round(digits) + 0.0
    base, lower, upper = np.median(x, axis=0), x.min(axis=0) - 1, x.max(axis=0) + 1
    p = np.where(rng.random(x.shape) < 0.5, base, base + (x - base) * rng.random(x.shape))
    p = np.clip(p, np.minimum(base, x), np.maximum(base, x))
    side = np.where(x == base, rng.choice([-1, 1], size=x.shape), np.sign(x - base))
    away = np.where(side > 0, upper - x, lower - x) * rng.random(x.shape)
    n = np.where(rng.random(x.shape) < 0.5, x, x + away)
    e = explained(x, p, n)
    has_pp, has_pn = rng.random(rows) < 0.8, (n != x).any(axis=1) & (rng.random(rows) < 0.8)
    e = Explanations(
        x,
        np.where(has_pp[:, None], p, x),
        np.where(has_pn[:, None], n, x),
        has_pp,
        has_pn,
        e.label,
        e.pn_label,
        e.pp_margin,
        e.pn_margin,
        e.pp_is_base,
        0,
        e.features,
    )
    kind, points = draw(st.sampled_from(["kde", "uniform"])), draw(st.integers(2, 12))
    domain = Domain(base, lower, upper, ("a",) * width)
    return e, domain, grid_of(x, lower, upper, points, kind), draw(st.integers(0, 5))


@settings(max_examples=200)
@given(triplets_by_the_rules())
def test_a_faithful_clause_is_true_at_x_and_its_pp_and_false_at_its_pn(problem):
    e, domain, grid, skip = problem
    found = mine(e, domain, grid, skip)
    assert found.never_true == 0
    assert len(set(found.clauses)) == len(found.clauses)
    for clause, rows in zip(found.clauses, found.sources, strict=True):
        for row in rows:
            assert clause_holds(clause, e.x[row].tolist())
            assert clause_holds(clause, e.pp[row].tolist())
            if e.has_pn[row]:
                assert not clause_holds(clause, e.pn[row].tolist())
        for atom in clause.atoms:
            assert atom.closed == "left"
            assert atom.lo is None or atom.hi is None or atom.lo < atom.hi
    from_rows = sorted(row for rows in found.sources for row in rows)
    assert len(from_rows) == len(set(from_rows)) == len(e.x) - found.always_true
    assert found.always_true <= (~e.has_pn).sum()


@settings(max_examples=100)
@given(triplets_by_the_rules())
def test_a_literal_clause_is_satisfiable_and_every_row_is_accounted_for(problem):
    e, domain, grid, skip = problem
    found = mine(e, domain, grid, skip, "literal")
    for clause in found.clauses:
        for atom in clause.atoms:
            assert atom.lo is None or atom.hi is None or atom.lo < atom.hi
    assert sum(map(len, found.sources)) + found.always_true + found.never_true == len(e.x)
    assert found.off_grid == 0
