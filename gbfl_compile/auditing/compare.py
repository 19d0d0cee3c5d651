"""Compares what was read of a deployed item with the approved program: a proof or, failing that, the differences."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.auditing.changes import NO_CLAUSE, by_outcome, changes
from gbfl_compile.auditing.diagnose import explain_reading
from gbfl_compile.auditing.diagnose.slip import unlikeness, with_ways
from gbfl_compile.auditing.region import Frame, both_answers, frame_of, region_of, row_in, rows_around
from gbfl_compile.auditing.story import RowMoves
from gbfl_compile.auditing.verdict import AuditVerdict, Change, DeployedVerdict, Region
from gbfl_compile.checking.artifact import ArtifactProof, ProofAnswer, ReadArtifact, prove_readings
from gbfl_compile.checking.prove import BUDGET_SECONDS
from gbfl_compile.checking.prove.cells import cell_at
from gbfl_compile.checking.prove.findings import Counterexample, Finding, NoDecision
from gbfl_compile.checking.reading.evaluate import reading_labels
from gbfl_compile.checking.reading.from_program import align, as_reading
from gbfl_compile.checking.reading.nodes import Reading, Unread
from gbfl_compile.checking.run import ConsistencyPair
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import Matrix, evaluate_many
from gbfl_compile.ir.kinds import Codebook, encode_row
from gbfl_compile.ir.nodes import Label, Program, leaf

if TYPE_CHECKING:
    from gbfl_compile.learning.consistency import Consistency, Triplets

VERDICTS: Mapping[ProofAnswer, AuditVerdict] = {
    "proved": "equal",
    "read as equal": "equal",
    "counterexample": "different",
    "other names": "different",
    "other reasons": "different",
    "unread": "unread",
    "undecided": "not run",
    "not run": "not run",
}
"""What a proof says about the thing deployed."""


@dataclass(frozen=True, slots=True)
class AuditInput:
    """The approved program, and what an audit may use beside it."""

    program: Program
    """Its classes are the labels as they are deployed: see `with_labels`."""
    data: Matrix | None = None
    triplets: Triplets | None = None
    budget_seconds: float = BUDGET_SECONDS
    columns: dict[str, str] = field(default_factory=dict)
    """Feature -> column, where a table has other names."""
    time_limit: float = 60.0
    """Seconds that running a deployed thing may take."""
    holds_nan: bool = True
    """Whether columns of doubles may hold NaN, as far as their engine lets them."""
    names: tuple[Label, ...] | None = None
    """The approved program's own names of the classes, where labels are deployed otherwise."""
    book: Codebook | None = None
    """The codes of the texts in `data`; None where they are the program's own."""
    mends: bool = True
    """Whether an edit that mends a different text is looked for."""

    @property
    def class_names(self) -> tuple[Label, ...]:
        """The approved names: columns such as `p_yes` are called by them, however labels are deployed."""
        return self.program.classes if self.names is None else self.names


class Prover(Protocol):
    """Proves readings equal to a program, over the rows that can occur."""

    def __call__(self, program: Program, readings: tuple[Reading, ...], budget_seconds: float, /) -> ArtifactProof:
        """The proof."""

    def possible(self, reading: Reading, rows: Matrix) -> Matrix:
        """The rows in the form in which the deployed item can get them."""


@dataclass(frozen=True, slots=True)
class OverDoubles:
    """Every row of doubles can occur."""

    def __call__(self, program: Program, readings: tuple[Reading, ...], budget_seconds: float, /) -> ArtifactProof:
        """The proof."""
        return prove_readings(program, readings, budget_seconds)

    def possible(self, reading: Reading, rows: Matrix) -> Matrix:
        """All of them."""
        del reading
        return rows


Elsewhere: TypeAlias = Callable[[Program], tuple[Reading, ...]]
"""What is read where another program than the approved one answers the rows that do not come out."""


def compare_readings(
    deployed: DeployedVerdict,
    inputs: AuditInput,
    artifact: ReadArtifact,
    prove: Prover | None = None,
    elsewhere: Elsewhere | None = None,
) -> DeployedVerdict:
    """The deployed item with its proof and, if it is different, with what changed and which rows are affected.

    Where some rows do not come out, they are read as the approved program answers them, and `elsewhere` reads again.
    """
    program, readings = inputs.program, artifact.readings
    try:
        matched = tuple(align(reading, program.features, program.classes, program.kinds) for reading in readings)
    except BadInput as error:
        proof = ArtifactProof("other names", str(error))
        return replace(deployed, verdict="different", reason=str(error), proof=proof)
    prove = prove or OverDoubles()
    proof = prove(program, matched, inputs.budget_seconds)
    if proof.answer == "proved" and artifact.tier != "proved":
        proof = replace(proof, answer=artifact.tier, reason=artifact.not_strict)
    digest = next((reading.digest for reading in readings if reading.digest is not None), None)
    verdict = replace(deployed, proof=proof, carried_digest=digest, verdict=VERDICTS[proof.answer], reason=proof.reason)
    verdict = replace(verdict, readings=matched)
    pair = first_counterexample(matched, proof)
    if pair is None:
        return verdict
    reading, counterexample = pair
    frame = frame_of(program, reading, inputs.book)
    return replace(
        verdict,
        changes=_told_changes(frame, counterexample, prove, elsewhere),
        region=_possible_region(frame, counterexample, prove),
        moves=None if inputs.data is None else row_moves(_frame_to_count(inputs, matched, frame), inputs.data),
        consistency=None if inputs.triplets is None else consistency_pair(frame, inputs.triplets),
    )


