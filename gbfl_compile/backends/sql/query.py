"""A query as stages: each is a SELECT from the one before, and the last one selects the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gbfl_compile.backends.sql.dialect import Dialect
from gbfl_compile.backends.sql.text import identifier


@dataclass(frozen=True, slots=True)
class Item:
    """A column of a SELECT: its name and its expression, line by line."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """One SELECT. It passes on the named columns of the stage before and adds its items."""

    name: str
    items: tuple[Item, ...]
    carried: tuple[str, ...] = ()
    fenced: bool = False
    """Whether the engine must be kept from copying the items to where they are used."""


def item(name: str, *lines: str) -> Item:
    """A column."""
    return Item(name, lines)


def item_lines(dialect: Dialect, column: Item) -> list[str]:
    """The lines of a column with its name at the end."""
    *first, last = column.lines
    return [*first, f"{last} AS {identifier(dialect, column.name)}"]


def select_lines(dialect: Dialect, stage: Stage, keys: Sequence[str], source: str) -> list[str]:
    """`SELECT … FROM source`, with the engine's fence where the stage needs it."""
    passed_on = [[identifier(dialect, name)] for name in (*keys, *stage.carried)]
    items = [item_lines(dialect, column) for column in stage.items]
    if stage.fenced and dialect.lateral:
        names = [[identifier(dialect, column.name)] for column in stage.items]
        inner = ["SELECT", *_indent(with_commas(items)), dialect.fence]
        return [
            "SELECT",
            *_indent(with_commas([*passed_on, *names])),
            f"FROM {source}",
            "CROSS JOIN LATERAL (",
            *_indent(inner),
            ") AS gbfl_once",
        ]
    fence = [dialect.fence] if stage.fenced and dialect.fence else []
    return ["SELECT", *_indent(with_commas([*passed_on, *items])), f"FROM {source}", *fence]


def query_lines(dialect: Dialect, stages: Sequence[Stage], keys: Sequence[str], table: str) -> list[str]:
    """The whole query: all stages but the last as WITH, in the order they are computed."""
    lines: list[str] = []
    source = table
    for number, stage in enumerate(stages[:-1]):
        opening = "WITH " if number == 0 else ""
        closing = "" if number == len(stages) - 2 else ","
        lines += [f"{opening}{stage.name} AS (", *_indent(select_lines(dialect, stage, keys, source)), f"){closing}"]
        source = stage.name
    return lines + select_lines(dialect, stages[-1], keys, source)


def with_commas(columns: Sequence[list[str]]) -> list[str]:
    """The lines of several columns, a comma after each but the last."""
    lines = []
    for number, column in enumerate(columns):
        last = number == len(columns) - 1
        lines += [*column[:-1], column[-1] if last else f"{column[-1]},"]
    return lines


def _indent(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]
