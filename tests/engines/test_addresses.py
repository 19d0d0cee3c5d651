"""MariaDB by its URL: the command line scores a table inside a real server."""

import json
from urllib.parse import quote

import pytest

from gbfl_compile import connect, emit, load_artifact, write_artifact
from gbfl_compile.checking.run import compare, expectation
from gbfl_compile.cli import main
from gbfl_compile.databases import availability
from gbfl_compile.ir.json import save
from tests.databases.test_scoring import PROGRAM, ROWS, expected


@pytest.fixture(scope="module")
def address():
    if reason := availability("mariadb"):
        pytest.skip(reason)
    import pymysql

    from gbfl_compile.databases import mariadb

    socket = mariadb._server()
    with pymysql.connect(unix_socket=socket, user="root", autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE IF NOT EXISTS gbfl_by_url")
        cursor.execute("CREATE OR REPLACE USER careful@localhost IDENTIFIED BY 'it''s / secret'")
        cursor.execute("GRANT ALL ON gbfl_by_url.* TO careful@localhost")
        cursor.execute("CREATE OR REPLACE TABLE gbfl_by_url.people (id INT, age DOUBLE, salary DOUBLE)")
        rows = [(i, *(None if value != value else value for value in row)) for i, row in enumerate(ROWS.tolist())]
        cursor.executemany("INSERT INTO gbfl_by_url.people VALUES (%s, %s, %s)", rows)
    password = quote("it's / secret", safe="")
    return f"mariadb://careful:{password}@localhost/gbfl_by_url?unix_socket={quote(socket, safe='')}"


def test_a_table_is_scored_from_the_command_line(address, tmp_path, capsys):
    save(PROGRAM, tmp_path / "program.json")
    command = ["score", str(tmp_path / "program.json"), "--database", address, "--table", "people"]
    command += ["--to-table", "scored", "--column", "in come=salary", "--key", "id", "--replace", "--json"]
    assert main(command) == 0
    form = json.loads(capsys.readouterr().out)
    assert form["rows"] == len(ROWS)
    assert form["engine"].startswith("MariaDB ")
    database = connect(address)
    assert database.fetch("SELECT id, label, p_0, p_1, p_2 FROM scored ORDER BY id") == expected()
    database.close()


def test_a_wrong_password_is_an_error_that_does_not_show_it(address, tmp_path, capsys):
    save(PROGRAM, tmp_path / "program.json")
    wrong = address.replace("secret", "hunter2")
    tables = ["--table", "people", "--to-table", "scored"]
    assert main(["score", str(tmp_path / "program.json"), "--database", wrong, *tables]) == 3
    message = capsys.readouterr().err
    assert "cannot connect" in message
    assert "hunter2" not in message


def test_an_artifact_answers_on_a_users_connection(address, tmp_path):
    write_artifact(emit(PROGRAM, "sql:mariadb"), tmp_path)
    database = connect(address)
    predictor = load_artifact(tmp_path / "sql-mariadb", database=database)
    assert compare(expectation(PROGRAM), predictor).verdict == "equal"
    assert database.fetch("SHOW TABLES LIKE 'data'") == []
    database.close()
