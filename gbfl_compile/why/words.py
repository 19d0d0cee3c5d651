"""Why a row got its class, in words and as JSON: one account, told twice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Any, assert_never

from gbfl_compile.ir.evaluate import Answer, atom_holds, evaluate
from gbfl_compile.ir.nodes import Clause, Interval, Label, Leaf, Program, Scorecard, Tree
from gbfl_compile.ir.readable import atom_text, clause_text, label_text, number_text, printable
from gbfl_compile.ir.regions import Values, above
from gbfl_compile.reasons import reason_of
from gbfl_compile.why.changes import Change, Changes, changes
from gbfl_compile.why.sufficient import Sufficient, sufficient

FEW_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Because:
    """One clause that was asked on the way to the class, or that held in a rule set."""

    clause: int
    held: bool
    text: str
    points: int | None
    """By how much it puts the class ahead of the next best; None in a tree."""
    reason: str | None
    """The user's own words."""


@dataclass(frozen=True, slots=True)
class Account:
    """Everything that is told about one row."""

    program: Program
    row: tuple[float | None, ...]
    answer: Answer
    against: Label | None
    """The next best class, which points are counted against; None in a tree."""
    start: int | None
    """The lead the class starts with; None in a tree."""
    because: tuple[Because, ...]
    sufficient: Sufficient
    changes: Changes


def account(program: Program, row: Sequence[float | None]) -> Account:
    """Why `row` got its class, what of it suffices, and what would change it."""
    plain = tuple(None if value is None or math.isnan(value) else float(value) for value in row)
    answer = evaluate(program, plain)
    against, start = None, None
    match program.decision:
        case Tree():
            because = tuple(_path(program, program.decision, plain))
        case Scorecard() as card:
            best = program.classes.index(answer.label)
            rival = _next_best(answer.scores or (), best)
            against = None if rival is None else program.classes[rival]
            start = card.bias[best] - (0 if rival is None else card.bias[rival])
            because = _points(program, card, answer, best, rival)
        case _:
            assert_never(program.decision)
    return Account(program, plain, answer, against, start, because, sufficient(program, plain), changes(program, plain))


def _next_best(scores: Sequence[int], best: int) -> int | None:
    others = [c for c in range(len(scores)) if c != best]
    return max(others, key=lambda c: (scores[c], -c)) if others else None


def _path(program: Program, tree: Tree, row: Sequence[float | None]) -> list[Because]:
    """The clauses asked on the way to the leaf, in order; of one that failed, the bounds that did."""
    found = []
    index = 0
    while not isinstance(node := tree.nodes[index], Leaf):
        clause = program.clauses[node.clause]
        failed = Clause(tuple(atom for atom in clause.atoms if not atom_holds(atom, row[atom.feature])))
        held = not failed.atoms
        text = clause_text(clause, program.features) if held else _not_text(failed, program.features)
        found.append(Because(node.clause, held, text, None, reason_of(program, node.clause) if held else None))
        index = node.then if held else node.otherwise
    return found


def _not_text(failed: Clause, features: tuple[str, ...]) -> str:
    return " AND ".join(f"not ({atom_text(atom, features)})" for atom in failed.atoms)


def _points(program: Program, card: Scorecard, answer: Answer, best: int, rival: int | None) -> tuple[Because, ...]:
    """The clauses that held, those that speak most for the class first."""
    worth = {i: card.points[i][best] - (0 if rival is None else card.points[i][rival]) for i in answer.held}
    return tuple(
        Because(i, True, clause_text(program.clauses[i], program.features), worth[i], reason_of(program, i))
        for i in sorted(answer.held, key=lambda i: (-worth[i], i))
    )


def values_text(feature: int, values: Values, features: tuple[str, ...]) -> str:
    """`30000 <= income < 45000`; `income is missing`."""
    if not values.has_numbers:
        return f"{printable(features[feature])} is missing"
    lo = None if values.least == -math.inf else values.least
    if values.most == math.inf:
        return atom_text(Interval(feature, lo), features)
    following = above(values.most)
    # an upper end reads better as the cut it stops short of
    whole = Interval(feature, lo, following) if following < math.inf else Interval(feature, lo, values.most, "both")
    return atom_text(whole, features)


def value_text(value: float | None) -> str:
    """A row's value as a person reads it; all its digits where they are few."""
    if value is None:
        return "missing"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return number_text(value) if float(number_text(value)) == value else repr(value)


def change_text(program: Program, change: Change, row: Sequence[float | None], names: tuple[str, ...]) -> str:
    """`income 20000 -> 26994 gives no`."""
    moves = []
    for feature, value in _rounded(program, change, row):
        before = row[feature]
        # below a cut stands a number that nobody would write; a whole one is fine as it is
        is_odd = before is not None and value < before and math.isfinite(value) and value != round(value)
        goal = f"just below {number_text(above(value))}" if is_odd else value_text(value)
        moves.append(f"{printable(names[feature])} {value_text(before)} -> {goal}")
    return f"{' and '.join(moves)} gives {label_text(change.label)}"


