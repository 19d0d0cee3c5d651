"""The rows a model is mined from: read or drawn, which columns are features, what the classes are, which are held out.

What cannot be learned from is refused by name, with the way out; nothing is filled in, coded or guessed.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.errors import BadInput, NotANumber
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.mining.memory import give_back, refuse_many_rows
from gbfl_compile.tables.batches import column_names
from gbfl_compile.tables.draw import Places, RowDraw, draw, drawn_rows, most_rows
from gbfl_compile.tables.read import (
    MOST_NAMED,
    feature_matrix,
    feature_names,
    file_ending,
    numbers,
    read_table,
    refuse_nameless,
    some_names,
)

TEST_SHARE = 0.25
FEWEST_ROWS = 40
MOST_CLASSES = 100
MANY_ROWS = 100
"""With fewer, numbers that are all different are no sign of a key."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Feature values and one class per row."""

    features: tuple[str, ...]
    x: Matrix
    y: NDArray[Any]
    left_out: int = 0
    """Rows of the table that were skipped because a feature is missing."""


@dataclass(frozen=True, slots=True)
class Split:
    """Rows to learn from and rows to measure on."""

    x: Matrix
    y: NDArray[Any]
    x_test: Matrix
    y_test: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Sample:
    """What is mined: a table's rows, split, and what is known about where they came from."""

    name: str
    """Of the table. A folder's name is nobody's business."""
    features: tuple[str, ...]
    split: Split
    facts: dict[str, Any]
    """For the program's metadata."""
    notes: tuple[str, ...]
    """Lines that the user should see before the long work begins."""


def read_sample(
    table: Any,
    target: str,
    *,
    database: str | None = None,
    drop: tuple[str, ...] = (),
    drop_missing: bool = False,
    most: int,
    seed: int = 0,
    memory: int | None = None,
) -> Sample:
    """At most `most` rows of a file, a DataFrame or a table of a database, a quarter of them held out."""
    name, frame, drawn = _read(table, target, database, drop, most, seed, memory)
    of, places = (len(frame), None) if drawn is None else (drawn.of, drawn.places)
    whole = rows_of(frame, target, drop, name, drop_missing=drop_missing, places=places)
    del frame
    give_back()
    rows = limit_rows(whole, most, seed)
    left_out, used = whole.left_out, len(rows.x)
    del whole
    notes = [
        f"column {key!r} has another number in every row; if it is a key, leave it out with --drop"
        for key in keys_among(rows)
    ]
    if left_out:
        notes.append(f"{left_out} rows with a missing value are left out")
    if used < of - left_out:
        notes.append(f"{used} of {of} rows are used; --rows takes more")
    facts = {"name": name, "target": target, "dropped": list(drop), "rows": of, "left_out": left_out, "used": used}
    return Sample(name, rows.features, split_of(rows, seed, name), facts, tuple(notes))


def _read(
    table: Any, target: str, database: str | None, drop: tuple[str, ...], most: int, seed: int, memory: int | None
) -> tuple[str, Any, RowDraw | None]:
    """What the table is called, its rows, and which they are where some were drawn from a larger file."""
    if database is not None:
        from gbfl_compile.tables.database import read_database_table

        return table, read_database_table(database, table), None
    if not isinstance(table, str | os.PathLike):
        if not hasattr(table, "columns"):
            raise BadInput(f"a table is a file or a DataFrame, not {type(table).__name__}")
        return "the table", table.rename(columns=str), None
    path = Path(table)
    rows, names = most_rows(path), column_names(path)
    if file_ending(path).startswith(".csv"):
        refuse_nameless(names, drop, path.name)
    if memory is not None:
        refuse_many_rows(path.name, min(rows, most), len(names), memory)
    if rows <= most:
        return path.name, read_table(path), None
    return path.name, *drawn_rows(path, target, most, seed)


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

    `places` gives the positions of the rows in the larger table they were drawn from, so that errors can name them.
    """
    if getattr(table.columns, "nlevels", 1) > 1:
        raise BadInput(f"{where}: its columns have names of several levels, give each one name")
    features = feature_names([str(name) for name in table.columns], target, drop, where)
    places = np.arange(len(table)) if places is None else places
    try:
        x = feature_matrix(table, features, where, places)
    except NotANumber as error:
        _classes(table[target], target, where, places)  # a wrong target is the more important news
        raise BadInput(f"{error}{_way_out(table, features, where, error.hint)}") from None
    y = _classes(table[target], target, where, places)
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
    return _sort_rows(Rows(features, x[whole], y[whole], int((~whole).sum())))


def _way_out(table: Any, features: tuple[str, ...], where: str, hint: str) -> str:
    """What to do about all columns of words at once: naming one per run would take as many runs."""
    words = [name for name in features if not _is_numbers(table[name], name, where)]
    if len(words) < 2:
        return f"{'' if hint else ': put numbers in place of its words'}, or drop the column with --drop"
    drops = " ".join(f"--drop {shlex.quote(name)}" for name in words[:MOST_NAMED])
    return (
        f"; {len(words)} columns are not all numbers, {some_names(words)}: put numbers there, or leave them out with "
        f"{drops}{' …' if len(words) > MOST_NAMED else ''}"
    )


def _is_numbers(column: Any, name: str, where: str) -> bool:
    try:
        numbers(column, name, where)
    except NotANumber:
        return False
    return True


def _sort_rows(rows: Rows) -> Rows:
    """The rows sorted by value: a database table has no order, and the draw must not depend on one."""
    keys = [np.unique(rows.y, return_inverse=True)[1], *rows.x.T[::-1]]
    order = np.lexsort(keys)
    return Rows(rows.features, rows.x[order], rows.y[order], rows.left_out)


def _classes(column: Any, target: str, where: str, places: Places) -> NDArray[Any]:
    """The classes as the table has them: text, whole numbers or booleans, all of one kind."""
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


def limit_rows(rows: Rows, most: int, seed: int) -> Rows:
    """At most `most` of the rows, two of each class among them."""
    if len(rows.x) <= most:
        return rows
    places = draw((rows.y,), most, seed).places
    return Rows(rows.features, rows.x[places], rows.y[places], rows.left_out)


def split_of(rows: Rows, seed: int, where: str) -> Split:
    """Three quarters to learn from, a quarter to measure on, the classes in the same shares on both sides."""
    from sklearn.model_selection import train_test_split

    if len(rows.x) < FEWEST_ROWS:
        raise BadInput(f"{where}: {len(rows.x)} rows are too few to learn from and measure on: at least {FEWEST_ROWS}")
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
    """Columns with a different whole number in every row: most likely a key, from which nothing should be learned."""
    if len(rows.x) < MANY_ROWS:
        return ()
    whole = (rows.x == np.rint(rows.x)).all(axis=0)
    return tuple(
        name
        for column, name in enumerate(rows.features)
        if whole[column] and len(np.unique(rows.x[:, column])) == len(rows.x)
    )
