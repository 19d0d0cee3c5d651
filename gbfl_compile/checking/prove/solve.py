"""Finds rows that lie in a box of cells and fail each of some conjunctions, or shows that there are none.

A conjunction fails where one of its atoms does. The search narrows a box: a conjunction with one atom left to fail at
narrows it at once; otherwise the one with the fewest ways out is tried one way, then with that way closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gbfl_compile.checking.prove.cells import Atoms, Box, Cells, mask_of
from gbfl_compile.checking.prove.findings import Budget
from gbfl_compile.checking.reading.from_program import test_of
from gbfl_compile.ir.kinds import Codebook
from gbfl_compile.ir.nodes import Clause, Program, Split, Tree


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
