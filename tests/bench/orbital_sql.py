"""Run by `.bench/bin/python`: prints orbital's SQL for the depth-5 tree of `shapes`, as JSON by dialect."""

import json
import sys

import orbital
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier

from tests.bench.shapes import NAMES, TRAINING_ROWS, data


def main() -> None:
    import pandas as pd

    rows, labels = data(TRAINING_ROWS)
    model = Pipeline([("tree", DecisionTreeClassifier(max_depth=5, random_state=0))])
    parsed = orbital.parse_pipeline(
        model.fit(pd.DataFrame(rows, columns=list(NAMES)), labels),
        features={name: orbital.types.DoubleColumnType() for name in NAMES},
    )
    json.dump(
        {dialect: orbital.export_sql("rows", parsed, dialect=dialect) for dialect in ("duckdb", "postgres")}, sys.stdout
    )


if __name__ == "__main__":
    main()
