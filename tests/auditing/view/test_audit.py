"""Views, read back from the catalog as the database rewrote them: equal ones are proved, tampered ones found."""

import sqlite3

import numpy as np
import pytest

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.file import audit_file
from gbfl_compile.auditing.verdict import AuditReport, report_form, verdict_lines
from gbfl_compile.auditing.view import audit_view
from gbfl_compile.backends import emit
from gbfl_compile.cli import main
from gbfl_compile.databases import availability, from_connection, scratch
from gbfl_compile.ir.json import digest, save
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split
from gbfl_compile.ir.validate import validate
from gbfl_compile.reporting.page import ReportInputs, render_page
from tests.auditing.tampering import TAMPERED_TREES, TREE
from tests.auditing.view.cases import CASES, assert_audits_are_right, make_view


@pytest.fixture(scope="module", params=("sqlite", "duckdb", "postgres"))
def database(request):
    if reason := availability(request.param):
        pytest.skip(reason)
    made = scratch(request.param)
    yield made
    made.close()


@pytest.mark.parametrize("kind", CASES)
def test_views_are_proved_or_their_slips_found(database, kind):
    assert_audits_are_right(database, kind)


def everything_in(path):
    with sqlite3.connect(path) as connection:
        return list(connection.iterdump())


def test_the_database_is_left_as_it_was(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(TREE, tmp_path / "approved.json")
    connection = sqlite3.connect("loans.db")
    connection.execute("CREATE TABLE data (income REAL, age REAL, debt REAL, years REAL)")
    connection.executemany("INSERT INTO data VALUES (?, ?, ?, ?)", np.ones((5, 4)).tolist())
    connection.commit()
    database = from_connection("sqlite", connection)
    make_view(database, TREE)
    make_view(database, TAMPERED_TREES[3][1], view="other_scores")
    connection.commit()
    connection.close()
    before = everything_in("loans.db")
    command = ["audit", "approved.json", "--database", "sqlite:///loans.db"]
    assert main([*command, "--view", "scores"]) == 0
    assert "equal (proved; 0 different of" in capsys.readouterr().out
    assert main([*command, "--view", "scores", "--view", "other_scores"]) == 1
    assert "clause 0: income >= 50000 is deployed as income > 50000" in capsys.readouterr().out
    assert everything_in("loans.db") == before


def test_a_view_that_is_not_there_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(TREE, tmp_path / "approved.json")
    sqlite3.connect("loans.db").close()
    (tmp_path / "loans.db").write_bytes(b"")
    command = ["audit", "approved.json", "--database", "sqlite:///loans.db", "--view"]
    assert main([*command, "scores"]) == 2
    assert "has no view 'scores'" in capsys.readouterr().err
    assert main([*command, "x'; DROP TABLE data; --"]) == 2
    assert "is not looked up" in capsys.readouterr().err


def test_a_password_is_never_shown(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(TREE, tmp_path / "approved.json")
    address = "postgresql://someone:very-secret@127.0.0.1:9/none"
    assert main(["audit", "approved.json", "--database", address, "--view", "scores"]) in (2, 3)
    printed = capsys.readouterr()
    assert "very-secret" not in printed.out + printed.err


def test_a_view_on_a_view_is_read_through_the_one_below(tmp_path, capsys, monkeypatch):
    """The inner one swaps two columns, and the outer one is the program to the letter."""
    monkeypatch.chdir(tmp_path)
    save(TREE, tmp_path / "approved.json")
    connection = sqlite3.connect("loans.db")
    connection.execute("CREATE TABLE loans (income REAL, age REAL, debt REAL, years REAL)")
    connection.execute("CREATE VIEW data AS SELECT age AS income, income AS age, debt, years FROM loans")
    make_view(from_connection("sqlite", connection), TREE)
    connection.commit()
    connection.close()
    assert main(["audit", "approved.json", "--database", "sqlite:///loans.db", "--view", "scores"]) == 1
    assert "different" in capsys.readouterr().out


CONDITIONS = {
    "sqlite": "age >= 1.5",
    "duckdb": "age >= 1.5e0 AND age <> CAST('NaN' AS DOUBLE)",
    "postgres": "age >= CAST(1.5 AS DOUBLE PRECISION) AND age <> CAST('NaN' AS DOUBLE PRECISION)",
}
GROWN = Program(("age",), ("no", "yes"), (Clause((Interval(0, 1.5),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)))


@pytest.fixture
def empty(database):
    """A database of its own: what is made here stays in it."""
    made = scratch(database.dialect)
    double = {"sqlite": "REAL", "postgres": "DOUBLE PRECISION"}.get(made.dialect, "DOUBLE")
    made.execute(f"CREATE TABLE people (age {double})")
    yield made
    made.close()


@pytest.mark.parametrize(
    ("inner", "query"),
    [
        ("stage", "{chosen} FROM STAGE"),  # the same name to these databases
        ("other.stage", "{chosen} FROM other.stage"),
        ("stage", "WITH unused AS (SELECT * FROM people) {chosen} FROM stage"),  # two tables, one of them a view
        ("other.stage", "WITH stage AS (SELECT age FROM other.stage) {chosen} FROM stage"),
    ],
)
def test_a_view_is_recognised_wherever_it_is(inner, query, empty):
    """It hands on the age with the other sign."""
    if "." in inner:
        if empty.dialect == "sqlite":
            pytest.skip("SQLite's schemas are databases of their own, which no view names")
        empty.execute("CREATE SCHEMA other")
    chosen = f"SELECT CASE WHEN {CONDITIONS[empty.dialect]} THEN 'yes' ELSE 'no' END AS label"
    empty.execute(f"CREATE VIEW plain AS {chosen} FROM people")
    assert audit_view(AuditInput(GROWN), empty, "plain", "a view").verdict == "equal"
    empty.execute(f"CREATE VIEW {inner} AS SELECT -age AS age FROM people")
    empty.execute(f"CREATE VIEW model AS {query.format(chosen=chosen)}")
    found = audit_view(AuditInput(GROWN), empty, "model", "a view")
    assert found.verdict in ("different", "unread")
    assert found.proof.answer != "proved"


def test_a_function_of_the_users_own_is_seen_in_a_view_on_two_tables(empty):
    if empty.dialect != "duckdb":
        pytest.skip("only DuckDB lets a user's function stand before its own")
    clauses = (Clause((Interval(0, None, 1.5, "left", True),)),)
    young = Program(("age",), ("no", "yes"), clauses, split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)))
    label = "CASE WHEN age < 1.5e0 OR isnan(age) OR age IS NULL THEN 'yes' ELSE 'no' END AS label"
    empty.execute("CREATE TABLE others (age DOUBLE)")
    empty.execute(f"CREATE VIEW model AS WITH unused AS (SELECT age FROM others) SELECT {label} FROM people")
    unclear = audit_view(AuditInput(young), empty, "model", "a view")
    assert (unclear.verdict, "--column age=people.age" in unclear.reason) == ("unread", True)
    stated = AuditInput(young, columns={"age": "people.age"})
    without = audit_view(stated, empty, "model", "a view")
    assert (without.verdict, without.proof.answer) == ("equal", "read as equal")
    empty.execute("CREATE MACRO isnan(x) AS FALSE")
    found = audit_view(stated, empty, "model", "a view")
    assert (found.verdict, found.execution.different > 0) == ("different", True)


def test_the_types_of_a_table_are_those_of_its_own_schema(empty):
    if empty.dialect == "sqlite":
        pytest.skip("SQLite has no decimals")
    empty.execute("CREATE SCHEMA other")
    empty.execute("CREATE TABLE other.people (age DECIMAL(10, 2))")
    chosen = f"SELECT CASE WHEN {CONDITIONS[empty.dialect]} THEN 'yes' ELSE 'no' END AS label"
    empty.execute(f"CREATE VIEW model AS {chosen} FROM other.PEOPLE")
    assert "age" in audit_view(AuditInput(GROWN), empty, "model", "a view").column_types


def hand_made(database, program, body):
    """A view over the emitted query: `body` has {query} and perhaps {chosen} in it, and may add columns or name them."""
    options = {"form": "select", "table": "data"}
    text = emit(validate(program), f"sql:{database.dialect}", "m", options).files["m.sql"].decode()
    query = "\n".join(line for line in text.split("\n") if not line.startswith("--")).strip().rstrip(";")
    database.execute(body.format(query=query, chosen="q.label, q.p_no, q.p_maybe, q.p_yes"))


def read_and_run(found):
    """The evidence for a view that was written by hand and answered every witness as approved."""
    assert found.execution.rows > 0
    assert not found.is_proved
    return f"read as equal; 0 different of {found.execution.rows} witnesses"


@pytest.fixture
def owned(database):
    database.insert("data", list(TREE.features), np.zeros((3, len(TREE.features))))
    yield database
    database.execute("DROP VIEW made")


def test_columns_that_nobody_examined_are_named(owned):
    hand_made(owned, TREE, "CREATE VIEW made AS SELECT {chosen}, 1 + 1 AS fee, 'x' AS note FROM ({query}) q")
    found = audit_view(AuditInput(TREE), owned, "made", "view made")
    assert (found.verdict, found.proof.answer, found.execution.different) == ("equal", "read as equal", 0)
    assert found.other_columns == ("fee", "note")
    assert found.compared_columns == ("label", "p_no", "p_maybe", "p_yes")
    lines = "\n".join(verdict_lines(found, digest(TREE)))
    assert "computed by the view and not compared: fee, note" in lines
    assert report_form(AuditReport(digest(TREE), (found,)))["audited"][0]["other_columns"] == ["fee", "note"]
    assert "fee" in render_page(TREE, ReportInputs(audit=report_form(AuditReport(digest(TREE), (found,)))))


def test_columns_passed_on_as_they_are_need_no_looking_at(owned):
    hand_made(owned, TREE, "CREATE VIEW made AS {query}")
    assert audit_view(AuditInput(TREE), owned, "made", "view made").other_columns == ()


def test_a_view_that_names_its_columns_apart_is_read_and_run(owned):
    body = "CREATE VIEW made (label, p_no, p_maybe, p_yes) AS SELECT {chosen} FROM ({query}) q"
    hand_made(owned, TREE, body)
    found = audit_view(AuditInput(TREE), owned, "made", "view made")
    assert (found.verdict, found.evidence()) == ("equal", read_and_run(found))
    assert found.not_executed is None


def test_labels_may_be_in_a_column_of_another_name(owned):
    hand_made(owned, TREE, "CREATE VIEW made AS SELECT q.label AS decision FROM ({query}) q")
    unread = audit_view(AuditInput(TREE), owned, "made", "view made")
    assert unread.verdict == "unread"
    assert "say which holds the labels with --label COLUMN" in unread.reason
    found = audit_view(AuditInput(TREE), owned, "made", "view made", "decision")
    assert (found.verdict, found.evidence()) == ("equal", read_and_run(found))
    assert found.compared_columns == ("decision",)


@pytest.mark.parametrize("kind", ["DECIMAL(18, 4)", "BIGINT"])
def test_a_column_that_is_not_a_double_is_reported(database, kind):
    database.execute("DROP TABLE IF EXISTS data")
    database.execute(f"CREATE TABLE data (income {kind}, age DOUBLE PRECISION, debt DOUBLE PRECISION, years INTEGER)")
    make_view(database, TREE, view="typed")
    try:
        types = audit_view(AuditInput(TREE), database, "typed", "view typed").column_types
        is_listed = database.dialect != "sqlite" and kind != "BIGINT"  # SQLite has affinities, a BIGINT is exact
        assert set(types) == ({"income"} if is_listed else set())
    finally:
        database.execute("DROP VIEW typed")
        database.execute("DROP TABLE data")


def test_a_digest_that_is_not_the_sources_is_shown_in_text_json_and_html(tmp_path):
    other = TAMPERED_TREES[0][1]
    (tmp_path / "model.py").write_bytes(emit(validate(other), "python", "model").files["model.py"])
    found = audit_file(AuditInput(TREE), tmp_path / "model.py")
    report = report_form(AuditReport(digest(TREE), (found,)))
    assert f"it carries the digest {digest(validate(other))}" in "\n".join(verdict_lines(found, digest(TREE)))
    assert report["audited"][0]["digest"] == digest(validate(other))
    assert report["audited"][0]["digest_matches"] is False
    page = render_page(TREE, ReportInputs(audit=report))
    assert "another one" in page
    assert digest(validate(other))[:16] in page
