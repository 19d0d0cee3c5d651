"""A million scored rows in Parquet, DuckDB and PostgreSQL: wrong labels, rounded probabilities and keys are counted exactly.

python -m tests.bench.scored_rows [ROWS]

One line per place and case: what was planted, what the audit counted, and its time as a multiple of the place's audit
without a planted difference. The exit code is 1 where a count is off.
"""

import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd

from gbfl_compile.auditing.scored import ScoredOptions, audit_scored
from gbfl_compile.databases import availability, scratch
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split

PROGRAM = Program(
    ("income", "debt", "age"),
    (0, 1),
    (Clause((Interval(0, 30000.0), Interval(1, None, 0.4))), Clause((Interval(2, 25.0, if_missing=True),))),
    split(0, split(1, leaf(1 / 3, 2 / 3), leaf(0.8, 0.2)), leaf(6 / 7, 1 / 7)),
)
DIGITS, TOLERANCE = 4, 5e-5
COLUMNS = [*PROGRAM.features, "label", "p_0", "p_1", "id"]
KEYED = ScoredOptions(keys=("id",))
ROUNDED = ScoredOptions(probabilities=True, tolerance=TOLERANCE)


def scored(rows):
    """Rows with the program's answers and a key of their own; every hundredth age is missing."""
    draw = np.random.default_rng(7)
    x = np.column_stack([draw.lognormal(10.3, 0.6, rows), draw.uniform(0, 1, rows), draw.integers(18, 80, rows)])
    x[::100, 2] = np.nan
    answers = evaluate_many(PROGRAM, x)
    labels = answers.labels.astype(np.float64)
    return np.column_stack([x, labels, answers.probabilities, np.arange(rows, dtype=np.float64)])


def cases(table):
    """Name -> (table, options, expected different rows, expected missing and duplicated keys)."""
    places = np.linspace(5, len(table) - 5, 100).astype(int)
    for wrong in (0, 1, 100):
        changed = table.copy()
        changed[places[:wrong], 3] = 1 - changed[places[:wrong], 3]
        yield f"{wrong} wrong labels", changed, ScoredOptions(), wrong, None
    near = table.copy()
    near[:, 4:6] = near[:, 4:6].round(DIGITS)
    yield "rounded probabilities", near, ROUNDED, 0, None
    near = near.copy()
    near[places[:3], 5] += 0.001
    yield "rounded, 3 of them off", near, ROUNDED, 3, None
    keys = table.copy()
    keys[places[:50], 6] = keys[places[:50] + 1, 6]
    keys[places[60:90], 6] = np.nan
    yield "50 keys twice, 30 missing", keys, KEYED, 0, (30, 50)


def sources(table, folder):
    """Place -> what is audited there; each is removed before the next is made."""
    path = Path(folder, "scored.parquet")
    pd.DataFrame(table, columns=COLUMNS).to_parquet(path, index=False)
    yield "Parquet", path
    for engine in ("duckdb", "postgres"):
        if reason := availability(engine):
            sys.stdout.write(f"{engine}: not run: {reason}\n")
            continue
        with closing(scratch(engine)) as database:
            database.insert("scored", COLUMNS, table)
            yield engine, (database, "scored")


def main(rows):
    """Print the table; whether every count is right."""
    first, wrong = {}, 0
    with tempfile.TemporaryDirectory() as folder:
        for name, table, options, different, keys in cases(scored(rows)):
            for place, source in sources(table, folder):
                began = time.perf_counter()
                found = audit_scored(PROGRAM, source, options=options)
                took = time.perf_counter() - began
                counted = None if found.keys is None else (found.keys["missing"], found.keys["duplicated"])
                is_right = (found.checked_rows, found.different_rows, counted) == (rows, different, keys)
                wrong += not is_right
                ratio = took / first.setdefault(place, took)
                sys.stdout.write(
                    f"{name:<26} {place:<9} {found.checked_rows:>9,} rows, {found.different_rows:>4} different, "
                    f"keys missing and duplicated {counted or '-'}: {'right' if is_right else 'WRONG'}, "
                    f"{ratio:.2f} times the first\n"
                )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000))
