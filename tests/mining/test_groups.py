"""Groups that are treated differently are found and counted right; chance among many groups is not taken for a difference."""

import numpy as np
import pytest

from gbfl_compile.ir.kinds import Codebook
from gbfl_compile.ir.nodes import Clause, Interval, OneOf, Program, leaf, split
from gbfl_compile.mining.summary import FEWEST_ROWS, compare_groups, score_interval

PROGRAM = Program(
    ("age", "job", "noise", "vip"),
    ("no", "yes"),
    (Clause((OneOf(1, ("clerk",)),)),),
    split(0, leaf(0.1, 0.9), leaf(0.9, 0.1)),
    kinds=("number", "category", "number", "boolean"),
)
BOOK = Codebook(((), ("clerk", "nurse", "cook"), (), ()))


def rows(seed, count=900):
    draw = np.random.default_rng(seed)
    job = draw.integers(1, 4, count).astype(float)
    age = np.where(job == 1, draw.integers(18, 30, count), draw.integers(25, 70, count)).astype(float)
    age[draw.random(count) < 0.1] = np.nan
    x = np.column_stack([age, job, draw.normal(size=count), draw.integers(0, 2, count).astype(float)])
    return x, np.where(job == 1, "yes", "no")


def test_counts_are_those_of_the_rows():
    x, y = rows(1)
    y[:300] = "no"
    form = compare_groups(PROGRAM, x, y, BOOK)
    group = next(each for each in form["groups"] if each["group"] == "job is clerk")
    clerk, yes = x[:, 1] == 1, y == "yes"
    assert group["rows"] == clerk.sum()
    assert group["class"] == 1
    assert group["answers"]["counts"] == [clerk.sum(), 0]
    assert group["answers"]["of"] == [clerk.sum(), (~clerk).sum()]
    assert group["true"] == [(yes & clerk).sum(), (yes & ~clerk).sum()]
    assert group["errors"]["counts"] == [(clerk & ~yes).sum(), 0]
    assert group["tested"] is True
    assert form["rows"] == 900


def test_a_difference_through_another_feature_is_found_and_called_that():
    form = compare_groups(PROGRAM, *rows(2), BOOK)
    ages = [each for each in form["groups"] if each["feature"] == "age"]
    assert ages
    assert not any(each["tested"] for each in ages)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_only_chance_is_not_reported(seed):
    form = compare_groups(PROGRAM, *rows(seed), BOOK)
    assert not [each for each in form["groups"] if each["feature"] in ("noise", "vip")]


def test_small_groups_are_not_compared():
    x, y = rows(3)
    x[:, 1] = 2
    x[: FEWEST_ROWS - 1, 1] = 1
    assert not [each for each in compare_groups(PROGRAM, x, y, BOOK)["groups"] if each["feature"] == "job"]
    assert compare_groups(PROGRAM, x[:5], y[:5], BOOK)["groups"] == []


def test_quarters_of_a_number_share_no_row_and_miss_none():
    program = Program(("a",), ("no", "yes"), (Clause((Interval(0, 50.0),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)))
    x = np.arange(100.0).reshape(-1, 1)
    form = compare_groups(program, x, np.where(x[:, 0] >= 50, "yes", "no"))
    assert form["compared"] == 4
    assert sum(each["rows"] for each in form["groups"]) == 100


@pytest.mark.parametrize(("count", "total"), [(0, 20), (20, 20), (7, 31)])
def test_an_interval_of_a_share_holds_the_share(count, total):
    low, high = score_interval(count, total, 1.96)
    assert 0 <= low <= count / total <= high <= 1
