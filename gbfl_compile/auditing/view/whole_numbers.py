"""Differences of a SQLite view that only fractions in INTEGER columns show.

SQLite lets such a column hold 65.2, and so `age <= 65` is not `age < 65.5` there. Where no row of the tables has a
fraction, though, whoever declared them INTEGER takes the two for the same: that is neither equal nor different. Any
other difference of such a view is shown by whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gbfl_compile.auditing.verdict import DeployedVerdict
from gbfl_compile.checking.artifact import ArtifactProof
from gbfl_compile.databases.base import Database
from gbfl_compile.databases.catalog import Column, TableName, integers
from gbfl_compile.databases.views import CatalogView

REASON = (
    "it differs only on fractions: SQLite lets INTEGER columns hold them, and no row of its tables has one. "
    "Write the approved bounds, or declare the tables STRICT"
)


def without_fractions(found: CatalogView, audit: Callable[[CatalogView], DeployedVerdict]) -> DeployedVerdict:
    """The verdict, or `unread` where the view is equal as soon as its INTEGER columns hold what they are declared."""
    verdict = audit(found)
    if verdict.verdict != "different" or found.database.dialect != "sqlite" or found.layers is None:
        return verdict
    loose = [(base, each) for base in found.layers.distinct_bases() for each in base.columns if _is_loose(each)]
    if not loose or any(_has_fractions(found.database, base.name, each) for base, each in loose):
        return verdict
    bases = {name: replace(base, columns=_whole(base.columns)) for name, base in found.layers.bases.items()}
    layers = replace(found.layers, bases=bases)
    whole = audit(replace(found, layers=layers, table_columns=_whole(found.table_columns)))
    if whole.verdict != "equal":
        return whole if whole.verdict == "different" else verdict
    return replace(whole, verdict="unread", reason=REASON, proof=ArtifactProof("unread", REASON), proof_assumes=None)


def _is_loose(column: Column) -> bool:
    return "INT" in column.declared.upper()


def _whole(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    return tuple(replace(each, type=integers(64)) if _is_loose(each) else each for each in columns)


def _has_fractions(database: Database, table: TableName, column: Column) -> bool:
    """Whether an INTEGER column holds something other than whole numbers now."""
    test = f"typeof({database.quote(column.name)}) NOT IN ('integer', 'null')"
    return bool(database.fetch(f"SELECT 1 FROM {table.in_quotes(database)} WHERE {test} LIMIT 1"))  # noqa: S608 - quoted
