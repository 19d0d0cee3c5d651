"""Where two programs differ, exactly and in words: the box around a counterexample, as wide as can be proved.

A box is widened one feature at a time, and kept only while every row in it is known to get the one class from one side
and the other class from the other. So the rule may be narrower than the truth, and never wider.
"""

from __future__ import annotations

import math
import random
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gbfl_compile.auditing.verdict import Change, Region
from gbfl_compile.checking.prove.cells import Atoms, Box, Cells, Masks, cell_at, cells_of, value_in, winners
from gbfl_compile.checking.prove.findings import Counterexample
from gbfl_compile.checking.reading.evaluate import run_reading
from gbfl_compile.checking.reading.from_program import as_reading, in_book
from gbfl_compile.checking.reading.nodes import Reading
from gbfl_compile.checking.witnesses import find_witnesses
from gbfl_compile.ir.batch import Matrix, recode_rows
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.intervals import Texts, above, below
from gbfl_compile.ir.kinds import ANY_OTHER, Codebook, Value, codebook, decode_rows, encode_row
from gbfl_compile.ir.nodes import Kind, OneOf, Program
from gbfl_compile.ir.text import atom_text, bound_text, printable, value_text


@dataclass(frozen=True, slots=True)
class Frame:
    """A program and a reading over the same cells, texts by the codes of one book: what masks of cells mean."""

    program: Program
    book: Codebook
    source: Reading
    reading: Reading
    cells: Cells

    def values(self, row: Sequence[float]) -> list[Value]:
        """A row as Python values."""
        return decode_rows(self.program, [row], self.book)[0]

    def texts(self, feature: int, mask: int) -> Texts:
        """The texts of a category in some cells."""
        listed = self.book.texts[feature]
        inside = {text for code, text in enumerate(listed, 1) if cell_at(self.cells, feature, float(code)) & mask}
        negated = bool(cell_at(self.cells, feature, ANY_OTHER) & mask)
        missing = bool(mask & self.cells.missing(feature))
        return Texts(frozenset(set(listed) - inside if negated else inside), negated, missing)


def frame_of(program: Program, reading: Reading, book: Codebook | None = None) -> Frame:
    """Both sides over the cells that either of them cuts; `book` lists texts that have their codes already."""
    texts = codebook(program) if book is None else book
    if program.kinds:
        texts = texts.with_texts(reading.book)
        reading = in_book(reading, program, texts)
    source = as_reading(program, texts)
    return Frame(program, texts, source, reading, cells_of((source, reading), reading.dtype))


def both_answers(frame: Frame, row: Sequence[float]) -> Counterexample:
    """What both sides answer on a row of the frame."""
    values = frame.values(row)
    native = tuple(values) if frame.program.kinds else None
    return Counterexample(tuple(row), evaluate(frame.program, values), run_reading(frame.reading, row), native)


RANDOM_ROWS = 1500


def rows_around(frame: Frame, row: Sequence[float]) -> Matrix:
    """Rows at every bound of either side: around one row, and anywhere."""
    program = frame.program
    pools = [_pool(frame, feature) for feature in range(len(program.features))]
    choose = random.Random(0)  # noqa: S311 - no secret
    rows = [list(row)]
    for feature, pool in enumerate(pools):
        rows += [[*row[:feature], value, *row[feature + 1 :]] for value in pool]
    rows += [[choose.choice(pool) for pool in pools] for _ in range(RANDOM_ROWS)]
    known = find_witnesses(program)
    others = recode_rows(program.kinds, known.rows, known.book.texts, frame.book) if program.kinds else known.rows
    return np.concatenate([np.array(rows, dtype=np.float64), others])


def _pool(frame: Frame, feature: int) -> list[float]:
    """The values of a feature next to each bound of either side, or every text and one more; and the missing value."""
    kind, starts = frame.program.kind(feature), frame.cells.starts[feature]
    if kind in ("category", "boolean"):
        return [*map(float, range(len(frame.book.texts[feature]) + 1)), math.nan]
    if not starts:
        return [0.0]
    step = below if kind == "number" else lambda start: start - 1.0
    return [*(value for start in starts for value in (step(start), start)), math.nan]


def row_in(frame: Frame, shown: Counterexample) -> list[float]:
    """A counterexample's row in the codes of the frame."""
    return list(shown.row) if shown.values is None else encode_row(frame.program, shown.values, frame.book)


def region_of(frame: Frame, shown: Counterexample) -> Region:
    """The widest box found around a row on which the labels differ."""
    program, cells = frame.program, frame.cells
    masks = Masks(cells)
    shown_row = row_in(frame, shown)
    box = {f: cell_at(cells, f, value) for f, value in enumerate(shown_row)}
    approved, deployed = shown.source.label, shown.target.label
    if approved != deployed:
        want = program.classes.index(approved), frame.reading.classes.index(deployed)
        for feature in sorted(box, key=lambda f: len(cells.starts[f])):
            box = _widen(masks, frame, box, feature, want)
    asked_cells = tuple((f, mask) for f, mask in sorted(box.items()) if mask != cells.everything(f))
    row = [simple_value(frame, f, dict(asked_cells), value) for f, value in enumerate(shown_row)]
    if approved == deployed:  # only something beside the label differs, and only this row is known to show it
        row = shown_row
    named = zip(program.features, frame.values(row), strict=True)
    nan = {program.features[feature] for feature in frame.reading.nan_features or ()}
    values = {n: None if isinstance(v, float) and math.isnan(v) and n not in nan else v for n, v in named}
    beside = _beside(shown) if approved == deployed else None
    return Region(atoms_text(frame, asked_cells), values, approved, deployed, beside)


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