def _frame_to_count(inputs: AuditInput, readings: Sequence[Reading], frame: Frame) -> Frame:
    """The side on which rows of data are counted: their missing values are NULL, and none is NaN."""
    if not frame.reading.nan_features:
        return frame
    as_null = next((reading for reading in readings if not reading.nan_features), None)
    return frame if as_null is None else frame_of(inputs.program, as_null, inputs.book)


def _possible_region(frame: Frame, shown: Counterexample, prove: Prover) -> Region:
    """The region with a row that can occur: a plain value where a column can hold it, or else the proof's own."""
    shown = _without_missing(frame, shown, prove)
    region = region_of(frame, shown)
    if region.beside is not None:
        return region
    program, cells = frame.program, frame.cells
    own = row_in(frame, shown)
    plain = encode_row(program, list(region.row.values()), frame.book)
    (held,) = prove.possible(frame.reading, np.array([plain], dtype=np.float64)).tolist()
    row = [
        rounded if cell_at(cells, feature, rounded) == cell_at(cells, feature, value) else exact
        for feature, (value, rounded, exact) in enumerate(zip(plain, held, own, strict=True))
    ]
    nan = {program.features[feature] for feature in frame.reading.nan_features or ()}
    named = zip(program.features, frame.values(row), strict=True)
    values = {n: None if isinstance(v, float) and math.isnan(v) and n not in nan else v for n, v in named}
    return replace(region, row=values)


def _without_missing(frame: Frame, shown: Counterexample, prove: Prover) -> Counterexample:
    """A row that shows the same difference and has every value, where there is one: NULL is then not the cause."""
    row = row_in(frame, shown)
    if shown.source.label == shown.target.label or not np.isnan(row).any():
        return shown
    rows = prove.possible(frame.reading, rows_around(frame, row))
    rows = rows[~np.isnan(rows).any(axis=1)]
    approved, deployed = evaluate_many(frame.program, rows, frame.book).labels, reading_labels(frame.reading, rows)
    places = np.flatnonzero((approved == shown.source.label) & (deployed == shown.target.label))
    return both_answers(frame, rows[places[0]].tolist()) if len(places) else shown


PROOF_SECONDS = 1.0
"""That deciding whether one slip explains a difference may take."""

TWO_SLIPS = 2
NAMED = re.compile(r"^(points of )?clause \d+|^to start with")


def _told_changes(
    frame: Frame, shown: Counterexample, prove: Prover, elsewhere: Elsewhere | None = None
) -> tuple[Change, ...]:
    """What changed: the one slip that was proved to explain the labels, or else what the two sides do not share."""
    program, reading = frame.program, frame.reading
    if shown.source.label == shown.target.label:
        return changes(frame, shown)
    if program.kinds:
        pieces = changes(frame, shown)
        if len(pieces) == 1 and NAMED.search(pieces[0].where):
            return pieces  # which says what was done to a set of words or a day

    def decide(other: Program) -> Finding:
        try:
            beside = reading if elsewhere is None else _read_beside(frame, other, elsewhere)
            ((_, proof),) = prove(other, (beside,), PROOF_SECONDS).places
        except (ValueError, Unread):
            return NoDecision("the prover did not answer")
        return proof.labels

    rows = prove.possible(reading, rows_around(frame, row_in(frame, shown)))
    if elsewhere is not None:
        return _changes_of_rows(frame, shown, _coming_out(frame, rows, elsewhere), decide)
    slips = explain_reading(frame, rows, decide)
    if not slips:
        return changes(frame, shown)
    is_clause_for_clause = len(slips[0].program.clauses) == len(program.clauses)
    if is_clause_for_clause and unlikeness(frame.cells, as_reading(slips[0].program, frame.book), reading):
        pieces = changes(frame, shown)  # no program with one slip is written like this: two slips may be
        is_same = len(pieces) > 1 and len({piece.where for piece in pieces}) == 1  # one clause in pieces of its own
        listed = {(piece.where, piece.deployed) for piece in pieces}
        for slip in slips:  # one of the pieces is the difference; of the other the columns hold no value that shows it
            if len(pieces) > 1 and all((change.where, change.deployed) in listed for change in slip.changes):
                return with_ways(frame, slip.program, slip.changes)
        for slip in slips:  # the same clause, in which the slip says more than a cut does
            if {piece.where for piece in pieces} == {change.where for change in slip.changes}:
                return with_ways(frame, slip.program, slip.changes)
        if 0 < len(pieces) <= TWO_SLIPS and not is_same and all(NAMED.search(piece.where) for piece in pieces):
            return pieces
    return with_ways(frame, slips[0].program, slips[0].changes)


