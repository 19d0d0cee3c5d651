"""How many random cases a test tries: all of them in CI (GBFL_FULL=1), a quarter in `make test`, or a number you set."""

import os

import pytest

FULL = bool(os.environ.get("GBFL_FULL"))
SHORT = 4
FEWEST = 10


def shorten(full):
    """A quarter of the cases, but ten where there are as many; all of them with GBFL_FULL=1."""
    return full if FULL else max(min(full, FEWEST), full // SHORT)


def count(variable, full):
    """The number of cases that an environment variable sets, or else as many as `shorten` leaves."""
    return int(os.environ.get(variable) or shorten(full))


FULL_ONLY = pytest.mark.skipif(not FULL, reason="a long case beside a shorter one of its kind: run with GBFL_FULL=1")
"""For cases of a long test that CI runs, and `make test` leaves out because another case makes the same promise."""
