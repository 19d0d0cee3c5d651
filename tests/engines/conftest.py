"""The engines that take longer to start: `make test-engines` installs and runs them. One that is not here is skipped."""

import pytest

from gbfl_compile.databases import availability, scratch


@pytest.fixture(scope="module", params=("clickhouse", "mariadb", "spark"))
def database(request):
    if reason := availability(request.param):
        pytest.skip(reason)
    made = scratch(request.param)
    yield made
    made.close()
