"""The rows an artifact is run on, for check and audit: witnesses, the artifact's own constants, the user's rows."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from gbfl_compile.checking.prove.cells import Dtype, after, before, cells_of
from gbfl_compile.checking.reading.nodes import Reading
from gbfl_compile.checking.witnesses import WitnessSet, find_witnesses
from gbfl_compile.checking.witnesses.search import bounds_of
from gbfl_compile.checking.witnesses.words import possible_rows
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.float32 import float32_at_or_below
from gbfl_compile.ir.kinds import codebook
from gbfl_compile.ir.nodes import Leaf, Program, Tree

ROWS_FOR_CONSTANTS = 2_000
"""With so few rows each constant is tried alone in each feature; with more constants, several features share a row."""

MOST_REPEATS = 5
"""Rows for the same constant in the same feature."""

MOST_CONSTANTS = 10_000
"""Constants tried per artifact; how many were left out is said."""

NUMBER = re.compile(
    r"(-\s*)?(?<![\w.])"
    r"(0[xX](?:[0-9a-fA-F]++(?:\.?[0-9a-fA-F]*+[pP][+-]?[0-9]+)?|\.[0-9a-fA-F]*+[pP][+-]?[0-9]+)"
    r"|(?:[0-9][0-9_]*+\.?[0-9_]*+|\.[0-9]++)(?:[eE][+-]?[0-9]+)?)"
)
"""A number as Python, C and SQL write it, and the minus sign before it."""


def rows_to_run(
    program: Program,
    own: Sequence[Matrix] = (),
    dtype: Dtype = "float64",
    holds_infinity: bool = True,
    extra_constants: Collection[float] = (),
) -> WitnessSet:
    """Witnesses and then the user's `own` rows, as a target that takes values of this kind can be given them.

    `extra_constants` are the numbers that occur in the artifact (`artifact_constants`): each is tried in every feature,
    with its neighbours. For float32 the rows are the float32 witnesses, and every row rounded, with the two neighbours
    of each value. The user's own rows are the last ones, in their order.
    """
    base = find_witnesses(program)
    given_up = base.given_up
    known = _numbers_of(program)
    strange = sorted({constant for constant in extra_constants if constant not in known})
    shared = sorted({constant for constant in extra_constants if constant in known})
    if len(left_out := [*strange, *shared][MOST_CONSTANTS:]):
        given_up += (f"{len(left_out)} constants of the artifact were not tried",)
        strange, shared = strange[:MOST_CONSTANTS], shared[: max(0, MOST_CONSTANTS - len(strange))]
    at_constants = [_rows_at(_values_around(constants, dtype), base.rows) for constants in (strange, shared)]
    if program.kinds:
        at_constants = [
            np.array(possible_rows(program, rows.tolist(), base.book)).reshape(rows.shape) for rows in at_constants
        ]
    rows = np.concatenate([base.rows, *at_constants, *own])
    if dtype == "float32":
        rows = np.concatenate([find_witnesses(program, dtype=dtype).rows, as_float32(rows)])
        if program.kinds:  # the neighbours of a code or a day are none
            rows = np.array(possible_rows(program, rows.tolist(), base.book)).reshape(rows.shape)
    return WitnessSet(rows if holds_infinity else without_infinities(rows), base.unreachable, given_up, base.book)


def artifact_constants(files: Mapping[str, bytes], readings: Iterable[Reading] = ()) -> frozenset[float]:
    """The finite numbers in an artifact: every literal in its text, and the values at which a reading changes."""
    numbers = {number for content in files.values() for number in _literals(content)}
    for reading in readings:
        numbers.update(*cells_of((reading,), reading.dtype).starts)
    return frozenset(number for number in numbers if math.isfinite(number))


def as_float32(rows: Matrix) -> Matrix:
    """The neighbours of these rows in float32, and then the rows themselves, rounded."""
    with np.errstate(over="ignore", under="ignore"):  # a double beyond float32 is infinite there
        rounded = rows.astype(np.float32)
        neighbours = [np.nextafter(rounded, np.float32(end)) for end in (-np.inf, np.inf)]
        return np.concatenate([*neighbours, rounded]).astype(np.float64)


def without_infinities(rows: Matrix) -> Matrix:
    """The rows as a target that holds no infinities takes them: with the largest doubles instead."""
    largest = np.finfo(np.float64).max
    clipped: Matrix = np.clip(rows, -largest, largest)
    return clipped


def _numbers_of(program: Program) -> set[float]:
    """The numbers that an artifact has from its program."""
    book = codebook(program)
    bounds = {bound for clause in program.clauses for atom in clause.atoms for bound in bounds_of(atom, book)}
    if isinstance(program.decision, Tree):
        answers = {p for node in program.decision.nodes if isinstance(node, Leaf) for p in node.probabilities}
    else:
        card = program.decision
        answers = {float(p) for points in (card.bias, *card.points) for p in points}
        answers |= {n for own in card.bands for band in own for n in (float(band.least), *band.probabilities)}
    return answers | bounds


def _literals(content: bytes) -> Iterator[float]:
    """The numbers in a text, with a minus sign before them also the negative ones; a binary file has no text."""
    if b"\0" in content:
        return
    for minus, digits in set(NUMBER.findall(content.decode("utf-8", "replace"))):
        text = digits.replace("_", "")
        try:
            number = float.fromhex(text) if text[:2] in ("0x", "0X") else float(text)
        except (ValueError, OverflowError):  # not a number after all, or beyond every double
            continue
        yield number
        if minus:
            yield -number


def _values_around(constants: Iterable[float], dtype: Dtype) -> list[float]:
    """The constants as a target holds them, and their neighbours."""
    held = {float32_at_or_below(constant) if dtype == "float32" else constant for constant in constants}
    return sorted({value for one in held for value in (before(one, dtype), one, after(one, dtype))})


def _rows_at(values: Sequence[float], rows: Matrix) -> Matrix:
    """Each value in each feature: alone, the rest as in some witness, where few rows suffice for that."""
    choose = np.random.default_rng(0)  # the same rows every time
    count, width = len(values), rows.shape[1]
    if not count:
        return rows[:0]
    features = np.arange(width)
    spread = np.array(values, dtype=np.float64)[(np.arange(count)[:, None] + features) % count]
    groups = max(1, min(width, ROWS_FOR_CONSTANTS // count))
    repeats = max(1, min(MOST_REPEATS, ROWS_FOR_CONSTANTS // (count * groups)))
    parts = []
    for number in range(groups * repeats):
        witnesses = rows[choose.integers(len(rows), size=count)]
        parts.append(np.where(features % groups == number % groups, spread, witnesses))
    return np.concatenate(parts)