BELOW, COUNTS = 0.8, 10.0


def simple_value(frame: Frame, feature: int, box: Box, value: float) -> float:
    """The value, or the shortest number in the same cells of the box: rows that people can look at."""
    cells, kind = frame.cells, frame.program.kind(feature)
    allowed = box.get(feature, cells.everything(feature))
    if kind != "number":
        return value if math.isnan(value) else _plain_value(frame, feature, allowed, value)
    ordinary = value_in(cells, feature, allowed)
    if math.isnan(ordinary):
        return value
    starts = cells.starts[feature]
    if starts and allowed & ~cells.missing(feature) == 1 and 0.0 < starts[0] < math.inf:
        ordinary = starts[0] * BELOW  # an income or an age below a bound is seldom negative
        if starts[0] == round(starts[0]) <= COUNTS:
            ordinary = starts[0] - 1.0  # and less than 1 late payment is 0
    for digits in range(17):
        rounded = round(ordinary, digits) + 0.0
        if rounded == 0.0 != ordinary:
            continue
        if cell_at(cells, feature, rounded) & allowed and (cells.dtype == "float64" or digits == 0):
            return rounded
    return ordinary


def _plain_value(frame: Frame, feature: int, allowed: int, value: float) -> float:
    """A listed text rather than any other, and a day or microsecond next to a bound."""
    cells, kind = frame.cells, frame.program.kind(feature)
    if kind in ("category", "boolean"):
        codes = (float(code) for code in range(1, len(frame.book.texts[feature]) + 1))
        return next((code for code in codes if cell_at(cells, feature, code) & allowed), value)
    starts = cells.starts[feature]
    near = [day for start in starts for day in (start, start - 1.0) if cell_at(cells, feature, day) & allowed]
    return next(iter(near), value)


def _widen(masks: Masks, frame: Frame, box: Box, feature: int, want: tuple[int, int]) -> dict[int, int]:
    """The box with more cells of one feature: all of them, neighbour by neighbour, or text by text."""

    def holds(mask: int) -> bool:
        tried = {**box, feature: mask}
        return winners(masks, frame.source, tried) == {want[0]} and winners(masks, frame.reading, tried) == {want[1]}

    cells, mask = masks.cells, box[feature]
    if holds(cells.everything(feature)):
        return {**box, feature: cells.everything(feature)}
    if frame.program.kind(feature) in ("category", "boolean"):
        if mask != cells.missing(feature):
            for more in _text_cells(frame, feature):
                mask |= more if holds(mask | more) else 0
        return {**box, feature: mask | _with_others(frame, feature, mask)}
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


def _text_cells(frame: Frame, feature: int) -> Iterator[int]:
    """The cells of any other text, which are two, and those of each listed one."""
    cells, count = frame.cells, len(frame.book.texts[feature])
    yield cell_at(cells, feature, ANY_OTHER) | cell_at(cells, feature, count + 1.0)
    for code in range(1, count + 1):
        yield cell_at(cells, feature, float(code))


def _with_others(frame: Frame, feature: int, mask: int) -> int:
    """Both cells of any other text, where one of them is in the mask: no condition tells them apart."""
    others = next(_text_cells(frame, feature))
    return others if mask & others else 0


def _neighbours(cells: Cells, feature: int, mask: int, down: bool = False) -> Iterator[int]:
    """The cells above (or below) those of a mask, one after another; the missing one is not a neighbour."""
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


def lower_text(least: float, kind: Kind = "number") -> tuple[str, str]:
    """The sign and the number of a lower bound: `> 1` is shorter than `>= 1.0000000000000002`."""
    if kind != "number":
        return ">=", bound_text(least, kind)
    closed, opened = exact_text(least), exact_text(below(least))
    return (">", opened) if len(opened) < len(closed) else (">=", closed)


def upper_text(first_past: float, kind: Kind = "number") -> tuple[str, str]:
    """The sign and the number of an upper bound, from the first number past it."""
    if kind != "number":
        return "<", bound_text(first_past, kind)
    opened, closed = exact_text(first_past), exact_text(below(first_past))
    return ("<=", closed) if len(closed) < len(opened) else ("<", opened)


