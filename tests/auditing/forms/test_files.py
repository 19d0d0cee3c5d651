"""Files as people keep them are read, and one with a slip in it is never called equal."""

import pytest

from gbfl_compile.auditing.audit import audit
from tests.auditing.forms.corpus import TREE
from tests.auditing.forms.files import file_forms
from tests.counts import shorten

EVERY = list(file_forms())
FORMS = EVERY[:: max(1, len(EVERY) // shorten(len(EVERY)))]


@pytest.fixture
def audit_text(tmp_path):
    def audit_text(text, dialect):
        (tmp_path / "deployed.sql").write_text(text)
        (found,) = audit(TREE, file=tmp_path / "deployed.sql", dialect=dialect).verdicts
        return found

    return audit_text


@pytest.mark.parametrize(
    ("dialect", "right", "wrong"), [each[1:] for each in FORMS], ids=[" ".join(each[:2]) for each in FORMS]
)
def test_a_file_is_read_and_one_with_a_slip_is_different(audit_text, dialect, right, wrong):
    found = audit_text(right, dialect)
    assert found.verdict in ("equal", "not run"), found
    assert found.proof.answer == "read as equal", found
    found = audit_text(wrong, dialect)
    assert found.verdict == "different", found


@pytest.mark.parametrize(
    "text",
    [
        # what another statement makes of the label or of the features is not passed over
        "CREATE VIEW stg AS SELECT id, income * 2 AS income, debt, age FROM raw; CREATE VIEW d AS SELECT id, {T} AS label FROM stg",
        "CREATE TABLE stg AS SELECT id, coalesce(income, 99999) AS income, debt, age FROM raw; CREATE VIEW d AS SELECT id, {T} AS label FROM stg",
        "CREATE VIEW d AS SELECT id, {T} AS label FROM applications; CREATE VIEW e AS SELECT id, 'approve' AS label FROM applications",
        "UPDATE applications SET label = {T}; UPDATE applications SET label = 'approve' WHERE age = 99",
        "UPDATE applications SET label = {T}; UPDATE applications SET income = income + 1",
        "UPDATE applications SET income = income + 1; UPDATE applications SET label = {T}",
        "INSERT INTO d (label, id) SELECT id, {T} FROM applications",
        "INSERT INTO d (id, label) SELECT id, {T} FROM applications WHERE true ON CONFLICT (id) DO UPDATE SET label = 'approve'",
        "INSERT INTO d (id, label) SELECT id, {T} FROM applications WHERE true ON CONFLICT (id) DO UPDATE SET label = d.label",
        "CREATE VIEW d (label, id) AS SELECT {T}, id FROM applications; UPDATE applications SET debt = 0",
        "CREATE TABLE applications (id INTEGER, income TEXT, debt DOUBLE PRECISION, age INTEGER); CREATE VIEW d AS SELECT id, {T} AS label FROM applications",
        "{% set cut = 1 %}{% set cut = 30000 %}SELECT id, {T} AS label FROM applications",
        "SET sql_mode = 'x'; SELECT id, {T} AS label FROM applications",
    ],
)
@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "snowflake"])
def test_what_other_statements_do_to_labels_and_features_is_not_passed_over(audit_text, text, dialect):
    from tests.auditing.forms.corpus import EQUAL

    found = audit_text(text.replace("{T}", EQUAL["tree"][0]), dialect)
    assert found.verdict in ("unread", "different"), found


def test_the_body_of_a_function_is_read_before_it_is_made(audit_text, tmp_path):
    """A file is data: a function that does more than compute is never made, in no database."""
    written = tmp_path / "written.txt"
    body = f"BEGIN COPY (SELECT 1) TO '{written}'; RETURN 'decline'; END"
    text = f"CREATE FUNCTION decide(income integer, debt double precision, age integer) RETURNS text LANGUAGE plpgsql AS $$ {body} $$;"
    assert audit_text(text, "postgres").verdict == "unread"
    assert not written.exists()
