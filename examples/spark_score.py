"""Score a Parquet set of many files with Spark: the label is a column, and no row comes to the driver.

Run it: python examples/spark_score.py   (needs the extra `engines` and Java 17)
The same lines run on a cluster: only the session's master differs.
"""

import tempfile

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from gbfl_compile.backends.sql.score import spark_column
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split

program = Program(
    features=("age", "income", "debt"),
    classes=("refuse", "grant"),
    clauses=(Clause((Interval(0, 18.0, None), Interval(2, None, 0.4))), Clause((Interval(1, 0.25, None),))),
    decision=split(0, split(1, leaf(0.1, 0.9), leaf(0.6, 0.4)), leaf(1.0, 0.0)),
)

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")

with tempfile.TemporaryDirectory() as folder:
    rows = spark.range(0, 1_000_000, numPartitions=8)
    for seed, (name, top) in enumerate({"age": 80.0, "income": 1.0, "debt": 1.0}.items()):
        rows = rows.withColumn(name, f.rand(seed) * top)
    rows.write.parquet(f"{folder}/applicants")

    applicants = spark.read.parquet(f"{folder}/applicants")
    applicants.withColumn("label", spark_column(program)).write.partitionBy("label").parquet(f"{folder}/scored")

    for row in spark.read.parquet(f"{folder}/scored").groupBy("label").count().orderBy("label").collect():
        print(f"{row['label']:8}{row['count']:10,}")
spark.stop()
