"""Group `audit`: a scored Parquet file of ten million rows, one of them wrong, audited in a separate process.

Wall clock, and the process's largest memory beside it (VmHWM: a child's getrusage begins with its parent's). GBFL_BENCH_AUDIT_ROWS sets another number of rows.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from gbfl_compile.auditing.scored.compare import with_used_features
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.json import to_json
from tests.bench.shapes import FEATURES, NAMES, clause_tree, data, fitted_tree, rule_set
from tests.bench.timing import Timing

ROWS = int(os.environ.get("GBFL_BENCH_AUDIT_ROWS", "10000000"))
PART = 1_000_000
WRONG = 0.77
"""Where the wrong row is, as a share of the file."""

AUDIT = """
import json, sys, time
from pathlib import Path
from gbfl_compile.auditing.scored import ScoredOptions, audit_scored
from gbfl_compile.ir.json import from_json
program = from_json(Path(sys.argv[1]).read_text())
began, worked = time.perf_counter(), time.process_time()
found = audit_scored(program, Path(sys.argv[2]), options=ScoredOptions(drift=sys.argv[3] == "drift"))
took, worked = time.perf_counter() - began, time.process_time() - worked
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
peak = int(status["VmHWM"].split()[0]) / 1024
print(json.dumps({"seconds": took, "cpu_seconds": worked, "megabytes": peak,
    "verdict": found.verdict, "rows": found.checked_rows, "different": found.different_rows, "engine": found.engine,
    "first": [row["row_number"] for row in found.first_different_rows]}))
"""


def write_scored(path, program, rows, wrong):
    """A Parquet file of normal rows with the program's labels, the one at `wrong` given another."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([*((name, pa.float64()) for name in NAMES), ("label", pa.int64())])
    choose = np.random.default_rng(1)
    with parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, PART):
            values = choose.normal(size=(min(PART, rows - start), FEATURES))
            labels = evaluate_many(program, values).labels.astype(np.int64)
            if start <= wrong < start + len(labels):
                labels[wrong - start] ^= 1
            columns = [pa.array(np.ascontiguousarray(values[:, f])) for f in range(FEATURES)]
            writer.write_table(pa.table([*columns, pa.array(labels)], schema=schema))


def run_audit(folder, shape, program, rows, drift=False):
    """One audit, and what it found of the wrong row."""
    wrong = int(rows * WRONG)
    write_scored(folder / "scored.parquet", program, rows, wrong)
    (folder / "program.json").write_text(to_json(program), encoding="utf-8")
    for _ in range(2):  # the first run builds the C scorer into the cache
        command = [sys.executable, "-c", AUDIT, folder / "program.json", folder / "scored.parquet", "drift" * drift]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(run.stdout)
    assert (found["verdict"], found["rows"], found["different"]) == ("different", rows, 1), found
    assert found["first"] == [wrong + 1], found
    who = f"gbfl audit{' with drift' * drift}, {found['megabytes']:.0f} MB at most, the wrong row found"
    who += f" ({found['cpu_seconds'] * 1e9 / rows:,.0f} ns of CPU)"
    shape = f"{shape}, {rows:,} rows of {len(with_used_features(program).features)} used features, Parquet, wall clock"
    return Timing("audit", shape, who, found["seconds"] * 1e9 / rows)


def run():
    """Trees, and on a tenth of the rows a rule set and drift."""
    tree = fitted_tree(*data(50_000))[1]
    with tempfile.TemporaryDirectory(prefix="gbfl-bench-") as made:
        folder = Path(made)
        return [
            run_audit(folder, "tree on raw features", tree, ROWS),
            run_audit(folder, "tree over 31 clauses", clause_tree(3), ROWS),
            run_audit(folder, "rule set of 100 clauses", rule_set(100), max(1, ROWS // 10)),
            run_audit(folder, "tree over 31 clauses", clause_tree(3), max(1, ROWS // 10), drift=True),
        ]
