"""A bound that always holds where it is asked is not written, nor a text that cannot come there.

    before   IF x >= 5 THEN (IF x >= 3 AND y < 2 THEN a ELSE b) ELSE c
    after    IF x >= 5 THEN (IF y < 2 THEN a ELSE b) ELSE c

A clause asked in two places may lose a bound in one and keep it in the other: it becomes two clauses.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from gbfl_compile.ir.intervals import NOTHING_KNOWN, Facts, Texts, Values, is_implied, values_of, with_failed, with_held
from gbfl_compile.ir.nodes import Atom, Clause, Interval, OneOf, Program, Scorecard, Split, Tree


def drop_true_bounds(program: Program) -> Program:
    """The program with each clause as short as what is known on its path allows."""
    match program.decision:
        case Tree():
            return _shorter_tree(program, program.decision)
        case Scorecard():
            return replace(program, clauses=tuple(shorter(clause, NOTHING_KNOWN) for clause in program.clauses))
        case _:
            assert_never(program.decision)


def _shorter_tree(program: Program, tree: Tree) -> Program:
    clauses = list(program.clauses)
    number = {clause: i for i, clause in reversed(list(enumerate(clauses)))}
    nodes = list(tree.nodes)
    facts: dict[int, Facts] = {0: NOTHING_KNOWN}
    for index, node in enumerate(tree.nodes):
        if not isinstance(node, Split):
            continue
        clause = program.clauses[node.clause]
        short = shorter(clause, facts[index])
        if short not in number:
            number[short] = len(clauses)
            clauses.append(short)
        nodes[index] = replace(node, clause=number[short])
        facts[node.then] = with_held(clause, facts[index])
        facts[node.otherwise] = with_failed(clause, facts[index])
    return replace(program, clauses=tuple(clauses), decision=Tree(tuple(nodes)))


def shorter(clause: Clause, facts: Facts) -> Clause:
    """The clause without the bounds that the facts imply."""
    return Clause(tuple(_shorter_atom(atom, facts) for atom in clause.atoms if not is_implied(atom, facts)))


def _shorter_atom(atom: Atom, facts: Facts) -> Atom:
    known = facts.values(atom.feature)
    match atom:
        case Interval():
            return _shorter_interval(atom, known) if isinstance(known, Values) else atom
        case OneOf():
            if not isinstance(known, Texts):
                return atom
            return replace(atom, values=tuple(text for text in atom.values if text in known))
        case _:
            assert_never(atom)


def _shorter_interval(atom: Interval, known: Values) -> Interval:
    own = values_of(atom)
    if atom.lo is not None and known.least >= own.least:
        atom = replace(atom, lo=None, closed="right" if atom.hi_closed else "left")
    if atom.hi is not None and known.most <= own.most:
        atom = replace(atom, hi=None, closed="left" if atom.lo_closed else "right")
    return atom
