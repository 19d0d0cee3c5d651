"""How much memory mining takes, estimated before it is taken: what does not fit is refused with the way out.

The figures are rounded up from measurements (`python -m tests.bench mine_scale` prints the peak beside each limit).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gbfl_compile.errors import BadInput

if TYPE_CHECKING:
    from gbfl_compile.tables.sample import Split

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}

WORKER = 230 * 10**6
"""A worker process with its libraries and the rows it explains, the black box aside."""
SEARCH = 200 * 10**6
"""For the search for a head, however many rows there are: it sees 20,000 of them."""
SEARCHED = 20_000 * 3 * 8 * 4
"""And bytes per feature: x, PP and PN of those rows, four times."""
READING = 4
"""Copies of a table's numbers at once: it is read, turned into a matrix and sorted."""
EXPLAINED = 4
"""Numbers held per number of a row: the row, its PP and PN, and what a fit makes of them; for each method."""
STACKED = 3
"""And for each of several methods: their rows, PPs and PNs one after the other, as a head is fitted to them."""
BESIDE = 5
"""And more of them where several jobs fit the head, explain held-out rows and fit the baselines at the same time."""
A_ROW = 200
"""Bytes per row: classes, flags, margins, answers and scores."""


def bytes_of(text: str) -> int:
    """A size as people write it.

    >>> bytes_of("2GB"), bytes_of("1.5 GiB")
    (2000000000, 1610612736)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?\s*", text.upper())
    if match is None or match[2] not in UNITS or not 0 < (size := float(match[1]) * UNITS[match[2]]) < 2**63:
        raise BadInput(f"--memory {text}: is not a size, such as 2GB or 500MB")
    return int(size)


def resident() -> int:
    """Bytes this process holds now, where the system says; elsewhere its peak, or 0 where not even that is known."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * resource.getpagesize()
    except ImportError:
        return 0
    except (OSError, ValueError, IndexError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else 1024 * peak


def give_back() -> None:
    """Return freed memory to the system: pyarrow keeps a table's memory for the next one."""
    if (pyarrow := sys.modules.get("pyarrow")) is not None:
        pyarrow.default_memory_pool().release_unused()


def refuse_many_rows(where: str, rows: int, columns: int, most: int) -> None:
    """Refuse rows whose numbers alone would exceed the limit while they are read."""
    own, each = resident(), READING * 8 * columns
    needed = own + each * rows
    if needed > most:
        fitting = max(0, (most - own) // each)
        raise BadInput(
            f"{where}: {rows:,} rows of {columns} columns take about {_size_text(needed)} while they are read, and "
            f"--memory allows {_size_text(most)}: give {_fewer_rows(fitting)}a table of fewer columns, or more memory"
        )


def jobs_within(most: int, split: Split, jobs: int, methods: int = 1) -> int:
    """How many worker processes fit beside the rows; an error where the rows alone do not.

    Called once rows and black box are loaded: what they take is measured, the rest is estimated. Each of the `methods`
    explains every row.
    """
    own = resident()
    numbers, rows = split.x.size + split.x_test.size, len(split.x) + len(split.x_test)
    width = split.x.shape[1]
    search = SEARCH + SEARCHED * width
    each = 8 * (EXPLAINED + (STACKED if methods > 1 else 0))
    needed = own + search + methods * (each * numbers + A_ROW * rows)
    if needed > most:
        fitting = max(0, (most - own - search) // (methods * (each * width + A_ROW)))
        raise BadInput(
            f"--memory {_size_text(most)}: {_size_text(own)} are taken by the libraries, the rows and the black box, "
            f"and mining {rows:,} rows takes about {_size_text(needed)} in all: give {_fewer_rows(fitting)}"
            "fewer columns with --drop, or more memory"
        )
    return max(1, min(jobs, (most - needed - methods * BESIDE * 8 * numbers) // WORKER)) if jobs > 1 else 1


def _fewer_rows(fitting: int) -> str:
    return f"at most {fitting:,} rows with --rows, " if fitting >= 1000 else ""


def _size_text(size: int) -> str:
    return f"{size / 10**9:.1f} GB" if size >= 10**9 else f"{size / 10**6:.0f} MB"
