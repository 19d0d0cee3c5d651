"""Rows chosen so that a wrong program gives itself away on one of them.

For every atom, rows that reach it with everything else decided and, where the prover finds one, on which a slip in the
atom changes the label: the value next to each bound, infinite, zero and missing. Then each feature missing alone,
extremes of every kind, and random mixtures of bounds. A random row almost never lies on a bound; each of these does.

An artifact is run, for check and audit, on witnesses, on its own constants and on the user's rows.
"""

from __future__ import annotations

import math
import random
import re
import struct
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import assert_never

import numpy as np

from gbfl_compile.checking.prove.cells import cells_of
from gbfl_compile.checking.reading.nodes import Reading
from gbfl_compile.checking.witnesses.rule_set import rule_set_rows
from gbfl_compile.checking.witnesses.search import bounds_of, cells_around, tree_rows, values_of_rows
from gbfl_compile.ir.batch import Matrix, recode_rows
from gbfl_compile.ir.intervals import LARGEST_FLOAT32, Dtype, above, below, float32_at_or_below, narrow
from gbfl_compile.ir.kinds import DAY, EARLIEST, LATEST, Codebook, codebook
from gbfl_compile.ir.nodes import Kind, Leaf, Program, Scorecard, Tree

MOST_LOOKALIKES = 40
"""Texts tried per feature beside those that the program lists."""

STRANGERS = (
    "",
    " ",
    "other",
    "NULL",
    "None",
    "nan",
    "true",
    "1",
    "0",
    "\u00e1",
    "a\u0301",
    "a",
    "A",
    "a ",
    "\u00df",
    "ss",
)
"""Texts that engines, clients or collations take for another text or for a missing value."""


def with_lookalikes(program: Program) -> Codebook:
    """The program's texts and, after them, texts that a comparison which is not exact would take for one of them."""
    book = codebook(program)
    for feature, kind in enumerate(program.kinds):
        if kind != "category":
            continue
        own = book.texts[feature]
        others = dict.fromkeys(text for listed in own for text in _lookalikes(listed))
        others |= dict.fromkeys(STRANGERS)
        for text in [text for text in others if text not in own][:MOST_LOOKALIKES]:
            book = book.with_text(feature, text)
    return book


def _lookalikes(text: str) -> Iterator[str]:
    """The text in other letters, with blanks around it, in both normal forms, cut short, without its accents."""
    yield text + " "
    yield text.upper()
    yield text.lower()
    yield " " + text
    yield text.swapcase()
    yield unicodedata.normalize("NFC", text)
    yield unicodedata.normalize("NFD", text)
    yield "".join(letter for letter in unicodedata.normalize("NFD", text) if not unicodedata.combining(letter))
    yield text[:-1]
    yield text + "\t"
    yield text.casefold()


def possible_rows(program: Program, rows: Sequence[Sequence[float]], book: Codebook) -> list[list[float]]:
    """The rows with values that the features can have: codes of texts, true or false, whole days and microseconds."""
    own = codebook(program)
    possible = []
    for number, row in enumerate(rows):
        values = []
        for feature, value in enumerate(row):
            known, every = len(own.texts[feature]), len(book.texts[feature])
            values.append(_possible(program.kind(feature), value, number, known, every))
        possible.append(values)
    return possible


def _possible(kind: Kind, value: float, number: int, known: int, every: int) -> float:
    if kind == "number" or math.isnan(value):
        return value
    if kind == "boolean":
        return 1.0 if value == 1.0 else 0.0
    if kind == "category":
        if 1 <= value <= known and value == int(value):
            return value
        return float(known + 1 + number % (every - known)) if every > known else 0.0
    first, last = (EARLIEST, LATEST) if kind == "date" else (EARLIEST * DAY, LATEST * DAY)
    first, last = max(first, -(2.0**53)), min(last, 2.0**53)
    whole = (math.floor, math.ceil)[number % 2]
    return float(whole(min(max(value, first), last)))


NEGATIVE_NAN = math.copysign(math.nan, -1.0)
"""What 0.0 / 0.0 gives on x86: engines that order floats totally put it below all numbers."""

PAYLOAD_NAN = float(struct.unpack("<d", struct.pack("<Q", 0x7FFC_0000_0000_07A2))[0])
"""A NaN with a payload, as R writes NA; one bit of the payload survives in float32."""

NANS = (math.nan, NEGATIVE_NAN, PAYLOAD_NAN)

EXTREMES = (0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308, math.inf, -math.inf, *NANS)
FLOAT32_EXTREMES = (0.0, -0.0, 2.0**-149, -(2.0**-149), LARGEST_FLOAT32, -LARGEST_FLOAT32, math.inf, -math.inf, *NANS)
"""The zeros, the smallest denormals, the largest numbers, the infinities and every kind of NaN."""

MIXTURES = 500


@dataclass(frozen=True, slots=True)
class WitnessSet:
    """The rows to run, and the places without one."""

    rows: Matrix
    """One row per line, columns as in `program.features`. Missing values are NaNs of several kinds."""
    unreachable: tuple[str, ...]
    """Places that no row reaches: this was shown."""
    given_up: tuple[str, ...]
    """Places where the search stopped early: a slip there may go unseen."""
    book: Codebook
    """The texts of the codes in the rows: the program's own, and others that are easily mistaken for them."""


