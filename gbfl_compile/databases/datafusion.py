"""DataFusion in this process. It has no server to connect to: a user's own is a SessionContext."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from gbfl_compile.databases.base import (
    Database,
    Missing,
    Naming,
    Replacement,
    arrow_table,
    engine_errors,
    library,
    quote_columns,
    quote_name,
    row_tuples,
)

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Matrix

NAMING = Naming("DataFusion", "double", case_blind=False)

BY_COPYING = Replacement(("CREATE OR REPLACE TABLE {old} AS SELECT * FROM {fresh}", "DROP TABLE {fresh}"))
"""It cannot rename."""


def scratch() -> Database:
    """A private session."""
    datafusion = library("datafusion", "engines")
    one_partition = datafusion.SessionConfig().with_target_partitions(1)  # several return their rows in any order
    return replace(over(datafusion.SessionContext(one_partition)), keeps_order=True)


def over(session: Any) -> Database:
    """A database over a SessionContext. Inserted tables live in its memory."""
    version = _version(session)

    def execute(statement: str) -> None:
        with engine_errors(version):
            session.sql(statement).collect()

    def fetch(query: str) -> list[tuple[Any, ...]]:
        pa = library("pyarrow", "engines")
        with engine_errors(version):
            frame = session.sql(query)
            batches = frame.collect()  # their schema may differ from the frame's in nullability
            return row_tuples(pa.Table.from_batches(batches, schema=None if batches else frame.schema()))

    def insert(table: str, columns: Sequence[str], rows: Matrix, *, missing: Missing = "null") -> None:
        quote_columns(NAMING, columns)  # refuses what cannot be a name
        name = quote_name(NAMING, table)
        content = arrow_table(columns, rows, missing)
        with engine_errors(version):
            session.sql(f"DROP TABLE IF EXISTS {name}").collect()
            batches = content.to_batches(max_chunksize=65_536) or _no_rows(content.schema)
            session.register_record_batches(name, [batches])

    def close() -> None:
        """There is nothing to close but the session itself."""

    return Database(
        "datafusion",
        version,
        execute,
        fetch,
        insert,
        close,
        partial(quote_name, NAMING),
        replacements=(BY_COPYING,),
    )


def _version(session: Any) -> str:
    """The engine's own number: the Python package has another one."""
    text = session.sql("SELECT version()").collect()[0][0][0].as_py()  # Apache DataFusion 55.2.0, x86_64 on …
    return str(text).removeprefix("Apache ").partition(",")[0]


def _no_rows(schema: Any) -> list[Any]:
    return [library("pyarrow", "engines").RecordBatch.from_pylist([], schema=schema)]
