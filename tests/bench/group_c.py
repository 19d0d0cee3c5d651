"""Group `c`: the emitted scorers, the peers, and a plain read of the same memory, a million rows of 20 doubles.

Everything is timed in one process of the peers' environment, `.bench/`: see c_race.py.
"""

from tests.bench.peers import raced
from tests.bench.timing import Timed


def run() -> list[Timed]:
    """A million rows through each shape, then one row at a time."""
    return raced("c_race", "c")
