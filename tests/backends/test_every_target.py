"""Random programs with all kinds mixed: the definition, its batch form and every target that runs here agree."""

import math
from contextlib import ExitStack, closing
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from gbfl_compile.backends import backend, emit
from gbfl_compile.backends.sql.engines import DIALECTS
from gbfl_compile.backends.sql.run import read_script, run_values
from gbfl_compile.databases import availability, scratch
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.json import digest
from gbfl_compile.ir.kinds import codebook, encode_row
from tests.backends.javascript import answers_in_node, same
from tests.counts import FULL, count
from tests.word_programs import word_programs_with_rows

PROGRAMS = count("GBFL_KIND_PROGRAMS", 500 if FULL else 48)
FEATURES_OF_A_BUILD = ("python", "c", "onnx")
NEEDS = {"onnx": "onnxruntime"}
IN_PROCESS = ("sqlite", "duckdb", "datafusion")


@cache
def cases():
    """So many programs, each with rows that are easily mistaken for each other."""
    found = {}

    @settings(
        max_examples=4 * PROGRAMS,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(word_programs_with_rows(rows=12))
    def collect(case):
        program, rows = case
        found.setdefault((digest(program), repr(rows)), case)

    collect()
    assert len(found) >= PROGRAMS
    return list(found.values())[:PROGRAMS]


def assert_same(program, rows, found, target):
    """Labels `==`, and what else a target answers; probabilities of points within the bound that a check allows."""
    answers = [evaluate(program, row) for row in rows]
    assert found.labels.tolist() == [answer.label for answer in answers], (target, program, rows)
    if found.scores is not None:
        assert found.scores.tolist() == [list(answer.scores) for answer in answers], (target, program)
    if found.probabilities.shape[1]:
        bound = 0.0 if program.has_exact_probabilities else 1e-12
        expected = np.array([answer.probabilities for answer in answers])
        assert np.abs(found.probabilities - expected).max() <= bound, (target, program)


def test_the_batch_form_agrees():
    for program, rows in cases():
        matrix = np.array([encode_row(program, row, codebook(program)) for row in rows])
        assert_same(program, rows, evaluate_many(program, matrix), "evaluate_many")


@pytest.mark.parametrize("target", FEATURES_OF_A_BUILD)
def test_a_build_agrees(target, tmp_path):
    if target in NEEDS:
        pytest.importorskip(NEEDS[target])
    if target == "c" and backend("c").available().cannot_run is not None:
        pytest.skip(backend("c").available().cannot_run)
    for number, (program, rows) in enumerate(cases()):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, content in emit(program, target).files.items():
            (folder / name).write_bytes(content)
        predictor = backend(target).load(next(folder.glob(f"*{backend(target).extension}")))
        assert_same(program, rows, predictor.answer_rows(rows), target)


def test_javascript_agrees():
    pairs = [(emit(program, "js").files["model.js"], rows) for program, rows in cases()]
    for (program, rows), theirs in zip(cases(), answers_in_node(pairs), strict=True):
        assert same(program, theirs, rows), (program, rows)


def in_engine(dialect, tmp_path, most=None):
    """How many of the programs an engine answers as defined; what it cannot hold is refused when it is emitted."""
    if reason := availability(dialect):
        pytest.skip(reason)
    path, agreeing = tmp_path / "model.sql", 0
    with ExitStack() as stack:
        database = stack.enter_context(closing(scratch(dialect)))
        for program, rows in cases()[:most]:
            try:
                path.write_bytes(emit(program, f"sql:{dialect}").files["model.sql"])
            except BadInput:  # a text or a date that this engine cannot hold
                continue
            rows = [row for row in (finite(database, row) for row in rows) if "a\0" not in row]
            if rows:
                assert_same(program, rows, run_values(DIALECTS[dialect], read_script(path), database, rows), dialect)
            agreeing += 1
    return agreeing


def finite(database, row):
    """The row as the engine can hold it."""
    if database.holds_infinity:
        return row
    most = 1.7976931348623157e308
    return [math.copysign(most, value) if isinstance(value, float) and math.isinf(value) else value for value in row]


@pytest.mark.parametrize("dialect", IN_PROCESS)
def test_an_engine_in_this_process_agrees(dialect, tmp_path):
    assert in_engine(dialect, tmp_path) >= 0.8 * PROGRAMS
