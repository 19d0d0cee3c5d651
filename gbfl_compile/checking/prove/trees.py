"""Are two decisions equal on every row? Walks both at once, and checks reachability only where they differ.

A conjunction that failed is kept as it is (it is not split into the ways it can fail), so a rule list of a thousand
rules is a walk of a thousand steps. Where the two ends differ, `solve` decides whether a row reaches them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gbfl_compile.checking.prove.cells import Atoms
from gbfl_compile.checking.prove.solve import Graph, Step, end_node, solve

MOST_FAILED_SCANNED = 64
"""With more failed conjunctions than this, only an equal one is looked for: the rest is left to `solve`."""


@dataclass(slots=True)
class Place:
    """Where the walk is: both nodes, and what is known about a row that gets there. The walk changes it."""

    a: int
    b: int
    box: dict[int, int]
    failed: list[Atoms]
    known: set[Atoms]
    """The failed conjunctions, as they were tested and as they failed, for quick comparison."""
    row: Mapping[int, int] | None
    """One cell per feature of a row known to get here, where one is known."""


def find_difference(graph: Graph, a: int, b: int) -> Mapping[int, int] | None:
    """One cell per feature (cell 0 if not named) where nodes `a` and `b` end differently, or None: they never do."""
    return find_difference_within(graph, a, b, {}, [])


def find_difference_within(
    graph: Graph, a: int, b: int, box: Mapping[int, int], failed: Sequence[Atoms]
) -> Mapping[int, int] | None:
    """The same, among the rows of a box that fail each of some conjunctions."""
    places = [Place(a, b, dict(box), list(failed), set(failed), None)]
    while places:
        row = _explore(graph, places.pop(), places)
        if row is not None:
            return row
    return None


def _explore(graph: Graph, at: Place, places: list[Place]) -> Mapping[int, int] | None:
    """Walk on from one place, leaving those to come back to in `places`; a row that differs ends the walk."""
    while True:
        graph.clock.check()
        at.a, open_a = _next_open(graph, at.a, at)
        at.b, open_b = _next_open(graph, at.b, at)
        if at.a == at.b:
            return None
        if open_a is None and open_b is None:
            return _row_here(graph, at)
        fork = _fork(graph, at, open_a, open_b)
        if fork.held[0] == fork.held[1]:
            if fork.failed[0] == fork.failed[1] or not _fail(graph, at, fork):
                return None
            at.a, at.b = fork.failed
            continue
        if fork.failed[0] != fork.failed[1]:
            if len(fork.conjunctions) == 1:  # they part here: go on only if a row gets here, and try that row
                row = _row_here(graph, at)
                if row is None or end_node(graph, at.a, row) != end_node(graph, at.b, row):
                    return row
                at.row = row
            other = Place(*fork.failed, dict(at.box), list(at.failed), set(at.known), at.row)
            if _fail(graph, other, fork):
                places.append(other)
        _hold(at, fork.atoms)
        at.a, at.b = fork.held


@dataclass(frozen=True, slots=True)
class Fork:
    """The next condition, where both go when it holds, and where when it fails."""

    atoms: Atoms
    """The atoms of it that are still open."""
    conjunctions: tuple[Atoms, ...]
    """As the nodes test it: two if both sides test the same."""
    held: tuple[int, int]
    failed: tuple[int, int]


def _fork(graph: Graph, at: Place, open_a: Atoms | None, open_b: Atoms | None) -> Fork:
    """The next question: both sides' if they ask the same, otherwise the first side's while it has one."""
    step_a, step_b = graph.nodes[at.a], graph.nodes[at.b]
    if isinstance(step_a, Step) and isinstance(step_b, Step) and open_a is not None and open_b is not None:
        if open_a == open_b:
            conjunctions = (step_a.atoms, step_b.atoms)
            return Fork(open_a, conjunctions, (step_a.then, step_b.then), (step_a.otherwise, step_b.otherwise))
        if len(open_a) == len(open_b) == 1 and open_a[0][0] == open_b[0][0]:
            feature = open_a[0][0]
            have = at.box.get(feature, graph.cells.everything(feature))
            if open_a[0][1] ^ open_b[0][1] == have:
                conjunctions = (step_a.atoms, step_b.atoms)
                return Fork(open_a, conjunctions, (step_a.then, step_b.otherwise), (step_a.otherwise, step_b.then))
    if isinstance(step_a, Step) and open_a is not None:
        return Fork(open_a, (step_a.atoms,), (step_a.then, at.b), (step_a.otherwise, at.b))
    assert isinstance(step_b, Step) and open_b is not None  # noqa: S101, PT018 - one of the two is open
    return Fork(open_b, (step_b.atoms,), (at.a, step_b.then), (at.a, step_b.otherwise))


def _next_open(graph: Graph, node: int, at: Place) -> tuple[int, Atoms | None]:
    """From `node` on, the first node that what is known does not decide, and what it still asks (None: an outcome)."""
    while isinstance(step := graph.nodes[node], Step):
        left = _open(step.atoms, at)
        if left is None or (left and _leads_past(graph, step, left, at)):
            node = step.otherwise
        elif left:
            return node, left
        else:
            node = step.then
    return node, None


def _leads_past(graph: Graph, step: Step, left: Atoms, at: Place) -> bool:
    """Whether the row goes on at `otherwise` even where the atoms hold: the rest of a long condition is known to fail.

    Follows the one way that avoids `otherwise`, as long as there is only one.
    """
    if not isinstance(graph.nodes[step.then], Step):
        return False
    held = Place(at.a, at.b, {**at.box, **dict(left)}, at.failed, at.known, None)
    node = step.then
    while node != step.otherwise:
        inner = graph.nodes[node]
        if not isinstance(inner, Step):
            return False
        still = _open(inner.atoms, held)
        if still is None or (still and inner.then == step.otherwise):
            node = inner.otherwise
        elif not still or inner.otherwise == step.otherwise:
            held.box.update(still)
            node = inner.then
        else:
            return False
    return True


def _open(atoms: Atoms, at: Place) -> Atoms | None:
    """The atoms not yet known to hold, narrowed to what is possible; None: they cannot all hold."""
    left = []
    box = at.box
    for feature, mask in atoms:
        have = box.get(feature)
        if have is None:
            left.append((feature, mask))
            continue
        inside = have & mask
        if not inside:
            return None
        if inside != have:
            left.append((feature, inside))
    if not left:
        return ()
    conjunction = tuple(left)
    if conjunction in at.known or atoms in at.known:
        return None
    if len(at.failed) <= MOST_FAILED_SCANNED and at.failed:
        narrowed = {**box, **dict(left)}
        if any(_is_implied(failed, narrowed) for failed in at.failed):
            return None
    return conjunction


def _is_implied(atoms: Atoms, box: Mapping[int, int]) -> bool:
    return all(not box.get(feature, -1) & ~mask for feature, mask in atoms)


def _hold(at: Place, atoms: Atoms) -> None:
    at.box.update(atoms)  # open atoms are already narrowed to the box
    if at.row is not None and not _row_holds(at.row, atoms):
        at.row = None


def _fail(graph: Graph, at: Place, fork: Fork) -> bool:
    """Note that the atoms do not all hold; False where nothing is left."""
    if len(fork.atoms) == 1:
        feature, mask = fork.atoms[0]
        left = at.box.get(feature, graph.cells.everything(feature)) & ~mask
        if not left:
            return False
        at.box[feature] = left
    else:
        at.failed.append(fork.atoms)
        at.known.update((fork.atoms, *fork.conjunctions))
    if at.row is not None and _row_holds(at.row, fork.atoms):
        at.row = None
    return True


def _row_holds(row: Mapping[int, int], atoms: Atoms) -> bool:
    return all(row.get(feature, 1) & mask for feature, mask in atoms)


def _row_here(graph: Graph, at: Place) -> Mapping[int, int] | None:
    if at.row is not None:
        return at.row
    box = solve(graph.cells, at.box, at.failed, graph.clock)
    return None if box is None else {feature: mask & -mask for feature, mask in box.items()}
