"""The answers of a library's other functions: probabilities, scores, leaves and reasons of a row, and whole batches.

A foreign process could write to these files: one whose size has changed counts as missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.auditing.answers import NO_SCORE, Bits, RowAnswers, clauses_held
from gbfl_compile.auditing.scorer import WitnessInput
from gbfl_compile.auditing.scorer.library_worker import BATCHES, NO_ANSWER, ROUNDS
from gbfl_compile.checking.run import PROBABILITY_BOUND
from gbfl_compile.ir.batch import Answers, evaluate_many
from gbfl_compile.ir.kinds import codebook
from gbfl_compile.ir.nodes import Leaf, Program, Split, Tree, leaf_numbers, paths
from gbfl_compile.ir.text import reasons_of

ROW_BY_ROW = ("predict_proba", "score", "explain")
"""Asked for one row after another."""

FUNCTIONS = tuple(f"{what}_{number}" for what in BATCHES for number in ("rows", "columns"))
"""In the order in which the worker calls them."""


def held_words(program: Program) -> int:
    """Words of 32 bits for the clauses, as the emitted C counts them."""
    return max(1, -(-len(program.clauses) // 32))


def prepare(folder: Path, inputs: WitnessInput) -> None:
    """Create the files that the worker fills, initialised with a value that no scorer answers."""
    rows, classes = len(inputs.rows), len(inputs.program.classes)
    np.full((rows, classes), np.nan).tofile(folder / "predict_proba.bin")
    np.zeros((rows, held_words(inputs.program)), dtype=np.uint32).tofile(folder / "explain.bin")
    if not isinstance(inputs.program.decision, Tree):
        np.full((rows, classes), NO_SCORE, dtype=np.int64).tofile(folder / "score.bin")
    for function in ROW_BY_ROW:
        np.full(rows, NO_ANSWER, dtype=np.int64).tofile(folder / f"{function}_returned.bin")


def read_numbers(path: Path, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any] | None:
    """What is in a file, or None where it is not there or not of this size."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer(content, dtype).reshape(shape).copy() if len(content) == size else None


def row_answers(folder: Path, inputs: WitnessInput, classes: NDArray[np.int64]) -> RowAnswers:
    """The answers row by row. A function that was never called is not there, whatever its file holds."""
    shape = len(inputs.rows), len(inputs.program.classes)
    return RowAnswers(
        classes,
        _beside(folder, "predict_proba", np.float64, shape, np.nan),
        _beside(folder, "score", np.int64, shape, NO_SCORE),
    )


def _beside(folder: Path, function: str, dtype: Any, shape: tuple[int, ...], nothing: float) -> NDArray[Any] | None:
    """What a function filled beside what it returned; a file that was spoiled holds no answer."""
    returned = read_numbers(folder / f"{function}_returned.bin", np.int64, shape[:1])
    if returned is None or (returned == NO_ANSWER).all():
        return None
    filled = read_numbers(folder / f"{function}.bin", dtype, shape)
    return np.full(shape, nothing, dtype=dtype) if filled is None else filled


def function_findings(folder: Path, inputs: WitnessInput, name: str) -> dict[str, str | None]:
    """Each other function that answered, and how it differs first from what was approved."""
    answers = evaluate_many(inputs.program, inputs.rows)
    findings: dict[str, str | None] = {}
    for function, expected, actual in (*_row_by_row(folder, inputs, answers), *_batches(folder, inputs, answers)):
        if actual is None or (function in ROW_BY_ROW and not _answered_rows(function, actual).any()):
            continue
        wrong = np.flatnonzero(
            (expected != actual).reshape(len(expected), -1).any(axis=1) & _answered_rows(function, actual)
        )
        findings[f"{name}_{function}"] = (
            f"witness {wrong[0] + 1}: {expected[wrong[0]].tolist()} is answered {actual[wrong[0]].tolist()}"
            if len(wrong)
            else None
        )
    return findings


def _answered_rows(function: str, actual: NDArray[Any]) -> NDArray[np.bool_]:
    """A batch answers all of its rows; a run over single rows may have been stopped before the last."""
    return actual.reshape(len(actual), -1)[:, 0] != NO_ANSWER if function in ROW_BY_ROW else np.ones(len(actual), bool)


Pairs: TypeAlias = Iterator[tuple[str, Any, NDArray[Any] | None]]
"""A function, what was approved, and what it answered."""


