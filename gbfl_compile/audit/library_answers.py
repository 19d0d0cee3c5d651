"""What a library's other functions said: probabilities, scores and leaves of a row, and whole batches.

Files that a foreign process has had in hand: one of another size than was made for it counts as not given.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.audit.library_worker import BATCHES, NO_ANSWER
from gbfl_compile.audit.observed import NO_SCORE, Observed
from gbfl_compile.audit.witness_run import Asked
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.nodes import Tree

FUNCTIONS = tuple(f"{what}_{number}" for what in BATCHES for number in ("rows", "columns"))
"""In the order in which the worker asks them."""


def prepare(folder: Path, asked: Asked) -> None:
    """Make the files that the worker fills, full of what no scorer answers."""
    shape = len(asked.rows), len(asked.program.classes)
    np.full(shape, np.nan).tofile(folder / "probabilities.bin")
    if isinstance(asked.program.decision, Tree):
        np.full(shape[0], NO_ANSWER, dtype=np.int64).tofile(folder / "leaves.bin")
    else:
        np.full(shape, NO_SCORE, dtype=np.int64).tofile(folder / "scores.bin")


def filled(path: Path, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any] | None:
    """What stands in a file, or None where it is not there or not of this size."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer(content, dtype).reshape(shape).copy() if len(content) == size else None


def observed(folder: Path, asked: Asked, classes: NDArray[np.int64]) -> Observed:
    """The answers row by row; a function that answered no row at all is not there."""
    shape = len(asked.rows), len(asked.program.classes)
    probabilities = filled(folder / "probabilities.bin", np.float64, shape)
    scores = filled(folder / "scores.bin", np.int64, shape)
    return Observed(
        classes,
        None if probabilities is None or np.isnan(probabilities).all() else probabilities,
        None if scores is None or (scores == NO_SCORE).all() else scores,
    )


def functions_asked(folder: Path, asked: Asked, name: str) -> dict[str, str | None]:
    """Each other function that answered, and how it differs first from what was approved."""
    answers = evaluate_many(asked.program, asked.rows)
    found: dict[str, str | None] = {}
    for function, expected, given in _pairs(folder, asked, answers.leaves, answers.scores):
        if given is None or (given == NO_ANSWER).all():
            continue
        wrong = np.flatnonzero((expected != given).reshape(len(expected), -1).any(axis=1) & _ran(function, given))
        found[f"{name}_{function}"] = (
            f"witness {wrong[0] + 1}: {expected[wrong[0]].tolist()} is answered {given[wrong[0]].tolist()}"
            if len(wrong)
            else None
        )
    return found


def _ran(function: str, given: NDArray[Any]) -> NDArray[np.bool_]:
    """A batch answers all of its rows; one row after another may have been stopped."""
    return given != NO_ANSWER if function == "explain" else np.ones(len(given), dtype=bool)


def _pairs(folder: Path, asked: Asked, leaves: Any, scores: Any) -> Iterator[tuple[str, Any, NDArray[Any] | None]]:
    rows = len(asked.rows)
    expected = {"predict": asked.approved.classes, "leaf": leaves, "score": scores}
    if leaves is not None:
        yield "explain", leaves, filled(folder / "leaves.bin", np.int64, (rows,))
    for function in FUNCTIONS:
        what = function.partition("_")[0]
        if expected[what] is not None:
            dtype = np.int64 if what == "score" else np.int32
            yield function, expected[what], filled(folder / f"{function}.bin", dtype, expected[what].shape)
