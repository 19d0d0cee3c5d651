"""The audit examples do what they say."""

import contextlib
import os
import re
import sqlite3
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from gbfl_compile import emit, load_program
from gbfl_compile.cli.entry import gbfl, main
from gbfl_compile.databases import scratch
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.json import save
from tests.auditing.tampering import TREE

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples" / "audit"
LOANS = load_program(EXAMPLES / "loans.gbfl.json")


def test_the_dbt_test_finds_rows_that_are_not_as_approved(tmp_path):
    pytest.importorskip("duckdb")
    save(TREE, tmp_path / "approved.json")
    script = [sys.executable, EXAMPLES / "dbt_test.py", "approved.json", "duckdb", "tests/t.sql"]
    subprocess.run(script, cwd=tmp_path, check=True, capture_output=True)
    query = (tmp_path / "tests" / "t.sql").read_text().replace("{{ ref('scores') }}", "scores")
    rows = np.random.default_rng(0).uniform([0, 18, 0, 0], [120000, 70, 1, 20], size=(200, 4))
    labels = evaluate_many(TREE, rows).labels
    database = scratch("duckdb")
    database.insert("given", list(TREE.features), rows)
    database.execute("CREATE TABLE said (gbfl_row BIGINT, label VARCHAR)")
    for number, label in enumerate(labels):
        database.execute(f"INSERT INTO said VALUES ({number}, '{label}')")
    database.execute("CREATE VIEW scores AS SELECT g.*, s.label FROM given g JOIN said s USING (gbfl_row)")
    assert database.fetch(query) == []
    database.execute(f"UPDATE said SET label = '{'no' if labels[7] != 'no' else 'yes'}' WHERE gbfl_row = 7")
    assert [row[0] for row in database.fetch(query)] == [7]
    database.close()


def dbt_query(folder, *words):
    """The query of the dbt test that the example writes, with models as tables."""
    script = [sys.executable, EXAMPLES / "dbt_test.py", "approved.json", "duckdb", "tests/t.sql", *words]
    subprocess.run(script, cwd=folder, check=True, capture_output=True)
    return as_tables((folder / "tests" / "t.sql").read_text())


def as_tables(model):
    """A dbt model with the names of models as tables."""
    return re.sub(r"\{\{ config\(.*?\) \}\}", "", re.sub(r"\{\{ ref\('(\w+)'\) \}\}", r"\1", model))


def test_the_dbt_test_works_on_the_model_that_is_emitted_and_on_one_written_by_hand(tmp_path):
    pytest.importorskip("duckdb")
    save(LOANS, tmp_path / "approved.json")
    database = scratch("duckdb")
    database.execute("CREATE TABLE people (id BIGINT, income DOUBLE, age DOUBLE, debt DOUBLE, years DOUBLE)")
    for number, row in enumerate(np.random.default_rng(0).uniform([0, 18, 0, 0], [120000, 70, 1, 20], size=(50, 4))):
        database.execute(f"INSERT INTO people VALUES ({number}, {', '.join(map(str, row.tolist()))})")
    options = {"form": "dbt", "table": "people", "key": "id"}
    emitted = emit(LOANS, "sql:duckdb", "scores", options).files["scores.sql"].decode()
    database.execute(f"CREATE VIEW scores AS {as_tables(emitted)}")
    query = dbt_query(tmp_path, "--features", "people", "--key", "id")
    assert database.fetch(query) == []
    by_hand = (
        "CASE WHEN income >= 50000 AND age >= 25 AND age < 65.5 THEN CASE WHEN debt < 0.35 THEN 'yes' ELSE 'no' END "
        "WHEN years >= {} AND debt >= 0.1 AND debt <= 0.9 THEN 'maybe' "
        "WHEN (age <= 30.25 OR age IS NULL) AND income >= 20000 AND income < 90000 THEN 'maybe' ELSE 'no' END"
    )
    for years, is_empty in ((2, True), (15, False)):
        database.execute(
            f"CREATE OR REPLACE VIEW decisions AS SELECT id, {by_hand.format(years)} AS decision FROM people"
        )
        words = ("--model", "decisions", "--label", "decision", "--features", "people", "--key", "id")
        assert (database.fetch(dbt_query(tmp_path, *words)) == []) == is_empty
    database.execute("DELETE FROM people WHERE id = 7")
    database.execute("CREATE TABLE kept AS SELECT id, 'no' AS label FROM range(7, 8) r(id)")
    rows = database.fetch(dbt_query(tmp_path, "--model", "kept", "--features", "people", "--key", "id"))
    assert [row[0] for row in rows] == [7]
    database.close()


