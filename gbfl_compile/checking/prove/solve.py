"""What two decisions have in common, as one graph, and rows that a box of cells holds: the prover's two instruments.

As one graph, what is equal in form is one node: the prover's first and cheapest answer. Every step tests a conjunction
(`Atoms`). Conditions are taken apart by the rules of logic, an `or` or a `not` being a different way through the graph;
chains such as `x? (y? A : B) : B` become `x and y? A : B` again:

    Any((x, y)) ? A : B        ->   (not x and not y)? B : A
    x? (y? A : B) : B          ->   (x and y)? A : B

The search finds rows that lie in a box of cells and fail each of some conjunctions, or shows that there are none. A
conjunction fails where one of its atoms does. The search narrows a box: a conjunction with one atom left to fail at
narrows it at once; otherwise the one with the fewest ways out is tried one way, then with that way closed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from gbfl_compile.checking.prove.cells import Atoms, Box, Cells, join, mask_of
from gbfl_compile.checking.prove.findings import Budget
from gbfl_compile.checking.reading.from_program import test_of
from gbfl_compile.checking.reading.nodes import And, Ask, Condition, Not, Or, Outcome, StepDecision, Test
from gbfl_compile.ir.kinds import Codebook
from gbfl_compile.ir.nodes import Clause, Program, Split, Tree

Key: TypeAlias = Hashable
"""The part of an outcome that counts: two outcomes with equal keys are one node."""


@dataclass(frozen=True, slots=True)
class Step:
    """On to node `then` where all atoms hold, to node `otherwise` where not."""

    atoms: Atoms
    then: int
    otherwise: int


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes by number, each only once; a node that is not a Step is an outcome's key."""

    cells: Cells
    clock: Budget
    nodes: list[Step | Key] = field(default_factory=list)
    number: dict[Step | tuple[str, Key], int] = field(default_factory=dict)
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    """The first outcome of each outcome node."""


def add_decision(graph: Graph, decided: StepDecision, key: Callable[[Outcome], Key]) -> int:
    """The node at which a decision begins."""
    return add_steps(graph, decided, key)[0]


def add_steps(graph: Graph, decided: StepDecision, key: Callable[[Outcome], Key]) -> dict[int, int]:
    """The node of each step; indistinguishable steps are shared."""
    numbers: dict[int, int] = {}
    for index in reversed(range(len(decided.steps))):  # steps lead onwards, so what they lead to is already there
        graph.clock.check()
        step = decided.steps[index]
        if isinstance(step, Ask):
            numbers[index] = _ask(graph, step.condition, True, numbers[step.then], numbers[step.otherwise])
        else:
            numbers[index] = outcome_node(graph, step, key(step))
    return numbers


def outcome_node(graph: Graph, outcome: Outcome, key: Key) -> int:
    """The node of an outcome."""
    number = graph.number.setdefault(("outcome", key), len(graph.nodes))
    if number == len(graph.nodes):
        graph.nodes.append(key)
        graph.outcomes[number] = outcome
    return number


def _ask(graph: Graph, condition: Condition, positive: bool, then: int, otherwise: int) -> int:
    """The node that tests a condition (or, if not `positive`, its opposite)."""
    if then == otherwise:
        return then
    if is_or(condition, positive):  # a or b, with A and B, is: not a and not b, with B and A
        return _ask(graph, condition, not positive, otherwise, then)
    atoms, others = take_apart(graph.cells, condition, positive)
    if atoms is None:
        return otherwise
    for part, sign in reversed(others):
        then = _ask(graph, part, sign, then, otherwise)
    return step_node(graph, atoms, then, otherwise)


def is_or(condition: Condition, positive: bool) -> bool:
    """Whether a condition (or its opposite) is an `or`, not an `and` or a single test."""
    match condition:
        case Not(part):
            return is_or(part, not positive)
        case And(parts):
            return not positive and len(parts) != 1
        case Or(parts):
            return positive and len(parts) != 1
        case _:
            return False


