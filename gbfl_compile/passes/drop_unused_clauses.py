"""Clauses that nothing asks are dropped, the others numbered in reading order.

before   clauses 0, 1, 2; IF clause 2 ... ELSE IF clause 0 ...
after    clauses 0, 1;    IF clause 0 ... ELSE IF clause 1 ...
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from gbfl_compile.ir.nodes import Leaf, Program, Scorecard, Split, Tree
from gbfl_compile.ir.reasons import moved_reasons


def drop_unused_clauses(program: Program) -> Program:
    """The program with only the clauses it asks; in a rule set, those that are worth any points."""
    match program.decision:
        case Tree(nodes):
            used = list(dict.fromkeys(node.clause for node in nodes if isinstance(node, Split)))
            number = {old: new for new, old in enumerate(used)}
            renumbered = (n if isinstance(n, Leaf) else Split(number[n.clause], n.then, n.otherwise) for n in nodes)
            decision: Tree | Scorecard = Tree(tuple(renumbered))
        case Scorecard(_, points, _):
            used = [i for i, row in enumerate(points) if any(row)]
            decision = replace(program.decision, points=tuple(points[i] for i in used))
        case _:
            assert_never(program.decision)
    metadata = moved_reasons(program, {old: new for new, old in enumerate(used)})
    return replace(program, clauses=tuple(program.clauses[i] for i in used), decision=decision, metadata=metadata)
