"""The rows a model is mined from: read or drawn, which columns are features, what the classes are, which are held out.

Each column gets a kind, which is printed and recorded. What cannot be learned from is refused by name, with the way
out; nothing is filled in or guessed.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.errors import BadInput, NotANumber
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.kinds import Columns
from gbfl_compile.tables.batches import column_names, give_back, refuse_many_rows
from gbfl_compile.tables.csv_shape import NO_VALUE, category_hint, padded_columns, shown_text, spelled_alike
from gbfl_compile.tables.draw import (
    CLASSES_ONLY,
    MANY_ROWS,
    MOST_CLASSES,
    Choice,
    Places,
    RowDraw,
    draw,
    drawn_rows,
    most_rows,
    used_columns,
)
from gbfl_compile.tables.frames import named_table
from gbfl_compile.tables.kinds import (
    CATEGORICAL,
    ColumnFacts,
    columns_of,
    encode_table,
    kinds_text,
    marks_of,
    missing_values,
    na_flags,
)
from gbfl_compile.tables.read import (
    MOST_NAMED,
    file_ending,
    read_table,
    refuse_headless,
    refuse_nameless,
    some_names,
)
from gbfl_compile.tables.values import palettes_of

TEST_SHARE = 0.25
FEWEST_ROWS = 40


@dataclass(frozen=True, slots=True)
class Rows:
    """Feature values and one class per row."""

    features: tuple[str, ...]
    x: Matrix
    y: NDArray[Any]
    left_out: int = 0
    """Rows of the table that were skipped because a feature is missing, or the class."""
    facts: tuple[ColumnFacts, ...] = ()
    """Of each feature."""
    unused: tuple[str, ...] = ()
    """Notes about columns that are not features."""
    without_class: int = 0
    """Rows that were skipped because their class is missing."""
    keys: tuple[str, ...] = ()
    """Columns that number or name the rows, and are not features."""

    @property
    def is_plain(self) -> bool:
        """Whether all features are numbers, and all are there."""
        return all(fact.kind == "number" for fact in self.facts) and not np.isnan(self.x).any()


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
    """Of the table, without its folder, which is private."""
    features: tuple[str, ...]
    split: Split
    facts: dict[str, Any]
    """For the program's metadata."""
    notes: tuple[str, ...]
    """Lines that the user should see before the long work begins."""
    columns: Columns | None = None
    """What the codes in the rows mean; None where all features are numbers and none is missing."""
    palettes: tuple[Any, ...] = ()
    """Of each column, the typed values its model was trained on; see `tables.values.Palette`."""


def read_sample(
    table: Any,
    choice: Choice,
    *,
    database: str | None = None,
    most: int,
    seed: int = 0,
    memory: int | None = None,
) -> Sample:
    """At most `most` rows of a file, a DataFrame or a table of a database, a quarter of them held out."""
    name, frame, drawn = _read(table, choice, database, most, seed, memory)
    of, places = (len(frame), None) if drawn is None else (drawn.of, drawn.places)
    whole = rows_of(frame, choice, name, places=places, of=of)
    is_csv = database is None and name.lower().endswith((".csv", ".csv.gz"))
    palettes = palettes_of(frame, whole.facts, typed=not is_csv)
    is_plain = whole.is_plain and all(palette.spelling is None for palette in palettes)
    del frame
    give_back()
    rows = limit_rows(whole, most, seed)
    left_out, without_class, used = whole.left_out, whole.without_class, len(rows.x)
    del whole
    notes = [*rows.unused, *_missing_notes(rows)]
    notes += _advice(rows, choice)
    if without_class:
        notes.append(f"{without_class} of {of} rows have no class in {choice.target!r} and are left out")
    if left_out > without_class:
        notes.append(f"{left_out - without_class} rows with a missing value are left out")
    if used < of - left_out:
        notes.append(f"{used} of {of} rows are used; --rows takes more")
    facts = {
        "name": name,
        "target": choice.target,
        "dropped": list(choice.drop),
        "rows": of,
        "left_out": left_out,
        "used": used,
    }
    if rows.keys:
        facts["keys"] = list(rows.keys)
    split = split_of(rows, seed, name)
    if is_plain:
        return Sample(name, rows.features, split, facts, tuple(notes))
    facts["columns"] = [fact.as_json() for fact in rows.facts]
    notes.append(kinds_text(rows.facts))
    return Sample(name, rows.features, split, facts, tuple(notes), columns_of(rows.facts), palettes)


def _advice(rows: Rows, choice: Choice) -> list[str]:
    """What in the table looks like an oversight."""
    notes = [
        f"column {fact.name!r} is a category of texts such as {shown_text(fact.texts)!r}: {hint}"
        for fact in rows.facts
        if fact.texts
        and fact.why != CATEGORICAL
        and not choice.is_asked_for(fact.name)
        and (hint := category_hint(fact.texts))
    ]
    notes += [
        f"column {key!r} has another number in every row; if it is a key, leave it out with --drop"
        for key in keys_among(rows)
        if not choice.is_asked_for(key)
    ]
    if alike := spelled_alike(np.unique(rows.y).tolist()):
        notes.append(
            f"classes {some_names(alike)} differ in blanks or capitals alone: if they are one, write them alike"
        )
    return notes