def mask_text(frame: Frame, feature: int, mask: int) -> str:
    """The test of a feature: `50000 <= income < 80000 OR income is missing`."""
    program, cells = frame.program, frame.cells
    name, kind = printable(program.features[feature]), program.kind(feature)
    if kind in ("category", "boolean"):
        texts = frame.texts(feature, mask)
        atom = OneOf(feature, tuple(sorted(texts.listed)), texts.negated, texts.missing)
        return atom_text(atom, program.features, program.kinds)
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
        parts.append(_run_text(name, kind, starts, cell, end))
        cell = end + 1
    if missing:
        nan = frame.reading.nan_features
        parts.append(f"{name} is {'missing' if nan is None else 'NaN' if feature in nan else 'NULL'}")
    if not parts:
        return "never"
    return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"


def _run_text(name: str, kind: Kind, starts: tuple[float, ...], first: int, last: int) -> str:
    least = starts[first - 1] if first else None
    past = starts[last] if last < len(starts) else None
    if least is not None and past is not None and past == (above(least) if kind == "number" else least + 1.0):
        return f"{name} = {exact_text(least) if kind == 'number' else bound_text(least, kind)}"
    if past is None and least is not None:
        return f"{name} {' '.join(lower_text(least, kind))}"
    if least is None and past is not None:
        return f"{name} {' '.join(upper_text(past, kind))}"
    if least is None or past is None:
        return f"{name} is present"
    sign, number = lower_text(least, kind)
    return f"{number} {sign.replace('>', '<')} {name} {' '.join(upper_text(past, kind))}"


def atoms_text(frame: Frame, atoms: Atoms) -> str:
    """A conjunction: its parts joined by AND."""
    parts = [mask_text(frame, f, mask) for f, mask in atoms if mask != frame.cells.everything(f)]
    return " AND ".join(parts) or "always"


def atom_change(frame: Frame, where: str, feature: int, masks: tuple[int, int], kind: str) -> Change:
    """A condition on one feature that is another one, with the slip that makes it so where there is a name for it."""
    before, after = (mask_text(frame, feature, mask) for mask in masks)
    return Change(where, before, after, kind, slip_text(frame, feature, *masks))


def slip_text(frame: Frame, feature: int, before: int, after: int) -> str | None:
    """What was done to a condition on words or dates: `"b" left out`, `"A" re-cased as "a"`, `1 day later`."""
    kind, cells = frame.program.kind(feature), frame.cells
    if kind == "number":
        return None
    parts: list[str] = []
    if kind in ("category", "boolean"):
        parts += _text_slips(frame.texts(feature, before), frame.texts(feature, after))
    else:
        parts += moment_slips(_edges(cells, feature, before), _edges(cells, feature, after), kind)
    missing = cells.missing(feature)
    if (before ^ after) & missing:
        parts.append("a missing value passes" if after & missing else "a missing value does not pass")
    return ", ".join(parts) or None


def _text_slips(before: Texts, after: Texts) -> Iterator[str]:
    if before.negated != after.negated:
        yield "the other texts pass" if after.negated else "no other text passes"
        if before.listed == after.listed:
            return
    gone, come = (sorted(a.listed - b.listed) for a, b in ((before, after), (after, before)))
    if before.negated != after.negated:
        return
    for text in gone:
        like = next(((other, how) for how, same in LIKENESSES for other in come if same(text) == same(other)), None)
        if like is None:
            yield f"{value_text(text)} left out"
            continue
        come.remove(like[0])
        yield f"{value_text(text)} {like[1]} {_in_quotes(like[0])}"
    for text in come:
        yield f"{value_text(text)} added"


def _in_quotes(text: str) -> str:
    shown = value_text(text)
    return shown if shown.startswith('"') else f'"{shown}"'


def _plain_letters(text: str) -> str:
    return "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))


LIKENESSES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("re-cased as", str.casefold),
    ("with other blanks around it:", str.strip),
    ("in another normal form:", lambda text: unicodedata.normalize("NFC", text)),
    ("with other letters, blanks or accents:", lambda text: _plain_letters(text).casefold().strip()),
)
"""How a text may be mistaken for another one, the plainest first."""


def _edges(cells: Cells, feature: int, mask: int) -> list[float]:
    """Where a condition on dates turns."""
    starts = cells.starts[feature]
    return [start for cell, start in enumerate(starts) if (mask >> cell ^ mask >> (cell + 1)) & 1]


def moment_slips(before: list[float], after: list[float], kind: Kind) -> Iterator[str]:
    """How far the bound that differs was moved."""
    moved = [(a, b) for a, b in zip(before, after, strict=False) if a != b]
    if len(before) != len(after) or len(moved) != 1:
        return
    by = moved[0][1] - moved[0][0]
    unit = "day" if kind == "date" else "microsecond"
    yield f"{abs(by):,.0f} {unit}{'' if abs(by) == 1 else 's'} {'later' if by > 0 else 'earlier'}"


def with_swaps(listed: Sequence[Change]) -> Iterator[Change]:
    """The changes, where two conditions on words or dates that became each other are called swapped."""
    for change in listed:
        other = next(
            (
                each
                for each in listed
                if (each.approved, each.deployed) == (change.deployed, change.approved) and each.where != change.where
            ),
            None,
        )
        is_swap = change.slip is not None and other is not None
        yield replace(change, slip=f"swapped with {other.where}") if is_swap and other is not None else change
