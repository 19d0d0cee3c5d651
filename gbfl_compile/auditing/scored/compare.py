"""The rows of a scored table against the program, batch by batch, and the one slip that explains those that differ.

A slip is inferred from some of the rows and then compared with all of them. Rows that the first guess does not fit are
added to those it was made from, and the next guess must fit them too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.auditing.answers import Bits, RowAnswers, differing, leaf_classes
from gbfl_compile.auditing.diagnose import Explanation, explain
from gbfl_compile.auditing.scored.source import Batch, part_of, rows_of
from gbfl_compile.auditing.scored.values import RowEncoder
from gbfl_compile.auditing.verdict import Change
from gbfl_compile.backends import emit
from gbfl_compile.backends.c.inputs import Columns, as_input
from gbfl_compile.checking.artifact import prove_artifact
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.files.atomic import temporary_folder
from gbfl_compile.ir.batch import Matrix, evaluate_many, score_probabilities
from gbfl_compile.ir.kinds import Codebook
from gbfl_compile.ir.nodes import Clause, Label, Leaf, Program, Tree

if TYPE_CHECKING:
    from gbfl_compile.backends.c.scorer import Scorer
import csv
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path

from gbfl_compile.files.atomic import whole_file

BUILD_AFTER = 200_000
"""Rows after which a build pays: `evaluate_many` needs about as long for them."""

BUILD_AFTER_ATOMS = 20_000_000
"""The same in rows times atoms, for large programs."""

CHECKED_ROWS = 10_000
"""This many rows of a batch are answered by both before the C scorer is trusted."""

PROOF_SECONDS = 5.0

REFERENCE = "evaluate_many"


@dataclass(frozen=True, slots=True)
class BatchAnswers:
    """A batch's answers: what decided (leaves, or points per class), and the class it gives."""

    decided: NDArray[np.int64]
    classes: NDArray[np.int64]


@dataclass(slots=True)
class Answerer:
    """Answers batches, in C once enough rows have come to pay for a build."""

    program: Program
    """With the features that a clause tests, and no others."""
    engine: str = REFERENCE
    encoder: RowEncoder | None = None
    """What turned words and dates into doubles, if there are any."""
    scorer: Scorer | None = None
    tried: bool = False

    @property
    def book(self) -> Codebook | None:
        """The codes of the rows' texts so far; None where there are none."""
        return None if self.encoder is None else self.encoder.book(self.program.features)


def with_used_features(program: Program) -> Program:
    """The same program over the features that some clause tests."""
    used = sorted({atom.feature for clause in program.clauses for atom in clause.atoms})
    place = {feature: number for number, feature in enumerate(used)}
    clauses = tuple(
        Clause(tuple(replace(atom, feature=place[atom.feature]) for atom in clause.atoms)) for clause in program.clauses
    )
    names = tuple(program.features[feature] for feature in used)
    kinds = tuple(program.kinds[feature] for feature in used) if program.kinds else ()
    return Program(names, program.classes, clauses, program.decision, kinds=kinds)


def answer_batch(by: Answerer, batch: Batch) -> BatchAnswers:
    """What the program answers on a batch."""
    if not by.program.features:
        return _by_reference(by, np.empty((batch.count, 0)))
    if not by.tried and batch.first + batch.count > _build_after(by.program):
        by.tried = True
        _build(by, batch)
    if by.scorer is None:
        return _by_reference(by, matrix(batch, by.program.features))
    return _by_scorer(by.program, by.scorer, batch)


