"""Triplets are stored whole and read strictly."""

import numpy as np
import pytest

from gbfl_compile.errors import BadInput
from gbfl_compile.learning.black_box import as_black_box
from gbfl_compile.learning.consistency import load_triplets, save_triplets
from gbfl_compile.learning.explain import domain_of, triplets_of
from gbfl_compile.learning.explain.greedy import explain_greedily

X = np.random.default_rng(1).normal(size=(20, 2))


@pytest.fixture
def triplets():
    box = as_black_box(lambda rows: 1 / (1 + np.exp(-3 * rows[:, 0])), X)
    explanations = explain_greedily(box, X, domain_of(X, features=["größe", "b"]))
    return triplets_of(explanations, np.array(["no", "yes"]))


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
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match=r"cannot be written|is a folder"):
        save_triplets(tmp_path / "file" / "t.npz", triplets)
    (tmp_path / "folder").mkdir()
    with pytest.raises(BadInput, match=r"cannot be written|is a folder"):
        save_triplets(tmp_path / "folder", triplets)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


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
        (lambda a: a.update(label=a["label"].astype(object)), "not an NPZ file of triplets"),
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
    with pytest.raises(BadInput, match="not an NPZ file of triplets"):
        load_triplets(tmp_path / "one.npy")
    with pytest.raises(BadInput, match="No such file"):
        load_triplets(tmp_path / "none.npz")
