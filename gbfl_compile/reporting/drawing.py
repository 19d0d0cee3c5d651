"""Pictures as shapes; and a tree as one, read from the left: up where a clause holds, down where it does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

from gbfl_compile.ir.nodes import Clause, Interval, Kind, Leaf, OneOf, Program, Split, Tree
from gbfl_compile.ir.text import bound_text, value_text
from gbfl_compile.reporting.text import class_names, count, distinct, shorten


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle. `role` is its CSS class, here and below: colours are defined only in the style sheet."""

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
    """Text; `anchor` says which of its ends is at x."""

    x: str
    y: str
    text: str
    role: str
    anchor: Literal["start", "middle", "end"] = "start"
    kind: Literal["words"] = "words"


Shape: TypeAlias = Box | Stroke | Dot | Words


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture, and the text a screen reader reads in its place. `name` is unique on the page."""

    name: str
    width: str
    height: str
    title: str
    description: str
    shapes: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar beside its number in a table, 100 units long in all; it says nothing that the number does not."""

    x: str
    width: str
    role: str


def px(value: float) -> str:
    """A length, written short: two decimals, no trailing zeros, no minus zero.

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


def signed_bar(value: float, largest: float, roles: tuple[str, str] = ("for", "against")) -> Bar:
    """A bar from the middle to the right (for) or to the left (against); `largest` fills its half."""
    length = 50 * min(1.0, abs(value) / largest) if largest else 0.0
    return Bar(px(50.0 if value >= 0 else 50 - length), px(length), roles[0] if value >= 0 else roles[1])


DEEPEST, MOST_LEAVES = 6, 64
"""A larger tree is written as text only: no picture of it would fit a page."""

SLOT = 34.0
"""Distance from one leaf to the next."""
COLUMN, QUESTION, QUESTION_HEIGHT = 172.0, 130.0, 50.0
TOP = 26.0
ANSWER_WIDTH, SHARE_WIDTH = 214.0, 76.0
LETTERS = 17
"""How many letters fit into a question's box."""
LONGEST_WHOLE = 8
"""Digits of a whole number that is written in full."""
WIDEST_STREAM = 24.0

COLOURED_CLASSES = 6
"""Only the first classes have distinct colours; the others share one and differ by name."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node is drawn, and how many training rows pass through it (None: not counted)."""

    depth: int
    y: float
    rows: int | None


def depth_of(tree: Tree) -> int:
    """The number of splits on the longest path to a leaf."""
    return max(_depths(tree))


def _depths(tree: Tree) -> list[int]:
    depths = [0] * len(tree.nodes)
    for index, node in enumerate(tree.nodes):
        if isinstance(node, Split):
            depths[node.then] = depths[node.otherwise] = depths[index] + 1
    return depths


def can_be_drawn(tree: Tree) -> bool:
    """Whether a picture of the tree fits a page."""
    leaves = sum(isinstance(node, Leaf) for node in tree.nodes)
    return leaves <= MOST_LEAVES and depth_of(tree) <= DEEPEST


def tree_drawing(program: Program, tree: Tree) -> Drawing:
    """The picture: questions in columns, answers one below the other at the right."""
    places = _places(tree)
    leaves = sum(isinstance(node, Leaf) for node in tree.nodes)
    answers_x = COLUMN * max(1, depth_of(tree)) + 6
    shapes = [
        *_headings(answers_x),
        *_streams(tree, places, answers_x),
        *_questions(program, tree, places),
        *_answers(program, tree, places, answers_x),
    ]
    splits = len(tree.nodes) - leaves
    return Drawing(
        name="tree",
        width=px(answers_x + ANSWER_WIDTH),
        height=px(TOP + SLOT * leaves + 4),
        title=f"The tree: {count(splits, 'question')}, {count(leaves, 'answer')}",
        description="From left to right. The upper branch of a question is taken where its clause holds. "
        "The same tree is written in words below the picture.",
        shapes=tuple(shapes),
    )


def _places(tree: Tree) -> list[Place]:
    """Leaves one below the other; a question halfway between its two branches. Preorder: children come after."""
    depths = _depths(tree)
    slot = sum(isinstance(node, Leaf) for node in tree.nodes)
    places = [Place(0, 0.0, None)] * len(tree.nodes)
    for index in reversed(range(len(tree.nodes))):
        node = tree.nodes[index]
        if isinstance(node, Leaf):
            slot -= 1
            places[index] = Place(depths[index], TOP + SLOT * (slot + 0.5), node.rows)
        else:
            then, otherwise = places[node.then], places[node.otherwise]
            known = then.rows is not None and otherwise.rows is not None
            rows = (then.rows or 0) + (otherwise.rows or 0) if known else None
            places[index] = Place(depths[index], (then.y + otherwise.y) / 2, rows)
    return places


def _headings(answers_x: float) -> Iterator[Shape]:
    yield words(0, 12, "question", "faint")
    yield words(answers_x, 12, "answer", "faint")
    yield words(answers_x + ANSWER_WIDTH - 2, 12, "training rows", "faint", "end")


