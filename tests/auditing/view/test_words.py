"""Views with words, booleans, dates and missing values, where they are deployed: proved, run, and every slip found."""

import datetime as dt
import sqlite3

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from gbfl_compile import audit
from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.view import audit_view
from gbfl_compile.databases import duckdb as duckdb_engine
from gbfl_compile.databases import sqlite as sqlite_engine
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.validate import validate
from gbfl_compile.tables.values import coded_rows
from tests.auditing.view.cases import make_view
from tests.word_programs import CHURN, CHURN_ROWS, SLIPS, with_one_edit, with_slip, with_swapped_sets, word_programs

TYPES = {
    "sqlite": {"number": "REAL", "category": "TEXT", "boolean": "INTEGER", "date": "TEXT", "timestamp": "TEXT"},
    "duckdb": {
        "number": "DOUBLE",
        "category": "VARCHAR",
        "boolean": "BOOLEAN",
        "date": "DATE",
        "timestamp": "TIMESTAMP",
    },
}


def opened(engine):
    """An empty database in memory."""
    if engine == "sqlite":
        return sqlite_engine.over(sqlite3.connect(":memory:", isolation_level=None))
    return duckdb_engine.over(pytest.importorskip("duckdb").connect())


def make_table(database, program, types=None):
    """The table that the features of a program are columns of."""
    own = TYPES[database.dialect] | (types or {})
    columns = [f"{database.quote(name)} {own[program.kind(f)]}" for f, name in enumerate(program.features)]
    database.execute(f"CREATE TABLE data ({', '.join(columns)})")


@pytest.fixture(params=TYPES)
def database(request):
    made = opened(request.param)
    yield made
    made.close()


def verdict_on(database, approved, deployed, **options):
    make_view(database, deployed)
    try:
        return audit_view(AuditInput(approved, **options), database, "scores", "view scores")
    finally:
        database.execute("DROP VIEW scores")


def test_what_was_emitted_is_proved_and_run(database):
    make_table(database, CHURN)
    database.execute("INSERT INTO data VALUES (2000, 'Month-to-month', NULL, '2024-02-29'), (1, 'zzz', NULL, NULL)")
    rows, book = coded_rows(CHURN_ROWS, CHURN)
    found = verdict_on(database, CHURN, CHURN, data=rows, book=book)
    assert (found.verdict, found.proof.answer, found.execution.different) == ("equal", "proved", 0), found
    assert found.execution.rows > len(CHURN_ROWS)


@pytest.mark.parametrize("slip", [*SLIPS, "swapped sets"])
def test_a_slip_is_found_by_the_proof_and_by_the_run(database, slip):
    make_table(database, CHURN)
    wrong = with_swapped_sets() if slip == "swapped sets" else with_slip(slip)
    found = verdict_on(database, CHURN, wrong)
    assert found.verdict == "different"
    assert found.execution.different > 0
    row = [found.region.row[name] for name in CHURN.features]
    assert (evaluate(CHURN, row).label, evaluate(wrong, row).label) == (found.region.approved, found.region.deployed)
    if slip in SLIPS:
        assert any(slip in (change.slip or "") for change in found.changes), found.changes


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
    ],
)
def test_a_view_by_hand_is_run_and_a_slip_in_it_found(database, right, wrong):
    make_table(database, CHURN, {"number": "INTEGER"})
    database.execute(BY_HAND)
    assert audit_view(AuditInput(CHURN), database, "scores", "it").verdict == "unread"
    database.execute("DROP VIEW scores")
    database.execute(BY_HAND.replace(right, wrong))
    found = audit_view(AuditInput(CHURN), database, "scores", "it")
    assert (found.verdict, found.execution.different > 0) == ("different", True)
    assert set(found.region.row) == set(CHURN.features)


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
        "and 1 of its table's own rows; 1 more of its rows hold a value that the program does not take"
        in found.executed
    )


def test_other_engines_refuse_words_by_name(tmp_path):
    with pytest.raises(BadInput, match=r"a scored table or a service: 'contract' is a category"):
        audit(CHURN, scored=tmp_path / "scored.csv")


@settings(max_examples=40, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(data=st.data(), engine=st.sampled_from(sorted(TYPES)))
def test_random_views_are_proved_and_edits_found(data, engine):
    approved = data.draw(word_programs())
    wrong = validate(data.draw(with_one_edit(approved)))
    database = opened(engine)
    try:
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
