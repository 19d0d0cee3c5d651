"""A scored table that stands in a database, page by page: read only, and never all of it at once.

PostgreSQL reads through a cursor, so that all pages are of one moment. Elsewhere a page is asked for by the order of
all columns read, which tells any two rows apart that could be told apart; a table that fits into one page is not
ordered. Nothing holds the table still in the meantime: rows are counted before and after, and a change is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gbfl_compile.audit.labels import Found
from gbfl_compile.audit.scored_batches import Batch, Wanted
from gbfl_compile.databases.base import Database
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.table_batches import rows_at_once
from gbfl_compile.tables import MOST_NAMED

PAGE_ROWS = 100_000
CURSOR = "gbfl_audit_rows"

DOUBLES = {"postgres": "CAST({} AS DOUBLE PRECISION)", "mariadb": "CAST({} AS DOUBLE)"}
"""Where the client is given a float32 in fewer digits than it has; the cast is exact."""

PAGES = {
    "tsql": "OFFSET {skip} ROWS FETCH NEXT {rows} ROWS ONLY",
    "oracle": "OFFSET {skip} ROWS FETCH NEXT {rows} ROWS ONLY",
}
"""Of engines without LIMIT. None of the two was ever run here."""


def database_batches(database: Database, table: str, schema: str, wanted: Wanted) -> Iterator[Batch]:
    """The rows of a table or view."""
    name, chosen, query = _query(database, table, schema, wanted)
    _refuse_unreadable(database, query, table, wanted)
    size = rows_at_once(PAGE_ROWS, len(chosen))
    by_cursor = database.dialect == "postgres"
    first = 0
    for rows in _cursor_pages(database, query, size) if by_cursor else _pages(database, query, chosen, name, size):
        yield _batch(rows, first, wanted, table)
        first += len(rows)


def can_be_read(database: Database, table: str, schema: str, wanted: Wanted) -> bool:
    """Whether the table has all these columns."""
    try:
        _refuse_unreadable(database, _query(database, table, schema, wanted)[2], table, wanted)
    except BadInput:
        return False
    return True


def _query(database: Database, table: str, schema: str, wanted: Wanted) -> tuple[str, list[str], str]:
    """The table's name, the columns read and the query for them."""
    name = f"{database.quote(schema)}.{database.quote(table)}" if schema else database.quote(table)
    exact = DOUBLES.get(database.dialect, "{}")
    chosen = [exact.format(database.quote(column)) for column in wanted.columns] + [database.quote(wanted.label)]
    return name, chosen, f"SELECT {', '.join(chosen)} FROM {name}"  # noqa: S608 - quoted


def _refuse_unreadable(database: Database, query: str, table: str, wanted: Wanted) -> None:
    try:
        database.fetch(f"{query} WHERE 1 = 0")
    except CannotRun as error:
        if "the connection was lost" in str(error):
            raise
        names = ", ".join(repr(name) for name in wanted.distinct[:MOST_NAMED])
        more = ", …" if len(wanted.distinct) > MOST_NAMED else ""
        raise BadInput(
            f"the scored table {table!r} cannot be read, its columns should be {names}{more}: {error}; "
            "say which column holds a feature with --column FEATURE=COLUMN, the labels with --label COLUMN"
        ) from None


def _cursor_pages(database: Database, query: str, size: int) -> Iterator[list[tuple[Any, ...]]]:
    """WITH HOLD needs no transaction of ours: the user's, if there is one, stays as it is."""
    database.execute(f"DECLARE {CURSOR} NO SCROLL CURSOR WITH HOLD FOR {query}")
    try:
        while rows := database.fetch(f"FETCH {size} FROM {CURSOR}"):
            yield rows
    finally:
        database.execute(f"CLOSE {CURSOR}")


def _pages(database: Database, query: str, chosen: list[str], name: str, size: int) -> Iterator[list[tuple[Any, ...]]]:
    counted = f"SELECT COUNT(*) FROM {name}"  # noqa: S608 - quoted
    ((before,),) = database.fetch(counted)
    if before <= size:
        yield from filter(None, [database.fetch(query)])
        return
    order = [str(number + 1) for number in range(len(chosen))]
    if database.dialect == "mariadb":
        order.append(f"BINARY {chosen[-1]}")  # to its collations 'a' and 'A' are one
    page = PAGES.get(database.dialect, "LIMIT {rows} OFFSET {skip}")
    skip = 0
    while rows := database.fetch(f"{query} ORDER BY {', '.join(order)} {page.format(rows=size, skip=skip)}"):
        yield rows
        skip += len(rows)
    ((after,),) = database.fetch(counted)
    if not before == after == skip:
        raise CannotRun(f"{name}: had {before:,} rows, then {after:,}: audit it while nothing writes to it")


def _batch(rows: list[tuple[Any, ...]], first: int, wanted: Wanted, table: str) -> Batch:
    import pandas as pd

    *values, labels = zip(*rows, strict=True)
    columns = {
        feature: _numbers(column, f"{table}: column {name!r}")
        for feature, name, column in zip(wanted.features, wanted.columns, values, strict=True)
    }
    return Batch(first, len(rows), pd.DataFrame(columns, index=range(len(rows)), copy=False), _coded(labels))


def _numbers(column: tuple[Any, ...], where: str) -> Any:
    """A column as doubles; NULL and NaN are missing. Text is refused even where it looks like a number."""
    import numpy as np

    if any(issubclass(kind, str | bytes) for kind in set(map(type, column))):
        text = next(value for value in column if isinstance(value, str | bytes))
        raise BadInput(f"{where}: {text!r} is not a number")
    try:
        return np.array(column, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadInput(f"{where}: is not a column of numbers: {error}") from None


def _coded(labels: tuple[Any, ...]) -> Found:
    """1, True and '1' keep codes of their own."""
    import numpy as np

    if any(kind.__hash__ is None for kind in set(map(type, labels))):  # an array is no label of any program
        labels = tuple(map(repr, labels))
    numbers: dict[tuple[type, Any], int] = {}
    codes = np.fromiter((numbers.setdefault((type(v), v), len(numbers)) for v in labels), np.int64, len(labels))
    return Found(codes, tuple(value for _, value in numbers))
