"""Group `learn`: explained, mined and fitted, by head and number of rows; seconds and peak memory of a process each."""

import json
import subprocess
import sys

from tests.bench.timing import Timed

SHAPES = (1_000, 10_000, 30_000)


def run() -> list[Timed]:
    """Wall time a row; the memory and the whole time stand beside the name."""
    found = []
    for head in ("tree", "rules", "rule_list"):
        for rows in SHAPES:
            command = [sys.executable, "-m", "tests.bench.fit_once", head, str(rows)]
            told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            who = f"{head}: {told['seconds']:.1f} s, {told['megabytes']:.0f} MB, {told['queries_a_row']:.0f} queries a row"
            found.append(Timed("learn", f"{rows:,} x 20", who, 1e9 * told["seconds"] / rows))
    return found
