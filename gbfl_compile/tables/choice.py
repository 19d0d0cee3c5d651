"""Which columns of a table are mined, as what kinds, and what is done about missing values."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.nodes import Kind
from gbfl_compile.tables.kinds import MOST_TEXTS, ColumnFacts, too_many_texts
from gbfl_compile.tables.read import feature_names, refuse_absent

Missing: TypeAlias = Literal["keep", "drop", "refuse"]

MANY_ROWS = 100
"""With fewer, values that are all different are no sign of a key."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which columns of a table are used, as what, and what means a missing value."""

    target: str
    drop: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    """These and no others, where there are any."""
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    na: tuple[str, ...] | None = None
    missing: Missing = "keep"

    def names(self, there: Sequence[str], where: str) -> tuple[str, ...]:
        """The features among the columns of a table."""
        if self.features:
            refuse_absent(there, (self.target, *self.features), where)
            if self.target in self.features or set(self.features) & set(self.drop):
                raise BadInput(f"{where}: --features names the target, or a column of --drop")
            return self.features
        return feature_names(there, self.target, self.drop, where)

    def is_asked_for(self, name: str) -> bool:
        """Whether the column is named as a feature."""
        return name in self.features or name in self.kinds


def used_columns(
    x: Matrix, facts: Sequence[ColumnFacts], choice: Choice, of: int, where: str
) -> tuple[list[int], tuple[str, ...], tuple[str, ...]]:
    """The places of the columns to learn from, a note about each of the others, and which of those are keys."""
    kept, notes, keys = [], [], []
    for place, fact in enumerate(facts):
        many = len(fact.texts) > MOST_TEXTS
        if many and choice.is_asked_for(fact.name):
            raise BadInput(f"{where}: {too_many_texts(fact.name, len(fact.texts))}")
        if choice.is_asked_for(fact.name):
            kept.append(place)
        elif fact.missing == len(x):
            notes.append(f"column {fact.name!r} holds nothing and is left out")
        elif fact.kind == "category" and len(fact.texts) == len(x) - fact.missing >= MANY_ROWS:
            keys += [] if fact.missing else [fact.name]
            notes.append(
                f"column {fact.name!r} has another text in every row: it is a key and left out; "
                f"--kind {shlex.quote(fact.name)}=category takes it"
            )
        elif many:
            notes.append(
                f"column {fact.name!r} has {len(fact.texts):,} different texts, {MOST_TEXTS:,} at most, and is left "
                "out; put one text in place of all that are rare to learn from it"
            )
        elif fact.kind == "number" and is_number_key(x[:, place], of):
            keys.append(fact.name)
            notes.append(
                f"column {fact.name!r} has another number in every row: it is a key and left out; "
                f"--kind {shlex.quote(fact.name)}=number takes it"
            )
        else:
            kept.append(place)
    return kept, tuple(notes), tuple(keys)


def is_number_key(values: Matrix, of: int) -> bool:
    """Whether a column numbers the `of` rows of a table: whole numbers, all different, with few gaps between them."""
    if len(values) < MANY_ROWS or np.isnan(values).any() or (values != np.rint(values)).any():
        return False
    return len(np.unique(values)) == len(values) and float(values.max() - values.min()) < 3 * of
