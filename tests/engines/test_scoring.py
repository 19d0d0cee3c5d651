"""The promises of tests/databases/test_scoring.py, kept by the slower engines too."""

from tests.databases.test_scoring import (  # noqa: F401 - pytest collects what it finds here
    people,
    test_a_table_in_the_way_of_a_replacement_is_named_and_nothing_is_lost,
    test_a_table_is_scored_inside_the_database,
    test_a_table_that_is_there_is_not_overwritten_unless_asked,
    test_a_wrong_name_is_reported_before_anything_is_created,
    test_columns_are_mapped_to_features,
)
