"""SQL that people deploy: it can be deployed again, its rows have their key, and it reads the table that was named."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from gbfl_compile.backends import emit
from gbfl_compile.backends.sql.engines import DIALECTS
from gbfl_compile.checking.artifact import prove_artifact
from gbfl_compile.checking.check import compile_program
from gbfl_compile.cli import main
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.json import to_json
from tests.backends.sql.programs import TREE

KEYED = replace(TREE, metadata={"mining": {"data": {"keys": ["loan_id"]}}})
RUN = ("sqlite", "duckdb", "postgres", "mariadb", "clickhouse", "spark", "datafusion")


def text(program, dialect, **options):
    return (
        emit(program, f"sql:{dialect}", options={"form": "view", "table": "loans", **options})
        .files["model.sql"]
        .decode()
    )


def first_statement(program, dialect, **options):
    return next(line for line in text(program, dialect, **options).split("\n") if line.startswith("CREATE"))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_view_replaces_the_one_before_where_the_engine_can(dialect):
    wanted = "CREATE OR REPLACE VIEW" if DIALECTS[dialect].replaces_views else "CREATE VIEW"
    assert first_statement(TREE, dialect).startswith(f"{wanted} ")
    assert first_statement(TREE, dialect, replace="no").startswith("CREATE VIEW ")


@pytest.mark.parametrize("dialect", RUN)
@pytest.mark.parametrize("program", [TREE, KEYED], ids=["no key", "key"])
def test_views_with_and_without_a_key_are_read_back_and_proved(dialect, program):
    for options in ({}, {"replace": "no"}, {"key": ""}):
        content = text(program, dialect, **options).encode()
        assert ("loan_id" in content.decode()) == (program is KEYED and "key" not in options)
        assert prove_artifact(program, f"sql:{dialect}", {"model.sql": content}).answer == "proved"


@pytest.mark.parametrize("form", ["view", "table", "dbt"])
def test_the_key_of_the_mined_table_is_a_column(form):
    files = emit(KEYED, "sql:duckdb", options={"form": form, "table": "loans"}).files
    assert '"loan_id",' in files["model.sql"].decode()


@pytest.mark.parametrize("form", ["select", "expression", "macro"])
def test_a_query_that_is_not_deployed_has_no_key_by_default(form):
    assert b"loan_id" not in emit(KEYED, "sql:duckdb", options={"form": form}).files["model.sql"]


@pytest.mark.parametrize(
    "key",
    ["label", "P_YES", TREE.features[0].upper(), "gbfl_row", 'x"; DROP TABLE loans; --', "", 7, ["x"], "a,b", "${x}"],
)
def test_a_key_in_the_metadata_that_cannot_be_one_is_left_out(key):
    odd = replace(TREE, metadata={"mining": {"data": {"keys": [key]}}})
    for dialect in DIALECTS:
        assert text(odd, dialect).split("CREATE")[1] == text(TREE, dialect).split("CREATE")[1]


@pytest.mark.parametrize("metadata", [{"mining": 1}, {"mining": {"data": []}}, {"mining": {"data": {"keys": {}}}}])
def test_other_metadata_says_nothing_about_keys(metadata):
    assert (
        text(replace(TREE, metadata=metadata), "duckdb").split("CREATE")[1] == text(TREE, "duckdb").split("CREATE")[1]
    )


@pytest.mark.parametrize("form", ["view", "table", "dbt"])
def test_what_is_deployed_names_its_table(form, tmp_path, capsys):
    (tmp_path / "p.json").write_text(to_json(TREE))
    command = ["compile", str(tmp_path / "p.json"), "--to", "sql:sqlite", "-o", str(tmp_path / "b"), "--set"]
    assert main([*command, f"sql.form={form}"]) == 2
    assert f"form={form} reads a table of yours: name it with --set sql.table=TABLE" in capsys.readouterr().err
    assert not (tmp_path / "b").exists()
    with pytest.raises(BadInput, match=f"form={form} reads a table of yours"):
        emit(TREE, "sql:sqlite", options={"form": form})
    with pytest.raises(BadInput, match=f"form={form} reads a table of yours"):
        compile_program(TREE, "sql:sqlite", tmp_path / "b", options={"sql:sqlite": {"form": form}})


def test_a_query_on_a_table_called_data_is_not_silent_about_it(tmp_path, capsys):
    (tmp_path / "p.json").write_text(to_json(TREE))
    command = ["compile", str(tmp_path / "p.json"), "--to", "sql:sqlite", "-o", str(tmp_path / "b")]
    assert main(command) == 0
    assert "sql:sqlite: the table is called data there: --set sql.table=TABLE names yours" in capsys.readouterr().out
    assert main([*command, "--set", "sql.table=loans"]) == 0
    assert "called data" not in capsys.readouterr().out


def test_mining_records_the_key_and_the_deployed_view_has_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [f"K{number:04d},{number % 7},{'yes' if number % 7 > 3 else 'no'}" for number in range(400)]
    (tmp_path / "loans.csv").write_text("\n".join(["loan_id,late,default", *rows]))
    small = ["--train", "forest", "--no-baselines", "--explainer", "greedy", "--head", "tree", "-o", "p.json"]
    assert main(["mine", "loans.csv", "--target", "default", *small]) == 0
    assert json.loads((tmp_path / "p.json").read_text())["metadata"]["mining"]["data"]["keys"] == ["loan_id"]
    named = ["--set", "sql.form=view", "--set", "sql.table=loans", "--set", "sql.view=scores"]
    assert main(["compile", "p.json", "--to", "sql:sqlite", "-o", "b", *named]) == 0
    with closing(sqlite3.connect("loans.db")) as database:
        database.execute("CREATE TABLE loans (loan_id TEXT, late REAL)")
        database.executemany("INSERT INTO loans VALUES (?, ?)", [row.split(",")[:2] for row in rows])
        database.executescript((tmp_path / "b/sql-sqlite/model.sql").read_text())
        answers = dict(database.execute("SELECT loan_id, label FROM scores").fetchall())
    assert answers == {row.split(",")[0]: row.split(",")[2] for row in rows}
    assert main(["audit", "p.json", "--database", "sqlite:///loans.db", "--view", "scores"]) == 0
