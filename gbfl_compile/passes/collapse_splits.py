"""A question is not asked where both answers lead to the same.

before   IF x >= 5 THEN a (0.9, 10 rows) ELSE a (0.9, 20 rows)
after    a (0.9, 30 rows)
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from gbfl_compile.ir.nodes import Leaf, Program, Split, Tree
from gbfl_compile.ir.trees import preorder


def collapse_splits(program: Program) -> Program:
    """The program without splits whose two sides are the same; leaf row counts are added up."""
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
