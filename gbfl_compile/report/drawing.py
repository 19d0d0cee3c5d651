"""Drawings as data: shapes with their place and their role. A template writes them as SVG and escapes every word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle. `role` is its CSS class, here and below: colours live in the style sheet alone."""

    x: str
    y: str
    width: str
    height: str
    role: str
    kind: Literal["box"] = "box"


@dataclass(frozen=True, slots=True)
class Stroke:
    """A line along an SVG path."""

    path: str
    role: str
    width: str = "1"
    kind: Literal["stroke"] = "stroke"


@dataclass(frozen=True, slots=True)
class Dot:
    """A point on a curve."""

    x: str
    y: str
    role: str
    kind: Literal["dot"] = "dot"


@dataclass(frozen=True, slots=True)
class Words:
    """Text; `anchor` says which of its ends stands at x."""

    x: str
    y: str
    text: str
    role: str
    anchor: Literal["start", "middle", "end"] = "start"
    kind: Literal["words"] = "words"


Shape: TypeAlias = Box | Stroke | Dot | Words


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture with what a screen reader says instead of it. `name` is unique on the page."""

    name: str
    width: str
    height: str
    title: str
    description: str
    shapes: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar beside its number in a table, of 100 units in all; it says nothing that the number does not."""

    x: str
    width: str
    role: str


def px(value: float) -> str:
    """A length as short as a picture needs it: two decimals, no trailing zeros, no minus zero.

    >>> px(12.0), px(0.126), px(-0.001)
    ('12', '0.13', '0')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def box(x: float, y: float, width: float, height: float, role: str) -> Box:
    """A rectangle from numbers."""
    return Box(px(x), px(y), px(width), px(height), role)


def words(x: float, y: float, text: str, role: str, anchor: Literal["start", "middle", "end"] = "start") -> Words:
    """Text at a place."""
    return Words(px(x), px(y), text, role, anchor)


def share_bar(share: float, role: str) -> Bar:
    """A bar from 0 to `share` of the whole."""
    return Bar("0", px(100 * min(max(share, 0.0), 1.0)), role)


def signed_bar(value: float, largest: float) -> Bar:
    """A bar from the middle to the right (for) or to the left (against); `largest` fills its half."""
    length = 50 * min(1.0, abs(value) / largest) if largest else 0.0
    return Bar(px(50.0 if value >= 0 else 50 - length), px(length), "for" if value >= 0 else "against")