def _missing_notes(rows: Rows) -> list[str]:
    """What was taken for a missing value."""
    if not (found := sorted({mark for fact in rows.facts for mark in fact.marks})):
        return []
    names = [fact.name for fact in rows.facts if fact.marks]
    return [f"{some_names(found)} means a missing value, in {some_names(names)}; --na names other texts"]


def _read(
    table: Any, choice: Choice, database: str | None, most: int, seed: int, memory: int | None
) -> tuple[str, Any, RowDraw | None]:
    """What the table is called, its rows, and which they are where some were drawn from a larger file."""
    if database is not None:
        from gbfl_compile.tables.draw import read_database_table

        return table, read_database_table(database, table), None
    if not isinstance(table, str | os.PathLike):
        table = named_table(table)
        if not hasattr(table, "columns"):
            raise BadInput(f"a table is a file or a DataFrame, not {type(table).__name__}")
        return "the table", table, None
    path = Path(table)
    rows, names = most_rows(path), column_names(path)
    is_csv = file_ending(path).startswith(".csv")
    if is_csv:
        refuse_nameless(names, choice.drop, path.name)
        refuse_headless(names, path.name)
    if memory is not None:
        refuse_many_rows(path.name, min(rows, most), len(names), memory)

    draw = partial(drawn_rows, path, choice.target, most, seed)
    frame, drawn = draw(()) if rows > most else (read_table(path, ()), None)
    # a column of words is read again as it is written: pandas does not say which text it took for a missing value
    codes = padded_columns(path, names, packed=path.suffix == ".gz") if is_csv else []
    words = tuple(str(name) for name in frame.columns if name in codes or _is_read_again(frame[name], choice))
    if is_csv and words:
        frame, drawn = draw(words) if rows > most else (read_table(path, words), None)
        for name in words:  # an empty field is not a text
            frame[name] = frame[name].where(frame[name] != "")
    return path.name, frame, drawn


def _is_read_again(column: Any, choice: Choice) -> bool:
    if column.name == choice.target:
        return False
    return getattr(column.dtype, "kind", "O") not in "fiub" or choice.kinds.get(str(column.name), "number") != "number"


def rows_of(table: Any, choice: Choice, where: str, *, places: Places | None = None, of: int | None = None) -> Rows:
    """The features, which are all columns but the target and those dropped, and the class of every row that has one.

    `places` gives the positions of the rows in the larger table they were drawn from, so that errors can name them;
    `of` is how many rows that table has.
    """
    features = choice.names(list(table.columns), where)
    of = len(table) if of is None else of
    places = np.arange(len(table)) if places is None else places
    marks = marks_of(choice.na)
    labelled = ~missing_values(table[choice.target], marks)
    if not labelled.all():
        _refuse_without_class(labelled, choice, where, places)
        table, places = table[labelled], places[labelled]
    try:
        x, _, facts = encode_table(table, features, where, kinds=choice.kinds, marks=marks, places=places, limit=False)
    except NotANumber as error:
        _classes(table[choice.target], choice.target, where)  # a wrong target is the more important news
        raise BadInput(f"{error}{_way_out(table, features, where, error, choice)}") from None
    y = _classes(table[choice.target], choice.target, where)
    if not labelled.all():
        y = _as_whole_numbers(y)
    _refuse_infinite(x, features, where, places)
    kept, unused, keys = used_columns(x, facts, choice, of, where)
    if not kept:
        raise BadInput(f"{where}: no column is left to learn from: {'; '.join(unused)}")
    x, facts = x[:, kept], tuple(facts[place] for place in kept)
    features = tuple(fact.name for fact in facts)
    missing = np.isnan(x)
    if missing.any() and choice.missing == "refuse":
        column = int(missing.any(axis=0).argmax())
        raise BadInput(
            f"{where}: {int(missing.any(axis=1).sum())} of {len(x)} rows have a missing value, the first in column "
            f"{features[column]!r}, row {places[missing[:, column].argmax()] + 1}: leave such rows out with "
            "--missing drop, or the column with --drop"
        )
    whole = ~missing.any(axis=1) if choice.missing == "drop" else np.ones(len(x), dtype=bool)
    without_class = int((~labelled).sum())
    left_out = int((~whole).sum()) + without_class
    return _sort_rows(Rows(features, x[whole], y[whole], left_out, facts, unused, without_class, keys))


def _refuse_without_class(labelled: NDArray[np.bool_], choice: Choice, where: str, places: Places) -> None:
    """Rows without a class teach nothing; where every value must be there, they are refused."""
    if choice.missing == "refuse" or not labelled.any():
        count = f"{int((~labelled).sum())} of {len(labelled)} rows"
        raise BadInput(
            f"{where}: the target {choice.target!r} is missing in {count}, the first is row "
            f"{places[labelled.argmin()] + 1}: remove such rows, or write a class there"
        )


