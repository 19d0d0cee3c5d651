"""python -m tests.fuzz: broken inputs for each way in. Exit code 1 if one of them did what none may do.

python -m tests.fuzz --executions 10000                    # each target
python -m tests.fuzz --target loader --executions 500000
python -m tests.fuzz --total 1000000                       # loader and readers, the quick ones more often
python -m tests.fuzz --target sql --guided --executions 20000     # led by coverage, with atheris
"""

import argparse
import json
import sys
import time

from tests.fuzz.guided import fuzz_guided
from tests.fuzz.runner import fuzz, work
from tests.fuzz.targets import TARGETS

SHARES = {"loader": 0.6, "python": 0.09, "js": 0.04, "onnx": 0.25, "sql": 0.012, "c": 0.008}
"""Of a total: SQL and C take the longest to read."""


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description="Try broken inputs on everything that reads a file."
    )
    parser.add_argument("--target", action="append", choices=TARGETS, help="may be repeated; default: all")
    parser.add_argument("--executions", type=int, default=10_000, help="inputs per target")
    parser.add_argument("--total", type=int, help="inputs for loader and readers together, more for the fast ones")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="time limit per target")
    parser.add_argument("--guided", action="store_true", help="guided by coverage: pip install atheris")
    parser.add_argument("--work", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        name, count, seed, note, until = arguments.work
        work(name, int(count), int(seed), note, float(until))
        return 0
    findings = 0
    counts = dict.fromkeys(arguments.target or TARGETS, arguments.executions)
    if arguments.total is not None:
        counts = {name: round(arguments.total * share) for name, share in SHARES.items()}
    for name, count in counts.items():
        began = time.monotonic()
        result = (fuzz_guided if arguments.guided else fuzz)(name, count, arguments.seed, arguments.seconds)
        sys.stdout.write(f"{name}: {json.dumps(result['counts'])} in {time.monotonic() - began:.0f} s\n")
        for finding in result["findings"]:
            findings += 1
            sys.stdout.write(f"  {finding['what']}\n  saved in {finding['kept']}\n{finding['where']}\n")
        sys.stdout.flush()
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
