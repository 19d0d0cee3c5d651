"""Sets of values in words, to the last bit: what one feature is asked, as short as it can be said exactly."""

from __future__ import annotations

from gbfl_compile.checking.prove.cells import Atoms, Cells
from gbfl_compile.ir.intervals import above, below
from gbfl_compile.ir.text import printable


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
