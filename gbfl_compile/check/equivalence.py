"""Runs an artifact beside its source and says where they differ.

Three kinds of evidence are kept apart: a proof (for every input), execution (on so many rows, by this
engine), and consistency (the same counts on x, PP and PN). What was not done is called "not run".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.backends.base import Predictor
from gbfl_compile.check.artifact_proof import OTHER_NAMES, ArtifactProof
from gbfl_compile.check.witnesses import find_witnesses
from gbfl_compile.consistency import Consistency, consistency
from gbfl_compile.errors import CannotRun
from gbfl_compile.ir.batch import Answers, Matrix, evaluate_many
from gbfl_compile.ir.nodes import Program, Tree
from gbfl_compile.triplets import Triplets

Outcome: TypeAlias = Literal["equal", "different", "not run"]

NOT_RUN = "not run"

PROBABILITY_BOUND = 1e-12
"""How far a rule set's probabilities may lie apart: they go through exp, which engines round differently.

Labels, scores, leaves and tree probabilities are compared with ==.
"""


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
    """What is known of one artifact."""

    target: str
    verdict: Outcome
    reason: str | None = None
    """Why it was not run, or what is wrong with the artifact as a whole."""
    digest: str | None = None
    """The digest the artifact carries: a trace, not evidence. Whether it is the source's stands in the JSON."""
    execution: Execution | None = None
    consistency: ConsistencyPair | None = None
    proof: ArtifactProof | None = None

    def as_json(self, source: str) -> dict[str, Any]:
        """The stable form scripts read; `source` is the program's digest."""
        form: dict[str, Any] = {"verdict": self.verdict, "digest": self.digest}
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
    """What is known of all artifacts of one program."""

    program: str
    """The source's digest."""
    targets: tuple[TargetVerdict, ...]
    unwitnessed: tuple[str, ...] = ()
    """Places of the program for which the search for a witness was given up: a slip there may not show when run."""

    @property
    def verdict(self) -> Outcome:
        """Different where one is; equal only where all were run and are."""
        found = {target.verdict for target in self.targets}
        if "different" in found:
            return "different"
        return "equal" if found == {"equal"} else "not run"

    def as_json(self) -> dict[str, Any]:
        """The stable form scripts read."""
        targets = {target.target: target.as_json(self.program) for target in self.targets}
        return {
            "verdict": self.verdict,
            "program": self.program,
            "targets": targets,
            "unwitnessed": list(self.unwitnessed),
        }


@dataclass(frozen=True, slots=True)
class Expectation:
    """The source's side of a comparison, worked out once for all targets."""

    program: Program
    rows: Matrix
    answers: Answers
    triplets: Triplets | None
    unwitnessed: tuple[str, ...] = ()


def expectation(program: Program, data: Matrix | None = None, triplets: Triplets | None = None) -> Expectation:
    """The rows to run (witnesses, given data, triplets) and what the source answers on them."""
    found = find_witnesses(program)
    parts = [found.rows]
    parts += [] if data is None else [data]
    parts += [] if triplets is None else [triplets.x, triplets.pp, triplets.pn]
    rows = np.concatenate(parts)
    return Expectation(program, rows, evaluate_many(program, rows), triplets, found.given_up)


def _in_float32(expected: Expectation) -> Expectation:
    """The same rows as a float32 artifact can be given them, their neighbours, and the program's float32 witnesses.

    The source answers on the float32 values themselves: that is what such an artifact promises to reproduce.
    """
    single = find_witnesses(expected.program, dtype="float32").rows
    with np.errstate(over="ignore", under="ignore"):  # a double beyond float32 is infinite there
        rounded = expected.rows.astype(np.float32)
        neighbours = [np.nextafter(rounded, np.float32(way)) for way in (-np.inf, np.inf)]
        rows = np.concatenate([single.astype(np.float32), *neighbours, rounded]).astype(np.float64)  # triplets last
    return replace(expected, rows=rows, answers=evaluate_many(expected.program, rows))


def _without_infinities(expected: Expectation) -> Expectation:
    """The same rows as an engine that holds no infinities is given them; the source answers on those."""
    largest = np.finfo(np.float64).max
    rows = np.clip(expected.rows, -largest, largest)
    return replace(expected, rows=rows, answers=evaluate_many(expected.program, rows))


