"""Rules as one TreeEnsemble (ai.onnx.ml 5): a single node for the runtime, so few rows cost little.

TreeEnsemble tests one bound per node, and ONNX Runtime refuses a node with two parents. So a clause of several bounds
becomes several nodes, and what follows when one of them fails is repeated for each: `lo <= x < hi` is ::

    x <= below(lo) ?  yes: otherwise
                      no:  x <= below(hi) ?  yes: then   no: otherwise

What earlier bounds decide is not tested again. Programs that would still grow too large stay logic.
Every node tests `<=`: the runtime is fastest with one kind of comparison in the whole tree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gbfl_compile.backends.onnx.graph import Graph, add, numbers
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.intervals import ANYTHING, Values, above, below, both, values_of
from gbfl_compile.ir.kinds import intervals_in
from gbfl_compile.ir.nodes import Clause, Interval, Leaf, Program, Scorecard, Tree, leaf_numbers

MOST_NODES = 16_384
DEEPEST = 200
"""How large a tree may become, and how many bounds one path may test. Larger programs are better written as logic."""

EXACT = {"float32": 2**24, "float64": 2**53}
"""Integers below this are added exactly in the type."""

Box: TypeAlias = Mapping[int, Values]
Child: TypeAlias = tuple[bool, int]
"""Whether it is a leaf, and its index among the leaves or the nodes."""


class NoTree(BadInput):
    """A program that cannot sensibly be written as a TreeEnsemble, with the reason."""


@dataclass(frozen=True, slots=True)
class Question:
    """Is x <= bound? The values for which the clause's bound holds, and those for which it fails."""

    feature: int
    bound: float
    holds: Values
    fails: Values
    yes_holds: bool


@dataclass(slots=True)
class Nodes:
    """TreeEnsemble's parallel lists while they grow."""

    feature: list[int] = field(default_factory=list)
    bound: list[float] = field(default_factory=list)
    missing_says_yes: list[int] = field(default_factory=list)
    yes: list[Child] = field(default_factory=list)
    no: list[Child] = field(default_factory=list)
    leaf_target: list[int] = field(default_factory=list)
    leaf_weight: list[int] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)


def questions(clause: Clause) -> list[Question]:
    """The questions of a clause, bound by bound; none for an atom that always holds."""
    return [question for interval in intervals_in(clause) for question in _atom_questions(interval)]


def _atom_questions(interval: Interval) -> list[Question]:
    inside, missing = values_of(interval), interval.if_missing
    bounds_tested = []
    if interval.lo is not None:
        most = below(inside.least)
        at_least, less = Values(inside.least, math.inf, missing), Values(-math.inf, most, not missing)
        bounds_tested.append(Question(interval.feature, most, at_least, less, yes_holds=False))
    if interval.hi is not None:
        at_most, more = Values(-math.inf, inside.most, missing), Values(above(inside.most), math.inf, not missing)
        bounds_tested.append(Question(interval.feature, inside.most, at_most, more, yes_holds=True))
    if not bounds_tested and not missing:
        there, gone = Values(missing=False), Values(math.inf, -math.inf, True)
        bounds_tested.append(Question(interval.feature, math.inf, there, gone, yes_holds=True))
    return bounds_tested


def tree_nodes(program: Program, tree: Tree) -> Nodes:
    """A decision tree; a leaf weighs its own number."""
    if _height(tree) > DEEPEST:
        raise NoTree(f"as a TreeEnsemble the rules need more than {DEEPEST} bounds on one path: use lowering=logic")
    nodes = Nodes()
    number = leaf_numbers(tree)
    chains = [questions(clause) for clause in program.clauses]

    def grow(index: int, at: int, box: Box, depth: int) -> Child:
        while not isinstance(node := tree.nodes[index], Leaf):
            if at == len(chains[node.clause]):
                index, at = node.then, 0
                continue
            question = chains[node.clause][at]
            holding, failing = _split_box(box, question)
            if failing is None:
                at += 1
            elif holding is None:
                index, at = node.otherwise, 0
            else:
                place = _node(nodes, question, depth)
                held = grow(index, at + 1, holding, depth + 1)
                failed = grow(node.otherwise, 0, failing, depth + 1)
                return _connect(nodes, place, question, held, failed)
        return _leaf(nodes, 0, number[index])

    is_leaf, root = grow(0, 0, {}, 0)
    if is_leaf:
        raise NoTree("as a TreeEnsemble the rules ask nothing: use lowering=logic")
    nodes.roots.append(root)
    return nodes


def _height(tree: Tree) -> int:
    """How many splits the longest path has."""
    height = [0] * len(tree.nodes)
    for index in reversed(range(len(tree.nodes))):
        node = tree.nodes[index]
        if not isinstance(node, Leaf):
            height[index] = 1 + max(height[node.then], height[node.otherwise])
    return height[0]


