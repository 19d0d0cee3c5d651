"""Relations: what a FROM can name, and what joins and filters make of it.

A relation gives rows for one row of features. Each `Branch` is one such row: when it comes out, and what its columns
are. A table is one branch that always holds; three rows of constants are three; UNION ALL puts branches side by side,
WHERE narrows when they hold. What drops, doubles or merges rows is kept in words (`notes`), for the verdict to state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, assert_never

from gbfl_compile.checking.general.sql.logic import (
    FALSE,
    TRUE,
    Among,
    Both,
    Either,
    Formula,
    Points,
    Sign,
    both,
    either,
    sign,
)
from gbfl_compile.checking.general.sql.values import Column, Constant, Other, Value, Word
from gbfl_compile.checking.reading.conditions import ON_NUMBERS, Comparison
from gbfl_compile.checking.reading.nodes import Unread, pay
from gbfl_compile.ir.intervals import above, below

MOST_BRANCHES = 500
MOST_CELLS = 50_000

Columns: TypeAlias = Mapping[str, Value | Unread]
"""Columns by their folded names: what each one is or, of one that is harmless and not understood, why not."""


@dataclass(frozen=True, slots=True)
class KnownTable:
    """A database's facts about a table or view."""

    key: str
    """The same for every way to name it."""
    columns: tuple[str, ...] | None = None
    """None where they are not known."""
    features: Mapping[str, int] | None = None
    """Column -> feature."""
    rows: tuple[tuple[Any, ...], ...] | None = None
    """What a small table without features holds now; Unread for what is not read of it."""
    query: str | None = None
    """The text of a view."""
    names: tuple[str, ...] = ()
    """The view's own names for its columns, where it lists them outside its query."""
    is_key: Callable[[str], bool] = lambda column: False
    """Whether a column is different in every row that the table holds now."""


Tables: TypeAlias = Callable[[str, str], KnownTable]
"""A database, or what takes its place: what a table means to it, by its schema (empty where there is none) and name."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One row that comes out: when, and what its columns are."""

    holds: Formula
    columns: Columns


@dataclass(frozen=True, slots=True)
class Relation:
    """Something to select from."""

    branches: tuple[Branch, ...]
    rest: Callable[[str], Value] | None = None
    """What a column is that is not listed, for a table whose columns are not all known."""
    tables: frozenset[str] = frozenset()
    """The tables that its rows come from."""
    notes: tuple[str, ...] = ()
    """What drops, doubles or merges rows, as the text has it."""
    unclear: bool = False
    """Whether a filter that is not understood may depend on features."""
    spelled: str = ""
    """The name of a stage as it is written."""
    loose: bool = False
    """Whether rows may be left out, doubled or merged in a way that the branches do not say."""

    def names(self) -> tuple[str, ...]:
        """The columns that are listed, in their order."""
        return tuple(self.branches[0].columns) if self.branches else ()

    def rename(self, names: Sequence[str]) -> Relation:
        """The same columns under other names."""
        if not names:
            return self
        if self.rest is not None or len(names) != len(self.names()) or len(set(names)) != len(names):
            raise Unread("does not have one name per column")
        branches = (
            replace(each, columns=dict(zip(names, each.columns.values(), strict=True))) for each in self.branches
        )
        return replace(self, branches=tuple(branches))

    def holds(self) -> Formula:
        """When any row comes out."""
        return either(branch.holds for branch in self.branches)

    def or_null(self) -> Relation:
        """The relation on the side of a join that may find no row: every column may be NULL."""
        branches = (
            replace(each, columns={name: _or_null(name, value) for name, value in each.columns.items()})
            for each in self.branches
        )
        return replace(self, branches=tuple(branches))

    def without_features(self) -> Relation:
        """The relation where its rows need not be those that the features are taken from."""
        words = "it comes from another row of the same table"
        branches = (
            replace(
                each,
                columns={name: _of_another_row(name, value, words) for name, value in each.columns.items()},
            )
            for each in self.branches
        )
        return replace(self, branches=tuple(branches), rest=None)


def _of_another_row(name: str, value: Value | Unread, words: str) -> Value | Unread:
    match value:
        case Other(own):
            return Other(f"{own} of another row")
        case Constant() | Unread():
            return value
        case _:
            return Unread(f"{name}: {words}")


