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

from gbfl_compile.databases.base import (
    WITHIN_SCHEMA,
    Database,
    Missing,
    Naming,
    arrow_table,
    engine_errors,
    first_line,
    library,
    quote_columns,
    quote_name,
    row_tuples,
)
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
    """A private session and database in the one Java machine of this process."""
    session = local_session().newSession()
    name = f"gbfl_{next(_numbers)}"
    session.sql(f"CREATE DATABASE {name}")
    session.sql(f"USE {name}")
    database = over(session, temporary=False)

    def close() -> None:
        session.sql(f"DROP DATABASE IF EXISTS {name} CASCADE")

    return dataclasses.replace(database, close=close)


@functools.cache
def local_session() -> Any:
    """The local session that scratch ones are derived from: two threads, loopback only, no user interface."""
    with quiet():
        sql = library("pyspark.sql", "engines")
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # it also prints what it raises
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
    """Send the Java machine's start-up messages to a file: it inherits our standard error."""
    sys.stderr.flush()
    stderr = os.dup(2)
    try:
        with path.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence PySpark's warnings about library versions: a user who runs a query can do nothing about them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def over(session: Any, temporary: bool = True) -> Database:
    """A database over a SparkSession. What is inserted is a temporary view of rows held by the driver, or a table."""
    version = f"Spark {session.version}"

    def execute(statement: str) -> None:
        with engine_errors(version), quiet():
            session.sql(statement)  # commands run at once, a query would only be planned

    def fetch(query: str) -> list[tuple[Any, ...]]:
        with engine_errors(version), quiet():
            return row_tuples(session.sql(query).toArrow())

    def insert(table: str, columns: Sequence[str], rows: Matrix, *, missing: Missing = "null") -> None:
        quote_columns(NAMING, columns)  # refuses what cannot be a name
        content = arrow_table(columns, rows, missing)
        with engine_errors(version), quiet():
            frame = session.createDataFrame(content).coalesce(1)  # several files would be read in any order
            if temporary or not table.isidentifier():  # a table's name is also a folder's: not every name works
                frame.createOrReplaceTempView(quote_name(NAMING, table))
            else:  # a permanent view cannot read a temporary one
                frame.write.mode("overwrite").saveAsTable(quote_name(NAMING, table))

    def close() -> None:
        """The session belongs to its owner."""

    return Database(
        "spark",
        version,
        execute,
        fetch,
        insert,
        close,
        functools.partial(quote_name, NAMING),
        keeps_order=not temporary,  # a table of one partition, on this machine
        drop_inserted="DROP VIEW IF EXISTS {}",
        replacements=(WITHIN_SCHEMA,),
    )
