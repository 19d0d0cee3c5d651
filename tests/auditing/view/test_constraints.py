"""Rows that no table holds, or that no filter lets through, are not used against a view that relies on it."""

from contextlib import closing

import pytest

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.view import audit_view
from gbfl_compile.databases import availability, scratch
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split

ADULTS = Program(
    ("age",), ("no", "yes"), (Clause((Interval(0, 18.0, 65.5),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0))
)
LABEL = "CASE WHEN age < 65.5 THEN 'yes' ELSE 'no' END AS label"


YOUNGER_OR_MISSING = Program(
    ("age",),
    ("no", "yes"),
    (Clause((Interval(0, None, 65.5, "left", True),)),),
    split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
)


def verdict_on(engine, statements, approved=ADULTS):
    if reason := availability(engine):
        pytest.skip(reason)
    with closing(scratch(engine)) as database:
        for statement in statements:
            database.execute(statement)
        return audit_view(AuditInput(approved, mends=False), database, "scores", "view scores")


CHECKED = "CREATE TABLE loans (id INTEGER, age INTEGER NOT NULL CHECK (age >= {least}), status VARCHAR(10))"
ROWS = "INSERT INTO loans VALUES (1, 40, 'a'), (2, 70, 'b')"
FORMS = {
    "a filter": [f"CREATE VIEW scores AS SELECT id, {LABEL} FROM loans WHERE status = 'a'"],
    "a layer": [
        "CREATE VIEW below AS SELECT id, age AS years, status FROM loans",
        f"CREATE VIEW scores AS SELECT id, {LABEL.replace('age', 'years')} FROM below",
    ],
    "a join": [
        "CREATE TABLE customers (id INTEGER, name VARCHAR(10))",
        "INSERT INTO customers VALUES (1, 'x'), (2, 'y')",
        f"CREATE VIEW scores AS SELECT loans.id, name, {LABEL} FROM loans JOIN customers ON customers.id = loans.id",
    ],
}


@pytest.mark.parametrize("engine", ["sqlite", "duckdb", "postgres", "mariadb"])
@pytest.mark.parametrize("form", FORMS)
def test_a_row_that_a_constraint_refuses_does_not_make_a_layered_view_different(engine, form):
    found = verdict_on(engine, [CHECKED.format(least=18), ROWS, *FORMS[form]])
    assert (found.verdict, found.execution.different) == ("unread", 0), found
    assert "constraints refuse" in found.reason
    found = verdict_on(engine, [CHECKED.format(least=17), ROWS, *FORMS[form]])
    assert found.verdict == "different", found


@pytest.mark.parametrize("engine", ["sqlite", "duckdb", "postgres", "mariadb"])
@pytest.mark.parametrize(
    ("key", "null", "label", "verdict"),
    [
        ("REFERENCES people (id)", "NOT NULL", LABEL, "unread"),
        ("", "NOT NULL", LABEL, "different"),
        ("REFERENCES people (id)", "", LABEL, "different"),
        ("REFERENCES people (id)", "NOT NULL", LABEL.replace("65.5", "66.5"), "different"),
        ("REFERENCES other (id)", "NOT NULL", LABEL, "different"),
    ],
)
def test_a_row_that_a_foreign_key_requires_is_not_taken_to_be_missing(engine, key, null, label, verdict):
    """The approved answer for a missing age is yes, the view's is no: only a join that finds no person shows it."""
    inner = key.replace("REFERENCES", "FOREIGN KEY (person) REFERENCES")
    found = verdict_on(
        engine,
        [
            f"CREATE TABLE people (id INTEGER PRIMARY KEY, age INTEGER {null})",
            "CREATE TABLE other (id INTEGER PRIMARY KEY)",
            "INSERT INTO people VALUES (1, 40), (2, 70)",
            "INSERT INTO other VALUES (1), (2)",
            f"CREATE TABLE loans (id INTEGER, person INTEGER NOT NULL{', ' if inner else ''}{inner})",
            "INSERT INTO loans VALUES (1, 1), (2, 2)",
            f"CREATE VIEW scores AS SELECT loans.id, {label} FROM loans LEFT JOIN people ON people.id = loans.person",
        ],
        YOUNGER_OR_MISSING,
    )
    assert (found.verdict, found.not_executed) == (verdict, None), found
    if verdict == "unread":
        assert found.reason.endswith("finds no row of people, and a foreign key of loans refers to one")


@pytest.mark.parametrize("engine", ["sqlite", "duckdb", "postgres"])
def test_a_join_that_finds_no_row_is_no_matter_of_constraints(engine):
    """A column of the right is missing there, though its table refuses missing values."""
    found = verdict_on(
        engine,
        [
            "CREATE TABLE loans (id INTEGER)",
            "CREATE TABLE people (id INTEGER, age INTEGER NOT NULL CHECK (age >= 18))",
            "INSERT INTO loans VALUES (1), (2)",
            "INSERT INTO people VALUES (1, 40), (2, 70)",
            "CREATE VIEW scores AS SELECT loans.id, CASE WHEN age < 18 OR age >= 65.5 THEN 'no' ELSE 'yes' END AS label "
            "FROM loans LEFT JOIN people ON people.id = loans.id",
        ],
    )
    assert found.verdict == "different", found


NULLABLE = {
    "clickhouse": "(id Int32, age Nullable(Int32)) ENGINE = Memory",
    "duckdb": "(id INTEGER, age INTEGER)",
    "sqlite": "(id INTEGER, age INTEGER)",
}


@pytest.mark.parametrize("engine", NULLABLE)
def test_a_filter_on_an_alias_of_the_same_select_may_leave_out_rows_by_their_features(engine):
    """`WHERE years >= 18`, where `years` is an expression of the same SELECT."""
    view = "CREATE VIEW scores AS SELECT id, COALESCE(age, 0) AS years, {} FROM loans WHERE years >= 18"
    table = [f"CREATE TABLE loans {NULLABLE[engine]}", "INSERT INTO loans VALUES (1, 40), (2, 70)"]
    assert verdict_on(engine, [*table, view.format(LABEL)]).verdict != "different"
    wrong = view.format(LABEL.replace("65.5", "66.5"))
    assert verdict_on(engine, [*table, wrong]).verdict == "different"


@pytest.mark.parametrize("clause", ["WHERE age >= 18", "QUALIFY age >= 18"])
def test_an_alias_that_hides_the_column_of_a_filter_in_clickhouse_is_not_read_as_the_column(clause):
    """There the filter tests the alias: a child comes out, with another age."""
    found = verdict_on(
        "clickhouse",
        [
            f"CREATE TABLE loans {NULLABLE['clickhouse']}",
            "INSERT INTO loans VALUES (1, 40), (2, 70)",
            f"CREATE VIEW below AS SELECT id, if(age < 0, 50, age) AS age FROM loans {clause}",
            f"CREATE VIEW scores AS SELECT id, {LABEL} FROM below",
        ],
    )
    assert found.verdict != "equal", found
    assert found.verdict == "different" or "alias of the same SELECT" in found.reason
