"""What an expression of the strict form means. An expression is read straight into one of these, typed by its class.

A stage's columns are such values, and the next stage reads them by name, so there is no syntax tree: what is not a
value of the strict form is refused where it is read. Conditions are numbers of a `Book`, which knows each of them once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, assert_never

from gbfl_compile.checking.reading.nodes import Condition
from gbfl_compile.ir.nodes import Kind as FeatureKind

Kind: TypeAlias = Literal["column", "converted", "moment", "double", "numeric", "integer", "text", "texts", "truth"]


@dataclass(slots=True)
class Book:
    """The conditions met so far, each under one number; mutable, because reading fills it."""

    conditions: list[Condition] = field(default_factory=list)
    numbers: dict[Condition, int] = field(default_factory=dict)
    texts: dict[int, list[str]] = field(default_factory=dict)
    """Feature -> the texts it is compared with, in the order in which they were met: their codes are 1, 2, …"""

    def code(self, feature: int, text: str) -> int:
        """The code of a text of a feature, a new one where it was not met before."""
        known = self.texts.setdefault(feature, [])
        if text not in known:
            known.append(text)
        return known.index(text) + 1

    def number_of(self, condition: Condition) -> int:
        """The number of a condition, a new one where it was not met before."""
        if condition not in self.numbers:
            self.numbers[condition] = len(self.conditions)
            self.conditions.append(condition)
        return self.numbers[condition]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table as it is, of whatever type: a key, or a feature before it is made a double."""

    name: str
    feature: int | None


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature as a double, NULL where the column is."""

    feature: int
    column: str


@dataclass(frozen=True, slots=True)
class ExactFeature:
    """A feature that is a word, a boolean, a date or a timestamp, converted so that it is compared exactly."""

    feature: int
    column: str
    kind: FeatureKind


@dataclass(frozen=True, slots=True)
class Moment:
    """A date or timestamp, in days or microseconds since 1970."""

    kind: FeatureKind
    number: float


@dataclass(frozen=True, slots=True)
class Number:
    """A double; NaN and the infinities only to be compared with."""

    value: float


@dataclass(frozen=True, slots=True)
class Numeric:
    """A decimal of a type of its own, which has to be cast to a double."""

    value: float


@dataclass(frozen=True, slots=True)
class Whole:
    """An integer, and whether it is of 64 bits for certain."""

    value: int
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """A string."""

    value: str


@dataclass(frozen=True, slots=True)
class TextList:
    """`ANY (ARRAY['a', 'b'])` or `ALL (ARRAY['a', 'b'])`, only to be compared with a word."""

    quantifier: Literal["ANY", "ALL"]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Truth:
    """TRUE or FALSE."""

    value: bool


Constant: TypeAlias = Number | Whole | Text | Truth


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """The value of the first condition that holds: constants, or Cases in turn, all of one kind."""

    whens: tuple[tuple[int, Case | Constant], ...]
    otherwise: Case | Constant


@dataclass(frozen=True, slots=True, eq=False)
class LookUp:
    """A constant for each number a Case of integers can give: `[…][leaf + 1]`, or a CASE on `leaf < n`."""

    leaf: Case
    steps: tuple[tuple[float, Constant], ...]
    """The constant for the numbers below each bound, bounds ascending; the last one is infinite."""


@dataclass(frozen=True, slots=True)
class Points:
    """An integer sum: a constant and points for each condition that holds."""

    bias: int
    terms: Mapping[int, int]
    bound: int
    """No partial sum is larger than this in magnitude."""
    wide: bool


@dataclass(frozen=True, slots=True)
class Top:
    """The greatest of several sums."""

    sums: tuple[Points, ...]


@dataclass(frozen=True, slots=True)
class Behind:
    """How far a sum is behind the greatest of several."""

    points: Points
    top: Top


@dataclass(frozen=True, slots=True)
class Logit:
    """A difference of points as a double, a point being 2**-scale, cut off above and below or not yet."""

    of: Points | Behind
    scale: int | None = None
    capped: bool = False
    clamped: bool = False


@dataclass(frozen=True, slots=True)
class Weight:
    """EXP of a clamped logit."""

    of: Points | Behind
    scale: int


@dataclass(frozen=True, slots=True)
class Mass:
    """A sum of weights, and of ones (None)."""

    parts: tuple[Weight | None, ...]


@dataclass(frozen=True, slots=True)
class Share:
    """A weight, or one, over a sum of weights."""

    part: Weight | None
    of: Mass


@dataclass(frozen=True, slots=True)
class JoinedText:
    """Texts one after the other, each where its condition holds."""

    parts: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class DoubtfulValue:
    """A label by points: the first class whose contests are all won."""

    whens: tuple[tuple[tuple[Contest, ...], Constant], ...]
    otherwise: Constant


@dataclass(frozen=True, slots=True)
class Contest:
    """A comparison of sums."""

    sign: str
    left: Points
    right: Points | Top


Value: TypeAlias = (
    Column
    | Feature
    | ExactFeature
    | Moment
    | Number
    | Numeric
    | Whole
    | Text
    | TextList
    | Truth
    | Case
    | LookUp
    | Points
    | Top
    | Behind
    | Logit
    | Weight
    | Mass
    | Share
    | JoinedText
    | DoubtfulValue
)


def kind_of(value: Value) -> Kind:
    """The type of a value, as far as the grammar tells types apart."""
    match value:
        case Column():
            return "column"
        case ExactFeature():
            return "converted"
        case Moment():
            return "moment"
        case Feature() | Number() | Logit() | Weight() | Mass() | Share():
            return "double"
        case Numeric():
            return "numeric"
        case Whole() | Points() | Top() | Behind():
            return "integer"
        case Text() | JoinedText():
            return "text"
        case TextList():
            return "texts"
        case Truth():
            return "truth"
        case Case(_, otherwise):
            return kind_of(otherwise)
        case LookUp(_, steps):
            return kind_of(steps[0][1])
        case DoubtfulValue(_, otherwise):
            return kind_of(otherwise)
        case _:
            assert_never(value)


def ends_of(case: Case) -> Iterable[Constant]:
    """The constants a Case can give."""
    waiting: list[Case | Constant] = [case]
    while waiting:
        match waiting.pop():
            case Case(whens, otherwise):
                waiting += [otherwise, *(value for _, value in whens)]
            case end:
                yield end


def longest_text(found: Value) -> int:
    """The most characters a text can have."""
    match found:
        case Text(text):
            return len(text)
        case Case():
            return max(longest_text(end) for end in ends_of(found))
        case JoinedText(parts):
            return sum(len(text) for _, text in parts)
        case DoubtfulValue(whens, otherwise):
            return max(longest_text(end) for end in (otherwise, *(end for _, end in whens)))
    return 0
