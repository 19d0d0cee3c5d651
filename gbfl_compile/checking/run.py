"""Runs an artifact beside its source and says where they differ.

Three kinds of evidence are kept apart: a proof (for every input), execution (on these rows, by this
engine), and consistency (the same counts on x, PP and PN). What was not done is called "not run".
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.backends.base import Predictor
from gbfl_compile.checking.artifact import OTHER_NAMES, ArtifactProof, Tier, was_run
from gbfl_compile.checking.prove.findings import PROBABILITY_BOUND as PROBABILITY_BOUND
from gbfl_compile.checking.witnesses import WitnessSet, rows_to_run
from gbfl_compile.errors import CannotRun
from gbfl_compile.ir.batch import Answers, Matrix, evaluate_many
from gbfl_compile.ir.kinds import Codebook, codebook, decode_rows
from gbfl_compile.ir.nodes import Program

if TYPE_CHECKING:
    from gbfl_compile.learning.consistency import Consistency, Triplets

Outcome: TypeAlias = Literal[
    "different", "unread", "undecided", "not run", "written", "read as equal, not run", "read as equal", "equal"
]
"""What is known of an artifact, the worst first. Only `equal` is proved and run.

`written`: for a database that is never run, and not read as equal. `read as equal`: by a general reader, and run.
"""

WORST_FIRST: tuple[Outcome, ...] = get_args(Outcome)

NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class Execution:
    """What running an artifact showed."""

    engine: str
    rows: int
    different: int
    first: Mapping[str, Any] | None
    """The first row on which it differs, and both answers."""


@dataclass(frozen=True, slots=True)
class ConsistencyPair:
    """Local consistency by the source's predictions and by the artifact's."""

    source: Consistency
    target: Consistency


@dataclass(frozen=True, slots=True)
class TargetVerdict:
    """What is known about one artifact."""

    target: str
    verdict: Outcome
    reason: str | None = None
    """Why it was not run, or what is wrong with the artifact as a whole."""
    digest: str | None = None
    """The digest the artifact carries: a trace, not evidence. Whether it is the source's is in the JSON."""
    execution: Execution | None = None
    consistency: ConsistencyPair | None = None
    proof: ArtifactProof | None = None

    @property
    def tier(self) -> Tier | None:
        """How strong the proof of equality is; None where there is none."""
        return None if self.proof is None else self.proof.tier

    def as_json(self, source: str) -> dict[str, Any]:
        """The stable form scripts read; `source` is the program's digest."""
        form: dict[str, Any] = {"verdict": self.verdict, "tier": self.tier, "digest": self.digest}
        form["digest_matches"] = None if self.digest is None else self.digest == source
        form["proof"] = NOT_RUN if self.proof is None else self.proof.as_json()
        form["execution"], form["consistency"] = NOT_RUN, NOT_RUN
        if self.execution is not None:
            run = self.execution
            form["execution"] = {
                "engine": run.engine,
                "rows": run.rows,
                "different": run.different,
                "first": run.first,
            }
        if self.consistency is not None:
            pair = self.consistency
            form["consistency"] = {"source": pair.source.as_dict(), "target": pair.target.as_dict()}
        if self.reason is not None:
            form["reason"] = self.reason
        return form


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known about all artifacts of one program."""

    program: str
    """The source's digest."""
    targets: tuple[TargetVerdict, ...]
    unwitnessed: tuple[str, ...] = ()
    """Places of the program for which the search for a witness was given up: a slip there may not show when run."""

    @property
    def verdict(self) -> Outcome:
        """The worst of any target; equal only where every target is proved and was run."""
        if not self.targets:
            return "not run"
        return min((target.verdict for target in self.targets), key=WORST_FIRST.index)

    def __repr__(self) -> str:
        targets = ", ".join(f"{target.target}: {target.verdict}" for target in self.targets)
        return f"Verdict({self.verdict}; {targets})"

    def _repr_html_(self) -> str:
        """One table row per target, for a notebook. Reasons may quote an artifact and are escaped."""
        from html import escape

        head = "<tr><th>target</th><th>verdict</th><th>proof</th><th>different rows</th><th>reason</th></tr>"
        rows = [
            (
                target.target,
                target.verdict,
                NOT_RUN if target.proof is None else target.proof.answer,
                NOT_RUN if target.execution is None else f"{target.execution.different} of {target.execution.rows}",
                target.reason or "",
            )
            for target in self.targets
        ]
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        return f"<p>verdict: {self.verdict}</p><table>{head}{body}</table>"

    def as_json(self) -> dict[str, Any]:
        """The stable form scripts read."""
        targets = {target.target: target.as_json(self.program) for target in self.targets}
        return {
            "verdict": self.verdict,
            "program": self.program,
            "targets": targets,
            "unwitnessed": list(self.unwitnessed),
        }


