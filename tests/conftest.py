"""Settings and expensive fixtures that every test shares."""

import os
import signal

# A process started in the background of a script ignores Ctrl-C, and so do its children: there would be nothing to test.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The suite runs on as many processes as there are cores: more threads would only wait for each other.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import pytest  # noqa: E402 - after the threads are set
from hypothesis import is_hypothesis_test, settings  # noqa: E402

from tests.counts import shorten  # noqa: E402
from tests.wheel import install_wheel  # noqa: E402

# In CI the examples are the same every time; on a developer's machine every run tries new ones.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("local", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_collection_modifyitems(items):
    """Try fewer random examples where GBFL_FULL is not set: one place for every test that Hypothesis runs."""
    functions = {id(function): function for item in items if (function := getattr(item, "function", None)) is not None}
    for function in functions.values():
        if is_hypothesis_test(function):
            # applying @settings a second time is an error, so the attribute it sets is replaced
            chosen = function._hypothesis_internal_use_settings
            fewer = settings(chosen, max_examples=shorten(chosen.max_examples))
            function._hypothesis_internal_use_settings = fewer


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """The wheel in its own environment, built once."""
    return install_wheel(tmp_path_factory.mktemp("installed"))
