"""What a reader found in an artifact: the form in which the prover takes it.

It is wider than a rule program, because deployed rules get edited by hand: conditions may be any mix of and, or and
not over tests of one feature each, and steps may be shared. What a reader cannot put into this form it refuses.

    Reading(features, classes, Decided((Ask(Test(0, AT_LEAST_ONE), 1, 2), Outcome(1), Outcome(0))))

How much work one artifact may cause is limited: a text of a few lines can mean a condition of any length.
`b = a and (a or c)`, once more for each letter, doubles in length with every line. Code that walks over
conditions or graphs pays for each step; an artifact that costs more than any of ours ever did is refused.

The tables around the rules are checked as far as a reading needs: shapes, kinds, and places that exist.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, TypeAlias

from gbfl_compile.errors import in_short
from gbfl_compile.ir.intervals import Values
from gbfl_compile.ir.nodes import Band, Kind, Label
from gbfl_compile.ir.validate import LARGEST_SCALE


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
    """Each clause tested on the way and whether it held, from the first on, if the artifact reports the whole way."""


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
    """When the artifact reports each clause as having held: the reason it gives for the answer."""
    says_scores: bool = True
    """Whether the points themselves come out; where not, only what they decide is the artifact's."""
    words: tuple[str | None, ...] | None = None
    """The reported text of each clause where it held; None for a clause that never holds."""
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
    clause_count: int | None = None
    """How many clauses the artifact says that there are, where it says so apart from their texts."""


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
            raise Unread("it amounts to a condition that is too long to follow")


Step: TypeAlias = tuple[int, int, bool]
"""The step before (negative is the start), the clause tested, and whether it held."""


def one_file(files: Mapping[str, bytes], ending: str) -> tuple[str, bytes]:
    """The one file of an artifact that is one file."""
    if len(files) != 1:
        listed = ", ".join(sorted(files)[:5])
        raise Unread(f"{len(files)} files ({listed}): the artifact is one {ending} file")
    ((name, content),) = files.items()
    if not name.endswith(ending):
        raise Unread(f"{name} is not a {ending} file")
    return name, content


def feature_names(value: object) -> tuple[str, ...]:
    """Feature names: texts, at least one, no two alike."""
    if not isinstance(value, tuple | list) or not value or not all(isinstance(name, str) for name in value):
        raise Unread("the features are not a list of names")
    if len(set(value)) != len(value):
        raise Unread("two features have the same name")
    return tuple(value)


def class_labels(value: object) -> tuple[Label, ...]:
    """Class labels: of one kind, at least one, no two alike."""
    if not isinstance(value, tuple | list) or not value:
        raise Unread("the classes are not a list of labels")
    kinds = {type(label) for label in value}
    if len(kinds) != 1 or not kinds <= {str, int, float, bool} or len(set(value)) != len(value):
        raise Unread("the classes are not different labels of one kind")
    if any(isinstance(label, float) and not math.isfinite(label) for label in value):
        raise Unread("a class label is not a number")
    if any(is_minus_nothing(label) for label in value):
        raise Unread("a class label is -0.0, which no program has")
    return tuple(value)


def is_minus_nothing(number: object) -> bool:
    """Whether this is -0.0, which compares as 0.0 and is written otherwise."""
    return isinstance(number, float) and number == 0.0 and math.copysign(1.0, number) < 0.0


def leaf_outcome(where: str, winner: object, probabilities: object, classes: int, leaf: int) -> Outcome:
    """What a leaf answers, from its row of a table."""
    if type(winner) is not int or not 0 <= winner < classes:
        raise Unread(f"{where}: {winner!r} is not a class: there are {classes}")
    if not isinstance(probabilities, tuple) or len(probabilities) != classes:
        raise Unread(f"{where}: not one probability for each of {classes} classes")
    if not all(isinstance(p, int | float) and not isinstance(p, bool) for p in probabilities):
        raise Unread(f"{where}: a probability is not a number")
    return Outcome(winner, tuple(_as_double(where, p) for p in probabilities), leaf)


def _as_double(where: str, number: float) -> float:
    if is_minus_nothing(number):
        raise Unread(f"{where}: a probability is -0.0")
    try:
        return float(number)
    except OverflowError:
        raise Unread(f"{where}: a probability is not a double") from None


def way_to(steps: Sequence[Step], last: int, clauses: int) -> tuple[tuple[int, bool], ...]:
    """Each clause tested on the way to a leaf and whether it held, first to last; steps must lead back to the start."""
    way = []
    while last >= 0:
        if last >= len(steps):
            raise Unread(f"step {last} is not there")
        before, clause, holds = steps[last]
        if before >= last or not 0 <= clause < clauses:
            raise Unread(f"step {last} leads to step {before} and tests clause {clause}")
        way.append((clause, holds))
        last = before
    return tuple(reversed(way))


def reasons_by_clause(value: object, clauses: int) -> tuple[tuple[int, str], ...]:
    """The user's reasons, (clause, text), from texts by the clause's number."""
    if not isinstance(value, dict) or not all(isinstance(text, str) and text for text in value.values()):
        raise Unread("the reasons are not one text per clause")
    if beyond := [clause for clause in value if type(clause) is not int or not 0 <= clause < clauses]:
        raise Unread(f"a reason for clause {beyond[0]!r}, there are {clauses}")
    return tuple(sorted(value.items()))


def rows_of_points(value: object, where: str, classes: int) -> tuple[tuple[int, ...], ...]:
    """Rows of whole numbers, one per class."""
    if not isinstance(value, tuple) or not all(isinstance(row, tuple) and len(row) == classes for row in value):
        raise Unread(f"{where}: not one row of {classes} numbers after another")
    if not all(type(worth) is int for row in value for worth in row):
        raise Unread(f"{where}: points are whole numbers")
    return value


def bands_by_class(value: object, classes: int) -> tuple[tuple[Band, ...], ...]:
    """For each class its bands, from pairs of a least lead, ascending from 0, and one probability per class."""
    if not isinstance(value, tuple) or len(value) != classes or classes < 2:
        raise Unread(f"the bands are not those of {classes} classes")
    bands = []
    for c, own in enumerate(value):
        where = f"the bands of class {c}"
        if not isinstance(own, tuple) or not own or not all(isinstance(b, tuple) and len(b) == 2 for b in own):
            raise Unread(f"{where}: not pairs of a lead and probabilities")
        leads = [least for least, _ in own]
        if any(type(least) is not int for least in leads) or leads[0] != 0 or leads != sorted(set(leads)):
            raise Unread(f"{where}: they do not ascend from 0 in whole points")
        rates = [leaf_outcome(where, 0, probabilities, classes, 0).probabilities for _, probabilities in own]
        bands.append(tuple(Band(least, each) for least, each in zip(leads, rates, strict=True) if each is not None))
    return tuple(bands)


def scale_of(worth: float) -> int:
    """The scale of points that are worth 2**-scale of a logit each."""
    mantissa, exponent = math.frexp(worth)
    if mantissa != 0.5:
        raise Unread(f"a point is worth {worth!r}, which is not a power of two")
    return known_scale(1 - exponent)


def known_scale(scale: object) -> int:
    """A scale that a rule program can have."""
    if type(scale) is not int or not 0 <= scale <= LARGEST_SCALE:
        raise Unread(f"points of scale {scale!r}: a scale is a whole number from 0 to {LARGEST_SCALE}")
    return scale
