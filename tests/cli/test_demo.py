"""`gbfl demo`: files where they were promised, no difference anywhere but in the forged view, and that one is caught."""

import contextlib
import json
import math
import re
import shutil
import sqlite3
import subprocess
import sys

import pytest

from gbfl_compile.backends import folder_name
from gbfl_compile.checking.artifact import prove_artifact
from gbfl_compile.cli import main
from gbfl_compile.cli.demo import TARGETS, VIEW_OPTIONS, _edits
from gbfl_compile.ir.json import digest, load

PARTS = ("A TABLE", "A BLACK BOX", "RULES", "WHERE DECISIONS ARE MADE", "IN THE DATABASE", "EDITS THE VIEW", "ONE PAGE")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "d"
    run = subprocess.run(
        [sys.executable, "-m", "gbfl_compile", "demo", "--out", out, "--json"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return out, json.loads(run.stdout)


def test_it_leaves_what_it_promised(demo):
    out, form = demo
    emitted = {folder_name(target) for target in TARGETS if target not in form["not_emitted"]}
    assert {"python", "c", "sql-sqlite"} <= emitted
    assert {path.name for path in out.iterdir()} == {"loans.csv", "loans.gbfl.json", "loans.db", "build", "report.html"}
    assert {path.name for path in (out / "build").iterdir()} == emitted
    assert form["report"] == str(out / "report.html")


def test_every_target_is_proved_and_run(demo):
    out, form = demo
    assert form["verdict"] == "equal"
    assert form["program"] == digest(load(out / "loans.gbfl.json"))
    assert form["classifier"]["different"] == form["view"]["different"] == 0
    assert form["classifier"]["rows"] > 1000
    for target in form["targets"].values():
        assert target["proof"]["answer"] == "proved"
        assert target["execution"]["different"] == 0


def test_the_rules_are_nearly_as_good_as_the_black_box_and_every_leaf_has_rows(demo):
    out, form = demo
    assert form["test"]["accuracy"] >= form["test"]["black_box_accuracy"] - 0.04
    assert all(getattr(node, "rows", 1) for node in load(out / "loans.gbfl.json").decision.nodes)


def test_the_forged_view_is_caught_and_moves_the_loans_that_it_says(demo):
    out, form = demo
    forgery = form["forgery"]
    assert forgery["verdict"] == "different"
    approved, deployed = forgery["change"].split(" is deployed as ")
    assert forgery["approved"] in approved
    assert forgery["deployed"] in deployed
    assert forgery["approved"] != forgery["deployed"]
    with contextlib.closing(sqlite3.connect(out / "loans.db")) as database:
        deployed = database.execute("SELECT loan_id, label FROM loan_decisions").fetchall()
        database.execute("DROP VIEW loan_decisions")
        database.executescript((out / "build/sql-sqlite/model.sql").read_text())
        approved = dict(database.execute("SELECT loan_id, label FROM loan_decisions").fetchall())
        database.rollback()
    assert sum(approved[loan] != label for loan, label in deployed) == forgery["moved"] > 50


def test_no_changed_sign_is_ever_proved(demo):
    out, _ = demo
    program = load(out / "loans.gbfl.json")
    view = (out / "build/sql-sqlite/model.sql").read_text()
    edits = list(_edits(view))
    assert len(edits) > 10
    assert prove_artifact(program, "sql:sqlite", {"model.sql": view.encode()}, options=VIEW_OPTIONS).answer == "proved"
    for _, _, text in edits:
        proof = prove_artifact(program, "sql:sqlite", {"model.sql": text.encode()}, options=VIEW_OPTIONS)
        assert proof.answer in ("counterexample", "unread")


def test_no_number_that_is_one_ulp_off_is_ever_proved(demo):
    out, _ = demo
    program = load(out / "loans.gbfl.json")
    view = (out / "build/sql-sqlite/model.sql").read_text()
    numbers = list(re.finditer(r"` (?:<|>=) (-?[0-9.]+e0)", view))
    assert len(numbers) > 10
    for number in numbers:
        for towards in (-math.inf, math.inf):
            moved = f"{math.nextafter(float(number[1]), towards):.16e}"
            text = view[: number.start(1)] + moved + view[number.end(1) :]
            proof = prove_artifact(program, "sql:sqlite", {"model.sql": text.encode()}, options=VIEW_OPTIONS)
            assert proof.answer == "counterexample"


def test_a_deployed_view_that_is_one_ulp_off_is_caught(demo, tmp_path, capsys):
    out, _ = demo
    shutil.copy(out / "loans.db", tmp_path)
    view = (out / "build/sql-sqlite/model.sql").read_text()
    first = re.search(r"` (?:<|>=) (-?[0-9.]+e0)", view)
    moved = view[: first.start(1)] + f"{math.nextafter(float(first[1]), math.inf):.16e}" + view[first.end(1) :]
    with contextlib.closing(sqlite3.connect(tmp_path / "loans.db")) as database:
        database.executescript(f"DROP VIEW loan_decisions; {moved}")
    address = f"sqlite:///{tmp_path / 'loans.db'}"
    assert main(["audit", str(out / "loans.gbfl.json"), "--database", address, "--view", "loan_decisions"]) == 1
    assert re.search(r"clause \d+: .* is deployed\s+as ", capsys.readouterr().out, re.DOTALL)  # on one line or two


def test_checking_it_again_says_the_same(demo, capsys):
    out, form = demo
    code = main(["check", str(out / "loans.gbfl.json"), str(out / "build"), "--data", str(out / "loans.csv"), "--json"])
    assert code == 0
    assert json.loads(capsys.readouterr().out)["targets"].keys() == form["targets"].keys()


def test_run_again_among_other_things_it_gives_the_same_program_and_a_story_that_fits_80_columns(
    demo, tmp_path, capsys, monkeypatch
):
    out, form = demo
    shutil.copytree(out, tmp_path, dirs_exist_ok=True)
    (tmp_path / "photographs").mkdir()
    for remade in ("loans.gbfl.json", "build/python/model.py"):
        (tmp_path / remade).write_text("old")
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--out", "."]) == 0
    printed = capsys.readouterr().out
    assert (tmp_path / "photographs").is_dir()
    for remade in ("loans.gbfl.json", "build/python/model.py"):
        assert (tmp_path / remade).read_bytes() == (out / remade).read_bytes()
    chapters = [line for line in printed.split("\n") if line[:1].isdigit()]
    assert [any(part in line for part in PARTS) for line in chapters] == [True] * len(PARTS)
    assert f"{form['forgery']['moved']} of 3,000 loans would be decided differently." in printed
    assert [line for line in printed.split("\n") if len(line) > 80 and str(tmp_path) not in line] == []
    assert not [word for word in ("C_TB", "PN", "digest", "witness") if word in printed]