def _rounded(program: Program, change: Change, row: Sequence[float | None]) -> tuple[tuple[int, float], ...]:
    """The change with values that go up rounded up to a few digits, where the row then still gets that class."""
    rounded = tuple((f, _few_digits(v) if _goes_up(row[f], v) else v) for f, v in change.values)
    tried = list(row)
    for feature, value in rounded:
        tried[feature] = value
    return rounded if evaluate(program, tried).label == change.label else change.values


def _goes_up(before: float | None, after: float) -> bool:
    return before is not None and math.isfinite(after) and after > before


def _few_digits(value: float) -> float:
    """The least number of six digits that is not below.

    >>> _few_digits(951.3001974984011), _few_digits(-0.12345678), _few_digits(54.582)
    (951.301, -0.123456, 54.582)
    """
    if float(number_text(value)) == value:
        return value
    text = Decimal(value)
    places = text.adjusted() - FEW_DIGITS + 1
    found = float(text.quantize(Decimal(1).scaleb(places), rounding=ROUND_CEILING))
    return found if found >= value and math.isfinite(found) else value


def lines(told: Account) -> list[str]:
    """The account in plain words."""
    features = told.program.features
    label = label_text(told.answer.label)
    best = told.program.classes.index(told.answer.label)
    return [
        f"{label}, with probability {told.answer.probabilities[best]:.2f}",
        "",
        *_because_lines(told, label),
        "",
        *_sufficient_lines(told, label, features),
        "",
        *_change_lines(told, features),
    ]


def _because_lines(told: Account, label: str) -> list[str]:
    if told.start is None:
        rows = [f"  {one.text}{_own(one)}" for one in told.because]
        return ["Why: the questions on the way to it and their answers, in order", *rows] if rows else ["Why: always"]
    rival = "" if told.against is None else f" against {label_text(told.against)}"
    total = told.start + sum(one.points or 0 for one in told.because)
    width = max(len(f"{number:+d}") for number in (told.start, total, *(one.points or 0 for one in told.because)))
    return [
        f"Why: points for {label}{rival}, the largest first",
        *(f"  {one.points or 0:+{width}d}  {one.text}{_own(one)}" for one in told.because),
        f"  {told.start:+{width}d}  to start with",
        f"  {total:+{width}d}  in all",
    ]


def _own(one: Because) -> str:
    return "" if one.reason is None else f"  [{printable(one.reason)}]"


def _sufficient_lines(told: Account, label: str, features: tuple[str, ...]) -> list[str]:
    found = told.sufficient
    if not found.conditions:
        return [f"Sufficient: nothing is needed, every row is {label}"]
    how = "no fewer features do" if found.smallest else "fewer may do, this was not decided"
    rows = [
        f"  {values_text(feature, values, features)}, here {value_text(told.row[feature])}"
        for feature, values in found.conditions
    ]
    return [f"Sufficient: whatever the rest is, the class is {label} while ({how})", *rows]


def _change_lines(told: Account, features: tuple[str, ...]) -> list[str]:
    found = told.changes
    if found.found:
        count = len(found.found[0].values)
        what = "one feature" if count == 1 else "two features, for one alone does not"
        if not found.smallest:
            fewer = "no change of one does" if found.searched == 1 else "none of one or two does"
            return [
                f"Would change it: a change of {count} features, not shown to be the smallest ({fewer})",
                *(f"  {change_text(told.program, change, told.row, features)}" for change in found.found),
            ]
        return [
            f"Would change it: the nearest change of {what}",
            *(f"  {change_text(told.program, change, told.row, features)}" for change in found.found),
        ]
    many = "one feature" if found.searched == 1 else "one or two features"
    return [f"Would change it: no change of {many} does"]


def as_json(told: Account) -> dict[str, Any]:
    """The account as the stable form scripts read."""
    features, answer = told.program.features, told.answer
    return {
        "row": {name: _number(value) for name, value in zip(features, told.row, strict=True)},
        "label": answer.label,
        "probabilities": list(answer.probabilities),
        "leaf": answer.leaf,
        "scores": None if answer.scores is None else list(answer.scores),
        "against": told.against,
        "start": told.start,
        "because": [
            {"clause": one.clause, "held": one.held, "text": one.text, "points": one.points, "reason": one.reason}
            for one in told.because
        ],
        "sufficient": {
            "smallest": told.sufficient.smallest,
            "conditions": [_values_form(f, values, features) for f, values in told.sufficient.conditions],
        },
        "changes": {
            "features_searched": told.changes.searched,
            "smallest": told.changes.smallest,
            "found": [
                {
                    "values": {features[f]: _number(value) for f, value in change.values},
                    "label": change.label,
                    "text": change_text(told.program, change, told.row, features),
                }
                for change in told.changes.found
            ],
        },
    }


def _values_form(feature: int, values: Values, features: tuple[str, ...]) -> dict[str, Any]:
    form: dict[str, Any] = {"feature": features[feature], "text": values_text(feature, values, features)}
    if values.has_numbers and values.least > -math.inf:
        form["at_least"] = _number(values.least)
    if values.has_numbers and values.most < math.inf:
        form["at_most"] = _number(values.most)
    return form


def _number(value: float | None) -> float | str | None:
    return repr(value) if value is not None and math.isinf(value) else value
