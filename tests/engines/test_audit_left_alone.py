"""MariaDB and ClickHouse over URLs: the audit's answer is right, the database unchanged, and no secret is printed."""

import subprocess
import sys
from pathlib import Path

import pytest

from gbfl_compile.databases import availability, connect, from_connection
from gbfl_compile.errors import CannotRun
from tests.auditing.left_alone import ENCODED, SECRET, assert_audits_over, everything_in, fill

ROOT = Path(__file__).parents[2]


@pytest.fixture
def mariadb():
    """An owner's connection to a private server, and the URL of one who may only look."""
    if reason := availability("mariadb"):
        pytest.skip(reason)
    import pymysql

    from gbfl_compile.databases import mariadb as engine

    socket = engine._server()
    connection = pymysql.connect(unix_socket=socket, user="root", charset="utf8mb4", autocommit=True)
    with connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE owned CHARACTER SET utf8mb4")
        cursor.execute("USE owned")
        cursor.execute(f"CREATE USER auditor@localhost IDENTIFIED BY '{SECRET}'")
        cursor.execute("GRANT SELECT, SHOW VIEW, CREATE TEMPORARY TABLES ON owned.* TO auditor@localhost")
    owner = from_connection("mariadb", connection)
    fill(owner)
    yield owner, f"mariadb://auditor:{ENCODED}@localhost/owned?unix_socket={socket}"
    with connection.cursor() as cursor:
        cursor.execute("DROP DATABASE owned")
        cursor.execute("DROP USER auditor@localhost")
    connection.close()


def test_mariadb_is_audited_over_its_url_and_left_as_it_was(mariadb, tmp_path):
    owner, url = mariadb
    before = everything_in(owner)
    assert_audits_over(url, tmp_path)
    assert everything_in(owner) == before


def test_a_connection_for_reading_cannot_write(mariadb):
    _, url = mariadb
    database = connect(url.replace(f"auditor:{ENCODED}@", "root@"), read_only=True)
    try:
        with pytest.raises(CannotRun, match=r"(?i)read only"):
            database.fetch("DELETE FROM data RETURNING income")
        assert database.fetch("SELECT COUNT(*) FROM data") == [(300,)]
    finally:
        database.close()


def test_a_wrong_password_is_not_shown(mariadb):
    _, url = mariadb
    with pytest.raises(CannotRun, match="cannot connect") as raised:
        connect(url.replace(ENCODED, f"{ENCODED}-not"))
    assert "very-secret" not in str(raised.value)


CLICKHOUSE = """
import sys
from pathlib import Path
from gbfl_compile.databases import connect
from tests.auditing.left_alone import assert_audits_over, everything_in, fill
import dataclasses
url, folder = sys.argv[1], Path(sys.argv[2])
owner = connect(url)
fill(owner)
before = everything_in(owner)
assert_audits_over(url, folder)
assert everything_in(owner) == before
print("left as it was")
"""


def test_clickhouse_is_audited_over_its_url_and_left_as_it_was(tmp_path):
    """Its own client, with the engine in the process: no ClickHouse server is to be had here. One engine a process."""
    if reason := availability("clickhouse"):
        pytest.skip(reason)
    url = f"clickhouse://someone:{ENCODED}@localhost/default?interface=chdb&path={tmp_path}/engine"
    command = [sys.executable, "-c", CLICKHOUSE, url, str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.endswith("left as it was\n")
    assert "very-secret" not in run.stdout + run.stderr
