"""Why a row got its class: the clauses, what suffices and what would change it, as text and JSON."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np

from gbfl_compile.ir.evaluate import Answer, atom_holds, evaluate
from gbfl_compile.ir.intervals import Allowed, Texts, above
from gbfl_compile.ir.kinds import Value, codebook, decode_value, encode_row, is_missing
from gbfl_compile.ir.nodes import Clause, Interval, Kind, Label, Leaf, OneOf, Program, Scorecard, Tree
from gbfl_compile.ir.text import atom_text, clause_text, label_text, number_text, printable, reason_of
from gbfl_compile.ir.text import value_text as text_of_value
from gbfl_compile.why.boxes import Plain, is_whole, plain_row
from gbfl_compile.why.changes import Change, Changes, changes
from gbfl_compile.why.sufficient import Sufficient, sufficient

if TYPE_CHECKING:
    pass


FEW_DIGITS = 6


@dataclass(frozen=True, slots=True)
class ClauseReason:
    """One clause that was evaluated on the path to the class, or that held in a rule set."""

    clause: int
    held: bool
    text: str
    points: int | None
    """How far it puts the class ahead of the next best; None in a tree."""
    reason: str | None
    """The user's own words."""


@dataclass(frozen=True, slots=True)
class Account:
    """Everything that is known about one row."""

    program: Program
    row: tuple[Value, ...]
    """As Python has it; None is missing."""
    answer: Answer
    against: Label | None
    """The next best class, which points are counted against; None in a tree."""
    start: int | None
    """The lead the class starts with; None in a tree."""
    because: tuple[ClauseReason, ...]
    sufficient: Sufficient
    changes: Changes


def account(program: Program, row: Sequence[Value]) -> Account:
    """Why `row` got its class, which part of it suffices, and what would change it."""
    values = tuple(_present(program.kind(feature), value) for feature, value in enumerate(row))
    plain = plain_row(program, values)
    answer = evaluate(program, values)
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
    enough, other = sufficient(program, values), changes(program, values)
    return Account(program, values, answer, against, start, because, enough, other)


def _present(kind: Kind, value: Value) -> Value:
    """A value of a row, None where it is missing; a number is a double."""
    if is_missing(value):
        return None
    return float(value) if kind == "number" else value  # type: ignore[arg-type]  # a number is one


def _next_best(scores: Sequence[int], best: int) -> int | None:
    others = [c for c in range(len(scores)) if c != best]
    return max(others, key=lambda c: (scores[c], -c)) if others else None


def _path(program: Program, tree: Tree, row: Sequence[Plain]) -> list[ClauseReason]:
    """The clauses on the path to the leaf, in order; for one that failed, the bounds that failed."""
    path = []
    index = 0
    while not isinstance(node := tree.nodes[index], Leaf):
        clause = program.clauses[node.clause]
        failed = Clause(tuple(atom for atom in clause.atoms if not atom_holds(atom, row[atom.feature])))
        held = not failed.atoms
        text = clause_text(clause, program.features, program.kinds) if held else _not_text(failed, program)
        path.append(ClauseReason(node.clause, held, text, None, reason_of(program, node.clause) if held else None))
        index = node.then if held else node.otherwise
    return path


def _not_text(failed: Clause, program: Program) -> str:
    return " AND ".join(f"not ({atom_text(atom, program.features, program.kinds)})" for atom in failed.atoms)


def _points(
    program: Program, card: Scorecard, answer: Answer, best: int, rival: int | None
) -> tuple[ClauseReason, ...]:
    """The clauses that held, those with most points for the class first."""
    worth = {i: card.points[i][best] - (0 if rival is None else card.points[i][rival]) for i in answer.held}
    return tuple(
        ClauseReason(
            i, True, clause_text(program.clauses[i], program.features, program.kinds), worth[i], reason_of(program, i)
        )
        for i in sorted(answer.held, key=lambda i: (-worth[i], i))
    )


