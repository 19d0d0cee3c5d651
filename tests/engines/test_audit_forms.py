"""The deployed forms in the engines that start slowly."""

from contextlib import closing

import pytest

from gbfl_compile.auditing.audit import audit
from gbfl_compile.databases import availability, scratch
from tests.auditing.forms.test_forms import assert_forms_are_read
from tests.auditing.view.test_functions import PROGRAM


@pytest.mark.parametrize("engine", ["mariadb", "clickhouse"])
def test_no_deployed_form_is_called_what_it_is_not_and_most_are_read(engine):
    assert_forms_are_read(engine)


@pytest.mark.parametrize(
    ("head", "verdicts"),
    [
        ("decide(income INT, debt INT) RETURNS VARCHAR(9)", ("different", "unread")),  # 0.45 becomes 0
        ("decide(income INT, debt DECIMAL(6, 1)) RETURNS VARCHAR(9)", ("different", "unread")),
        ("decide(income INT, debt FLOAT) RETURNS VARCHAR(9)", ("different", "unread")),
        ("decide(income INT, debt DOUBLE) RETURNS VARCHAR(2)", ("different", "unread")),  # 'yes' is cut off
        ("decide(income INT, debt DECIMAL(6, 4)) RETURNS VARCHAR(9)", ("equal",)),
        ("decide(income INT, debt DOUBLE) RETURNS VARCHAR(9)", ("equal",)),
    ],
)
def test_a_mariadb_function_whose_types_change_a_value_is_never_equal(head, verdicts):
    if reason := availability("mariadb"):
        pytest.skip(reason)
    with closing(scratch("mariadb")) as database:
        database.execute("CREATE TABLE loans (id INT, income INT, debt DECIMAL(6, 4))")
        database.execute("INSERT INTO loans VALUES (1, 30000, 0.3), (2, 29999, 0.3), (3, 30000, NULL)")
        database.execute(
            f"CREATE FUNCTION {head} DETERMINISTIC BEGIN DECLARE rich INT DEFAULT 0; "
            "IF income >= 30000 THEN SET rich = 1; END IF; "
            "IF rich >= 1 AND debt < 0.4 THEN RETURN 'yes'; ELSE RETURN 'no'; END IF; END"
        )
        database.execute("CREATE VIEW v AS SELECT id, decide(income, debt) AS label FROM loans")
        assert audit(PROGRAM, database=database, view="v").verdict in verdicts
