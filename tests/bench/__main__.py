"""`make bench [GROUPS="python learn"]`: every benchmark in one table, each contender as a ratio to the quickest."""

import importlib
import sys

from rich.console import Console
from rich.table import Table

GROUPS = ("python", "explain", "learn", "c", "onnx")
"""Each is `tests/bench/group_NAME.py` with a function `run`."""


def main(wanted: list[str]) -> None:
    """Run the groups asked for, or all; one that lacks a library says so."""
    table = Table("group", "shape", "who", "ns an item", "times the quickest")
    for name in wanted or list(GROUPS):
        try:
            found = importlib.import_module(f"tests.bench.group_{name}").run()
        except ImportError as missing:
            table.add_row(name, "", f"not run: {missing}", "", "")
            continue
        for shape in dict.fromkeys(timed.shape for timed in found):
            rows = sorted((t for t in found if t.shape == shape), key=lambda timed: timed.nanoseconds)
            for timed in rows:
                ratio = timed.nanoseconds / rows[0].nanoseconds
                table.add_row(timed.group, timed.shape, timed.who, f"{timed.nanoseconds:,.0f}", f"{ratio:.1f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
