"""Slips in how the conditions of a clause are joined: OR for AND, and an OR whose parentheses were left out.

`a AND b` written as `a OR b`, and `a AND (b OR b is missing)` written as `a AND b OR b is missing`, are no clauses: the
program with such a slip tests two clauses where the approved one tests one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from gbfl_compile.auditing.answers import Bits
from gbfl_compile.auditing.diagnose.answer import in_order
from gbfl_compile.auditing.diagnose.clause import Need, atom_text, clause_text, needs_of
from gbfl_compile.auditing.diagnose.slip import Case, Slip
from gbfl_compile.ir.batch import atom_column
from gbfl_compile.ir.nodes import Atom, Clause, Interval, Leaf, OneOf, Program, Scorecard, Split, Tree
from gbfl_compile.ir.text import printable

JOINED = 4
MOST_ATOMS = 6
"""Clauses with more conditions can be torn in two in too many ways."""

Halves = tuple[tuple[Atom, ...], tuple[Atom, ...], str]
"""The conditions on the two sides of an OR, and both in words."""


def joined_slips(case: Case) -> Iterator[Slip]:
    """Every clause of which an OR makes two that explain the rows."""
    for need in needs_of(case):
        atoms = need.clause.atoms
        for one, other, words in _halves(case.program, atoms) if 1 < len(atoms) <= MOST_ATOMS else ():
            holds = _all_hold(need, one) | _all_hold(need, other)
            if need.fits(holds):
                change = replace(need.change(clause_text(case.program, need.clause), words), kind="loosened")
                changed = _with_two(case.program, need.number, Clause(one), Clause(other))
                yield Slip(JOINED, int((holds != case.held[:, need.number]).sum()), (change,), changed)


def _halves(program: Program, atoms: tuple[Atom, ...]) -> Iterator[Halves]:
    first, *rest = atoms
    for size in range(len(rest)):
        for chosen in combinations(rest, size):
            one, other = (first, *chosen), tuple(atom for atom in rest if atom not in chosen)
            yield one, other, f"{_text(program, one)} OR {_text(program, other)}"
    for place, atom in enumerate(atoms):
        if atom.if_missing:
            present = replace(atom, if_missing=False)
            one = (*atoms[:place], present, *atoms[place + 1 :])
            missing = f"{printable(program.features[atom.feature])} is missing"
            yield one, (_only_missing(atom),), f"{_text(program, one)} OR {missing}"


def _text(program: Program, atoms: tuple[Atom, ...]) -> str:
    return " AND ".join(atom_text(program, atom) for atom in atoms)


def _only_missing(atom: Atom) -> Atom:
    """The condition that its feature is missing. Only evaluated."""
    if isinstance(atom, OneOf):
        return OneOf(atom.feature, (), if_missing=True)
    return Interval(atom.feature, 1.0, 0.0, if_missing=True)


def _all_hold(need: Need, atoms: tuple[Atom, ...]) -> Bits:
    first, *rest = (atom_column(atom, need.case.rows[:, atom.feature], need.case.book) for atom in atoms)
    holds: Bits = first.copy()
    for column in rest:
        holds &= column
    return holds


def _with_two(program: Program, number: int, one: Clause, other: Clause) -> Program:
    """The program in which either of two clauses does what one did."""
    count = len(program.clauses)
    clauses = (*program.clauses, one, other)
    if isinstance(program.decision, Scorecard):
        worth = program.decision.points[number]
        both = tuple(-each for each in worth)  # where both hold, the approved clause holds as well
        if _are_apart(one, other):
            both = (0,) * len(worth)
        points = (*program.decision.points[:number], both, *program.decision.points[number + 1 :], worth, worth)
        return replace(program, clauses=clauses, decision=replace(program.decision, points=points))
    nodes: list[Leaf | Split] = list(program.decision.nodes)
    for place, node in enumerate(program.decision.nodes):
        if isinstance(node, Split) and node.clause == number:
            nodes[place] = replace(node, clause=count, otherwise=len(nodes))
            nodes.append(replace(node, clause=count + 1))
    return replace(program, clauses=clauses, decision=Tree(in_order(nodes)))


def _are_apart(one: Clause, other: Clause) -> bool:
    """Whether no row has both: one needs a value where the other holds only without."""
    present = {atom.feature for atom in one.atoms if not atom.if_missing}
    return any(atom == _only_missing(atom) and atom.feature in present for atom in other.atoms)
