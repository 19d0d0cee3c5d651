"""What a reader found in an artifact: the form in which the prover takes it.

It is wider than a rule program, because deployed rules get edited by hand: conditions may be any mix of and, or and
not over tests of one feature each, and steps may be shared. What a reader cannot put into this form it refuses.

    Reading(features, classes, Decided((Ask(Test(0, AT_LEAST_ONE), 1, 2), Outcome(1), Outcome(0))))

How much work one artifact may cause is limited: a text of a few lines can mean a condition of any length.
`b = a and (a or c)`, once more for each letter, doubles in length with every line. Code that walks over
conditions or graphs pays for each step; an artifact that costs more than any of ours ever did is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, TypeAlias

from gbfl_compile.errors import in_short
from gbfl_compile.ir.intervals import Values
from gbfl_compile.ir.nodes import Band, Kind, Label


@dataclass(frozen=True, slots=True)
class Test:
    """The value of one feature is in one of these ranges (the missing value counts where one of them says so)."""

    feature: int
    values: tuple[Values, ...]


@dataclass(frozen=True, slots=True)
class And:
    """Every part holds; `All(())` is true."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one part holds; `Any(())` is false."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold. Two values only: what NULL and NaN do was settled in the tests."""

    part: Condition


Condition: TypeAlias = Test | And | Or | Not


@dataclass(frozen=True, slots=True)
class Outcome:
    """An answer. None is what the artifact does not say (a SQL expression may give the label alone)."""

    winner: int
    """The position of the label among the classes."""
    probabilities: tuple[float, ...] | None = None
    leaf: int | None = None
    held: tuple[int, ...] | None = None
    """The clauses that held on the way, ascending: the reason given for the answer."""
    text: str | None = None
    """The reason given for the answer in words, where the artifact answers in words."""
    way: tuple[tuple[int, bool], ...] | None = None
    """Each clause asked on the way and whether it held, from the first on, where the artifact tells the whole way."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Go on at step `then` where the condition holds, at step `otherwise` where it does not. Both lie further on."""

    condition: Condition
    then: int
    otherwise: int


@dataclass(frozen=True, slots=True)
class StepDecision:
    """Steps, the first of which is where a row begins; several may lead to the same one."""

    steps: tuple[Ask | Outcome, ...]


@dataclass(frozen=True, slots=True)
class PointDecision:
    """Points for each class, to start with and for each condition that holds. Most points win."""

    bias: tuple[int, ...]
    terms: tuple[tuple[Condition, tuple[int, ...]], ...]
    scale: int | None = None
    """Of the probabilities (a point is 2**-scale logits), or None where the artifact gives none."""
    tie_to: Literal["lower", "higher"] = "lower"
    """Which class wins among those with equal points: the lower or the higher position."""
    held: tuple[Condition, ...] | None = None
    """When each clause is said to have held, clause by clause: the reason given for the answer."""
    says_scores: bool = True
    """Whether the points themselves come out; where not, only what they decide is the artifact's."""
    words: tuple[str | None, ...] | None = None
    """What is said of each clause where it held, in words; None for one that never does."""
    constants: tuple[float, ...] | None = None
    """The probabilities, where they are written out as the same numbers for every row; `scale` is None then."""
    bands: tuple[tuple[Band, ...], ...] = ()
    """The probabilities by the winner's lead, class by class, where they are constants of bands; `scale` is None then.

    The winner is the lower of equal classes: a reader refuses bands beside another rule for ties."""


@dataclass(frozen=True, slots=True)
class Example:
    """A row and what the artifact says that it answers there, as a self-test does."""

    row: tuple[float, ...]
    winner: int
    leaf: int | None = None
    scores: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """One way an artifact answers, read back. An artifact with several entry points has several."""

    features: tuple[str, ...]
    classes: tuple[Label, ...]
    decision: StepDecision | PointDecision
    dtype: Literal["float64", "float32"] = "float64"
    """What the artifact compares: a float32 one is its source on every float32 row."""
    place: str = ""
    """Where in the artifact it is: a function, an output, a column."""
    digest: str | None = None
    """The digest the artifact itself carries, if any."""
    texts: tuple[str, ...] | None = None
    """How the artifact words its clauses, where it does."""
    reasons: tuple[tuple[int, str], ...] | None = None
    """The user's reasons, (clause, text), where the artifact keeps a table of them."""
    kinds: tuple[Kind, ...] = ()
    """The kind of each feature; `()` where all are numbers."""
    book: tuple[tuple[str, ...], ...] = ()
    """Per feature the texts that tests on it mean by the codes 1, 2, …; every other code is any other text."""
    nan_features: frozenset[int] | None = None
    """The features whose missing value is NaN here, and NULL for the others; None where both are treated alike."""
    examples: tuple[Example, ...] = ()
    """The rows of its self-test, where it has one."""


class Unread(Exception):
    """The artifact holds something the reader does not understand. The message says where and what."""

    def __init__(self, message: str = "") -> None:
        super().__init__(in_short(message))


MOST_STEPS = 20_000_000

_left: ContextVar[list[int] | None] = ContextVar("steps left", default=None)


@contextmanager
def limit_work(steps: int = MOST_STEPS) -> Iterator[None]:
    """Within this, at most `steps` steps may be paid for."""
    token = _left.set([steps])
    try:
        yield
    finally:
        _left.reset(token)


def pay(steps: int) -> None:
    """Count steps; past the limit the artifact is refused."""
    left = _left.get()
    if left is not None:
        left[0] -= steps
        if left[0] < 0:
            raise Unread("it means a condition too long to be followed")
