"""The engines `make test` runs; the slower ones are in tests/engines."""

import pytest

from gbfl_compile.databases import availability, scratch


@pytest.fixture(scope="module", params=("sqlite", "duckdb", "datafusion", "postgres"))
def database(request):
    if reason := availability(request.param):
        pytest.skip(reason)
    made = scratch(request.param)
    yield made
    made.close()
