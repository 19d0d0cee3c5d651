"""The promises of tests/backends/sql/test_nan.py, kept by the slower engines too."""

from tests.backends.sql.test_nan import (  # noqa: F401 - pytest collects what it finds here
    test_a_condition_is_exact_on_every_double,
    test_an_artifact_answers_every_nan_as_missing,
)
