"""Labels as deployed things give them, matched to the classes of a program.

Text, numbers and truth values are three kinds, and a label of one kind is never a label of another: '1', 1 and True
are three labels. Integers, decimals and doubles are one kind, compared by value, because engines choose the width.
Two places have fewer types than that and are read with it in mind: in a CSV file everything is text, so text that
reads as the label is the label (`1`, `1.0`, `true`); a database without truth values holds them as 1 and 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, TypeAlias

from gbfl_compile.ir.nodes import Label

Kind: TypeAlias = Literal["text", "number", "truth"]
LabelStorage: TypeAlias = Literal["typed", "text", "truth as numbers"]
"""How the place that holds the labels tells their kinds apart."""

UNKNOWN = -1
"""The class number of what is no class of the program; a missing label is none either."""

NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class LabelCodes:
    """The labels of some rows: a number a row, and what each number stands for."""

    codes: Any
    """Indices into `distinct`."""
    distinct: tuple[Any, ...]
    """None is a missing label."""


def class_finder(classes: Sequence[Label], held: LabelStorage = "typed") -> Callable[[Any], int]:
    """A function from a label as it is held to the number of its class, or UNKNOWN."""
    numbers: Mapping[Hashable, int] = {(kind_of(label), label): number for number, label in enumerate(classes)}
    kind_wanted = kind_of(classes[0])

    def class_number(stored: Any) -> int:
        value = _plain(stored)
        if held == "text" and isinstance(value, str):
            value = _read_text(value, kind_wanted)
        elif held == "truth as numbers" and kind_wanted == "truth" and kind_of(value) == "number" and value in (0, 1):
            value = bool(value)
        kind = kind_of(value)
        return UNKNOWN if kind is None else numbers.get((kind, value), UNKNOWN)

    return class_number


def kind_of(label: Any) -> Kind | None:
    """What kind of label this is; None where no program can have it."""
    match label:
        case bool():
            return "truth"
        case str():
            return "text"
        case int() | float() | Decimal():
            return "number"
        case _:
            return None


def _plain(stored: Any) -> Any:
    """A numpy scalar as the Python value it holds."""
    return stored.item() if type(stored).__module__ == "numpy" and hasattr(stored, "item") else stored


def _read_text(text: str, kind: Kind | None) -> Any:
    """Text as a label of the wanted kind; as it is where it cannot be read so."""
    if kind == "truth" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind == "number" and NUMBER.fullmatch(text):
        return int(text) if re.fullmatch(r"[+-]?\d{1,300}", text, re.ASCII) else float(text)
    return text


def as_json(label: Any) -> Any:
    """A label as JSON: what JSON or a program cannot have comes out as text."""
    label = _plain(label)
    if label is None or isinstance(label, str | bool | int):
        return label
    if isinstance(label, float) and math.isfinite(label):
        return label
    return str(label) if isinstance(label, float | Decimal) else repr(label)[:200]
