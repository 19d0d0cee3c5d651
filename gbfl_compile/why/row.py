"""One row explained, as text and JSON: by the program and, where its triplet is known, by the black box."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.digest import digest
from gbfl_compile.ir.evaluate import Answer, atom_holds, evaluate
from gbfl_compile.ir.intervals import Values, above
from gbfl_compile.ir.json import as_program
from gbfl_compile.ir.nodes import Clause, Interval, Label, Leaf, Program, Scorecard, Tree
from gbfl_compile.ir.reasons import reason_of
from gbfl_compile.ir.text import atom_text, clause_text, label_text, number_text, printable
from gbfl_compile.learning.explain.triplets import Triplets, triplets_for
from gbfl_compile.tables.read import feature_row
from gbfl_compile.why.changes import Change, Changes, changes
from gbfl_compile.why.sufficient import Sufficient, sufficient

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    row: tuple[float | None, ...]
    answer: Answer
    against: Label | None
    """The next best class, which points are counted against; None in a tree."""
    start: int | None
    """The lead the class starts with; None in a tree."""
    because: tuple[ClauseReason, ...]
    sufficient: Sufficient
    changes: Changes


def account(program: Program, row: Sequence[float | None]) -> Account:
    """Why `row` got its class, which part of it suffices, and what would change it."""
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


def _path(program: Program, tree: Tree, row: Sequence[float | None]) -> list[ClauseReason]:
    """The clauses on the path to the leaf, in order; for one that failed, the bounds that failed."""
    path = []
    index = 0
    while not isinstance(node := tree.nodes[index], Leaf):
        clause = program.clauses[node.clause]
        failed = Clause(tuple(atom for atom in clause.atoms if not atom_holds(atom, row[atom.feature])))
        held = not failed.atoms
        text = clause_text(clause, program.features, program.kinds) if held else _not_text(failed, program.features)
        path.append(ClauseReason(node.clause, held, text, None, reason_of(program, node.clause) if held else None))
        index = node.then if held else node.otherwise
    return path


def _not_text(failed: Clause, features: tuple[str, ...]) -> str:
    return " AND ".join(f"not ({atom_text(atom, features)})" for atom in failed.atoms)


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


def values_text(feature: int, values: Values, features: tuple[str, ...]) -> str:
    """`30000 <= income < 45000`; `income is missing`."""
    if not values.has_numbers:
        return f"{printable(features[feature])} is missing"
    lo = None if values.least == -math.inf else values.least
    if values.most == math.inf:
        return atom_text(Interval(feature, lo), features)
    following = above(values.most)
    # an upper end reads better as the cut just above it
    whole = Interval(feature, lo, following) if following < math.inf else Interval(feature, lo, values.most, "both")
    return atom_text(whole, features)


def value_text(value: float | None) -> str:
    """A row's value for people: rounded only where rounding changes nothing."""
    if value is None:
        return "missing"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return number_text(value) if float(number_text(value)) == value else repr(value)


def change_text(program: Program, change: Change, row: Sequence[float | None], names: tuple[str, ...]) -> str:
    """`income 20000 -> 26994 gives no`."""
    moves = []
    for feature, value in _round_up(program, change, row):
        before = row[feature]
        # the double just below a cut has too many digits to read; a whole number is fine as it is
        is_odd = before is not None and value < before and math.isfinite(value) and value != round(value)
        goal = f"just below {number_text(above(value))}" if is_odd else value_text(value)
        moves.append(f"{printable(names[feature])} {value_text(before)} -> {goal}")
    return f"{' and '.join(moves)} gives {label_text(change.label)}"


def _round_up(program: Program, change: Change, row: Sequence[float | None]) -> tuple[tuple[int, float], ...]:
    """The change with rising values rounded up to a few digits, where the row still gets that class then."""
    rounded = tuple((f, _few_digits(v) if _goes_up(row[f], v) else v) for f, v in change.values)
    tried = list(row)
    for feature, value in rounded:
        tried[feature] = value
    return rounded if evaluate(program, tried).label == change.label else change.values


