"""Group `mine_scale`: `gbfl mine` on many rows; what a row costs, what two workers are worth, the memory it takes, and
what it takes to draw some rows from a long table.

GBFL_MINE_ROWS=10000,50000 python -m tests.bench mine_scale          a small run; the default goes to 1,000,000
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from tests.bench.quick_boxes import FEATURES, table
from tests.bench.timing import Timing

ROWS = tuple(int(rows) for rows in os.environ.get("GBFL_MINE_ROWS", "10000,100000,1000000").split(","))
SHARED_ROWS = 200_000
"""So many, at most, are explained by one worker and by two."""
MEMORY = os.environ.get("GBFL_MINE_MEMORY", "2GB")


DRAWN = 20_000
DRAWN_OF = tuple(int(rows) for rows in os.environ.get("GBFL_MINE_DRAWN_OF", "1000000,10000000").split(","))
"""How many rows are drawn, and from tables of how many."""


def run_mine(file: Path, black_box: str, jobs: int, *more: str) -> dict:
    command = [
        sys.executable,
        "-m",
        "tests.bench.mine_once",
        str(file),
        f"tests.bench.quick_boxes:{black_box}",
        str(jobs),
    ]
    form = subprocess.run([*command, "--memory", MEMORY, *more], check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(form)


def run() -> list[Timing]:
    """Wall clock per row: of explaining the training rows, and of the whole command from file to program."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        shared, programs = min(max(ROWS), SHARED_ROWS), set()
        files = {rows: Path(folder) / f"{rows}.parquet" for rows in (*ROWS, shared)}
        for rows, file in files.items():
            x, y = table(rows)
            pd.DataFrame(x, columns=[f"x{j}" for j in range(FEATURES)]).assign(y=y).to_parquet(file)
        for rows in ROWS:
            form = run_mine(files[rows], "quick", 1)
            found += lines(form, f"{rows:,} rows", "quick black box, a row")
        for jobs in (1, 2):
            form = run_mine(files[shared], "network", jobs)
            programs.add(form["program"])
            found += lines(form, f"{jobs} job{'s' * (jobs > 1)}", f"network, {shared:,} rows, a row")
        assert len(programs) == 1, "the number of jobs changed the program"
        for rows in DRAWN_OF:
            write_long(Path(folder) / "long.parquet", rows)
            form = run_mine(Path(folder) / "long.parquet", "quick", 1, "--rows", str(DRAWN))
            who = f"of {rows:,} rows: {form['seconds']:.0f} s, {form['megabytes']:.0f} MB"
            found.append(
                Timing("mine_scale", f"{DRAWN:,} rows drawn", who, 1e9 * form["phases"]["reading and splitting"])
            )
    return found


def write_long(file: Path, rows: int) -> None:
    """A table of `rows` rows, written block by block."""
    x, y = table(min(rows, 100_000))
    block = pa.table({**{f"x{j}": x[:, j] for j in range(FEATURES)}, "y": y})
    with parquet.ParquetWriter(file, block.schema) as writer:
        for begin in range(0, rows, len(block)):
            writer.write_table(block.slice(0, rows - begin))


def lines(form: dict, who: str, shape: str) -> list[Timing]:
    note = f"{form['seconds']:.0f} s, {form['megabytes']:.0f} MB of {MEMORY}, C_TB {form['c_tb']:.1f} %"
    return [
        Timing("mine_scale", f"{shape}, explaining", who, 1e9 * form["explaining"] / form["training_rows"]),
        Timing("mine_scale", f"{shape}, whole", f"{who}: {note}", 1e9 * form["seconds"] / form["rows"]),
    ]
