"""Scores a table of any size with an artifact: key columns if any, then `label`, then one `p_<class>` per class.

Rows are scored in batches: one is read while others are scored, on several threads where the artifact allows it, and
written in order. Neither batches nor threads change the output.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from dataclasses import replace as with_changes
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from gbfl_compile.backends import program_beside
from gbfl_compile.backends.base import Predictor, answer_frame, as_frame
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.json import as_program
from gbfl_compile.ir.kinds import codebook, recorded_marks, used_features
from gbfl_compile.ir.nodes import Program
from gbfl_compile.tables.batches import (
    ARROW_ROWS,
    CsvKinds,
    arrow_numbers,
    column_names,
    column_types,
    rows_at_once,
    table_batches,
)
from gbfl_compile.tables.frames import named_table
from gbfl_compile.tables.kinds import MARKS
from gbfl_compile.tables.read import feature_matrix, file_ending, refuse_absent, some_names
from gbfl_compile.tables.write import CodedColumn, in_order, table_writer
from gbfl_compile.version import GENERATOR

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gbfl_compile.databases.base import Database

File: TypeAlias = "str | os.PathLike[str]"

MOST_JOBS = 8
"""Threads by default: reading the file keeps no more of them busy."""


def formulas(classes: Sequence[Any]) -> list[str]:
    """Labels that a spreadsheet would run as formulas. They are written unchanged all the same.

    >>> formulas(["=1+1", "no", "@x"])
    ['=1+1', '@x']
    """
    return [label for label in classes if isinstance(label, str) and label.startswith(("=", "+", "-", "@", "\t", "\r"))]


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of the table: one column of doubles per feature (None where it is not used), and the keys."""

    count: int
    columns: tuple[NDArray[np.float64] | None, ...]
    keys: Mapping[str, Any]
    frame: Any = None
    """In place of the columns, where texts are read: the table itself, and `first` the number of its first row."""
    first: int = 0


@dataclass(frozen=True, slots=True)
class ScoringResult:
    """What scoring a table gave."""

    rows: int
    engine: str
    digest: str
    """The digest the artifact carries."""
    out: str | None = None
    """The file, or the table of the database, that holds the answers."""
    table: Any = None
    """The answers as a DataFrame, where a DataFrame was scored and no file was named."""
    formulas: tuple[str, ...] = ()
    """Labels in a CSV file that a spreadsheet would run."""

    def as_json(self) -> dict[str, Any]:
        """The stable form scripts read."""
        return {"rows": self.rows, "out": self.out, "engine": self.engine, "digest": self.digest}


def score(
    source: Program | File,
    table: Any,
    out: File | None = None,
    *,
    keys: Sequence[str] = (),
    name: str | None = None,
    jobs: int | None = None,
    database: str | Database | None = None,
    schema: str = "",
    columns: Mapping[str, str] | None = None,
    replace: bool = False,
    na: Sequence[str] | None = None,
) -> ScoringResult:
    """Score a table with an artifact or a program: key columns, `label`, then one `p_<class>` per class.

    source: a target's folder (with several artifacts there, `name` chooses), a Program or its file.
    table, out: files (CSV, Parquet, Arrow) of any size; or a DataFrame, whose answers are returned where `out` is None.
    na: texts that mean a missing number or date; by default those of the table the program was mined from.
    jobs: threads; by default the machine's, at most 8.
    database: a URL or an open database: `table` and `out` are tables there and no row leaves it. `columns` maps
        features to columns where names differ, `schema` is that of both tables, `replace` drops an old `out`.
    """
    if database is not None:
        return _score_inside(source, table, out, keys, database, schema, columns, replace)
    if isinstance(source, str | os.PathLike) and Path(source).is_file() and name is None:
        source = as_program(source)
    is_file, table = isinstance(table, str | os.PathLike), named_table(table)
    if is_file and out is None:
        raise BadInput(f"{table}: name a file for its answers")
    if not is_file and not hasattr(table, "columns"):
        raise BadInput(f"a table is a file or a DataFrame, not {type(table).__name__}")
    predictor = _predictor(source, name)
    program = source if isinstance(source, Program) else program_beside(Path(source), predictor.digest)
    if program is not None:
        if na is None and (own := recorded_marks(program)):
            na = (*MARKS, *own)
        predictor = with_changes(predictor, asks=used_features(program))
    if not is_file:
        return _score_frame(predictor, table, out, tuple(keys), na)
    path = Path(out or "")
    risky = formulas(predictor.classes) if ".csv" in path.name.lower() else []
    rows = score_file(predictor, Path(table), path, tuple(keys), jobs, na=na)
    return ScoringResult(rows, predictor.engine, predictor.digest, str(out), None, tuple(risky))


