"""The promises of tests/audit about scored tables in databases, kept by the slower engines too."""

import pytest

from gbfl_compile.databases import availability, scratch
from tests.auditing.diagnose.test_unread_tampering import assert_scored_tables_are_right
from tests.auditing.diagnose.unread_cases import BY_LABELS
from tests.auditing.scored.test_audit import (  # noqa: F401 - pytest collects what it finds here
    test_a_table_in_a_database_is_read_page_by_page_and_left_alone,
)
from tests.auditing.scored.test_words import (  # noqa: F401 - pytest collects what it finds here
    test_a_table_in_a_database_is_read_with_its_kinds,
)


@pytest.mark.parametrize("kind", BY_LABELS)
@pytest.mark.parametrize("dialect", ["mariadb", "clickhouse"])
def test_tampered_tables_are_found_and_named(dialect, kind):
    if reason := availability(dialect):
        pytest.skip(reason)
    database = scratch(dialect)
    try:
        assert_scored_tables_are_right(database, kind)
    finally:
        database.close()
