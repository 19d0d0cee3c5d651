"""Views of MariaDB and ClickHouse, read back as they rewrote them: equal ones are proved, tampered ones found."""

import pytest

from gbfl_compile.databases import availability, scratch
from tests.audit.view_cases import CASES, assert_audits_are_right


@pytest.fixture(scope="module", params=("mariadb", "clickhouse"))
def catalog(request):
    if reason := availability(request.param):
        pytest.skip(reason)
    made = scratch(request.param)
    yield made
    made.close()


@pytest.mark.parametrize("kind", CASES)
def test_views_are_proved_or_found_out(catalog, kind):
    assert_audits_are_right(catalog, kind)
