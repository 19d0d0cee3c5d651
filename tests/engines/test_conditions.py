"""The promise of tests/checking/general/sql/test_conditions.py, kept for the slower engines too."""

from tests.checking.general.sql.test_conditions import (  # noqa: F401 - pytest collects what it finds here
    test_a_condition_means_to_the_reader_what_it_means_to_the_engine,
    test_what_is_computed_from_constants_comes_to_what_the_engine_computes,
)
