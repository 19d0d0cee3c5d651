"""DataFrames of any make as pandas ones: what a verb is called with may be pandas, Polars or Arrow."""

from __future__ import annotations

import os
from typing import Any

from gbfl_compile.errors import BadInput


def as_pandas(table: Any) -> Any:
    """Arrow and Polars tables as pandas ones with the same names; everything else unchanged."""
    if hasattr(table, "column_names") and hasattr(table, "to_pandas"):
        return table.to_pandas()
    if hasattr(table, "to_dicts") and hasattr(table, "columns"):
        import pandas as pd

        return pd.DataFrame({name: table[name].to_list() for name in table.columns})
    return table


def named_table(source: Any) -> Any:
    """A table of any make as a pandas one whose names are texts; a file, a matrix or a row unchanged."""
    if isinstance(source, str | os.PathLike):
        return source
    table = as_pandas(source)
    if hasattr(table, "collect_schema") or (hasattr(table, "columns") and not hasattr(table, "iloc")):
        raise BadInput(
            f"a table is a file or a DataFrame of pandas, Polars or Arrow, not {type(table).__name__}: collect it first"
        )
    if not hasattr(table, "columns"):
        return table
    if getattr(table.columns, "nlevels", 1) > 1:
        raise BadInput("the table: its columns have names of several levels, give each one name")
    return table if all(isinstance(name, str) for name in table.columns) else table.rename(columns=str)
