"""A first session: everything in the README works as written, from an installed wheel, in an empty folder."""

import json
import shlex

import duckdb
import pandas as pd
import pytest

from gbfl_compile.cli import start as starter
from tests.documents import ROOT, blocks

SESSION = (
    "gbfl mine loans.csv --target default --train gbm -o loans.gbfl.json",
    "gbfl show loans.gbfl.json",
    "gbfl compile loans.gbfl.json --to python,c,onnx,sql:postgres,sql:duckdb -o build",
    "gbfl check loans.gbfl.json build",
    "gbfl score build/c new.parquet -o scored.parquet",
    "gbfl audit loans.gbfl.json --database duckdb:///loans.duckdb --view scores",
    "gbfl report loans.gbfl.json build -o report.html",
)


def test_the_readme_shows_this_session():
    """Each command, beside some of them a remark."""
    shown = [
        [line.partition("  #")[0].rstrip() for line in block.text.splitlines()] for block in blocks(ROOT / "README.md")
    ]
    assert list(SESSION) in shown


def write_tables(folder):
    """The user's tables: loans with their outcome as CSV, new ones as Parquet."""
    (folder / "loans.csv").write_text(starter.loans(1200, seed=3))
    (folder / "new.csv").write_text(starter.new_loans(300, seed=4))
    new = pd.read_csv(folder / "new.csv")
    (folder / "new.csv").unlink()
    new.to_parquet(folder / "new.parquet")


def deploy(folder):
    """The user's database: a table, and a view that is the compiled query unchanged."""
    query, _, rest = (folder / "build/sql-duckdb/model.sql").read_text().rpartition(";")
    assert not rest.strip()
    with duckdb.connect(folder / "loans.duckdb") as database:
        database.execute(f"CREATE TABLE data AS SELECT * FROM '{folder / 'new.parquet'}'")
        database.execute(f"CREATE VIEW scores AS {query}")


@pytest.fixture(scope="module")
def session(installed, tmp_path_factory):
    """The folder, and what each command of the session printed."""
    folder = tmp_path_factory.mktemp("session")
    write_tables(folder)
    printed = {}
    for line in SESSION:
        command = shlex.split(line)
        if command[1] == "audit":
            deploy(folder)
        run = installed.run(command, folder)
        assert run.returncode == 0, f"{line}: {run.stdout}{run.stderr}"
        assert run.stderr == "", line
        printed[command[1]] = run.stdout
    return folder, printed


def test_every_command_writes_its_files_and_nothing_else(session):
    folder, _ = session
    assert sorted(path.name for path in folder.iterdir()) == [
        "build",
        "loans.csv",
        "loans.duckdb",
        "loans.gbfl.json",
        "new.parquet",
        "report.html",
        "scored.parquet",
    ]
    assert sorted(path.name for path in (folder / "build").iterdir()) == [
        "c",
        "onnx",
        "python",
        "sql-duckdb",
        "sql-postgres",
    ]


def test_every_target_is_proved_and_run(session):
    for command in ("compile", "check"):
        lines = session[1][command].splitlines()
        assert lines[-1] == "verdict: equal"
        for target in ("python", "c", "onnx", "sql:postgres", "sql:duckdb"):
            (line,) = (line for line in lines if line.split()[0] == target and "proved" in line)
            assert line.split()[1:3] == ["equal", "proved"]
            assert " 0 different of " in line


def test_what_is_shown_is_what_was_mined(session):
    folder, printed = session
    program = json.loads((folder / "loans.gbfl.json").read_text())
    rules = printed["show"].split("\n\n")[0]
    assert rules in printed["mine"]
    assert rules.count("IF ") == len(program["clauses"])
    assert program["digest"] in printed["show"]


def test_c_scores_the_parquet_file_as_the_database_does(session):
    folder, _ = session
    scored = pd.read_parquet(folder / "scored.parquet")
    with duckdb.connect(folder / "loans.duckdb", read_only=True) as database:
        viewed = database.execute("SELECT * FROM scores").df()
    assert scored.columns.tolist() == ["label", "p_no", "p_yes"]
    assert scored["label"].tolist() == viewed["label"].tolist()
    assert set(scored["label"]) == {"no", "yes"}


def test_the_view_is_proved_to_be_what_was_approved(session):
    assert "equal (proved; 0 different of " in session[1]["audit"]


def test_the_report_is_one_page_that_names_the_program(session):
    folder, printed = session
    page = (folder / "report.html").read_text()
    assert json.loads((folder / "loans.gbfl.json").read_text())["digest"] in page
    assert printed["report"] == f"report.html: {len(page.encode()):,} bytes\n"
