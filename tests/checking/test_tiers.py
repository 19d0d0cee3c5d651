"""What is not proved and run is never called equal and never exits with 0: unread, undecided, not run, written."""

import json
from dataclasses import replace

import pytest

import gbfl_compile.checking.artifact
from gbfl_compile.backends import emit, write_artifact
from gbfl_compile.checking.artifact import READERS, ArtifactProof, Readers, prove_artifact, was_run
from gbfl_compile.checking.check import check_folder
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.run import WORST_FIRST, TargetVerdict, Verdict, expectation, with_proof
from gbfl_compile.checking.strict.python import read_python
from gbfl_compile.cli import main
from gbfl_compile.ir.json import save
from tests.checking.test_run import CARD, TREE

NEVER_RUN = ["mysql", "snowflake", "bigquery", "databricks", "redshift", "trino", "tsql", "oracle"]


def folder_of(program, target, tmp_path, change=lambda text: text):
    artifact = emit(program, target)
    files = {name: change(content.decode("utf-8")).encode("utf-8") for name, content in artifact.files.items()}
    write_artifact(replace(artifact, files=files), tmp_path / "out")
    save(program, tmp_path / "program.json")
    return tmp_path / "out"


def check(tmp_path, capsys):
    code = main(["check", str(tmp_path / "program.json"), str(tmp_path / "out"), "--json"])
    return code, json.loads(capsys.readouterr().out)


def refuse(files, program, options):
    raise Unread("line 1: not the strict form")


def unknown_but_harmless(text):
    return text + "\nassert True\n"


def test_an_artifact_that_is_not_read_is_not_equal_however_many_rows_agree(tmp_path, capsys):
    folder_of(TREE, "python", tmp_path, unknown_but_harmless)
    code, form = check(tmp_path, capsys)
    python = form["targets"]["python"]
    assert (code, form["verdict"], python["verdict"], python["tier"]) == (3, "unread", "unread", None)
    assert python["execution"]["different"] == 0


def test_a_proof_that_runs_out_of_time_is_not_equal(tmp_path):
    out = folder_of(CARD, "python", tmp_path)
    [found] = check_folder(expectation(CARD), out, budget_seconds=0.0).targets
    assert (found.verdict, found.proof.answer, found.execution.different) == ("undecided", "undecided", 0)


def test_what_only_the_general_reader_reads_is_read_as_equal(tmp_path, capsys, monkeypatch):
    folder_of(TREE, "python", tmp_path)
    monkeypatch.setattr(gbfl_compile.checking.artifact, "READERS", {"python": Readers(refuse, read_python)})
    code, form = check(tmp_path, capsys)
    python = form["targets"]["python"]
    assert (code, form["verdict"], python["verdict"]) == (3, "read as equal", "read as equal")
    assert (python["proof"]["answer"], python["tier"]) == ("read as equal", "read as equal")
    assert "not the strict form" in python["proof"]["reason"]


def test_a_wrong_artifact_that_only_the_general_reader_reads_is_different(monkeypatch):
    files = {name: content.replace(b"863.33", b"863.34") for name, content in emit(TREE, "python").files.items()}
    monkeypatch.setattr(gbfl_compile.checking.artifact, "READERS", {"python": Readers(refuse, read_python)})
    assert prove_artifact(TREE, "python", files).answer == "counterexample"


@pytest.mark.parametrize("dialect", NEVER_RUN)
def test_sql_for_a_database_that_is_never_run_is_never_proved(dialect, tmp_path, capsys):
    target = f"sql:{dialect}"
    assert not was_run(target)
    folder_of(TREE, target, tmp_path)
    code, form = check(tmp_path, capsys)
    assert (code, form["verdict"]) == (3, "read as equal, not run")
    assert form["targets"][target]["tier"] == "read as equal"


def test_sql_for_a_database_that_is_never_run_and_not_read_is_only_written(tmp_path, capsys):
    folder_of(TREE, "sql:oracle", tmp_path, lambda text: text.replace("SELECT", "SELECT /*+ PARALLEL */ DISTINCT"))
    code, form = check(tmp_path, capsys)
    assert (code, form["verdict"], form["targets"]["sql:oracle"]["proof"]["answer"]) == (3, "written", "unread")


@pytest.mark.parametrize("target", [target for target in READERS if was_run(target)])
def test_every_target_that_is_run_has_a_strict_reader(target):
    assert READERS[target].strict is not None


@pytest.mark.parametrize(
    ("run", "answer", "verdict"),
    [
        ("equal", "proved", "equal"),
        ("equal", "read as equal", "read as equal"),
        ("equal", "unread", "unread"),
        ("equal", "undecided", "undecided"),
        ("equal", "not run", "not run"),
        ("equal", "counterexample", "different"),
        ("equal", "other names", "different"),
        ("equal", "other reasons", "different"),
        ("not run", "proved", "not run"),
        ("not run", "read as equal", "read as equal, not run"),
        ("not run", "unread", "not run"),
        ("not run", "counterexample", "different"),
        ("different", "proved", "different"),
        ("different", "unread", "different"),
    ],
)
def test_a_verdict_is_as_good_as_its_weaker_evidence(run, answer, verdict):
    assert with_proof(TargetVerdict("python", run), ArtifactProof(answer)).verdict == verdict


def test_one_verdict_over_all_targets_is_the_worst_of_them():
    for place, worst in enumerate(WORST_FIRST):
        targets = tuple(TargetVerdict("python", outcome) for outcome in reversed(WORST_FIRST[place:]))
        assert Verdict("", targets).verdict == worst
    assert WORST_FIRST[-1] == "equal"
    assert Verdict("", ()).verdict == "not run"
