"""The promise of tests/databases/test_literals.py, kept by the slower engines too."""

from tests.databases.test_literals import test_every_literal_is_read_as_the_double_it_was  # noqa: F401
