"""A question whose answer follows from the answers before it is not asked.

    before   IF x >= 5 THEN (IF x >= 3 THEN a ELSE b) ELSE c
    after    IF x >= 5 THEN a ELSE c

In a rule set, where nothing comes before, a clause that always holds moves into the bias and one that
never holds is worth nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from gbfl_compile.ir.intervals import NOTHING_KNOWN, Facts, always_holds, never_holds, with_failed, with_held
from gbfl_compile.ir.nodes import Program, Scorecard, Split, Tree
from gbfl_compile.ir.trees import preorder


def decide_by_path(program: Program) -> Program:
    """The program without splits that the path above has already decided."""
    match program.decision:
        case Tree():
            return replace(program, decision=_decided_tree(program, program.decision))
        case Scorecard():
            return replace(program, decision=_decided_card(program, program.decision))
        case _:
            assert_never(program.decision)


def _decided_tree(program: Program, tree: Tree) -> Tree:
    nodes = list(tree.nodes)
    goes_to = list(range(len(nodes)))
    facts: dict[int, Facts] = {0: NOTHING_KNOWN}
    for index, node in enumerate(tree.nodes):
        if index not in facts or not isinstance(node, Split):
            continue
        clause, known = program.clauses[node.clause], facts[index]
        if always_holds(clause, known):
            goes_to[index], facts[node.then] = node.then, known
        elif never_holds(clause, known):
            goes_to[index], facts[node.otherwise] = node.otherwise, known
        else:
            facts[node.then], facts[node.otherwise] = with_held(clause, known), with_failed(clause, known)
    for index in reversed(range(len(nodes))):  # children come after their parents, so they are final here
        goes_to[index] = index if goes_to[index] == index else goes_to[goes_to[index]]
        node = nodes[index]
        if isinstance(node, Split):
            nodes[index] = Split(node.clause, goes_to[node.then], goes_to[node.otherwise])
    return preorder(nodes, goes_to[0])


def _decided_card(program: Program, card: Scorecard) -> Scorecard:
    bias, nothing = list(card.bias), (0,) * len(card.bias)
    points = list(card.points)
    for number, clause in enumerate(program.clauses):
        if always_holds(clause, NOTHING_KNOWN):
            bias = [start + worth for start, worth in zip(bias, points[number], strict=True)]
            points[number] = nothing
        elif never_holds(clause, NOTHING_KNOWN):
            points[number] = nothing
    return replace(card, bias=tuple(bias), points=tuple(points))
