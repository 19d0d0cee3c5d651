"""Where two programs differ, in words to the last bit: the box around a counterexample, as wide as can be shown.

A box is widened one feature at a time, and kept only while every row in it is known to get the one class from one side
and the other class from the other. So the rule may be narrower than the truth, and never wider.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from gbfl_compile.auditing.verdict import Region
from gbfl_compile.checking.prove.boxes import Masks, winners
from gbfl_compile.checking.prove.cells import Atoms, Box, Cells, cell_at, cells_of, value_in
from gbfl_compile.checking.prove.findings import Counterexample
from gbfl_compile.checking.reading.from_program import as_reading
from gbfl_compile.checking.reading.nodes import Reading
from gbfl_compile.ir.intervals import above, below
from gbfl_compile.ir.nodes import Program
from gbfl_compile.ir.text import printable


def region_of(program: Program, reading: Reading, shown: Counterexample) -> Region:
    """The widest box found around a row on which the labels differ."""
    source = as_reading(program)
    cells = cells_of((source, reading), reading.dtype)
    masks = Masks(cells)
    box = {f: cell_at(cells, f, value) for f, value in enumerate(shown.row)}
    approved, deployed = shown.source.label, shown.target.label
    if approved != deployed:
        want = program.classes.index(approved), reading.classes.index(deployed)
        for feature in sorted(box, key=lambda f: len(cells.starts[f])):
            box = _widen(masks, source, reading, box, feature, want)
    asked_cells = tuple((f, mask) for f, mask in sorted(box.items()) if mask != cells.everything(f))
    row = [simple_value(cells, f, dict(asked_cells), value) for f, value in enumerate(shown.row)]
    if approved == deployed:  # only something beside the label differs, and only this row is known to show it
        row = list(shown.row)
    values = {name: None if math.isnan(value) else value for name, value in zip(program.features, row, strict=True)}
    beside = _beside(shown) if approved == deployed else None
    return Region(atoms_text(cells, asked_cells, program.features), values, approved, deployed, beside)


def _beside(shown: Counterexample) -> tuple[str, list[float] | int, list[float] | int] | None:
    """What differs beside the label, the plainest first."""
    source, target = shown.source, shown.target
    if target.scores is not None and source.scores is not None and source.scores != target.scores:
        return "scores", list(source.scores), list(target.scores)
    if target.leaf is not None and source.leaf is not None and source.leaf != target.leaf:
        return "leaves", source.leaf, target.leaf
    if target.probabilities is not None and source.probabilities != target.probabilities:
        return "probabilities", list(source.probabilities), list(target.probabilities)
    return None


def simple_value(cells: Cells, feature: int, box: Box, value: float) -> float:
    """The value, or the shortest number in the same cells of the box: rows that people can look at."""
    allowed = box.get(feature, cells.everything(feature))
    ordinary = value_in(cells, feature, allowed)
    if math.isnan(ordinary):
        return value
    for digits in range(17):
        rounded = round(ordinary, digits) + 0.0
        if cell_at(cells, feature, rounded) & allowed and (cells.dtype == "float64" or digits == 0):
            return rounded
    return ordinary


def _widen(
    masks: Masks, source: Reading, reading: Reading, box: Box, feature: int, want: tuple[int, int]
) -> dict[int, int]:
    """The box with more cells of one feature: all of them, or neighbour by neighbour."""

    def holds(mask: int) -> bool:
        tried = {**box, feature: mask}
        return winners(masks, source, tried) == {want[0]} and winners(masks, reading, tried) == {want[1]}

    cells, mask = masks.cells, box[feature]
    if holds(cells.everything(feature)):
        return {**box, feature: cells.everything(feature)}
    if mask != cells.missing(feature):
        for more in _neighbours(cells, feature, mask):
            if not holds(mask | more):
                break
            mask |= more
        for more in _neighbours(cells, feature, mask, down=True):
            if not holds(mask | more):
                break
            mask |= more
    return {**box, feature: mask}


def _neighbours(cells: Cells, feature: int, mask: int, down: bool = False) -> Iterator[int]:
    """The cells above (or below) those of a mask, one after another; the missing one is no neighbour."""
    if down:
        cell = (mask & -mask).bit_length() - 2
        while cell >= 0:
            yield 1 << cell
            cell -= 1
        return
    cell = mask.bit_length()
    while cell <= len(cells.starts[feature]):
        yield 1 << cell
        cell += 1


def exact_text(number: float) -> str:
    """All the digits a number needs; whole numbers without the point.

    >>> exact_text(50000.0), exact_text(0.1)
    ('50000', '0.1')
    """
    return f"{number:.0f}" if abs(number) < 1e15 and number == int(number) else repr(number)


def lower_text(least: float) -> tuple[str, str]:
    """The sign and the number of a lower bound: `> 1` is shorter than `>= 1.0000000000000002`."""
    closed, opened = exact_text(least), exact_text(below(least))
    return (">", opened) if len(opened) < len(closed) else (">=", closed)


def upper_text(first_past: float) -> tuple[str, str]:
    """The sign and the number of an upper bound, from the first number past it."""
    opened, closed = exact_text(first_past), exact_text(below(first_past))
    return ("<=", closed) if len(closed) < len(opened) else ("<", opened)


def mask_text(cells: Cells, feature: int, mask: int, name: str) -> str:
    """What a feature is asked: `50000 <= income < 80000 OR income is missing`."""
    name = printable(name)
    starts = cells.starts[feature]
    missing = bool(mask & cells.missing(feature))
    numbers = mask & ~cells.missing(feature)
    every = cells.everything(feature) & ~cells.missing(feature)
    if numbers == every:
        return "always" if missing else f"{name} is present"
    parts = []
    cell = 0
    while cell <= len(starts):
        if not numbers >> cell & 1:
            cell += 1
            continue
        end = cell
        while end < len(starts) and numbers >> (end + 1) & 1:
            end += 1
        parts.append(_run_text(name, starts, cell, end))
        cell = end + 1
    if missing:
        parts.append(f"{name} is missing")
    if not parts:
        return "never"
    return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"


def _run_text(name: str, starts: tuple[float, ...], first: int, last: int) -> str:
    least = starts[first - 1] if first else None
    past = starts[last] if last < len(starts) else None
    if least is not None and past is not None and past == above(least):
        return f"{name} = {exact_text(least)}"
    if past is None and least is not None:
        return f"{name} {' '.join(lower_text(least))}"
    if least is None and past is not None:
        return f"{name} {' '.join(upper_text(past))}"
    if least is None or past is None:
        return f"{name} is present"
    sign, number = lower_text(least)
    return f"{number} {sign.replace('>', '<')} {name} {' '.join(upper_text(past))}"


def atoms_text(cells: Cells, atoms: Atoms, features: tuple[str, ...]) -> str:
    """A conjunction: its parts joined by AND."""
    parts = [mask_text(cells, f, mask, features[f]) for f, mask in atoms if mask != cells.everything(f)]
    return " AND ".join(parts) or "always"
