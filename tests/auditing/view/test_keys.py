"""A view that passes on a key is run on the witnesses too, whatever the key is called and wherever it is listed."""

import pytest

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.view import audit_view
from gbfl_compile.backends import emit
from gbfl_compile.databases import availability, scratch
from tests.auditing.tampering import TAMPERED_TREES, TREE


@pytest.fixture(params=("sqlite", "duckdb", "postgres"))
def database(request):
    if reason := availability(request.param):
        pytest.skip(reason)
    made = scratch(request.param)
    made.execute("CREATE TABLE loans (loan TEXT, branch TEXT, income FLOAT, age FLOAT, debt FLOAT, years FLOAT)")
    yield made
    made.close()


def deploy(database, program):
    options = {"form": "view", "table": "loans", "view": "scores", "key": "loan,branch"}
    database.execute(emit(program, f"sql:{database.dialect}", options=options).files["model.sql"].decode())


def test_a_view_with_keys_is_proved_and_run(database):
    deploy(database, TREE)
    found = audit_view(AuditInput(TREE), database, "scores", "it")
    assert (found.verdict, found.proof.answer) == ("equal", "proved")
    assert found.execution.rows > 100
    assert found.execution.different == 0


def test_a_tampered_view_with_keys_is_found_by_running_it_too(database):
    deploy(database, TAMPERED_TREES[3][1])
    found = audit_view(AuditInput(TREE), database, "scores", "it")
    assert found.verdict == "different"
    assert found.execution.different > 0


@pytest.mark.parametrize(
    ("query", "label"), [("SELECT loan, label FROM {}", "label"), ("SELECT label AS verdict FROM {}", "verdict")]
)
def test_a_view_that_passes_on_the_answers_of_a_view_is_read_through_it(database, query, label):
    deploy(database, TREE)
    database.execute(f"CREATE VIEW told AS {query.format('scores')}")
    found = audit_view(AuditInput(TREE), database, "told", "it", label)
    assert (found.verdict, found.proof.answer, found.execution.different) == ("equal", "read as equal", 0)


@pytest.mark.parametrize(
    ("query", "label"), [("SELECT loan, label FROM {}", "label"), ("SELECT label AS verdict FROM {}", "verdict")]
)
def test_a_view_that_passes_on_stored_answers_is_unread_and_not_called_different(database, query, label):
    deploy(database, TREE)
    database.execute("CREATE TABLE scored AS SELECT * FROM scores")
    database.execute(f"CREATE VIEW told AS {query.format('scored')}")
    found = audit_view(AuditInput(TREE), database, "told", "it", label)
    assert found.verdict == "unread"
    assert found.execution is None
    assert "not computed by the view" in found.not_executed