@dataclass(frozen=True)
class Expectation:
    """The source's side of a comparison, worked out once for all targets, when the first one is run."""

    program: Program
    own: tuple[Matrix, ...]
    """The user's rows: data, then the triplets' x, PP and PN."""
    triplets: Triplets | None
    book: Codebook | None = None
    """The codes of the texts in the user's rows."""

    @cached_property
    def witness_set(self) -> WitnessSet:
        """The rows to run, the user's own as the last ones, and the places without a witness."""
        return rows_to_run(self.program, self.own, own_book=self.book)

    @property
    def rows(self) -> Matrix:
        """The rows to run."""
        return self.witness_set.rows

    @cached_property
    def answers(self) -> Answers:
        """What the source answers on the rows."""
        return evaluate_many(self.program, self.rows)


def expectation(
    program: Program, data: Matrix | None = None, triplets: Triplets | None = None, book: Codebook | None = None
) -> Expectation:
    """What a source answers on the rows to run: witnesses, data (`book` has the codes of its texts), triplets."""
    if program.kinds and triplets is not None:
        book = (codebook(program) if book is None else book).with_texts(triplets.texts)
        triplets = triplets.in_book(book)
    own: tuple[Matrix, ...] = () if data is None else (data,)
    own += () if triplets is None else (triplets.x, triplets.pp, triplets.pn)
    return Expectation(program, own, triplets, book)


def _for_target(expected: Expectation, predictor: Predictor, constants: Collection[float]) -> tuple[Matrix, Answers]:
    """The rows as this artifact can be given them, rows at its own constants, and the source's answers on them.

    The source answers on the float32 values themselves: that is what a float32 artifact promises to reproduce.
    """
    if predictor.dtype == "float64" and predictor.holds_infinity and not constants:
        return expected.rows, expected.answers
    program = expected.program
    how = (predictor.dtype, predictor.holds_infinity, constants, expected.book)
    rows = rows_to_run(program, expected.own, *how).rows
    return rows, evaluate_many(program, rows)


def compare(expected: Expectation, predictor: Predictor, constants: Collection[float] = ()) -> TargetVerdict:
    """The verdict on one loaded artifact, run on the witnesses and on rows at the `constants` that occur in it."""
    program = expected.program
    digest = predictor.digest if isinstance(predictor.digest, str) else repr(predictor.digest)
    if (predictor.features, predictor.kinds) != (program.features, program.kinds) or not _same_labels(
        predictor.classes, program.classes
    ):
        return TargetVerdict(predictor.target, "different", OTHER_NAMES, digest)
    rows, source = _for_target(expected, predictor, constants)
    exact = program.has_exact_probabilities
    try:
        answers = _answers_of(expected, predictor, rows)
        others = [way(rows) for way in predictor.other_ways.values()]
        execution = _execution(expected, rows, source, exact, (answers, *others), predictor.engine)
        pair = _consistency_pair(expected.triplets, source, answers)
    except CannotRun as error:
        return TargetVerdict(predictor.target, "not run", str(error), digest)
    except (Exception, SystemExit) as error:  # anything an artifact raises is its own fault, and a finding
        reason = f"running it raised {type(error).__name__}: {error}"
        return TargetVerdict(predictor.target, "different", reason, digest)
    same_counts = pair is None or pair.source == pair.target
    outcome: Outcome = "equal" if execution.different == 0 and same_counts else "different"
    return TargetVerdict(predictor.target, outcome, None, digest, execution, pair)


def _answers_of(expected: Expectation, predictor: Predictor, rows: Matrix) -> Answers:
    """What an artifact answers: rows of Python values where features are words or dates, a matrix otherwise."""
    if not expected.program.kinds:
        return predictor.answer(rows)
    if predictor.answer_rows is None:
        raise CannotRun(f"{predictor.target} takes only numbers")
    return predictor.answer_rows(decode_rows(expected.program, rows.tolist(), expected.witness_set.book))


def with_proof(verdict: TargetVerdict, proof: ArtifactProof) -> TargetVerdict:
    """The verdict with a proof beside it: equal needs both, a counterexample alone makes it different."""
    return replace(verdict, verdict=_outcome(verdict, proof), proof=proof)