def take_apart(cells: Cells, condition: Condition, positive: bool) -> tuple[Atoms | None, list[tuple[Condition, bool]]]:
    """The parts of a condition other than `or`: tests as one conjunction (None: never holds), and its inner `or`s."""
    masks: dict[int, int] = {}
    others: list[tuple[Condition, bool]] = []
    waiting = [(condition, positive)]
    while waiting:
        part, sign = waiting.pop()
        match part:
            case Not(inner):
                waiting.append((inner, not sign))
            case And(parts) | Or(parts):
                if is_or(part, sign):
                    others.append((part, sign))
                else:
                    waiting += ((inner, sign) for inner in parts)
            case Test(feature):
                everything = cells.everything(feature)
                mask = mask_of(cells, part) if sign else everything ^ mask_of(cells, part)
                masks[feature] = masks.get(feature, everything) & mask
    if not all(masks.values()):
        return None, []
    return tuple(sorted((f, mask) for f, mask in masks.items() if mask != cells.everything(f))), others


def step_node(graph: Graph, atoms: Atoms, then: int, otherwise: int) -> int:
    """The node that tests some atoms, in the one form that all spellings share."""
    if then == otherwise or not atoms:
        return then
    merged = _merge(graph, atoms, then, otherwise)
    if merged is not None:
        return merged
    if len(atoms) == 1:  # one test can be written either way round: the missing value goes to `otherwise`
        feature, mask = atoms[0]
        flipped = ((feature, graph.cells.everything(feature) ^ mask),)
        merged = _merge(graph, flipped, otherwise, then)
        if merged is not None:
            return merged
        if mask & graph.cells.missing(feature):
            return _number_of(graph, Step(flipped, otherwise, then))
    return _number_of(graph, Step(atoms, then, otherwise))


def _merge(graph: Graph, atoms: Atoms, then: int, otherwise: int) -> int | None:
    inner = graph.nodes[then]
    if not isinstance(inner, Step):
        return None
    if inner.otherwise == otherwise:
        more, end = inner.atoms, inner.then
    elif inner.then == otherwise and len(inner.atoms) == 1:
        feature, mask = inner.atoms[0]
        more, end = ((feature, graph.cells.everything(feature) ^ mask),), inner.otherwise
    else:
        return None
    together = join(atoms, more)
    return otherwise if together is None else step_node(graph, together, end, otherwise)


def _number_of(graph: Graph, step: Step) -> int:
    number = graph.number.setdefault(step, len(graph.nodes))
    if number == len(graph.nodes):
        graph.nodes.append(step)
    return number


def end_node(graph: Graph, node: int, box: Mapping[int, int]) -> int:
    """The outcome node that a row of a box of single cells ends in, from `node` on."""
    nodes = graph.nodes
    while isinstance(step := nodes[node], Step):
        for feature, mask in step.atoms:  # a plain loop: this is the innermost one of every search
            if not box.get(feature, 1) & mask:
                node = step.otherwise
                break
        else:
            node = step.then
    return node


@dataclass(frozen=True, slots=True)
class Way:
    """The rows of a box that fail each of some conjunctions."""

    box: Mapping[int, int]
    failed: Sequence[Atoms]


def atoms_of(cells: Cells, program: Program, clause: Clause, book: Codebook) -> Atoms:
    """A clause as atoms over cells that its bounds cut, texts by their codes."""
    tests = (test_of(program, atom, book) for atom in clause.atoms)
    return tuple(sorted((test.feature, mask_of(cells, test)) for test in tests))


def way_to(cells: Cells, tree: Tree, atoms: Sequence[Atoms], steps: Sequence[tuple[int, bool]]) -> Way | None:
    """The way that takes these steps from the root; None where the boxes alone forbid it. `atoms` are the clauses."""
    box: dict[int, int] = {}
    failed: list[Atoms] = []
    for index, held in steps:
        node = tree.nodes[index]
        assert isinstance(node, Split)  # noqa: S101 - a step starts at a split
        if not held:
            failed.append(atoms[node.clause])
        elif not narrow_box(cells, box, atoms[node.clause]):
            return None
    return Way(box, failed)


