"""`gbfl score --database` scores inside the database and says what it did."""

import json
import sqlite3

import pytest

from gbfl_compile.cli import main
from gbfl_compile.ir.json import save
from tests.databases.test_scoring import PROGRAM, ROWS, expected


@pytest.fixture
def place(tmp_path):
    save(PROGRAM, tmp_path / "program.json")
    with sqlite3.connect(tmp_path / "f.db") as connection:
        connection.execute("CREATE TABLE people (id INTEGER, age REAL, salary REAL)")
        connection.executemany(
            "INSERT INTO people VALUES (?, ?, ?)", [(i, *row) for i, row in enumerate(ROWS.tolist())]
        )
    connection.close()
    return tmp_path


def arguments(place, *more):
    url = f"sqlite:///{place}/f.db"
    tables = [
        "--database",
        url,
        "--table",
        "people",
        "--to-table",
        "scored",
        "--column",
        "in come=salary",
        "--key",
        "id",
    ]
    return ["score", str(place / "program.json"), *tables, *more]


def test_a_table_is_scored_inside_its_database(place, capsys):
    assert main(arguments(place, "--json")) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == len(ROWS)
    with sqlite3.connect(place / "f.db") as connection:
        found = connection.execute("SELECT id, label, p_0, p_1, p_2 FROM scored ORDER BY id").fetchall()
    connection.close()
    assert found == expected()
    assert main(arguments(place)) == 2
    assert "this table exists already" in capsys.readouterr().err
    assert main(arguments(place, "--replace")) == 0


def test_half_of_the_options_is_bad_usage(place, capsys):
    assert main(["score", str(place / "program.json"), "--table", "people"]) == 2
    assert "--to-table" in capsys.readouterr().err
    assert main(["score", str(place / "program.json")]) == 2
    assert main(arguments(place, "--column", "age")) == 2
    assert "FEATURE=COLUMN" in capsys.readouterr().err