def _as_whole_numbers(y: NDArray[Any]) -> NDArray[Any]:
    """Classes that are texts only because a text among them meant a missing class."""
    texts = set(y.tolist())
    if all(isinstance(text, str) and text.isdecimal() and str(int(text)) == text for text in texts):
        return y.astype(np.int64)
    return y


def _way_out(table: Any, features: tuple[str, ...], where: str, error: NotANumber, choice: Choice) -> str:
    """What to do about all columns with a stray word at once: naming one per run would take as many runs."""
    words = [name for name in features if not _is_clear(table, name, where, choice)]
    if len(words) < 2:
        name = shlex.quote(words[0]) if words else "COLUMN"
        way = "" if error.hint else ": put numbers in place of its words"
        if (mark := str(error.value).strip()) in NO_VALUE:
            texts = [table[each].unique().tolist() for each in features]
            way = f", say {na_flags(mark, texts, marks_of(choice.na))}"
        return f"{way}, say --kind {name}=category, or drop the column with --drop"
    drops = " ".join(f"--drop {shlex.quote(name)}" for name in words[:MOST_NAMED])
    return (
        f"; {len(words)} columns are not all numbers, {some_names(words)}: put numbers there, name with --na each text "
        f"that means a missing value, say --kind COLUMN=category, or leave them out with {drops}"
        f"{' …' if len(words) > MOST_NAMED else ''}"
    )


def _is_clear(table: Any, name: str, where: str, choice: Choice) -> bool:
    kinds = {name: choice.kinds[name]} if name in choice.kinds else None
    try:
        encode_table(table, (name,), where, kinds=kinds, marks=marks_of(choice.na), limit=False)
    except NotANumber:
        return False
    return True


def _sort_rows(rows: Rows) -> Rows:
    """The rows sorted by value: a database table has no order, and the draw must not depend on one."""
    keys = [np.unique(rows.y, return_inverse=True)[1], *rows.x.T[::-1]]
    order = np.lexsort(keys)
    return replace(rows, x=rows.x[order], y=rows.y[order])


def _classes(column: Any, target: str, where: str) -> NDArray[Any]:
    """The classes as the table has them: text, whole numbers or booleans, all of one kind."""
    labels = [label.item() if isinstance(label, np.generic) else label for label in column.tolist()]
    kinds = sorted({type(label).__name__ for label in labels})
    if len(kinds) > 1 or not set(kinds) <= {"str", "int", "bool", "float"}:
        raise BadInput(f"{where}: the target {target!r} holds {' and '.join(kinds)}: use text, numbers or booleans")
    if kinds == ["float"] and all(label == int(label) for label in labels if abs(label) < 2**53):
        labels = [int(label) for label in labels]
    counts = dict.fromkeys(labels, 0)
    if any(isinstance(label, float) for label in labels) or len(counts) > MOST_CLASSES:
        raise BadInput(f"{where}: the target {target!r} has {len(counts)} different values: {CLASSES_ONLY}")
    if not counts:
        raise BadInput(f"{where}: has columns and no rows")
    if len(counts) < 2:
        raise BadInput(f"{where}: the target {target!r} has only one class: there is nothing to distinguish")
    if odd := next((label for label in counts if isinstance(label, str) and "\0" in label), None):
        raise BadInput(f"{where}: the target {target!r} has a class {odd!r}, which holds a null character")
    return np.array(labels)


def _refuse_infinite(x: Matrix, features: tuple[str, ...], where: str, places: Places) -> None:
    """Refuse infinity, and numbers that are infinity to a black box that computes in 32 bits."""
    if len(infinite := np.argwhere(np.abs(x) > np.finfo(np.float32).max)):
        row, column = infinite[0]
        raise BadInput(
            f"{where}: column {features[column]!r}, row {places[row] + 1}: {x[row, column]} cannot be learned from: "
            "put a smaller number there, or drop the column with --drop"
        )


def limit_rows(rows: Rows, most: int, seed: int) -> Rows:
    """At most `most` of the rows, two of each class among them."""
    if len(rows.x) <= most:
        return rows
    places = draw((rows.y,), most, seed).places
    return replace(rows, x=rows.x[places], y=rows.y[places])


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
        raise BadInput(
            f"{where}: the class {rare!r} has one row, and one must be held out: add rows of this class, or remove it"
        )


def keys_among(rows: Rows) -> tuple[str, ...]:
    """Columns with a different whole number in every row: most likely a key, from which nothing should be learned."""
    if len(rows.x) < MANY_ROWS:
        return ()
    whole = (rows.x == np.rint(rows.x)).all(axis=0)
    numbers = [not rows.facts or rows.facts[column].kind == "number" for column in range(rows.x.shape[1])]
    return tuple(
        name
        for column, name in enumerate(rows.features)
        if whole[column] and numbers[column] and len(np.unique(rows.x[:, column])) == len(rows.x)
    )
