"""Rows chosen so that a wrong program gives itself away on one of them.

For every atom asked anywhere, rows that get there with everything else decided: the value at each cut
and on both sides of it, infinite, zero and missing. Then each feature missing on its own, extremes of
every kind, and random mixtures of cuts. A random row almost never lies on a cut; each of these does.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np

from gbfl_compile.check.reach import Box, find_box, representative
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.nodes import Clause, Interval, Leaf, Program, Scorecard, Split, Tree
from gbfl_compile.ir.regions import Values, above, below
from gbfl_compile.ir.trees import paths

EXTREMES = (0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308, math.inf, -math.inf, math.nan)
MIXTURES = 500
SUBSETS = 50
MISSING = Values(math.inf, -math.inf, True)


@dataclass(frozen=True, slots=True)
class Setting:
    """A place where a clause is asked: what must hold and fail for a row to get there and beyond."""

    clause: Clause
    held: tuple[Clause, ...]
    failed: tuple[Clause, ...]


def witnesses(program: Program, seed: int = 0) -> Matrix:
    """The rows to run, one a line, columns as in `program.features`; the same rows every time."""
    choose = random.Random(seed)  # noqa: S311 - nothing secret
    pools = value_pools(program)
    rows = [_row(box, pools, choose) for box in (*_boxes(program), *_mixed_boxes(program, choose))]
    rows += _signed_zeros(rows)
    rows += _edge_rows(pools)
    rows += [[choose.choice(pool) for pool in pools] for _ in range(MIXTURES)]
    unique = {np.array(row).tobytes(): row for row in rows}
    return np.array(list(unique.values()), dtype=np.float64).reshape(-1, len(program.features))


def value_pools(program: Program) -> list[list[float]]:
    """For each feature the values worth trying: each cut and its neighbours, and the extremes."""
    pools: list[list[float]] = [list(EXTREMES) for _ in program.features]
    for clause in program.clauses:
        for atom in clause.atoms:
            for cut in (atom.lo, atom.hi):
                if cut is not None:
                    pools[atom.feature] += (below(cut), cut, above(cut))
    return pools


def _boxes(program: Program) -> Iterator[Box]:
    """Boxes that pin one feature of one atom at one value, wherever the atom is asked."""
    for setting in _settings(program):
        if (box := find_box((*setting.held, setting.clause), setting.failed, {})) is not None:
            yield box
        if (box := find_box(setting.held, (*setting.failed, setting.clause), {})) is not None:
            yield box
        for atom in setting.clause.atoms:
            yield from _pinned_boxes(setting, atom)


def _pinned_boxes(setting: Setting, atom: Interval) -> Iterator[Box]:
    """Boxes that get to the clause with everything but `atom` decided, and its feature pinned at each value.

    One search finds a way there; with the feature pinned that way nearly always still holds, and is tried first.
    """
    rest = Clause(tuple(other for other in setting.clause.atoms if other is not atom))
    held = (*setting.held, rest)
    way = find_box(held, setting.failed, {})
    if way is None:
        return
    for pin in _pins(atom):
        near = {**way, atom.feature: pin}
        box = find_box(held, setting.failed, near) or find_box(held, setting.failed, {atom.feature: pin})
        if box is not None:
            yield box


def _mixed_boxes(program: Program, choose: random.Random) -> Iterator[Box]:
    """For a rule set: all clauses held, none, and some, so that scores come close and sometimes tie."""
    if not isinstance(program.decision, Scorecard) or not program.clauses:
        return
    clauses = program.clauses
    subsets = [clauses, ()]
    subsets += [tuple(choose.sample(clauses, choose.randrange(len(clauses) + 1))) for _ in range(SUBSETS)]
    for held in subsets:
        box: Box | None = find_box(held, [clause for clause in clauses if clause not in held], {})
        if box is None:
            box = _as_many_as_fit(held)
        yield box


def _as_many_as_fit(clauses: Sequence[Clause]) -> Box:
    """A box in which as many of the clauses hold as fit together, the earlier ones first."""
    box: Box = {}
    for clause in clauses:
        box = find_box((clause,), (), box) or box
    return box


def _pins(atom: Interval) -> Iterator[Values]:
    for cut in (atom.lo, atom.hi):
        if cut is not None:
            for value in (below(cut), cut, above(cut)):
                yield Values(value, value, missing=False)
    for value in (0.0, math.inf, -math.inf):
        yield Values(value, value, missing=False)
    yield MISSING


def _settings(program: Program) -> Iterator[Setting]:
    match program.decision:
        case Tree():
            yield from _tree_settings(program, program.decision)
        case Scorecard():
            for clause in program.clauses:
                yield Setting(clause, (), ())
        case _:
            assert_never(program.decision)


def _tree_settings(program: Program, tree: Tree) -> Iterator[Setting]:
    """Each split, once on its own and once for each of some leaves below it.

    On the way to a leaf below, the two sides of a cut end in different leaves, so that a slip shows
    in the answer. A rule list has so many leaves below each split that a few must do.
    """
    steps = paths(tree)
    leaves = [index for index, node in enumerate(tree.nodes) if isinstance(node, Leaf)]
    most = max(1, min(8, 400 // len(tree.nodes)))
    for index, node in enumerate(tree.nodes):
        if not isinstance(node, Split):
            continue
        clause = program.clauses[node.clause]
        held, failed = _asked(program, tree, steps[index])
        yield Setting(clause, held, failed)
        for side, end in ((node.then, node.otherwise), (node.otherwise, _end(tree, node.otherwise))):
            below_side = [leaf for leaf in leaves if side <= leaf < end]
            for leaf in below_side[:most]:
                beyond = tuple(step for step in steps[leaf] if step[0] > index)
                also_held, also_failed = _asked(program, tree, beyond)
                yield Setting(clause, held + also_held, failed + also_failed)


def _asked(
    program: Program, tree: Tree, steps: Sequence[tuple[int, bool]]
) -> tuple[tuple[Clause, ...], tuple[Clause, ...]]:
    held: list[Clause] = []
    failed: list[Clause] = []
    for index, holds in steps:
        node = tree.nodes[index]
        assert isinstance(node, Split)  # noqa: S101 - a step starts at a split
        (held if holds else failed).append(program.clauses[node.clause])
    return tuple(held), tuple(failed)


def _end(tree: Tree, index: int) -> int:
    """The index just past the subtree at `index`: in preorder a subtree is one run of nodes."""
    due = 1
    while due:
        due += 1 if isinstance(tree.nodes[index], Split) else -1
        index += 1
    return index


def _row(box: Box, pools: list[list[float]], choose: random.Random) -> list[float]:
    return [representative(box[f]) if f in box else choose.choice(pool) for f, pool in enumerate(pools)]


def _signed_zeros(rows: list[list[float]]) -> list[list[float]]:
    """Rows with a zero again with the other one: -0.0 equals 0.0 in every target or the target is wrong."""
    return [[-value if value == 0.0 else value for value in row] for row in rows if 0.0 in row]


def _edge_rows(pools: list[list[float]]) -> list[list[float]]:
    """All features at one extreme, and each feature alone at each extreme."""
    width = len(pools)
    rows = [[value] * width for value in EXTREMES]
    ordinary = [sorted(value for value in pool if math.isfinite(value))[len(pool) // 2 - 2] for pool in pools]
    for feature in range(width):
        rows += [[*ordinary[:feature], value, *ordinary[feature + 1 :]] for value in EXTREMES]
    return rows