def _build_after(program: Program) -> int:
    atoms = sum(len(clause.atoms) for clause in program.clauses)
    return min(BUILD_AFTER, BUILD_AFTER_ATOMS // max(1, atoms))


def matrix(batch: Batch, features: tuple[str, ...]) -> Matrix:
    """These columns of a batch as doubles, side by side."""
    return matrix_of(batch.table, features) if features else np.empty((batch.count, 0))


def matrix_of(table: Any, features: tuple[str, ...]) -> Matrix:
    """These columns of a table with names, at least one."""
    taken = as_input(table, features, (True,) * len(features), np.dtype(np.float64))
    assert isinstance(taken, Columns)  # noqa: S101 - a table with names
    return np.column_stack([column for column in taken.values if column is not None])


def _by_reference(by: Answerer, rows: Matrix) -> BatchAnswers:
    program = by.program
    answers = evaluate_many(program, rows, by.book)
    if answers.leaves is not None:
        return _with_classes(program, answers.leaves)
    assert answers.scores is not None  # noqa: S101 - a program without leaves has scores
    return _with_classes(program, answers.scores)


def _by_scorer(program: Program, scorer: Scorer, batch: Batch) -> BatchAnswers:
    return _with_classes(program, scorer.score(batch.table))


def _with_classes(program: Program, decided: NDArray[Any]) -> BatchAnswers:
    """Ties go to the lower class, as argmax has it."""
    if isinstance(program.decision, Tree):
        of_leaf = leaf_classes(program.decision)
        return BatchAnswers(decided, of_leaf[decided])
    return BatchAnswers(decided, decided.argmax(axis=1))


def wrong_scorer(engine: str) -> CannotRun:
    """An error that names the compiler or the tool that built the scorer."""
    return CannotRun(f"what {engine} built does not give its program's answers: name another compiler in CC")


def _build(by: Answerer, batch: Batch) -> None:
    from gbfl_compile.backends.c import available, load_scorer

    if available().cannot_run is not None or by.encoder is not None:  # codes of the table's texts are not the scorer's
        return
    with temporary_folder("audit") as folder:
        try:
            files = emit(by.program, "c", "approved").files
            if prove_artifact(by.program, "c", files, PROOF_SECONDS).answer != "proved":
                return
            for name, content in files.items():
                (folder / name).write_bytes(content)
            scorer = load_scorer(folder / "approved.c")
        except (BadInput, CannotRun):
            return  # the reference answers the same, and slower
    some = part_of(batch, 0, CHECKED_ROWS)
    expected = _by_reference(by, matrix(some, by.program.features))
    if not np.array_equal(expected.decided, _by_scorer(by.program, scorer, some).decided):
        raise wrong_scorer(scorer.engine)
    by.scorer, by.engine = scorer, f"C scorer, its text proved, {scorer.engine}"


def probability_columns(program: Program, classes: Sequence[Label] | None = None) -> tuple[str, ...]:
    """The columns, one per class; `classes` are the approved names, where the labels are deployed otherwise."""
    names = tuple(f"p_{label}" for label in (program.classes if classes is None else classes))
    if taken := next((name for name in names if name in program.features), None):
        raise BadInput(
            f"the program has a feature {taken!r}: its column does not hold a probability: leave out --probabilities"
        )
    return names


def approved_probabilities(program: Program, answers: BatchAnswers) -> Matrix:
    """What the program gives the rows of a batch."""
    card = program.decision
    if not isinstance(card, Tree):
        return score_probabilities(card, answers.decided)
    table = np.array([node.probabilities for node in card.nodes if isinstance(node, Leaf)], dtype=np.float64)
    probabilities: Matrix = table[answers.decided]
    return probabilities


def wrong_probabilities(
    program: Program, batch: Batch, answers: BatchAnswers, names: tuple[str, ...], tolerance: float = 0.0
) -> Bits:
    """The rows whose probabilities are not the approved ones: not the same, or for a rule set not within the bound.

    With a tolerance, those that are further off than that: a missing probability is.
    """
    approved = RowAnswers(answers.classes, approved_probabilities(program, answers))
    if tolerance:
        assert approved.probabilities is not None  # noqa: S101 - given above
        with np.errstate(invalid="ignore"):
            near = np.abs(approved.probabilities - matrix(batch, names)) <= tolerance
        return np.asarray(~near.all(axis=1), dtype=np.bool_)
    return differing(program, approved, RowAnswers(answers.classes, matrix(batch, names)))["probabilities"]


ROWS_KEPT = 2000
MISFITS_KEPT = 500
ROUNDS = 4
LEAST_EXPLAINED = 5
"""Fewer wrong rows could be anything, and some bound would fit them by chance: only a wrong sign is reported."""

MOSTLY = 20
"""A slip that does not fit all rows is still reported if it leaves at most one in this many of the differing rows."""


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
    by: Answerer,
    sample: RowSample,
    rows: int,
    different: int,
    again: Callable[[], Iterator[tuple[Batch, NDArray[np.int64]]]],
) -> tuple[Change, ...]:
    """The slip that fits all rows, or all but a few; `again` reads the table once more, with its classes."""
    best: tuple[int, Explanation] | None = None
    for _ in range(ROUNDS if sample.parts else 0):
        seen, classes = sample.all()
        answers, few = RowAnswers(classes), different < LEAST_EXPLAINED
        explanation = explain(by.program, seen, answers, only_signs=few, book=by.book)
        if explanation is None:
            break
        misfits = (
            0
            if len(seen) == rows
            else _misfits(replace(by, program=explanation.slip.program, scorer=None, tried=False), sample, again())
        )
        if best is None or misfits < best[0]:
            best = misfits, explanation
        if not misfits:
            break
    if best is None or best[0] * MOSTLY > different:
        return ()
    fits = f"all {rows:,} rows" if not best[0] else f"all but {best[0]:,} of the {rows:,} rows"
    return best[1].changes(fits)


