"""Views with words, booleans, dates and missing values, where they are deployed: proved, run, and every slip found."""

import datetime as dt
import re
import sqlite3

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.view import audit_view
from gbfl_compile.backends import emit
from gbfl_compile.databases import availability, look_up_view, scratch
from gbfl_compile.databases import duckdb as duckdb_engine
from gbfl_compile.databases import sqlite as sqlite_engine
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.validate import validate
from tests.auditing.view.cases import (
    TYPES,
    WORD_SLIPS,
    assert_the_emitted_view_is_proved,
    assert_the_slip_is_found,
    make_table,
    make_view,
    verdict_on,
)
from tests.checking.prove.second_opinion import programs_differ
from tests.counts import count
from tests.word_programs import CHURN, with_one_edit, with_slip, word_programs


def opened(engine):
    """An empty database in memory."""
    if engine == "sqlite":
        return sqlite_engine.over(sqlite3.connect(":memory:", isolation_level=None))
    if engine == "postgres":
        if reason := availability(engine):
            pytest.skip(reason)
        return scratch(engine)
    return duckdb_engine.over(pytest.importorskip("duckdb").connect())


ENGINES = ("sqlite", "duckdb", "postgres")


@pytest.fixture(params=ENGINES)
def database(request):
    made = opened(request.param)
    yield made
    made.close()


def test_what_was_emitted_is_proved_and_run(database):
    make_table(database, CHURN)
    assert_the_emitted_view_is_proved(database)


@pytest.mark.parametrize("slip", WORD_SLIPS)
def test_a_slip_is_found_by_the_proof_and_by_the_run(database, slip):
    make_table(database, CHURN)
    assert_the_slip_is_found(database, slip)


def test_what_a_column_cannot_hold_is_not_used_against_a_view(database):
    types = {kind: f"{name} NOT NULL" for kind, name in TYPES[database.dialect].items() if kind == "category"}
    make_table(database, CHURN, types)
    found = verdict_on(database, CHURN, with_slip("a missing value passes"))
    assert (found.verdict, found.execution.different) == ("equal", 0), found.reason
    assert verdict_on(database, CHURN, with_slip("one year added")).verdict == "different"


@pytest.mark.parametrize("collation", ["NOCASE", "RTRIM"])
def test_collations_of_sqlite_change_nothing_in_an_emitted_view(collation):
    database = opened("sqlite")
    make_table(database, CHURN, {"category": f"TEXT COLLATE {collation}"})
    assert verdict_on(database, CHURN, CHURN).verdict == "equal"
    database.close()


BY_HAND = """CREATE VIEW scores AS SELECT CASE
    WHEN income >= 1000 AND contract IN ('Month-to-month', 'two year') THEN
        CASE WHEN smoker = TRUE AND opened < '2024-03-01' THEN 'yes' ELSE 'no' END
    WHEN contract <> 'a' AND (smoker = FALSE OR smoker IS NULL) THEN 'no'
    ELSE 'yes' END AS label FROM data"""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("'two year'", "'Two year'"),
        ("'two year'", "'two year', 'one year'"),
        ("'Month-to-month', ", ""),
        ("'a'", "'a '"),
        ("2024-03-01", "2024-03-02"),
        ("smoker = TRUE", "smoker = FALSE"),
        ("contract <> 'a' AND ", ""),
        ("contract <> 'a'", "contract = 'a'"),
        (" OR smoker IS NULL", ""),
    ],
)
def test_a_slip_in_a_view_by_hand_is_found_and_the_edit_for_it_mends_the_view(database, right, wrong):
    make_table(database, CHURN, {"number": "INTEGER"})
    database.execute(BY_HAND.replace(right, wrong))
    found = audit_view(AuditInput(CHURN), database, "scores", "it")
    assert (found.verdict, found.execution.different > 0) == ("different", True)
    assert set(found.region.row) == set(CHURN.features)
    assert found.story.mend is not None
    assert edited_is_equal(database, found.story.mend)


def edited_is_equal(database, mend):
    """Whether the stored view, edited as it says at one of the places it may mean, is equal."""
    text = look_up_view(database, "scores").definition
    body = text[re.search(r"\bSELECT\b", text, re.IGNORECASE).start() :]
    for at in range(len(body) + 1):
        if body.startswith(mend.old, at) and (mend.old or body[at:].lstrip().upper().startswith("THEN")):
            database.execute("DROP VIEW scores")
            database.execute(f"CREATE VIEW scores AS {body[:at]}{mend.new}{body[at + len(mend.old) :]}")
            if audit_view(AuditInput(CHURN, mends=False), database, "scores", "it").verdict == "equal":
                return True
    return False


