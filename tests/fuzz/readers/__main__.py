"""python -m tests.fuzz.readers: readers against engines and compilers. Exit code 1 if one of them disagrees.

python -m tests.fuzz.readers --count 2000                               # every engine that is here, and C
python -m tests.fuzz.readers --engine duckdb --count 100000 --seed 7
python -m tests.fuzz.readers --engine c --count 20000
"""

import argparse
import logging
import sys
import time

from gbfl_compile.backends.c.build import why_not
from gbfl_compile.databases import ENGINES, availability
from tests.fuzz.readers.c import fuzz_c
from tests.fuzz.readers.sql import READERS, fuzz_engine

SHOWN = 40
"""Disagreements of one engine that are printed."""


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz.readers", description="Compare what readers read with what engines and C answer."
    )
    parser.add_argument("--engine", action="append", choices=(*ENGINES, "c"), help="may be repeated; default: all")
    parser.add_argument("--count", type=int, default=2000, help="texts per engine that are read and run")
    parser.add_argument("--reader", action="append", choices=READERS, help="of SQL; may be repeated; default: both")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="time limit per engine")
    arguments = parser.parse_args()
    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it remarks on texts of other engines
    disagreements = 0
    for engine in arguments.engine or (*ENGINES, "c"):
        if reason := why_not() if engine == "c" else availability(engine):
            sys.stdout.write(f"{engine}: not run: {reason}\n")
            continue
        began = time.monotonic()
        if engine == "c":
            result = fuzz_c(arguments.count, arguments.seed, arguments.seconds)
        else:
            result = fuzz_engine(
                engine, arguments.count, arguments.seed, arguments.seconds, arguments.reader or READERS
            )
        disagreements += len(result.disagreements)
        counts = ", ".join(f"{what} {number}" for what, number in result.counts.items())
        sys.stdout.write(
            f"{engine}: {len(result.disagreements)} disagreements; {counts}; {time.monotonic() - began:.0f} s\n"
        )
        for disagreement in [*result.disagreements.values()][:SHOWN]:
            sys.stdout.write(f"  {disagreement}\n")
        sys.stdout.flush()
    return 1 if disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
