"""Domains are checked, triplets are stored whole and read strictly."""

import numpy as np
import pytest

from gbfl_compile.errors import BadInput
from gbfl_compile.learn.black_box import as_black_box
from gbfl_compile.learn.explanations import domain_of, load_triplets, save_triplets, triplets_of
from gbfl_compile.learn.greedy import explain_greedily

X = np.random.default_rng(1).normal(size=(20, 2))


@pytest.fixture
def triplets():
    box = as_black_box(lambda rows: 1 / (1 + np.exp(-3 * rows[:, 0])), X)
    found = explain_greedily(box, X, domain_of(X, features=["größe", "b"]))
    return triplets_of(found, np.array(["no", "yes"]))


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


def test_triplets_come_back_as_they_were(tmp_path, triplets):
    save_triplets(tmp_path / "t.npz", triplets)
    back = load_triplets(tmp_path / "t.npz")
    for name in ("x", "pp", "pn", "has_pp", "has_pn", "label"):
        assert np.array_equal(getattr(back, name), getattr(triplets, name)), name
    assert back.features == ("größe", "b")
    assert set(back.label.tolist()) == {"no", "yes"}
    with np.load(tmp_path / "t.npz", allow_pickle=False) as archive:
        assert archive.files == ["x", "pp", "pn", "has_pp", "has_pn", "label", "features"]


def test_a_failed_write_leaves_nothing_behind(tmp_path, triplets):
    with pytest.raises(BadInput, match="cannot write"):
        save_triplets(tmp_path / "no such folder" / "t.npz", triplets)
    (tmp_path / "folder").mkdir()
    with pytest.raises(BadInput, match="cannot write"):
        save_triplets(tmp_path / "folder", triplets)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def arrays(triplets):
    names = ("x", "pp", "pn", "has_pp", "has_pn", "label")
    return {name: getattr(triplets, name) for name in names} | {"features": np.array(triplets.features)}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda a: a.pop("pn"), "lacks the array 'pn'"),
        (lambda a: a.update(extra=np.ones(3)), "array 'extra'"),
        (lambda a: a.update(pp=a["pp"][:, :1]), "pp has shape"),
        (lambda a: a.update(has_pn=a["has_pn"][1:]), "has_pn has shape"),
        (lambda a: a.update(has_pp=a["has_pp"].astype(float)), "has_pp is of type"),
        (lambda a: a.update(label=a["label"].astype(object)), "not an NPZ of triplets"),
        (lambda a: a.update(x=a["x"] * np.nan), "x holds a value that is not a finite number"),
    ],
)
def test_a_file_that_is_not_triplets_is_refused_by_what_is_wrong(tmp_path, triplets, change, says):
    stored = arrays(triplets)
    change(stored)
    np.savez(tmp_path / "t.npz", **stored)
    with pytest.raises(BadInput, match=says):
        load_triplets(tmp_path / "t.npz")


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 broken", b"\x93NUMPY broken"])
def test_a_file_of_something_else_is_refused(tmp_path, content):
    (tmp_path / "t.npz").write_bytes(content)
    with pytest.raises(BadInput, match=r"t\.npz"):
        load_triplets(tmp_path / "t.npz")


def test_a_single_array_and_a_missing_file_are_refused(tmp_path):
    np.save(tmp_path / "one.npy", X)
    with pytest.raises(BadInput, match="one array"):
        load_triplets(tmp_path / "one.npy")
    with pytest.raises(BadInput, match="no such file"):
        load_triplets(tmp_path / "none.npz")
