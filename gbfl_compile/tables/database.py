"""A table of a user's database as a DataFrame: every column, every row, names quoted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gbfl_compile.errors import BadInput

if TYPE_CHECKING:
    from gbfl_compile.databases.base import Database


def read_database_table(url: str, table: str) -> Any:
    """All of a table, or of a view. `schema.table` names one in a schema."""
    import pandas as pd

    from gbfl_compile.databases import connect

    database = connect(url)
    try:
        columns = _columns(database, table)
        chosen = ", ".join(database.quote(name) for name in columns)
        place = ".".join(database.quote(part) for part in _parts(table))
        rows = database.fetch(f"SELECT {chosen} FROM {place}")  # noqa: S608 - every name in it is quoted
    finally:
        database.close()
    return pd.DataFrame.from_records(rows, columns=columns)


def _parts(table: str) -> list[str]:
    parts = table.split(".")
    if not all(parts):
        raise BadInput(f"--table {table}: write it as table, or schema.table")
    return parts


def _columns(database: Database, table: str) -> list[str]:
    """The columns' names in order, as the engine's own catalogue has them."""
    schema, name = ([None, *_parts(table)])[-2:]
    if database.dialect == "sqlite":
        query = f"SELECT name FROM pragma_table_info({_text(database, name)})"  # noqa: S608 - quoted
    else:
        where = f"table_name = {_text(database, name)}"
        if schema is not None:
            where += f" AND table_schema = {_text(database, schema)}"
        query = (
            "SELECT column_name, table_schema FROM information_schema.columns "  # noqa: S608 - quoted
            f"WHERE {where} ORDER BY table_schema, ordinal_position"
        )
    columns = database.fetch(query)
    if not columns:
        raise BadInput(f"the database has no table {table!r}, or lets you see no column of it")
    if len({row[1:] for row in columns}) > 1:
        raise BadInput(f"there is a table {table!r} in several schemas: write schema.table")
    return [str(row[0]) for row in columns]


def _text(database: Database, text: str | None) -> str:
    """A string literal. What would need an escape in any dialect is refused: no table is called that."""
    if text is None or any(letter in text for letter in "'\\\0") or not text.isprintable():
        raise BadInput(f"a table called {text!r} cannot be looked up in {database.version}: rename it, or make a view")
    return f"'{text}'"
