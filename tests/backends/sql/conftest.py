"""The engines that run the SQL target in every test run; tests/engines has the slower ones."""

import pytest

from gbfl_compile.databases import availability, scratch


@pytest.fixture(scope="module", params=("sqlite", "duckdb", "postgres", "datafusion"))
def database(request):
    if reason := availability(request.param):
        pytest.skip(reason)
    opened = scratch(request.param)
    yield opened
    opened.close()
