"""The section on one row: which clauses held, what they were worth, and the same for its PP and its PN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import Answer, clause_holds, evaluate
from gbfl_compile.ir.kinds import Value, decode_value, is_missing, plain_value
from gbfl_compile.ir.nodes import Leaf, Program, Scorecard, Tree
from gbfl_compile.ir.text import clause_text, label_text
from gbfl_compile.reporting.drawing import Bar, signed_bar
from gbfl_compile.reporting.rules import reason_text
from gbfl_compile.reporting.text import class_names, count, distinct, row_value, signed_text

if TYPE_CHECKING:
    from gbfl_compile.learning.consistency import Triplets

MOST_REASONS = 60
MOST_CHANGES = 6
MOST_CONDITIONS = 40
MOST_VALUES = 400
MOST_SEARCHED = 2_000
"""A program with more clauses is not searched for sufficient conditions and changes."""


@dataclass(frozen=True, slots=True)
class Point:
    """A row to explain: the row itself, or its PP or PN where they are known."""

    name: str
    values: tuple[Value, ...]
    """As Python has them; NaN or None is missing."""


@dataclass(frozen=True, slots=True)
class ReasonLine:
    """A clause that was evaluated, whether it holds, and its points where there are any."""

    clause: str
    text: str
    reason: str
    holds: str
    points: str
    bar: Bar | None


@dataclass(frozen=True, slots=True)
class ValueLine:
    """A feature's value at the row, its PP and its PN; values that a PP keeps or a PN changes are marked."""

    feature: str
    cells: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RowReasons:
    """The section on one row."""

    answer: str
    how: str
    against: str
    """The class that points are counted against; empty for a tree."""
    reasons: tuple[ReasonLine, ...]
    left_out: str
    points: tuple[str, ...]
    answers: tuple[tuple[str, str, str], ...]
    """(point, its class, what that shows)."""
    values: tuple[ValueLine, ...]
    other_values: tuple[ValueLine, ...]
    """Values of features that no rule tests, no PP keeps and no PN changes."""
    kept: str
    exactly: tuple[tuple[str, tuple[str, ...]], ...]
    """(heading, lines), from the program alone: what suffices, what would change the class."""
    note: str


def points_of(row: Sequence[Value] | None, triplets: Triplets | None, number: int = 0) -> tuple[tuple[Point, ...], str]:
    """The row with its PP and PN. A given row is looked up in the triplets; without one, it is their row `number`."""
    if triplets is None:
        if row is None:
            return (), ""
        return (Point("row", tuple(row)),), "No triplets were given, so neither a PP nor a PN is shown."
    if row is None:
        if not 0 <= number < len(triplets.x):
            raise BadInput(f"row {number} of the triplets: there are {len(triplets.x)}, numbered from 0")
        place = number
    else:
        same = [place for place, x in enumerate(triplets.x) if _same_values(_point_values(triplets, x), row)]
        if not same:
            note = "The row is not among the triplets, so neither its PP nor its PN is known."
            return (Point("row", tuple(row)),), note
        place = same[0]
    points = [Point("row", _point_values(triplets, triplets.x[place]))]
    if triplets.has_pp[place]:
        points.append(Point("PP", _point_values(triplets, triplets.pp[place])))
    if triplets.has_pn[place]:
        points.append(Point("PN", _point_values(triplets, triplets.pn[place])))
    lacking = [name for name, has in (("PP", triplets.has_pp), ("PN", triplets.has_pn)) if not has[place]]
    black_box = f"The black box says {label_text(triplets.label[place].item())}."
    return tuple(points), " ".join([black_box, *(f"No {name} was found for this row." for name in lacking)])


def _point_values(triplets: Triplets, row: Any) -> tuple[Value, ...]:
    """A row of triplets as Python has it."""
    if not triplets.kinds:
        return tuple(row.tolist())
    columns = zip(triplets.kinds, row.tolist(), triplets.texts, strict=True)
    return tuple(decode_value(kind, value, texts) for kind, value, texts in columns)


def _same_values(one: Sequence[Value], other: Sequence[Value]) -> bool:
    return all(a == b or (is_missing(a) and is_missing(b)) for a, b in zip(one, other, strict=True))


def row_reasons(program: Program, points: tuple[Point, ...], note: str) -> RowReasons | None:
    """What the program answers at each point, and why it does so at the first."""
    if not points:
        return None
    answers = [evaluate(program, point.values) for point in points]
    lines = _reasons(program, points[0].values, answers[0])
    values, others = _values(program, points)
    label = label_text(answers[0].label)
    left = len(lines) - MOST_REASONS
    return RowReasons(
        answer=label,
        how=_how(program, answers[0]),
        against=_against(program, answers[0]),
        reasons=tuple(lines[:MOST_REASONS]),
        left_out=f"{count(left, 'clause')} with fewer points are not listed." if left > 0 else "",
        points=tuple(point.name for point in points),
        answers=tuple(
            (point.name, label_text(answer.label), _shows(point.name, answer, answers[0]))
            for point, answer in zip(points, answers, strict=True)
        ),
        values=values[:MOST_VALUES],
        other_values=others[: MOST_VALUES - len(values[:MOST_VALUES])],
        kept=_kept_text(points, len(program.features)),
        exactly=_exactly(program, points[0].values),
        note=note,
    )


def _shows(name: str, answer: Answer, first: Answer) -> str:
    """What a PP and a PN are for, and whether the rules agree."""
    same = answer.label == first.label
    match name:
        case "PP":
            return "enough to keep the class" if same else "meant to keep the class; the rules do not agree"
        case "PN":
            return "the class changes" if not same else "meant to change the class; the rules do not agree"
        case _:
            return "the row itself"