def witnesses(program: Program, seed: int = 0) -> Matrix:
    """The rows to run on a target that takes every double; the same rows every time."""
    return find_witnesses(program, seed).rows


@lru_cache(maxsize=8)
def find_witnesses(program: Program, seed: int = 0, dtype: Dtype = "float64") -> WitnessSet:
    """The rows that the program alone calls for; float32 ones for an artifact that takes those.

    Rounded to float32, the rows around a double bound would miss the float32s around it, and intervals too short to
    hold a float32 would only meet rows that lie in none of their other intervals.
    """
    choose = random.Random(seed)  # noqa: S311 - nothing secret
    program = narrow(program) if dtype == "float32" else program
    cells = cells_around(program, dtype)
    match program.decision:
        case Tree():
            search = tree_rows(program, program.decision, cells, choose)
        case Scorecard():
            search = rule_set_rows(program, program.decision, cells, choose)
        case _:
            assert_never(program.decision)
    rows = values_of_rows(cells, search.rows)
    rows += _other_zeros(rows)
    rows += list(_other_nans(rows))
    pools = value_pools(program, dtype)
    rows += _edge_rows(pools, dtype)
    rows += [[choose.choice(pool) for pool in pools] for _ in range(MIXTURES)]
    book = codebook(program)
    if program.kinds:
        book = with_lookalikes(program)
        rows = possible_rows(program, rows, book)
    unique = {np.array(row).tobytes(): row for row in rows}
    matrix = np.array(list(unique.values()), dtype=np.float64).reshape(-1, len(program.features))
    matrix.setflags(write=False)  # shared by all that need it
    return WitnessSet(matrix, tuple(search.unreachable), tuple(search.given_up), book)


def value_pools(program: Program, dtype: Dtype = "float64") -> list[list[float]]:
    """For each feature the values worth trying: each bound and its neighbours, and the extremes."""
    pools: list[list[float]] = [list(_extremes(dtype)) for _ in program.features]
    book = codebook(program)
    for clause in program.clauses:
        for atom in clause.atoms:
            for bound in bounds_of(atom, book):
                pools[atom.feature] += (below(bound, dtype), bound, above(bound, dtype))
    return pools


def _extremes(dtype: Dtype) -> tuple[float, ...]:
    return FLOAT32_EXTREMES if dtype == "float32" else EXTREMES


def _other_zeros(rows: list[list[float]]) -> list[list[float]]:
    """Rows with a zero again with the other one: -0.0 equals 0.0 in every target or the target is wrong."""
    return [[-value if value == 0.0 else value for value in row] for row in rows if 0.0 in row]


def _other_nans(rows: list[list[float]]) -> Iterator[list[float]]:
    """Rows with a missing value again with other NaNs, in turn: every NaN is a missing value."""
    for number, row in enumerate(rows):
        if any(map(math.isnan, row)):
            other = (NEGATIVE_NAN, PAYLOAD_NAN)[number % 2]
            yield [other if math.isnan(value) else value for value in row]


def _edge_rows(pools: list[list[float]], dtype: Dtype) -> list[list[float]]:
    """All features at one extreme, and each feature alone at each extreme."""
    width = len(pools)
    rows = [[value] * width for value in _extremes(dtype)]
    finite = [sorted(filter(math.isfinite, pool)) for pool in pools]
    ordinary = [values[len(values) // 2] for values in finite]
    for feature in range(width):
        rows += [[*ordinary[:feature], value, *ordinary[feature + 1 :]] for value in _extremes(dtype)]
    return rows


ROWS_FOR_CONSTANTS = 2_000
"""With so few rows each constant is tried alone in each feature; with more constants, several features share a row."""

MOST_REPEATS = 5
"""Rows for the same constant in the same feature."""

MOST_CONSTANTS = 10_000
"""Constants tried per artifact; the number left out is reported."""

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
    own_book: Codebook | None = None,
) -> WitnessSet:
    """Witnesses and then the user's `own` rows, as a target that takes values of this kind can be given them.

    `extra_constants` are the numbers that occur in the artifact (`artifact_constants`): each is tried in every feature,
    with its neighbours. For float32 the rows are the float32 witnesses, and every row rounded, with the two neighbours
    of each value. The user's own rows are the last ones, in their order; `own_book` has the codes of their texts.
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
    book = base.book
    if program.kinds and own_book is not None:
        book = book.with_texts(own_book.texts)
        own = [recode_rows(program.kinds, rows, own_book.texts, book) for rows in own]
    last = own if program.kinds else ()
    rows = np.concatenate([base.rows, *at_constants, *(() if program.kinds else own)])
    if dtype == "float32":
        rows = np.concatenate([find_witnesses(program, dtype=dtype).rows, as_float32(rows)])
        if program.kinds:  # the neighbours of a code or a day are none
            rows = np.array(possible_rows(program, rows.tolist(), base.book)).reshape(rows.shape)
            with np.errstate(over="ignore", under="ignore"):
                last = [each.astype(np.float32).astype(np.float64) for each in own]
    rows = np.concatenate([rows, *last])
    return WitnessSet(rows if holds_infinity else without_infinities(rows), base.unreachable, given_up, book)


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
    return sorted({value for one in held for value in (below(one, dtype), one, above(one, dtype))})


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
