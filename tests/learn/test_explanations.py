"""Domains are checked."""

import numpy as np
import pytest

from gbfl_compile.errors import BadInput
from gbfl_compile.learn.explanations import domain_of

X = np.random.default_rng(1).normal(size=(20, 2))


def test_the_domain_is_the_median_and_the_training_range():
    domain = domain_of(X)
    assert np.array_equal(domain.base, np.median(X, axis=0))
    assert np.array_equal(domain.lower, X.min(axis=0))
    assert np.array_equal(domain.upper, X.max(axis=0))
    assert domain.features == ("x0", "x1")


def test_a_domain_may_be_given():
    domain = domain_of(X, base=[0, 1], bounds=(-5, [5, 6]))
    assert domain.base.tolist() == [0, 1]
    assert domain.lower.tolist() == [-5, -5]
    assert domain.upper.tolist() == [5, 6]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"base": [0, 99]}, "feature x1: base 99.0 lies outside"),
        ({"bounds": (3, -3)}, "feature x0: lower bound 3.0 is above"),
        ({"base": [1, 2, 3]}, "for each of the 2 features"),
        ({"bounds": 7}, "pair"),
        ({"base": [0, np.nan]}, "base of feature 1 is not a finite number"),
    ],
)
def test_a_domain_that_cannot_be_is_refused_by_name(options, says):
    with pytest.raises(BadInput, match=says):
        domain_of(X, **options)
