"""DataFusion in this process. It has no server to connect to: a user's own is a SessionContext."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gbfl_compile.databases.arrow import arrow_table, row_tuples
from gbfl_compile.databases.base import Database, Missing, library, told
from gbfl_compile.databases.names import Naming, quoted, quoted_columns

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Matrix

NAMING = Naming("DataFusion", "double", case_blind=False)


def scratch() -> Database:
    """A session of its own."""
    return over(library("datafusion", "engines").SessionContext())


def over(session: Any) -> Database:
    """A database over a SessionContext. Inserted tables live in its memory."""
    version = _version(session)

    def execute(statement: str) -> None:
        with told(version):
            session.sql(statement).collect()

    def fetch(query: str) -> list[tuple[Any, ...]]:
        pa = library("pyarrow", "engines")
        with told(version):
            frame = session.sql(query)
            batches = frame.collect()  # whose schema may differ from the frame's in what can be NULL
            return row_tuples(pa.Table.from_batches(batches, schema=None if batches else frame.schema()))

    def insert(table: str, columns: Sequence[str], rows: Matrix, *, missing: Missing = "null") -> None:
        quoted_columns(NAMING, columns)  # refuses what cannot be a name
        name = quoted(NAMING, table)
        made = arrow_table(columns, rows, missing)
        with told(version):
            session.sql(f"DROP TABLE IF EXISTS {name}").collect()
            session.register_record_batches(name, [made.to_batches(max_chunksize=65_536) or _no_rows(made.schema)])

    def close() -> None:
        """There is nothing to let go of but the session itself."""

    def quote(name: str) -> str:
        return quoted(NAMING, name)

    return Database("datafusion", version, execute, fetch, insert, close, quote)


def _version(session: Any) -> str:
    """The engine's own number: the Python package has another one."""
    told_by_engine = session.sql("SELECT version()").collect()[0][0][0].as_py()  # Apache DataFusion 55.2.0, x86_64 on …
    return str(told_by_engine).removeprefix("Apache ").partition(",")[0]


def _no_rows(schema: Any) -> list[Any]:
    return [library("pyarrow", "engines").RecordBatch.from_pylist([], schema=schema)]