def values_text(feature: int, values: Allowed, features: tuple[str, ...], kinds: tuple[Kind, ...] = ()) -> str:
    """`30000 <= income < 45000`; `income is missing`; `contract in {a, b}`."""
    if isinstance(values, Texts):
        listed = tuple(sorted(values.listed))
        return atom_text(OneOf(feature, listed, values.negated, values.missing), features, kinds)
    if not values.has_numbers:
        return f"{printable(features[feature])} is missing"
    lo = None if values.least == -math.inf else values.least
    if values.most == math.inf:
        return atom_text(Interval(feature, lo), features, kinds)
    if kinds and is_whole(kinds[feature]):
        return atom_text(Interval(feature, lo, values.most, "both"), features, kinds)
    following = above(values.most)
    # an upper end reads better as the cut just above it
    whole = Interval(feature, lo, following) if following < math.inf else Interval(feature, lo, values.most, "both")
    return atom_text(whole, features, kinds)


def value_text(value: Value) -> str:
    """A row's value for people: rounded only where rounding changes nothing."""
    match value:
        case None:
            return "missing"
        case bool():
            return str(value).lower()
        case str():
            return text_of_value(value)
        case datetime.date():
            return str(value)
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return number_text(value) if float(number_text(value)) == value else repr(value)


def change_text(program: Program, change: Change, row: Sequence[Value], names: tuple[str, ...]) -> str:
    """`income 20000 -> 26994 gives no`."""
    moves = []
    for feature, value in _round_up(program, change, row):
        before = row[feature]
        goal = _goal_text(program, feature, value, before)
        moves.append(f"{printable(names[feature])} {value_text(before)} -> {goal}")
    return f"{' and '.join(moves)} gives {label_text(change.label)}"


def _goal_text(program: Program, feature: int, value: float, before: Value) -> str:
    kind = program.kind(feature)
    if kind != "number":
        texts = codebook(program).texts[feature]
        is_other = kind == "category" and not 1 <= value <= len(texts)
        return "any other value" if is_other else value_text(decode_value(kind, value, texts))
    # the double just below a cut has too many digits to read; a whole number is fine as it is
    falls = isinstance(before, float) and value < before
    is_odd = falls and math.isfinite(value) and value != round(value)
    return f"just below {number_text(above(value))}" if is_odd else value_text(value)


def _round_up(program: Program, change: Change, row: Sequence[Value]) -> tuple[tuple[int, float], ...]:
    """The change with rising values rounded up to a few digits, where the row still gets that class then."""
    encoded = encode_row(program, row)
    rounded = tuple(
        (f, _few_digits(v) if program.kind(f) == "number" and _goes_up(encoded[f], v) else v) for f, v in change.values
    )
    for feature, value in rounded:
        encoded[feature] = value
    return rounded if _label_at(program, encoded) == change.label else change.values


def _label_at(program: Program, encoded: list[float]) -> object:

    from gbfl_compile.ir.batch import evaluate_many

    return evaluate_many(program, np.array([encoded])).labels[0]


def _goes_up(before: float, after: float) -> bool:
    return math.isfinite(after) and after > before


def _few_digits(value: float) -> float:
    """The least number of six digits that is not below `value`.

    >>> _few_digits(951.3001974984011), _few_digits(-0.12345678), _few_digits(54.582)
    (951.301, -0.123456, 54.582)
    """
    if float(number_text(value)) == value:
        return value
    text = Decimal(value)
    places = text.adjusted() - FEW_DIGITS + 1
    rounded = float(text.quantize(Decimal(1).scaleb(places), rounding=ROUND_CEILING))
    return rounded if rounded >= value and math.isfinite(rounded) else value


def lines(account: Account) -> list[str]:
    """The account in plain words."""
    features = account.program.features
    label = label_text(account.answer.label)
    best = account.program.classes.index(account.answer.label)
    return [
        f"{label}, with probability {account.answer.probabilities[best]:.2f}",
        "",
        *_because_lines(account, label),
        "",
        *_sufficient_lines(account, label, features),
        "",
        *_change_lines(account, features),
    ]


