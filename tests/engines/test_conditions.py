"""The promise of tests/check/test_readers_sql_conditions.py, kept for the slower engines too."""

from tests.check.test_readers_sql_conditions import (  # noqa: F401 - pytest collects what it finds here
    test_a_condition_means_to_the_reader_what_it_means_to_the_engine,
)
