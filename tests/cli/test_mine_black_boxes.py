"""`gbfl mine` with a black box from a file or a module: each kind is taken, and none is trusted that should not be."""

import pickle
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gbfl_compile.cli import main
from gbfl_compile.cli.start import FEATURES, loans
from gbfl_compile.learning.consistency import load_triplets
from gbfl_compile.tables.read import feature_matrix
from tests.cli.mining import SMALL, mined, refused, table


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "loans.csv").write_text(loans(200, seed=3))
    return tmp_path


def fitted():
    from sklearn.ensemble import RandomForestClassifier

    rows = table()
    x = feature_matrix(rows, FEATURES, "loans.csv")
    return RandomForestClassifier(10, random_state=0).fit(x, rows["default"].to_numpy(dtype=str)), x


@pytest.mark.parametrize("zipmap", [True, False])
def test_an_onnx_file_is_a_black_box(folder, capsys, zipmap):
    pytest.importorskip("onnxruntime")
    from skl2onnx import to_onnx

    model, x = fitted()
    graph = to_onnx(model, x[:1].astype(np.float32), options={"zipmap": zipmap})
    (folder / "forest.onnx").write_bytes(graph.SerializeToString())
    form, program = mined(capsys, "loans.csv", *SMALL, "--black-box", "forest.onnx", "--triplets", "t.npz")
    assert program.classes == ("no", "yes")
    assert form["black_box"]["kind"] == "onnx"
    assert form["black_box"]["name"] == "forest.onnx"
    triplets = load_triplets(folder / "t.npz")
    assert (triplets.label == model.predict(triplets.x)).all()
    assert "takes 8 features, the data has 7" in refused(
        capsys, "loans.csv", *SMALL, "--black-box", "forest.onnx", "--drop", "age"
    )
    (folder / "broken.onnx").write_bytes(b"nothing")
    assert "broken.onnx" in refused(capsys, "loans.csv", *SMALL, "--black-box", "broken.onnx")


@pytest.mark.parametrize("zipmap", [True, False])
def test_an_onnx_black_box_can_be_sent_to_another_process(folder, zipmap):
    pytest.importorskip("onnxruntime")
    from skl2onnx import to_onnx

    from gbfl_compile.learning.black_box.load import open_onnx

    model, x = fitted()
    graph = to_onnx(model, x[:1].astype(np.float32), options={"zipmap": zipmap})
    box = open_onnx(graph.SerializeToString(), Path("forest.onnx"), FEATURES, x)
    sent = pickle.loads(pickle.dumps(box))
    assert sent.classes_.tolist() == box.classes_.tolist() == ["no", "yes"]
    assert (sent.predict_proba(x) == box.predict_proba(x)).all()


def test_an_onnx_file_may_have_an_input_a_column(folder, capsys):
    pytest.importorskip("onnxruntime")
    from skl2onnx import to_onnx
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.tree import DecisionTreeClassifier

    rows = table()
    frame = rows[["income", "amount", "late_payments"]].astype(np.float32)
    taken = make_column_transformer(("passthrough", list(frame.columns)))
    model = make_pipeline(taken, DecisionTreeClassifier(max_depth=3, random_state=0))
    model.fit(frame, rows["default"].to_numpy(dtype=str))
    graph = to_onnx(model, frame[:1], options={"zipmap": False})
    (folder / "tree.onnx").write_bytes(graph.SerializeToString())
    mined(capsys, "loans.csv", *SMALL, "--black-box", "tree.onnx", "--triplets", "t.npz")
    triplets = load_triplets(folder / "t.npz")
    columns = [FEATURES.index(name) for name in frame.columns]
    assert (triplets.label == model.predict(pd.DataFrame(triplets.x[:, columns], columns=frame.columns))).all()


def test_a_function_of_a_module_is_a_black_box(folder, capsys):
    (folder / "scoring_of_ours.py").write_text(
        "import numpy as np\n\ndef risk(rows):\n    return (rows[:, 1] < 30000) * 0.8 + 0.1\n"
    )
    form, _ = mined(capsys, "loans.csv", *SMALL, "--black-box", "scoring_of_ours:risk")
    assert form["black_box"] == {"kind": "module", "name": "scoring_of_ours:risk", "sha256": None}
    assert form["test"]["consistency"]["fidelity"] > 95
    assert "No module named 'absent'" in refused(capsys, "loans.csv", *SMALL, "--black-box", "absent:risk")
    assert "AttributeError" in refused(capsys, "loans.csv", *SMALL, "--black-box", "scoring_of_ours:absent")


def test_a_pickle_is_opened_only_on_trust(folder, capsys):
    model, _ = fitted()
    (folder / "model.pkl").write_bytes(pickle.dumps(model))
    line = refused(capsys, "loans.csv", *SMALL, "--black-box", "model.pkl")
    assert "--trust-pickle" in line
    assert "runs whatever code" in line
    assert main(["mine", "loans.csv", *SMALL, "--black-box", "model.pkl", "--trust-pickle", "--quiet"]) == 0
    assert "runs whatever code" in capsys.readouterr().err


class Trap:
    def __reduce__(self):
        return (open, ("trapped", "w"))


def test_a_pickle_that_is_not_trusted_runs_nothing(folder, capsys):
    (folder / "model.pkl").write_bytes(pickle.dumps(Trap()))
    refused(capsys, "loans.csv", *SMALL, "--black-box", "model.pkl")
    assert not (folder / "trapped").exists()


def test_a_skops_file_is_a_black_box_of_types_that_are_known(folder, capsys):
    skops_io = pytest.importorskip("skops.io")
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    forest, x = fitted()
    line = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, table()["default"].to_numpy(dtype=str))
    (folder / "line.skops").write_bytes(skops_io.dumps(line))
    form, _ = mined(capsys, "loans.csv", *SMALL, "--black-box", "line.skops")
    assert form["black_box"]["kind"] == "skops"
    (folder / "forest.skops").write_bytes(skops_io.dumps(forest))
    command = ["loans.csv", *SMALL, "--black-box", "forest.skops"]
    message = refused(capsys, *command)
    assert "--trust-type sklearn.tree._tree.Tree" in message
    mined(capsys, *command, *message.partition("allow them: ")[2].split())
    (folder / "broken.skops").write_bytes(b"nothing")
    assert "skops cannot load it" in refused(capsys, "loans.csv", *SMALL, "--black-box", "broken.skops")
