"""Words, truth values and moments as people compare them: read as the engine does, and run on what the column holds."""

import datetime as dt
from contextlib import closing

import pytest

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.view import audit_view
from gbfl_compile.databases import availability, scratch
from gbfl_compile.ir.nodes import TRUE, Clause, Interval, OneOf, Program, leaf, split


def micro(text):
    return float((dt.datetime.fromisoformat(text) - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1))


def program(name, kind, atom):
    return Program((name,), ("no", "yes"), (Clause((atom,)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)), kinds=(kind,))


OTHERS = program("segment", "category", OneOf(0, ("private", "retail"), True, True))
SMOKERS = program("smoker", "boolean", OneOf(0, (TRUE,)))
SEEN = program("seen", "timestamp", Interval(0, micro("2024-03-01"), micro("2024-06-01 12:00:00")))


def verdict_on(engine, approved, declared, condition, row="NULL"):
    if reason := availability(engine):
        pytest.skip(reason)
    with closing(scratch(engine)) as database:
        (name,) = approved.features
        where = " ENGINE = Memory" if engine == "clickhouse" else ""
        database.execute(f"CREATE TABLE loans (id INTEGER, {name} {declared}){where}")
        database.execute(f"INSERT INTO loans VALUES (1, {row})")
        database.execute(
            f"CREATE VIEW scores AS SELECT id, CASE WHEN {condition} THEN 'yes' ELSE 'no' END AS label FROM loans"
        )
        return audit_view(AuditInput(approved, mends=False), database, "scores", "view scores")


@pytest.mark.parametrize("declared", ["TEXT", "VARCHAR(20)"])
@pytest.mark.parametrize(
    ("condition", "verdict"),
    [
        ("segment NOT IN ('private', 'retail') OR segment IS NULL", "equal"),
        ("COALESCE(segment, '') NOT IN ('private', 'retail')", "equal"),
        ("NOT (segment = 'private' OR segment = 'retail') OR segment IS NULL", "equal"),
        ("segment NOT IN ('private', 'retail')", "different"),
        ("segment NOT IN ('private', 'Retail') OR segment IS NULL", "different"),
        ("segment NOT IN ('private') OR segment IS NULL", "different"),
        ("segment NOT IN ('private', 'retail', NULL) OR segment IS NULL", "different"),
    ],
)
def test_not_in_of_postgresql_is_read_as_what_it_becomes_there(declared, condition, verdict):
    """PostgreSQL stores it as `<> ALL (ARRAY['private', 'retail'])`."""
    assert verdict_on("postgres", OTHERS, declared, condition).verdict == verdict


@pytest.mark.parametrize("engine", ["sqlite", "duckdb", "postgres", "mariadb"])
@pytest.mark.parametrize(
    ("condition", "verdict"),
    [
        ("COALESCE(smoker, FALSE)", "equal"),
        ("CASE WHEN smoker IS NULL THEN FALSE ELSE smoker END", "equal"),
        ("COALESCE(smoker, TRUE)", "different"),
        ("NOT COALESCE(smoker, FALSE)", "different"),
    ],
)
def test_a_missing_truth_value_may_be_given_one(engine, condition, verdict):
    declared = "TINYINT(1)" if engine == "mariadb" else "BOOLEAN"
    assert verdict_on(engine, SMOKERS, declared, condition).verdict == verdict


MOMENTS = {"sqlite": "TEXT", "duckdb": "TIMESTAMP", "postgres": "TIMESTAMP", "mariadb": "DATETIME(6)"}


@pytest.mark.parametrize("engine", MOMENTS)
def test_a_day_beside_a_moment_is_its_midnight(engine):
    condition = "seen {} '2024-03-01' AND seen < '2024-06-01 12:00:00'"
    assert verdict_on(engine, SEEN, MOMENTS[engine], condition.format(">=")).verdict == "equal"
    later = verdict_on(engine, SEEN, MOMENTS[engine], condition.format(">"))
    assert later.verdict == ("unread" if engine == "sqlite" else "different")
    if engine == "sqlite":
        assert "2024-03-01" in later.reason


