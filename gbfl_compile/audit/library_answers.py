"""What a library's other functions said: probabilities, scores, leaves and reasons of a row, and whole batches.

Files that a foreign process has had in hand: one of another size than was made for it counts as not given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.audit.library_worker import BATCHES, NO_ANSWER
from gbfl_compile.audit.observed import NO_SCORE, Bits, Observed, clauses_held
from gbfl_compile.audit.witness_run import Asked
from gbfl_compile.ir.batch import Answers, evaluate_many
from gbfl_compile.ir.evaluate import winner
from gbfl_compile.ir.nodes import Leaf, Program, Split, Tree
from gbfl_compile.ir.trees import leaf_numbers, paths
from gbfl_compile.reasons import reasons_of

ROW_BY_ROW = ("predict_proba", "score", "explain")
"""Asked for one row after another."""

FUNCTIONS = tuple(f"{what}_{number}" for what in BATCHES for number in ("rows", "columns"))
"""In the order in which the worker asks them."""


def held_words(program: Program) -> int:
    """Words of 32 bits for the clauses, as the emitted C counts them."""
    return max(1, -(-len(program.clauses) // 32))


def prepare(folder: Path, asked: Asked) -> None:
    """Make the files that the worker fills, full of what no scorer answers."""
    rows, classes = len(asked.rows), len(asked.program.classes)
    np.full((rows, classes), np.nan).tofile(folder / "predict_proba.bin")
    np.zeros((rows, held_words(asked.program)), dtype=np.uint32).tofile(folder / "explain.bin")
    if not isinstance(asked.program.decision, Tree):
        np.full((rows, classes), NO_SCORE, dtype=np.int64).tofile(folder / "score.bin")
    for function in ROW_BY_ROW:
        np.full(rows, NO_ANSWER, dtype=np.int64).tofile(folder / f"{function}_returned.bin")


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
    probabilities = filled(folder / "predict_proba.bin", np.float64, shape)
    scores = filled(folder / "score.bin", np.int64, shape)
    return Observed(
        classes,
        None if probabilities is None or np.isnan(probabilities).all() else probabilities,
        None if scores is None or (scores == NO_SCORE).all() else scores,
    )


def functions_asked(folder: Path, asked: Asked, name: str) -> dict[str, str | None]:
    """Each other function that answered, and how it differs first from what was approved."""
    answers = evaluate_many(asked.program, asked.rows)
    found: dict[str, str | None] = {}
    for function, expected, given in (*_row_by_row(folder, asked, answers), *_batches(folder, asked, answers)):
        if given is None or (given.reshape(len(given), -1)[:, 0] == NO_ANSWER).all():
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
    return given.reshape(len(given), -1)[:, 0] != NO_ANSWER if function in ROW_BY_ROW else np.ones(len(given), bool)


Pairs: TypeAlias = Iterator[tuple[str, Any, NDArray[Any] | None]]
"""A function, what was approved, and what it answered."""


def _row_by_row(folder: Path, asked: Asked, answers: Answers) -> Pairs:
    """The class that a function returns beside what it fills; of `explain` also the clauses that held, as bits."""
    rows, words = len(asked.rows), held_words(asked.program)
    for function in ("predict_proba", "score"):
        returned = filled(folder / f"{function}_returned.bin", np.int64, (rows,))
        yield function, asked.approved.classes, returned
    returned = filled(folder / "explain_returned.bin", np.int64, (rows,))
    bits = filled(folder / "explain.bin", np.uint32, (rows, words))
    held = _held(asked, answers)
    packed = np.packbits(held, axis=1, bitorder="little")
    told = np.zeros((rows, words * 4), dtype=np.uint8)
    told[:, : packed.shape[1]] = packed
    first = held.sum(axis=1) if answers.leaves is None else answers.leaves
    given = None if returned is None or bits is None else np.column_stack([returned, bits.astype(np.int64)])
    yield "explain", np.column_stack([first, told.view("<u4").astype(np.int64)]), given


def _held(asked: Asked, answers: Answers) -> Bits:
    """The clauses that are said to have held: of a tree those on the way."""
    tree = asked.program.decision
    if not isinstance(tree, Tree) or answers.leaves is None:
        return clauses_held(asked.program, asked.rows)
    ways = paths(tree)
    told = np.zeros((len(leaf_numbers(tree)), len(asked.program.clauses)), dtype=bool)
    for number, index in enumerate(leaf_numbers(tree)):
        for above, held in ways[index]:
            node = tree.nodes[above]
            if held and isinstance(node, Split):
                told[number, node.clause] = True
    return told[answers.leaves]


def _batches(folder: Path, asked: Asked, answers: Answers) -> Pairs:
    expected = {"predict": asked.approved.classes, "leaf": answers.leaves, "score": answers.scores}
    for function in FUNCTIONS:
        approved = expected[function.partition("_")[0]]
        if approved is not None:
            dtype = np.int64 if function.startswith("score") else np.int32
            yield function, approved, filled(folder / f"{function}.bin", dtype, approved.shape)


def tables_told(program: Program, told: Mapping[str, Any], name: str) -> dict[str, str | None]:
    """What a library says of itself apart from rows: which features it uses, its leaves, its reasons."""
    own = reasons_of(program)
    asked = {atom.feature for clause in program.clauses for atom in clause.atoms}
    approved: dict[str, list[Any]] = {
        "uses": [feature in asked for feature in range(len(program.features))],
        "label_kind": [{str: "s", bool: "b", int: "i", float: "f"}[type(program.classes[0])]],
        "reason": [own.get(clause) for clause in range(len(program.clauses))],
    }
    if isinstance(program.decision, Tree):
        leaves = [node for node in program.decision.nodes if isinstance(node, Leaf)]
        shares = [[float(share).hex() for share in leaf.probabilities] for leaf in leaves]
        approved["leaf"] = [
            [-1],
            *([winner(leaf.probabilities), *each] for leaf, each in zip(leaves, shares, strict=True)),
            [-1],
        ]
    found: dict[str, str | None] = {}
    for function, wanted in approved.items():
        listed = told.get(function)
        if not isinstance(listed, list) or not listed:
            continue
        place = next((i for i, one in enumerate(wanted) if i >= len(listed) or listed[i] != one), None)
        number = None if place is None else place - (function == "leaf")
        given = None if place is None or place >= len(listed) else listed[place]
        found[f"{name}_{function}"] = (
            None if place is None else f"of {number}: {wanted[place]} is answered {str(given)[:500]}"
        )
    return found
