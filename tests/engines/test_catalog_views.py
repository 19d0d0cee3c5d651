"""The promises of tests/checking/general/sql/test_engines.py, kept for the slower engines too."""

import pytest

from tests.checking.general.sql.test_engines import (  # noqa: F401 - pytest collects what it finds here
    test_a_mutated_text_answers_as_it_was_read,
    test_a_respelled_text_is_proved_and_answers_as_it_was_read,
    test_a_slip_in_a_view_is_found_from_its_catalog,
    test_a_view_is_proved_from_its_catalog,
)
from tests.checking.general.sql.views import CATALOG


@pytest.fixture(autouse=True)
def _has_a_catalog(request, database):
    if "catalog" in request.node.name and database.dialect not in CATALOG:
        pytest.skip(f"{database.version} keeps no text of its views that is read here")
