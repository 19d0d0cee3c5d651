"""Score Parquet files larger than memory with DuckDB: it reads, scores and writes them piece by piece.

Run it: python examples/duckdb_parquet.py   (needs the extra `sql`)
The memory limit is set below the size of the files, to show that the rows are never all in memory.
"""

import tempfile
from pathlib import Path

import duckdb

from gbfl_compile import emit
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split

ROWS, FILES = 5_000_000, 10

program = Program(
    features=("age", "income", "debt"),
    classes=("refuse", "grant"),
    clauses=(Clause((Interval(0, 18.0, None), Interval(2, None, 0.4))), Clause((Interval(1, 0.25, None),))),
    decision=split(0, split(1, leaf(0.1, 0.9), leaf(0.6, 0.4)), leaf(1.0, 0.0)),
)

with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
    connection.execute("SET memory_limit = '150MB'")
    connection.execute(f"SET temp_directory = '{folder}/spill'")
    connection.execute("SET preserve_insertion_order = false")
    for part in range(FILES):
        connection.execute(
            f"COPY (SELECT i AS id, random() * 80 AS age, random() AS income, random() AS debt, random() AS a, "
            f"random() AS b, random() AS c, random() AS d FROM range({ROWS // FILES}) t(i)) "
            f"TO '{folder}/part{part}.parquet' (FORMAT parquet)"
        )
    connection.execute(f"CREATE VIEW applicants AS SELECT * FROM '{folder}/part*.parquet'")

    query = emit(program, "sql:duckdb", options={"table": "applicants", "key": "id", "types": "double"})
    text = query.files["model.sql"].decode().split("\n;\n")[0]
    connection.execute(f"COPY ({text}) TO '{folder}/scored.parquet' (FORMAT parquet)")

    size = sum(file.stat().st_size for file in Path(folder).glob("part*.parquet"))
    counts = connection.execute(f"SELECT label, count(*) FROM '{folder}/scored.parquet' GROUP BY label").fetchall()
    print(f"{sum(count for _, count in counts):,} rows, {size // 2**20} MB of Parquet, 150 MB of memory allowed")
    for label, count in sorted(counts):
        print(f"{label:8}{count:10,}")
