"""Probabilities by bands of the lead: wrong tables are refuted by a row, equal ones proved, judged by brute force."""

import math
import random
from dataclasses import replace

import pytest

from gbfl_compile.backends import emit
from gbfl_compile.backends.sql.engines import DIALECTS
from gbfl_compile.checking.artifact import read_artifact
from gbfl_compile.checking.prove import prove
from gbfl_compile.checking.prove.findings import Counterexample, NoDecision, ProvedEqual
from gbfl_compile.checking.reading.from_program import as_reading
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.witnesses import witnesses
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.nodes import Band, Clause, Interval, Program, Scorecard
from tests.checking.prove.brute_force import seen_by_brute_force
from tests.checking.respelling import mutated, random_program, respelled
from tests.counts import count

PAIRS = count("GBFL_BAND_PAIRS", 800)

BANDED = Program(
    ("age", "income"),
    ("no", "yes"),
    (Clause((Interval(0, 30.0),)), Clause((Interval(1, None, 2.0),)), Clause((Interval(0, 50.0), Interval(1, 1.0)))),
    Scorecard(
        (0, -2),
        ((0, 3), (0, 4), (0, -6)),
        2,
        ((Band(0, (0.6, 0.4)), Band(3, (0.8, 0.2))), (Band(0, (0.45, 0.55)), Band(3, (0.25, 0.75)))),
    ),
)


def with_bands(*bands):
    return replace(BANDED, decision=replace(BANDED.decision, bands=bands))


NO, YES = BANDED.decision.bands
WRONG = {
    "an edge moved up": with_bands(NO, (YES[0], replace(YES[1], least=6))),
    "an edge moved down": with_bands(NO, (YES[0], replace(YES[1], least=2))),
    "constants swapped": with_bands(
        NO, tuple(replace(a, probabilities=b.probabilities) for a, b in zip(YES, YES[::-1], strict=True))
    ),
    "classes swapped": with_bands(tuple(replace(b, probabilities=b.probabilities[::-1]) for b in NO), YES),
    "a last bit": with_bands(NO, (replace(YES[0], probabilities=(0.45, math.nextafter(0.55, 1.0))), YES[1])),
    "a band left out": with_bands(NO, YES[:1]),
    "no bands": with_bands(),
}


@pytest.mark.parametrize("slip", WRONG)
def test_a_wrong_table_is_refuted_by_a_row_that_shows_it(slip):
    proof = prove(BANDED, as_reading(WRONG[slip]))
    assert isinstance(proof.findings["labels"], ProvedEqual)
    assert isinstance(shown := proof.findings["probabilities"], Counterexample)
    assert shown.source.probabilities != shown.target.probabilities


def test_a_lead_that_no_row_has_makes_no_difference():
    assert prove(BANDED, as_reading(with_bands(NO, (*YES, Band(6, (0.5, 0.5)))))).answer == "proved"
    assert prove(BANDED, as_reading(with_bands((*NO, Band(5, (0.5, 0.5))), YES))).answer == "counterexample"


def test_bands_beside_labels_alone_are_not_said():
    reading = as_reading(BANDED)
    proof = prove(BANDED, replace(reading, decision=replace(reading.decision, bands=(), says_scores=False)))
    assert proof.answer == "proved"
    assert "probabilities" in proof.not_said


def test_the_prover_and_brute_force_agree_on_bands():
    """Undecided is allowed where points slipped, and then no aspect is called equal that is not."""
    choose = random.Random(5)
    refuted = 0
    for number in range(PAIRS):
        program = random_program(choose, "banded", features=choose.choice((1, 2)), most_clauses=5)
        equal = number % 2 == 0
        reading = respelled(choose, program) if equal else mutated(choose, program)
        proof = prove(program, reading)
        different = seen_by_brute_force(program, reading, proof.findings)
        assert not equal or proof.answer == "proved"
        for aspect, finding in proof.findings.items():
            if isinstance(finding, NoDecision):
                assert aspect == "probabilities"
                assert "scores" in different
                continue
            assert isinstance(finding, Counterexample if aspect in different else ProvedEqual), (aspect, finding)
        refuted += isinstance(proof.findings["probabilities"], Counterexample)
    assert refuted > PAIRS / 8


RUN = [name for name, dialect in DIALECTS.items() if dialect.not_run is None]

TARGETS = {
    "python": ("python", {}),
    "c": ("c", {}),
    "c, select": ("c", {"kernel": "select"}),
    "c, bits, float32": ("c", {"kernel": "bits", "dtype": "float32"}),
    "c, one row at a time": ("c", {"layout": "arduino"}),
    "onnx": ("onnx", {}),
    "onnx, logic, reason": ("onnx", {"lowering": "logic", "reason": "yes"}),
    "onnx, float32, columns": ("onnx", {"dtype": "float32", "inputs": "columns"}),
    **{f"sql, {name}": (f"sql:{name}", {"outputs": "label,probabilities,score"}) for name in RUN},
    **{
        f"sql, {name}, expression": (f"sql:{name}", {"form": "expression", "outputs": "label,probabilities"})
        for name in ("sqlite", "postgres")
    },
    "sql, view": ("sql:postgres", {"form": "view", "table": "data", "outputs": "label,probabilities"}),
    "sql, table": ("sql:duckdb", {"form": "table", "table": "data", "outputs": "label,probabilities,reason"}),
    "sql, dbt": ("sql:duckdb", {"form": "dbt", "table": "data"}),
    "sql, macro": ("sql:duckdb", {"form": "macro", "outputs": "label,probabilities"}),
}


@pytest.mark.parametrize("how", TARGETS)
def test_what_is_emitted_is_proved_and_what_is_emitted_from_a_wrong_table_is_not(how):
    target, options = TARGETS[how]
    choose = random.Random(6)
    for _ in range(PAIRS // 40):
        program = random_program(choose, "banded")
        readings = read_artifact(target, emit(program, target, "model", options).files, program, options).readings
        proofs = [prove(program, reading) for reading in readings]
        assert {proof.answer for proof in proofs} == {"proved"}
        assert all("probabilities" in proof.findings for proof in proofs)
    for wrong in WRONG.values():
        files = emit(wrong, target, "model", options).files
        try:
            readings = read_artifact(target, files, BANDED, options).readings
        except Unread:
            continue
        for reading in readings:
            assert isinstance(prove(BANDED, reading).findings["probabilities"], Counterexample)


def test_witnesses_have_every_lead_at_which_a_band_begins_and_one_less():
    leads = {1: set(), 0: set()}
    scores = evaluate_many(BANDED, witnesses(BANDED)).scores
    for no, yes in scores.tolist():
        leads[int(yes > no)].add(abs(yes - no))
    every = evaluate_many(BANDED, [[a, b] for a in (20.0, 40.0, 60.0) for b in (0.0, 1.5, 3.0)]).scores.tolist()
    possible = {c: {abs(yes - no) for no, yes in every if (yes > no) == c} for c in (0, 1)}
    for c in (0, 1):
        assert leads[c] >= possible[c] & {2, 3}
