"""Views as MariaDB's information_schema prints them: every column qualified, quotes in strings after a backslash."""

from __future__ import annotations

from dataclasses import replace

from gbfl_compile.checking.strict.sql.cursor import Catalog, Cursor
from gbfl_compile.checking.strict.sql.forms import finish
from gbfl_compile.checking.strict.sql.lexis import LEXIS
from gbfl_compile.checking.strict.sql.stages import Columns, query

LEXIS_OF_VIEWS = replace(
    LEXIS["mariadb"], string_escapes={"\\": "\\", "n": "\n", "r": "\r", "'": "'", "Z": "\x1a"}, doubled_quotes=False
)


def read_view(at: Cursor) -> Columns:
    """The query of a view."""
    return finish(at, query(at), closed=False)


CATALOG = Catalog()
