"""Settings and costly things every test shares."""

import os
import signal

# Started in the background of a script, a process ignores Ctrl-C and so do its children: there would be nothing to test.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The suite runs on as many processes as there are cores: threads of theirs would only wait for each other.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import pytest  # noqa: E402 - after the threads are set
from hypothesis import settings  # noqa: E402

from tests.wheel import install_wheel  # noqa: E402

# In CI the examples are the same every time; on a developer's machine each run looks somewhere new.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("local", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """The wheel in an environment of its own, made once."""
    return install_wheel(tmp_path_factory.mktemp("installed"))
