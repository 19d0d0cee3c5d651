"""The promises of tests/backends/sql/test_run.py, kept by the slower engines too."""

from tests.backends.sql.test_run import (  # noqa: F401 - pytest collects what it finds here
    test_a_key_column_identifies_rows_in_any_order,
    test_many_rows_come_back_in_order,
    test_the_text_is_run_byte_for_byte,
)