def test_what_a_loose_column_must_not_hold_is_stated():
    """2 is true to `smoker` and not equal to 1: both views are equal where it holds 0, 1 or NULL."""
    for spelling in ("smoker", "smoker = 1"):
        database = opened("sqlite")
        make_table(database, CHURN, {"number": "INTEGER"})
        database.execute(BY_HAND.replace("smoker = TRUE", spelling))
        found = audit_view(AuditInput(CHURN, mends=False), database, "scores", "it")
        database.close()
        stated = "that smoker holds 0, 1 or NULL; that opened holds days as texts like 2024-03-01"
        assert (found.verdict, found.proof_assumes) == ("equal", stated), found


def layered(text):
    """The view by hand, over another view that hands the columns on under other names."""
    below = "CREATE VIEW below AS SELECT income, contract AS c, smoker, opened FROM data"
    return [below, text.replace("contract", "c").replace("FROM data", "FROM below")]


FORMS = {
    "by hand": lambda text: [text],
    "over another view": layered,
    "with a filter on words": lambda text: [f"{text} WHERE contract IN ('Month-to-month', 'a', 'two year', 'a ')"],
    "with a filter on gaps": lambda text: [f"{text} WHERE contract IS NOT NULL"],
    "through a stage": lambda text: [
        text.replace("SELECT", "WITH r AS (SELECT * FROM data) SELECT")
        .replace("FROM data", "FROM r")
        .replace("(SELECT * FROM r)", "(SELECT * FROM data)")
    ],
    "with gaps filled in": lambda text: [text.replace("contract <> 'a'", "COALESCE(contract, 'a') <> 'a'")],
    "with days of its own": lambda text: [text.replace("opened < '2024-03-01'", "NOT (opened > '2024-02-29')")],
}
"""Ways in which people write the same rules."""


@pytest.mark.parametrize("form", FORMS)
def test_a_view_that_people_wrote_is_read_as_equal_and_a_slip_in_it_found(database, form):
    make_table(database, CHURN, {"number": "INTEGER"})
    for text, verdict, answer in (
        (BY_HAND, "equal", "read as equal"),
        (BY_HAND.replace("'two year'", "'Two year'"), "different", "counterexample"),
        (BY_HAND.replace("<> 'a'", "<> 'a '"), "different", "counterexample"),
    ):
        statements = FORMS[form](text)
        for statement in statements:
            database.execute(statement)
        found = audit_view(AuditInput(CHURN, mends=False), database, "scores", "it")
        assert (found.verdict, found.proof.answer) == (verdict, answer), found.reason
        assert (found.execution.different > 0) == (verdict == "different")
        database.execute("DROP VIEW scores")
        if len(statements) > 1:
            database.execute("DROP VIEW below")


def test_words_of_two_tables_are_read_through_a_join(database):
    for name, columns in (("a", "income INTEGER, contract VARCHAR(40)"), ("b", "smoker BOOLEAN, opened DATE")):
        database.execute(f"CREATE TABLE {name} (id INTEGER, {columns})")
    if database.dialect == "sqlite":
        database.execute("DROP TABLE b")
        database.execute("CREATE TABLE b (id INTEGER, smoker INTEGER, opened TEXT)")
    joined = BY_HAND.replace("FROM data", "FROM a JOIN b ON a.id = b.id")
    database.execute(joined)
    found = audit_view(AuditInput(CHURN, mends=False), database, "scores", "it")
    assert (found.verdict, found.proof.answer, found.execution.different) == ("equal", "read as equal", 0), found.reason
    database.execute("DROP VIEW scores")
    database.execute(joined.replace("'Month-to-month', ", ""))
    found = audit_view(AuditInput(CHURN, mends=False), database, "scores", "it")
    assert (found.verdict, found.execution.different > 0) == ("different", True)
    assert found.region.row["contract"] == "Month-to-month"


@pytest.mark.parametrize(
    ("written", "edited"),
    [
        ("contract IN", "lower(contract) IN"),
        ("contract <> 'a'", "contract > 'a'"),
        ("contract <> 'a'", "NOT contract LIKE 'a'"),
        ("contract <> 'a'", "contract || '' <> 'a'"),
        ("contract <> 'a'", "contract <> 'a\\'"),
        ("contract <> 'a'", "contract <> (SELECT MAX(word) FROM words)"),
        ("opened < '2024-03-01'", "opened < CURRENT_DATE"),
    ],
)
def test_what_is_not_known_to_be_exact_is_never_called_equal(database, written, edited):
    make_table(database, CHURN, {"number": "INTEGER"})
    database.execute("CREATE TABLE words (word VARCHAR(10))")
    database.execute("INSERT INTO words VALUES ('a')")
    assert written in BY_HAND
    database.execute(BY_HAND.replace(written, edited))
    found = audit_view(AuditInput(CHURN, mends=False), database, "scores", "it")
    assert found.verdict in ("unread", "different"), found
    assert found.proof is None or found.proof.answer not in ("proved", "read as equal")