def _predictor(source: Program | File, name: str | None) -> Predictor:
    from gbfl_compile.backends import load_artifact

    if isinstance(source, str | os.PathLike) and not Path(source).is_file():
        return load_artifact(Path(source), name)
    if name is not None:
        raise BadInput("--name chooses among the artifacts of a folder: leave it out for a program")
    return reference_predictor(as_program(source))


def _score_frame(
    predictor: Predictor, frame: Any, out: File | None, keys: tuple[str, ...], na: Sequence[str] | None = None
) -> ScoringResult:
    import pandas as pd

    names = _output_names(predictor, keys, "the table")
    _refuse_columns(list(frame.columns), _features_needed(predictor), keys, "the table")
    if _reads_texts(predictor, na) or len(_features_needed(predictor)) < len(predictor.features):
        answers = answer_frame(predictor, frame, "the table", na)
    else:
        answers = predictor.answer(feature_matrix(frame, predictor.features, "the table"))
    columns = [*(frame[key].to_numpy() for key in keys), answers.labels, *answers.probabilities.T]
    table = pd.DataFrame(dict(zip(names, columns, strict=False)), index=frame.index)
    if out is None:
        return ScoringResult(len(table), predictor.engine, predictor.digest, None, table)
    with table_writer(Path(out)) as writer:
        labels = CodedColumn(_class_numbers(predictor, answers.labels), predictor.classes)
        writer.put(writer.form({**dict(table.items()), "label": labels}))
    return ScoringResult(len(table), predictor.engine, predictor.digest, str(out))


def _score_inside(
    source: Program | File,
    table: Any,
    out: Any,
    keys: Sequence[str],
    database: str | Database,
    schema: str,
    columns: Mapping[str, str] | None,
    replace: bool,
) -> ScoringResult:
    from gbfl_compile.backends.sql.score import score_in_database
    from gbfl_compile.databases import connect

    if not isinstance(table, str) or not isinstance(out, str):
        raise BadInput("inside a database, name the table to score and the table to make")
    program = as_program(source)
    opened = connect(database) if isinstance(database, str) else database
    try:
        made = score_in_database(
            program, opened, table, out, columns=dict(columns or {}), keys=tuple(keys), schema=schema, replace=replace
        )
    finally:
        if isinstance(database, str):
            opened.close()
    return ScoringResult(made.rows, made.engine, made.digest, made.table)


def score_file(
    predictor: Predictor,
    data: Path,
    out: Path,
    keys: tuple[str, ...] = (),
    jobs: int | None = None,
    batch_rows: int | None = None,
    na: Sequence[str] | None = None,
) -> int:
    """Score every row of `data` into `out`; how many there were. `out` appears when it is complete."""
    names = _output_names(predictor, keys, str(data))
    jobs = _usable_cores() if jobs is None else jobs
    needed, texts = _features_needed(predictor), _reads_texts(predictor, na)
    file_ending(out)
    there = column_names(data)
    _refuse_columns(there, needed, keys, str(data))
    texts = texts or not set(predictor.features) <= set(there)
    if batch_rows is None:  # an output row may be wider than its input row
        batch_rows = rows_at_once(ARROW_ROWS, len(predictor.features) + len(names))
    # From CSV to CSV the text of a key is kept; where columns have types, a key that is a feature becomes doubles.
    doubles = set() if file_ending(out).startswith(".csv") else set(keys).intersection(predictor.features)
    count = 0
    several = jobs > 1
    if texts:
        batches = _read_texts(predictor, data, keys, batch_rows, several)
    else:
        batches = _read(predictor, data, keys, doubles, batch_rows, several)
    with table_writer(out) as writer, closing(batches) as rows:

        def score(batch: Rows) -> tuple[int, Any]:
            return batch.count, writer.form(_output_columns(predictor, batch, names, str(data), na))

        for number, content in in_order(rows, score, jobs, jobs if predictor.threads else 0):
            writer.put(content)
            count += number
        if not count:
            writer.put(writer.form(_output_columns(predictor, _no_rows(predictor, data, keys, doubles), names, "", na)))
    return count


def reference_predictor(program: Program) -> Predictor:
    """A program as a predictor: no target is built, `evaluate_many` answers."""
    from gbfl_compile.ir.batch import evaluate_many
    from gbfl_compile.ir.json import digest

    engine = f"{GENERATOR}, the program itself"
    answer = partial(evaluate_many, program)
    about = (digest(program), program.features, program.classes, answer)
    book = codebook(program) if program.kinds else None
    kinds, asks = program.kinds, used_features(program)
    return Predictor("program", engine, *about, threads=True, kinds=kinds, asks=asks, book=book)


def _features_needed(predictor: Predictor) -> tuple[str, ...]:
    """The features that a table must have."""
    if not predictor.asks:
        return predictor.features
    return tuple(name for name, asks in zip(predictor.features, predictor.asks, strict=True) if asks)


