"""The inputs of a graph: which features each one takes, in which columns. A loader feeds rows by the same rule.

Numbers, dates (days), timestamps (microseconds since 1970-01-01, UTC) and booleans (1 or 0) are numbers here, NaN where
they are missing. Categories are texts, with a truth value beside each that says whether it is missing: no text is set
aside for that, and ONNX Runtime would take None for the text "None".

    inputs=tensor     input [rows, numbers], texts [rows, categories], texts_missing [rows, categories]
    inputs=columns    one [rows, 1] per feature, named after it, and for a category `NAME is missing`
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Kind

INPUT, TEXTS, TEXTS_MISSING = "input", "texts", "texts_missing"

Holds: TypeAlias = Literal["numbers", "texts", "missing"]


@dataclass(frozen=True, slots=True)
class Input:
    """One input `[rows, columns]`: its name, the feature of each column, and what of these features it holds."""

    name: str
    features: tuple[int, ...]
    holds: Holds


def inputs_of(features: Sequence[str], kinds: Sequence[Kind], by_columns: bool) -> tuple[Input, ...]:
    """The inputs of a program with these features, in order."""
    words = tuple(feature for feature, kind in enumerate(kinds) if kind == "category")
    if by_columns:
        every = [_column_inputs(feature, name, feature in words) for feature, name in enumerate(features)]
        return tuple(each for several in every for each in several)
    plain = tuple(feature for feature in range(len(features)) if feature not in set(words))
    numbers = Input(INPUT, plain, "numbers")
    if not words:
        return (numbers,)
    texts = (Input(TEXTS, words, "texts"), Input(TEXTS_MISSING, words, "missing"))
    return (numbers, *texts) if plain else texts


def _column_inputs(feature: int, name: str, is_word: bool) -> tuple[Input, ...]:
    if not is_word:
        return (Input(name, (feature,), "numbers"),)
    return Input(name, (feature,), "texts"), Input(missing_name(name), (feature,), "missing")


def missing_name(name: str) -> str:
    """The input that says where a category is missing."""
    return f"{name} is missing"


def refuse_clashes(inputs: Sequence[Input], outputs: Collection[str]) -> None:
    """Refuse names that are two things at once, which only columns named by the user can be."""
    names = [each.name for each in inputs]
    if clash := [name for name in names if name in outputs]:
        raise BadInput(f"feature {clash[0]!r} is also the name of an output: rename the column or use inputs=tensor")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"{twice!r} is the name of two inputs: rename the column or use inputs=tensor")
