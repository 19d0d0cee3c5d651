"""A scoring view in DuckDB: made from `duckdb_view.sql`, queried, and audited against the approved program.

Run it: python examples/duckdb_view.py   (needs the extra `sql`)
`duckdb_view.sql` was written by
    gbfl compile examples/loans.gbfl.json --to sql:duckdb -o build --set sql.form=view --set sql.table=loans \
        --set sql.view=scores --set sql.key=loan
"""

import tempfile
from pathlib import Path

import duckdb

from gbfl_compile import audit

HERE = Path(__file__).parent

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "loans.duckdb"
    with duckdb.connect(file) as database:
        database.execute(
            "CREATE TABLE loans AS SELECT i AS loan, 12000 + i * 37 % 60000 AS income, "
            "(i * 13 % 70) / 100.0 AS debt_share, CASE WHEN i % 50 > 0 THEN i % 5 END AS late_payments "
            "FROM range(1000) t(i)"
        )
        database.execute((HERE / "duckdb_view.sql").read_text(encoding="utf-8"))
        for row in database.execute("SELECT label, count(*) FROM scores GROUP BY label ORDER BY label").fetchall():
            print(*row)
    print(*audit(HERE / "loans.gbfl.json", database=f"duckdb:///{file}", view="scores").lines(), sep="\n")
