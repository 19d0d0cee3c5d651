"""Spark: a local session of two threads for scratch work, a user's own SparkSession otherwise."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import functools
import itertools
import logging
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gbfl_compile.databases.arrow import arrow_table, row_tuples
from gbfl_compile.databases.base import Database, Missing, first_line, library, told
from gbfl_compile.databases.names import Naming, quoted, quoted_columns
from gbfl_compile.errors import CannotRun

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Matrix

NAMING = Naming("Spark", "back")

_numbers = itertools.count()

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.log.level": "ERROR",
}


def scratch() -> Database:
    """A session and a database of its own in the one Java machine a process has; it ends with this process."""
    session = local_session().newSession()
    name = f"gbfl_{next(_numbers)}"
    session.sql(f"CREATE DATABASE {name}")
    session.sql(f"USE {name}")
    made = over(session, temporary=False)

    def close() -> None:
        session.sql(f"DROP DATABASE IF EXISTS {name} CASCADE")

    return dataclasses.replace(made, close=close)


@functools.cache
def local_session() -> Any:
    """The local session the scratch ones stand on: two threads, loopback only, no user interface."""
    with quiet():
        sql = library("pyspark.sql", "engines")
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # prints what it raises as well
        folder = Path(tempfile.mkdtemp(prefix="gbfl-spark-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        builder = sql.SparkSession.builder.master("local[2]").appName("gbfl")
        builder = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        for key, value in SETTINGS.items():
            builder = builder.config(key, value)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        try:
            with _errors_to(folder / "log"):
                return builder.getOrCreate()
        except Exception as error:
            raise CannotRun(f"Spark did not start: {first_line(error)} (it needs Java 17 or newer)") from None


@contextlib.contextmanager
def _errors_to(path: Path) -> Iterator[None]:
    """What the Java machine says of itself goes to a file: it takes over our standard error when it starts."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """PySpark warns of the versions of libraries it finds; nobody who runs a query can do anything about it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def over(session: Any, temporary: bool = True) -> Database:
    """A database over a SparkSession. What is inserted is a temporary view of rows held by the driver, or a table."""
    version = f"Spark {session.version}"

    def execute(statement: str) -> None:
        with told(version), quiet():
            session.sql(statement)  # commands run at once, a query would only be planned

    def fetch(query: str) -> list[tuple[Any, ...]]:
        with told(version), quiet():
            return row_tuples(session.sql(query).toArrow())

    def insert(table: str, columns: Sequence[str], rows: Matrix, *, missing: Missing = "null") -> None:
        quoted_columns(NAMING, columns)  # refuses what cannot be a name
        made = arrow_table(columns, rows, missing)
        with told(version), quiet():
            frame = session.createDataFrame(made)
            if temporary or not table.isidentifier():  # a table's name is a folder's too: not every name will do
                frame.createOrReplaceTempView(quoted(NAMING, table))
            else:  # a view that lasts cannot stand on a temporary one
                frame.write.mode("overwrite").saveAsTable(quoted(NAMING, table))

    def close() -> None:
        """The session is its owner's."""

    def quote(name: str) -> str:
        return quoted(NAMING, name)

    return Database("spark", version, execute, fetch, insert, close, quote)
