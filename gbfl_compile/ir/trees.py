"""Trees are built here and nowhere else, so that equal trees have equal node tuples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gbfl_compile.ir.nodes import Leaf, Split, Tree


def preorder(nodes: Sequence[Split | Leaf], root: int = 0) -> Tree:
    """The tree below `root`, renumbered so that each node comes before its `then` and `otherwise` sides.

    >>> first, *leaves = preorder([Leaf((1.0,)), Leaf((0.5,)), Split(0, 1, 0)], root=2).nodes
    >>> first
    Split(clause=0, then=1, otherwise=2)
    >>> [leaf.probabilities for leaf in leaves]
    [(0.5,), (1.0,)]
    """
    order: list[int] = []
    number: dict[int, int] = {}
    waiting = [root]
    while waiting:
        index = waiting.pop()
        if index in number:
            raise ValueError(f"node {index} is reached twice: a tree shares nothing")
        number[index] = len(order)
        order.append(index)
        node = nodes[index]
        if isinstance(node, Split):
            waiting += (node.otherwise, node.then)
    return Tree(tuple(_renumber(nodes[index], number) for index in order))


def _renumber(node: Split | Leaf, number: dict[int, int]) -> Split | Leaf:
    if isinstance(node, Leaf):
        return node
    return Split(node.clause, number[node.then], number[node.otherwise])


def is_rule_list(tree: Tree) -> bool:
    """Whether each question, where it holds, is answered at once: IF, ELSE IF, ELSE; two questions at least."""
    splits = [node for node in tree.nodes if isinstance(node, Split)]
    return len(splits) > 1 and all(isinstance(tree.nodes[node.then], Leaf) for node in splits)


def leaf(*probabilities: float, rows: int | None = None) -> Tree:
    """A tree of one leaf."""
    return Tree((Leaf(probabilities, rows),))


def split(clause: int, then: Tree, otherwise: Tree) -> Tree:
    """A tree that asks `clause` and goes on in one of two trees."""
    first, second = 1, 1 + len(then.nodes)
    return Tree((Split(clause, first, second), *_shift(then, first), *_shift(otherwise, second)))


def _shift(tree: Tree, by: int) -> Iterator[Split | Leaf]:
    for node in tree.nodes:
        yield node if isinstance(node, Leaf) else Split(node.clause, node.then + by, node.otherwise + by)


def leaf_numbers(tree: Tree) -> dict[int, int]:
    """Node index -> leaf number; leaves are numbered from 0 in reading order."""
    leaves = (index for index, node in enumerate(tree.nodes) if isinstance(node, Leaf))
    return {index: number for number, index in enumerate(leaves)}


def paths(tree: Tree) -> dict[int, tuple[tuple[int, bool], ...]]:
    """Node index -> the (split, held) steps from the root to it."""
    steps_to: dict[int, tuple[tuple[int, bool], ...]] = {0: ()}
    for index, node in enumerate(tree.nodes):
        if isinstance(node, Split):
            steps_to[node.then] = (*steps_to[index], (index, True))
            steps_to[node.otherwise] = (*steps_to[index], (index, False))
    return steps_to


def deep_splits(tree: Tree, deep: int) -> set[int]:
    """The splits to write the other way round, `otherwise` indented, where `then` is nested `deep` levels or more.

    Written so, no text of a tree is nested much deeper than that: languages and compilers have their limits.
    """
    inverted = set()
    height = [0] * len(tree.nodes)
    for index in reversed(range(len(tree.nodes))):
        node = tree.nodes[index]
        if isinstance(node, Split):
            inner, outer = height[node.then], height[node.otherwise]
            if inner >= deep and inner > outer:
                inverted.add(index)
                inner, outer = outer, inner
            height[index] = max(inner + 1, outer)
    return inverted
