"""A dbt test that holds a deployed model against the approved program: writes tests/scores_as_approved.sql.

    python examples/audit/dbt_test.py approved.gbfl.json duckdb tests/scores_as_approved.sql

dbt calls a test failed when its query gives rows. This one gives each row of `scores` whose label is not the one that
the approved program, written out as an expression, gives to the same row.
"""

import sys
from pathlib import Path

from gbfl_compile import emit, load_program

program_file, dialect, target = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
artifact = emit(load_program(program_file), f"sql:{dialect}", "approved", {"form": "expression"})
lines = artifact.files["approved.sql"].decode().splitlines()
expression = "\n".join(line for line in lines if not line.startswith("--"))
# dbt reads braces as its own: a label or a name that has them is written so that it does not.
escaped = expression.replace("{", "{{ '{' }}")
query = f"SELECT * FROM {{{{ ref('scores') }}}} WHERE label IS NULL OR label <> ({escaped})\n"
target.parent.mkdir(parents=True, exist_ok=True)
target.write_text(query, encoding="utf-8")
print(f"{target}: {len(query):,} characters")
