"""The label as a column of a DataFrame: the same answers over partitions, as in DuckDB and as `evaluate_many`.

GBFL_ROWS=10000000 python -m pytest tests/engines/test_spark.py compares ten million rows; 200,000 otherwise.
"""

import os

import numpy as np
import pytest

from gbfl_compile.backends import emit
from gbfl_compile.backends.sql.score import spark_column
from gbfl_compile.databases import availability
from gbfl_compile.databases import spark as local
from gbfl_compile.ir.batch import evaluate_many
from tests.engines.sizes import FEATURES, wide_tree

COUNT = int(os.environ.get("GBFL_ROWS", "200000"))
PARTS = 8


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    """Rows in several files, one a partition, and the labels they have."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    folder = tmp_path_factory.mktemp("rows")
    program = wide_tree(32)
    counts = {}
    for part in range(PARTS):
        rows = np.random.default_rng(part).normal(size=(COUNT // PARTS, len(FEATURES)))
        rows[::97, 0] = np.nan
        table = pa.Table.from_arrays([pa.array(column) for column in rows.T], names=list(FEATURES))
        parquet.write_table(table, folder / f"part{part}.parquet")
        for label, count in zip(
            *np.unique(evaluate_many(program, rows).labels.astype(str), return_counts=True), strict=True
        ):
            counts[str(label)] = counts.get(str(label), 0) + int(count)
    return program, folder, counts


@pytest.fixture(scope="module")
def session():
    if reason := availability("spark"):
        pytest.skip(reason)
    return local.local_session()


def test_a_column_answers_over_many_partitions(session, parquet):
    program, folder, counts = parquet
    with local.quiet():
        frame = session.read.parquet(str(folder))
        scored = frame.withColumn("label", spark_column(program))
        assert scored.rdd.getNumPartitions() > 1
        assert dict(scored.groupBy("label").count().collect()) == counts  # only the counts come to the driver
        scored.write.parquet(str(folder.parent / "scored"))
        again = session.read.parquet(str(folder.parent / "scored"))
        assert dict(again.groupBy("label").count().collect()) == counts


def test_columns_are_mapped_to_features(session, parquet):
    program, folder, counts = parquet
    with local.quiet():
        frame = session.read.parquet(str(folder)).withColumnsRenamed({name: f"col {name}`" for name in FEATURES})
        scored = frame.select(spark_column(program, {name: f"col {name}`" for name in FEATURES}))
        assert dict(scored.groupBy("label").count().collect()) == counts


def test_duckdb_counts_the_same_labels(parquet):
    duckdb = pytest.importorskip("duckdb")
    program, folder, counts = parquet
    options = {"table": "rows", "outputs": "label"}
    query = emit(program, "sql:duckdb", "model", options).files["model.sql"].decode().split("\n;\n")[0]
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW rows AS SELECT * FROM '{folder}/*.parquet'")
        found = connection.execute(f"SELECT label, count(*) FROM ({query}) GROUP BY label").fetchall()
    assert dict(found) == counts
