"""A view that joins a table to itself: whose features are read is not known, so it is never called equal."""

import pytest

from gbfl_compile.auditing.audit import audit
from gbfl_compile.databases import availability, scratch
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split

PROGRAM = Program(
    ("age", "income"),
    ("no", "yes"),
    (Clause((Interval(0, 1.0),)),),
    split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
)
JOINS = {
    "another column than the key": "JOIN data b ON a.income = b.income",
    "a column that is called as one": "JOIN data b ON a.id = b.id",
    "using": "JOIN data b USING (income)",
    "left": "LEFT JOIN data b ON a.income = b.income",
    "a layer": "JOIN (SELECT income AS id, age, income FROM data) b ON a.id = b.id",
    "everything": "CROSS JOIN data b",
}


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
@pytest.mark.parametrize("join", JOINS)
def test_a_table_joined_to_itself_is_not_equal(engine, join):
    if reason := availability(engine):
        pytest.skip(reason)
    database = scratch(engine)
    try:
        database.execute("CREATE TABLE data (id INTEGER, age DOUBLE PRECISION, income DOUBLE PRECISION)")
        database.execute("INSERT INTO data VALUES (1, 0, 5), (2, 2, 5)")
        database.execute(
            "CREATE VIEW v AS SELECT a.id, CASE WHEN b.age >= 1 THEN 'yes' ELSE 'no' END AS label "
            f"FROM data a {JOINS[join]}"
        )
        assert audit(PROGRAM, database=database, view="v").verdict in ("unread", "different")
    finally:
        database.close()


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_a_sum_of_points_in_place_of_a_tree_is_described(engine):
    if reason := availability(engine):
        pytest.skip(reason)
    database = scratch(engine)
    try:
        database.execute("CREATE TABLE data (id INTEGER PRIMARY KEY, age DOUBLE PRECISION, income DOUBLE PRECISION)")
        database.execute("INSERT INTO data VALUES (1, 0, 5), (2, 2, 5)")
        points = "SUM(CASE WHEN age >= 2 THEN 1 ELSE 0 END)"
        database.execute(
            f"CREATE VIEW v AS SELECT id, CASE WHEN {points} > 0 THEN 'yes' ELSE 'no' END AS label FROM data GROUP BY id"
        )
        (found,) = audit(PROGRAM, database=database, view="v").verdicts
        assert found.verdict == "different"
        assert [change.where for change in found.changes] == ["clause 0"]
    finally:
        database.close()
