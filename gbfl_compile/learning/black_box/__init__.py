"""The model to be explained: it is queried in large blocks, its answers are checked, and its queries are counted.

A block is the rows handled in one step, so that memory does not grow with the table: here, the rows of one call of the
black box.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.errors import BadInput, CannotRun, GbflError
from gbfl_compile.ir.kinds import Columns
from gbfl_compile.tables.values import Palette, as_table, other_forms

Matrix: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

T = TypeVar("T")

BLOCK_ROWS = 65_536
BLOCK_CELLS = 2**22
"""A block never holds more numbers than this (32 MB), however wide the rows are."""

ASKED_TWICE = 8
"""Sample rows that are queried twice, to see that the answers are the same."""
SAME_ANSWER = 1e-6
"""Answers to the same row within this are the same: libraries round a row differently in different blocks."""


@dataclass(frozen=True, slots=True)
class OriginalTable:
    """The columns of a table with words, and the type of each."""

    columns: Columns
    palettes: tuple[Palette, ...]


@dataclass(slots=True)
class BlackBox:
    """A function from rows to probabilities, and what is known about it.

    Not frozen for the sake of `queries` alone: the number of rows asked so far.
    """

    model: Any
    """What the user gave: an object with `predict_proba`, or a callable."""
    classes: NDArray[Any]
    """The original labels, one per column of the answer; 0, 1, .. where the model names none."""
    names_classes: bool
    n_features: int
    columns: tuple[str, ...] | None = None
    """The columns of the DataFrame the model was fitted on, if it was; `order` has their places among ours."""
    order: tuple[int, ...] = ()
    block_rows: int = BLOCK_ROWS
    time_limit: float | None = None
    """Seconds in which a block must be answered; None waits for ever."""
    queries: int = 0
    table: OriginalTable | None = None
    """Where the rows hold codes: how they become a table like the one the model was trained on."""


def as_black_box(
    model: Any,
    sample: Matrix,
    *,
    features: Sequence[str] | None = None,
    block_rows: int = BLOCK_ROWS,
    time_limit: float | None = None,
    table: OriginalTable | None = None,
) -> BlackBox:
    """The black box in `model`: an object with `predict_proba`, or a callable from rows to probabilities.

    A few rows of `sample` are queried to learn how many classes there are, and again in another order:
    a model that cannot answer, or answers differently each time, is refused here. `features` names the columns
    of `sample`; a model fitted on a DataFrame is handed one with its own columns in its own order. A callable
    may answer P(class 1) alone, as one number per row. A block that is not answered within `time_limit` seconds
    is an error. Where the rows hold codes of words, `table` says how they become a DataFrame like the one the model
    was trained on; a model that fails on the table as it is gets its words as pandas categories, or gaps for its marks
    of missing values. A BlackBox has been checked before and is returned unchanged.
    """
    if isinstance(model, BlackBox):
        return model
    if block_rows < 1:
        raise BadInput(f"block_rows {block_rows} is not a positive number of rows")
    if time_limit is not None and not time_limit > 0:
        raise BadInput(f"a time limit of {time_limit} seconds leaves the black box no time to answer")
    if len(sample) == 0:
        raise BadInput("a black box needs at least one sample row, to see what it answers")
    columns: tuple[str, ...] | None = None
    order: tuple[int, ...] = ()
    if hasattr(model, "predict_proba"):
        columns, order = _own_columns(model, sample.shape[1], features, some=table is not None)
    elif not callable(model):
        name = type(model).__name__
        raise BadInput(f"black box {name} has no predict_proba and is not callable: give one of the two")
    box = BlackBox(model, np.arange(0), False, sample.shape[1], columns, order, block_rows, time_limit, 0, table)
    few = sample[_few_rows(sample)]
    box, answer = _first_answer(box, few)
    again = _as_table(_ask(box, few[::-1]), len(few))
    _refuse_fickle(answer, again[::-1])
    width = answer.shape[1]
    named = getattr(model, "classes_", None)
    classes = np.arange(width) if named is None else np.asarray(named)
    if classes.ndim != 1 or len(classes) != width:
        raise BadInput(f"the black box names {np.size(classes)} classes and answers {width} columns")
    return replace(box, classes=classes, names_classes=named is not None)


def _few_rows(sample: Matrix) -> Ints:
    """Rows from all parts of the sample, and for each column the first row in which it is missing."""
    spread = np.linspace(0, len(sample) - 1, ASKED_TWICE).astype(np.int64)
    missing = np.isnan(sample)
    return np.unique(np.concatenate((spread, missing.argmax(axis=0)[missing.any(axis=0)])))


def _first_answer(box: BlackBox, few: Matrix) -> tuple[BlackBox, Matrix]:
    """The black box with the form of the table that it takes, and what it answers."""
    try:
        return box, _as_table(_ask(box, few), len(few))
    except BadInput:
        table = box.table
        forms = [] if table is None else [OriginalTable(table.columns, form) for form in other_forms(table.palettes)]
        for form in forms:
            other = replace(box, table=form)
            with suppress(BadInput):
                return other, _as_table(_ask(other, few), len(few))
        raise


def probabilities(black_box: BlackBox, rows: Matrix) -> Matrix:
    """One probability per class for each row, queried in blocks."""
    if rows.ndim != 2 or rows.shape[1] != black_box.n_features:
        raise BadInput(f"rows of shape {rows.shape} for a black box of {black_box.n_features} features")
    width = len(black_box.classes)
    answer = np.empty((len(rows), width))
    step = rows_per_block(black_box)
    for begin in range(0, len(rows), step):
        block = rows[begin : begin + step]
        table = _as_table(_ask(black_box, block), len(block))
        if table.shape[1] != width:
            raise BadInput(f"the black box answered {table.shape[1]} classes where it answered {width} before")
        answer[begin : begin + step] = table
    return answer


def classes_of(black_box: BlackBox, rows: Matrix) -> Ints:
    """The black box's class of each row, as an index into `classes`; ties go to the lower index."""
    winner: Ints = probabilities(black_box, rows).argmax(axis=1)
    return winner


