"""Moments of columns that have a time zone, or take the session's: read only where the text means one moment."""

from contextlib import closing

import pytest

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.view import audit_view
from gbfl_compile.databases import availability, scratch
from tests.auditing.view.test_word_forms import SEEN

PLAIN = "seen >= '2024-03-01 00:00:00' AND seen < '2024-06-01 12:00:00'"
ZONED = (
    "seen >= toDateTime64('2024-03-01 00:00:00', 6, 'UTC') AND seen < toDateTime64('2024-06-01 12:00:00', 6, '{zone}')"
)


def audited(engine, declared, condition, session=None):
    if reason := availability(engine):
        pytest.skip(reason)
    with closing(scratch(engine)) as database:
        where = " ENGINE = Memory" if engine == "clickhouse" else ""
        database.execute(f"CREATE TABLE loans (id INTEGER, seen {declared}){where}")
        database.execute("INSERT INTO loans VALUES (1, NULL)")
        database.execute(
            f"CREATE VIEW scores AS SELECT id, CASE WHEN {condition} THEN 'yes' ELSE 'no' END AS label FROM loans"
        )
        if session is not None:
            database.execute(session[0])
        try:
            return audit_view(AuditInput(SEEN, mends=False), database, "scores", "view scores")
        finally:
            if session is not None:
                database.execute(session[1])


@pytest.mark.parametrize("declared", ["DateTime('Europe/Berlin')", "DateTime64(6, 'Europe/Berlin')"])
def test_a_text_beside_a_column_of_clickhouse_with_a_zone_is_not_read_as_utc(declared):
    """ClickHouse converts it in the column's zone: only the rows that were run showed it."""
    found = audited("clickhouse", f"Nullable({declared})", PLAIN)
    assert (found.verdict, found.proof.answer) == ("different", "unread")  # as running it shows, and nothing else


@pytest.mark.parametrize("declared", ["DateTime('UTC')", "DateTime64(6, 'UTC')"])
def test_a_text_beside_a_column_of_clickhouse_in_utc_is_read(declared):
    found = audited("clickhouse", f"Nullable({declared})", PLAIN)
    assert (found.verdict, found.proof_assumes) == ("equal", None), found.reason
    later = audited("clickhouse", f"Nullable({declared})", PLAIN.replace("00:00:00", "00:00:01"))
    assert later.verdict == "different"


@pytest.mark.parametrize("declared", ["DateTime", "DateTime64(6)"])
def test_a_column_of_clickhouse_without_a_zone_goes_by_the_session(declared):
    found = audited("clickhouse", f"Nullable({declared})", PLAIN)
    assert found.verdict == "equal", found.reason
    assert found.proof_assumes == (
        "that no server and no session has a time zone other than UTC, by which texts beside seen would be read"
    )
    moved = ("SET session_timezone = 'America/New_York'", "SET session_timezone = ''")
    other = audited("clickhouse", f"Nullable({declared})", PLAIN, moved)
    assert (other.verdict, other.proof.answer) == ("different", "unread")


@pytest.mark.parametrize("declared", ["DateTime", "DateTime('UTC')", "DateTime64(6, 'Europe/Berlin')"])
def test_a_moment_of_clickhouse_that_names_utc_is_one_whatever_the_column(declared):
    found = audited("clickhouse", f"Nullable({declared})", ZONED.format(zone="UTC"))
    assert (found.verdict, found.proof_assumes) == ("equal", None), found.reason
    other = audited("clickhouse", f"Nullable({declared})", ZONED.format(zone="Europe/Berlin"))
    assert other.verdict in ("unread", "different")


INSTANTS = "TIMESTAMP WITH TIME ZONE"


@pytest.mark.parametrize("written", ["TIMESTAMP '{}'", "TIMESTAMPTZ '{}'", "'{}'"])
def test_a_moment_without_a_zone_beside_one_with_a_zone_is_not_read(written):
    """PostgreSQL reads it in the session's zone, and keeps it so where the view compares TIMESTAMP with it."""
    condition = " AND ".join(
        f"seen {sign} {written.format(text)}" for sign, text in ((">=", "2024-03-01"), ("<", "2024-06-01 12:00:00"))
    )
    for zone in ("UTC", "Europe/Berlin"):
        found = audited("postgres", INSTANTS, condition, (f"SET timezone = '{zone}'", "RESET timezone"))
        if written.startswith("TIMESTAMP '"):
            assert found.proof.answer == "unread"
            assert found.verdict != "equal"
        else:  # made before the session took this zone, in UTC, and the catalog has it with that
            assert found.verdict == "equal", found.reason
    assert audited("postgres", "TIMESTAMP", condition.replace("TIMESTAMPTZ", "TIMESTAMP")).verdict == "equal"


@pytest.mark.parametrize(
    ("first", "verdict"),
    [
        ("2024-03-01 00:00:00+00", "equal"),
        ("2024-03-01 01:00:00+01", "equal"),
        ("2024-02-29 19:00:00-05:00", "equal"),
        ("2024-03-01 00:00:00+01", "different"),
        ("2024-03-01 05:00:00-05", "different"),
    ],
)
def test_a_moment_with_its_offset_is_one_in_every_session(first, verdict):
    condition = f"seen >= '{first}' AND seen < '2024-06-01 12:00:00+00'"
    found = audited("postgres", INSTANTS, condition, ("SET timezone = 'Asia/Kolkata'", "RESET timezone"))
    assert found.verdict == verdict, found.reason


@pytest.mark.parametrize("engine", ["duckdb", "mariadb"])
def test_columns_whose_zone_is_the_session_s_are_not_read_elsewhere(engine):
    declared = {"duckdb": "TIMESTAMPTZ", "mariadb": "TIMESTAMP NULL"}[engine]
    found = audited(engine, declared, PLAIN)
    assert found.verdict == "unread"
    assert "a timestamp of that type has not been tested" in found.reason


def test_a_moment_with_an_offset_is_not_read_beside_a_column_without_a_zone():
    condition = "seen >= TIMESTAMPTZ '2024-03-01 00:00:00+00' AND seen < TIMESTAMPTZ '2024-06-01 12:00:00+00'"
    assert audited("postgres", "TIMESTAMP", condition).verdict == "unread"
