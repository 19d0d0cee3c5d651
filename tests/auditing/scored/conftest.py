"""A private database per engine for tables that were scored there."""

import pytest

from gbfl_compile.databases import availability, scratch


@pytest.fixture(params=("sqlite", "duckdb", "postgres", "datafusion"))
def database(request):
    if reason := availability(request.param):
        pytest.skip(reason)
    made = scratch(request.param)
    yield made
    made.close()
