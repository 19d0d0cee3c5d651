"""The examples run unchanged, from another folder, and show what they promise."""

import ast
import os
import re
import shutil
import subprocess
import sys
import textwrap
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gbfl_compile.cli import main
from gbfl_compile.databases import availability
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.json import load
from tests.backends.javascript import node
from tests.reporting.browser import chromium

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


@pytest.fixture(scope="module")
def javascript(tmp_path_factory):
    """The folder of the JavaScript example, with the rules compiled as its files say."""
    folder = tmp_path_factory.mktemp("examples") / "javascript"
    shutil.copytree(EXAMPLES / "javascript", folder)
    shutil.copy(EXAMPLES / "loans.gbfl.json", folder.parent)
    assert main(["compile", str(folder.parent / "loans.gbfl.json"), "--to", "js", "-o", str(folder / "build")]) in (
        0,
        3,
    )
    return folder


def test_the_node_script_scores_rows_and_refuses_what_it_would_have_to_convert(javascript):
    rows = (javascript / "rows.jsonl").read_text()
    run = subprocess.run([node(), "score.mjs"], cwd=javascript, input=rows, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines() == [
        "program 41c2eb386c83",
        "no 0.95 debt_share < 0.4 AND late_payments < 1; income >= 20000",
        "no 0.7 debt_share < 0.4 AND late_payments < 1",
        "yes 0.9 (late_payments >= 3 OR late_payments is missing)",
        "no 0.6 no rule held",
    ]
    text = rows.replace("31000", '"31000"', 1)
    run = subprocess.run([node(), "score.mjs"], cwd=javascript, input=text, capture_output=True, text=True)
    assert (run.returncode, len(run.stdout.splitlines())) == (2, 4)
    assert 'feature "income": "31000" is not a number' in run.stderr


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def test_the_page_scores_a_form(javascript, tmp_path):
    program = load(EXAMPLES / "loans.gbfl.json")
    rows = [[19999, 0.39, 0], [20000, 0.39, 0], [None, 0.4, None], [5, 0.4, 3], [5, 0.4, 2], [None, None, None]]
    fill = """
    for (const [name, value] of Object.entries(arguments[0])) {
      document.querySelector(`[name="${name}"]`).value = value ?? "";
    }
    document.getElementById("row").dispatchEvent(new Event("input"));
    return [document.getElementById("answer").textContent, document.querySelectorAll("#reasons li").length];"""
    with (
        chromium(tmp_path / "profile") as browser,
        ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=javascript)) as server,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser.get(f"http://127.0.0.1:{server.server_port}/page.html")
        shown = [browser.execute_script(fill, dict(zip(program.features, row, strict=True))) for row in rows]
        errors = [entry for entry in browser.get_log("browser") if "favicon" not in entry["message"]]
        server.shutdown()
    answers = [evaluate(program, row) for row in rows]
    assert shown == [[f"{each.label} ({max(each.probabilities)})", len(each.held)] for each in answers]
    assert errors == []