def _reads_texts(predictor: Predictor, na: Sequence[str] | None) -> bool:
    """Whether columns are read as they are written: there are words, or texts that mean missing."""
    return bool(predictor.kinds) or na is not None


def _read_texts(
    predictor: Predictor, data: Path, keys: tuple[str, ...], batch_rows: int, threads: bool
) -> Generator[Rows, None, None]:
    """The rows with each column as the file has it; what they mean is decided where they are scored."""
    needed = _features_needed(predictor)
    wanted = list(dict.fromkeys((*needed, *keys)))
    first = 0
    for batch in table_batches(data, wanted, text=wanted, rows=batch_rows, threads=threads):
        count = batch.num_rows if hasattr(batch, "schema") else len(batch)
        own = {key: batch.column(key) if hasattr(batch, "schema") else batch[key] for key in keys}
        yield Rows(count, (), own, as_frame(batch, needed), first)
        first += count


def _usable_cores() -> int:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, MOST_JOBS)


def _output_names(predictor: Predictor, keys: tuple[str, ...], where: str) -> list[str]:
    names = [*keys, "label", *(f"p_{label}" for label in predictor.classes)]
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise BadInput(f"{where}: the output would have {count} columns called {name!r}, rename the key column")
    return names


def _refuse_columns(columns: Sequence[str], features: tuple[str, ...], keys: tuple[str, ...], where: str) -> None:
    if absent := [key for key in keys if key not in columns]:
        raise BadInput(f"{where}: has no key column {absent[0]!r}: there are {some_names(columns)}")
    refuse_absent(columns, features, where)
    times = Counter(columns)
    if repeated := [name for name in keys if times[name] > 1]:
        raise BadInput(f"{where}: the column {repeated[0]!r} appears {times[repeated[0]]} times, rename one")


def _read(
    predictor: Predictor, data: Path, keys: tuple[str, ...], doubles: set[str], batch_rows: int, threads: bool
) -> Generator[Rows, None, None]:
    unused = _unused_features(predictor, data)
    needed = list(dict.fromkeys([*(name for name in predictor.features if name not in unused), *keys]))
    kinds = CsvKinds(str(data))
    first = 0
    for batch in table_batches(data, needed, text=keys, rows=batch_rows, threads=threads):
        if hasattr(batch, "schema"):
            columns = [
                None if name in unused else arrow_numbers(batch.column(name), name, str(data), first)
                for name in predictor.features
            ]
            part = Rows(batch.num_rows, tuple(columns), {key: batch.column(key) for key in keys})
        else:
            columns = [kinds.doubles(batch[name], name, first) for name in predictor.features]
            of = dict(zip(predictor.features, columns, strict=True))
            part = Rows(len(batch), tuple(columns), {key: of[key] if key in doubles else batch[key] for key in keys})
        first += part.count
        yield part


def _unused_features(predictor: Predictor, data: Path) -> set[str]:
    """Features that the artifact does not use and that the file's types show to be numeric: they need not be read."""
    if predictor.columns is None:
        return set()
    types = column_types(data)
    uses = zip(predictor.features, predictor.columns.asks, strict=True)
    return {name for name, is_used in uses if not is_used and name in types and _is_numeric(types[name])}


def _is_numeric(arrow: Any) -> bool:
    import pyarrow as pa

    kinds = (pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean, pa.types.is_decimal)
    return any(kind(arrow) for kind in kinds)


def _output_columns(
    predictor: Predictor, rows: Rows, names: Sequence[str], where: str, na: Sequence[str] | None
) -> dict[str, Any]:
    """The columns of the output."""
    import numpy as np

    shares: Sequence[Any]
    if rows.frame is not None:
        places = np.arange(rows.first, rows.first + rows.count)
        answers = answer_frame(predictor, rows.frame, where, na, places)
        codes, shares = _class_numbers(predictor, answers.labels), tuple(answers.probabilities.T)
    elif predictor.columns is not None:
        codes, shares = predictor.columns.answer(rows.columns, rows.count)
    else:
        matrix = np.column_stack([column for column in rows.columns if column is not None])
        answers = predictor.answer(matrix)
        codes, shares = _class_numbers(predictor, answers.labels), tuple(answers.probabilities.T)
    columns = [*rows.keys.values(), CodedColumn(codes, predictor.classes), *shares]
    return dict(zip(names, columns, strict=False))  # an artifact may output the label alone


def _class_numbers(predictor: Predictor, labels: NDArray[np.object_]) -> NDArray[np.int32]:
    import numpy as np

    number = {label: code for code, label in enumerate(predictor.classes)}
    try:
        return np.fromiter((number[label] for label in labels.tolist()), np.int32, len(labels))
    except (KeyError, TypeError) as error:
        raise BadInput(f"the artifact answered {error}, which is not one of its classes") from None


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
