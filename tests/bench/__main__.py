"""`make bench [GROUPS="python learn"]`: every benchmark in one table, each contender as a ratio to the quickest.

python -m tests.bench c --record     also writes docs/bench/c.md and docs/bench/c.svg
"""

import importlib
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench.record import write_record
from tests.bench.timing import Timing

GROUPS = (
    *("start", "python", "explain", "learn", "mine_scale"),
    *("c", "js", "onnx", "sql", "score"),
    *("proof", "audit", "why"),
)
"""Each is `tests/bench/group_NAME.py` with a function `run`."""

DOCS = Path(__file__).parent.parent.parent / "docs" / "bench"


def main(arguments: list[str]) -> None:
    """Run the groups asked for, or all; one that lacks a library says so."""
    recorded = "--record" in arguments
    wanted = [name for name in arguments if name != "--record"]
    table = Table("group", "shape", "who", "ns an item", "times the quickest")
    for name in wanted or list(GROUPS):
        try:
            found = importlib.import_module(f"tests.bench.group_{name}").run()
        except ImportError as missing:
            table.add_row(name, "", f"not run: {missing}", "", "")
            continue
        add_rows(table, found)
        if recorded:
            write_record(DOCS, name, found)
    Console(width=120).print(table)


def add_rows(table: Table, found: list[Timing]) -> None:
    for shape in dict.fromkeys(timed.shape for timed in found):
        rows = sorted((t for t in found if t.shape == shape), key=lambda timed: timed.nanoseconds)
        for timed in rows:
            ratio = timed.nanoseconds / rows[0].nanoseconds
            table.add_row(timed.group, timed.shape, timed.who, f"{timed.nanoseconds:,.0f}", f"{ratio:.1f}")


if __name__ == "__main__":
    main(sys.argv[1:])
