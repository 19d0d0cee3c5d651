"""The promise of tests/checking/general/sql/test_conditions.py, kept for the slower engines too."""

from tests.checking.general.sql.test_conditions import (  # noqa: F401 - pytest collects what it finds here
    test_a_condition_means_to_the_reader_what_it_means_to_the_engine,
)
