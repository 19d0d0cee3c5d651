"""A program as a column of Spark DataFrames: each executor answers for its own rows, nothing comes to the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gbfl_compile.backends import emit
from gbfl_compile.databases.base import library

if TYPE_CHECKING:
    from gbfl_compile.ir.nodes import Program


def spark_column(program: Program, columns: Mapping[str, str] | None = None, *, types: str = "any") -> Any:
    """The label as a pyspark Column, to be added by `frame.withColumn("label", …)` or selected.

    `columns` maps a feature to its column where they are called differently. With types="double" the columns are
    taken as doubles and not cast.
    """
    functions = library("pyspark.sql.functions", "engines")
    return functions.expr(spark_expression(program, columns, types=types)).alias("label")


def spark_expression(program: Program, columns: Mapping[str, str] | None = None, *, types: str = "any") -> str:
    """The text of that column, for `selectExpr` and for SQL."""
    options = {"form": "expression", "outputs": "label", "types": types}
    options |= {f"column.{feature}": column for feature, column in (columns or {}).items()}
    lines = emit(program, "sql:spark", "model", options).files["model.sql"].decode().split("\n")
    first = next(number for number, line in enumerate(lines) if not line.startswith("--"))
    return "\n".join(lines[first:]).strip()
