"""Is an artifact, as it was read back, equal to its program on every input? Proved, refuted by a row, or left open.

"Every input" is every double (for a float32 artifact every float32) and every pattern of missing values. Labels are
decided on their own, and so is everything else the artifact says: scores, probabilities, the leaf. A counterexample is
run through both sides before it is reported; a search that uses up its time is UNDECIDED, never a silent pass.

    prove(program, reading).answer   ->   "proved"
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import assert_never

from gbfl_compile.checking.prove.cells import Box, Cells, cells_of, row_in
from gbfl_compile.checking.prove.findings import (
    Aspect,
    Clock,
    Counterexample,
    Finding,
    NoDecision,
    OutOfTime,
    Proof,
    ProvedEqual,
    StepsWithin,
    clock_of,
    differs,
)
from gbfl_compile.checking.prove.labels import Adder, Side, Walker, adder_of, find_other_label, walk_to_other_label
from gbfl_compile.checking.prove.points import (
    Sum,
    against_first,
    combine,
    largest_lead,
    minus,
    nonzero_row,
    sum_of,
    unequal_leads,
    won_by,
)
from gbfl_compile.checking.prove.solve import Graph, Key, add_decision
from gbfl_compile.checking.prove.trees import find_difference
from gbfl_compile.checking.reading.conditions import same_parts
from gbfl_compile.checking.reading.evaluate import run_reading
from gbfl_compile.checking.reading.from_program import as_reading, in_book
from gbfl_compile.checking.reading.nodes import Outcome, PointDecision, Reading, StepDecision
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.kinds import Codebook, codebook, decode_rows
from gbfl_compile.ir.nodes import Program, Scorecard

BUDGET_SECONDS = 10.0

FEW_BOXES = 300
"""Boxes split before a walk is tried: most rule sets are decided by then."""

ROWS_TRIED = 500
"""How many rows are tried if bands belong to other points, before the question is left undecided."""

Keys = dict[Aspect, Callable[[Outcome], Key]]


@dataclass(frozen=True, slots=True)
class Case:
    """A program and a reading, and the cells both cut."""

    program: Program
    source: Reading
    reading: Reading
    cells: Cells
    clock: Clock
    budget_seconds: float
    book: Codebook
    """The codes of the texts that either side mentions."""


def prove(
    program: Program, reading: Reading, budget_seconds: float = BUDGET_SECONDS, source: Reading | None = None
) -> Proof:
    """Decide whether `reading` answers as `program` does, within a budget of time.

    `source` is `as_reading(program)`, for those who have it already.
    """
    began = time.monotonic()
    _check_names(program, reading)
    book = codebook(program)
    if program.kinds:
        book, source = book.with_texts(reading.book), None
        reading = in_book(reading, program, book)
    source = source or as_reading(program, book)
    try:
        cells = cells_of((source, reading), reading.dtype)
        case = Case(program, source, reading, cells, clock_of(budget_seconds), budget_seconds, book)
        findings = _decide(case)
    except RecursionError:
        findings = {"labels": NoDecision("the artifact's conditions are nested too deep")}
    present = set(findings)
    aspects: tuple[Aspect, ...] = ("labels", "probabilities", "leaf")
    if isinstance(program.decision, Scorecard):
        aspects = ("labels", "scores", "probabilities")
    not_said = tuple(aspect for aspect in aspects if aspect not in present)
    return Proof(findings, not_said, budget_seconds, time.monotonic() - began)


def _check_names(program: Program, reading: Reading) -> None:
    where = reading.place or "the artifact"
    if reading.features != program.features or reading.kinds != program.kinds:
        raise BadInput(
            f"{where}: its features are not the program's; match them by name with checking.reading.from_program.align"
        )
    kinds = [(type(label), label) for label in reading.classes]
    if kinds != [(type(label), label) for label in program.classes]:
        raise BadInput(
            f"{where}: its classes are not the program's; match them by name with checking.reading.from_program.align"
        )


def _decide(case: Case) -> dict[Aspect, Finding]:
    match case.source.decision, case.reading.decision:
        case StepDecision() as a, StepDecision() as b:
            return _decide_trees(case, a, b)
        case PointDecision() as a, PointDecision() as b:
            return _decide_rule_sets(case, a, b)
        case a, b:
            findings: dict[Aspect, Finding] = {
                "labels": _search_within(case, partial(_other_label, case, a, b), "labels")
            }
            if isinstance(b, PointDecision) and (b.scale is not None or b.constants is not None or b.bands):
                findings["probabilities"] = NoDecision("a tree's probabilities against those of a rule set")
            if isinstance(a, PointDecision):
                findings |= _decide_written(case, a, b)
            return findings


def _decide_written(case: Case, a: PointDecision, b: StepDecision | PointDecision) -> dict[Aspect, Finding]:
    """Probabilities that are written out as numbers, against a rule set whose points are the same on every row."""
    match b:
        case StepDecision(steps):
            written = {step.probabilities for step in steps if isinstance(step, Outcome)} - {None}
        case PointDecision():
            written = {b.constants} - {None}
    if not written:
        return {}
    try:
        points = combine(sum_of(case.cells, case.clock, a), against_first(len(case.program.classes)))
    except (OutOfTime, RecursionError):
        return {"probabilities": NoDecision(f"not decided within {case.budget_seconds:g} seconds")}
    if points.keys() - {()} or len(written) > 1:
        return {"probabilities": NoDecision("a rule set's probabilities against numbers that are written out")}
    example = _example(case, _whole_row(case, {}))
    return {"probabilities": example if _shows(case, "probabilities", example) else ProvedEqual()}


def _search_within(case: Case, search: Callable[[], Box | None], *aspects: Aspect) -> Finding:
    """What a search for a row on which some aspect differs shows."""
    try:
        box = search()
    except OutOfTime:
        return NoDecision(f"not decided within {case.budget_seconds:g} seconds")
    except RecursionError:
        return NoDecision("the conditions are nested too deep, or ask too many features")
    return ProvedEqual() if box is None else _confirm(case, aspects, box)


def _confirm(case: Case, aspects: Collection[Aspect], box: Box) -> Counterexample:
    """The counterexample, run through both sides; a row that does not differ is a fault of the prover."""
    example = _example(case, box)
    if not any(_shows(case, aspect, example) for aspect in aspects):
        where = f"{', '.join(aspects)} on {list(example.row)}"
        raise RuntimeError(f"the prover is wrong: no difference in {where}, please report this")
    return example


def _example(case: Case, box: Box) -> Counterexample:
    row = row_in(case.cells, box)
    (values,) = decode_rows(case.program, [row], case.book)
    answers = evaluate(case.program, values), run_reading(case.reading, row)
    return Counterexample(tuple(row), *answers, values=tuple(values) if case.program.kinds else None)


def _shows(case: Case, aspect: Aspect, finding: Finding) -> bool:
    if not isinstance(finding, Counterexample):
        return False
    return differs(case.program, case.reading, aspect, finding.source, finding.target)


def _decide_trees(case: Case, a: StepDecision, b: StepDecision) -> dict[Aspect, Finding]:
    """All aspects at once first: an artifact that was emitted is equal in all of them, and that is one walk."""
    keys = _keys(b)
    half = clock_of(case.budget_seconds / 2)
    every = _search_within(case, partial(_tree_difference, case, half, a, b, partial(_everything_of, keys)), *keys)
    if isinstance(every, ProvedEqual):
        return dict.fromkeys(keys, every)
    return {
        aspect: every
        if _shows(case, aspect, every)
        else _search_within(case, partial(_tree_difference, case, case.clock, a, b, key), aspect)
        for aspect, key in keys.items()
    }


def _keys(artifact: StepDecision) -> Keys:
    """What counts of an outcome, aspect by aspect, as far as the artifact says it for all of its outcomes."""
    keys: Keys = {"labels": lambda outcome: outcome.winner}
    outcomes = [step for step in artifact.steps if isinstance(step, Outcome)]
    if all(outcome.probabilities is not None for outcome in outcomes):
        keys["probabilities"] = lambda outcome: outcome.probabilities
    if all(outcome.leaf is not None for outcome in outcomes):
        keys["leaf"] = lambda outcome: outcome.leaf
    return keys


def _everything_of(keys: Keys, outcome: Outcome) -> Key:
    return tuple(key(outcome) for key in keys.values())


def _tree_difference(
    case: Case, clock: Clock, a: StepDecision, b: StepDecision, key: Callable[[Outcome], Key]
) -> Box | None:
    graph = Graph(case.cells, clock)
    row = find_difference(graph, add_decision(graph, a, key), add_decision(graph, b, key))
    return None if row is None else _whole_row(case, row)


def _whole_row(case: Case, row: Box) -> Box:
    """A cell for every feature: cell 0 for those a search did not name."""
    return {feature: row.get(feature, 1) for feature in range(len(case.program.features))}


def _decide_rule_sets(case: Case, a: PointDecision, b: PointDecision) -> dict[Aspect, Finding]:
    """Sums of points, compared exactly; labels follow where the sums differ by the same for all classes."""
    sums: tuple[Sum, Sum] = {}, {}
    if not _same_terms(a, b):  # the same points for the same conditions differ by nothing
        try:
            sums = sum_of(case.cells, case.clock, a), sum_of(case.cells, case.clock, b)
        except (OutOfTime, RecursionError):
            return {"labels": NoDecision(f"the points were not written out within {case.budget_seconds:g} seconds")}
    left = minus(*sums)
    findings: dict[Aspect, Finding] = {}
    if b.says_scores:
        findings["scores"] = _search_within(case, partial(_nonzero, case, left), "scores")
        if isinstance(findings["scores"], ProvedEqual):
            left = {}  # it was shown to be zero on every row, however it is written
    seen = against_first(len(case.program.classes))
    difference = combine(left, seen)
    if b.scale is not None and a.scale is not None:
        logits, scales = difference, (a.scale, b.scale)
        if a.scale != b.scale:
            seen_by = [_times(seen, 2 ** (max(scales) - scale)) for scale in scales]
            logits = minus(*(combine(each, factors) for each, factors in zip(sums, seen_by, strict=True)))
        findings["probabilities"] = _search_within(case, partial(_nonzero, case, logits), "probabilities")
    if a.bands or b.bands:
        findings |= _decide_bands(case, a, b, difference)
    return {
        "labels": _search_within(case, partial(_other_label, case, a, b, difference), "labels"),
        **findings,
        **_decide_written(case, a, b),
    }


def _decide_bands(case: Case, a: PointDecision, b: PointDecision, difference: Sum) -> dict[Aspect, Finding]:
    """Constants by lead: where the points are the same, a row is searched for at each lead whose constants differ."""
    if not b.bands and b.scale is None:
        return {}  # it gives none, or the same for every row
    try:
        apart = _nonzero(case, difference)
    except (OutOfTime, RecursionError):
        return {"probabilities": NoDecision(f"not decided within {case.budget_seconds:g} seconds")}
    if apart is None and a.bands and b.bands:
        return {"probabilities": _search_within(case, partial(_other_band, case, a, b), "probabilities")}
    for row in (apart or {}, *_random_boxes(case)):
        example = _example(case, _whole_row(case, row))
        if _shows(case, "probabilities", example):
            return {"probabilities": example}
    return {"probabilities": NoDecision("bands of other points, or on one side only; no row that differs was found")}


def _random_boxes(case: Case) -> Iterator[Box]:
    """Rows to try where no search decides: one cell per feature, the same ones every time."""
    choose = random.Random(0)  # noqa: S311 - no secret
    for _ in range(ROWS_TRIED):
        yield {f: 1 << choose.randrange(len(starts) + 2) for f, starts in enumerate(case.cells.starts)}


def _other_band(case: Case, a: PointDecision, b: PointDecision) -> Box | None:
    """A box in which the bands of two rule sets with the same points give different constants."""
    for c, least, most in unequal_leads(a.bands, b.bands, largest_lead(a)):
        box = _other_label(case, won_by(a, c, least), won_by(a, c, most + 1))
        if box is not None:
            return box
    return None


def _same_terms(a: PointDecision, b: PointDecision) -> bool:
    """Whether two rule sets are written alike, term by term, and their points are worth the same."""
    if a.bias != b.bias or a.scale != b.scale or len(a.terms) != len(b.terms):
        return False
    pairs = zip(a.terms, b.terms, strict=True)
    return all(points == others and same_parts(one, other) for (one, points), (other, others) in pairs)


def _times(rows: list[tuple[int, ...]], factor: int) -> list[tuple[int, ...]]:
    return [tuple(factor * entry for entry in row) for row in rows]


def _nonzero(case: Case, total: Sum) -> Box | None:
    row = nonzero_row(case.cells, case.clock, total)
    return None if row is None else _whole_row(case, row)


def _other_label(
    case: Case, a: StepDecision | PointDecision, b: StepDecision | PointDecision, difference: Sum | None = None
) -> Box | None:
    """A box in which labels differ. `difference` is what two rule sets differ by, as far as labels can see."""
    classes = len(case.program.classes)
    if classes == 1:
        return None
    left, apart = None, {}
    if difference is not None and {side.tie_to for side in (a, b) if isinstance(side, PointDecision)} == {"lower"}:
        row = nonzero_row(case.cells, case.clock, difference)
        if row is None:
            return None
        left = adder_of(difference, classes - 1, "lower")
        apart = {feature: row.get(feature, 1) for atoms in difference for feature, _ in atoms}
    sides = (_side(case, a, classes), _side(case, b, classes))
    with suppress(OutOfTime):
        return find_other_label(case.cells, StepsWithin(FEW_BOXES, case.clock), *sides, left)
    match sides:
        case Adder() as one, Adder() as other:
            box = walk_to_other_label(case.cells, case.clock, one, other, apart)
            if box is not None:
                return box
    return find_other_label(case.cells, case.clock, *sides, left)


def _side(case: Case, decision: StepDecision | PointDecision, classes: int) -> Side:
    match decision:
        case StepDecision():
            graph = Graph(case.cells, case.clock)
            return Walker(graph, add_decision(graph, decision, lambda outcome: outcome.winner))
        case PointDecision():
            return adder_of(sum_of(case.cells, case.clock, decision), classes, decision.tie_to)
        case _:
            assert_never(decision)
