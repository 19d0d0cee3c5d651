"""Group `start`: what it costs to start the command line and to import the package, in CPU time above bare Python.

Promised: `gbfl --help` within 150 ms and `import gbfl_compile` within 100 ms above an interpreter that does nothing.
"""

import resource
import subprocess
import sys

from tests.bench.timing import Timing, race

WHAT = {
    "bare Python": ["-c", "pass"],
    "gbfl: import gbfl_compile": ["-c", "import gbfl_compile"],
    "gbfl --help": ["-m", "gbfl_compile", "--help"],
    "gbfl mine --help": ["-m", "gbfl_compile", "mine", "--help"],
    "import numpy": ["-c", "import numpy"],
}
"""What each process is given. numpy is there to compare with: nothing in this package may load it to print a help text."""


def run() -> list[Timing]:
    """Each in a separate process, nine rounds; then the same with bare Python taken off."""
    found = race("start", "a process", {who: (lambda it=it: _start(it), 1) for who, it in WHAT.items()}, 9, _children)
    bare = next(timed.nanoseconds for timed in found if timed.who == "bare Python")
    above = [
        Timing("start", "above bare Python", timed.who, max(timed.nanoseconds - bare, 1.0))
        for timed in found
        if timed.who != "bare Python"
    ]
    return found + above


def _start(arguments: list[str]) -> None:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def _children() -> int:
    """CPU nanoseconds of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return int(1e9 * (used.ru_utime + used.ru_stime))
