"""A cast or a rounding that changes no value of its column is read; one that could is not."""

from contextlib import closing

import pytest

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.view import audit_view
from gbfl_compile.databases import availability, scratch
from tests.auditing.forms.corpus import EQUAL, TREE

EXACT = {
    "income": ("CAST(income AS DECIMAL(12,2))", "floor(income)", "round(income)", "CAST(income AS DECIMAL(10,0))"),
    "debt": ("CAST(debt AS DECIMAL(8,5))", "round(debt, 4)", "round(debt, 6)", "CAST(debt AS DECIMAL(6,4))"),
}
LOSSY = {
    "income": ("CAST(income AS DECIMAL(6,2))", "round(income, -3)", "CAST(income AS DECIMAL(9,4))"),
    "debt": (
        "CAST(debt AS DECIMAL(6,2))",
        "round(debt, 2)",
        "floor(debt)",
        "CAST(debt AS DECIMAL(5,4))",
        "round(debt)",
    ),
}


@pytest.fixture(scope="module", params=["duckdb", "postgres", "mariadb"])
def database(request):
    if reason := availability(request.param):
        pytest.skip(reason)
    with closing(scratch(request.param)) as made:
        made.execute("CREATE TABLE loans (id INTEGER, income INTEGER, debt DECIMAL(6,4), age INTEGER)")
        made.execute("INSERT INTO loans VALUES (1, 30000, 0.3999, 25), (2, 29999, 0.6001, 24), (3, 29600, 0.6049, 30)")
        yield made


def verdict_on(database, column, text):
    rule = EQUAL["tree"][0].replace(column, text)
    database.execute(f"CREATE VIEW scores AS SELECT id, {rule} AS label FROM loans")
    try:
        return audit_view(AuditInput(TREE), database, "scores", "scores").verdict
    finally:
        database.execute("DROP VIEW scores")


@pytest.mark.parametrize(("column", "text"), [(column, text) for column, texts in EXACT.items() for text in texts])
def test_what_changes_no_value_is_read(database, column, text):
    assert verdict_on(database, column, text) == "equal"


@pytest.mark.parametrize(("column", "text"), [(column, text) for column, texts in LOSSY.items() for text in texts])
def test_what_could_change_a_value_is_never_called_equal(database, column, text):
    assert verdict_on(database, column, text) in ("different", "unread", "not run")
