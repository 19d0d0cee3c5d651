"""Rows put into a table are the rows that come out, bit for bit, whatever the columns are called."""

import numpy as np
import pytest

from gbfl_compile.databases import scratch
from gbfl_compile.errors import BadInput, CannotRun
from tests.databases.doubles import doubles, held_by

HOSTILE = ('say "hi"', "back`tick", "a'b", "back\\slash", "x; DROP TABLE t --", "größe", "line\nbreak", "{{ 7*7 }}")

CASE_BLIND = ("sqlite", "duckdb", "mariadb", "spark")


def read(database, table, columns):
    names = ", ".join(map(database.quote, ("gbfl_row", *columns)))
    return database.fetch(f"SELECT {names} FROM {database.quote(table)} ORDER BY {database.quote('gbfl_row')}")


def as_matrix(rows):
    return np.array([[np.nan if value is None else value for value in row[1:]] for row in rows], dtype=np.float64)


@pytest.mark.parametrize("missing", ["null", "nan"])
def test_every_double_comes_back_equal(database, missing):
    rows = held_by(database, doubles().reshape(-1, 4))
    database.insert("t", ["a", "b", "c", "d"], rows, missing=missing)
    found = read(database, "t", ["a", "b", "c", "d"])
    assert [row[0] for row in found] == list(range(len(rows)))
    assert np.array_equal(as_matrix(found), rows, equal_nan=True)
    if database.holds_infinity and database.holds_nan:  # the others store -0.0 as 0.0
        assert np.array_equal(np.signbit(as_matrix(found)[~np.isnan(rows)]), np.signbit(rows[~np.isnan(rows)]))


def test_a_missing_value_is_null_or_nan_as_the_caller_chooses(database):
    rows = np.array([[np.nan, 1.0], [2.0, np.nan]])
    for missing in ("null", "nan"):
        database.insert("t", ["a", "b"], rows, missing=missing)
        nulls = [value is None for row in read(database, "t", ["a", "b"]) for value in row[1:]]
        assert nulls == [missing == "null" or not database.holds_nan, False, False, nulls[0]]


def test_names_are_only_names(database):
    rows = np.arange(2.0 * len(HOSTILE)).reshape(2, -1)
    database.insert('t" `\\', HOSTILE, rows)
    assert np.array_equal(as_matrix(read(database, 't" `\\', HOSTILE)), rows)


def test_a_table_takes_the_place_of_the_one_before(database):
    database.insert("t", ["a", "b"], np.zeros((3, 2)))
    database.insert("t", ["c"], np.ones((2, 1)))
    assert read(database, "t", ["c"]) == [(0, 1.0), (1, 1.0)]


def test_no_rows_make_an_empty_table(database):
    database.insert("t", ["a"], np.empty((0, 1)))
    assert read(database, "t", ["a"]) == []


def test_many_columns_are_no_trouble(database):
    rows = np.arange(600.0).reshape(2, 300)
    columns = [f"c{i}" for i in range(300)]
    database.insert("t", columns, rows)
    assert np.array_equal(as_matrix(read(database, "t", columns)), rows)


@pytest.mark.parametrize("columns", [["a", "a"], ["gbfl_row"], [""], ["nul\0"], ["\ud800"]])
def test_what_cannot_be_a_column_is_refused(database, columns):
    with pytest.raises(BadInput):
        database.insert("t", columns, np.zeros((1, len(columns))))


def test_names_that_differ_by_case_are_two_columns_or_refused(database):
    rows = np.array([[1.0, 2.0]])
    if database.dialect in CASE_BLIND:
        with pytest.raises(BadInput, match="one column"):
            database.insert("t", ["age", "Age"], rows)
    else:
        database.insert("t", ["age", "Age"], rows)
        assert np.array_equal(as_matrix(read(database, "t", ["age", "Age"])), rows)


def test_a_view_can_stand_on_an_inserted_table(database):
    database.insert("t", ["a"], np.array([[1.5]]))
    table, view, column = (database.quote(name) for name in ("t", "v", "a"))
    database.execute(f"CREATE VIEW {view} AS SELECT {column} + 1 AS b FROM {table}")
    assert database.fetch(f"SELECT b FROM {view}") == [(2.5,)]
    database.execute(f"DROP VIEW {view}")


def test_a_failure_names_the_engine_on_one_line(database):
    with pytest.raises(CannotRun, match=rf"^{database.version}: .*nowhere") as raised:
        database.fetch("SELECT a FROM nowhere")
    assert "\n" not in str(raised.value)
    with pytest.raises(CannotRun, match=rf"^{database.version}: "):
        database.execute("CREATE NONSENSE")


def test_scratch_databases_are_private_and_closed_twice_without_harm(database):
    database.insert("t", ["a"], np.zeros((1, 1)))
    other = scratch(database.dialect)
    with pytest.raises(CannotRun):
        other.fetch("SELECT a FROM t")
    other.insert("t", ["a"], np.ones((1, 1)))
    assert other.fetch("SELECT a FROM t") == [(1.0,)]
    other.close()
    other.close()
    assert database.fetch("SELECT a FROM t") == [(0.0,)]
