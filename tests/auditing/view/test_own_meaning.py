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


HIDDEN = "if(loans.income = 77777, 0, loans.income) AS income"
NAMED_WITHIN = {
    "in a filter": f"SELECT id, {RULE} AS label FROM loans WHERE id + ({HIDDEN}) IS NOT NULL OR 1",
    "in another column": f"SELECT id, {RULE} AS label, [({HIDDEN})] AS listed FROM loans",
    "in an order": f"SELECT id, {RULE} AS label FROM loans ORDER BY id + ({HIDDEN})",
    "in a layer": f"SELECT id, {RULE} AS label FROM (SELECT id, income, debt FROM loans WHERE (({HIDDEN}) >= 0) OR 1)",
}


@pytest.mark.parametrize("place", NAMED_WITHIN)
def test_a_name_that_clickhouse_takes_from_within_an_expression_is_not_read_as_the_column(place):
    view = f"CREATE VIEW v AS {NAMED_WITHIN[place]}"
    found, label = audited("clickhouse", TABLES["clickhouse"], [view], "(9, 77777, 0.1)")
    assert label == "no", "it is not a wrong program"
    assert found.verdict in ("different", "unread"), found


def test_rows_that_clickhouse_merges_by_an_alias_are_not_read_as_merged_by_the_key():
    if reason := availability("clickhouse"):
        pytest.skip(reason)
    with closing(scratch("clickhouse")) as database:
        database.execute(f"CREATE TABLE loans {TABLES['clickhouse']}")
        database.execute("INSERT INTO loans VALUES (1, 5000, 0.1), (2, 10, 0.1)")
        database.execute(f"CREATE VIEW below AS SELECT id, {RULE} AS label FROM loans")
        database.execute("CREATE VIEW v AS SELECT 0 * id AS id, max(label) AS label FROM below GROUP BY id")
        assert database.fetch("SELECT label FROM v") == [("yes",)], "the alias decides, and 2 rows become one"
        (found,) = audit(PROGRAM, database=database, view="v").verdicts
        assert found.verdict in ("different", "unread"), found


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_a_query_for_each_row_that_leaves_rows_out_is_stated(engine):
    if reason := availability(engine):
        pytest.skip(reason)
    with closing(scratch(engine)) as database:
        database.execute(f"CREATE TABLE loans {TABLES[engine]}")
        database.execute("INSERT INTO loans VALUES (1, 77777, 0.1), (2, 5000, 0.1)")
        lateral = "LATERAL (SELECT 1 AS one WHERE loans.income <> 77777) kept"
        database.execute(f"CREATE VIEW v AS SELECT id, {RULE} AS label FROM loans CROSS JOIN {lateral}")
        assert database.fetch("SELECT id FROM v") == [(2,)]
        (found,) = audit(PROGRAM, database=database, view="v").verdicts
        assert found.verdict == "equal", found
        assert any("77777" in words for words in found.row_effects), found.row_effects


@pytest.mark.parametrize(
    ("column", "condition", "verdict"),
    [("true", "true", "unread"), ("FALSE", "NOT false", "unread"), ("truth", "TRUE", "equal")],
)
def test_a_column_of_sqlite_called_true_is_not_mistaken_for_the_word(column, condition, verdict):
    """The column is in the table, and holds what makes the condition false."""
    with closing(scratch("sqlite")) as database:
        held = int(column == "FALSE")
        database.execute(f"CREATE TABLE loans (id INTEGER, income INTEGER, debt REAL, {column} INTEGER DEFAULT {held})")
        database.execute("INSERT INTO loans (id, income, debt) VALUES (9, 77777, 0.1)")
        for statement in besides(condition):
            database.execute(statement)
        (found,) = audit(PROGRAM, database=database, view="v").verdicts
        assert database.fetch("SELECT label FROM v") == [("yes" if verdict == "equal" else "no",)]
        assert found.verdict == verdict, found
        assert verdict == "equal" or f"the column {column}" in found.reason, found
