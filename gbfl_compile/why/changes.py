"""What would change a row's class: the nearest other value of one feature, or of two if one is not enough.

Exact: between two cuts of the program all values behave alike, so only the ends of each cell need to be tried. Where
two features are not enough, some row of another class is moved as near as possible: perhaps not the smallest change.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.ir.batch import Matrix, atom_column, evaluate_many
from gbfl_compile.ir.intervals import Allowed, Values
from gbfl_compile.ir.kinds import DAY, EARLIEST, LATEST, Value, codebook, encode_row
from gbfl_compile.ir.nodes import Label, Program, Scorecard
from gbfl_compile.why.boxes import (
    OutOfSteps,
    Steps,
    cells,
    class_of,
    is_whole,
    other_class,
    plain_row,
    prepare,
    row_in,
)

MOST_PAIRS = 500_000
"""Limit on the rows tried on a tree; a rule set's pairs are not evaluated row by row."""
ROWS_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class Change:
    """New values for some features, and the class the row would then get."""

    values: tuple[tuple[int, float], ...]
    """(feature, value), encoded as `ir.kinds` does: a category by its code, 0 for any text that no rule mentions."""
    label: Label
    distance: float
    """The sum over features in widths of the training range, 1 for another text; infinite from a missing value."""


def too_many(program: Program, options: Sequence[Matrix]) -> bool:
    """Whether a tree has more pairs of values than are tried."""
    counts = [len(one) for one in options]
    return not isinstance(program.decision, Scorecard) and sum(_products(counts)) > MOST_PAIRS


def _products(counts: Sequence[int]) -> Iterator[int]:
    return (a * b for a, b in itertools.combinations(counts, 2))


def nearest_pair(
    program: Program, row: Matrix, options: Sequence[Matrix], distances: Sequence[Matrix], label: int
) -> Change | None:
    """The nearest pair of new values, of two features, that changes the class; None where no pair does."""
    best: Change | None = None
    pairs = [(f, g) for f, g in itertools.combinations(range(len(options)), 2) if len(options[f]) and len(options[g])]
    card = isinstance(program.decision, Scorecard)
    grids = _by_points(program, row, options, pairs) if card else _by_rows(program, row, options, pairs)
    for (f, g), classes in grids:
        with np.errstate(over="ignore"):  # two distances near the largest double are infinitely far
            far = np.where(classes == label, np.inf, distances[f][:, None] + distances[g][None, :])
        flips = classes != label
        if not flips.any():
            continue
        v, w = np.unravel_index(int(np.argmin(far)) if np.isfinite(far).any() else int(np.argmax(flips)), far.shape)
        distance = float(distances[f][v]) + float(distances[g][w])
        if best is None or distance < best.distance:
            values = ((f, float(options[f][v])), (g, float(options[g][w])))
            best = Change(values, program.classes[int(classes[v, w])], distance)
    return best


Grid: TypeAlias = tuple[tuple[int, int], NDArray[np.intp]]
"""Two features, and the class at each pair of their options."""


def _by_points(
    program: Program, row: Matrix, options: Sequence[Matrix], pairs: Sequence[tuple[int, int]]
) -> Iterator[Grid]:
    card = program.decision
    assert isinstance(card, Scorecard)  # noqa: S101 - called for rule sets only
    clauses, classes, book = len(program.clauses), len(program.classes), codebook(program)
    points = np.array(card.points, dtype=np.float64).reshape(clauses, classes)
    holds = [np.ones((len(one), clauses), dtype=np.float64) for one in options]
    fails = np.zeros((len(options), clauses), dtype=np.bool_)
    for number, clause in enumerate(program.clauses):
        for atom in clause.atoms:
            holds[atom.feature][:, number] = atom_column(atom, options[atom.feature], book)
            fails[atom.feature, number] = not atom_column(atom, row[[atom.feature]], book)[0]
    failing = fails.sum(axis=0)
    for f, g in pairs:
        undecided = np.flatnonzero(failing == fails[f].astype(np.int64) + fails[g])
        left, right = holds[f][:, undecided], holds[g][:, undecided].T
        scores = np.stack([(left * points[undecided, c]) @ right + card.bias[c] for c in range(classes)])
        yield (f, g), scores.argmax(axis=0)


