"""An artifact answers in a database of the user's as it does in a private one, and leaves nothing there."""

import sqlite3

import numpy as np
import pytest

from gbfl_compile import BadInput, emit, from_connection, load_artifact, score_in_database, write_artifact
from gbfl_compile.checking.run import compare, expectation
from gbfl_compile.databases import availability
from tests.databases.test_scoring import PROGRAM, ROWS, expected


def open_sqlite():
    connection = sqlite3.connect(":memory:")
    return connection, connection.execute


def open_duckdb():
    connection = pytest.importorskip("duckdb").connect()
    return connection, connection.execute


def open_postgres():
    if reason := availability("postgres"):
        pytest.skip(reason)
    import psycopg

    from gbfl_compile.databases import postgres

    connection = psycopg.connect(postgres._server().get_uri())  # not autocommit: each test is one transaction
    return connection, connection.execute


def open_datafusion():
    session = pytest.importorskip("datafusion").SessionContext()
    return session, lambda query: session.sql(query).collect()


OPEN = {"sqlite": open_sqlite, "duckdb": open_duckdb, "postgres": open_postgres, "datafusion": open_datafusion}


@pytest.fixture(params=OPEN)
def mine(request):
    """A database over a connection that a user has opened, and the connection's own way to run a statement."""
    connection, execute = OPEN[request.param]()
    yield from_connection(request.param, connection), execute
    if hasattr(connection, "close"):
        connection.close()


@pytest.mark.parametrize("form", ["select", "expression"])
def test_an_artifact_answers_on_a_users_connection(mine, tmp_path, form):
    database, execute = mine
    write_artifact(emit(PROGRAM, f"sql:{database.dialect}", form=form, table="mine_gbfl"), tmp_path)
    folder = tmp_path / f"sql-{database.dialect}"
    predictor = load_artifact(folder, database=database)
    verdict = compare(expectation(PROGRAM, ROWS), predictor)
    assert (verdict.verdict, verdict.execution.different) == ("equal", 0)
    assert predictor.answer(ROWS).labels.tolist() == [label for _, label, *_ in expected()]
    execute("CREATE TABLE mine_gbfl (kept DOUBLE PRECISION)")  # the name is free again
    with pytest.raises(BadInput, match="the database has a table of this name"):
        predictor.answer(ROWS)
    assert database.fetch("SELECT kept FROM mine_gbfl") == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"form": "view", "table": "t"}, "form=view"),
        ({"form": "table", "table": "t"}, "form=table"),
        ({"schema": "s"}, "in schema 's'"),
    ],
)
def test_an_artifact_that_would_make_something_there_is_refused(mine, tmp_path, options, says):
    database, _ = mine
    write_artifact(emit(PROGRAM, f"sql:{database.dialect}", **options), tmp_path)
    with pytest.raises(BadInput, match=says):
        load_artifact(tmp_path / f"sql-{database.dialect}", database=database)


def test_an_artifact_for_another_engine_is_refused(tmp_path):
    write_artifact(emit(PROGRAM, "sql:oracle"), tmp_path)
    write_artifact(emit(PROGRAM, "python"), tmp_path)
    with sqlite3.connect(":memory:") as connection:
        database = from_connection("sqlite", connection)
        with pytest.raises(BadInput, match="is for sql:oracle, the database is one for sql:sqlite"):
            load_artifact(tmp_path / "sql-oracle", database=database)
        with pytest.raises(BadInput, match="is for python"):
            load_artifact(tmp_path / "python", database=database)
    connection.close()


def test_options_are_passed_by_name_or_as_a_mapping():
    by_name = emit(PROGRAM, "sql:postgres", form="view", table="loans", **{"column.age": "years"})
    assert by_name == emit(PROGRAM, "sql:postgres", options={"form": "view", "table": "loans", "column.age": "years"})
    with pytest.raises(BadInput, match=r"key=\['id'\]: give options as text"):
        emit(PROGRAM, "sql:postgres", key=["id"])


def test_a_table_is_scored_within_a_users_transaction():
    """Asking whether a table is there fails where it is not, which must not spoil the transaction."""
    connection, _ = open_postgres()
    database = from_connection("postgres", connection)
    database.insert("people_here", ["age", "in come"], ROWS)
    made = score_in_database(PROGRAM, database, "people_here", "scored_here", keys=("gbfl_row",))
    assert made.rows == len(ROWS)
    assert sorted(database.fetch("SELECT gbfl_row, label, p_0, p_1, p_2 FROM scored_here")) == expected()
    connection.rollback()
    assert connection.execute("SELECT to_regclass('scored_here')").fetchone() == (None,)
    connection.close()


def test_a_predictor_can_be_called_again(mine, tmp_path):
    database, _ = mine
    write_artifact(emit(PROGRAM, f"sql:{database.dialect}"), tmp_path)
    predictor = load_artifact(tmp_path / f"sql-{database.dialect}", database=database)
    one, two = predictor.answer(ROWS), predictor.answer(ROWS[::-1])
    assert one.labels.tolist() == two.labels.tolist()[::-1]
    assert np.array_equal(one.probabilities, two.probabilities[::-1])
