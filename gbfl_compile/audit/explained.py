"""Which one slip would explain what a scorer that cannot be read answered: a guess that fits every witness.

Each small change of the approved program is tried: a bound one number further, open for closed, gone or moved, missing
values taken otherwise, a column mapped to another, a clause that always or never holds, a leaf of another class. The
first whose answers are the scorer's on all witnesses is told, as inferred. Two slips at once are not looked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.audit.answer import Change
from gbfl_compile.audit.words import exact_text
from gbfl_compile.check.clock import Clock, OutOfTime, clock_of
from gbfl_compile.ir.batch import Matrix, clause_column, evaluate_many
from gbfl_compile.ir.nodes import Clause, Closed, Interval, Leaf, Program, Tree
from gbfl_compile.ir.readable import label_text, printable
from gbfl_compile.ir.regions import above, below

SECONDS = 5.0
INFERRED = "(inferred: it fits every witness)"
MOST_SWAPS = 30
"""Swapped columns are tried in pairs up to so many features."""


def class_numbers(program: Program, rows: Matrix) -> NDArray[np.int64]:
    """The number of the class that a program answers, row by row."""
    answers = evaluate_many(program, rows)
    decided = answers.probabilities if isinstance(program.decision, Tree) else answers.scores
    assert decided is not None  # noqa: S101 - a rule set has scores
    numbers: NDArray[np.int64] = decided.argmax(axis=1)
    return numbers


def explanation(program: Program, rows: Matrix, deployed: NDArray[np.int64]) -> tuple[Change, ...]:
    """The slip that explains the `deployed` class numbers of these rows, or nothing."""
    differs = class_numbers(program, rows) != deployed
    clock = clock_of(SECONDS)
    try:
        for change, mutant in _slips(program, rows, differs, clock):
            clock.check()
            if np.array_equal(class_numbers(mutant, rows), deployed):
                return (replace(change, deployed=f"{change.deployed} {INFERRED}"),)
    except OutOfTime:
        pass
    return ()


def _slips(
    program: Program, rows: Matrix, differs: NDArray[np.bool_], clock: Clock
) -> Iterator[tuple[Change, Program]]:
    """Programs one slip away that change something on every differing row."""
    for number, clause in enumerate(program.clauses):
        holds = clause_column(clause, rows)
        for slipped, told in _clause_slips(program, clause, rows):
            clock.check()
            if (differs & (clause_column(slipped, rows) == holds)).any():
                continue
            clauses = (*program.clauses[:number], slipped, *program.clauses[number + 1 :])
            approved = " AND ".join(_atom_text(program, atom) for atom in clause.atoms) or "always"
            yield Change(f"clause {number}", approved, told), replace(program, clauses=clauses)
        never = replace(program, clauses=(*program.clauses[:number], NEVER, *program.clauses[number + 1 :]))
        if not (differs & ~holds).any():
            yield Change(f"clause {number}", _clause_text(program, clause), "never"), never
    yield from _leaf_slips(program)
    yield from _swaps(program)


NEVER = Clause((Interval(0, 1.0, 0.0),))
"""No number is at least 1 and below 0. Only evaluated, never kept."""


def _clause_slips(program: Program, clause: Clause, rows: Matrix) -> Iterator[tuple[Clause, str]]:
    """The clause with one atom changed, the smallest changes first, and what it then says."""
    slips = [(place, slip) for place, atom in enumerate(clause.atoms) for slip in _atom_slips(atom)]
    slips += [(place, slip) for place, atom in enumerate(clause.atoms) for slip in _other_columns(program, atom)]
    for place, slip in slips:
        atoms = (*clause.atoms[:place], slip, *clause.atoms[place + 1 :])
        yield Clause(atoms), _clause_text(program, Clause(atoms))
    for place in range(len(clause.atoms)):
        fewer = Clause((*clause.atoms[:place], *clause.atoms[place + 1 :]))
        yield fewer, _clause_text(program, fewer)
    yield Clause(()), "always"
    for place, atom in enumerate(clause.atoms):
        for slip, told in _moved_bounds(program, atom, rows):
            yield Clause((*clause.atoms[:place], slip, *clause.atoms[place + 1 :])), told


def _atom_slips(atom: Interval) -> Iterator[Interval]:
    if atom.lo is not None:
        yield replace(atom, closed=_closed(not atom.lo_closed, atom.hi_closed))
        yield from (replace(atom, lo=above(atom.lo)), replace(atom, lo=below(atom.lo)))
    if atom.hi is not None:
        yield replace(atom, closed=_closed(atom.lo_closed, not atom.hi_closed))
        yield from (replace(atom, hi=above(atom.hi)), replace(atom, hi=below(atom.hi)))
    yield replace(atom, if_missing=not atom.if_missing)
    if atom.lo is not None and atom.hi is not None:
        yield from (replace(atom, lo=None), replace(atom, hi=None))


def _other_columns(program: Program, atom: Interval) -> Iterator[Interval]:
    return (replace(atom, feature=other) for other in range(len(program.features)) if other != atom.feature)


def _moved_bounds(program: Program, atom: Interval, rows: Matrix) -> Iterator[tuple[Interval, str]]:
    """A bound elsewhere: how far is known only between two values that the witnesses have."""
    column = rows[:, atom.feature]
    values = np.unique(column[np.isfinite(column)]).tolist()
    name = printable(program.features[atom.feature])
    for value in values:
        if atom.lo is not None:
            yield replace(atom, lo=value), f"{name} from about {exact_text(value)}"
        if atom.hi is not None:
            yield replace(atom, hi=value), f"{name} up to about {exact_text(value)}"


def _leaf_slips(program: Program) -> Iterator[tuple[Change, Program]]:
    if not isinstance(program.decision, Tree):
        return
    nodes = program.decision.nodes
    places = [place for place, node in enumerate(nodes) if isinstance(node, Leaf)]
    for number, place in enumerate(places):
        before = nodes[place]
        assert isinstance(before, Leaf)  # noqa: S101 - chosen as leaves above
        winner = int(np.argmax(before.probabilities))
        for other in range(len(program.classes)):
            if other != winner:
                certain = Leaf(tuple(float(c == other) for c in range(len(program.classes))))
                changed = Tree((*nodes[:place], certain, *nodes[place + 1 :]))
                told = (label_text(program.classes[winner]), label_text(program.classes[other]))
                yield Change(f"leaf {number}", *told), replace(program, decision=changed)


def _swaps(program: Program) -> Iterator[tuple[Change, Program]]:
    """Two columns mapped to each other's features, everywhere."""
    asked = sorted({atom.feature for clause in program.clauses for atom in clause.atoms})[:MOST_SWAPS]
    for a, b in combinations(asked, 2):
        other = {a: b, b: a}
        clauses = tuple(
            Clause(tuple(replace(atom, feature=other.get(atom.feature, atom.feature)) for atom in clause.atoms))
            for clause in program.clauses
        )
        names = (printable(program.features[a]), printable(program.features[b]))
        yield Change("columns", " and ".join(names), " and ".join(names[::-1])), replace(program, clauses=clauses)


def _closed(lo: bool, hi: bool) -> Closed:
    if lo:
        return "both" if hi else "left"
    return "right" if hi else "neither"


def _clause_text(program: Program, clause: Clause) -> str:
    return " AND ".join(_atom_text(program, atom) for atom in clause.atoms) or "always"


def _atom_text(program: Program, atom: Interval) -> str:
    """An atom to the last digit: `0.1 <= age < 50`."""
    text = printable(program.features[atom.feature])
    if atom.lo is not None and atom.hi is None:
        text = f"{text} {'>=' if atom.lo_closed else '>'} {exact_text(atom.lo)}"
    elif atom.lo is not None:
        text = f"{exact_text(atom.lo)} {'<=' if atom.lo_closed else '<'} {text}"
    if atom.hi is not None:
        text = f"{text} {'<=' if atom.hi_closed else '<'} {exact_text(atom.hi)}"
    elif atom.lo is None:
        text = f"{text} is present"
    return f"({text} OR missing)" if atom.if_missing else text