def _outcome(run: TargetVerdict, proof: ArtifactProof) -> Outcome:
    """`equal` takes a strict reader's proof and a run; whatever else an artifact is called, it is less."""
    if run.verdict == "different" or proof.different:
        return "different"
    match run.verdict, proof.answer:
        case "equal", "proved":
            return "equal"
        case "equal", "read as equal" | "unread" | "undecided" as less:
            return less
        case _, "read as equal":
            return "read as equal, not run"
        case _:
            return "not run" if was_run(run.target) else "written"


def _same_labels(labels: tuple[Any, ...], expected: tuple[Any, ...]) -> bool:
    return [(type(label), label) for label in labels] == [(type(label), label) for label in expected]


def _execution(
    expected: Expectation, rows: Matrix, source: Answers, exact: bool, ways: Sequence[Answers], engine: str
) -> Execution:
    """A row is different where one of the artifact's ways to answer is."""
    program = expected.program
    differences = [differing_rows(exact, source, answers) for answers in ways]
    differs = np.logical_or.reduce(differences)
    first = None
    if differs.any():
        index = int(np.flatnonzero(differs)[0])
        answers = next(each for each, wrong in zip(ways, differences, strict=True) if wrong[index])
        first = {
            "row": named_values(program, rows[index].tolist(), expected.witness_set.book),
            "source": _answer_at(source, index),
            "target": _answer_at(answers, index),
        }
    return Execution(engine, len(rows), int(differs.sum()), first)


def differing_rows(exact: bool, source: Answers, target: Answers) -> NDArray[np.bool_]:
    """Which rows got another label, probability, leaf or score; exact probabilities are compared with ==.

    1, True and '1' are different labels.
    """
    has_probabilities = target.probabilities.shape[1] > 0
    if len(target.labels) != len(source.labels) or (
        has_probabilities and target.probabilities.shape != source.probabilities.shape
    ):
        raise ValueError(f"{len(target.labels)} answers for {len(source.labels)} rows")
    pairs = zip(source.labels, target.labels, strict=True)
    differs = np.array([type(a) is not type(b) or a != b for a, b in pairs], dtype=bool)
    if has_probabilities and exact:
        differs |= (source.probabilities != target.probabilities).any(axis=1)
    elif has_probabilities:
        close = np.abs(source.probabilities - target.probabilities) <= PROBABILITY_BOUND  # False for NaN
        differs |= ~close.all(axis=1)
    if source.leaves is not None and target.leaves is not None:
        differs |= source.leaves != target.leaves
    if source.scores is not None and target.scores is not None:
        differs |= (source.scores != target.scores).any(axis=1)
    return differs


def _answer_at(answers: Answers, index: int) -> dict[str, Any]:
    form: dict[str, Any] = {
        "label": _json_label(answers.labels[index]),
        "probabilities": [_json_number(p) for p in answers.probabilities[index].tolist()],
    }
    if answers.leaves is not None:
        form["leaf"] = int(answers.leaves[index])
    if answers.scores is not None:
        form["scores"] = answers.scores[index].tolist()
    return form


def _json_label(label: Any) -> Any:
    """A label as JSON; what no program can have as a label comes out as its repr."""
    ordinary = type(label) in (str, int, bool) or (type(label) is float and math.isfinite(label))
    return label if ordinary else repr(label)


def named_values(program: Program, row: Sequence[float], book: Codebook) -> dict[str, Any]:
    """A row as JSON by the names of its features: words as they are, dates as ISO 8601 writes them."""
    (values,) = decode_rows(program, [row], book)
    forms = (_json_number(value) if isinstance(value, float) else _json_value(value) for value in values)
    return dict(zip(program.features, forms, strict=True))


def _json_value(value: Any) -> Any:
    return value if value is None or isinstance(value, str | bool | int) else str(value)


def _json_number(value: float) -> float | str | None:
    """JSON has no NaN and no infinities: a missing value is null, an infinity its name."""
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else str(value)


def _consistency_pair(triplets: Triplets | None, source: Answers, target: Answers) -> ConsistencyPair | None:
    if triplets is None:
        return None
    return ConsistencyPair(_on_triplets(triplets, source), _on_triplets(triplets, target))


def _on_triplets(triplets: Triplets, answers: Answers) -> Consistency:
    """The triplets are the last rows that were run: x, then PP, then PN."""
    from gbfl_compile.learning.consistency import consistency

    count = len(triplets.x)
    on_x, on_pp, on_pn = (answers.labels[len(answers.labels) - k * count :][:count] for k in (3, 2, 1))
    return consistency(triplets.label, on_x, on_pp, on_pn, triplets.has_pp, triplets.has_pn)