def _goes_up(before: float | None, after: float) -> bool:
    return before is not None and math.isfinite(after) and after > before


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
        f"  {values_text(feature, values, features)}, here {value_text(account.row[feature])}"
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
    features, answer = account.program.features, account.answer
    return {
        "row": {name: _number(value) for name, value in zip(features, account.row, strict=True)},
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
            "conditions": [_values_form(f, values, features) for f, values in account.sufficient.conditions],
        },
        "changes": {
            "features_searched": account.changes.searched,
            "smallest": account.changes.smallest,
            "found": [
                {
                    "values": {features[f]: _number(value) for f, value in change.values},
                    "label": change.label,
                    "text": change_text(account.program, change, account.row, features),
                }
                for change in account.changes.nearest
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


@dataclass(frozen=True, slots=True)
class BlackBoxAnswer:
    """What the black box says about the row: its class, and the new values in its PP and its PN, where there are."""

    label: Label
    pp: Mapping[str, float] | None
    pn: Mapping[str, float] | None


@dataclass(frozen=True, slots=True)
class RowExplanation:
    """Why one row gets its class."""

    account: Account
    row_number: int
    rows: int
    """How many rows the table has; 1 for a row by itself."""
    black_box: BlackBoxAnswer | None = None

    @property
    def label(self) -> Label:
        """The class the program gives."""
        return self.account.answer.label

    def as_json(self) -> dict[str, Any]:
        """The stable form scripts read."""
        own = self.black_box
        return {
            "digest": digest(self.account.program),
            "row_number": self.row_number,
            **as_json(self.account),
            "black_box": None if own is None else {"label": own.label, "pp": own.pp, "pn": own.pn},
        }

    def lines(self) -> list[str]:
        """As text for people."""
        first, *others = lines(self.account)
        own = [] if self.black_box is None else ["", *_black_box_lines(self.account, self.black_box)]
        return [f"row {self.row_number} of {self.rows}: {first}", *others, *own]

    def __str__(self) -> str:
        return "\n".join(self.lines())


def explain_row(
    program: Program | str | os.PathLike[str],
    row: Any,
    *,
    row_number: int = 1,
    triplets: Triplets | str | os.PathLike[str] | None = None,
) -> RowExplanation:
    """Why the program gives a row its class, which values suffice for it, and what would change it.

    row: a mapping or sequence of values, or a table (file or DataFrame) of which `row_number` counts from 1.
    triplets: rows with their PPs and PNs that include this one, to add what the black box says.
    """
    source = as_program(program)
    values, rows = feature_row(row, source.features, row_number)
    own = None
    if triplets is not None:
        own = _black_box_answer(triplets_for(source.features, triplets), values, triplets)
    return RowExplanation(account(source, values), row_number, rows, own)


def _black_box_answer(triplets: Triplets, row: list[float], source: Any) -> BlackBoxAnswer:
    """The black box's class, PP and PN of this very row."""
    places = np.flatnonzero((triplets.x == np.array(row)).all(axis=1))
    if not len(places):
        where = "the triplets" if isinstance(source, Triplets) else f"{source}"
        raise BadInput(f"{where}: does not have this row; gbfl mine --triplets writes those it held out")
    place = int(places[0])

    def change(has: NDArray[np.bool_], points: NDArray[np.float64]) -> dict[str, float] | None:
        features = np.flatnonzero(points[place] != triplets.x[place]).tolist()
        return {triplets.features[f]: float(points[place, f]) for f in features} if has[place] else None

    label = triplets.label[place].item()
    return BlackBoxAnswer(label, change(triplets.has_pp, triplets.pp), change(triplets.has_pn, triplets.pn))


def _black_box_lines(row: Account, own: BlackBoxAnswer) -> list[str]:
    before = dict(zip(row.program.features, row.row, strict=True))

    def moves(new: Mapping[str, float]) -> str:
        return ", ".join(f"{printable(n)} {value_text(before[n])} -> {value_text(v)}" for n, v in new.items())

    text = [f"The black box says {label_text(own.label)}"]
    if own.pp is not None:
        text.append(f"  and still does with {moves(own.pp) or 'nothing changed'}")
    if own.pn is not None:
        text.append(f"  and no longer does with {moves(own.pn)}")
    return text
