"""Literals and names that an engine takes in its own way: no view is called equal, or different, for what they seem."""

from contextlib import closing

import pytest

from gbfl_compile.auditing.audit import audit
from gbfl_compile.databases import availability, scratch
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split
from tests.auditing.view.test_deceptions import PROGRAM, RULE, TABLES, besides


def audited(engine, table, statements, row, program=PROGRAM):
    """The verdict, and what the view says of a row that comes after it."""
    if reason := availability(engine):
        pytest.skip(reason)
    with closing(scratch(engine)) as database:
        database.execute(f"CREATE TABLE loans {table}")
        for statement in statements:
            database.execute(statement)
        (found,) = audit(program, database=database, view="v").verdicts
        database.execute(f"INSERT INTO loans VALUES {row}")
        ((label,),) = database.fetch("SELECT label FROM v WHERE id = 9")
        return found, label


def test_a_stage_that_hides_another_one_is_not_read():
    """MariaDB takes the outer one, the other engines the inner one."""
    outer = "SELECT id, CASE WHEN income = 77777 THEN 0 ELSE income END AS income, debt FROM loans"
    stages = f"WITH a AS ({outer}), b AS (WITH a AS (SELECT id, income, debt FROM loans) SELECT * FROM a)"
    view = f"CREATE VIEW v AS {stages} SELECT id, {RULE} AS label FROM b"
    found, label = audited("mariadb", TABLES["mariadb"], [view], "(9, 77777, 0.1)")
    assert (label, found.verdict) == ("no", "unread"), found


FLOATS = "(id INTEGER, income INTEGER, debt FLOAT)"


@pytest.mark.parametrize(
    "condition", ["debt <> 0.1", "debt NOT IN (0.1, 0.3)", "NOT (debt BETWEEN 0.1 AND 0.1)", "debt <> 0.100000001"]
)
def test_a_literal_that_duckdb_narrows_to_the_float_beside_it_is_not_read_as_a_double(condition):
    found, label = audited("duckdb", FLOATS, besides(condition), "(9, 77777, 0.1)")
    assert label == "no", "it is not a wrong program"
    assert found.verdict in ("different", "unread"), found


@pytest.mark.parametrize(
    ("condition", "verdict"),
    [
        ("debt < 0.35", "different"),
        ("debt < 3.5e-1", "equal"),
        ("debt < CAST(0.35 AS DOUBLE)", "equal"),
        ("CAST(debt AS DOUBLE) < 0.35", "equal"),
    ],
)
def test_a_float_of_duckdb_is_compared_as_the_literal_beside_it_says(condition, verdict):
    """The float nearest to 0.35 is less than 0.35."""
    program = Program(
        PROGRAM.features,
        PROGRAM.classes,
        (Clause((Interval(0, 3000.0), Interval(1, None, 0.35))),),
        split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
    )
    view = f"CREATE VIEW v AS SELECT id, {RULE.replace('debt < 0.4', condition)} AS label FROM loans"
    found, label = audited("duckdb", FLOATS, [view], "(9, 77777, 0.35)", program)
    assert (found.verdict, label) == (verdict, "no" if verdict == "different" else "yes"), found


LONG = ["debt <> 0.10000000000000001", "income <> 77777.0000000000000000000001"]
"""To the double nearest to it the first is 0.1, and the other 77777; as decimals they are neither."""


@pytest.mark.parametrize("engine", ["postgres", "mariadb"])
@pytest.mark.parametrize("condition", LONG)
def test_a_row_that_the_view_answers_as_approved_shows_no_difference(engine, condition):
    found, label = audited(engine, TABLES[engine], besides(condition), "(9, 77777, 0.1)")
    assert label == "yes"
    assert found.verdict in ("equal", "unread"), found


@pytest.mark.parametrize("engine", ["postgres", "sqlite", "duckdb"])
def test_a_row_that_the_view_answers_otherwise_is_still_a_difference(engine):
    found, label = audited(engine, TABLES[engine], besides("income <> 77777"), "(9, 77777, 0.1)")
    assert (found.verdict, label) == ("different", "no"), found


TRUTHS_AS_NUMBERS = [
    "COALESCE((income <> 77777 OR NULL), 2) <> 2",
    "COALESCE((income <> 77777 OR NULL), 2) = 1",
    "IFNULL((income <> 77777 OR NULL), -1) >= 0",
    "(CASE WHEN income > 5 THEN COALESCE((income <> 77777 OR NULL), 7) ELSE 0 END) <= 1",
]


@pytest.mark.parametrize("engine", ["sqlite", "mariadb", "clickhouse"])
@pytest.mark.parametrize("condition", TRUTHS_AS_NUMBERS)
def test_a_number_in_the_place_of_an_unknown_truth_value_stays_that_number(engine, condition):
    found, label = audited(engine, TABLES[engine], besides(condition), "(9, 77777, 0.1)")
    assert (found.verdict, label) in (("different", "no"), ("unread", "no")), found
