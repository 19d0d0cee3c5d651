"""The section on the rules: a tree as an outline with its counts, a rule set as signed points, largest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from gbfl_compile.ir.nodes import Leaf, Program, Scorecard, Tree, is_rule_list
from gbfl_compile.ir.text import bands_text, clause_text, reason_of
from gbfl_compile.reporting.drawing import Bar, Drawing, can_be_drawn, class_role, share_bar, signed_bar, tree_drawing
from gbfl_compile.reporting.text import class_names, count, distinct, one_line, signed_text

SHOWN, MOST = 14, 320
"""Lines shown unfolded, and lines on the page at all: what is left out is counted, and `gbfl show` prints it."""

MOST_COLUMNS = 5
DEEPEST_INDENT = 12


@dataclass(frozen=True, slots=True)
class OutlineLine:
    """A question or an answer of a tree in words; the indent says which question it belongs to."""

    indent: int
    opening: str
    clause: str
    text: str
    answer: str
    figure: str
    rows: str
    bar: Bar | None


@dataclass(frozen=True, slots=True)
class PointsLine:
    """A clause of a rule set and its points for each class shown."""

    clause: str
    text: str
    details: tuple[str, ...]
    """The owner's reason, and on how many training rows it holds."""
    cells: tuple[tuple[str, Bar | None], ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """A drawing and an outline of a tree, or the points of a rule set."""

    summary: str
    drawing: Drawing | None
    outline: tuple[OutlineLine, ...]
    columns: tuple[str, ...]
    points: tuple[PointsLine, ...]
    note: str
    left_out: str


def rules(program: Program) -> Rules:
    """The rules of the program, as a picture or a table."""
    match program.decision:
        case Tree():
            return _tree(program, program.decision)
        case Scorecard():
            return _card(program, program.decision)
        case _:
            assert_never(program.decision)


def reason_text(program: Program, clause: int) -> str:
    """The text its owner gave a clause (an adverse-action code, for example), or an empty string."""
    return one_line(reason_of(program, clause) or "", 200)


def _support(program: Program, clause: int) -> str:
    """The number of training rows on which a clause holds, where `gbfl mine` counted them."""
    mining: Any = program.metadata.get("mining")
    counts = mining.get("clause_support") if isinstance(mining, Mapping) else None
    if not isinstance(counts, list) or len(counts) != len(program.clauses) or type(counts[clause]) is not int:
        return ""
    return f"holds on {count(counts[clause], 'training row')}"


def _tree(program: Program, tree: Tree) -> Rules:
    lines = outline(program, tree)
    drawn = can_be_drawn(tree)
    leaves = sum(isinstance(node, Leaf) for node in tree.nodes)
    summary = f"A tree of {count(len(tree.nodes) - leaves, 'question')} and {count(leaves, 'answer')}."
    if is_rule_list(tree):
        summary = f"A list of {count(leaves - 1, 'rule')}: the first that holds decides."
    elif not drawn:
        summary += " It is too large for a picture and is written in words."
    return Rules(
        summary=summary,
        drawing=tree_drawing(program, tree) if drawn else None,
        outline=tuple(lines[:MOST]),
        columns=(),
        points=(),
        note="",
        left_out=_left_out(len(lines)),
    )


def _left_out(lines: int) -> str:
    return f"{count(lines - MOST, 'line')} more: gbfl show prints them all." if lines > MOST else ""


def outline(program: Program, tree: Tree) -> list[OutlineLine]:
    """The tree in words. Only a THEN branch with another question is indented, so a rule list stays flat."""
    names, labels = distinct(program.features), class_names(program.classes)
    most = max((node.rows or 0 for node in tree.nodes if isinstance(node, Leaf)), default=0)
    lines: list[OutlineLine] = []
    waiting = [(0, 0, "")]
    while waiting:
        index, indent, opening = waiting.pop()
        node = tree.nodes[index]
        clause, text = "", ""
        answer: Leaf | None
        if isinstance(node, Leaf):
            answer, opening = node, opening or "always"
        else:
            then = tree.nodes[node.then]
            answer = then if isinstance(then, Leaf) else None
            clause, text = f"C{node.clause}", clause_text(program.clauses[node.clause], names, program.kinds)
            opening = f"{opening} if".strip()
            waiting.append((node.otherwise, indent, "else"))
            if answer is None:
                waiting.append((node.then, indent + 1, ""))
        answer_cells = ("", "", "", None) if answer is None else _answer(answer, labels, most)
        lines.append(OutlineLine(min(indent, DEEPEST_INDENT), opening, clause, text, *answer_cells))
    return lines


def _answer(leaf: Leaf, labels: tuple[str, ...], most: int) -> tuple[str, str, str, Bar | None]:
    best = leaf.winner
    bar = None if leaf.rows is None or not most else share_bar(leaf.rows / most, class_role(best))
    return labels[best], f"{leaf.probabilities[best]:.2f}", "" if leaf.rows is None else f"{leaf.rows:,}", bar


def _card(program: Program, card: Scorecard) -> Rules:
    classes, names = class_names(program.classes), distinct(program.features)
    columns, table, note = _columns(card, classes)
    # of two classes, a bar has the colour that its class has everywhere else on the page
    roles = (class_role(1), class_role(0)) if len(classes) == 2 else ("for", "against")
    largest = max((abs(points) for row in table[1:] for points in row), default=0)
    order = sorted(range(1, len(table)), key=lambda i: (-max(map(abs, table[i]), default=0), i))

    def line(index: int) -> PointsLine:
        cells = tuple(
            # a class may start with many times the points of any clause: a clipped bar would understate it
            (signed_text(points), signed_bar(points, largest, roles) if abs(points) <= largest else None)
            for points in table[index]
        )
        if index == 0:
            return PointsLine("", "to start with", (), cells)
        clause = index - 1
        details = tuple(filter(None, (reason_text(program, clause), _support(program, clause))))
        return PointsLine(f"C{clause}", clause_text(program.clauses[clause], names, program.kinds), details, cells)

    if card.bands:
        rates = "; ".join(
            f"{name}: {bands_text(own, c)}" for c, (name, own) in enumerate(zip(classes, card.bands, strict=True))
        )
        note = f"{note} How often the answer was observed to be right, by its lead in points: {rates}.".strip()
    worth = f"A point is worth 1/{2**card.scale} of a logit." if card.scale else "A point is worth one logit."
    return Rules(
        summary=f"A rule set of {count(len(program.clauses), 'clause')}: the points of those that hold are added up, "
        f"and the class with the most points wins; ties go to the earlier class. {worth}",
        drawing=None,
        outline=(),
        columns=columns,
        points=tuple(line(index) for index in (0, *order[: MOST - 1])),
        note=note,
        left_out=_left_out(len(table)),
    )


def _columns(card: Scorecard, classes: tuple[str, ...]) -> tuple[tuple[str, ...], list[tuple[int, ...]], str]:
    """Which points are shown: for two classes the difference, which decides; for many, the classes with most points."""
    table = [card.bias, *card.points]
    if len(classes) == 2:
        note = f"Bars to the right favour {classes[1]}, bars to the left {classes[0]}: the difference of the two."
        return (f"for {classes[1]}",), [(row[1] - row[0],) for row in table], note
    weight = [sum(abs(row[c]) for row in table) for c in range(len(classes))]
    shown = sorted(sorted(range(len(classes)), key=lambda c: (-weight[c], c))[:MOST_COLUMNS])
    left = len(classes) - len(shown)
    note = f"Classes with fewer points are not shown: {left:,} of {len(classes):,}." if left else ""
    return tuple(classes[c] for c in shown), [tuple(row[c] for c in shown) for row in table], note
