"""The promises of tests/audit/test_scored.py about tables in databases, kept by the slower engines too."""

from tests.audit.test_scored import (  # noqa: F401 - pytest collects what it finds here
    test_a_table_in_a_database_is_read_page_by_page_and_left_alone,
)
