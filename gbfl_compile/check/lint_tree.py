"""For every node of a tree: does a row get there, and does what is asked there make a difference?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gbfl_compile.check.cells import Atoms, Cells
from gbfl_compile.check.clock import Clock, OutOfTime
from gbfl_compile.check.prove_graph import Graph, add_steps
from gbfl_compile.check.prove_trees import find_difference_within
from gbfl_compile.check.reading import Decided
from gbfl_compile.check.solve import solve
from gbfl_compile.check.ways import Way, failing, holding, way_to
from gbfl_compile.check.wide import as_reading
from gbfl_compile.ir.nodes import Program, Split, Tree
from gbfl_compile.ir.trees import paths


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """True and False are shown for every row, None is not decided (or, of a leaf, not asked)."""

    reached: bool | None
    row: Mapping[int, int] | None = None
    """A box of rows that get there."""
    holds: bool | None = None
    """Whether some row that gets there holds the clause; likewise `fails`."""
    fails: bool | None = None
    changes_label: bool | None = None


def node_facts(
    program: Program, tree: Tree, cells: Cells, atoms: Sequence[Atoms], clock: Clock
) -> tuple[NodeFacts, ...]:
    """The facts of every node, in order; what the time does not suffice for stays undecided."""
    graph = Graph(cells, clock)
    facts: list[NodeFacts] = []
    try:
        decided = as_reading(program).decision
        assert isinstance(decided, Decided)  # noqa: S101 - a tree's reading is one
        made = add_steps(graph, decided, lambda outcome: outcome.winner)
        for index, steps in sorted(paths(tree).items()):
            facts.append(_facts(tree, graph, made, index, way_to(cells, tree, atoms, steps), atoms))
    except OutOfTime:
        pass
    return (*facts, *[NodeFacts(None)] * (len(tree.nodes) - len(facts)))


def _facts(
    tree: Tree, graph: Graph, made: Mapping[int, int], index: int, way: Way | None, atoms: Sequence[Atoms]
) -> NodeFacts:
    row = None if way is None else _row(graph, way)
    if way is None or row is None:
        return NodeFacts(False)
    node = tree.nodes[index]
    if not isinstance(node, Split):
        return NodeFacts(True, row)
    held = holding(graph.cells, way, atoms[node.clause])
    holds = held is not None and _row(graph, held) is not None
    fails = _row(graph, failing(way, atoms[node.clause])) is not None
    differs = holds and fails
    if differs:
        difference = find_difference_within(graph, made[node.then], made[node.otherwise], way.box, way.failed)
        differs = difference is not None
    return NodeFacts(True, row, holds, fails, differs)


def _row(graph: Graph, way: Way) -> Mapping[int, int] | None:
    return solve(graph.cells, way.box, way.failed, graph.clock)
