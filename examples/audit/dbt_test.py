"""A dbt test that holds a deployed model against the approved program: writes tests/scores_as_approved.sql.

    python examples/audit/dbt_test.py approved.gbfl.json duckdb tests/scores_as_approved.sql
    python examples/audit/dbt_test.py approved.gbfl.json duckdb tests/t.sql --model decisions --label decision
        --features stg_applications --key application_id

dbt calls a test failed when its query gives rows. This one gives each row of the model whose label is not the one that
the approved program, written out as an expression, gives to the row's features. Where the model does not pass its
features on, as those that gbfl emits do not, `--features` names the model that has them, and `--key` the column that
both have: a row without features, or with several, is given too.
"""

import argparse
from pathlib import Path

from gbfl_compile import emit, load_program

parser = argparse.ArgumentParser(description="Write a dbt test that holds a model against the approved program.")
parser.add_argument("program", type=Path)
parser.add_argument("dialect")
parser.add_argument("test", type=Path, help="the .sql file to write")
parser.add_argument("--model", default="scores")
parser.add_argument("--label", default="label")
parser.add_argument("--features", help="the model or seed with the features, where the model does not pass them on")
parser.add_argument("--key", help="the column that both have")
parser.add_argument("--column", action="append", default=[], metavar="FEATURE=COLUMN", help="where names differ")
chosen = parser.parse_args()
if (chosen.features is None) != (chosen.key is None):
    parser.error("--features and --key go together")

columns = {f"column.{feature}": name for feature, _, name in (pair.partition("=") for pair in chosen.column)}
artifact = emit(load_program(chosen.program), f"sql:{chosen.dialect}", "approved", {"form": "expression", **columns})
lines = artifact.files["approved.sql"].decode().splitlines()
expression = "\n".join(line for line in lines if not line.startswith("--"))
# dbt reads braces as its own: a label or a name that has them is written so that it does not.
escaped = expression.replace("{", "{{ '{' }}")
model, label, key = f"{{{{ ref('{chosen.model}') }}}}", chosen.label, chosen.key
if chosen.features is None:
    query = f"SELECT * FROM {model} WHERE {label} IS NULL OR {label} <> ({escaped})\n"
else:
    features = f"{{{{ ref('{chosen.features}') }}}}"
    query = (
        f"WITH approved AS (\nSELECT {key}, {escaped} AS approved_label, COUNT(*) OVER (PARTITION BY {key}) AS times "
        f"FROM {features}\n)\nSELECT m.*, a.approved_label FROM {model} m LEFT JOIN approved a ON a.{key} = m.{key}\n"
        f"WHERE a.approved_label IS NULL OR a.times > 1 OR m.{label} IS NULL OR m.{label} <> a.approved_label\n"
    )
chosen.test.parent.mkdir(parents=True, exist_ok=True)
chosen.test.write_text(query, encoding="utf-8")
print(f"{chosen.test}: {len(query):,} characters")
