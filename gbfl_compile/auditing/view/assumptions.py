"""States what an equal view is equal under: what its columns hold, and what no session sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gbfl_compile.auditing.verdict import DeployedVerdict
from gbfl_compile.auditing.view.places import Places
from gbfl_compile.auditing.view.view import View
from gbfl_compile.checking.general.sql import DeployedText
from gbfl_compile.databases.catalog import Column
from gbfl_compile.ir.kinds import used_features
from gbfl_compile.ir.nodes import Program
from gbfl_compile.ir.text import printable


def with_assumptions(
    program: Program, view: View, places: Places, text: DeployedText, verdict: DeployedVerdict
) -> DeployedVerdict:
    """The verdict with what an equal text is equal under."""
    assumed = []
    if places.computed:
        words = ", ".join(f"{program.features[each.feature]} is {each.text}" for each in places.computed)
        assumed.append(f"that {words}, and that this compares as a double does")
    if text.uses.words and view.database.dialect == "duckdb":
        listed = ", ".join(map(printable, text.uses.words))
        assumed.append(f"that no session sets default_collation, by which {listed} would be compared")
    if text.uses.zoneless:
        listed = ", ".join(map(printable, text.uses.zoneless))
        words = f"that no server and no session has a time zone other than UTC, by which texts beside {listed} would be"
        assumed.append(f"{words} read")
    if text.uses.has_rounded_quotients:
        assumed.append("that no session sets div_precision_increment, by which quotients are rounded")
    assumed += _loose_columns(program, view.database.dialect, places)
    return replace(verdict, proof_assumes="; ".join(assumed)) if assumed and verdict.verdict == "equal" else verdict


def _loose_columns(program: Program, dialect: str, places: Places) -> list[str]:
    """Columns that could hold more than their kind has: 2 is true to `x`, and not equal to 1 in `x = 1`."""
    used = used_features(program)
    named: dict[str, list[str]] = {"boolean": [], "date": [], "timestamp": []}
    for feature, place in enumerate(places.columns):
        kind = program.kind(feature)
        if place is not None and used[feature] and kind in named:
            named[kind].append(printable(place.column.name))
    truths = named["boolean"] if dialect in ("sqlite", "mariadb") else []
    found = [f"that {', '.join(truths)} holds 0, 1 or NULL"] if truths else []
    for kind, form in (("date", "days as texts like 2024-03-01"), ("timestamp", "times like 2024-03-01 09:30:00")):
        if named[kind] and dialect == "sqlite":
            found.append(f"that {', '.join(named[kind])} holds {form}")
    return found


def without_nan_decimals(verdict: DeployedVerdict, view: View, columns: Sequence[Column]) -> DeployedVerdict:
    """PostgreSQL's NUMERIC can hold NaN, which no reading looks at: that it does not is then an assumption."""
    numerics = [column.name for column in columns if column.type.kind == "decimal"]
    if view.database.dialect != "postgres" or not numerics or verdict.verdict != "equal":
        return verdict
    words = f"that {', '.join(map(printable, numerics))} holds no NaN"
    return replace(verdict, proof_assumes="; ".join(filter(None, (verdict.proof_assumes, words))))
