"""The copies of all tables that a view reads, and how what its filters and joins ask for is filled in."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, TypeAlias

from gbfl_compile.auditing.view.computed import FillIn
from gbfl_compile.auditing.view.layers import filter_columns, key_columns, values_in_filters
from gbfl_compile.auditing.view.places import Place, Places
from gbfl_compile.auditing.view.table_copy import COPY, STAGED, TableCopy
from gbfl_compile.auditing.view.view import View
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.databases.views import Layers
from gbfl_compile.ir.nodes import Program

Way: TypeAlias = Literal["as the filters say", "filters first", "as in the tables", "one table"]
"""What columns get that filters ask for: what they are compared with, NULL or the row's number elsewhere; the same, and
elsewhere a value of their table; a value of their table in any case; or as the second, and tables without features are
left empty, as a list of exceptions mostly is."""

WAYS: tuple[Way, ...] = ("as the filters say", "filters first", "as in the tables", "one table")


def copies_of(
    program: Program,
    view: View,
    layers: Layers,
    places: Places,
    constants: Collection[str],
    filling: FillIn | None,
    way: Way = "as the filters say",
) -> list[TableCopy]:
    """A copy of every table but those that were read as the constants they hold."""
    queries = [view.require_query(), *layers.views.values()]
    by_filters = way in ("as the filters say", "filters first", "one table")
    fillers = dict(values_in_filters(queries)) if by_filters else {}
    keys = frozenset(key_columns(queries))
    own_values = frozenset(filter_columns(queries)) - keys if way != "as the filters say" else frozenset()
    copies: list[TableCopy] = []
    for number, base in enumerate(layers.distinct_bases()):
        if base.key in constants:
            continue
        beside = [Place(*each) for each in filling.columns] if filling is not None else []
        own = tuple(
            place.column if place is not None and place.base.key == base.key else None
            for place in (*places.columns, *beside)
        )
        features = {column.name.casefold() for column in own if column is not None}
        named = tuple(name for name, each in layers.bases.items() if each.name == base.name)
        copies.append(
            TableCopy(
                view.database,
                view.catalog,
                base.name,
                base.columns,
                own,
                program,
                COPY if not copies else f"{COPY}_{number}",
                STAGED if not copies else f"{STAGED}_{number}",
                {name: value for name, value in fillers.items() if name not in features},
                keys,
                named,
                tuple(each for each in places.computed if each.base.key == base.key),
                own_values,
                way == "one table" and not features,
            )
        )
    if not copies:
        raise Unread("it reads no table that could be copied")
    return copies
