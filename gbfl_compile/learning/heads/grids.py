"""The search for conjunctions as the heads use it, on numbers alone or on tables with words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias, assert_never, cast

import numpy as np

from gbfl_compile.ir.nodes import Clause
from gbfl_compile.learning.black_box import Bools, Ints, Matrix
from gbfl_compile.learning.heads.box_search import (
    Box,
    CutGrid,
    Gain,
    SearchSettings,
    box_holds,
    clause_of,
    newton_gain,
    promising_boxes,
)
from gbfl_compile.learning.heads.word_search import (
    WordBox,
    WordGrid,
    promising_word_boxes,
    word_box_holds,
    word_clause_of,
)

Grid: TypeAlias = CutGrid | WordGrid
Conjunction: TypeAlias = Box | WordBox
"""A conjunction on a grid; it means nothing on another."""


def promising(
    grid: Grid, pull: Matrix, bend: Matrix, settings: SearchSettings, gain: Gain = newton_gain
) -> dict[Conjunction, float]:
    """Conjunctions with the greatest gains, best first, and those gains."""
    match grid:
        case CutGrid():
            return cast("dict[Conjunction, float]", promising_boxes(grid, pull, bend, settings, gain))
        case WordGrid():
            return cast("dict[Conjunction, float]", promising_word_boxes(grid, pull, bend, settings, gain))
        case _:
            assert_never(grid)


def holds_on(grid: Grid, box: Conjunction) -> Bools:
    """On which points the conjunction holds."""
    match grid:
        case CutGrid():
            return box_holds(grid, cast(Box, box))
        case WordGrid():
            return word_box_holds(grid, cast(WordBox, box))
        case _:
            assert_never(grid)


def clause_from(grid: Grid, box: Conjunction) -> Clause:
    """The conjunction in the rule language."""
    match grid:
        case CutGrid():
            return clause_of(grid, cast(Box, box))
        case WordGrid():
            return word_clause_of(grid, cast(WordBox, box))
        case _:
            assert_never(grid)


def sum_of_pull(pull: Matrix, bend: Matrix, total_bend: float, ridge: float) -> Matrix:
    """The gain where each point counts for or against a conjunction, and nothing resists."""
    return pull


def part_of(grid: Grid, at: Ints | Bools) -> Grid:
    """The grid with some of its points."""
    match grid:
        case CutGrid():
            return grid.part(at)
        case WordGrid():
            return replace(grid, codes=grid.codes[:, at], own=grid.own[at])
        case _:
            assert_never(grid)


def count_bounds(grid: Grid, box: Conjunction) -> int:
    """The conditions a reader sees: each bound of an interval, and each set of words."""
    return sum(max(1, lower + upper) for _, lower, upper in _sides(grid, box))


def without_a_bound(grid: Grid, box: Conjunction) -> Iterator[Conjunction]:
    """The conjunctions with one condition less; the empty one is not among them."""
    for place, (_, lower, upper) in enumerate(_sides(grid, box)):
        if lower and upper:
            for without_upper in (False, True):
                yield cast(Conjunction, (*box[:place], _open(grid, box, place, without_upper), *box[place + 1 :]))
        elif len(box) > 1:
            yield cast(Conjunction, (*box[:place], *box[place + 1 :]))


def _sides(grid: Grid, box: Conjunction) -> Iterator[tuple[int, bool, bool]]:
    """For each atom its feature, and whether it is an interval with a lower and an upper bound."""
    match grid:
        case CutGrid():
            for feature, first, beyond in cast(Box, box):
                yield feature, first > 0, beyond < grid.n_bins
        case WordGrid():
            for feature, mask in cast(WordBox, box):
                is_interval = grid.cuts[feature] is not None
                yield feature, is_interval and not mask[0], is_interval and not mask[-2]
        case _:
            assert_never(grid)


def _open(grid: Grid, box: Conjunction, place: int, without_upper: bool) -> tuple[int, int, int] | tuple[int, bytes]:
    """One atom, an interval, without its upper or its lower bound."""
    match grid:
        case CutGrid():
            feature, first, beyond = cast(Box, box)[place]
            return (feature, first, grid.n_bins) if without_upper else (feature, 0, beyond)
        case WordGrid():
            feature, mask = cast(WordBox, box)[place]
            inside = np.frombuffer(mask[:-1], dtype=np.uint8)
            wider = np.maximum.accumulate(inside if without_upper else inside[::-1])
            return feature, (wider if without_upper else wider[::-1]).tobytes() + mask[-1:]
        case _:
            assert_never(grid)
