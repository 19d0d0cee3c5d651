"""Grid points divide the density evenly, on every kind of column."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import gaussian_kde

from gbfl_compile.errors import BadInput
from gbfl_compile.learning.clauses import grid_of, kde_quantiles, scott_bandwidth

RNG = np.random.default_rng(0)
COLUMNS = {
    "normal": RNG.normal(size=500),
    "discrete": RNG.integers(0, 3, size=500).astype(float),
    "zero-heavy": np.where(RNG.random(500) < 0.9, 0.0, RNG.exponential(1000, 500)),
    "heavy-tailed": RNG.standard_cauchy(500),
    "two far clusters": np.concatenate((RNG.normal(0, 1, 250), RNG.normal(1e6, 1, 250))),
    "tiny": RNG.normal(size=500) * 1e-200,
    "huge": RNG.normal(size=500) * 1e150,
    "two rows": np.array([1.0, 2.0]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_resolution_15_each_grid_interval_has_the_same_mass_renormalised_on_the_bounds(name):
    values = COLUMNS[name]
    lower, upper = values.min(), values.max()
    points = kde_quantiles(values, lower, upper, 10)
    away = (np.concatenate(([lower], points, [upper]))[:, None] - values) / scott_bandwidth(values)
    below = ndtr(away).mean(axis=1)
    share = (below - below[0]) / (below[-1] - below[0])
    # 1e-6 of the mass: root finding stops at 1e-12, float64 sums of 500 kernels lose the rest
    assert np.abs(share - np.arange(11) / 10).max() < 1e-6


def test_resolution_15_the_bandwidth_is_scotts():
    values = COLUMNS["normal"]
    kde = gaussian_kde(values, bw_method="scott")
    # the same formula summed in another order: equal to a few units in the last place
    assert abs(scott_bandwidth(values) - np.sqrt(kde.covariance[0, 0])) < 1e-14


def test_resolution_15_equal_points_are_merged_and_a_constant_column_has_one():
    x = np.column_stack((np.full(50, 7.0), np.arange(50.0)))
    grid = grid_of(x, x.min(axis=0), x.max(axis=0), 10)
    assert grid[0].tolist() == [7.0]
    assert len(grid[1]) == 10
    wide = grid_of(x, np.array([0.0, 0.0]), np.array([9.0, 49.0]), 10)
    assert wide[0].tolist() == [0.0, 7.0, 9.0]


def test_bounds_without_any_mass_are_divided_evenly():
    values = RNG.normal(size=100)
    assert np.array_equal(kde_quantiles(values, 1e6, 1e6 + 4, 4), [1e6 + 1, 1e6 + 2, 1e6 + 3])


def test_a_uniform_grid_is_equally_wide():
    x = np.array([[0.0], [1.0], [9.0]])
    assert grid_of(x, np.zeros(1), np.array([9.0]), 4, "uniform")[0].tolist() == [0, 3, 6, 9]


def test_many_distinct_values_are_pooled_without_moving_the_grid():
    values = np.random.default_rng(3).normal(size=60_000)
    points = kde_quantiles(values, values.min(), values.max(), 8)
    ends = np.concatenate(([values.min()], points, [values.max()]))
    below = np.array([ndtr((end - values) / scott_bandwidth(values)).mean() for end in ends])
    share = (below - below[0]) / (below[-1] - below[0])
    # pooling three neighbours into their mean moves the distribution in second order only
    assert np.abs(share - np.arange(9) / 8).max() < 1e-6


@settings(max_examples=100)
@given(
    st.lists(st.floats(-1e9, 1e9, allow_subnormal=False), min_size=1, max_size=40),
    st.integers(2, 30),
    st.sampled_from(["kde", "uniform", "quantile"]),
)
def test_a_grid_rises_from_bound_to_bound(values, points, kind):
    x = np.array(values)[:, None]
    (grid,) = grid_of(x, x.min(axis=0), x.max(axis=0), points, kind)
    assert grid[0] == x.min()
    assert grid[-1] == x.max()
    assert (np.diff(grid) > 0).all()
    assert len(grid) <= points
    assert not np.signbit(grid[grid == 0]).any()


def test_an_impossible_grid_is_refused():
    x = np.zeros((3, 1))
    with pytest.raises(BadInput, match="grid_points 1"):
        grid_of(x, x[0], x[0], 1)
    with pytest.raises(BadInput, match="'spline' is not one of kde, uniform, quantile, nor cuts"):
        grid_of(x, x[0], x[0], 5, "spline")


def test_a_quantile_grid_divides_the_rows_between_the_bounds_evenly():
    x = np.arange(101.0)[:, None]
    assert grid_of(x, x[0], x[-1], 5, "quantile")[0].tolist() == [0, 25, 50, 75, 100]
    assert grid_of(x, np.array([60.0]), np.array([100.0]), 3, "quantile")[0].tolist() == [60, 80, 100]
    assert grid_of(x, np.array([200.0]), np.array([204.0]), 5, "quantile")[0].tolist() == [200, 201, 202, 203, 204]


def test_own_cuts_replace_the_points_between_the_bounds_and_the_rest_has_a_kde_grid():
    x = np.random.default_rng(1).uniform(0, 10, size=(100, 2))
    lower, upper = np.zeros(2), np.full(2, 10.0)
    both = grid_of(x, lower, upper, 6, [[5, 2, 2, 11, -1], []])
    assert [points.tolist() for points in both] == [[0, 2, 5, 10], [0, 10]]
    one = grid_of(x, lower, upper, 6, {1: np.array([7.5])})
    assert one[1].tolist() == [0, 7.5, 10]
    assert np.array_equal(one[0], grid_of(x, lower, upper, 6)[0])


@pytest.mark.parametrize(
    ("cuts", "says"),
    [
        ([[1.0]], "cuts for 1 features, the data has 2"),
        ({2: [1.0]}, "cuts for feature 2: features are counted from 0 to 1"),
        ({"age": [1.0]}, "cuts for feature 'age'"),
        ({0: ["a"]}, "cuts of feature 0 are not numbers"),
        ({0: [np.nan]}, "feature 0 must be a flat list of finite"),
        ([1.0, 2.0], "feature 0 must be a flat list"),
    ],
)
def test_impossible_own_cuts_are_refused(cuts, says):
    x = np.zeros((3, 2))
    with pytest.raises(BadInput, match=says):
        grid_of(x, x[0], x[0] + 5, 5, cuts)


def credit_like(rows):
    """Columns as a bank has them: mostly zeros with a long tail, codes, a constant, money, and no moments at all."""
    rng = np.random.default_rng(7)
    return np.column_stack(
        (
            np.where(rng.random(rows) < 0.6, 0.0, rng.lognormal(8, 2, rows).round()),
            rng.choice([-2.0, -1.0, 0.0, 1.0, 2.0, 8.0], rows, p=[0.1, 0.2, 0.5, 0.15, 0.04, 0.01]),
            np.full(rows, 3.0),
            rng.integers(1, 100, rows) * 10_000.0,
            rng.standard_cauchy(rows),
            np.where(np.arange(rows) == 0, 1e12, 0.0),
        )
    )


@pytest.mark.parametrize("rows", [50, 5000])
def test_kde_holds_on_columns_of_a_bank(rows):
    x = credit_like(rows)
    grid = grid_of(x, x.min(axis=0), x.max(axis=0), 30)
    for j, points in enumerate(grid):
        values, h = x[:, j], scott_bandwidth(x[:, j])
        if h == 0:
            assert points.tolist() == [3.0]
            continue
        assert len(points) == 30
        below = np.array([ndtr((point - values) / h).mean() for point in points])
        share = (below - below[0]) / (below[-1] - below[0])
        # 1e-6 of the mass, as above; the float64 nearest to a root may itself miss by more only where h is tiny
        assert np.abs(share - np.arange(30) / 29).max() < 1e-6
