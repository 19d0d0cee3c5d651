"""Group `learn`: explained, mined and fitted, by head and number of rows; seconds and peak memory of a process each."""

import json
import subprocess
import sys

from tests.bench.timing import Timing

SHAPES = (1_000, 10_000, 30_000)


def run() -> list[Timing]:
    """Wall time per row; the memory and the whole time are beside the name."""
    found = []
    for head in ("tree", "rules", "rule_list"):
        for rows in SHAPES:
            command = [sys.executable, "-m", "tests.bench.fit_once", head, str(rows)]
            form = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            who = f"{head}: {form['seconds']:.1f} s, {form['megabytes']:.0f} MB, {form['queries_a_row']:.0f} queries per row"
            found.append(Timing("learn", f"{rows:,} x 20", who, 1e9 * form["seconds"] / rows))
    return found
