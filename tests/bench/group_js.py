"""Group `js`: one row of a depth-5 tree in Node.js, the emitted module beside m2cgen's JavaScript, in one process."""

from tests.bench.peers import race_peers
from tests.bench.timing import Timing


def run() -> list[Timing]:
    """One row per call, and columns."""
    return race_peers("js_race", "js")
