"""Two clauses that ask the same become one.

before   clause 0: x >= 1 AND y < 2     clause 1: y < 2 AND x >= 1
         IF clause 0 ... ELSE IF clause 1 ...
after    IF clause 0 ... ELSE IF clause 0 ...
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from gbfl_compile.ir.intervals import Allowed, allowed_by
from gbfl_compile.ir.nodes import Clause, Leaf, Program, Scorecard, Split, Tree
from gbfl_compile.ir.reasons import moved_reasons


def merge_equal_clauses(program: Program) -> Program:
    """The program with every clause replaced by the first one that asks the same."""
    first: dict[frozenset[tuple[int, Allowed]], int] = {}
    same_as = [first.setdefault(question(clause), number) for number, clause in enumerate(program.clauses)]
    program = replace(program, metadata=moved_reasons(program, dict(enumerate(same_as))))
    match program.decision:
        case Tree(nodes):
            merged = (n if isinstance(n, Leaf) else Split(same_as[n.clause], n.then, n.otherwise) for n in nodes)
            return replace(program, decision=Tree(tuple(merged)))
        case Scorecard():
            return replace(program, decision=_merged_points(program.decision, same_as))
        case _:
            assert_never(program.decision)


def question(clause: Clause) -> frozenset[tuple[int, Allowed]]:
    """What a clause asks, regardless of the order and spelling of its atoms."""
    return frozenset((atom.feature, allowed_by(atom)) for atom in clause.atoms)


def _merged_points(card: Scorecard, same_as: list[int]) -> Scorecard:
    """The points of a later equal clause move to the first; what is left of it is worth nothing."""
    points = [[0] * len(card.bias) for _ in card.points]
    for number, row in enumerate(card.points):
        target = points[same_as[number]]
        for c, worth in enumerate(row):
            target[c] += worth
    return replace(card, points=tuple(tuple(row) for row in points))
