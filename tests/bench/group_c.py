"""Group `c`: the emitted scorers, the peers, and a plain read of the same memory, a million rows of 20 doubles.

Everything is timed in one process of the peers' environment, `.bench/`: see c_race.py.
"""

from tests.bench.peers import race_peers
from tests.bench.timing import Timing


def run() -> list[Timing]:
    """A million rows through each shape, then one row at a time."""
    return race_peers("c_race", "c")
