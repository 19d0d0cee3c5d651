"""Domains are checked; explanations come back from disk to the bit."""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.learning.black_box import as_black_box
from gbfl_compile.learning.explain import Domain, Explanations, concatenate, domain_of, infer_kinds
from gbfl_compile.learning.explain.greedy import Greedy, explain_greedily
from gbfl_compile.version import install_command
from tests.learning.explain.explaining import assert_same

X = np.random.default_rng(1).normal(size=(20, 2))


def test_the_domain_is_the_median_and_the_training_range():
    domain = domain_of(X)
    assert np.array_equal(domain.base, np.median(X, axis=0))
    assert np.array_equal(domain.lower, X.min(axis=0))
    assert np.array_equal(domain.upper, X.max(axis=0))
    assert domain.features == ("x0", "x1")


def test_a_domain_may_be_passed_in():
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
        ({"kinds": {"x1": "integer"}, "base": [0, 0.5]}, "feature x1: base 0.5 is not a value of its kind, integer"),
        ({"kinds": {0: (5, 6)}}, r"feature x0: no value of its kind, \(5.0, 6.0\), lies in"),
        ({"kinds": {0: "int"}}, "feature x0: kind 'int' is neither"),
        ({"kinds": {0: ()}}, "allowed values must be finite numbers"),
        ({"kinds": ["float"]}, "kinds needs one entry for each of the 2 features"),
        ({"immutable": ["age"]}, "no feature 'age' among x0, x1"),
        ({"immutable": [2]}, "no feature 2 among"),
        ({"directions": {"x0": "left"}}, "direction 'left' is not one of both, up, down"),
    ],
)
def test_an_impossible_domain_is_refused_by_name(options, says):
    with pytest.raises(BadInput, match=says):
        domain_of(X, **options)


def test_bounds_and_a_median_move_to_values_of_the_kind():
    x = np.array([[0.0, 1.0, 0.5], [1.0, 3.0, 0.5], [2.0, 9.0, 7.5], [3.0, 9.0, 9.5]])
    domain = domain_of(x, kinds=["integer", (1, 3, 9), "integer"])
    assert domain.base.tolist() == [2.0, 3.0, 4.0]
    assert (domain.lower[2], domain.upper[2]) == (1.0, 9.0)


def test_whole_columns_become_integers_only_on_request():
    x = np.array([[0.0, 1.5], [1.0, 2.0]])
    assert infer_kinds(x) == ("integer", "float")
    assert domain_of(x).kinds == ()
    assert domain_of(x, kinds=infer_kinds(x)).kinds == ("integer", "float")


def test_a_domain_made_by_hand_is_checked_when_it_is_used():
    box = as_black_box(lambda rows: rows[:, 0] > 0, X)
    wrong = Domain(np.array([0.5, 0.5]), np.zeros(2), np.ones(2), ("a", "b"), kinds=("integer", "float"))
    with pytest.raises(BadInput, match=r"feature a: base 0\.5 is not a value of its kind"):
        explain_greedily(box, X, wrong)


def explained(rows=X, **how):
    box = as_black_box(lambda rows: 1 / (1 + np.exp(-3 * rows[:, 0] - rows[:, 1])), X)
    names = ("petal width (cm)", "größe\0")
    return explain_greedily(box, rows, domain_of(X, features=names), Greedy(**how))


@pytest.mark.parametrize("ending", ["npz", "parquet"])
def test_explanations_come_back_to_the_bit(tmp_path, ending):
    e = explained(max_queries=300)
    assert e.not_reached > 0
    e = replace(e, x=np.where(np.arange(40).reshape(20, 2) == 3, -0.0, e.x))
    e.save(tmp_path / f"e.{ending}")
    back = Explanations.load(tmp_path / f"e.{ending}")
    assert_same(e, back)
    assert np.array_equal(np.signbit(e.x), np.signbit(back.x))
    none = explained(X[:0])
    none.save(tmp_path / f"none.{ending}")
    assert_same(none, Explanations.load(tmp_path / f"none.{ending}"))


def test_a_file_that_is_not_explanations_is_refused_by_what_is_wrong(tmp_path):
    import pyarrow.parquet

    e = explained()
    with pytest.raises(BadInput, match=r"use .parquet or .npz"):
        e.save(tmp_path / "e.csv")
    for ending in ("npz", "parquet"):
        broken = tmp_path / f"broken.{ending}"
        e.save(broken)
        broken.write_bytes(broken.read_bytes()[:-40])
        with pytest.raises(BadInput, match=f"broken.{ending}"):
            Explanations.load(broken)
        with pytest.raises(BadInput, match="No such file"):
            Explanations.load(tmp_path / f"absent.{ending}")
    e.save(tmp_path / "e.npz")
    arrays = dict(np.load(tmp_path / "e.npz"))
    for change, says in (
        ({"pp": arrays["pp"][:3]}, r"pp has shape \(3, 2\) where \(20, 2\)"),
        ({"has_pp": arrays["label"]}, "has_pp is of type int64"),
        ({"pn": np.full((20, 2), np.nan)}, "pn holds a value that is not a finite"),
        ({"extra": arrays["label"]}, "an array 'extra' that explanations do not have"),
        ({"about": np.array("{}")}, "does not say it holds"),
    ):
        np.savez(tmp_path / "wrong.npz", **(arrays | change))
        with pytest.raises(BadInput, match=says):
            Explanations.load(tmp_path / "wrong.npz")
    e.save(tmp_path / "e.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "e.parquet")
    pyarrow.parquet.write_table(table.drop_columns(["has_pn"]), tmp_path / "wrong.parquet")
    with pytest.raises(BadInput, match="lacks the array 'has_pn'"):
        Explanations.load(tmp_path / "wrong.parquet")
    pyarrow.parquet.write_table(table.replace_schema_metadata(None), tmp_path / "wrong.parquet")
    with pytest.raises(BadInput, match="does not say it holds"):
        Explanations.load(tmp_path / "wrong.parquet")


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(CannotRun, match=re.escape(install_command("parquet"))):
        explained().save(tmp_path / "e.parquet")


def test_concatenated_explanations_are_the_whole():
    assert_same(concatenate([explained(X[:7]), explained(X[7:])]), explained())
    with pytest.raises(BadInput, match="no explanations"):
        concatenate([])
    with pytest.raises(BadInput, match="explanations 1 have features"):
        concatenate([explained(), replace(explained(), features=("a", "b"))])