@pytest.mark.parametrize(
    ("engine", "declared", "edited"),
    [
        ("sqlite", "TEXT COLLATE NOCASE", "contract COLLATE BINARY"),
        ("sqlite", "TEXT COLLATE RTRIM", "contract COLLATE BINARY"),
        ("duckdb", "VARCHAR COLLATE NOCASE", "contract COLLATE C"),
        ("postgres", "CHAR(40)", 'CAST(contract AS TEXT) COLLATE "C"'),
    ],
)
def test_a_column_with_a_collation_is_read_only_where_the_text_names_an_exact_one(engine, declared, edited):
    database = opened(engine)
    make_table(database, CHURN, {"number": "INTEGER", "category": declared})
    database.execute(BY_HAND)
    assert audit_view(AuditInput(CHURN, mends=False), database, "scores", "it").verdict != "equal"
    database.execute("DROP VIEW scores")
    database.execute(BY_HAND.replace("contract", f"({edited})"))
    found = audit_view(AuditInput(CHURN, mends=False), database, "scores", "it")
    assert (found.verdict, found.proof.answer, found.execution.different) == ("equal", "read as equal", 0), found.reason
    database.close()


def test_a_bare_comparison_of_duckdb_names_the_setting_that_it_depends_on():
    database = opened("duckdb")
    make_table(database, CHURN, {"number": "INTEGER"})
    database.execute(BY_HAND)
    found = audit_view(AuditInput(CHURN), database, "scores", "it")
    assert (found.verdict, "default_collation" in found.proof_assumes) == ("equal", True)
    database.execute("DROP VIEW scores")
    database.execute(BY_HAND.replace("contract", "(contract COLLATE C)"))
    found = audit_view(AuditInput(CHURN), database, "scores", "it")
    assert (found.verdict, found.proof_assumes) == ("equal", None)
    database.close()


@settings(max_examples=count("GBFL_LAYERED_WORDS", 120), deadline=None, phases=[Phase.explicit, Phase.generate])
@given(data=st.data(), engine=st.sampled_from(ENGINES))
def test_random_views_below_another_are_read_as_equal_only_where_z3_finds_no_row(data, engine):
    """The view above hands on the label of one that was emitted, which is then read by the other reader."""
    pytest.importorskip("z3")
    approved = data.draw(word_programs())
    wrong = data.draw(with_one_edit(approved))
    database = opened(engine)
    try:
        validate(wrong)
        make_table(database, approved)
        make_view(database, wrong, view="below")
        database.execute("CREATE VIEW scores AS SELECT label FROM below")
        found = audit_view(AuditInput(approved, mends=False), database, "scores", "it")
    except BadInput:
        return
    finally:
        database.close()
    if found.verdict != "unread":
        assert programs_differ(approved, wrong) is (found.verdict == "different"), (approved, wrong)


@pytest.mark.parametrize("collation", ["NOCASE", "RTRIM"])
def test_a_view_by_hand_under_another_collation_is_different(collation):
    database = opened("sqlite")
    make_table(database, CHURN, {"category": f"TEXT COLLATE {collation}"})
    database.execute(BY_HAND)
    assert audit_view(AuditInput(CHURN), database, "scores", "it").verdict == "different"
    database.close()


def test_the_tables_own_rows_are_run_with_their_own_texts(database):
    make_table(database, CHURN, {"number": "INTEGER"})
    database.execute("INSERT INTO data VALUES (2000, 'never seen before', NULL, NULL)")
    lie = BY_HAND.replace("CASE\n    WHEN", "CASE WHEN length(contract) = 17 THEN 'yes'\n    WHEN", 1)
    assert lie != BY_HAND
    database.execute(lie)
    found = audit_view(AuditInput(CHURN), database, "scores", "it")
    assert found.verdict == "different"
    assert found.region.row["contract"] == "never seen before"


