"""The promises of tests/databases/test_insert.py, kept by the slower engines too."""

import numpy as np
import pytest

from gbfl_compile.databases import scratch
from gbfl_compile.errors import BadInput
from tests.databases.test_insert import (  # noqa: F401 - pytest collects what it finds here
    test_a_failure_names_the_engine_on_one_line,
    test_a_missing_value_is_null_or_nan_as_the_caller_chooses,
    test_a_table_takes_the_place_of_the_one_before,
    test_a_view_can_stand_on_an_inserted_table,
    test_every_double_comes_back_equal,
    test_many_columns_are_no_trouble,
    test_names_are_only_names,
    test_names_that_differ_by_case_are_two_columns_or_refused,
    test_no_rows_make_an_empty_table,
    test_scratch_databases_are_private_and_closed_twice_without_harm,
    test_what_cannot_be_a_column_is_refused,
)


def test_mariadb_never_gets_an_infinity():
    database = scratch_or_skip("mariadb")
    with pytest.raises(BadInput, match=r"row 1, column 'b': MariaDB .* cannot hold an infinity"):
        database.insert("t", ["a", "b"], np.array([[1.0, 2.0], [3.0, np.inf]]))
    database.close()


def scratch_or_skip(dialect):
    from gbfl_compile.databases import availability

    if reason := availability(dialect):
        pytest.skip(reason)
    return scratch(dialect)
