"""Writes a proof down so that someone else can check it: every row lies in one of these boxes, and in each both agree.

A certificate is JSON: what the artifact says (its reading, ranges of equal meaning merged), and a list of splits and
boxes in the order of a walk. `{"cut": feature, "at": t}` is followed by all there is for `x < t`, then for `x >= t`;
`{"missing": feature}` by all there is for the missing value, then for values; `{"text": feature, "in": [...]}` by all
there is for these texts, then for every other text. Days and microseconds are cut like numbers. A box names the leaf of
the program and the step of the artifact that all its rows end in. `certificate_verifier.py` checks it, with the
standard library alone and no code of the prover. It carries the SHA-256 of each file of the artifact; that the reading
is what those bytes say is for the reader to answer, not for the certificate.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from gbfl_compile.checking.prove import BUDGET_SECONDS
from gbfl_compile.checking.prove.cells import Cells, cell_at, cells_of, mask_of
from gbfl_compile.checking.prove.findings import Clock, OutOfTime, clock_of
from gbfl_compile.checking.reading.from_program import align, as_reading, in_book
from gbfl_compile.checking.reading.nodes import And, Ask, Condition, Not, Outcome, Reading, StepDecision, Test
from gbfl_compile.checking.reading.nodes import Or as AnyOf
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.intervals import below
from gbfl_compile.ir.json import digest
from gbfl_compile.ir.kinds import ANY_OTHER, Codebook, codebook
from gbfl_compile.ir.nodes import Program

FORM, FORM_KINDS = 2, 3
"""The versions of the form: for numbers alone, and with texts."""

MOST_BOXES = 100_000

Box: TypeAlias = dict[int, int]
Entry: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Pair:
    """A program and an artifact as trees over the same cells."""

    cells: Cells
    source: StepDecision
    target: StepDecision
    program: Program
    book: Codebook
    """The codes of both sides' texts."""

    def is_text(self, feature: int) -> bool:
        """Whether a feature has texts for values; true and false are texts too."""
        return self.program.kind(feature) in ("category", "boolean")

    def texts(self, feature: int, mask: int) -> tuple[list[str], bool]:
        """The texts in some cells, or with True those that are not in them: any other text is."""
        negated = bool(cell_at(self.cells, feature, ANY_OTHER) & mask)
        listed = enumerate(self.book.texts[feature], start=1)
        return [t for code, t in listed if bool(cell_at(self.cells, feature, float(code)) & mask) != negated], negated


def certificate(
    program: Program, reading: Reading, files: Mapping[str, bytes], budget_seconds: float = BUDGET_SECONDS
) -> str:
    """The certificate as JSON text, for the artifact in these files. A CannotRun says why there is none.

    A BadInput says that the two differ, or are not trees of doubles.

    A long rule list has no short one: it would need a box for each way past all of its rules.
    """
    reading = align(reading, program.features, program.classes, program.kinds)
    book = codebook(program)
    if program.kinds:
        book = book.with_texts(reading.book)
        reading = in_book(reading, program, book)
    source = as_reading(program, book)
    if not isinstance(source.decision, StepDecision) or not isinstance(reading.decision, StepDecision):
        raise BadInput("a certificate is for a tree: the points of a rule set are proved by adding them up")
    if reading.dtype != "float64":
        raise BadInput("a certificate is for a float64 artifact: a float32 one is equal on float32 rows only")
    pair = Pair(cells_of((source, reading)), source.decision, reading.decision, program, book)
    try:
        entries, pairs = _covering(pair, clock_of(budget_seconds))
    except OutOfTime:
        raise CannotRun(f"no certificate within {budget_seconds:g} seconds: give a larger budget") from None
    claims = [aspect for aspect in ("winner", "probabilities", "leaf") if _agree_on(aspect, pairs)]
    if "winner" not in claims:
        raise BadInput("the artifact is not the program: prove gives a row on which they differ")
    form = {
        "form": FORM_KINDS if program.kinds else FORM,
        "program": digest(program),
        "artifact": {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())},
        "claims": claims,
        "reading": [_step_form(pair, step) for step in reading.decision.steps],
        "boxes": entries,
    }
    return json.dumps(form, allow_nan=False) + "\n"


def _agree_on(aspect: str, pairs: set[tuple[Outcome, Outcome]]) -> bool:
    return all(getattr(a, aspect) is not None and getattr(a, aspect) == getattr(b, aspect) for a, b in pairs)


