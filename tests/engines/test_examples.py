"""The examples for large tables run unchanged."""

import subprocess
import sys
from pathlib import Path

import pytest

from gbfl_compile.databases import availability

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.mark.parametrize(
    ("name", "dialect", "rows"), [("duckdb_parquet", "duckdb", 5_000_000), ("spark_score", "spark", 1_000_000)]
)
def test_an_example_scores_all_of_its_rows(name, dialect, rows):
    if reason := availability(dialect):
        pytest.skip(reason)
    run = subprocess.run([sys.executable, EXAMPLES / f"{name}.py"], capture_output=True, text=True, check=True)
    counts = [
        int(line.split()[-1].replace(",", ""))
        for line in run.stdout.splitlines()
        if line.startswith(("grant", "refuse"))
    ]
    assert sum(counts) == rows
