"""What a command does, one call from Python does: wrong inputs are refused by name, right ones give what the command gives."""

import inspect
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import gbfl_compile
from gbfl_compile import (
    BadInput,
    GBFLClassifier,
    audit,
    certify,
    check,
    compile_program,
    diff,
    emit,
    explain_row,
    lint,
    load_program,
    mine,
    prove,
    report,
    save_program,
    score,
)
from gbfl_compile.cli import main
from gbfl_compile.cli.entry import gbfl
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split
from gbfl_compile.learning.consistency import Triplets

PROGRAM = Program(
    ("age", "income"),
    ("no", "yes"),
    (Clause((Interval(0, 18.0, 65.0), Interval(1, 0.1))),),
    split(0, leaf(0.25, 0.75, rows=3), leaf(1.0, 0.0, rows=1)),
)
MOVED = replace(PROGRAM, clauses=(Clause((Interval(0, 19.0, 65.0), Interval(1, 0.1))),))
ROWS = pd.DataFrame({"key": ["a", "b", "c"], "age": [18.0, 17.0, 64.0], "income": [1.0, 1.0, None]})
LABELS = ["yes", "no", "no"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_program(PROGRAM, tmp_path / "p.json")
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path


def loans(rows=80):
    random = np.random.default_rng(0)
    table = pd.DataFrame(random.uniform(0, 100, (rows, 2)).round(1), columns=["age", "income"])
    return table.assign(default=np.where(table["age"] > 50, "yes", "no"))


def older(rows):
    """A black box: the probability of "yes"."""
    return np.where(np.asarray(rows)[:, 0] > 50, 0.9, 0.1)


MINED = {"target": "default", "black_box": older, "baselines": False}

WRONG = {
    "no black box": ({"target": "default"}, "give --train"),
    "two black boxes": ({**MINED, "train": "gbm"}, "not both"),
    "an unknown kind": ({"target": "default", "train": "svm"}, "train='svm' is not one of mlp, gbm, forest"),
    "an unknown head": ({**MINED, "head": "forest"}, "head='forest' is not one of"),
    "a depth for rules": ({**MINED, "depth": 3}, "--depth is for trees"),
    "clauses for a tree": ({**MINED, "head": "tree", "clauses": 3}, "--clauses is for rules"),
    "no clauses": ({**MINED, "clauses": 0}, "max_clauses=0"),
    "no rows": ({**MINED, "rows": 0}, "rows=0: a whole number"),
    "no jobs": ({**MINED, "jobs": 0}, "jobs=0: a whole number"),
    "no such target": ({**MINED, "target": "paid"}, "has no column 'paid' for --target"),
    "no such column to drop": ({**MINED, "drop": ["key"]}, "has no column 'key' for --drop"),
    "no such code": ({**MINED, "codes": ["key"]}, "--codes key: there is no feature"),
    "a size that is none": ({**MINED, "memory": "much"}, "is not a size"),
    "a way with missing values": ({**MINED, "missing": "fill"}, "missing='fill' is not one of keep, drop, refuse"),
    "a black box that answers nothing": ({**MINED, "black_box": 7}, "no predict_proba and is not callable"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_mined_is_refused_by_name(what):
    options, message = WRONG[what]
    with pytest.raises(BadInput, match=message):
        mine(loans(), **options)


@pytest.mark.parametrize("table", [7, [[1.0, 2.0]], None])
def test_what_is_not_a_table_is_not_mined(table):
    with pytest.raises(BadInput, match="a table is a file or a DataFrame"):
        mine(table, **MINED)


NO_PROGRAM = {
    "check": lambda: check(7, "build"),
    "prove": lambda: prove(7, "build"),
    "compile_program": lambda: compile_program(7, "c", "build"),
    "audit": lambda: audit(7, file="model.py"),
    "diff": lambda: diff(PROGRAM, 7),
    "lint": lambda: lint(7),
    "explain_row": lambda: explain_row(7, [1.0, 2.0]),
    "score": lambda: score(7, ROWS),
    "report": lambda: report(7, "report.html"),
}


@pytest.mark.parametrize("verb", NO_PROGRAM)
def test_what_is_not_a_program_is_refused_by_every_verb(verb):
    with pytest.raises(BadInput, match="a program is a Program or the path of its file, not int"):
        NO_PROGRAM[verb]()


REFUSED = {
    "nothing to check": (lambda: check(PROGRAM, []), "no artifacts"),
    "what is not an artifact": (lambda: check(PROGRAM, ["model.c"]), "an artifact is what emit returns, not str"),
    "a folder that is not there": (lambda: check(PROGRAM, "absent"), "absent: there is no such folder"),
    "data of another width": (lambda: check(PROGRAM, emit(PROGRAM, "python"), data=[[1.0]]), "the 2 features"),
    "data without a column": (lambda: lint(PROGRAM, ROWS[["age"]]), "has no column 'income'"),
    "words for data": (lambda: lint(PROGRAM, [["a", "b"]]), "a matrix of numbers"),
    "an unknown target": (lambda: compile_program(PROGRAM, "cobol", "build"), "unknown target 'cobol'"),
    "nothing to audit": (lambda: audit(PROGRAM), "name what is deployed"),
    "a view of no database": (lambda: audit(PROGRAM, view="scores"), "--view needs --database"),
    "drift of nothing": (lambda: audit(PROGRAM, file="m.py", drift=True), "--drift needs --scored"),
    "a row that is too short": (lambda: explain_row(PROGRAM, [1.0]), "the row has 1 values"),
    "a row without a feature": (lambda: explain_row(PROGRAM, {"age": 1.0}), "the row: has no column 'income'"),
    "a row of words": (lambda: explain_row(PROGRAM, ["a", "b"]), "a row is a mapping"),
    "a row beyond the table": (lambda: explain_row(PROGRAM, ROWS, row_number=4), "has no row 4, there are 3"),
    "a file without a place": (lambda: score(PROGRAM, "rows.csv"), "rows.csv: name a file for its answers"),
    "a matrix to score": (lambda: score(PROGRAM, [[1.0, 2.0]]), "a table is a file or a DataFrame, not list"),
    "a name for a program": (lambda: score(PROGRAM, ROWS, name="a"), "--name chooses among the artifacts"),
    "a key that is not there": (lambda: score(PROGRAM, ROWS, keys=["id"]), "has no key column 'id'"),
    "a verdict that is none": (
        lambda: report(PROGRAM, "r.html", verdict=7),
        "a verdict is what check or audit returned",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_wrong_inputs_are_refused_by_name(what, folder):
    call, message = REFUSED[what]
    with pytest.raises(BadInput, match=message):
        call()
    assert not (folder / "build").exists()


def test_triplets_of_other_features_are_refused(folder):
    none = np.zeros(1, dtype=bool)
    x = np.zeros((1, 2))
    triplets = Triplets(x, x, x, none, none, np.array(["no"]), ("age", "rate"))
    for call in (
        lambda: check(PROGRAM, emit(PROGRAM, "python"), triplets=triplets),
        lambda: audit(PROGRAM, file="p.json", triplets=triplets),
        lambda: explain_row(PROGRAM, [1.0, 2.0], triplets=triplets),
        lambda: report(PROGRAM, "r.html", triplets=triplets),
    ):
        with pytest.raises(BadInput, match="the triplets: its features are not the program's"):
            call()


def test_mining_a_frame_leaves_nothing_behind_but_the_requested_files(folder):
    before = set(folder.iterdir())
    mined = mine(loans(), **MINED, head="tree", out="m.json", triplets="t.npz")
    assert set(folder.iterdir()) - before == {folder / "m.json", folder / "t.npz"}
    assert load_program("m.json") == mined.program
    assert mined.compared_different == 0
    assert mined.accuracy == mined.figures["test"]["accuracy"] == 1.0
    assert mined.program.metadata["mining"]["black_box"] == {"kind": "object", "name": "function", "sha256": None}
    assert mined.summary.startswith("IF ")
    assert "MiningResult(Program(tree, 1 clause, " in repr(mined)


def test_the_verb_and_the_command_mine_the_same_program(folder, capsys):
    loans(300).to_csv("loans.csv", index=False)
    assert main(["mine", "loans.csv", "--target", "default", "--train", "gbm", "-o", "m.json", "--json"]) == 0
    form = json.loads(capsys.readouterr().out)
    mined = mine("loans.csv", "default", train="gbm")
    assert mined.as_json() == {**form, "out": None}
    assert mined.program == load_program("m.json")


def test_notes_are_warnings_unless_they_are_taken():
    table = loans(150).assign(key=range(150))
    with pytest.warns(UserWarning, match="column 'key' has another number in every row"):
        mine(table, **MINED, head="tree")
    notes, taken = [], []
    mine(table, **MINED, head="tree", note=notes.append, progress=lambda step, steps: taken.append(step))
    assert [note.partition(";")[0] for note in notes] == [
        "column 'key' has another number in every row: it is a key and left out"
    ]
    assert taken[0] == "the black box"


def test_artifacts_are_compiled_checked_and_proved(folder):
    compiled = compile_program("p.json", ["python", "sql:sqlite"], "build")
    assert compiled.verdict.verdict == "equal"
    assert [path.name for path in compiled.files["python"]] == ["model.py"]
    assert check(PROGRAM, "build", data="rows.csv").verdict == "equal"
    for artifacts in ("build", emit(PROGRAM, "python"), "build/python"):
        assert prove(PROGRAM, artifacts)["python"].answer == "proved"
    assert certify(PROGRAM, "build", "certificates") == {}
    assert (folder / "certificates" / "python-0.json").is_file()


def test_a_wrong_artifact_is_different_and_is_not_proved(folder):
    wrong = emit(MOVED, "python")
    assert check(PROGRAM, wrong).verdict == "different"
    proof = prove(PROGRAM, [wrong])["python"]
    assert (proof.answer, proof.counterexample.source.label) == ("counterexample", "yes")


def test_a_table_is_scored_the_same_by_a_program_and_its_artifact(folder):
    compile_program(PROGRAM, "python", "build")
    ours, theirs = score(PROGRAM, ROWS, keys=["key"]), score("build/python", ROWS)
    assert ours.table["label"].tolist() == theirs.table["label"].tolist() == LABELS
    assert list(ours.table) == ["key", "label", "p_no", "p_yes"]
    for out in ("scored.csv", "scored.parquet"):
        assert score("p.json", ROWS, out, keys=["key"]).rows == 3
    score("p.json", "rows.csv", "file.csv", keys=["key"])
    assert (folder / "scored.csv").read_bytes() == (folder / "file.csv").read_bytes()
    assert pd.read_parquet("scored.parquet")["label"].tolist() == LABELS


def test_an_audit_says_what_was_moved(folder):
    compile_program(PROGRAM, "sql:sqlite", "approved")
    compile_program(MOVED, "sql:sqlite", "moved")
    assert audit("p.json", file="approved/sql-sqlite/model.sql").verdict == "equal"
    found = audit(PROGRAM, file=["approved/sql-sqlite/model.sql", "moved/sql-sqlite/model.sql"], data=ROWS)
    assert [each.verdict for each in found.verdicts] == ["equal", "different"]
    assert found.lines()[-1] == "verdict: different"
    assert (found.verdicts[1].moves.rows, found.verdicts[1].moves.of) == (1, 3)


def test_two_versions_are_compared(folder):
    assert diff(PROGRAM, "p.json").verdict == "identical"
    difference = diff("p.json", MOVED, data="rows.csv")
    assert (difference.verdict, difference.moves.rows) == ("different", 1)
    assert difference.as_json()["verdict"] == "different"


def test_a_row_is_explained_in_whatever_form_it_is_passed(folder):
    for row in ([18.0, 1.0], {"age": 18, "income": 1}, ROWS, "rows.csv", ROWS.iloc[0][["age", "income"]]):
        explanation = explain_row("p.json", row)
        assert explanation.label == "yes"
        assert explanation.as_json()["row"] == {"age": 18.0, "income": 1.0}
    assert explain_row(PROGRAM, ROWS, row_number=3).lines()[0].startswith("row 3 of 3: no")


def test_a_report_takes_what_the_other_verbs_return(folder):
    verdict, found = check(PROGRAM, emit(PROGRAM, "python")), lint(PROGRAM)
    compile_program(PROGRAM, "python", "build")
    audited = audit(PROGRAM, file="build/python/model.py")
    size = report(PROGRAM, "report.html", verdict=verdict, audit=audited, row=ROWS, row_number=2)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert size == len(page.encode("utf-8"))
    (folder / "verdict.json").write_text(json.dumps(verdict.as_json()))
    report("p.json", "again.html", verdict="verdict.json", audit=audited.as_json(), row={"age": 17.0, "income": 1.0})
    assert (folder / "again.html").read_text(encoding="utf-8") == page
    assert found == ()


def test_what_a_notebook_shows_is_short_and_escaped():
    hostile = replace(PROGRAM, features=("<script>alert(1)</script>", "b"), classes=("<b>", "no"))
    assert repr(PROGRAM) == "Program(tree, 1 clause, 2 features, classes ['no', 'yes'])"
    html = hostile._repr_html_()
    assert "<script" not in html
    assert "<b>" not in html
    assert "&lt;script&gt;" in html
    verdict = check(PROGRAM, emit(PROGRAM, "python"))
    assert repr(verdict) == "Verdict(equal; python: equal)"
    assert "<td>python</td><td>equal</td><td>proved</td>" in verdict._repr_html_()
    assert {hash(PROGRAM), hash(replace(PROGRAM))} == {hash(PROGRAM)}


def test_every_verb_is_public_with_types_and_a_docstring():
    verbs = [
        "mine",
        "lower",
        "optimise",
        "emit",
        "check",
        "prove",
        "audit",
        "diff",
        "lint",
        "explain_row",
        "score",
        "report",
        "compile_program",
    ]
    for name in verbs:
        verb = getattr(gbfl_compile, name)
        assert name in gbfl_compile.__all__
        assert verb.__doc__
        signature = inspect.signature(verb)
        assert signature.return_annotation is not inspect.Signature.empty
        assert all(each.annotation is not inspect.Parameter.empty for each in signature.parameters.values()), name


SAME_AS_CLASSIFIER = {
    "head": "head",
    "explainer": "explainer",
    "black_box_timeout": "black_box_timeout",
    "clauses": "max_clauses",
    "depth": "max_depth",
}


def test_the_command_the_verb_and_the_classifier_have_the_same_defaults():
    from gbfl_compile.mining import Options

    command = gbfl.commands["mine"].make_context("mine", ["loans.csv", "--target", "default"]).params
    verb = {name: each.default for name, each in inspect.signature(mine).parameters.items()}
    compared = (command.keys() & verb.keys()) - {"target", "out", "table"}
    assert compared >= {"head", "clauses", "depth", "explainer", "rows", "seed", "jobs", "missing", "baselines"}
    assert {name: command[name] for name in compared} == {name: verb[name] for name in compared}
    options, classifier = Options(), GBFLClassifier()
    for ours, theirs in SAME_AS_CLASSIFIER.items():
        assert getattr(options, ours) == getattr(classifier, theirs), ours


def test_the_package_runs_as_a_module():
    run = subprocess.run([sys.executable, "-m", "gbfl_compile", "--version"], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, f"gbfl, version {gbfl_compile.__version__}\n")