def _row_by_row(folder: Path, inputs: WitnessInput, answers: Answers) -> Pairs:
    """The class that a function returns beside what it fills; of `explain` also the clauses that held, as bits."""
    rows, words = len(inputs.rows), held_words(inputs.program)
    for function in ("predict_proba", "score"):
        returned = read_numbers(folder / f"{function}_returned.bin", np.int64, (rows,))
        yield function, inputs.approved.classes, returned
    returned = read_numbers(folder / "explain_returned.bin", np.int64, (rows,))
    bits = read_numbers(folder / "explain.bin", np.uint32, (rows, words))
    held = _true_clauses(inputs, answers)
    packed = np.packbits(held, axis=1, bitorder="little")
    padded = np.zeros((rows, words * 4), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    first = held.sum(axis=1) if answers.leaves is None else answers.leaves
    actual = None if returned is None or bits is None else np.column_stack([returned, bits.astype(np.int64)])
    yield "explain", np.column_stack([first, padded.view("<u4").astype(np.int64)]), actual


def _true_clauses(inputs: WitnessInput, answers: Answers) -> Bits:
    """The clauses that the library reports as having held; for a tree, those on the path."""
    tree = inputs.program.decision
    if not isinstance(tree, Tree) or answers.leaves is None:
        return clauses_held(inputs.program, inputs.rows)
    ways = paths(tree)
    by_leaf = np.zeros((len(leaf_numbers(tree)), len(inputs.program.clauses)), dtype=bool)
    for number, index in enumerate(leaf_numbers(tree)):
        for above, held in ways[index]:
            node = tree.nodes[above]
            if held and isinstance(node, Split):
                by_leaf[number, node.clause] = True
    return by_leaf[answers.leaves]


def _batches(folder: Path, inputs: WitnessInput, answers: Answers) -> Pairs:
    """What is filled for many rows, round by round. A file that is there was filled: nothing in it is no answer."""
    expected = {"predict": inputs.approved.classes, "leaf": answers.leaves, "score": answers.scores}
    for function in (f"{function}{words}" for function in FUNCTIONS for words in ROUNDS):
        approved = expected[function.partition("_")[0]]
        if approved is not None:
            dtype = np.int64 if function.startswith("score") else np.int32
            yield function, approved, read_numbers(folder / f"{function}.bin", dtype, approved.shape)
    if answers.scores is not None:
        filled = read_numbers(folder / "probabilities.bin", np.float64, answers.probabilities.shape)
        bound = 0.0 if inputs.program.has_exact_probabilities else PROBABILITY_BOUND
        if filled is not None:
            near = np.abs(answers.probabilities - filled) <= bound  # False for NaN
            yield "probabilities", answers.probabilities, np.where(near, answers.probabilities, filled)


def table_findings(inputs: WitnessInput, report: Mapping[str, Any], name: str) -> dict[str, str | None]:
    """What a library says of itself apart from rows: which features it uses, kinds, codes, its leaves, its reasons."""
    program = inputs.program
    own = reasons_of(program)
    used = {atom.feature for clause in program.clauses for atom in clause.atoms}
    approved: dict[str, list[Any]] = {
        "uses": [feature in used for feature in range(len(program.features))],
        "label_kind": [{str: "s", bool: "b", int: "i", float: "f"}[type(program.classes[0])]],
        "reason": [own.get(clause) for clause in range(len(program.clauses))],
        "selftest": [0],
    }
    if program.kinds:
        book = codebook(program)
        approved["kind"] = [kind[0] for kind in program.kinds]
        approved["code"] = [
            [book.code(feature, text) for text in inputs.book.texts[feature]]
            for feature, kind in enumerate(program.kinds)
            if kind == "category"
        ]
    if isinstance(program.decision, Tree):
        leaves = [node for node in program.decision.nodes if isinstance(node, Leaf)]
        shares = [[float(share).hex() for share in leaf.probabilities] for leaf in leaves]
        approved["leaf"] = [
            [-1],
            *([leaf.winner, *each] for leaf, each in zip(leaves, shares, strict=True)),
            [-1],
        ]
    findings: dict[str, str | None] = {}
    for function, expected in approved.items():
        listed = report.get(function)
        if not isinstance(listed, list) or not listed:
            continue
        place = next((i for i, one in enumerate(expected) if i >= len(listed) or listed[i] != one), None)
        number = None if place is None else place - (function == "leaf")
        actual = None if place is None or place >= len(listed) else listed[place]
        findings[f"{name}_{function}"] = (
            None if place is None else f"of {number}: {expected[place]} is answered {str(actual)[:500]}"
        )
    return findings
