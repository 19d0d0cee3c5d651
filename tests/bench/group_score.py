"""Group `score`: a Parquet file through the C kernel into another, in a separate process, at growing sizes.

Cost per row and the process's largest memory should not grow with the file. GBFL_BENCH_SCORE_ROWS sets other sizes; the
full claim is GBFL_BENCH_SCORE_ROWS=1000000,100000000 (the larger file takes 8 GB in the folder of temporary files).
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from gbfl_compile.backends import emit, write_artifact
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.nodes import Program
from gbfl_compile.lowering import raw_tree
from tests.bench.shapes import NAMES, data, fitted_tree
from tests.bench.timing import Timing

SIZES = [int(rows) for rows in os.environ.get("GBFL_BENCH_SCORE_ROWS", "1000000,10000000").split(",")]
WIDTH = 10
PART = 1_000_000
"""Rows of a row group: one block of random rows, written as often as it takes."""

SCORE = """
import json, sys, time
from pathlib import Path
from gbfl_compile.backends import load_artifact
from gbfl_compile.backends.score import score_file
predictor = load_artifact(Path(sys.argv[1]))
jobs = int(sys.argv[4]) or None
score_file(predictor, Path(sys.argv[5]), Path(sys.argv[3]), ("id",), jobs)  # libraries are loaded, threads started
began, worked = time.perf_counter(), time.process_time()
rows = score_file(predictor, Path(sys.argv[2]), Path(sys.argv[3]), ("id",), jobs)
took, worked = time.perf_counter() - began, time.process_time() - worked
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(json.dumps({"seconds": took, "cpu_seconds": worked, "rows": rows,
    "megabytes": int(status["VmHWM"].split()[0]) / 1024}))
"""

READ = """
import json, sys, time
from pyarrow import parquet
began, rows = time.perf_counter(), 0
with parquet.ParquetFile(sys.argv[1], buffer_size=1 << 20, pre_buffer=False) as file:
    for batch in file.iter_batches(65536):
        rows += batch.num_rows
print(json.dumps({"seconds": time.perf_counter() - began, "rows": rows}))
"""


def a_program():
    """A tree of depth 5 with labels of text."""
    values, labels = data(50_000)
    model, _ = fitted_tree(values[:, :WIDTH], labels)
    return Program(NAMES[:WIDTH], ("declined", "approved"), *raw_tree(model, 2))


def write_rows(path, rows):
    """`rows` random rows and their numbers; what the first of them hold."""
    import pyarrow as pa
    from pyarrow import parquet

    block = np.random.default_rng(1).normal(size=(min(PART, rows), WIDTH))
    columns = [pa.array(np.ascontiguousarray(block[:, f])) for f in range(WIDTH)]
    schema = pa.schema([("id", pa.int64()), *((name, pa.float64()) for name in NAMES[:WIDTH])])
    with parquet.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for start in range(0, rows, len(block)):
            here = min(len(block), rows - start)
            numbers = pa.array(np.arange(start, start + here))
            writer.write_table(pa.table([numbers, *(column.slice(0, here) for column in columns)], schema=schema))
    return block


def ran(script, *arguments):
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def check_scored(path, program, block, rows):
    """The last row group answers as the program does, its rows in order."""
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        assert file.metadata.num_rows == rows
        last = file.read_row_group(file.num_row_groups - 1).to_pandas()
    first = rows - len(last)
    assert last["id"].tolist() == list(range(first, rows))
    answers = evaluate_many(program, block[np.arange(first, rows) % len(block)])
    assert last["label"].tolist() == answers.labels.tolist()
    assert (last[["p_declined", "p_approved"]].to_numpy() == answers.probabilities).all()


def run_score(folder, program, rows):
    """One size: a plain read of the file, one thread, and as many as there are."""
    table, out = folder / "rows.parquet", folder / "scored.parquet"
    block = write_rows(table, rows)
    write_rows(folder / "few.parquet", 1000)
    shape = f"{rows:,} rows of {WIDTH} doubles and a key, Parquet to Parquet, wall clock"
    read = ran(READ, table)
    made = [Timing("score", shape, "pyarrow, plain read", read["seconds"] * 1e9 / rows)]
    for jobs, who in ((0, "gbfl score"), (1, "gbfl score --jobs 1")):
        found = ran(SCORE, folder / "c", table, out, jobs, folder / "few.parquet")
        assert found["rows"] == rows
        check_scored(out, program, block, rows)
        remark = f"{who}, {found['megabytes']:.0f} MB at most, {found['cpu_seconds'] * 1e9 / rows:,.0f} ns of CPU"
        made.append(Timing("score", shape, remark, found["seconds"] * 1e9 / rows))
    table.unlink()
    return made


def run():
    """Each size in turn; what was written is removed."""
    program = a_program()
    with tempfile.TemporaryDirectory(prefix="gbfl-bench-") as made:
        write_artifact(emit(program, "c"), Path(made))
        return [timed for rows in SIZES for timed in run_score(Path(made), program, rows)]