def _covering(pair: Pair, clock: Clock) -> tuple[list[Entry], set[tuple[Outcome, Outcome]]]:
    """Splits and boxes in the order of a walk, and the outcomes that meet in a box."""
    entries: list[Entry] = []
    pairs: set[tuple[Outcome, Outcome]] = set()
    waiting: list[Box] = [{}]
    while waiting:
        clock.check()
        if len(entries) > 2 * MOST_BOXES:
            raise CannotRun(f"the certificate would have more than {MOST_BOXES} boxes")
        box = waiting.pop()
        a = _end(pair.cells, pair.source, box)
        b = _end(pair.cells, pair.target, box) if isinstance(a, int) else a
        if isinstance(a, int) and isinstance(b, int):
            first, second = pair.source.steps[a], pair.target.steps[b]
            assert isinstance(first, Outcome) and isinstance(second, Outcome)  # noqa: S101, PT018
            pairs.add((first, second))
            entries.append({"leaf": first.leaf, "step": b})
            continue
        feature, mask = a if not isinstance(a, int) else b  # type: ignore[misc]  # one of them is not sure
        entry, parts = _split(pair, box, feature, mask)
        entries.append(entry)
        waiting += reversed(parts)
    return entries, pairs


def _split(pair: Pair, box: Box, feature: int, mask: int) -> tuple[Entry, tuple[Box, Box]]:
    """The first split of a box that a test of these cells needs."""
    cells = pair.cells
    have = box.get(feature, cells.everything(feature))
    missing = cells.missing(feature)
    if have & missing:
        return {"missing": feature}, ({**box, feature: missing}, {**box, feature: have & ~missing})
    if pair.is_text(feature):
        within = have & mask
        texts, negated = pair.texts(feature, within)
        if negated:  # then the texts on the other side are finitely many
            within = have & ~mask
            texts, _ = pair.texts(feature, within)
        return {"text": feature, "in": texts}, ({**box, feature: within}, {**box, feature: have & ~within})
    lowest = (have & -have).bit_length() - 1
    inside = have & mask if mask >> lowest & 1 else have & ~mask
    other = have & ~inside
    cell = (other & -other).bit_length() - 1  # the first cell that answers otherwise than the lowest one
    low = have & ((1 << cell) - 1)
    entry = {"cut": feature, "at": cells.starts[feature][cell - 1].hex()}
    return entry, ({**box, feature: low}, {**box, feature: have & ~low})


def _end(cells: Cells, decided: StepDecision, box: Box) -> int | tuple[int, int]:
    """The step all rows of a box end in, or the feature and cells of a test that some pass and some do not."""
    index = 0
    while isinstance(step := decided.steps[index], Ask):
        answer = _answer(cells, step.condition, box)
        if not isinstance(answer, bool):
            return answer
        index = step.then if answer else step.otherwise
    return index


def _answer(cells: Cells, condition: Condition, box: Box) -> bool | tuple[int, int]:
    match condition:
        case Test(feature):
            mask = mask_of(cells, condition)
            have = box.get(feature, cells.everything(feature))
            return bool(have & mask) if not have & mask or not have & ~mask else (feature, mask)
        case Not(part):
            inner = _answer(cells, part, box)
            return not inner if isinstance(inner, bool) else inner
        case And(parts) | AnyOf(parts):
            settles = isinstance(condition, AnyOf)
            answers = [_answer(cells, part, box) for part in parts]
            if settles in answers:
                return settles
            return next((inner for inner in answers if not isinstance(inner, bool)), not settles)
        case _:
            assert_never(condition)


def _step_form(pair: Pair, step: Ask | Outcome) -> Entry:
    match step:
        case Ask(condition, then, otherwise):
            return {"if": _condition_form(pair, condition), "then": then, "otherwise": otherwise}
        case Outcome(winner, probabilities, leaf):
            listed = None if probabilities is None else [p.hex() for p in probabilities]
            return {"winner": winner, "probabilities": listed, "leaf": leaf}
        case _:
            assert_never(step)


def _condition_form(pair: Pair, condition: Condition) -> Entry:
    cells = pair.cells
    match condition:
        case Test(feature) if pair.is_text(feature):
            mask = mask_of(cells, condition)
            texts, negated = pair.texts(feature, mask)
            missing = bool(mask & cells.missing(feature))
            return {"feature": feature, "texts": texts, "negated": negated, "missing": missing}
        case Test(feature):
            mask = mask_of(cells, condition)
            ranges = [[least.hex(), most.hex()] for least, most in _ranges(cells, feature, mask)]
            return {"feature": feature, "in": ranges, "missing": bool(mask & cells.missing(feature))}
        case And(parts):
            return {"all": [_condition_form(pair, part) for part in parts]}
        case AnyOf(parts):
            return {"any": [_condition_form(pair, part) for part in parts]}
        case Not(part):
            return {"not": _condition_form(pair, part)}
        case _:
            assert_never(condition)


def _ranges(cells: Cells, feature: int, mask: int) -> Iterator[tuple[float, float]]:
    """The numbers of a mask as closed ranges, neighbours joined."""
    starts = (-math.inf, *cells.starts[feature])
    cell = 0
    while cell < len(starts):
        if not mask >> cell & 1:
            cell += 1
            continue
        least = starts[cell]
        while cell < len(starts) and mask >> cell & 1:
            cell += 1
        yield least, below(starts[cell]) if cell < len(starts) else math.inf