def rows_per_block(black_box: BlackBox) -> int:
    """How many rows one call of the black box takes."""
    return max(1, min(black_box.block_rows, BLOCK_CELLS // black_box.n_features))


def _own_columns(
    model: Any, width: int, features: Sequence[str] | None, *, some: bool
) -> tuple[tuple[str, ...] | None, tuple[int, ...]]:
    """The columns the model was fitted on, if it remembers, and where each of them is among `features`.

    With `some`, it may have been fitted on some of them.
    """
    expected = getattr(model, "n_features_in_", width)
    if expected != width and not (some and expected < width and hasattr(model, "feature_names_in_")):
        raise BadInput(f"the black box was fitted on {expected} features, the data has {width}")
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return None, ()
    own = tuple(str(name) for name in names)
    ours = own if features is None else tuple(str(name) for name in features)
    absent = sorted(set(own) - set(ours))
    if absent:
        raise BadInput(f"the black box was fitted on a column {absent[0]!r} that the data does not have")
    return own, tuple(ours.index(name) for name in own)


def _ask(black_box: BlackBox, rows: Matrix) -> Any:
    """The model's own answer, counted; an error of the model says so, and after how many rows."""
    table: Any = rows
    if black_box.table is not None:
        table = as_table(black_box.table.columns, black_box.table.palettes, rows)
        if black_box.columns is not None:
            table = table[list(black_box.columns)]
    elif black_box.columns is not None:
        import pandas as pd  # only a model fitted on a DataFrame needs it

        table = pd.DataFrame(rows[:, black_box.order], columns=list(black_box.columns))
    model = black_box.model
    ask = model.predict_proba if hasattr(model, "predict_proba") else model
    try:
        answer = ask(table) if black_box.time_limit is None else answer_within(black_box.time_limit, ask, table)
    except GbflError:
        raise
    except Exception as error:
        raise BadInput(
            f"the black box failed on a block of {len(rows)} rows, {black_box.queries} rows into its answers: "
            f"{type(error).__name__}: {error}"
        ) from error
    black_box.queries += len(rows)
    return answer


class BackgroundCall(Generic[T]):
    """A call in its own thread. It runs until it ends or the process does: Python cannot end a thread from outside."""

    def __init__(self, call: Callable[[], T], name: str) -> None:
        self._call = call
        self._outcome: dict[str, Any] = {}
        # a daemon: the process need not wait for an answer that is no longer needed
        self._thread = threading.Thread(target=self._run, daemon=True, name=name)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._outcome["answer"] = self._call()
        except BaseException as error:  # all of them: the caller of `answer` must get it
            self._outcome["error"] = error

    def ends_within(self, seconds: float) -> bool:
        """Wait at most this long; whether the call has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def answer(self) -> T:
        """Wait for the call; return what it returned, or raise what it raised."""
        self._thread.join()
        if "error" in self._outcome:
            raise self._outcome["error"]
        answer: T = self._outcome["answer"]
        return answer


def answer_within(seconds: float, call: Callable[[Any], Any], rows: Any) -> Any:
    """What `call(rows)` answers or raises; CannotRun when it takes longer than `seconds`, and it is left running."""
    background = BackgroundCall(lambda: call(rows), "black box")
    if not background.ends_within(seconds):
        raise CannotRun(
            f"the black box has not answered a block of {len(rows)} rows within {seconds:g} seconds: "
            "see whether it still runs, or give it more time"
        )
    return background.answer()


def _refuse_fickle(answer: Matrix, again: Matrix) -> None:
    if answer.shape != again.shape:
        raise BadInput(f"the black box answered {again.shape[1]} classes where it answered {answer.shape[1]} before")
    row = int(np.abs(answer - again).max(axis=1).argmax())
    if np.abs(answer[row] - again[row]).max() > SAME_ANSWER:
        raise BadInput(
            f"the black box answers the same row differently each time: {answer[row].tolist()}, then "
            f"{again[row].tolist()}. Fix its seed, switch dropout or sampling off, average it inside your own "
            "function, and let no row's answer depend on the rows asked beside it"
        )


def _as_table(answer: Any, n_rows: int) -> Matrix:
    """The answer as probabilities [n, classes], or an error that says what came back instead."""
    try:
        table = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError) as error:
        wanted = "it must return probabilities, as predict_proba does"
        raise BadInput(f"the black box answered {type(answer).__name__}, not numbers: {error}; {wanted}") from None
    if table.shape == (n_rows,):
        table = np.column_stack((1.0 - table, table))
    if table.ndim != 2 or len(table) != n_rows or table.shape[1] < 2:
        raise BadInput(
            f"the black box answered shape {table.shape} for {n_rows} rows: "
            f"it must be [{n_rows}, classes] with two classes or more, or one P(class 1) per row"
        )
    wrong = np.flatnonzero(~((table >= -1e-9) & (table <= 1 + 1e-6)).all(axis=1))
    if wrong.size:
        raise BadInput(
            f"the black box answered {table[wrong[0]].tolist()} on row {wrong[0]} of a block: "
            "probabilities are finite numbers from 0 to 1"
        )
    return table