def _streams(tree: Tree, places: list[Place], answers_x: float) -> Iterator[Shape]:
    whole = places[0].rows
    for index, node in enumerate(tree.nodes):
        if isinstance(node, Leaf):
            continue
        start_x = COLUMN * places[index].depth + QUESTION
        for child, role in ((node.then, "holds"), (node.otherwise, "fails")):
            place = places[child]
            end_x = answers_x - 8 if isinstance(tree.nodes[child], Leaf) else COLUMN * place.depth
            turn_x = COLUMN * (places[index].depth + 1)
            width = 2.0 if not whole or place.rows is None else max(1.0, WIDEST_STREAM * place.rows / whole)
            start_y, middle = places[index].y + (-7 if role == "holds" else 7), (start_x + turn_x) / 2
            path = (
                f"M{px(start_x)} {px(start_y)}C{px(middle)} {px(start_y)} {px(middle)} {px(place.y)} "
                f"{px(turn_x)} {px(place.y)}L{px(max(end_x, turn_x))} {px(place.y)}"
            )
            yield Stroke(path, role, px(width))
            yield words(
                start_x + 5, start_y + (-10 if role == "holds" else 17), "yes" if role == "holds" else "no", "faint"
            )


def _questions(program: Program, tree: Tree, places: list[Place]) -> Iterator[Shape]:
    names = distinct(program.features)
    for index, node in enumerate(tree.nodes):
        if isinstance(node, Leaf):
            continue
        x, y = COLUMN * places[index].depth, places[index].y
        rows = places[index].rows
        name, bounds = _first_atom(program, program.clauses[node.clause], names)
        yield box(x, y - QUESTION_HEIGHT / 2, QUESTION, QUESTION_HEIGHT, "question")
        yield words(x + 8, y - 10, f"C{node.clause}" + ("" if rows is None else f" · {count(rows, 'row')}"), "strong")
        yield words(x + 8, y + 4, shorten(name, LETTERS), "plain")
        yield words(x + 8, y + 18, bounds, "small")


def _first_atom(program: Program, clause: Clause, names: tuple[str, ...]) -> tuple[str, str]:
    """What fits into a box: one feature, its bounds or texts, * where a gap passes too, and how many more there are."""
    if not clause.atoms:
        return "always", ""
    more = f", +{len(clause.atoms) - 1}" if len(clause.atoms) > 1 else ""
    match clause.atoms[0]:
        case Interval() as atom:
            text = _bounds_text(atom, program.kind(atom.feature), bool(more))
        case OneOf() as atom:
            text = _set_text(atom, program.kind(atom.feature))
        case other:
            assert_never(other)
    gap = "*" if atom.if_missing and text not in ("is missing", "always") else ""
    return names[atom.feature], text + gap + more


def _bounds_text(atom: Interval, kind: Kind, is_short: bool) -> str:
    lo, hi = ("" if bound is None else _cut_text(bound, kind) for bound in (atom.lo, atom.hi))
    lo = lo and f"{'≥' if atom.lo_closed else '>'} {lo}"
    hi = hi and f"{'≤' if atom.hi_closed else '<'} {hi}"
    bounds = f"{lo}, {hi}" if lo and hi and not is_short else lo + ("…" if lo and hi else hi)
    return bounds or ("always" if atom.if_missing else "is present")


def _cut_text(bound: float, kind: Kind) -> str:
    if kind != "number":
        return bound_text(bound, kind)
    is_short = bound == int(bound) and abs(bound) < 10**LONGEST_WHOLE
    return f"{bound:.0f}" if is_short else f"{bound:.4g}"


def _set_text(atom: OneOf, kind: Kind) -> str:
    if not atom.values:
        return "is present" if atom.negated else "is missing"
    if kind == "boolean":
        return "is false" if atom.negated else "is true"
    texts = shorten(", ".join(map(value_text, atom.values)), LETTERS - 6)
    return (
        f"{'not ' if atom.negated else ''}{'in ' if len(atom.values) > 1 else 'is ' if not atom.negated else ''}{texts}"
    )


def _answers(program: Program, tree: Tree, places: list[Place], x: float) -> Iterator[Shape]:
    labels = class_names(program.classes)
    for index, node in enumerate(tree.nodes):
        if not isinstance(node, Leaf):
            continue
        y, best = places[index].y, node.winner
        yield words(x, y - 2, shorten(labels[best], 20), "strong")
        start = 0.0
        for number, share in enumerate(node.probabilities):
            if share > 0:
                yield box(x + start, y + 4, max(0.5, SHARE_WIDTH * share), 7, class_role(number))
                start += SHARE_WIDTH * share
        yield words(x + SHARE_WIDTH + 8, y + 12, f"{node.probabilities[best]:.2f}", "small")
        if node.rows is not None:
            yield words(x + ANSWER_WIDTH - 2, y + 4, f"{node.rows:,}", "strong", "end")


def class_role(number: int) -> str:
    """The CSS class that colours a class of the program."""
    return f"class{number if number < COLOURED_CLASSES else 'x'}"
