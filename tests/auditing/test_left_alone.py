"""Audits over real URLs: the answer is right, the database is left unchanged, and no secret is printed."""

import sqlite3

import pytest

from gbfl_compile.auditing.scored import audit_scored
from gbfl_compile.auditing.scored import source as scored_database
from gbfl_compile.cli import main
from gbfl_compile.databases import availability, connect, from_connection
from gbfl_compile.errors import CannotRun
from gbfl_compile.ir.json import save
from tests.auditing.left_alone import ENCODED, SECRET, assert_audits_over, everything_in, fill
from tests.auditing.tampering import TREE


@pytest.fixture(params=("sqlite", "duckdb", "postgres"))
def place(request, tmp_path):
    """An owner's own connection to a database, and the URL by which the auditor gets there."""
    if reason := availability(request.param):
        pytest.skip(reason)
    if request.param == "postgres":
        yield from on_a_server()
        return
    path = tmp_path / "owned.db"
    open_it = sqlite3.connect if request.param == "sqlite" else pytest.importorskip("duckdb").connect

    def owner():
        return from_connection(request.param, open_it(str(path)))

    connection = open_it(str(path))
    fill_as_owner(from_connection(request.param, connection), connection)
    yield owner, f"{request.param}:///{path}", path  # noqa: PT022 - the server's teardown is in what it yields from


def fill_as_owner(database, connection):
    fill(database)
    connection.commit()
    connection.close()


def on_a_server():
    """A user who logs in with a password, in a private PostgreSQL."""
    psycopg = pytest.importorskip("psycopg")
    from gbfl_compile.databases import postgres

    server = postgres._server()
    with psycopg.connect(server.get_uri(), autocommit=True) as main:
        main.execute("DROP DATABASE IF EXISTS owned")
        main.execute("CREATE DATABASE owned")
        main.execute("DROP ROLE IF EXISTS auditor")
        main.execute(f"CREATE ROLE auditor LOGIN PASSWORD '{SECRET}' IN ROLE pg_read_all_data")
    with psycopg.connect(server.get_uri("owned"), autocommit=True) as connection:
        fill(from_connection("postgres", connection))

    def owner():
        return from_connection("postgres", psycopg.connect(server.get_uri("owned"), autocommit=True))

    host = server.get_uri("owned").partition("?")[2]
    yield owner, f"postgresql://auditor:{ENCODED}@/owned?{host}", None
    with psycopg.connect(server.get_uri(), autocommit=True) as main:
        main.execute("DROP DATABASE owned WITH (FORCE)")
        main.execute("DROP ROLE auditor")


def seen(owner):
    database = owner()
    try:
        return everything_in(database)
    finally:
        database.close()


def test_an_audit_answers_and_leaves_the_database_as_it_was(place, tmp_path):
    owner, url, path = place
    before = seen(owner), None if path is None else path.read_bytes()
    assert_audits_over(url, tmp_path)
    assert (seen(owner), None if path is None else path.read_bytes()) == before


def test_a_connection_for_reading_cannot_write(place):
    _, url, _ = place
    database = connect(url, read_only=True)
    try:
        for statement in ("DELETE FROM data RETURNING income", "CREATE TABLE made AS SELECT 1 AS a"):
            with pytest.raises(CannotRun, match=r"(?i)read.?only|cannot execute"):
                database.fetch(statement)
        assert database.fetch("SELECT COUNT(*) FROM data") == [(300,)]
    finally:
        database.close()


SECRET_URLS = (
    f"postgresql://someone:{ENCODED}@127.0.0.1:9/none",
    f"postgresql://127.0.0.1:9/none?password={ENCODED}",
    f"postgresql://someone:{ENCODED}@127.0.0.1:9/none?no_such_option={ENCODED}",
    f"mysql://someone:{ENCODED}@127.0.0.1:9/none",
    f"mariadb://someone:{ENCODED}@127.0.0.1:9/none?no_such_option=1",
    f"clickhouse://someone:{ENCODED}@127.0.0.1:9/none",
    f"postgresql://someone:{SECRET}@127.0.0.1:9/none",
    f"snowflake://someone:{ENCODED}@account/none",
    f"nosuch://someone:{ENCODED}@host/none",
    f"sqlite://someone:{ENCODED}@host/none",
)


@pytest.mark.parametrize("url", SECRET_URLS)
@pytest.mark.parametrize("what", ["--view", "--scored"])
def test_no_error_of_any_driver_repeats_a_secret(url, what, tmp_path, capfd):
    save(TREE, tmp_path / "approved.json")
    log, page = tmp_path / "log.jsonl", tmp_path / "page.html"
    command = ["audit", str(tmp_path / "approved.json"), "--database", url, what, "scores"]
    assert main([*command, "--log", str(log), "--html", str(page)]) in (2, 3)
    printed = capfd.readouterr()
    assert len(printed.err.splitlines()) == 1, "one error, ours, and nothing that a driver says by itself"
    for text in (printed.out, printed.err):
        assert "very-secret" not in text
    assert not log.exists()
    assert not page.exists()


def test_a_table_of_many_pages_is_read_whole_by_a_connection_for_reading(place, monkeypatch):
    _, url, _ = place
    monkeypatch.setattr(scored_database, "PAGE_ROWS", 70)
    database = connect(url, read_only=True)
    try:
        for table, as_approved in (("scored", True), ("scored_otherwise", False)):
            found = audit_scored(TREE, (database, table))
            assert found.checked_rows == 300
            assert (found.different_rows == 0) == as_approved
    finally:
        database.close()
