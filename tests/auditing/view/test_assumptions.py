"""What a reading could take for granted: exact sums, names, rows of look-up tables, NaN in NUMERIC columns."""

from contextlib import closing
from dataclasses import replace

import pytest

from gbfl_compile.auditing.audit import audit
from gbfl_compile.backends import emit
from gbfl_compile.databases import availability, scratch
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split

ENGINES = ["sqlite", "duckdb", "postgres"]
CARD = Program(
    ("income", "debt"),
    ("no", "yes"),
    (Clause((Interval(0, 30000.0),)), Clause((Interval(1, None, 0.4),))),
    Scorecard((0, -7), ((0, 1), (0, 7)), 1),
)
ONE = Program(
    ("income", "debt"), ("no", "yes"), (Clause((Interval(1, 0.4),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0))
)
POINTS = (
    "CASE WHEN (CASE WHEN income >= 30000 THEN {} ELSE 0 END) + (CASE WHEN debt < 0.4 THEN {} ELSE 0 END) >= {} "
    "THEN 'yes' ELSE 'no' END AS label FROM loans"
)
NOT_NULL = "ALTER TABLE loans ALTER COLUMN debt SET NOT NULL"
RULE = "CASE WHEN {} >= 0.4 THEN 'yes' ELSE 'no' END AS label"


def verdict(engine, program, *statements):
    """What an audit says of the view v of a table of loans."""
    if reason := availability(engine):
        pytest.skip(reason)
    with closing(scratch(engine)) as database:
        database.execute("CREATE TABLE loans (id INTEGER, income INTEGER, debt NUMERIC(6, 4))")
        database.execute("INSERT INTO loans VALUES (1, 30000, 0.3), (2, 29999, 0.4), (3, 30000, NULL), (4, NULL, 0.1)")
        for statement in statements:
            database.execute(statement)
        (found,) = audit(program, database=database, view="v").verdicts
        return found


@pytest.mark.parametrize("engine", ENGINES)
def test_decimal_points_are_added_as_the_engine_adds_them(engine):
    """As doubles 0.1 + 0.7 is below 0.8."""
    found = verdict(engine, CARD, f"CREATE VIEW v AS SELECT id, {POINTS.format(0.1, 0.7, 0.8)}")
    assert found.verdict in (("different", "unread") if engine == "sqlite" else ("equal",)), found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("points", "expected"), [((0.25, 1.75, 2.0), "equal"), ((0.25, 1.75, 1.75), "different")])
def test_decimal_points_that_doubles_hold_exactly_are_read_everywhere(engine, points, expected):
    assert verdict(engine, CARD, f"CREATE VIEW v AS SELECT id, {POINTS.format(*points)}").verdict == expected


@pytest.mark.parametrize("cast", ["debt", "debt::double precision"])
def test_that_a_numeric_column_of_postgres_holds_no_nan_is_an_assumption_and_a_row_with_one_is_found(cast):
    view = f"CREATE VIEW v AS SELECT id, {RULE.format(cast)} FROM loans"
    found = verdict("postgres", ONE, view)
    assert (found.verdict, found.is_proved) == ("equal", False)
    assert "debt holds no NaN" in found.proof_assumes
    assert verdict("postgres", ONE, view, "INSERT INTO loans VALUES (5, 1, 'NaN')").verdict != "equal"


@pytest.mark.parametrize(("if_missing", "assumed"), [(False, None), (True, "that debt holds no NaN")])
def test_a_strict_view_of_a_numeric_column_that_is_not_null_may_still_read_a_nan(if_missing, assumed):
    """The view answers NaN as it does NULL: where that is another answer than the approved one, it is assumed away."""
    approved = replace(ONE, clauses=(Clause((Interval(1, 0.4, if_missing=if_missing),)),))
    options = {"form": "view", "view": "v", "table": "loans", "key": "id"}
    view = emit(ONE, "sql:postgres", options=options).files["model.sql"].decode()
    found = verdict("postgres", approved, "DELETE FROM loans WHERE debt IS NULL", NOT_NULL, view)
    assert (found.verdict, found.proof.answer, found.proof_assumes) == ("equal", "proved", assumed)


def test_a_temporary_view_or_table_does_not_pass_for_what_a_view_reads():
    stage = "CREATE {} VIEW stage AS SELECT id, income, {} AS debt FROM loans"
    view = f"CREATE VIEW v AS SELECT id, {RULE.format('debt')} FROM stage"
    found = verdict("sqlite", ONE, stage.format("", "debt + 1"), view, stage.format("TEMP", "debt"))
    assert found.verdict in ("unread", "not run")
    with pytest.raises(BadInput, match="drop the temporary one"):
        verdict("sqlite", ONE, view.replace("stage", "loans"), "CREATE TEMP TABLE v (id, label)")


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_a_value_of_another_table_than_the_grouped_one_is_not_a_key(engine):
    other = "CREATE TABLE others AS SELECT id, debt FROM loans"
    view = f"SELECT loans.id, {RULE.format('max(others.debt)')} FROM loans JOIN others ON others.id < loans.id"
    found = verdict(engine, ONE, other, f"CREATE VIEW v AS {view} GROUP BY loans.id, loans.debt")
    assert found.verdict != "equal"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_look_up_table_is_read_as_it_is_now_and_that_is_said(engine):
    statements = (
        "CREATE TABLE policy (cut NUMERIC(6, 4))",
        "INSERT INTO policy VALUES (0.4)",
        f"CREATE VIEW v AS SELECT id, {RULE.format('debt').replace('0.4', 'policy.cut')} FROM loans CROSS JOIN policy",
    )
    found = verdict(engine, ONE, *statements)
    assert found.verdict == "equal", found
    assert "policy as it is now (1 row)" in found.row_effects
    assert verdict(engine, ONE, *statements, "UPDATE policy SET cut = 0.41").verdict == "different"
    assert verdict(engine, ONE, *statements, "INSERT INTO policy VALUES (0.5)").verdict != "equal"
