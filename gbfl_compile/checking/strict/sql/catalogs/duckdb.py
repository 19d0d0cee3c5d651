"""Views as DuckDB's `duckdb_views()` prints them: CREATE VIEW, names without quotes, `!=`, lists as list_value(…)."""

from __future__ import annotations

from dataclasses import replace

from gbfl_compile.checking.strict.sql.cursor import Catalog, Cursor, need_sign
from gbfl_compile.checking.strict.sql.forms import artifact
from gbfl_compile.checking.strict.sql.grammar import list_of, look_up, value
from gbfl_compile.checking.strict.sql.lexis import LEXIS
from gbfl_compile.checking.strict.sql.stages import Columns
from gbfl_compile.checking.strict.sql.values import Value

LEXIS_OF_VIEWS = replace(LEXIS["duckdb"], bare_names=True, signs=("!=",))


def _list(at: Cursor) -> Value:
    need_sign(at, "(")
    return look_up(at, list_of(at, value, ")"))


def read_view(at: Cursor) -> Columns:
    """The view with its CREATE VIEW."""
    return artifact(at)


CATALOG = Catalog(words={"list_value": _list}, folds_names=True)
