"""What a tensor of an ONNX graph can be on any batch of rows: columns, truth values, choices, sums of points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.checking.reading.conditions import Value
from gbfl_compile.checking.reading.nodes import Condition
from gbfl_compile.ir.nodes import Band as RateBand

Array: TypeAlias = NDArray[np.generic]

EXACT: Mapping[str, int] = {"float32": 2**24, "float64": 2**53}
"""Whole numbers below this are added exactly in the type, in any order."""


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A constant."""

    array: Array


@dataclass(frozen=True, slots=True)
class Matrix:
    """`[rows, features]`: these features of the input, in its own type."""

    features: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Words:
    """`[rows, features]`: the texts of these categories, or with `flags` whether each of them is missing."""

    features: tuple[int, ...]
    flags: bool


@dataclass(frozen=True, slots=True)
class WordColumn:
    """`[rows]`: the texts of one category."""

    feature: int


@dataclass(frozen=True, slots=True)
class Codes:
    """`[rows]` int64: a number for each text of one category, one for any other text, one where it is missing.

    Until the missing values are separated (`missing` is None) a row's text may be anything where it is missing.
    """

    feature: int
    texts: tuple[str, ...]
    numbers: tuple[int, ...]
    other: int
    missing: int | None


@dataclass(frozen=True, slots=True)
class CodedColumn:
    """One column of numbers that a category's codes are looked up as; none of them is NaN."""

    codes: Codes
    numbers: tuple[float, ...]
    """The number for each text, then for any other text, then for a missing value."""


@dataclass(frozen=True, slots=True)
class Wide:
    """`[rows, columns]`: features as they are, and columns that categories were looked up as."""

    columns: tuple[int | CodedColumn, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Column:
    """`[rows]`: one feature."""

    feature: int
    dtype: str


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of something: `[rows, width]`, or `[rows]` where the width is None."""

    width: int | None


@dataclass(frozen=True, slots=True)
class Truth:
    """`[rows]` of truth values."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class Truths:
    """Many columns of truth values: end to end `[many * rows]`, as lines `[many, rows]`, or by row `[rows, many]`."""

    conditions: tuple[Condition, ...]
    form: Literal["end to end", "lines", "by row"]


@dataclass(frozen=True, slots=True)
class Wording:
    """`[rows, many]` of texts: each condition's own where it holds, nothing where it does not."""

    truths: Truths
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ones:
    """Lines of truth values as 1 and 0 of a floating-point type."""

    conditions: tuple[Condition, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Number:
    """One whole number per row, `[rows]` or `[rows, 1]`."""

    value: Value
    dtype: str
    flat: bool


@dataclass(frozen=True, slots=True)
class Ensemble:
    """`[rows, targets]`: for each tree the leaf a row reaches; leaves have a target and a whole weight."""

    trees: tuple[Value, ...]
    targets: tuple[int, ...]
    weights: tuple[int, ...]
    width: int
    dtype: str


@dataclass(frozen=True, slots=True)
class Points:
    """Whole points: for each class what it starts with, and what is added to it where a condition holds."""

    bias: tuple[int, ...]
    terms: tuple[tuple[Condition, tuple[int, ...]], ...]
    dtype: str
    lines: bool
    """`[classes, rows]` rather than `[rows, classes]`."""

    @property
    def most(self) -> int:
        """What no sum of a class goes past, on the way or at the end."""
        columns = range(len(self.bias))
        return max(abs(self.bias[c]) + sum(abs(row[c]) for _, row in self.terms) for c in columns)


@dataclass(frozen=True, slots=True)
class LookUp:
    """A row of a table for each row, looked up by a number."""

    table: Constant
    number: Value


@dataclass(frozen=True, slots=True)
class Winner:
    """The class with most points."""

    points: Points
    last: bool
    """Whether ties go to the last class."""


@dataclass(frozen=True, slots=True)
class WinnersLabel:
    """The label of the class with most points."""

    labels: Constant
    winner: Winner


@dataclass(frozen=True, slots=True)
class Logits:
    """Points times what a point is worth."""

    points: Points
    worth: float


@dataclass(frozen=True, slots=True)
class Softmax:
    """Probabilities of points, each worth a known fraction of a logit."""

    points: Points
    worth: float


Stage: TypeAlias = Literal[
    "two most",
    "unused",
    "first",
    "second",
    "lead",
    "column",
    "own leads",
    "reached",
    "ones",
    "count",
    "start",
    "place",
]
"""How far the look-up of a band has come; `bands.py` says what each is."""


@dataclass(frozen=True, slots=True)
class Band:
    """A step on the way to the winner's band: how far it is ahead, the leads of its bands, the row of the table."""

    points: Points
    stage: Stage
    leads: Constant | None = None
    width: int = 0


@dataclass(frozen=True, slots=True)
class Rates:
    """Probabilities that are constants of the winner's band."""

    points: Points
    bands: tuple[tuple[RateBand, ...], ...]


Tensor: TypeAlias = (
    Constant
    | Matrix
    | Words
    | WordColumn
    | Codes
    | Wide
    | Column
    | Shape
    | Truth
    | Truths
    | Wording
    | Ones
    | Number
    | Ensemble
    | Points
    | LookUp
    | Winner
    | WinnersLabel
    | Logits
    | Softmax
    | Band
    | Rates
)


def whole(number: object) -> int | None:
    """A number of a constant as a whole number, or None where it is not one."""
    if isinstance(number, np.bool_ | bool):
        return None
    if isinstance(number, np.integer | int):
        return int(number)
    if isinstance(number, np.floating | float) and float(number).is_integer():
        return int(number)
    return None


def single(tensor: Tensor) -> object | None:
    """The one element of a constant that has no more, and at most one dimension."""
    if isinstance(tensor, Constant) and tensor.array.size == 1 and tensor.array.ndim <= 1:
        element: object = tensor.array.reshape(-1)[0]
        return element
    return None