DAYS = program("seen", "timestamp", Interval(0, micro("2024-03-01"), micro("2024-06-02")))
OLD = program("seen", "timestamp", Interval(0, micro("1960-02-29"), micro("1969-12-31")))


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
@pytest.mark.parametrize(
    ("condition", "approved", "verdict"),
    [
        ("CAST(seen AS DATE) >= DATE '2024-03-01' AND CAST(seen AS DATE) <= DATE '2024-06-01'", DAYS, "equal"),
        ("CAST(seen AS DATE) > '2024-02-29' AND CAST(seen AS DATE) < '2024-06-02'", DAYS, "equal"),
        ("CAST(seen AS DATE) BETWEEN DATE '2024-03-01' AND DATE '2024-06-01'", DAYS, "equal"),
        ("seen >= '2024-03-01' AND NOT CAST(seen AS DATE) > DATE '2024-06-01'", DAYS, "equal"),
        ("CAST(seen AS DATE) >= DATE '1960-02-29' AND CAST(seen AS DATE) < DATE '1969-12-31'", OLD, "equal"),
        ("CAST(seen AS DATE) >= DATE '2024-03-01' AND CAST(seen AS DATE) < DATE '2024-06-01'", DAYS, "different"),
        ("CAST(seen AS DATE) > DATE '2024-03-01' AND CAST(seen AS DATE) <= DATE '2024-06-01'", DAYS, "different"),
        ("CAST(seen AS DATE) >= DATE '1960-02-29' AND CAST(seen AS DATE) < DATE '1970-01-01'", OLD, "different"),
        ("seen >= '2024-03-01' AND seen <= DATE '2024-06-01'", DAYS, "different"),
        ("CAST(seen AS DATE) >= TIMESTAMP '2024-03-01 00:00:00' AND CAST(seen AS DATE) < '2024-06-02'", DAYS, "unread"),
    ],
)
def test_the_day_of_a_moment_is_compared_with_a_day(engine, condition, approved, verdict):
    found = verdict_on(engine, approved, "TIMESTAMP", condition)
    if "<= DATE" in condition and condition.startswith("seen"):
        assert found.verdict in (verdict, "unread"), found.reason
    else:
        assert found.verdict == verdict, found.reason


def test_the_day_of_a_moment_is_that_of_no_session():
    """A cast of TIMESTAMPTZ to DATE goes by the session's time zone."""
    condition = "CAST(seen AS DATE) >= DATE '2024-03-01' AND CAST(seen AS DATE) <= DATE '2024-06-01'"
    assert verdict_on("postgres", DAYS, "TIMESTAMPTZ", condition).verdict == "unread"


COARSE = {
    "mariadb": ("DATETIME", "DATETIME(1)"),
    "postgres": ("TIMESTAMP(0)", "TIMESTAMP(1)"),
    "clickhouse": ("Nullable(DateTime)", "Nullable(DateTime64(1))"),
}


@pytest.mark.parametrize("engine", COARSE)
def test_a_moment_that_the_column_does_not_hold_is_not_used_against_a_view(engine):
    """A DATETIME has whole seconds: `<= 11:59:59` is `< 12:00:00`."""
    condition = "seen >= '2024-03-01 00:00:00' AND seen <= '2024-06-01 11:59:{}'"
    seconds, tenths = COARSE[engine]
    assert verdict_on(engine, SEEN, seconds, condition.format(59)).verdict == "equal"
    assert verdict_on(engine, SEEN, seconds, condition.format(58)).verdict == "different"
    assert verdict_on(engine, SEEN, tenths, condition.format(59)).verdict in ("different", "unread")


def test_a_number_that_a_column_of_bits_rounds_is_not_used_against_a_view():
    """BIT(8) turns 30.6 into 31, so the view is not run on the number that was staged."""
    below = Program(
        ("age",), ("no", "yes"), (Clause((Interval(0, None, 30.25),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0))
    )
    assert verdict_on("mariadb", below, "BIT(8)", "age < 30.25").verdict != "different"
