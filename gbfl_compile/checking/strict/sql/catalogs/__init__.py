"""The views of each engine, as its catalog prints them: which lexis, which productions, which frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql.catalogs import clickhouse, duckdb, mariadb, postgres
from gbfl_compile.checking.strict.sql.cursor import Catalog, Cursor
from gbfl_compile.checking.strict.sql.forms import artifact
from gbfl_compile.checking.strict.sql.lexis import LEXIS, Lexis, lexis_of
from gbfl_compile.checking.strict.sql.stages import Columns

Reader: TypeAlias = tuple[Lexis, Catalog, Callable[[Cursor], Columns]]

CATALOGS: Mapping[str, Reader] = {
    "sqlite": (LEXIS["sqlite"], Catalog(), artifact),  # keeps the text of CREATE VIEW as it was written
    **{
        each.LEXIS_OF_VIEWS.name: (each.LEXIS_OF_VIEWS, each.CATALOG, each.read_view)
        for each in (duckdb, postgres, mariadb, clickhouse)
    },
}


def catalog_of(dialect: str) -> Reader:
    """How the views of an engine are read back, or Unread where it keeps none."""
    lexis = lexis_of(dialect)
    if dialect not in CATALOGS:
        raise Unread(f"{lexis.engine} keeps no text of its views that is read here")
    return CATALOGS[dialect]
