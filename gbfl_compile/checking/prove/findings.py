"""What the prover can answer, aspect by aspect, its JSON form, and how long it may search for it.

A search asks its budget at every step, and the budget stops the search.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol, TypeAlias, assert_never

from gbfl_compile.checking.reading.evaluate import ReaderAnswer
from gbfl_compile.checking.reading.nodes import PointDecision, Reading
from gbfl_compile.ir.evaluate import Answer
from gbfl_compile.ir.kinds import Value
from gbfl_compile.ir.nodes import Program, Scorecard

PROBABILITY_BOUND = 1e-12
"""How far a rule set's probabilities may lie apart: they go through exp, which engines round differently.

Labels, scores, leaves and the probabilities of trees and bands are compared with ==.
"""

Aspect: TypeAlias = Literal["labels", "scores", "probabilities", "leaf"]


@dataclass(frozen=True, slots=True)
class ProvedEqual:
    """Equal on every input."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A row on which they differ, and what each said when it was run. NaN is missing."""

    row: tuple[float, ...]
    """As doubles: texts by their codes, dates by days."""
    source: Answer
    target: ReaderAnswer
    values: tuple[Value, ...] | None = None
    """The row as Python has it, where features are words or dates."""


@dataclass(frozen=True, slots=True)
class NoDecision:
    """Neither proved nor refuted, and why."""

    why: str


Finding: TypeAlias = ProvedEqual | Counterexample | NoDecision


@dataclass(frozen=True, slots=True)
class Proof:
    """The findings, aspect by aspect: labels always, the rest as far as the artifact gives it."""

    findings: Mapping[Aspect, Finding]
    not_said: tuple[Aspect, ...]
    """What the program answers and the artifact does not."""
    budget_seconds: float
    seconds: float

    @property
    def labels(self) -> Finding:
        """The finding on labels."""
        return self.findings["labels"]

    @property
    def answer(self) -> Literal["proved", "counterexample", "undecided"]:
        """Over all aspects: one counterexample is enough, and `proved` needs all of them."""
        kinds = {type(finding) for finding in self.findings.values()}
        if Counterexample in kinds:
            return "counterexample"
        return "proved" if kinds == {ProvedEqual} else "undecided"

    def as_json(self, features: tuple[str, ...]) -> dict[str, Any]:
        """The stable form scripts read; a number is a float.hex() string, a missing value null."""
        forms = {aspect: _finding_form(finding, features) for aspect, finding in self.findings.items()}
        times = {"seconds": round(self.seconds, 6), "budget_seconds": self.budget_seconds}
        return {"answer": self.answer, "aspects": forms, "not_said": list(self.not_said), **times}


def _finding_form(finding: Finding, features: tuple[str, ...]) -> dict[str, Any]:
    match finding:
        case ProvedEqual():
            return {"answer": "proved"}
        case Counterexample(row, source, target, native):
            values = [_value_form(value) for value in (row if native is None else native)]
            sides = {"source": _answer_form(source), "target": _answer_form(target)}
            return {"answer": "counterexample", "row": dict(zip(features, values, strict=True)), **sides}
        case NoDecision(why):
            return {"answer": "undecided", "why": why}
        case _:
            assert_never(finding)


def _value_form(value: Value) -> str | bool | None:
    """A number as hexadecimal, so that no bit is lost; a word as it is, a date in full."""
    if isinstance(value, str | bool):
        return value
    if isinstance(value, int | float):
        return None if math.isnan(value) else float(value).hex()
    return None if value is None else str(value)


def _answer_form(answer: Answer | ReaderAnswer) -> dict[str, Any]:
    form: dict[str, Any] = {"label": answer.label}
    if answer.probabilities is not None:
        form["probabilities"] = [repr(p) if not math.isfinite(p) else p for p in answer.probabilities]
    if answer.leaf is not None:
        form["leaf"] = answer.leaf
    if answer.scores is not None:
        form["scores"] = list(answer.scores)
    return form


def differs(program: Program, reading: Reading, aspect: Aspect, source: Answer, target: ReaderAnswer) -> bool:
    """Whether two answers differ in one aspect. Probabilities of rule sets are compared as exact logits, before exp."""
    match aspect:
        case "labels":
            return source.label != target.label
        case "scores":
            return source.scores != target.scores
        case "leaf":
            return source.leaf != target.leaf
        case "probabilities":
            if program.has_exact_probabilities or source.scores is None:
                return source.probabilities != target.probabilities
            decision = reading.decision
            if not isinstance(decision, PointDecision) or decision.constants is not None or decision.bands:
                return target.probabilities is None or not are_close(source.probabilities, target.probabilities)
            assert isinstance(program.decision, Scorecard) and target.scores is not None  # noqa: S101, PT018
            return _logits(source.scores, program.decision.scale) != _logits(target.scores, decision.scale or 0)
        case _:
            assert_never(aspect)


def are_close(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether probabilities that went through exp are the same within the bound; NaN is close to nothing."""
    return all(abs(a - b) <= PROBABILITY_BOUND for a, b in zip(one, other, strict=True))


def _logits(scores: tuple[int, ...], scale: int) -> list[Fraction]:
    return [Fraction(score - scores[0]) / Fraction(2) ** scale for score in scores]  # an edited text may say -1


class OutOfTime(Exception):
    """The budget is used up. Never reaches a user: the prover answers UNDECIDED."""


class Budget(Protocol):
    """A limit that a search checks at every step."""

    def check(self) -> None:
        """Stop the search where the budget is used up."""


@dataclass(frozen=True, slots=True)
class Clock:
    """When to stop, in seconds of a clock."""

    deadline: float
    now: Callable[[], float] = time.monotonic

    def check(self) -> None:
        """Stop the search where the time is over."""
        if self.now() > self.deadline:
            raise OutOfTime


@dataclass(slots=True)
class Steps:
    """A number of steps: unlike a clock, it stops at the same place every time."""

    left: int

    def check(self) -> None:
        """Stop the search where no step is left."""
        self.left -= 1
        if self.left < 0:
            raise OutOfTime


@dataclass(slots=True)
class StepsWithin:
    """A number of steps, and no longer than a clock allows."""

    left: int
    clock: Clock

    def check(self) -> None:
        """Stop the search where no step or no time is left."""
        self.clock.check()
        self.left -= 1
        if self.left < 0:
            raise OutOfTime


def clock_of(seconds: float) -> Clock:
    """A clock that stops after this many seconds."""
    return Clock(time.monotonic() + seconds)


def work_clock_of(seconds: float) -> Clock:
    """A clock that counts only the work of this process, so that a busy machine finds what an idle one does."""
    return Clock(time.process_time() + seconds, time.process_time)