@pytest.mark.parametrize(
    "row",
    [
        "(2000, 'two year', 2, '2024-01-01')",  # neither true nor false
        "(2000, 'two year', 1, '2024-1-1')",
        "(2000, 'two year', 1, '2024-02-29 23:00')",
        "(2000, x'61', 1, '2024-01-01')",
        "('abc', 'two year', 1, '2024-01-01')",  # once taken for an infinite income, and shown as one
    ],
)
def test_rows_that_the_program_does_not_take_are_counted_and_not_passed_over_in_silence(row):
    """SQLite keeps whatever it is given, and a view answers there what nobody approved."""
    database = opened("sqlite")
    make_table(database, CHURN)
    database.execute(f"INSERT INTO data VALUES {row}, (2000, 'two year', 1, '2024-01-01')")
    found = verdict_on(database, CHURN, CHURN)
    database.close()
    assert (found.verdict, found.execution.different) == ("equal", 0)
    assert (
        "and 1 of its table's own rows; 1 more of its rows have a value that the program does not accept"
        in found.executed
    )


@pytest.mark.parametrize("declared", ["VARCHAR(40)", "CHAR(40)", 'TEXT COLLATE "POSIX"'])
def test_columns_of_postgres_change_nothing_in_an_emitted_view(declared):
    database = opened("postgres")
    make_table(database, CHURN, {"category": declared})
    found = verdict_on(database, CHURN, CHURN)
    assert (found.verdict, found.proof.answer, found.execution.different) == ("equal", "proved", 0), found
    assert verdict_on(database, CHURN, with_slip('a re-cased as "A"')).verdict == "different"
    database.close()


@pytest.mark.parametrize(
    ("written", "edited"),
    [
        ("AS TEXT", "AS VARCHAR(3)"),
        ("AS TEXT", "AS CHAR(40)"),
        ('CAST("contract" AS TEXT)', 'lower("contract")'),
        ('CAST("opened" AS DATE)', 'CAST("opened" + 1 AS DATE)'),
        ("DATE '2024-03-01'", "TIMESTAMP '2024-03-01'"),
        ("DATE '2024-03-01'", "TIMESTAMPTZ '2024-03-01'"),
    ],
)
def test_a_conversion_that_is_not_known_is_unread_in_postgres(written, edited):
    database = opened("postgres")
    make_table(database, CHURN)
    text = emit(validate(CHURN), "sql:postgres", "m", {"form": "view", "table": "data", "view": "scores"})
    before = text.files["m.sql"].decode()
    assert written in before
    database.execute(before.replace(written, edited))
    found = audit_view(AuditInput(CHURN), database, "scores", "it")
    assert found.verdict in ("unread", "different")
    assert found.proof.answer == "unread"
    database.close()


@settings(max_examples=40, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(data=st.data(), engine=st.sampled_from(ENGINES))
def test_random_views_are_proved_and_edits_found(data, engine):
    approved = data.draw(word_programs())
    wrong = data.draw(with_one_edit(approved))
    database = opened(engine)
    try:
        validate(wrong)
        make_table(database, approved)
        same = verdict_on(database, approved, approved)
        assert (same.verdict, same.proof.answer) == ("equal", "proved"), same
        found = verdict_on(database, approved, wrong)
    except BadInput:
        return
    finally:
        database.close()
    assert found.verdict in ("equal", "different"), found.reason
    if found.verdict == "equal":
        assert found.proof.answer == "proved"
    elif found.region is not None and found.region.beside is None:
        row = [found.region.row[name] for name in approved.features]
        row = [
            dt.date.fromisoformat(v) if isinstance(v, str) and approved.kind(f) == "date" else v
            for f, v in enumerate(row)
        ]
        row = [
            dt.datetime.fromisoformat(v) if isinstance(v, str) and approved.kind(f) == "timestamp" else v
            for f, v in enumerate(row)
        ]
        assert evaluate(approved, row).label != evaluate(wrong, row).label


@pytest.mark.parametrize(
    ("written", "edited"), [(' COLLATE "C"', ""), (' COLLATE "C"', ' COLLATE "POSIX"'), ("AS TEXT", "AS VARCHAR")]
)
def test_a_conversion_that_changes_no_text_is_read_as_equal_in_postgres(written, edited):
    """The column's own collation is deterministic, as the catalog says."""
    database = opened("postgres")
    make_table(database, CHURN)
    text = emit(validate(CHURN), "sql:postgres", "m", {"form": "view", "table": "data", "view": "scores"})
    before = text.files["m.sql"].decode()
    assert written in before
    database.execute(before.replace(written, edited))
    found = audit_view(AuditInput(CHURN), database, "scores", "it")
    database.close()
    assert (found.verdict, found.proof.answer, found.execution.different) == ("equal", "read as equal", 0)