def score_nodes(program: Program, card: Scorecard, dtype: str) -> Nodes:
    """A tree for each clause and class it gives points to: points where all bounds hold, 0 where one fails."""
    most = max(sum(abs(row[c]) for row in (card.bias, *card.points)) for c in range(len(card.bias)))
    if most >= EXACT[dtype]:
        raise NoTree(f"the points may add up to {most}, past what {dtype} adds exactly: use lowering=logic")
    nodes = Nodes()
    for clause, points in zip(program.clauses, card.points, strict=True):
        chain = questions(clause)
        for target, worth in enumerate(points):
            if worth and chain:
                nodes.roots.append(_chain(nodes, chain, target, worth))
    if not nodes.roots:
        raise NoTree("as a TreeEnsemble no rule gives points: use lowering=logic")
    return nodes


def _chain(nodes: Nodes, chain: list[Question], target: int, worth: int) -> int:
    following = _leaf(nodes, target, worth)
    for question in reversed(chain):
        following = _connect(nodes, _node(nodes, question, 0), question, following, _leaf(nodes, target, 0))
    return following[1]


def unasked_points(program: Program, card: Scorecard) -> tuple[int, ...]:
    """The bias with the points of every clause that always holds."""
    sure = [row for clause, row in zip(program.clauses, card.points, strict=True) if not questions(clause)]
    return tuple(card.bias[c] + sum(row[c] for row in sure) for c in range(len(card.bias)))


def _split_box(box: Box, question: Question) -> tuple[Box | None, Box | None]:
    """The parts of the box where the bound holds and where it fails; None if empty."""
    here = box.get(question.feature, ANYTHING)
    holds, fails = both(here, question.holds), both(here, question.fails)
    return (
        None if holds.empty else {**box, question.feature: holds},
        None if fails.empty else {**box, question.feature: fails},
    )


def _leaf(nodes: Nodes, target: int, weight: int) -> Child:
    nodes.leaf_target.append(target)
    nodes.leaf_weight.append(weight)
    return True, len(nodes.leaf_weight) - 1


def _node(nodes: Nodes, question: Question, depth: int) -> int:
    if depth == DEEPEST or len(nodes.feature) == MOST_NODES:
        most = f"{MOST_NODES} nodes or {DEEPEST} bounds on one path"
        raise NoTree(f"as a TreeEnsemble the rules need more than {most}: use lowering=logic")
    nodes.feature.append(question.feature)
    nodes.bound.append(question.bound)
    nodes.missing_says_yes.append(int(question.yes_holds is question.holds.missing))
    nodes.yes.append((True, 0))
    nodes.no.append((True, 0))
    return len(nodes.feature) - 1


def _connect(nodes: Nodes, place: int, question: Question, held: Child, failed: Child) -> Child:
    nodes.yes[place], nodes.no[place] = (held, failed) if question.yes_holds else (failed, held)
    return False, place


def ensemble(graph: Graph, matrix: str, nodes: Nodes, targets: int, name: str) -> str:
    """The TreeEnsemble node: `[rows, targets]`, sums of whole numbers, exact in the type of its input."""
    import numpy as np
    from onnx import numpy_helper

    kind = numbers(graph)
    weights = np.array(nodes.leaf_weight, dtype=kind)
    modes = np.zeros(len(nodes.feature), dtype=np.uint8)  # 0 is <=
    return add(
        graph,
        "TreeEnsemble",
        [matrix],
        name,
        domain="ai.onnx.ml",
        aggregate_function=1,  # sum
        post_transform=0,  # none
        n_targets=targets,
        tree_roots=nodes.roots,
        nodes_featureids=nodes.feature,
        nodes_splits=numpy_helper.from_array(_bounds(graph, nodes), "thresholds"),
        nodes_modes=numpy_helper.from_array(modes, "comparisons"),
        nodes_missing_value_tracks_true=nodes.missing_says_yes,
        nodes_truenodeids=[index for _, index in nodes.yes],
        nodes_trueleafs=[int(is_leaf) for is_leaf, _ in nodes.yes],
        nodes_falsenodeids=[index for _, index in nodes.no],
        nodes_falseleafs=[int(is_leaf) for is_leaf, _ in nodes.no],
        leaf_targetids=nodes.leaf_target,
        leaf_weights=numpy_helper.from_array(weights, "leaf values"),
    )


def _bounds(graph: Graph, nodes: Nodes) -> Any:
    """The bounds in the graph's type. For a float32 x, `x <= bound` is `x <= the float32 at or below bound`."""
    import numpy as np

    from gbfl_compile.ir.intervals import float32_at_or_below

    bounds = nodes.bound if graph.dtype == "float64" else [float32_at_or_below(bound) for bound in nodes.bound]
    return np.array(bounds, dtype=numbers(graph))
