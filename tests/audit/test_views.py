"""Views, read back from the catalog as the database rewrote them: equal ones are proved, tampered ones found."""

import sqlite3

import numpy as np
import pytest

from gbfl_compile.cli import main
from gbfl_compile.databases import availability, from_connection, scratch
from gbfl_compile.ir.json_form import save
from tests.audit.tampering import TAMPERED_TREES, TREE
from tests.audit.view_cases import CASES, assert_audits_are_right, make_view


@pytest.fixture(scope="module", params=("sqlite", "duckdb", "postgres"))
def database(request):
    if reason := availability(request.param):
        pytest.skip(reason)
    made = scratch(request.param)
    yield made
    made.close()


@pytest.mark.parametrize("kind", CASES)
def test_views_are_proved_or_found_out(database, kind):
    assert_audits_are_right(database, kind)


def everything_in(path):
    with sqlite3.connect(path) as connection:
        return list(connection.iterdump())


def test_the_database_is_left_as_it_was(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(TREE, tmp_path / "approved.json")
    connection = sqlite3.connect("loans.db")
    connection.execute("CREATE TABLE data (income REAL, age REAL, debt REAL, years REAL)")
    connection.executemany("INSERT INTO data VALUES (?, ?, ?, ?)", np.ones((5, 4)).tolist())
    connection.commit()
    database = from_connection("sqlite", connection)
    make_view(database, TREE)
    make_view(database, TAMPERED_TREES[3][1], view="other_scores")
    connection.commit()
    connection.close()
    before = everything_in("loans.db")
    command = ["audit", "approved.json", "--database", "sqlite:///loans.db"]
    assert main([*command, "--view", "scores"]) == 0
    assert "equal (proved; 0 different of" in capsys.readouterr().out
    assert main([*command, "--view", "scores", "--view", "other_scores"]) == 1
    assert "clause 0: income >= 50000 is deployed as income > 50000" in capsys.readouterr().out
    assert everything_in("loans.db") == before


def test_a_view_that_is_not_there_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(TREE, tmp_path / "approved.json")
    sqlite3.connect("loans.db").close()
    (tmp_path / "loans.db").write_bytes(b"")
    command = ["audit", "approved.json", "--database", "sqlite:///loans.db", "--view"]
    assert main([*command, "scores"]) == 2
    assert "has no view 'scores'" in capsys.readouterr().err
    assert main([*command, "x'; DROP TABLE data; --"]) == 2
    assert "is not looked up" in capsys.readouterr().err


def test_a_password_is_never_told(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(TREE, tmp_path / "approved.json")
    address = "postgresql://someone:very-secret@127.0.0.1:9/none"
    assert main(["audit", "approved.json", "--database", address, "--view", "scores"]) in (2, 3)
    told = capsys.readouterr()
    assert "very-secret" not in told.out + told.err


def test_a_view_on_a_view_is_not_called_equal(tmp_path, capsys, monkeypatch):
    """The inner one swaps two columns, and the outer one is the program to the letter."""
    monkeypatch.chdir(tmp_path)
    save(TREE, tmp_path / "approved.json")
    connection = sqlite3.connect("loans.db")
    connection.execute("CREATE TABLE loans (income REAL, age REAL, debt REAL, years REAL)")
    connection.execute("CREATE VIEW data AS SELECT age AS income, income AS age, debt, years FROM loans")
    make_view(from_connection("sqlite", connection), TREE)
    connection.commit()
    connection.close()
    assert main(["audit", "approved.json", "--database", "sqlite:///loans.db", "--view", "scores"]) == 3
    assert "stands on data, which is a view itself" in capsys.readouterr().out