def compare(expected: Expectation, predictor: Predictor) -> TargetVerdict:
    """The verdict on one loaded artifact."""
    if predictor.dtype == "float32":
        expected = _in_float32(expected)
    if not predictor.holds_infinity:
        expected = _without_infinities(expected)
    program = expected.program
    found = predictor.digest if isinstance(predictor.digest, str) else repr(predictor.digest)
    if predictor.features != program.features or not _same_labels(predictor.classes, program.classes):
        return TargetVerdict(predictor.target, "different", OTHER_NAMES, found)
    try:
        answers = predictor.answer(expected.rows)
        others = [way(expected.rows) for way in predictor.other_ways.values()]
        execution = _execution(expected, (answers, *others), predictor.engine)
        pair = _consistency_pair(expected, answers)
    except CannotRun as error:
        return TargetVerdict(predictor.target, "not run", str(error), found)
    except (Exception, SystemExit) as error:  # whatever an artifact raises is its own fault, and a finding
        reason = f"running it raised {type(error).__name__}: {error}"
        return TargetVerdict(predictor.target, "different", reason, found)
    same_counts = pair is None or pair.source == pair.target
    outcome: Outcome = "equal" if execution.different == 0 and same_counts else "different"
    return TargetVerdict(predictor.target, outcome, None, found, execution, pair)


def with_proof(verdict: TargetVerdict, proof: ArtifactProof) -> TargetVerdict:
    """The verdict once a proof was tried too: a counterexample makes it different, a proof does not make it run."""
    return replace(verdict, verdict="different" if proof.different else verdict.verdict, proof=proof)


def _same_labels(found: tuple[Any, ...], expected: tuple[Any, ...]) -> bool:
    return [(type(label), label) for label in found] == [(type(label), label) for label in expected]


def _execution(expected: Expectation, ways: Sequence[Answers], engine: str) -> Execution:
    """A row is different where one of the artifact's ways to answer is."""
    found = [differing_rows(expected.program, expected.answers, answers) for answers in ways]
    differs = np.logical_or.reduce(found)
    first = None
    if differs.any():
        index = int(np.flatnonzero(differs)[0])
        answers = next(each for each, wrong in zip(ways, found, strict=True) if wrong[index])
        first = {
            "row": {
                name: _json_number(value)
                for name, value in zip(expected.program.features, expected.rows[index].tolist(), strict=True)
            },
            "source": _answer_at(expected.answers, index),
            "target": _answer_at(answers, index),
        }
    return Execution(engine, len(expected.rows), int(differs.sum()), first)


def differing_rows(program: Program, source: Answers, target: Answers) -> NDArray[np.bool_]:
    """Which rows got another label, probability, leaf or score. 1, True and '1' are different labels."""
    given = target.probabilities.shape[1] > 0
    if len(target.labels) != len(source.labels) or (given and target.probabilities.shape != source.probabilities.shape):
        raise ValueError(f"{len(target.labels)} answers for {len(source.labels)} rows")
    pairs = zip(source.labels, target.labels, strict=True)
    differs = np.array([type(a) is not type(b) or a != b for a, b in pairs], dtype=bool)
    if given and isinstance(program.decision, Tree):
        differs |= (source.probabilities != target.probabilities).any(axis=1)
    elif given:
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


def _json_number(value: float) -> float | str | None:
    """JSON has no NaN and no infinities: a missing value is null, an infinity its name."""
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else str(value)


def _consistency_pair(expected: Expectation, answers: Answers) -> ConsistencyPair | None:
    if expected.triplets is None:
        return None
    return ConsistencyPair(_on_triplets(expected.triplets, expected.answers), _on_triplets(expected.triplets, answers))


def _on_triplets(triplets: Triplets, answers: Answers) -> Consistency:
    """The triplets are the last rows that were run: x, then PP, then PN."""
    count = len(triplets.x)
    on_x, on_pp, on_pn = (answers.labels[len(answers.labels) - k * count :][:count] for k in (3, 2, 1))
    return consistency(triplets.label, on_x, on_pp, on_pn, triplets.has_pp, triplets.has_pn)
