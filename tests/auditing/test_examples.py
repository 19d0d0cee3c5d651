"""The audit examples do what they say."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from gbfl_compile.cli.entry import gbfl
from gbfl_compile.databases import scratch
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.json import save
from tests.auditing.tampering import TREE

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "audit"


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


def test_the_workflow_names_commands_and_flags_that_there_are():
    text = (EXAMPLES / "github-actions.yml").read_text()
    audit, log = gbfl.commands["audit"], gbfl.commands["audit-log"]
    known = {name for parameter in audit.params for name in parameter.opts}
    used = {word for word in text.split() if word.startswith("--")} - {"--"}
    assert used <= known, used - known
    assert "verify" in log.commands
    assert text.count("gbfl audit ") == text.count("--require proved") == 2


def test_the_workflow_installs_extras_that_there_are():
    installed = re.findall(r"pip install '\./gbfl-compile\[([\w,]+)\]'", (EXAMPLES / "github-actions.yml").read_text())
    project = tomllib.loads((EXAMPLES.parent.parent / "pyproject.toml").read_text())["project"]
    assert len(installed) == 1
    assert set(installed[0].split(",")) <= set(project["optional-dependencies"])
