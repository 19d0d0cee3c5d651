"""Scores a table of any size with an artifact: key columns if asked, then `label`, then one `p_<class>` a class.

Rows pass through in batches: one is read while others are scored, on several threads where the artifact allows it, and
written in their order. Neither the batches nor the threads change what comes out.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gbfl_compile.backends.base import Predictor
from gbfl_compile.errors import BadInput
from gbfl_compile.ordered_work import in_order
from gbfl_compile.table_batches import (
    ARROW_ROWS,
    CsvKinds,
    arrow_numbers,
    column_names,
    column_types,
    rows_at_once,
    table_batches,
)
from gbfl_compile.table_writers import Coded, table_writer
from gbfl_compile.tables import file_ending, refuse_absent, some_names
from gbfl_compile.unfinished import clear_leftovers
from gbfl_compile.version import GENERATOR

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gbfl_compile.ir.nodes import Program

MOST_JOBS = 8
"""Threads where none are asked for: reading the file keeps no more of them busy."""


def formulas(classes: Sequence[Any]) -> list[str]:
    """Labels that a spreadsheet would run. They are written as they are all the same: an answer is never changed.

    >>> formulas(["=1+1", "no", "@x"])
    ['=1+1', '@x']
    """
    return [label for label in classes if isinstance(label, str) and label.startswith(("=", "+", "-", "@", "\t", "\r"))]


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of the table: a column of doubles a feature (None where the artifact does not ask), and the keys."""

    count: int
    columns: tuple[NDArray[np.float64] | None, ...]
    keys: Mapping[str, Any]


def score_file(
    predictor: Predictor,
    data: Path,
    out: Path,
    keys: tuple[str, ...] = (),
    jobs: int | None = None,
    batch_rows: int | None = None,
) -> int:
    """Score every row of `data` into `out`; how many there were. `out` is there when all of it is."""
    file_ending(out)
    names = _output_names(predictor, keys, str(data))
    _refuse_columns(column_names(data), predictor.features, keys, str(data))
    jobs = _usable_cores() if jobs is None else jobs
    if batch_rows is None:  # a row of the answer may be wider than the row it is of
        batch_rows = rows_at_once(ARROW_ROWS, len(predictor.features) + len(names))
    clear_leftovers(out.parent)
    # What CSV wrote stays as it was written in CSV; where columns have types, a key that is a feature is its doubles.
    doubles = set() if file_ending(out).startswith(".csv") else set(keys).intersection(predictor.features)
    count = 0
    with table_writer(out) as writer, closing(_read(predictor, data, keys, doubles, batch_rows, jobs > 1)) as rows:

        def scored(given: Rows) -> tuple[int, Any]:
            return given.count, writer.form(_answered(predictor, given, names))

        for number, made in in_order(rows, scored, jobs, jobs if predictor.threads else 0):
            writer.put(made)
            count += number
        if not count:
            writer.put(writer.form(_answered(predictor, _no_rows(predictor, data, keys, doubles), names)))
    return count


def reference_predictor(program: Program) -> Predictor:
    """A program itself as what scores: no target is built, `evaluate_many` answers."""
    from gbfl_compile.ir.batch import evaluate_many
    from gbfl_compile.ir.digest import digest

    engine = f"{GENERATOR}, the program itself"
    answer = partial(evaluate_many, program)
    return Predictor("program", engine, digest(program), program.features, program.classes, answer, threads=True)


def _usable_cores() -> int:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, MOST_JOBS)


def _output_names(predictor: Predictor, keys: tuple[str, ...], where: str) -> list[str]:
    names = [*keys, "label", *(f"p_{label}" for label in predictor.classes)]
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise BadInput(f"{where}: the output would have {count} columns called {name!r}, rename the key column")
    return names


def _refuse_columns(there: Sequence[str], features: tuple[str, ...], keys: tuple[str, ...], where: str) -> None:
    if absent := [key for key in keys if key not in there]:
        raise BadInput(f"{where}: has no key column {absent[0]!r}: there is {some_names(there)}")
    refuse_absent(there, features, where)
    times = Counter(there)
    if repeated := [name for name in (*features, *keys) if times[name] > 1]:
        raise BadInput(f"{where}: the column {repeated[0]!r} stands {times[repeated[0]]} times, rename one")


def _read(
    predictor: Predictor, data: Path, keys: tuple[str, ...], doubles: set[str], batch_rows: int, threads: bool
) -> Generator[Rows, None, None]:
    unasked = _unasked(predictor, data)
    wanted = list(dict.fromkeys([*(name for name in predictor.features if name not in unasked), *keys]))
    kinds = CsvKinds(str(data))
    first = 0
    for batch in table_batches(data, wanted, text=keys, rows=batch_rows, threads=threads):
        if hasattr(batch, "schema"):
            columns = [
                None if name in unasked else arrow_numbers(batch.column(name), name, str(data), first)
                for name in predictor.features
            ]
            made = Rows(batch.num_rows, tuple(columns), {key: batch.column(key) for key in keys})
        else:
            columns = [kinds.doubles(batch[name], name, first) for name in predictor.features]
            of = dict(zip(predictor.features, columns, strict=True))
            made = Rows(len(batch), tuple(columns), {key: of[key] if key in doubles else batch[key] for key in keys})
        first += made.count
        yield made


def _unasked(predictor: Predictor, data: Path) -> set[str]:
    """Features that the artifact does not look at and the file's own types vouch for: they need not be read."""
    if predictor.columns is None:
        return set()
    types = column_types(data)
    asked = zip(predictor.features, predictor.columns.asks, strict=True)
    return {name for name, is_asked in asked if not is_asked and name in types and _is_numeric(types[name])}


def _is_numeric(arrow: Any) -> bool:
    import pyarrow as pa

    kinds = (pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean, pa.types.is_decimal)
    return any(kind(arrow) for kind in kinds)


def _answered(predictor: Predictor, given: Rows, names: Sequence[str]) -> dict[str, Any]:
    """The columns of the output."""
    import numpy as np

    if predictor.columns is not None:
        codes, shares = predictor.columns.answer(given.columns, given.count)
    else:
        matrix = np.column_stack([column for column in given.columns if column is not None])
        answers = predictor.answer(matrix)
        codes, shares = _class_numbers(predictor, answers.labels), tuple(answers.probabilities.T)
    made = [*given.keys.values(), Coded(codes, predictor.classes), *shares]
    return dict(zip(names, made, strict=False))  # an artifact may give the label alone


def _class_numbers(predictor: Predictor, labels: NDArray[np.object_]) -> NDArray[np.int32]:
    import numpy as np

    number = {label: code for code, label in enumerate(predictor.classes)}
    try:
        return np.fromiter((number[label] for label in labels.tolist()), np.int32, len(labels))
    except (KeyError, TypeError) as error:
        raise BadInput(f"the artifact answered {error}, which is none of its classes") from None


def _no_rows(predictor: Predictor, data: Path, keys: tuple[str, ...], doubles: set[str]) -> Rows:
    """Nothing, with the types that rows would have had."""
    import numpy as np

    types = column_types(data)
    empty: dict[str, Any] = {}
    for key in keys:
        if key in types:
            import pyarrow as pa

            empty[key] = pa.array([], types[key])
        elif key in doubles:
            empty[key] = np.empty(0)
        else:
            import pandas as pd

            empty[key] = pd.Series([], dtype=object)
    return Rows(0, tuple(np.empty(0) for _ in predictor.features), empty)
