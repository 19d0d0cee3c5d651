"""`make bench [GROUPS="python"]`: every benchmark in one table, each contender as a ratio to the quickest."""

import sys

from rich.console import Console
from rich.table import Table

from tests.bench import group_explain, group_learn, group_python

GROUPS = {"python": group_python.run, "explain": group_explain.run, "learn": group_learn.run}


def main(wanted: list[str]) -> None:
    """Run the groups asked for, or all."""
    table = Table("group", "shape", "who", "ns an item", "times the quickest")
    for name in wanted or list(GROUPS):
        found = GROUPS[name]()
        for shape in dict.fromkeys(timed.shape for timed in found):
            rows = sorted((t for t in found if t.shape == shape), key=lambda timed: timed.nanoseconds)
            for timed in rows:
                ratio = timed.nanoseconds / rows[0].nanoseconds
                table.add_row(timed.group, timed.shape, timed.who, f"{timed.nanoseconds:,.0f}", f"{ratio:.1f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
