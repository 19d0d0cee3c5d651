"""Slips in one clause: a sign, a bound, a text, missing values, a condition left out, added or on another column.

A clause alone explains the rows for which inverting it gives the answers that were observed. That settles on which rows
it must hold and on which it must not; whether some change of it does that is a question about intervals and sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.auditing.answers import Bits, decided_by, differs_at
from gbfl_compile.auditing.diagnose.slip import Case, Slip
from gbfl_compile.auditing.region import exact_text
from gbfl_compile.auditing.verdict import Change
from gbfl_compile.ir import text as ir_text
from gbfl_compile.ir.batch import Matrix, atom_column
from gbfl_compile.ir.intervals import above, below, values_of
from gbfl_compile.ir.nodes import Atom, Clause, Closed, Interval, Kind, OneOf, Program
from gbfl_compile.ir.text import bound_text, printable

LEFT_OUT, OTHER_COLUMN, ALWAYS_OR_NEVER, ADDED = 2, 3, 4, 4


def never(program: Program) -> Clause:
    """A clause that holds on no row: no number is at least 1 and below 0, no text is in an empty set."""
    is_set = program.kind(0) in ("category", "boolean")
    return Clause((OneOf(0, ()) if is_set else Interval(0, 1.0, 0.0),))


@dataclass(frozen=True, slots=True)
class Need:
    """One clause, and on which rows it must hold, or must not, for it alone to explain them."""

    case: Case
    number: int
    wanted: Bits
    unwanted: Bits

    @property
    def clause(self) -> Clause:
        """As approved."""
        return self.case.program.clauses[self.number]

    def slip(self, cost: int, holds: Bits, other: Clause, change: Change, left_open: tuple[str, ...] = ()) -> Slip:
        """The program with another clause in its place, which `holds` on these rows."""
        clauses = self.case.program.clauses
        changed = replace(self.case.program, clauses=(*clauses[: self.number], other, *clauses[self.number + 1 :]))
        touched = int((holds != self.case.held[:, self.number]).sum())
        return Slip(cost, touched, (change,), changed, left_open)

    def fits(self, holds: Bits) -> bool:
        """Whether a clause that holds on just these rows explains them."""
        return not ((self.wanted & ~holds) | (self.unwanted & holds)).any()

    def fit(self, approved: Atom, unwanted: Bits) -> FittingAtom | None:
        """A condition in place of the approved one that holds on all wanted rows and on none of these."""
        case, feature = self.case, approved.feature
        texts, kind = case.book.texts[feature], case.program.kind(feature)
        return fit_atom(approved, case.rows[:, feature], self.wanted, unwanted, texts, kind)

    def change(self, approved: str, deployed: str) -> Change:
        """The description of it that is reported."""
        return Change(f"clause {self.number}", approved, deployed)


def clause_slips(case: Case) -> Iterator[Slip]:
    """Every change of a single clause that explains the rows."""
    for need in needs_of(case):
        yield from _changed_conditions(need)
        yield from _added_conditions(need)
        yield from _always_or_never(need)


def needs_of(case: Case) -> Iterator[Need]:
    """Each clause that could explain the rows alone."""
    for number in range(len(case.program.clauses)):
        case.clock.check()
        need = _need(case, number)
        if need is not None:
            yield need


def _need(case: Case, number: int) -> Need | None:
    """None if inverting the clause does not give what was observed on some differing row."""
    turned = case.held.copy()
    turned[:, number] = ~turned[:, number]
    may_turn = ~differs_at(case.program, decided_by(case.program, turned), case.deployed)
    if (case.differs & ~may_turn).any():
        return None
    holds = case.held[:, number]
    wanted = (holds & ~may_turn) | (~holds & case.differs)
    unwanted = (~holds & ~may_turn) | (holds & case.differs)
    return Need(case, number, wanted, unwanted)


def _changed_conditions(need: Need) -> Iterator[Slip]:
    program, rows, book = need.case.program, need.case.rows, need.case.book
    columns = [atom_column(atom, rows[:, atom.feature], book) for atom in need.clause.atoms]
    for place, atom in enumerate(need.clause.atoms):
        others = np.ones(len(rows), dtype=bool)
        for column in (*columns[:place], *columns[place + 1 :]):
            others &= column
        if (need.wanted & ~others).any():
            continue
        approved = atom_text(program, atom)
        if need.fits(others):
            change = need.change(approved, "nothing: the condition is left out")
            yield need.slip(LEFT_OUT, others, _with(need.clause, place), change)
            continue
        found = need.fit(atom, need.unwanted & others)
        if found is not None:
            holds = others & atom_column(found.atom, rows[:, atom.feature], book)
            change = need.change(approved, atom_text(program, found.atom))
            yield need.slip(found.cost, holds, _with(need.clause, place, found.atom), change, found.left_open)
        yield from _other_columns(need, place, others)


def _other_columns(need: Need, place: int, others: Bits) -> Iterator[Slip]:
    """The condition on each other column of its kind."""
    program, rows, atom = need.case.program, need.case.rows, need.clause.atoms[place]
    for feature in range(len(program.features)):
        if feature == atom.feature or program.kind(feature) != program.kind(atom.feature):
            continue
        moved = replace(atom, feature=feature)
        holds = others & atom_column(moved, rows[:, feature], need.case.book)
        if need.fits(holds):
            change = need.change(atom_text(program, atom), atom_text(program, moved))
            yield need.slip(OTHER_COLUMN, holds, _with(need.clause, place, moved), change)


def _added_conditions(need: Need) -> Iterator[Slip]:
    """One more condition, on a feature that the clause does not test yet."""
    program, rows, holds = need.case.program, need.case.rows, need.case.held[:, need.number]
    if (need.wanted & ~holds).any():
        return
    used = {atom.feature for atom in need.clause.atoms}
    for feature in (feature for feature in range(len(program.features)) if feature not in used):
        is_set = program.kind(feature) in ("category", "boolean")
        anything = OneOf(feature, (), True, if_missing=True) if is_set else Interval(feature, if_missing=True)
        found = need.fit(anything, need.unwanted & holds)
        if found is not None:
            both = holds & atom_column(found.atom, rows[:, feature], need.case.book)
            change = need.change("nothing", f"one more condition: {atom_text(program, found.atom)}")
            clause = Clause((*need.clause.atoms, found.atom))
            yield need.slip(ADDED + found.cost, both, clause, change, found.left_open)


def _always_or_never(need: Need) -> Iterator[Slip]:
    text = clause_text(need.case.program, need.clause)
    count = len(need.case.rows)
    if not need.unwanted.any():
        yield need.slip(ALWAYS_OR_NEVER, np.ones(count, dtype=bool), Clause(()), need.change(text, "always"))
    if not need.wanted.any():
        yield need.slip(
            ALWAYS_OR_NEVER, np.zeros(count, dtype=bool), never(need.case.program), need.change(text, "never")
        )


def _with(clause: Clause, place: int, *atoms: Atom) -> Clause:
    return Clause((*clause.atoms[:place], *atoms, *clause.atoms[place + 1 :]))


def clause_text(program: Program, clause: Clause) -> str:
    """A clause to the last digit."""
    return " AND ".join(atom_text(program, atom) for atom in clause.atoms) or "always"


def atom_text(program: Program, atom: Atom) -> str:
    """An atom to the last digit: `0.1 <= age < 50`, `grade not in {A, B}`."""
    if isinstance(atom, OneOf) or program.kind(atom.feature) != "number":
        return ir_text.atom_text(atom, program.features, program.kinds)
    name = printable(program.features[atom.feature])
    text = name
    if atom.lo is not None and atom.hi is None:
        text = f"{text} {'>=' if atom.lo_closed else '>'} {exact_text(atom.lo)}"
    elif atom.lo is not None:
        text = f"{exact_text(atom.lo)} {'<=' if atom.lo_closed else '<'} {text}"
    if atom.hi is not None:
        text = f"{text} {'<=' if atom.hi_closed else '<'} {exact_text(atom.hi)}"
    elif atom.lo is None:
        text = f"{text} is present"
    return f"({text} OR {name} is missing)" if atom.if_missing else text


SIGN, MOVED = 1, 2
"""What a change costs when the simplest is sought: open for closed (or missing taken otherwise), and a bound moved."""


@dataclass(frozen=True, slots=True)
class FittingAtom:
    """A condition that fits, what its changes cost, and what the rows leave open."""

    atom: Atom
    cost: int
    left_open: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _IntervalEnd:
    number: float | None
    closed: bool
    cost: int = 0
    left_open: str = ""


def fit_atom(
    approved: Atom, column: Matrix, wanted: Bits, unwanted: Bits, texts: tuple[str, ...] = (), kind: Kind = "number"
) -> FittingAtom | None:
    """The approved condition, changed where it must be so that it holds on all `wanted` rows and on no `unwanted`.

    `texts` are those that the codes of the column mean.
    """
    absent = np.isnan(column)
    if_missing = approved.if_missing
    if (absent & wanted).any() or (absent & unwanted).any():
        if_missing = bool((absent & wanted).any())
        if if_missing and (absent & unwanted).any():
            return None
    inside, outside = column[wanted & ~absent], column[unwanted & ~absent]
    if not len(inside):
        return None
    if isinstance(approved, OneOf):
        found = _fit_texts(approved, set(inside.tolist()), set(outside.tolist()), texts)
    else:
        found = _fit_interval(approved, inside, outside, kind)
    if found is None or if_missing == approved.if_missing:
        return found
    return replace(found, atom=replace(found.atom, if_missing=if_missing), cost=found.cost + SIGN)


def _fit_texts(approved: OneOf, inside: set[float], outside: set[float], known: tuple[str, ...]) -> FittingAtom | None:
    """The approved set with texts added and left out, or turned round: whichever is the smaller change."""
    found = []
    for negated in (approved.negated, not approved.negated):
        listed, left_out = (outside, inside) if negated else (inside, outside)
        if inside & outside or not all(1.0 <= code < len(known) + 1 for code in listed):
            continue  # a text without a code cannot be listed
        more, fewer = ({known[int(code) - 1] for code in codes if code >= 1.0} for codes in (listed, left_out))
        values = (set(approved.values) | more) - fewer
        changes = len(values ^ set(approved.values))
        cost = (SIGN if negated != approved.negated else 0) + (MOVED + max(0, changes - 2) if changes else 0)
        found.append(FittingAtom(replace(approved, values=tuple(sorted(values)), negated=negated), cost))
    return min(found, key=lambda fitting: fitting.cost, default=None)


def _fit_interval(
    approved: Interval, inside: NDArray[np.float64], outside: NDArray[np.float64], kind: Kind
) -> FittingAtom | None:
    least, most = float(inside.min()), float(inside.max())
    if ((outside >= least) & (outside <= most)).any():
        return None
    lower = _lower(approved, outside[outside < least], least, kind)
    upper = _upper(approved, outside[outside > most], most, kind)
    if lower is None or upper is None:
        return None
    closed = closed_ends(lower.closed, upper.closed)
    atom = replace(approved, lo=lower.number, hi=upper.number, closed=closed)
    open_ends = tuple(text for text in (lower.left_open, upper.left_open) if text)
    return FittingAtom(atom, lower.cost + upper.cost, open_ends)


def _lower(approved: Interval, outside: NDArray[np.float64], least: float, kind: Kind) -> _IntervalEnd | None:
    """A lower bound past what is outside, up to `least`: the approved one, its sign turned, none, or another."""
    past = float(outside.max()) if len(outside) else None

    def fits(first: float) -> bool:
        return first <= least and (past is None or first > past)

    if fits(values_of(approved).least):
        return _IntervalEnd(approved.lo, approved.lo_closed)
    if approved.lo is not None and fits(above(approved.lo) if approved.lo_closed else approved.lo):
        return _IntervalEnd(approved.lo, not approved.lo_closed, SIGN, _other_lower(past, least, approved.lo, kind))
    if past is None:
        remark = "" if least == -np.inf else f"a lower bound up to {_exact(least, kind)} would fit too"
        return _IntervalEnd(None, approved.lo_closed, MOVED, remark)
    number = simplest_between(above(past), least)
    return None if number is None else _IntervalEnd(number, True, MOVED, _other_lower(past, least, number, kind))


def _upper(approved: Interval, outside: NDArray[np.float64], most: float, kind: Kind) -> _IntervalEnd | None:
    """The same for an upper bound."""
    past = float(outside.min()) if len(outside) else None

    def fits(last: float) -> bool:
        return last >= most and (past is None or last < past)

    if fits(values_of(approved).most):
        return _IntervalEnd(approved.hi, approved.hi_closed)
    if approved.hi is not None and fits(below(approved.hi) if approved.hi_closed else approved.hi):
        return _IntervalEnd(approved.hi, not approved.hi_closed, SIGN, _other_upper(most, past, approved.hi, kind))
    if past is None:
        remark = "" if most == np.inf else f"an upper bound from {_exact(most, kind)} on would fit too"
        return _IntervalEnd(None, approved.hi_closed, MOVED, remark)
    number = simplest_between(above(most), past)
    return None if number is None else _IntervalEnd(number, False, MOVED, _other_upper(most, past, number, kind))


def _other_lower(past: float | None, least: float, remark: float, kind: Kind) -> str:
    if past is not None and above(past) == least:
        return ""
    if past is None:
        return f"a lower bound up to {_exact(least, kind)} would fit too"
    between = f"any lower bound above {_exact(past, kind)} up to {_exact(least, kind)} fits"
    return "" if past == remark == least else between


def _other_upper(most: float, past: float | None, remark: float, kind: Kind) -> str:
    if past is not None and above(most) == past:
        return ""
    if past is None:
        return f"an upper bound from {_exact(most, kind)} on would fit too"
    between = f"any upper bound from {_exact(most, kind)} to below {_exact(past, kind)} fits"
    return "" if past == remark == most else between


def _exact(number: float, kind: Kind) -> str:
    """A bound to the last digit, a day or a moment as it is written."""
    return exact_text(number) if kind == "number" else bound_text(number, kind)


def simplest_between(low: float, high: float) -> float | None:
    """The number with the fewest digits from `low` to `high`; an end that is infinite has none.

    >>> simplest_between(59990.2, 60010.0), simplest_between(0.1, 0.1)
    (60000.0, 0.1)
    """
    if not (np.isfinite(low) and np.isfinite(high)):
        return low if np.isfinite(low) else high if np.isfinite(high) else None
    for digits in range(1, 18):
        rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(low))
        if low <= float(rounded) <= high:
            return float(rounded) + 0.0
    return low


def closed_ends(lower: bool, upper: bool) -> Closed:
    """Which ends belong to an interval."""
    if lower:
        return "both" if upper else "left"
    return "right" if upper else "neither"