def _because_lines(account: Account, label: str) -> list[str]:
    if account.start is None:
        rows = [f"  {one.text}{_own(one)}" for one in account.because]
        return ["Why: the questions on the path to it and their answers, in order", *rows] if rows else ["Why: always"]
    rival = "" if account.against is None else f" against {label_text(account.against)}"
    total = account.start + sum(one.points or 0 for one in account.because)
    width = max(len(f"{number:+d}") for number in (account.start, total, *(one.points or 0 for one in account.because)))
    return [
        f"Why: points for {label}{rival}, the largest first",
        *(f"  {one.points or 0:+{width}d}  {one.text}{_own(one)}" for one in account.because),
        f"  {account.start:+{width}d}  to start with",
        f"  {total:+{width}d}  in all",
    ]


def _own(one: ClauseReason) -> str:
    return "" if one.reason is None else f"  [{printable(one.reason)}]"


def _sufficient_lines(account: Account, label: str, features: tuple[str, ...]) -> list[str]:
    enough = account.sufficient
    if not enough.conditions:
        return [f"Sufficient: nothing is needed, every row is {label}"]
    how = "no smaller set of features suffices" if enough.smallest else "a smaller set may suffice; not decided"
    rows = [
        f"  {values_text(feature, values, features, account.program.kinds)}, here {value_text(account.row[feature])}"
        for feature, values in enough.conditions
    ]
    return [f"Sufficient ({how}): {label} for any values of the other features, as long as", *rows]


def _change_lines(account: Account, features: tuple[str, ...]) -> list[str]:
    result = account.changes
    many = "one feature" if result.searched == 1 else "one or two features"
    if not result.nearest:
        return [f"Would change it: no change of {many} does"]
    count = len(result.nearest[0].values)
    if result.smallest:
        what = "one feature" if count == 1 else "two features (one alone is not enough)"
        heading = f"Would change it: the nearest change of {what}"
    else:
        heading = f"Would change it: a change of {count} features, perhaps not the smallest (no change of {many} does)"
    return [heading, *(f"  {change_text(account.program, change, account.row, features)}" for change in result.nearest)]


def as_json(account: Account) -> dict[str, Any]:
    """The account in the stable form that scripts read."""
    program, features, answer = account.program, account.program.features, account.answer
    return {
        "row": {name: _json_value(value) for name, value in zip(features, account.row, strict=True)},
        "label": answer.label,
        "probabilities": list(answer.probabilities),
        "leaf": answer.leaf,
        "scores": None if answer.scores is None else list(answer.scores),
        "against": account.against,
        "start": account.start,
        "because": [
            {"clause": one.clause, "held": one.held, "text": one.text, "points": one.points, "reason": one.reason}
            for one in account.because
        ],
        "sufficient": {
            "smallest": account.sufficient.smallest,
            "conditions": [_values_form(program, f, values) for f, values in account.sufficient.conditions],
        },
        "changes": {
            "features_searched": account.changes.searched,
            "smallest": account.changes.smallest,
            "found": [
                {
                    "values": {features[f]: _goal_form(program, f, value) for f, value in change.values},
                    "label": change.label,
                    "text": change_text(account.program, change, account.row, features),
                }
                for change in account.changes.nearest
            ],
        },
    }


def _values_form(program: Program, feature: int, values: Allowed) -> dict[str, Any]:
    kind, features = program.kind(feature), program.features
    form: dict[str, Any] = {
        "feature": features[feature],
        "text": values_text(feature, values, features, program.kinds),
    }
    if isinstance(values, Texts):
        form["none_of" if values.negated else "one_of"] = sorted(values.listed)
        return form
    if values.has_numbers and values.least > -math.inf:
        form["at_least"] = _json_value(decode_value(kind, values.least))
    if values.has_numbers and values.most < math.inf:
        form["at_most"] = _json_value(decode_value(kind, values.most))
    return form


def _goal_form(program: Program, feature: int, value: float) -> Any:
    """A new value; `{"none_of": [...]}` where it is any text that no rule mentions."""
    kind, texts = program.kind(feature), codebook(program).texts[feature]
    if kind == "category" and not 1 <= value <= len(texts):
        return {"none_of": list(texts)}
    return _json_value(decode_value(kind, value, texts))


def _json_value(value: Value) -> Any:
    """A value as JSON has it: a date is its ISO 8601 text, an infinity its name."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    return repr(value) if isinstance(value, float) and math.isinf(value) else value
