"""Which one slip would explain what a scorer that cannot be read answered: a guess that fits every row it was asked.

Each small change of the approved program is tried: a bound one number further, open for closed, gone or moved, missing
values taken otherwise, a column mapped to another, a condition more or less, a clause that always or never holds,
leaves of other classes, other points. The first whose answers are the scorer's on all rows is told, as inferred:
another might fit as well. Two slips at once are not looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.audit.answer import Change
from gbfl_compile.audit.words import exact_text
from gbfl_compile.check.clock import Clock, OutOfTime, clock_of
from gbfl_compile.ir.batch import Matrix, clause_column, evaluate_many
from gbfl_compile.ir.nodes import Clause, Closed, Interval, Leaf, Program, Scorecard, Tree
from gbfl_compile.ir.readable import label_text, printable
from gbfl_compile.ir.regions import above, below

SECONDS = 5.0
MOST_SWAPS = 30
"""Swapped columns are tried in pairs up to so many features."""


def class_numbers(program: Program, rows: Matrix) -> NDArray[np.int64]:
    """The number of the class that a program answers, row by row."""
    answers = evaluate_many(program, rows)
    decided = answers.probabilities if isinstance(program.decision, Tree) else answers.scores
    assert decided is not None  # noqa: S101 - a rule set has scores
    numbers: NDArray[np.int64] = decided.argmax(axis=1)
    return numbers


def explanation(
    program: Program, rows: Matrix, deployed: NDArray[np.int64], fits: str = "every witness"
) -> tuple[Change, ...]:
    """The slip that explains the `deployed` class numbers of these rows, or nothing."""
    differs = class_numbers(program, rows) != deployed
    if not differs.any():
        return ()
    clock = clock_of(SECONDS)
    try:
        for changes, mutant in _slips(program, rows, deployed, differs, clock):
            clock.check()
            if np.array_equal(class_numbers(mutant, rows), deployed):
                return tuple(
                    replace(change, deployed=f"{change.deployed} (inferred: it fits {fits})") for change in changes
                )
    except OutOfTime:
        pass
    return ()


Slip: TypeAlias = tuple[tuple[Change, ...], Program]


def _slips(
    program: Program, rows: Matrix, deployed: NDArray[np.int64], differs: NDArray[np.bool_], clock: Clock
) -> Iterator[Slip]:
    """Programs one slip away, the smallest slips first."""
    yield from _clause_slips(program, rows, differs, clock, _small_slips)
    if isinstance(program.decision, Tree):
        yield from _other_leaves(program, program.decision, rows, deployed)
    else:
        yield from _other_points(program, program.decision)
    yield from _clause_slips(program, rows, differs, clock, _large_slips)
    yield from _swaps(program)
    yield from _clause_slips(program, rows, differs, clock, _moved_bounds)
    yield from _clause_slips(program, rows, differs, clock, _added_conditions)


def _clause_slips(
    program: Program,
    rows: Matrix,
    differs: NDArray[np.bool_],
    clock: Clock,
    slips: Callable[[Program, Clause, Matrix], Iterator[tuple[Clause, str]]],
) -> Iterator[Slip]:
    """Each clause slipped in these ways, where that changes the clause on every differing row."""
    for number, clause in enumerate(program.clauses):
        holds = clause_column(clause, rows)
        for slipped, told in slips(program, clause, rows):
            clock.check()
            if not (differs & (clause_column(slipped, rows) == holds)).any():
                clauses = (*program.clauses[:number], slipped, *program.clauses[number + 1 :])
                change = Change(f"clause {number}", _clause_text(program, clause), told)
                yield (change,), replace(program, clauses=clauses)


NEVER = Clause((Interval(0, 1.0, 0.0),))
"""No number is at least 1 and below 0. Only evaluated, never kept."""


def _with_atom(clause: Clause, place: int, *atoms: Interval) -> Clause:
    return Clause((*clause.atoms[:place], *atoms, *clause.atoms[place + 1 :]))


def _small_slips(program: Program, clause: Clause, _: Matrix) -> Iterator[tuple[Clause, str]]:
    for place, atom in enumerate(clause.atoms):
        for slip in _atom_slips(atom):
            slipped = _with_atom(clause, place, slip)
            yield slipped, _clause_text(program, slipped)


def _large_slips(program: Program, clause: Clause, _: Matrix) -> Iterator[tuple[Clause, str]]:
    """A condition left out or on another column, and a clause that always or never holds."""
    for place, atom in enumerate(clause.atoms):
        others = [replace(atom, feature=other) for other in range(len(program.features)) if other != atom.feature]
        for atoms in ((), *((other,) for other in others)):
            slipped = _with_atom(clause, place, *atoms)
            yield slipped, _clause_text(program, slipped)
    yield Clause(()), "always"
    yield NEVER, "never"


def _moved_bounds(program: Program, clause: Clause, rows: Matrix) -> Iterator[tuple[Clause, str]]:
    """A bound elsewhere: how far is known only between two values that the witnesses have."""
    for place, atom in enumerate(clause.atoms):
        column = rows[:, atom.feature]
        name = printable(program.features[atom.feature])
        for value in np.unique(column[np.isfinite(column)]).tolist():
            if atom.lo is not None:
                yield _with_atom(clause, place, replace(atom, lo=value)), f"{name} from about {exact_text(value)}"
            if atom.hi is not None:
                yield _with_atom(clause, place, replace(atom, hi=value)), f"{name} up to about {exact_text(value)}"


def _added_conditions(program: Program, clause: Clause, rows: Matrix) -> Iterator[tuple[Clause, str]]:
    """One more condition, on a feature that the clause does not ask yet."""
    asked, text = {atom.feature for atom in clause.atoms}, _clause_text(program, clause)
    for feature in (feature for feature in range(len(program.features)) if feature not in asked):
        column, name = rows[:, feature], printable(program.features[feature])
        for value in np.unique(column[np.isfinite(column)]).tolist():
            for added, side in ((Interval(feature, value, None), "from"), (Interval(feature, None, value), "up to")):
                yield Clause((*clause.atoms, added)), f"{text} AND {name} {side} about {exact_text(value)}"


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


def _other_leaves(program: Program, tree: Tree, rows: Matrix, deployed: NDArray[np.int64]) -> Iterator[Slip]:
    """The same tree with other classes in its leaves, where every leaf was answered with one class throughout."""
    reached = evaluate_many(program, rows).leaves
    places = [place for place, node in enumerate(tree.nodes) if isinstance(node, Leaf)]
    nodes, changes = list(tree.nodes), []
    for number, place in enumerate(places):
        found = np.unique(deployed[reached == number]).tolist()
        before = program.classes[int(np.argmax(tree.nodes[place].probabilities))]  # type: ignore[union-attr]  # a leaf
        if len(found) > 1 or not all(0 <= c < len(program.classes) for c in found):
            return
        if found and program.classes[found[0]] != before:
            nodes[place] = Leaf(tuple(float(c == found[0]) for c in range(len(program.classes))))
            changes.append(Change(f"leaf {number}", label_text(before), label_text(program.classes[found[0]])))
    yield tuple(changes), replace(program, decision=Tree(tuple(nodes)))


def _other_points(program: Program, card: Scorecard) -> Iterator[Slip]:
    """Points of one clause, or those to start with: one more, one less, none, or of the other sign."""
    rows = (*card.points, card.bias)
    for number, points in enumerate(rows):
        for c, worth in enumerate(points):
            for other in sorted({0, -worth, worth + 1, worth - 1} - {worth}, key=abs):
                changed = (*points[:c], other, *points[c + 1 :])
                is_bias = number == len(card.points)
                where = "to start with" if is_bias else f"points of clause {number}"
                change = Change(where, f"{worth} for {label_text(program.classes[c])}", str(other))
                table = (*card.points[:number], changed, *card.points[number + 1 :])
                decision = replace(card, bias=changed) if is_bias else replace(card, points=table)
                yield (change,), replace(program, decision=decision)


def _swaps(program: Program) -> Iterator[Slip]:
    """Two columns mapped to each other's features, everywhere."""
    asked = sorted({atom.feature for clause in program.clauses for atom in clause.atoms})[:MOST_SWAPS]
    for a, b in combinations(asked, 2):
        other = {a: b, b: a}
        clauses = tuple(
            Clause(tuple(replace(atom, feature=other.get(atom.feature, atom.feature)) for atom in clause.atoms))
            for clause in program.clauses
        )
        names = (printable(program.features[a]), printable(program.features[b]))
        change = Change("every clause", f"on columns {' and '.join(names)}", f"on {' and '.join(names[::-1])}")
        yield (change,), replace(program, clauses=clauses)


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