def _by_rows(
    program: Program, row: Matrix, options: Sequence[Matrix], pairs: Sequence[tuple[int, int]]
) -> Iterator[Grid]:
    """Row by row, for many pairs of features at once: evaluating each clause costs more than the rows do."""
    number = {label: index for index, label in enumerate(program.classes)}
    waiting: list[tuple[int, int]] = []
    rows = 0
    for place, (f, g) in enumerate(pairs):
        waiting.append((f, g))
        rows += len(options[f]) * len(options[g])
        if rows < ROWS_AT_ONCE and place + 1 < len(pairs):
            continue
        candidates = np.concatenate([_product(row, options, f, g) for f, g in waiting])
        labels = evaluate_many(program, candidates).labels
        classes = np.array([number[label] for label in labels], dtype=np.intp)
        start = 0
        for one, other in waiting:
            shape = (len(options[one]), len(options[other]))
            yield (one, other), classes[start : start + shape[0] * shape[1]].reshape(shape)
            start += shape[0] * shape[1]
        waiting, rows = [], 0


def _product(row: Matrix, options: Sequence[Matrix], f: int, g: int) -> Matrix:
    rows = np.tile(row, (len(options[f]) * len(options[g]), 1))
    rows[:, f] = np.repeat(options[f], len(options[g]))
    rows[:, g] = np.tile(options[g], len(options[f]))
    return rows


STEPS = 100_000
"""Limit on the clauses examined in the search for a row of another class."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes that change the class."""

    nearest: tuple[Change, ...]
    """Nearest first."""
    searched: int
    """How many features at once were searched exhaustively: no other change of that few features changes the class."""

    @property
    def smallest(self) -> bool:
        """Whether no change of fewer features is enough."""
        return all(len(change.values) <= self.searched for change in self.nearest)


def changes(program: Program, row: Sequence[Value]) -> Changes:
    """For each feature the nearest change, downwards and upwards, that changes the class; else the nearest of two.

    A category changes to another text that the program mentions, or to any other.
    """
    encoded = [value + 0.0 for value in encode_row(program, row)]
    label = evaluate_many(program, np.array([encoded])).labels[0]
    options = [
        _feature_options(program, feature, ranges, encoded[feature]) for feature, ranges in enumerate(cells(program))
    ]
    widths = _widths(program, options, encoded)
    single = [
        change
        for feature, (down, up) in enumerate(options)
        for side in _sides(program, feature, down, up)
        if (change := _first_flip(program, encoded, feature, side, label, widths[feature])) is not None
    ]
    if single:
        return Changes(tuple(sorted(single, key=lambda change: (change.distance, change.values))), 1)
    every = [np.array([*down, *up], dtype=np.float64) for down, up in options]
    searched = 1
    if not too_many(program, every):
        searched = 2
        far = [np.array([_distance(encoded[f], v, widths[f]) for v in one.tolist()]) for f, one in enumerate(every)]
        two = nearest_pair(program, np.array(encoded), every, far, program.classes.index(label))
        if two is not None:
            return Changes((two,), searched)
    return Changes(_of_many(program, row, encoded, label, widths), searched)


def _is_word(program: Program, feature: int) -> bool:
    return program.kind(feature) in ("category", "boolean")


def _sides(program: Program, feature: int, down: list[float], up: list[float]) -> list[list[float]]:
    """The directions in which a feature moves: down and up, or to each of the other texts."""
    return [[code] for code in up] if _is_word(program, feature) else [down, up]


def _feature_options(
    program: Program, feature: int, ranges: Sequence[Allowed], value: float
) -> tuple[list[float], list[float]]:
    """The values that a feature may change to, those below and those above; of a category, the other codes."""
    if _is_word(program, feature):
        codes = [*range(1, len(ranges)), 0]  # the last cell is any other text
        return [], [float(code) for code in codes if code != value]
    numbers = [cell for cell in ranges if isinstance(cell, Values)]
    whole = is_whole(program.kind(feature))
    down, up = _options(numbers, value, whole or feature in _whole_numbered(program))
    if whole:  # a day in the calendar
        first, last = (bound * (DAY if program.kind(feature) == "timestamp" else 1) for bound in (EARLIEST, LATEST))
        down, up = ([v for v in side if first <= v <= last] for side in (down, up))
    return down, up


