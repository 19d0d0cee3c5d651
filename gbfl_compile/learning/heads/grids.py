"""The search for conjunctions as the heads use it, on numbers alone or on tables with words."""

from __future__ import annotations

from typing import TypeAlias, assert_never, cast

from gbfl_compile.ir.nodes import Clause
from gbfl_compile.learning.black_box.ask import Bools, Matrix
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