def test_the_log_of_the_workflow_grows_from_run_to_run(tmp_path):
    steps = re.findall(
        r"- run: (?:>\n)?(.*?)(?=\n      (?:-|  if:|  env:|#)|\Z)",
        (EXAMPLES / "github-actions.yml").read_text(),
        re.DOTALL,
    )
    steps = [" ".join(step.split()) for step in steps if "audit-log" in step]
    assert len(steps) == 4, steps
    (tmp_path / "approved").mkdir()
    (tmp_path / "approved" / "loans.gbfl.json").write_bytes((EXAMPLES / "loans.gbfl.json").read_bytes())
    options = {"form": "view", "table": "applications", "view": "scores"}
    view = emit(LOANS, "sql:sqlite", "scores", options).files["scores.sql"].decode()
    with contextlib.closing(sqlite3.connect(tmp_path / "bank.db")) as database:
        database.execute("CREATE TABLE applications (income REAL, age REAL, debt REAL, years REAL)")
        database.executescript(view)
    environment = {**os.environ, "GBFL_DATABASE": f"sqlite:///{tmp_path / 'bank.db'}"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    for count in (1, 2):
        for step in steps:
            ran = subprocess.run(["sh", "-ec", step], cwd=tmp_path, env=environment, capture_output=True, text=True)
            assert ran.returncode == 0, (step, ran.stderr)
        assert len((tmp_path / "audit-log" / "audits.jsonl").read_text().splitlines()) == count
    text = (EXAMPLES / "github-actions.yml").read_text()
    assert "actions/cache/restore" in text
    assert text.index("actions/cache/save") > text.index("--log audit-log/audits.jsonl")


def test_the_pre_commit_hook_fails_on_a_file_that_is_not_the_program(tmp_path):
    hook = dict(re.findall(r"^[ -]+(\w+): (.+)$", (ROOT / ".pre-commit-hooks.yaml").read_text(), re.MULTILINE))
    assert hook["id"] == "gbfl-audit"
    name, *words = hook["entry"].split()
    assert name == "gbfl"
    save(LOANS, tmp_path / "approved.json")
    content = emit(LOANS, "python", "model").files["model.py"]
    for place, edited in (("same", content), ("other", content.replace(b"income >= 50000.0", b"income > 50000.0"))):
        (tmp_path / place).mkdir()
        (tmp_path / place / "model.py").write_bytes(edited)
    arguments = [*words, str(tmp_path / "approved.json")]
    assert main([*arguments, str(tmp_path / "same" / "model.py")]) == 0
    assert main([*arguments, str(tmp_path / "same" / "model.py"), str(tmp_path / "other" / "model.py")]) == 1


def test_the_workflow_names_commands_and_flags_that_there_are():
    text = (EXAMPLES / "github-actions.yml").read_text()
    audit, log = gbfl.commands["audit"], gbfl.commands["audit-log"]
    known = {name for parameter in audit.params for name in parameter.opts}
    used = {word for word in text.split() if word.startswith("--")}
    assert used <= known, used - known
    assert "verify" in log.commands
    assert text.count("gbfl audit ") == text.count("--require proved") == 2


def test_the_workflow_installs_extras_that_there_are():
    installed = re.findall(r"pip install '\./gbfl-compile\[([\w,]+)\]'", (EXAMPLES / "github-actions.yml").read_text())
    project = tomllib.loads((EXAMPLES.parent.parent / "pyproject.toml").read_text())["project"]
    assert len(installed) == 1
    assert set(installed[0].split(",")) <= set(project["optional-dependencies"])
