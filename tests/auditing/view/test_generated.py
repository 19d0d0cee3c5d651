"""A table that computes its label itself is audited as the view that would compute it."""

from contextlib import closing

import pytest

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.view import audit_view
from gbfl_compile.databases import availability, scratch
from gbfl_compile.errors import BadInput
from tests.auditing.forms.corpus import DIFFERENT, EQUAL, TREE

TABLE = (
    "CREATE TABLE loans (id INTEGER PRIMARY KEY, income INTEGER, debt DOUBLE PRECISION, age INTEGER, "
    "label VARCHAR(20) GENERATED ALWAYS AS ({}) STORED)"
)


@pytest.fixture(params=["postgres", "mariadb"])
def database(request):
    if reason := availability(request.param):
        pytest.skip(reason)
    with closing(scratch(request.param)) as made:
        yield made


@pytest.mark.parametrize("rule", EQUAL["tree"])
def test_a_generated_column_is_read_and_run(database, rule):
    database.execute(TABLE.format(rule))
    found = audit_view(AuditInput(TREE), database, "loans", "the table loans")
    assert (found.verdict, found.proof.answer) == ("equal", "read as equal"), found


@pytest.mark.parametrize("rule", DIFFERENT["tree"])
def test_a_generated_column_with_a_slip_is_different(database, rule):
    database.execute(TABLE.format(rule))
    assert audit_view(AuditInput(TREE), database, "loans", "the table loans").verdict == "different"


def test_a_table_that_computes_nothing_is_not_a_view(database):
    database.execute("CREATE TABLE loans (id INTEGER, label VARCHAR(20))")
    with pytest.raises(BadInput, match="no view 'loans', and no table with columns that it computes"):
        audit_view(AuditInput(TREE), database, "loans", "the table loans")
