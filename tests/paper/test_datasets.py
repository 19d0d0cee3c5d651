"""The paper's data sets: loaded from a folder, made here, or refused with the reason."""

import gzip

import numpy as np
import pytest
import sklearn.datasets
from sklearn.datasets import load_breast_cancer

from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.paper.datasets import SOURCES, load_dataset, waveform


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    def refuse(**requests):
        raise OSError("no network here")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", refuse)


def written(folder, name, text):
    (folder / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    return folder


def test_wdbc_needs_no_folder():
    data = load_dataset("wdbc")
    assert data.x.shape == (569, 30)
    assert (data.x == load_breast_cancer().data).all()
    assert sorted(set(data.y.tolist())) == ["B", "M"]
    assert (data.y == "M").sum() == 212
    assert (data.grid_points, data.skip, data.widths) == (10, 4, (20, 10))
    assert "worst_concave_points" in data.features


def test_waveform_is_breimans_definition():
    x, y = waveform(60_000, seed=1)
    assert x.shape == (60_000, 21)
    assert np.abs(np.bincount(y) / 60_000 - 1 / 3).max() < 0.01
    wave = {top: np.maximum(6 - np.abs(np.arange(1, 22) - top), 0) for top in (11, 15, 7)}
    for label, (one, other) in enumerate([(15, 7), (11, 7), (11, 15)]):
        rows = x[y == label]
        # the mean of a mixture with a uniform share is the mean of its two waves; 1/140 is a standard error
        assert np.abs(rows.mean(axis=0) - (wave[one] + wave[other]) / 2).max() < 0.06
        spread = 1 + (wave[one] - wave[other]) ** 2 / 12
        assert np.abs(rows.var(axis=0) / spread - 1).max() < 0.06


def test_the_same_seed_gives_the_same_waveform():
    once, again, other = load_dataset("waveform"), load_dataset("waveform"), load_dataset("waveform", seed=1)
    assert (once.x == again.x).all()
    assert not (once.x == other.x).all()
    assert "generated with seed 1" in other.origin
    assert once.x.shape == (5000, 21)


def test_the_folders_own_file_comes_first_and_ids_and_constants_go(tmp_path):
    sky = written(
        tmp_path, "skyserver", "objid,ra,rerun,class,redshift,specobjid\n1,10.5,301,STAR,0.0,7\n2,11,301,QSO,1,8\n"
    )
    data = load_dataset("skyserver", sky)
    assert data.features == ("ra", "redshift")
    assert data.x.tolist() == [[10.5, 0.0], [11.0, 1.0]]
    assert data.y.tolist() == ["STAR", "QSO"]
    assert data.origin == "file skyserver.csv.gz"
    wdbc = written(tmp_path, "wdbc", "mean_radius,diagnosis\n1.5,M\n2.5,B\n")
    assert load_dataset("wdbc", wdbc).x.tolist() == [[1.5], [2.5]]
    assert load_dataset("waveform", wdbc).x.shape == (5000, 21)


def test_an_unavailable_set_says_why(tmp_path):
    with pytest.raises(CannotRun, match=r"no --data folder was given, and OpenML .* set 1120: no network here"):
        load_dataset("magic")
    with pytest.raises(CannotRun, match=r"has no skyserver.csv.gz, and no copy of it is known on OpenML"):
        load_dataset("skyserver", tmp_path)


def test_sets_that_the_folder_lacks_come_from_openml(monkeypatch, tmp_path):
    import pandas as pd

    requests = []

    def answer(**files):
        requests.append(files["data_id"])
        data = pd.DataFrame({"preg": [1, 2], "plas": [3, 4]})
        return sklearn.utils.Bunch(data=data, target=pd.Series(["no", "yes"], dtype="category"))

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", answer)
    data = load_dataset("diabetes", tmp_path)
    assert requests == [37]
    assert data.y.tolist() == ["no", "yes"]
    assert data.x.tolist() == [[1.0, 3.0], [2.0, 4.0]]


def test_a_broken_file_is_refused_by_name(tmp_path):
    with pytest.raises(BadInput, match="is not one of wdbc"):
        load_dataset("iris")
    with pytest.raises(BadInput, match="is not a folder"):
        load_dataset("wdbc", tmp_path / "absent")
    with pytest.raises(BadInput, match="no column 'Outcome'"):
        load_dataset("diabetes", written(tmp_path, "diabetes", "a,b\n1,2\n"))
    with pytest.raises(BadInput, match="not a number"):
        load_dataset("diabetes", written(tmp_path, "diabetes", "a,Outcome\nhello,1\n"))
    with pytest.raises(BadInput, match="missing or infinite"):
        load_dataset("diabetes", written(tmp_path, "diabetes", "a,Outcome\n,1\n2,0\n"))
    (tmp_path / "magic.csv.gz").write_bytes(b"not gzip")
    with pytest.raises(BadInput, match=r"magic.csv.gz: cannot be read"):
        load_dataset("magic", tmp_path)


def test_all_six_sets_have_the_appendix_settings():
    assert list(SOURCES) == ["wdbc", "diabetes", "waveform", "magic", "skyserver", "credit_card"]
    assert {name: (s.grid_points, s.skip) for name, s in SOURCES.items()} == {
        "wdbc": (10, 4),
        "diabetes": (10, 2),
        "waveform": (20, 3),
        "magic": (30, 3),
        "skyserver": (30, 3),
        "credit_card": (30, 3),
    }