def _against(program: Program, answer: Answer) -> str:
    if answer.scores is None:
        return ""
    rival = _best_two(answer)[1]
    return "nothing else" if rival is None else class_names(program.classes)[rival]


def _how(program: Program, answer: Answer) -> str:
    best = max(answer.probabilities)
    match program.decision:
        case Tree():
            return f"leaf {answer.leaf}, probability {best:.2f}"
        case Scorecard():
            assert answer.scores is not None  # noqa: S101 - a rule set always has scores
            scores = zip(class_names(program.classes), answer.scores, strict=True)
            ranked = sorted(scores, key=lambda item: -item[1])[:5]
            held = f"{count(len(answer.held), 'clause')} of {len(program.clauses)} held"
            points = ", ".join(f"{name} {signed_text(score)}" for name, score in ranked)
            return f"{points} points; {held}; probability about {best:.2f}"
        case _:
            assert_never(program.decision)


def _reasons(program: Program, row: Sequence[Value], answer: Answer) -> list[ReasonLine]:
    """The questions on the path to a leaf, in order; or the clauses that held, those with most points first."""
    names = distinct(program.features)
    plain = [plain_value(program.kind(i), value, program.features[i]) for i, value in enumerate(row)]

    def line(clause: int, holds: bool, points: int | None, largest: int) -> ReasonLine:
        text = clause_text(program.clauses[clause], names, program.kinds)
        holds_text = "holds" if holds else "does not hold"
        points_text = "" if points is None else signed_text(points)
        bar = None if points is None else signed_bar(points, largest)
        return ReasonLine(f"C{clause}", text, reason_text(program, clause), holds_text, points_text, bar)

    match program.decision:
        case Tree(nodes):
            lines, index = [], 0
            while not isinstance(node := nodes[index], Leaf):
                holds = clause_holds(program.clauses[node.clause], plain)
                lines.append(line(node.clause, holds, None, 0))
                index = node.then if holds else node.otherwise
            return lines
        case Scorecard(_, points, _):
            best, rival = _best_two(answer)
            lead = {i: points[i][best] - (0 if rival is None else points[i][rival]) for i in answer.held}
            largest = max((abs(value) for value in lead.values()), default=0)
            order = sorted(lead, key=lambda clause: (-abs(lead[clause]), clause))
            return [line(clause, True, lead[clause], largest) for clause in order]
        case _:
            assert_never(program.decision)


def _best_two(answer: Answer) -> tuple[int, int | None]:
    """The class that won, and the next best one, which points are counted against."""
    scores = answer.scores or ()
    ranked = sorted(range(len(scores)), key=lambda c: (-scores[c], c))
    return ranked[0], ranked[1] if len(ranked) > 1 else None


def _exactly(program: Program, row: Sequence[Value]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What part of the row suffices and what would change its class; () where the search would take long."""
    from gbfl_compile.why.account import change_text, values_text
    from gbfl_compile.why.changes import changes
    from gbfl_compile.why.sufficient import sufficient

    if len(program.clauses) > MOST_SEARCHED:
        return ()
    names = distinct(program.features)
    plain = [None if is_missing(value) else value for value in row]
    enough, other = sufficient(program, plain), changes(program, plain)
    fewest = "no smaller set suffices" if enough.smallest else "a smaller set may suffice; not decided"
    suffices = tuple(values_text(feature, values, names, program.kinds) for feature, values in enough.conditions)
    moves = tuple(change_text(program, change, plain, names).replace("->", "→") for change in other.nearest)
    none = f"no change of {'one feature' if other.searched == 1 else 'one or two features'} does"
    what = "Nearest changes that change the class" if other.smallest else "A change that does, perhaps not the smallest"
    if len(suffices) > MOST_CONDITIONS:
        suffices = (*suffices[:MOST_CONDITIONS], f"and {len(suffices) - MOST_CONDITIONS} more features")
    return (
        (
            f"Enough for the class, with any other values ({fewest})",
            suffices or ("nothing: every row gets this class",),
        ),
        (what, moves[:MOST_CHANGES] or (none,)),
    )


def _values(program: Program, points: tuple[Point, ...]) -> tuple[tuple[ValueLine, ...], tuple[ValueLine, ...]]:
    names = distinct(program.features)
    used = {atom.feature for clause in program.clauses for atom in clause.atoms}
    shown: list[ValueLine] = []
    others: list[ValueLine] = []
    for feature, name in enumerate(names):
        cells = tuple((row_value(point.values[feature]), _mark(points, point, feature)) for point in points)
        (shown if feature in used or any(mark for _, mark in cells) else others).append(ValueLine(name, cells))
    return tuple(shown), tuple(others)


def _mark(points: tuple[Point, ...], point: Point, feature: int) -> str:
    same = _same(points[0].values[feature], point.values[feature])
    if point.name == "PP":
        return "kept" if same else ""
    return "" if same else "changed"


def _kept_text(points: tuple[Point, ...], features: int) -> str:
    """How much of the row its PP keeps. A PP that keeps nothing means that the base values have the same class."""
    pp = next((point for point in points if point.name == "PP"), None)
    if pp is None:
        return ""
    values = sum(_mark(points, pp, feature) == "kept" for feature in range(features))
    if not values:
        return "This PP keeps none of the row's values: the base values alone have its class."
    return f"This PP keeps {count(values, 'value')} of the row; the others are at their base."


def _same(a: Value, b: Value) -> bool:
    return a == b or (is_missing(a) and is_missing(b))
