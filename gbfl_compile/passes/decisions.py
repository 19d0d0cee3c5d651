"""Passes over the decision: a question whose answer is known, or makes no difference, is not asked."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import assert_never

from gbfl_compile.ir.intervals import NOTHING_KNOWN, Facts, always_holds, never_holds, with_failed, with_held
from gbfl_compile.ir.nodes import Leaf, Program, Scorecard, Split, Tree, preorder


def collapse_splits(program: Program) -> Program:
    """A question is not asked where both answers lead to the same; the rows of the two leaves are added up.

    before   IF x >= 5 THEN a (0.9, 10 rows) ELSE a (0.9, 20 rows)
    after    a (0.9, 30 rows)
    """
    if not isinstance(program.decision, Tree):
        return program
    return replace(program, decision=_collapse(program.decision))


def _collapse(tree: Tree) -> Tree:
    nodes = list(tree.nodes)
    number: dict[Hashable, int] = {}
    shape = [0] * len(nodes)  # equal numbers: the sides below are the same but for row counts
    goes_to = list(range(len(nodes)))
    for index in reversed(range(len(nodes))):
        node = nodes[index]
        if isinstance(node, Leaf):
            shape[index] = number.setdefault(("leaf", node.probabilities, node.answer), len(number))
            continue
        then, otherwise = goes_to[node.then], goes_to[node.otherwise]
        nodes[index] = Split(node.clause, then, otherwise)
        if shape[then] == shape[otherwise]:
            _add_rows(nodes, then, otherwise)
            goes_to[index], shape[index] = then, shape[then]
        else:
            shape[index] = number.setdefault(("split", node.clause, shape[then], shape[otherwise]), len(number))
    return preorder(nodes, goes_to[0])


def _add_rows(nodes: list[Split | Leaf], into: int, other: int) -> None:
    waiting = [(into, other)]
    while waiting:
        a, b = waiting.pop()
        here, there = nodes[a], nodes[b]
        if isinstance(here, Leaf) and isinstance(there, Leaf):
            known = here.rows is not None and there.rows is not None
            nodes[a] = replace(here, rows=(here.rows or 0) + (there.rows or 0) if known else None)
        elif isinstance(here, Split) and isinstance(there, Split):
            waiting += ((here.then, there.then), (here.otherwise, there.otherwise))


def decide_by_path(program: Program) -> Program:
    """A question whose answer follows from the answers before it is not asked.

        before   IF x >= 5 THEN (IF x >= 3 THEN a ELSE b) ELSE c
        after    IF x >= 5 THEN a ELSE c

    In a rule set, where nothing comes before, a clause that always holds moves into the bias and one that
    never holds is worth nothing.
    """
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
