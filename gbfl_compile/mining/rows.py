"""The rows a model is mined from: which columns are features, what the classes are, which rows are held out.

What cannot be learned from is refused by name, with the way out; nothing is filled in, coded or guessed.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.mining.draw import Places, draw
from gbfl_compile.tables import MOST_NAMED, feature_matrix, numbers, some_names

TEST_SHARE = 0.25
FEWEST_ROWS = 40
MOST_CLASSES = 100
MANY_ROWS = 100
"""With fewer, numbers that are all different are no sign of a key."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Feature values and classes, one a row."""

    features: tuple[str, ...]
    x: Matrix
    y: NDArray[Any]
    left_out: int = 0
    """Rows of the table that were not taken because a feature of theirs is missing."""


@dataclass(frozen=True, slots=True)
class Split:
    """Rows to learn from and rows to measure on."""

    x: Matrix
    y: NDArray[Any]
    x_test: Matrix
    y_test: NDArray[Any]


def rows_of(
    table: Any,
    target: str,
    drop: tuple[str, ...],
    where: str,
    *,
    drop_missing: bool = False,
    places: Places | None = None,
) -> Rows:
    """All columns but the target and those dropped as features, every row with its class.

    `places` says where the rows stand in a larger table they were drawn from, for errors to name them.
    """
    features = _feature_names(table, target, drop, where)
    places = np.arange(len(table)) if places is None else places
    y = _classes(table[target], target, where, places)
    try:
        x = feature_matrix(table, features, where, places)
    except BadInput as error:
        raise BadInput(f"{error}{_way_out(table, features, where, f'{error}')}") from None
    _refuse_infinite(x, features, where, places)
    missing = np.isnan(x)
    if missing.any() and not drop_missing:
        column = int(missing.any(axis=0).argmax())
        raise BadInput(
            f"{where}: {int(missing.any(axis=1).sum())} of {len(x)} rows have a missing value, the first in column "
            f"{features[column]!r}, row {places[missing[:, column].argmax()] + 1}: leave such rows out with "
            "--missing drop, or the column with --drop"
        )
    whole = ~missing.any(axis=1)
    return _sorted(Rows(features, x[whole], y[whole], int((~whole).sum())))


def _way_out(table: Any, features: tuple[str, ...], where: str, told: str) -> str:
    """What to do about all columns of words at once: to be told of each in its turn would take as many runs."""
    words = [name for name in features if not _is_numbers(table[name], name, where)]
    if len(words) < 2:
        words_only = told.endswith("is not a number")
        return f"{': put numbers in place of its words' if words_only else ''}, or drop the column with --drop"
    drops = " ".join(f"--drop {shlex.quote(name)}" for name in words[:MOST_NAMED])
    return (
        f"; {len(words)} columns are not all numbers, {some_names(words)}: put numbers there, or leave them out with "
        f"{drops}{' …' if len(words) > MOST_NAMED else ''}"
    )


def _is_numbers(column: Any, name: str, where: str) -> bool:
    try:
        numbers(column, name, where)
    except BadInput:
        return False
    return True


def _sorted(rows: Rows) -> Rows:
    """The rows in an order of their own: a table of a database has none, and what is drawn must not depend on it."""
    keys = [np.unique(rows.y, return_inverse=True)[1], *rows.x.T[::-1]]
    order = np.lexsort(keys)
    return Rows(rows.features, rows.x[order], rows.y[order], rows.left_out)


def refuse_nameless(header: Sequence[str], drop: tuple[str, ...], where: str) -> None:
    """Refuse a column of a CSV file without a name, row numbers mostly: a made-up one is in no table to be scored."""
    if "" in header and (made_up := f"Unnamed: {header.index('')}") not in drop:
        raise BadInput(
            f"{where}: column {header.index('') + 1} has no name in the header: name it, or leave it out with --drop "
            f"{shlex.quote(made_up)}"
        )


