"""A row that gets several answers, and one whose answer is NULL, are shown on rows that the table has."""

from contextlib import closing

import pytest

from gbfl_compile.auditing.audit import audit
from gbfl_compile.databases import availability, scratch
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split

PROGRAM = Program(
    ("income",),
    (0, 1),
    (Clause((Interval(0, 30000.0),)),),
    split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
)
PARTS = "SELECT id, 1 AS label FROM loans WHERE income >= 30000 UNION ALL SELECT id, 0 FROM loans WHERE income {}"


def audit_of(view, *others, engine="duckdb", program=PROGRAM):
    if reason := availability(engine):
        pytest.skip(reason)
    with closing(scratch(engine)) as database:
        database.execute("CREATE TABLE loans (id INTEGER, income INTEGER)")
        database.execute("INSERT INTO loans VALUES (1, 30000), (2, 29999), (3, 77777)")
        for other in others:
            database.execute(other)
        database.execute(f"CREATE VIEW v AS {view}")
        return audit(program, database=database, view="v").verdicts[0]


@pytest.mark.parametrize("engine", ["sqlite", "duckdb", "postgres"])
def test_parts_that_overlap_are_different_on_the_row_that_gets_both_answers(engine):
    one = audit_of(PARTS.format("<= 30000"), engine=engine)
    assert one.verdict == "different"
    assert (one.region.row, one.region.approved, one.region.deployed) == ({"income": 30000.0}, 1, 0)
    assert one.execution.different == 1


def test_bins_that_overlap_are_different():
    bins = "CREATE TABLE bins AS SELECT 0 AS low, 30000 AS high, 0 AS label UNION ALL SELECT 30000, 99999999, 1"
    one = audit_of("SELECT id, label FROM loans JOIN bins ON income >= low AND income <= high", bins)
    assert one.verdict == "different"
    assert one.region.row == {"income": 30000.0}


def test_rows_of_another_table_are_not_held_against_a_view():
    others = "CREATE TABLE others AS SELECT 77 AS id, 0 AS label"
    overlapping = f"{PARTS.format('< 30000')} UNION ALL SELECT id, label FROM others"
    one = audit_of(overlapping, others)
    assert (one.verdict, one.execution) == ("unread", None)


def test_an_answer_that_is_null_is_shown_on_a_row_of_the_table():
    one = audit_of("SELECT id, CASE WHEN income >= 30000 THEN 1 END AS label FROM loans")
    assert (one.verdict, one.region.row) == ("different", {"income": 29999.0})
    assert (repr(one.region.approved), one.region.deployed) == ("0", None)
