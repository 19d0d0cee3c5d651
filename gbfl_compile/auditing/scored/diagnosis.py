"""The slip that explains a scored table: inferred from some of its rows, then held against all of them.

Rows that the first guess does not fit are added to those it was made from, and the next guess must fit them too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.auditing.answers import RowAnswers
from gbfl_compile.auditing.diagnose.diagnosis import Explanation, explain
from gbfl_compile.auditing.scored.compare import Answerer, answer_batch, matrix_of
from gbfl_compile.auditing.scored.source import Batch, rows_of
from gbfl_compile.auditing.verdict import Change
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.nodes import Program

ROWS_KEPT = 2000
MISFITS_KEPT = 500
ROUNDS = 4
LEAST_EXPLAINED = 5
"""Fewer wrong rows could be anything, and some bound would fit them by chance: only a sign is told of them."""

MOSTLY = 20
"""A slip is told though it does not fit all rows, where it leaves no more than one in so many of the differing ones."""


@dataclass(slots=True)
class RowSample:
    """Some rows with the classes they have: what an explanation must fit."""

    features: tuple[str, ...]
    parts: list[tuple[Matrix, NDArray[np.int64]]] = field(default_factory=list)
    agreeing: int = field(default_factory=lambda: ROWS_KEPT)
    """How many more are kept that agree."""
    differing: int = field(default_factory=lambda: ROWS_KEPT)
    """How many more are kept that differ."""

    def add(self, batch: Batch, deployed: NDArray[np.int64], places: NDArray[np.intp]) -> None:
        """Keep these rows."""
        if len(places) and self.features:
            self.parts.append((matrix_of(rows_of(batch, places), self.features), deployed[places]))

    def add_some(self, batch: Batch, deployed: NDArray[np.int64], differing: NDArray[np.intp]) -> None:
        """Keep the first rows of both sorts, while there is room."""
        some = np.arange(min(batch.count, 2 * ROWS_KEPT)) if self.agreeing else differing[:0]
        agreeing = np.setdiff1d(some, differing)[: self.agreeing]
        differing = differing[: self.differing]
        self.agreeing -= len(agreeing)
        self.differing -= len(differing)
        self.add(batch, deployed, np.concatenate([agreeing, differing]))

    def all(self) -> tuple[Matrix, NDArray[np.int64]]:
        """The rows and their classes."""
        rows, classes = zip(*self.parts, strict=True)
        return np.concatenate(rows), np.concatenate(classes)


def explain_table(
    program: Program,
    sample: RowSample,
    rows: int,
    different: int,
    again: Callable[[], Iterator[tuple[Batch, NDArray[np.int64]]]],
) -> tuple[Change, ...]:
    """The slip that fits all rows, or all but a few; `again` reads the table once more, with its classes."""
    best: tuple[int, Explanation] | None = None
    for _ in range(ROUNDS if sample.parts else 0):
        seen, classes = sample.all()
        explanation = explain(program, seen, RowAnswers(classes), only_signs=different < LEAST_EXPLAINED)
        if explanation is None:
            break
        misfits = 0 if len(seen) == rows else _misfits(explanation.slip.program, sample, again())
        if best is None or misfits < best[0]:
            best = misfits, explanation
        if not misfits:
            break
    if best is None or best[0] * MOSTLY > different:
        return ()
    fits = f"all {rows:,} rows" if not best[0] else f"all but {best[0]:,} of the {rows:,} rows"
    return best[1].changes(fits)


def _misfits(guess: Program, sample: RowSample, batches: Iterator[tuple[Batch, NDArray[np.int64]]]) -> int:
    """How many rows have another class than the guess gives them; some of them are kept."""
    by, count, room = Answerer(guess), 0, MISFITS_KEPT
    for batch, deployed in batches:
        places = np.flatnonzero(answer_batch(by, batch).classes != deployed)
        count += len(places)
        sample.add(batch, deployed, places[:room])
        room -= len(places[:room])
    return count