def _or_null(name: str, value: Value | Unread) -> Value | Unread:
    match value:
        case Column(feature):
            return Column(feature, outer=True)
        case Word():
            return replace(value, outer=True)
        case Other() | Unread() | Constant(None):
            return value
        case _:
            return Unread(f"{name} is NULL where the join finds no row")


def side_by_side(left: Relation, right: Relation) -> Relation:
    """UNION ALL: the columns of the right under the names of the left."""
    if left.rest is not None or right.rest is not None:
        raise Unread("a UNION of tables whose columns are not known")
    if not left.branches or not right.branches:
        return left if left.branches else right
    named = right.rename(left.names())
    return Relation(
        (*left.branches, *named.branches),
        None,
        left.tables | right.tables,
        tuple(dict.fromkeys((*left.notes, *right.notes))),
        left.unclear or right.unclear,
        loose=left.loose or right.loose,
    )


def constant_rows(names: Sequence[str], rows: Sequence[Sequence[Value | Unread]]) -> Relation:
    """Rows of constants."""
    if len(rows) > MOST_BRANCHES:
        raise Unread(f"more than {MOST_BRANCHES} rows of constants")
    return Relation(tuple(Branch(TRUE, dict(zip(names, row, strict=True))) for row in rows))


def are_apart(branches: Sequence[Branch]) -> bool:
    """Whether no two of the branches hold for the same row."""
    for place, first in enumerate(branches):
        for second in branches[place + 1 :]:
            if can_hold(both((first.holds, second.holds))):
                return False
    return True


def can_hold(formula: Formula) -> bool:
    """Whether some row satisfies a formula; assumed where there are too many to try."""
    tried = 0
    waiting = [formula]
    while waiting:
        tried += 1
        part = waiting.pop()
        if part is FALSE:
            continue
        atom = _first_atom(part)
        if atom is None or tried > MOST_CELLS:
            return True
        atoms = [each for each in _atoms(part) if each.feature == atom.feature]
        kinds = {tuple(_among(each, value) for each in atoms): value for value in _values(atoms)}
        waiting += (_with_value(part, atom.feature, value) for value in kinds.values())
    return False


def _first_atom(formula: Formula) -> Among | None:
    return next(_atoms(formula), None)


def _atoms(formula: Formula) -> Iterator[Among]:
    waiting = [formula]
    while waiting:
        pay(1)
        match waiting.pop():
            case Among() as part:
                yield part
            case Both(parts) | Either(parts):
                waiting += parts
            case Sign(points):
                waiting += (formula for formula, _ in points.terms)


def _values(parts: Sequence[Among]) -> Iterator[float | str]:
    """One value from each group that the parts distinguish."""
    edges = {edge for part in parts for piece in part.numbers for edge in piece} | {0.0}
    yield from sorted({near for edge in edges for near in (below(edge), edge, above(edge)) if not math.isnan(near)})
    yield from ("null", "nan", "low")


def _among(atom: Among, value: float | str) -> bool:
    if isinstance(value, str):
        return {"null": atom.null, "nan": atom.nan, "low": atom.low}[value]
    return any(least <= value <= most for least, most in atom.numbers)


def _with_value(formula: Formula, feature: int, value: float | str) -> Formula:
    """A formula simplified for one value of a feature."""
    pay(1)
    match formula:
        case Among():
            return formula if formula.feature != feature else TRUE if _among(formula, value) else FALSE
        case Both(parts):
            return both(_with_value(part, feature, value) for part in parts)
        case Either(parts):
            return either(_with_value(part, feature, value) for part in parts)
        case Sign(points, comparison):
            return _compare_rest(
                points.bias, [(_with_value(each, feature, value), worth) for each, worth in points.terms], comparison
            )
        case _:
            assert_never(formula)


def _compare_rest(bias: int, terms: Sequence[tuple[Formula, int]], comparison: Comparison) -> Formula:
    """A comparison of points of which some are decided."""
    bias += sum(worth for formula, worth in terms if formula is TRUE)
    left: dict[Formula, int] = {}
    for formula, worth in terms:
        if formula is not TRUE and formula is not FALSE:
            left[formula] = left.get(formula, 0) + worth
    kept = sorted(((formula, worth) for formula, worth in left.items() if worth), key=lambda term: term[0].order)
    if not kept:
        return TRUE if ON_NUMBERS[comparison](bias, 0) else FALSE
    return sign(Points(bias, tuple(kept)), comparison)
