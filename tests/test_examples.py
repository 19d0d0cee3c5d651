"""The examples run unchanged, from another folder, and show what they promise."""

import ast
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from gbfl_compile.cli import main
from gbfl_compile.databases import availability
from gbfl_compile.ir.json import load

EXAMPLES = Path(__file__).parent.parent / "examples"

PROMISES = {
    "quickstart.py": r"IF .* THEN[\s\S]*'label': 'setosa'",
    "existing_tree.py": r"178 of 178 labels the same[\s\S]*python: equal, proved, 0 rows",
    "walkthrough.py": r"verdict: equal",
    "onnx_pipeline.py": r"150 of 150 labels the same",
    "duckdb_view.py": r"no 580\nyes 420\nview scores in DuckDB .*: equal \(proved; 0 different",
    "postgres_audit.py": r": equal \(proved; 0 diff[\s\S]*: different[\s\S]*differs where late_payments = 3: .*'yes', .*'no'",
}
"""What each prints."""

ELSEWHERE = {"duckdb_parquet.py", "spark_score.py"}
"""Millions of rows, and Spark: tests/engines runs them."""

NEEDS = {"duckdb_view.py": "duckdb", "postgres_audit.py": "postgres"}


def test_every_example_is_run_by_a_test():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(PROMISES) | ELSEWHERE


def test_every_example_is_in_the_index():
    index = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\]\(([\w.]+)/?\)", index))
    assert {path.name for path in EXAMPLES.iterdir() if path.name[0] not in "_."} == named | {"README.md"}


@pytest.mark.parametrize("name", PROMISES)
def test_an_example_shows_what_it_promises(name, tmp_path):
    if (engine := NEEDS.get(name)) and (reason := availability(engine)):
        pytest.skip(reason)
    path = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent)}
    run = subprocess.run([sys.executable, EXAMPLES / name], cwd=tmp_path, env=path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert re.search(PROMISES[name], run.stdout), run.stdout
    assert list(tmp_path.iterdir()) == []


VERBS = sorted(path.stem for path in (EXAMPLES / "verbs").glob("*.py"))


def test_every_verb_has_an_example():
    assert (
        sorted(
            [
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
            ]
        )
        == VERBS
    )


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_prints_what_its_example_says(verb, tmp_path):
    script = EXAMPLES / "verbs" / f"{verb}.py"
    promise = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))).partition("It prints::\n\n")[2]
    path = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent)}
    run = subprocess.run([sys.executable, script], cwd=tmp_path, env=path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout == textwrap.dedent(promise) + "\n"
    assert list(tmp_path.iterdir()) == []


def test_the_view_in_the_examples_is_its_program():
    """The file is there to be read. An older version may have written it: only its meaning counts."""
    pytest.importorskip("duckdb")
    command = ["audit", str(EXAMPLES / "loans.gbfl.json"), "--file", str(EXAMPLES / "duckdb_view.sql")]
    assert main([*command, "--require", "proved"]) == 0


def test_the_program_of_the_examples_loads():
    assert load(EXAMPLES / "loans.gbfl.json").features == ("income", "debt_share", "late_payments")


def test_the_c_scorer_is_built_and_scores(tmp_path):
    if shutil.which("make") is None or shutil.which("cc") is None:
        pytest.skip("no make or no C compiler")
    shutil.copytree(EXAMPLES / "embed_c", tmp_path / "embed_c")
    shutil.copy(EXAMPLES / "loans.gbfl.json", tmp_path)
    gbfl = f"GBFL={sys.executable} -m gbfl_compile"
    flags = "CFLAGS=-O2 -Wall -Wextra -Wpedantic -Wconversion -Werror"
    path = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent)}
    make = ["make", "-s", "run", gbfl, flags]
    run = subprocess.run(make, cwd=tmp_path / "embed_c", env=path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    digest = "41c2eb386c83"
    assert run.stdout.splitlines()[-5:] == [f"program {digest}", "no", "no", "yes", "yes"]
    score = tmp_path / "embed_c" / "score"
    refused = subprocess.run([score], input="1 2\n", capture_output=True, text=True)
    assert (refused.returncode, refused.stderr) == (2, "line 1: give 3 numbers\n")
