"""Slips in one clause: a sign, a bound, missing values, a condition left out, added or on another column.

A clause alone explains the rows where turning its answer round gives just what was heard. That settles on which rows
it must hold and on which it must not, and whether any change of it does that is a question about intervals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gbfl_compile.auditing.answers import Bits, decided_by, differs_at
from gbfl_compile.auditing.diagnose.interval_fit import fit_interval
from gbfl_compile.auditing.diagnose.slip import Case, Slip
from gbfl_compile.auditing.verdict import Change
from gbfl_compile.auditing.wording import exact_text
from gbfl_compile.ir.batch import atom_column
from gbfl_compile.ir.nodes import Clause, Interval, Program
from gbfl_compile.ir.text import printable

LEFT_OUT, OTHER_COLUMN, ALWAYS_OR_NEVER, ADDED = 2, 3, 4, 4

NEVER = Clause((Interval(0, 1.0, 0.0),))
"""No number is at least 1 and below 0. Only evaluated, never kept."""


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

    def change(self, approved: str, deployed: str) -> Change:
        """What is told of it."""
        return Change(f"clause {self.number}", approved, deployed)


def clause_slips(case: Case) -> Iterator[Slip]:
    """Every change of a single clause that explains the rows."""
    for number in range(len(case.program.clauses)):
        case.clock.check()
        need = _need(case, number)
        if need is not None:
            yield from _changed_conditions(need)
            yield from _added_conditions(need)
            yield from _always_or_never(need)


def _need(case: Case, number: int) -> Need | None:
    """None where turning the clause round does not give what was heard on some differing row."""
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
    program, rows = need.case.program, need.case.rows
    columns = [atom_column(atom, rows[:, atom.feature]) for atom in need.clause.atoms]
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
        found = fit_interval(atom, rows[:, atom.feature], need.wanted, need.unwanted & others)
        if found is not None:
            holds = others & atom_column(found.atom, rows[:, atom.feature])
            change = need.change(approved, atom_text(program, found.atom))
            yield need.slip(found.cost, holds, _with(need.clause, place, found.atom), change, found.left_open)
        yield from _other_columns(need, place, others)


def _other_columns(need: Need, place: int, others: Bits) -> Iterator[Slip]:
    program, rows, atom = need.case.program, need.case.rows, need.clause.atoms[place]
    for feature in range(len(program.features)):
        moved = replace(atom, feature=feature)
        holds = others & atom_column(moved, rows[:, feature])
        if feature != atom.feature and need.fits(holds):
            change = need.change(atom_text(program, atom), atom_text(program, moved))
            yield need.slip(OTHER_COLUMN, holds, _with(need.clause, place, moved), change)


def _added_conditions(need: Need) -> Iterator[Slip]:
    """One more condition, on a feature that the clause does not ask yet."""
    program, rows, holds = need.case.program, need.case.rows, need.case.held[:, need.number]
    if (need.wanted & ~holds).any():
        return
    used = {atom.feature for atom in need.clause.atoms}
    for feature in (feature for feature in range(len(program.features)) if feature not in used):
        found = fit_interval(Interval(feature, if_missing=True), rows[:, feature], need.wanted, need.unwanted & holds)
        if found is not None:
            both = holds & atom_column(found.atom, rows[:, feature])
            change = need.change("nothing", f"one more condition: {atom_text(program, found.atom)}")
            clause = Clause((*need.clause.atoms, found.atom))
            yield need.slip(ADDED + found.cost, both, clause, change, found.left_open)


def _always_or_never(need: Need) -> Iterator[Slip]:
    text = clause_text(need.case.program, need.clause)
    count = len(need.case.rows)
    if not need.unwanted.any():
        yield need.slip(ALWAYS_OR_NEVER, np.ones(count, dtype=bool), Clause(()), need.change(text, "always"))
    if not need.wanted.any():
        yield need.slip(ALWAYS_OR_NEVER, np.zeros(count, dtype=bool), NEVER, need.change(text, "never"))


def _with(clause: Clause, place: int, *atoms: Interval) -> Clause:
    return Clause((*clause.atoms[:place], *atoms, *clause.atoms[place + 1 :]))


def clause_text(program: Program, clause: Clause) -> str:
    """A clause to the last digit."""
    return " AND ".join(atom_text(program, atom) for atom in clause.atoms) or "always"


def atom_text(program: Program, atom: Interval) -> str:
    """An atom to the last digit: `0.1 <= age < 50`."""
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