def _misfits(by: Answerer, sample: RowSample, batches: Iterator[tuple[Batch, NDArray[np.int64]]]) -> int:
    """How many rows have another class than the guess gives them; some of them are kept."""
    count, room = 0, MISFITS_KEPT
    for batch, deployed in batches:
        places = np.flatnonzero(answer_batch(by, batch).classes != deployed)
        count += len(places)
        sample.add(batch, deployed, places[:room])
        room -= len(places[:room])
    return count


KEYS_SHOWN = 5


@dataclass(slots=True)
class KeyCount:
    """The keys of all rows so far. They are kept: a key that comes twice may come a million rows apart."""

    names: tuple[str, ...]
    parts: list[Any] = field(default_factory=list)

    def add(self, batch: Batch) -> None:
        """Keep the keys of a batch."""
        if self.names:
            self.parts.append(batch.keys)

    def summary(self) -> dict[str, Any] | None:
        """How many keys are missing or occur more than once, and the first of them; None without a key."""
        if not self.names:
            return None
        import pandas as pd

        keys = pd.concat(self.parts, ignore_index=True) if self.parts else pd.DataFrame(columns=list(self.names))
        missing = keys.isna().any(axis=1)
        repeated = keys[~missing & keys.duplicated(keep=False)]
        distinct = repeated.drop_duplicates()
        return {
            "columns": list(self.names),
            "missing": int(missing.sum()),
            "duplicated": len(distinct),
            "rows_of_duplicated": len(repeated),
            "first_duplicated": [key_text(row) for row in distinct.head(KEYS_SHOWN).to_dict("records")],
        }


def key_problem(summary: Mapping[str, Any] | None) -> str | None:
    """What is wrong with the keys, in words."""
    if summary is None:
        return None
    parts = []
    if summary["missing"]:
        parts.append(f"{summary['missing']:,} rows have no key")
    if summary["duplicated"]:
        example = f", for example {summary['first_duplicated'][0]}"
        parts.append(f"{summary['duplicated']:,} keys occur more than once{example}")
    return "; ".join(parts) or None


def key_at(batch: Batch, place: int) -> dict[str, Any]:
    """The key of a row."""
    row: dict[str, Any] = batch.keys.iloc[place].to_dict()
    return {name: None if value is None or value != value else str(value) for name, value in row.items()}


def key_text(key: Mapping[str, Any]) -> str:
    """A key as people write it: `id = 17`."""
    return ", ".join(f"{name} = {value}" for name, value in key.items())


@dataclass(slots=True)
class DifferenceFile:
    """A CSV file of all differing rows; without a path nothing is written."""

    writer: Any = None
    header: tuple[str, ...] = ()

    def add(self, form: Mapping[str, Any]) -> None:
        """One row, in the form that the report shows it."""
        if self.writer is None:
            return
        flat = {**form.get("key", {}), "row_number": form["row_number"], **form["row"]}
        flat |= {"approved_label": form["approved"], "deployed_label": form["deployed"]}
        self.writer.writerow(["" if flat.get(name) is None else flat[name] for name in self.header])


@contextmanager
def difference_file(path: Path | None, keys: tuple[str, ...], features: tuple[str, ...]) -> Iterator[DifferenceFile]:
    """The complete file appears if the block succeeds."""
    if path is None:
        yield DifferenceFile()
        return
    header = (*keys, "row_number", *features, "approved_label", "deployed_label")
    with whole_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        yield DifferenceFile(writer, header)
