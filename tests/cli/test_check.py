"""`gbfl check`: its output, exit codes, JSON and certificates."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gbfl_compile.checking.prove import certificate_verifier
from gbfl_compile.cli import main
from gbfl_compile.ir.json import digest, load, to_json
from gbfl_compile.learning.consistency import Triplets, save_triplets
from tests.cli.samples import PROGRAM, files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.json").write_text(to_json(PROGRAM))
    return tmp_path


def test_check_says_equal(folder, capsys):
    main(["compile", "p.json", "--to", "python", "-o", "build"])
    assert main(["check", "p.json", "build"]) == 0
    out = capsys.readouterr().out
    assert "verdict: equal" in out
    assert "0 different of" in out
    assert "proved" in out


def test_check_says_different_and_exits_1(folder, capsys):
    main(["compile", "p.json", "--to", "python", "-o", "build"])
    module = folder / "build/python/model.py"
    module.write_text(module.read_text().replace("18.0 <= age", "18.0 < age"))
    assert main(["check", "p.json", "build"]) == 1
    out = capsys.readouterr().out
    assert "verdict: different" in out
    assert '"age": 18.0' in out


def verdict_json(capsys, *arguments):
    capsys.readouterr()
    code = main(["check", *arguments])
    return code, json.loads(capsys.readouterr().out)


def test_check_json_has_the_promised_shape(folder, capsys):
    main(["compile", "p.json", "--to", "python", "-o", "build"])
    x = np.array([[30.0, 1.0], [70.0, 1.0]])
    flags = np.array([True, False])
    save_triplets(folder / "t.npz", Triplets(x, x, x, flags, flags, np.array(["yes", "no"]), PROGRAM.features))
    pd.DataFrame(x, columns=PROGRAM.features).to_csv("d.csv", index=False)
    code, form = verdict_json(capsys, "p.json", "build", "--data", "d.csv", "--triplets", "t.npz", "--json")
    assert code == 0
    assert list(form) == ["verdict", "program", "targets", "unwitnessed"]
    assert form["unwitnessed"] == []
    assert form["verdict"] == "equal"
    assert form["program"] == digest(PROGRAM)
    target = form["targets"]["python"]
    assert target["verdict"] == "equal"
    assert target["proof"]["answer"] == "proved"
    assert {aspect for way in target["proof"]["readings"] for aspect in way["aspects"]} >= {"labels"}
    assert target["digest"] == digest(PROGRAM)
    assert target["digest_matches"] is True
    assert set(target["execution"]) == {"engine", "rows", "different", "first"}
    assert target["execution"]["different"] == 0
    assert target["execution"]["engine"].startswith("CPython 3.")
    assert target["consistency"]["source"] == target["consistency"]["target"]
    assert target["consistency"]["source"]["c_pp_right"] == 1
    bare_code, bare = verdict_json(capsys, "p.json", "build", "--json")
    assert bare_code == 0
    assert bare["targets"]["python"]["consistency"] == "not run"
    assert target["execution"]["rows"] == bare["targets"]["python"]["execution"]["rows"] + 2 + 6


@pytest.mark.parametrize(
    "arguments",
    [
        ["p.json", "build", "--json", "v.json"],
        ["--json", "v.json", "p.json", "build"],
        ["--json=v.json", "p.json", "build"],
    ],
)
def test_check_writes_its_json_to_a_file(folder, capsys, arguments):
    main(["compile", "p.json", "--to", "python", "-o", "build"])
    assert main(["check", *arguments]) == 0
    assert json.loads((folder / "v.json").read_text())["verdict"] == "equal"
    assert load(folder / "p.json") == PROGRAM


def test_check_json_before_the_arguments_is_a_flag(folder, capsys):
    main(["compile", "p.json", "--to", "python", "-o", "build"])
    code, form = verdict_json(capsys, "--json", "p.json", "build")
    assert (code, form["verdict"]) == (0, "equal")
    assert load(folder / "p.json") == PROGRAM


def test_an_unknown_folder_is_not_run_and_exits_3(folder, capsys):
    main(["compile", "p.json", "--to", "python", "-o", "build"])
    (folder / "build/fortran").mkdir()
    (folder / "build/python/__pycache__").mkdir()
    (folder / "build/.git").mkdir()
    code, form = verdict_json(capsys, "p.json", "build", "--json")
    assert code == 3
    assert form["verdict"] == "not run"
    assert {name: row["verdict"] for name, row in form["targets"].items()} == {"fortran": "not run", "python": "equal"}


def test_a_broken_artifact_is_different(folder, capsys):
    main(["compile", "p.json", "--to", "python", "-o", "build"])
    (folder / "build/python/model.py").write_text("def predict(row:\n")
    code, form = verdict_json(capsys, "p.json", "build", "--json")
    assert code == 1
    assert "SyntaxError" in form["targets"]["python"]["reason"]


def test_an_artifact_of_another_program_is_recognised_by_its_digest(folder, capsys):
    main(["compile", "p.json", "--to", "python", "-o", "build"])
    module = folder / "build/python/model.py"
    module.write_text(module.read_text().replace(digest(PROGRAM), "0" * 64))
    assert main(["check", "p.json", "build"]) == 0
    assert f"carries the digest {'0' * 64}" in capsys.readouterr().out


def test_a_remark_on_several_targets_is_printed_once(folder, capsys):
    assert main(["compile", "p.json", "--to", "python,sql:sqlite,sql:duckdb", "-o", "build", "-q"]) == 0
    other = replace(PROGRAM, features=("age", "another name"))
    (folder / "other.json").write_text(to_json(other))
    assert main(["check", "other.json", "build"]) == 1
    output = capsys.readouterr().out
    assert output.count("its features or classes are not the source's") == 1
    assert output.count("carries the digest") == 1
    assert "python, sql:duckdb, sql:sqlite: its features or classes are not the source's\n" in output


def test_two_names_in_one_folder_are_distinguished(folder, capsys):
    for name in ("a", "b"):
        main(["compile", "p.json", "--to", "python", "-o", "build", "--name", name])
    assert main(["check", "p.json", "build"]) == 2
    assert "--name" in capsys.readouterr().err
    assert main(["check", "p.json", "build", "--name", "typo"]) == 2
    assert main(["check", "p.json", "build", "--name", "b"]) == 0


def test_check_writes_certificates_that_the_verifier_takes(folder, capsys):
    main(["compile", "p.json", "--to", "python", "-o", "build"])
    assert main(["check", "p.json", "build", "--certificates", "proofs"]) == 0
    made = files(folder / "proofs")
    assert made == ["python-0.json"]
    verifier = Path(certificate_verifier.__file__)
    command = [sys.executable, "-I", "-S", str(verifier), "p.json", "proofs/python-0.json", "build/python/model.py"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
