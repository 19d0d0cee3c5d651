"""`gbfl demo`: files where they were promised, a module a bare interpreter runs, no difference anywhere."""

import json
import subprocess
import sys

import numpy as np
import pytest

from gbfl_compile.backends import folder_name
from gbfl_compile.cli import main
from gbfl_compile.cli.demo import TARGETS
from gbfl_compile.ir.digest import digest
from gbfl_compile.ir.json import load
from gbfl_compile.learning.explain.triplets import load_triplets


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "d"
    run = subprocess.run(
        [sys.executable, "-m", "gbfl_compile", "demo", "--out", out, "--json"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return out, json.loads(run.stdout), run.stderr


def test_it_leaves_what_it_promised(demo):
    out, form, _ = demo
    emitted = {folder_name(target) for target in TARGETS if target not in form["not_emitted"]}
    assert {"python", "c", "sql-sqlite"} <= emitted
    assert {path.name for path in out.iterdir()} == {"program.json", "triplets.npz", *emitted}
    assert [path.name for path in (out / "python").iterdir()] == ["model.py"]
    with np.load(out / "triplets.npz", allow_pickle=False) as archive:
        assert sorted(archive.files) == sorted(["x", "pp", "pn", "has_pp", "has_pn", "label", "features"])


def test_nothing_differs(demo):
    out, form, _ = demo
    assert form["verdict"] == "equal"
    assert form["program"] == digest(load(out / "program.json"))
    assert form["classifier"]["different"] == 0
    assert form["classifier"]["rows"] > 1000
    assert form["targets"]["python"]["execution"]["different"] == 0
    consistency = form["targets"]["python"]["consistency"]
    assert consistency["source"] == consistency["target"] == form["test"]["consistency"]


def test_the_triplets_are_the_black_boxes(demo):
    out, form, _ = demo
    triplets = load_triplets(out / "triplets.npz")
    assert set(triplets.label.tolist()) == {"benign", "malignant"}
    assert len(triplets.x) == form["test"]["consistency"]["fidelity_of"]
    assert triplets.features == load(out / "program.json").features


def test_a_bare_interpreter_scores_a_row(demo):  # -B: compiled code left beside an artifact is not read
    out, _, _ = demo
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import model; "
        "print(model.predict([10.0] * 30), model.predict({name: 1.0 for name in model.FEATURES}))"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", code, out / "python"], capture_output=True, text=True, check=True
    )
    assert set(run.stdout.split()) <= {"benign", "malignant"}


def test_checking_it_again_says_the_same(demo, capsys):
    out, form, _ = demo
    assert main(["check", str(out / "program.json"), str(out), "--triplets", str(out / "triplets.npz"), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["targets"]["python"]["consistency"] == form["targets"]["python"]["consistency"]


def test_the_same_seed_gives_the_same_program(demo, tmp_path, capsys):
    out, form, _ = demo
    assert main(["demo", "--out", str(tmp_path / "again")]) == 0
    printed = capsys.readouterr().out
    assert (tmp_path / "again/program.json").read_bytes() == (out / "program.json").read_bytes()
    assert (tmp_path / "again/python/model.py").read_bytes() == (out / "python/model.py").read_bytes()
    assert "IF " in printed
    assert "C_TB" in printed
    assert f"0 different of {form['classifier']['rows']} rows" in printed


def test_what_else_lies_in_the_folder_is_no_business_of_the_demo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photographs").mkdir()
    assert main(["demo", "--out", ".", "--json"]) == 0
    assert (tmp_path / "python/model.py").is_file()


def test_every_threshold_one_ulp_off_is_caught(demo, tmp_path):
    from gbfl_compile.backends.python import load as load_module
    from gbfl_compile.checking.run import compare, expectation
    from tests.checking.test_run import slips

    out, _, _ = demo
    expected = expectation(load(out / "program.json"))
    text = (out / "python/model.py").read_text()
    made = [wrong for kind in ("up", "down", "operator", "leaf") for wrong in slips(text, kind)]
    assert len(made) > 80
    for wrong in made:
        (tmp_path / "model.py").write_text(wrong)
        assert compare(expected, load_module(tmp_path / "model.py")).verdict == "different"