def _options(ranges: Sequence[Values], value: float, whole: bool) -> tuple[list[float], list[float]]:
    """The nearest value of each other cell, those below and those above, nearest first.

    For a feature with whole numbers only, the nearest whole number, where the cell has one.
    """
    if math.isnan(value):
        return [], [_a_number(cell) for cell in ranges]
    down = [cell.most for cell in ranges if cell.most < value]
    up = [cell.least for cell in ranges if cell.least > value]
    if whole:
        least = {cell.most: cell.least for cell in ranges}
        most = {cell.least: cell.most for cell in ranges}
        down = [math.floor(v) + 0.0 for v in down if math.isfinite(v) and math.floor(v) >= least[v]]
        up = [math.ceil(v) + 0.0 for v in up if math.isfinite(v) and math.ceil(v) <= most[v]]
    return down[::-1], up


def _a_number(cell: Values) -> float:
    """Some number in a cell: finite if possible, and whole if possible."""
    if cell.least <= 0.0 <= cell.most:
        return 0.0
    nearest = cell.least if cell.least > 0 else cell.most
    if math.isinf(nearest):
        return nearest
    whole = float(math.ceil(nearest) if nearest > 0 else math.floor(nearest)) + 0.0
    return whole if cell.least <= whole <= cell.most else nearest


def _whole_numbered(program: Program) -> set[int]:
    """The features with whole numbers only in the training rows, where mining recorded them."""
    mining = program.metadata.get("mining")
    names = mining.get("whole_numbers") if isinstance(mining, dict) else None
    return {i for i, name in enumerate(program.features) if isinstance(names, list) and name in names}


def _first_flip(
    program: Program, row: list[float], feature: int, values: list[float], label: Label, width: float | None
) -> Change | None:
    rows = np.tile(np.array(row), (len(values), 1))
    rows[:, feature] = values
    answers = evaluate_many(program, rows).labels
    flips = np.flatnonzero(answers != label)
    if not len(flips):
        return None
    value = values[int(flips[0])]
    return Change(((feature, value),), answers[flips[0]], _distance(row[feature], value, width))


def _of_many(
    program: Program, row: Sequence[Value], encoded: list[float], label: Label, widths: list[float | None]
) -> tuple[Change, ...]:
    """A change of as many features as needed: a row of another class, with every value restored that can be."""
    prepared, own = prepare(program), program.classes.index(label)
    plain = plain_row(program, row)
    try:
        box = other_class(prepared, {}, own, Steps(STEPS))
    except OutOfSteps:
        return ()
    if box is None:
        return ()
    other = row_in(box, plain, program.kinds)
    for feature, value in enumerate(plain):
        nearer = [*other[:feature], value, *other[feature + 1 :]]
        if class_of(prepared, nearer) != own:
            other = nearer
    book = codebook(program)
    values = tuple(
        (f, book.code(f, v) if isinstance(v, str) else v)
        for f, (v, before) in enumerate(zip(other, plain, strict=True))
        if v is not None and v != before
    )
    if any(v is None and before is not None for v, before in zip(other, plain, strict=True)):
        return ()  # a value would have to go missing, which is not a change anyone can make
    reached = program.classes[class_of(prepared, other)]
    return (Change(values, reached, sum(_distance(encoded[f], v, widths[f]) for f, v in values)),)


def _distance(before: float, after: float, width: float | None) -> float:
    if math.isnan(before):
        return math.inf
    return 1.0 if width is None else abs(after - before) / width


def _widths(program: Program, options: list[tuple[list[float], list[float]]], row: list[float]) -> list[float | None]:
    """The range of each feature in the training rows; where that is not known, of its cuts and the row's value.

    Texts have none: every other one is equally far.
    """
    training = program.metadata.get("training")
    histograms = training.get("histograms") if isinstance(training, dict) else None
    known = histograms if isinstance(histograms, list) and len(histograms) == len(row) else [None] * len(row)
    return [
        None if _is_word(program, feature) else _width(histogram, [*down, *up], row[feature])
        for feature, (histogram, (down, up)) in enumerate(zip(known, options, strict=True))
    ]


def _width(histogram: object, options: list[float], value: float) -> float:
    return _spread(histogram) or _span([*options, *(own for own in (value,) if math.isfinite(own))]) or 1.0


def _spread(histogram: object) -> float | None:
    """The range of a histogram in the metadata, which is untrusted."""
    edges = histogram.get("edges") if isinstance(histogram, dict) else None
    if not isinstance(edges, list) or not all(isinstance(edge, float) for edge in edges):
        return None
    return _span(edges)


def _span(values: list[float]) -> float | None:
    width = max(values) - min(values) if values else 0.0
    return width if 0 < width < math.inf else None
