"""Compares a table that was scored earlier with the approved program, row by row: "checked on n rows", never "proved".

A value that is NULL or NaN is missing. How labels are compared: see `auditing/answers.py`. A missing label is a
difference. Rows are numbered from 1 in the order of the file, or as the database gave them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.auditing.answers import as_json, class_finder, json_number, kind_of
from gbfl_compile.auditing.scored.compare import (
    Answerer,
    BatchAnswers,
    DifferenceFile,
    KeyCount,
    RowSample,
    answer_batch,
    approved_probabilities,
    difference_file,
    explain_table,
    key_at,
    key_problem,
    key_text,
    matrix,
    probability_columns,
    with_used_features,
    wrong_probabilities,
    wrong_scorer,
)
from gbfl_compile.auditing.scored.drift import add_to_drift, drift_summary, nothing_counted
from gbfl_compile.auditing.scored.source import (
    Batch,
    Source,
    columns_to_read,
    fingerprint_beside,
    labels_held,
    name_source,
    part_of,
    source_batches,
    source_name,
)
from gbfl_compile.auditing.scored.values import row_encoder
from gbfl_compile.auditing.story import RowMoves
from gbfl_compile.auditing.verdict import Change, DeployedVerdict, Region, value_form
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Label, Program

ROWS_SHOWN = 10
MOVES_SHOWN = 20
MOVES_KEPT = 1000
"""Distinct moves that are listed. A column that holds no labels could have one per row."""

OTHERS = "(other labels)"


@dataclass(slots=True)
class Tally:
    """The counts so far."""

    rows: int = 0
    different: int = 0
    """Rows on which anything differs that was compared."""
    labels: int = 0
    """Rows on which the label does."""
    probabilities: int = 0
    """Rows on which the probabilities do, where they were compared."""
    moves: Counter[tuple[Any, Any]] = field(default_factory=Counter)
    shown: list[dict[str, Any]] = field(default_factory=list)
    stored: Any = None
    """The first label that was not missing, as it is held."""
    keys: KeyCount = field(default_factory=lambda: KeyCount(()))
    file: DifferenceFile = field(default_factory=DifferenceFile)


@dataclass(frozen=True, slots=True)
class ScoredOptions:
    """What to compare besides labels, and how to name a row."""

    drift: bool = False
    """The same pass counts drift."""
    probabilities: bool = False
    """The columns `p_<class>` are compared too."""
    tolerance: float = 0.0
    """How far a probability may be off, where they were rounded."""
    keys: tuple[str, ...] = ()
    """The columns that name a row: missing and duplicated keys are a difference."""
    differences: Path | None = None
    """A CSV file for all differing rows."""


def audit_scored(
    program: Program,
    source: Source,
    label_column: str | None = None,
    columns: Mapping[str, str] | None = None,
    *,
    schema: str = "",
    options: ScoredOptions | None = None,
    names: tuple[Label, ...] | None = None,
) -> DeployedVerdict:
    """Compare the labels in a table with what the program answers on its rows.

    `columns` maps a feature to its column where they are called differently; only features that some clause tests
    must be in it. `names` are the classes that the columns `p_<class>` name, where the program's are labels as they
    are deployed.
    """
    options = options or ScoredOptions()
    encoder = row_encoder(program)
    by, tally = Answerer(with_used_features(program), encoder=encoder), Tally(keys=KeyCount(options.keys))
    beside = probability_columns(program, names) if options.probabilities else ()
    choice = columns_to_read(
        program,
        by.program.features,
        source,
        label_column,
        columns,
        schema,
        options.drift,
        beside,
        options.keys,
        encoder,
    )
    sample = RowSample(by.program.features)

    def batches() -> Iterator[tuple[Batch, NDArray[np.int64]]]:
        return _with_classes(program, source, source_batches(source, choice, schema, encoder))

    with fingerprint_beside(source) as fingerprint:
        try:
            with difference_file(options.differences, options.keys, by.program.features) as tally.file:
                drift = _compare_batches(program, batches(), by, tally, sample, options, beside)
            changes = explain_table(by, sample, tally.rows, tally.labels, batches) if tally.labels else ()
        except BadInput as error:
            raise name_source(source, error) from None
        return _verdict(program, source, schema, by, tally, changes, drift, fingerprint(), options)


def _with_classes(
    program: Program, source: Source, batches: Iterator[Batch]
) -> Iterator[tuple[Batch, NDArray[np.int64]]]:
    """Batch after batch with the number of the class that each row was given."""
    class_number = class_finder(program.classes, labels_held(source))
    for batch in batches:
        of_distinct = np.array([class_number(value) for value in batch.labels.distinct], dtype=np.int64)
        yield batch, of_distinct[batch.labels.codes]


def _compare_batches(
    program: Program,
    batches: Iterator[tuple[Batch, NDArray[np.int64]]],
    by: Answerer,
    tally: Tally,
    sample: RowSample,
    options: ScoredOptions,
    probabilities: tuple[str, ...],
) -> dict[str, Any] | None:
    """Compare batch after batch; the drift, if it is to be counted."""
    counts = nothing_counted(program)
    for batch, deployed in batches:
        answers = answer_batch(by, batch)
        tally.keys.add(batch)
        _compare(by, tally, sample, batch, answers, deployed)
        if probabilities:
            _compare_probabilities(by, tally, batch, answers, deployed, probabilities, options.tolerance)
        if options.drift:
            add_to_drift(counts, program, batch, answers, deployed, by.encoder)
    return drift_summary(program, counts) if options.drift else None


def _compare(by: Answerer, tally: Tally, sample: RowSample, batch: Batch, answers: BatchAnswers, deployed: Any) -> None:
    tally.rows += batch.count
    if tally.stored is None:
        tally.stored = next((value for value in batch.labels.distinct if value is not None), None)
    places = np.flatnonzero(deployed != answers.classes)
    sample.add_some(batch, deployed, places)
    if not len(places):
        return
    tally.different += len(places)
    tally.labels += len(places)
    pairs = np.stack([answers.classes[places], batch.labels.codes[places]], axis=1)
    for (approved, code), count in zip(*np.unique(pairs, axis=0, return_counts=True), strict=True):
        move = (by.program.classes[approved], as_json(batch.labels.distinct[code]))
        known = move in tally.moves or len(tally.moves) < MOVES_KEPT
        tally.moves[move if known else (move[0], OTHERS)] += int(count)
    for place in _places_to_list(tally, places):
        _list(tally, _row_form(by, batch, answers, place))


def _places_to_list(tally: Tally, places: NDArray[np.intp]) -> list[int]:
    """All differing rows if there is a file for them, otherwise those that are shown."""
    listed: list[int] = (places if tally.file.writer is not None else places[: ROWS_SHOWN - len(tally.shown)]).tolist()
    return listed


def _list(tally: Tally, form: dict[str, Any]) -> None:
    tally.file.add(form)
    if len(tally.shown) < ROWS_SHOWN:
        tally.shown.append(form)


def _compare_probabilities(
    by: Answerer,
    tally: Tally,
    batch: Batch,
    answers: BatchAnswers,
    deployed: Any,
    names: tuple[str, ...],
    tolerance: float,
) -> None:
    """Rows with other probabilities; those whose label differs too are counted and shown already."""
    wrong = wrong_probabilities(by.program, batch, answers, names, tolerance)
    tally.probabilities += int(wrong.sum())
    alone = np.flatnonzero(wrong & (deployed == answers.classes))
    tally.different += len(alone)
    for place in _places_to_list(tally, alone):
        deployed_row, approved = (
            matrix(part_of(batch, place, 1), names)[0],
            approved_probabilities(by.program, answers)[place],
        )
        beside = {
            "approved_probabilities": approved.tolist(),
            "deployed_probabilities": list(map(json_number, deployed_row.tolist())),
        }
        _list(tally, {**_row_form(by, batch, answers, place), **beside})


def _row_form(by: Answerer, batch: Batch, answers: BatchAnswers, place: int) -> dict[str, Any]:
    """A differing row in full. What was approved for it is decided by `evaluate`, the definition."""
    program = by.program
    row: list[Any] = matrix(part_of(batch, place, 1), program.features)[0].tolist() if program.features else []
    if by.encoder is not None:
        row = [by.encoder.value(name, value) for name, value in zip(program.features, row, strict=True)]
    approved = evaluate(program, row).label
    if approved != program.classes[answers.classes[place]]:
        raise wrong_scorer(by.engine)
    key = {} if batch.keys is None else {"key": key_at(batch, place)}
    return key | {
        "row_number": batch.first + place + 1,
        "row": {name: value_form(value) for name, value in zip(program.features, row, strict=True)},
        "approved": approved,
        "deployed": as_json(batch.labels.distinct[int(batch.labels.codes[place])]),
    }


def _verdict(
    program: Program,
    source: Source,
    schema: str,
    by: Answerer,
    tally: Tally,
    changes: tuple[Change, ...],
    drift: dict[str, Any] | None,
    fingerprint: str | None,
    options: ScoredOptions,
) -> DeployedVerdict:
    keys = tally.keys.summary()
    problem = key_problem(keys)
    moves = RowMoves(
        tally.labels, tally.rows, tuple((*move, count) for move, count in tally.moves.most_common(MOVES_SHOWN))
    )
    engine = by.engine if isinstance(source, Path) else f"{by.engine}; rows from {source[0].version}"
    return DeployedVerdict(
        what=source_name(source, schema),
        kind="scored table",
        verdict="not run" if tally.rows == 0 else "different" if tally.different or problem else "equal",
        reason="it has no rows"
        if tally.rows == 0
        else "; ".join(filter(None, (problem, _reason(program, tally)))) or None,
        fingerprint=fingerprint,
        engine=engine,
        checked_rows=tally.rows,
        different_rows=tally.different,
        changes=changes,
        region=_region(program, tally),
        moves=moves if tally.labels else None,
        compared=_compared_text(tally, options),
        keys=keys,
        first_different_rows=tuple(tally.shown),
        drift=drift,
    )


def _compared_text(tally: Tally, options: ScoredOptions) -> str:
    text = f"labels, {tally.labels or 'none'} different"
    if not options.probabilities:
        return text
    within = f" by more than {options.tolerance:g}" if options.tolerance else ""
    return f"{text}; probabilities, {tally.probabilities or 'none'} different{within}"


def _region(program: Program, tally: Tally) -> Region | None:
    """The first differing row as a region of one point: rows do not show how far a difference reaches."""
    if not tally.shown:
        return None
    first = tally.shown[0]
    numbers = {name for feature, name in enumerate(program.features) if program.kind(feature) == "number"}
    row = {
        name: float(value) if name in numbers and value is not None else value for name, value in first["row"].items()
    }
    rule = key_text(first["key"]) if "key" in first else f"the row is number {first['row_number']:,}"
    return Region(rule, row, first["approved"], first["deployed"])


def _reason(program: Program, tally: Tally) -> str | None:
    """One line on the first difference; labels of another kind explain all of them at once."""
    if not tally.different:
        return None
    expected, stored = kind_of(program.classes[0]), kind_of(tally.stored)
    if tally.labels == tally.rows and stored != expected and tally.stored is not None:
        kinds = {"text": "text", "number": "numbers", "truth": "truth values", None: "no kind of label"}
        example = f"{as_json(tally.stored)!r} is none of {', '.join(map(repr, program.classes[:5]))}"
        return f"its labels are {kinds[stored]}, the program's are {kinds[expected]}: {example}"
    first = tally.shown[0]
    if "deployed_probabilities" in first:
        beside = f"{first['approved_probabilities']} are deployed as {first['deployed_probabilities']}"
        return f"row {first['row_number']:,}: the probabilities {beside}"
    return f"row {first['row_number']:,}: {first['approved']!r} is deployed as {first['deployed']!r}"