def holding(cells: Cells, way: Way, atoms: Atoms) -> Way | None:
    """The same way with a conjunction held; None where the boxes alone forbid it."""
    box = dict(way.box)
    return Way(box, way.failed) if narrow_box(cells, box, atoms) else None


def failing(way: Way, atoms: Atoms) -> Way:
    """The same way with a conjunction failed."""
    return Way(way.box, (*way.failed, atoms))


def narrow_box(cells: Cells, box: dict[int, int], atoms: Atoms) -> bool:
    """Narrow a box to where the atoms hold; False where nothing is left."""
    for feature, mask in atoms:
        box[feature] = box.get(feature, cells.everything(feature)) & mask
        if not box[feature]:
            return False
    return True


FIRST_TRIES = 100
"""Steps for the quick guess that features nothing binds are missing, before the whole search."""


def solve(cells: Cells, box: Box, failing: Sequence[Atoms], clock: Budget) -> dict[int, int] | None:
    """A box within `box` in which all of `failing` fail everywhere, or None: no row of `box` does that.

    Mined rules fail on a missing value, so the first guess is that whatever may be missing is.
    """
    guess = dict(box)
    guessed = set()
    for atoms in failing:
        for feature, mask in atoms:
            if feature not in guessed and not mask & (missing := cells.missing(feature)):
                guessed.add(feature)
                if guess.get(feature, missing) & missing:
                    guess[feature] = missing
    box_found = _search(cells, guess, failing, clock, FIRST_TRIES)
    return _search(cells, box, failing, clock, None) if box_found is None else box_found


def _search(
    cells: Cells, box: Box, failing: Iterable[Atoms], clock: Budget, tries: int | None
) -> dict[int, int] | None:
    """Such a box; None where there is none, or where none was found within the tries."""
    stack: list[tuple[dict[int, int], list[Atoms]]] = [(dict(box), list(failing))]
    while stack:
        clock.check()
        if tries is not None:
            tries -= 1
            if tries < 0:
                return None
        narrowed, waiting = stack.pop()
        waiting_still = _settle(cells, narrowed, waiting)
        if waiting_still is None:
            continue
        if not waiting_still:
            return narrowed
        feature, out, inside = _way_out(cells, narrowed, waiting_still)
        stack.append(({**narrowed, feature: inside}, waiting_still))
        stack.append(({**narrowed, feature: out}, waiting_still))
    return None


def _settle(cells: Cells, box: dict[int, int], failing: list[Atoms]) -> list[Atoms] | None:
    """The conjunctions still to fail after narrowing `box` by those with one way out; None: one has no way out."""
    while True:
        waiting: list[Atoms] = []
        changed = False
        for atoms in failing:
            ways = 0
            for feature, mask in atoms:
                have = box.get(feature)
                if have is None:
                    have = cells.everything(feature)
                if not have & mask:
                    break
                if have & ~mask:
                    ways += 1
                    way, out = feature, have & ~mask
            else:
                if ways == 0:
                    return None
                if ways == 1:
                    box[way] = out
                    changed = True
                else:
                    waiting.append(atoms)
        if not changed:
            return waiting
        failing = waiting


def _way_out(cells: Cells, box: Box, waiting: list[Atoms]) -> tuple[int, int, int]:
    """Where to branch: a feature, the cells in which the conjunction with fewest ways fails there, and the others."""
    best: list[tuple[int, int, int]] = []
    for atoms in waiting:
        ways = []
        for feature, mask in atoms:
            have = box.get(feature)
            if have is None:
                have = cells.everything(feature)
            if have & ~mask:
                ways.append((feature, have & ~mask, have & mask))
        if not best or len(ways) < len(best):
            best = ways
            if len(best) == 2:
                break
    return max(best, key=lambda way: way[1].bit_count())  # the widest way out is the likeliest
