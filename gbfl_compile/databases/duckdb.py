"""DuckDB in this process. Rows go in as numpy columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gbfl_compile.databases.base import ROW, Database, Missing, library, told
from gbfl_compile.databases.names import Naming, quoted, quoted_columns

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Matrix

NAMING = Naming("DuckDB", "double")


def scratch() -> Database:
    """A database in memory."""
    return over(library("duckdb", "sql").connect(":memory:"), temporary=False)


def over(connection: Any, temporary: bool = True) -> Database:
    """A database over an open connection."""
    version = f"DuckDB {library('duckdb', 'sql').__version__}"
    kind, place = ("TEMP ", "temp.main.") if temporary else ("", "")

    def execute(statement: str) -> None:
        with told(version):
            connection.execute(statement)

    def fetch(query: str) -> list[tuple[Any, ...]]:
        with told(version):
            return list(connection.execute(query).fetchall())

    def insert(table: str, columns: Sequence[str], rows: Matrix, *, missing: Missing = "null") -> None:
        first, *names = quoted_columns(NAMING, columns)
        name = quoted(NAMING, table)
        # DuckDB takes every NaN of a numpy column for NULL: where NaN is wanted it is put back by name.
        wanted = "coalesce(\"{}\", CAST('NaN' AS DOUBLE))" if missing == "nan" else '"{}"'
        chosen = ", ".join([f"{ROW} AS {first}", *(f"{wanted.format(f'c{i}')} AS {c}" for i, c in enumerate(names))])
        source = _numpy_columns(rows)
        with told(version):
            connection.register("gbfl_source", source)
            connection.execute(f"DROP TABLE IF EXISTS {place}{name}")
            connection.execute(f"CREATE {kind}TABLE {name} AS SELECT {chosen} FROM gbfl_source")  # noqa: S608
            connection.unregister("gbfl_source")

    def quote(name: str) -> str:
        return quoted(NAMING, name)

    return Database("duckdb", version, execute, fetch, insert, connection.close, quote)


def _numpy_columns(rows: Matrix) -> dict[str, Any]:
    import numpy as np

    columns = {f"c{i}": np.ascontiguousarray(rows[:, i]) for i in range(rows.shape[1])}
    return {ROW: np.arange(len(rows), dtype=np.int64), **columns}
