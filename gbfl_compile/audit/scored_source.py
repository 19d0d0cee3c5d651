"""Where a scored table stands, file or database, and its rows in batches: one way to read them all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from gbfl_compile.audit.labels import Held
from gbfl_compile.audit.scored_batches import Batch, Wanted, wanted_columns
from gbfl_compile.audit.scored_database import can_be_read, database_batches
from gbfl_compile.audit.scored_files import file_batches
from gbfl_compile.backends.sql_engines import DIALECTS
from gbfl_compile.databases.base import Database
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Program
from gbfl_compile.table_batches import column_names
from gbfl_compile.tables import file_ending

Source: TypeAlias = Path | tuple[Database, str]
"""A CSV, Parquet or Arrow file, or a database and the name of a table or view in it."""


def source_batches(source: Source, wanted: Wanted, schema: str = "") -> Iterator[Batch]:
    """The rows, a batch at a time."""
    if isinstance(source, Path):
        return file_batches(source, wanted)
    return database_batches(*source, schema, wanted)


def source_name(source: Source, schema: str = "") -> str:
    """What the user called it."""
    if isinstance(source, Path):
        return str(source)
    return f"{schema}.{source[1]}" if schema else source[1]


def labels_held(source: Source) -> Held:
    """How the labels are to be taken there."""
    if isinstance(source, Path):
        return "text" if file_ending(source).startswith(".csv") else "typed"
    dialect = DIALECTS.get(source[0].dialect)
    return "typed" if dialect is None or dialect.booleans else "truth as numbers"


def wanted_of(
    program: Program,
    asked: tuple[str, ...],
    source: Source,
    label_column: str | None,
    columns: Mapping[str, str] | None,
    schema: str = "",
    every_feature: bool = False,
    beside: tuple[str, ...] = (),
) -> Wanted:
    """The columns that the program asks and those `beside`; with `every_feature` also the others that are there."""
    least = _with(wanted_columns(asked, program, label_column, columns), beside)
    if not every_feature:
        return least
    most = _with(wanted_columns(program.features, program, label_column, columns), beside)
    if not isinstance(source, Path):
        return most if can_be_read(*source, schema, most) else least
    there = set(column_names(source))
    pairs = zip(program.features, most.columns, strict=False)
    kept = [feature for feature, column in pairs if feature in asked or column in there]
    return _with(wanted_columns(kept, program, label_column, columns), beside)


def _with(wanted: Wanted, beside: tuple[str, ...]) -> Wanted:
    return replace(wanted, features=(*wanted.features, *beside), columns=(*wanted.columns, *beside))


@contextmanager
def fingerprint_beside(source: Source) -> Iterator[Callable[[], str | None]]:
    """The SHA-256 of a file, worked out on another core while its rows are compared. A database table has none."""
    if not isinstance(source, Path) or not source.is_file():
        yield lambda: None
        return
    before = _state(source)
    with ThreadPoolExecutor(1) as pool:
        hashed = pool.submit(_sha256, source)

        def fingerprint() -> str:
            found = hashed.result()
            if _state(source) != before:
                raise BadInput(f"{source}: was changed while it was audited, audit it again")
            return found

        yield fingerprint


def _state(path: Path) -> tuple[int, ...]:
    known = path.stat()
    return known.st_ino, known.st_size, known.st_mtime_ns


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def told_where(source: Source, error: BadInput) -> BadInput:
    """An error about a column, with the file or table it stands in."""
    where, said = source_name(source), str(error)
    return error if said.startswith(where) else BadInput(f"{where}: {said}")