def _changes_of_rows(
    frame: Frame, shown: Counterexample, rows: Matrix, decide: Callable[[Program], Finding]
) -> tuple[Change, ...]:
    """The same where some rows do not come out: the conditions that leave them out are none of the program's."""
    slips = explain_reading(frame, rows, decide)
    if slips:
        return with_ways(frame, slips[0].program, slips[0].changes)
    listed = changes(frame, shown)
    return tuple(change for change in listed if change.where != NO_CLAUSE) or tuple(by_outcome(frame.program, shown))


def _read_beside(frame: Frame, other: Program, elsewhere: Elsewhere) -> Reading:
    """What is read where another program answers the rows that do not come out."""
    program = frame.program
    found = [align(each, program.features, program.classes, program.kinds) for each in elsewhere(other)]
    beside = next((each for each in found if each.nan_features == frame.reading.nan_features), None)
    if beside is None or beside.book != frame.reading.book:
        raise Unread("it reads otherwise beside another program")
    return beside


def _coming_out(frame: Frame, rows: Matrix, elsewhere: Elsewhere) -> Matrix:
    """The rows that come out: their labels do not depend on what answers the others."""
    program = frame.program
    try:
        labels = [
            reading_labels(_read_beside(frame, _always(program, place), elsewhere), rows)
            for place in range(len(program.classes))[:2]
        ]
    except Unread:
        return rows
    return rows[labels[0] == labels[-1]] if len(labels) == 2 else rows


def _always(program: Program, place: int) -> Program:
    """A program over the same clauses, which have the words and with them their codes, that answers one class."""
    return replace(program, decision=leaf(*(float(each == place) for each in range(len(program.classes)))))


def weaker_without_run(verdict: DeployedVerdict) -> DeployedVerdict:
    """What a general reader read as equal is equal only together with a run."""
    read_only = verdict.proof is not None and verdict.proof.answer == "read as equal" and verdict.execution is None
    if verdict.verdict != "equal" or not read_only:
        return verdict
    return replace(verdict, verdict="not run", reason=f"read as equal, but not run; {verdict.reason}")


def first_counterexample(readings: Sequence[Reading], proof: ArtifactProof) -> tuple[Reading, Counterexample] | None:
    """Labels before anything else: what people want to know is whether the class changed."""
    for aspects in (("labels",), None):
        for reading, (_, answer) in zip(readings, proof.places, strict=False):
            for aspect, finding in answer.findings.items():
                if isinstance(finding, Counterexample) and (aspects is None or aspect in aspects):
                    return reading, finding
    return None


def row_moves(frame: Frame, rows: Matrix) -> RowMoves:
    """How many of the rows get another class, and from which to which."""
    return moves_between(evaluate_many(frame.program, rows, frame.book).labels, reading_labels(frame.reading, rows))


def moves_between(approved: NDArray[np.object_], deployed: NDArray[np.object_]) -> RowMoves:
    """The rows on which two columns of labels differ, counted by the classes they move between."""
    pairs = zip(approved.tolist(), deployed.tolist(), strict=True)
    counts = Counter((a, b) for a, b in pairs if type(a) is not type(b) or a != b)
    moves = tuple((a, b, count) for (a, b), count in counts.most_common())
    return RowMoves(sum(counts.values()), len(approved), moves)


def consistency_pair(frame: Frame, triplets: Triplets) -> ConsistencyPair:
    """Local consistency by the program's labels and by the artifact's."""
    from gbfl_compile.learning.consistency import consistency

    def measure(labels: Callable[[Matrix], NDArray[np.object_]]) -> Consistency:
        on_x, on_pp, on_pn = (labels(rows) for rows in (triplets.x, triplets.pp, triplets.pn))
        return consistency(triplets.label, on_x, on_pp, on_pn, triplets.has_pp, triplets.has_pn)

    source = measure(lambda rows: evaluate_many(frame.program, rows, frame.book).labels)
    return ConsistencyPair(source, measure(lambda rows: reading_labels(frame.reading, rows)))