def _feature_names(table: Any, target: str, drop: tuple[str, ...], where: str) -> tuple[str, ...]:
    if getattr(table.columns, "nlevels", 1) > 1:
        raise BadInput(f"{where}: its columns have names of several levels, give each one name")
    names = [str(name) for name in table.columns]
    for what, wanted in (("--target", (target,)), ("--drop", drop)):
        for name in wanted:
            if name not in names:
                raise BadInput(f"{where}: has no column {name!r} for {what}: there is {some_names(names)}")
    if target in drop:
        raise BadInput(f"{where}: {target!r} is the target and cannot be dropped")
    features = tuple(name for name in names if name != target and name not in drop)
    if not features:
        raise BadInput(f"{where}: no column is left to learn from")
    return features


def _classes(column: Any, target: str, where: str, places: Places) -> NDArray[Any]:
    """The classes as they are written: text, whole numbers or booleans, all of one kind."""
    missing = np.asarray(column.isna())
    if missing.any():
        raise BadInput(
            f"{where}: the target {target!r} is missing in {int(missing.sum())} of {len(missing)} rows, the first is "
            f"row {places[missing.argmax()] + 1}: remove such rows, or write a class there"
        )
    labels = [label.item() if isinstance(label, np.generic) else label for label in column.tolist()]
    kinds = sorted({type(label).__name__ for label in labels})
    if len(kinds) > 1 or not set(kinds) <= {"str", "int", "bool", "float"}:
        raise BadInput(f"{where}: the target {target!r} holds {' and '.join(kinds)}: use text, numbers or booleans")
    if kinds == ["float"] and all(label == int(label) for label in labels if abs(label) < 2**53):
        labels = [int(label) for label in labels]
    counts = dict.fromkeys(labels, 0)
    if any(isinstance(label, float) for label in labels) or len(counts) > MOST_CLASSES:
        raise BadInput(
            f"{where}: the target {target!r} has {len(counts)} different values: it must hold classes, "
            f"at most {MOST_CLASSES} of them, and no fractions"
        )
    if not counts:
        raise BadInput(f"{where}: has columns and no rows")
    if len(counts) < 2:
        raise BadInput(f"{where}: the target {target!r} has only one class: there is nothing to tell apart")
    if odd := next((label for label in counts if isinstance(label, str) and "\0" in label), None):
        raise BadInput(f"{where}: the target {target!r} has a class {odd!r}, which holds a null character")
    return np.array(labels)


def _refuse_infinite(x: Matrix, features: tuple[str, ...], where: str, places: Places) -> None:
    infinite = np.isinf(x)
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        raise BadInput(
            f"{where}: column {features[column]!r}, row {places[row] + 1}: {x[row, column]} cannot be learned from: "
            "put a number there, or drop the column with --drop"
        )


def fewer(rows: Rows, most: int, seed: int) -> Rows:
    """At most `most` of the rows, two of each class among them."""
    if len(rows.x) <= most:
        return rows
    kept = draw((rows.y,), most, seed).places
    return Rows(rows.features, rows.x[kept], rows.y[kept], rows.left_out)


def split_of(rows: Rows, seed: int, where: str) -> Split:
    """Three quarters to learn from, a quarter to measure on, the classes in the same shares on both sides."""
    from sklearn.model_selection import train_test_split

    if len(rows.x) < FEWEST_ROWS:
        raise BadInput(f"{where}: {len(rows.x)} rows are too few to learn from and measure on: {FEWEST_ROWS} at least")
    _check_counts(rows.y, where)
    try:
        x, x_test, y, y_test = train_test_split(
            rows.x, rows.y, test_size=TEST_SHARE, random_state=seed, stratify=rows.y
        )
    except ValueError:
        raise BadInput(f"{where}: {len(rows.x)} rows are too few to hold out some of every class") from None
    return Split(x, y, x_test, y_test)


def _check_counts(y: NDArray[Any], where: str) -> None:
    labels, counts = np.unique(y, return_counts=True)
    if counts.min() < 2:
        rare = labels.tolist()[int(counts.argmin())]
        raise BadInput(f"{where}: the class {rare!r} has one row, and one is to be held out: give more, or remove it")


def keys_among(rows: Rows) -> tuple[str, ...]:
    """Columns with another whole number in every row: a key, most likely, from which nothing should be learned."""
    found: list[str] = []
    if len(rows.x) < MANY_ROWS:
        return ()
    for column, name in enumerate(rows.features):
        values = rows.x[:, column]
        if (values == np.rint(values)).all() and len(np.unique(values)) == len(values):
            found.append(name)
    return tuple(found)
