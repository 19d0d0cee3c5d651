"""How many random cases a test tries: all of them in CI (GBFL_FULL=1), a quarter in `make test`, or a number you set."""

import os

FULL = bool(os.environ.get("GBFL_FULL"))
SHORT = 4
FEWEST = 10


def shorten(full):
    """A quarter of the cases, but ten where there are as many; all of them with GBFL_FULL=1."""
    return full if FULL else max(min(full, FEWEST), full // SHORT)


def count(variable, full):
    """The number of cases that an environment variable sets, or else as many as `shorten` leaves."""
    return int(os.environ.get(variable) or shorten(full))
