"""A database that drops the connection half way: reported, the old table is intact, and nothing is half written."""

import subprocess
import time

import numpy as np
import pytest

from gbfl_compile.databases import availability, scratch
from gbfl_compile.ir.json import save
from tests.faults.running import GBFL, PROGRAM, start_command, surroundings

pytestmark = pytest.mark.skipif(availability("postgres") is not None, reason=str(availability("postgres")))

MOMENTS = 4
ROWS = 1_500_000


@pytest.fixture(scope="module")
def server():
    """A private server with a table that takes seconds to score, and its address."""
    database = scratch("postgres")
    ((host,),) = database.fetch("SHOW unix_socket_directories")
    ((name,),) = database.fetch("SELECT current_database()")
    ((user,),) = database.fetch("SELECT current_user")
    database.execute(
        "CREATE TABLE people AS SELECT n AS id, (n % 90)::double precision AS age, n / 1000.0::double precision AS income "
        f"FROM generate_series(1, {ROWS}) AS n"
    )
    yield database, f"postgresql://{user}@/{name}?host={host}"
    database.close()


# Connections of others; a server's own helpers (parallel workers, autovacuum) are listed beside them.
OTHERS = (
    "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database() "
    "AND backend_type = 'client backend'"
)


def drop_connections(database):
    """End what other connections are doing; how many there were."""
    return len(database.fetch(f"SELECT pg_terminate_backend(pid) {OTHERS}"))


def dropped_while(database, folder, after, arguments):
    """Run a command and drop its connection `after` seconds after it has one."""
    process = start_command(folder, arguments)
    while process.poll() is None and database.fetch(f"SELECT COUNT(*) {OTHERS}") == [(0,)]:
        time.sleep(0.005)
    time.sleep(after)
    dropped = drop_connections(database)
    output, errors = process.communicate(timeout=120)
    return dropped, process.returncode, output, errors


def rows_of(database):
    return database.fetch("SELECT COUNT(*), MIN(label), MAX(label) FROM scored")


@pytest.fixture
def folder(tmp_path):
    save(PROGRAM, tmp_path / "p.json")
    return tmp_path


def test_scoring_that_loses_its_connection_leaves_the_old_table(server, folder):
    database, url = server
    arguments = [
        "score",
        "p.json",
        "--database",
        url,
        "--table",
        "people",
        "--to-table",
        "scored",
        "--key",
        "id",
        "--replace",
    ]
    database.execute("DROP TABLE IF EXISTS scored")
    database.execute("CREATE TABLE scored AS SELECT 'as before' AS label")
    lost = 0
    for moment in range(MOMENTS):
        dropped, code, _, errors = dropped_while(database, folder, 0.02 + 0.25 * moment, arguments)
        if code == 0:  # it was done before
            assert rows_of(database) == [(ROWS, "no", "yes")]
            continue
        lost += 1
        assert (dropped, code) == (1, 3), errors
        assert "the connection was lost" in errors
        assert len(errors.splitlines()) == 1
        assert rows_of(database) in ([(1, "as before", "as before")], [(ROWS, "no", "yes")])
        database.execute("DROP TABLE IF EXISTS fresh_gbfl")
    assert lost > 0
    ran = subprocess.run([*GBFL, *arguments], cwd=folder, env=surroundings(folder), capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert rows_of(database) == [(ROWS, "no", "yes")]


def test_an_audit_that_loses_its_connection_says_so_and_calls_nothing_equal(server, folder):
    database, url = server
    database.execute("DROP TABLE IF EXISTS scored")
    database.execute("CREATE TABLE scored AS SELECT age, income, 'no' AS label FROM people")
    arguments = ["audit", "p.json", "--database", url, "--scored", "scored", "--log", "log.jsonl", "--html", "a.html"]
    dropped, code, output, errors = dropped_while(database, folder, 1.0, arguments)
    assert (dropped, code) == (1, 3), errors
    assert "the connection was lost" in output + errors
    assert "Traceback" not in errors
    assert "equal" not in output


def test_an_exchange_of_tables_that_fails_half_way_is_undone(tmp_path):
    from gbfl_compile.backends.sql.score import score_in_database
    from gbfl_compile.errors import CannotRun

    database = scratch("sqlite")
    database.insert("people", list(PROGRAM.features), np.array([[30.0, 1.0], [70.0, 1.0]]))
    score_in_database(PROGRAM, database, "people", "scored", keys=("gbfl_row",), outputs="label")
    database.execute(
        "CREATE VIEW sees AS SELECT * FROM missing_table"
    )  # SQLite renames no table while a view is broken
    with pytest.raises(CannotRun):
        score_in_database(PROGRAM, database, "people", "scored", keys=("gbfl_row",), replace=True)
    assert database.fetch("SELECT label FROM scored ORDER BY gbfl_row") == [("yes",), ("no",)]
    database.close()
