"""Artifacts with one slip in them: refused, or shown a row on which they really differ, or really equal.

Whatever is read is run for real too: the row of a counterexample must give another answer there, and what is proved
must answer every witness as its source does.
"""

import math
import random

import numpy as np
import pytest

from gbfl_compile.check.readers import read
from gbfl_compile.check.second_opinion import rows_that_differ
from gbfl_compile.check.wide import as_reading
from gbfl_compile.check.witnesses import witnesses
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Scorecard
from tests.backends.c_programs import needs_a_compiler
from tests.check import c_edits, onnx_edits, python_edits
from tests.check.reader_artifacts import count, findings, random_artifact, said_by_c, said_by_onnx, said_by_python

WITNESSES = 150


def rounded(rows, files):
    """Rows as a float32 artifact is given them."""
    single = b"model_REAL_BITS = 32" in files.get("model.h", b"") or b'"float32"' in files.get("model.onnx", b"")
    if not single:
        return [list(row) for row in rows]
    with np.errstate(over="ignore"):
        return np.array(rows, dtype=np.float64).astype(np.float32).astype(np.float64).tolist()


def expected(program, rows):
    answers = [evaluate(program, row) for row in rows]
    scored = isinstance(program.decision, Scorecard)
    return [(answer.label, answer.probabilities, answer.scores if scored else answer.leaf) for answer in answers]


def alike(one, other):
    """Two answers, of which the second may leave a part out; a rule set's probabilities go through exp."""
    bound = 1e-12 if isinstance(one[2], tuple) else 0.0
    near = all(math.isclose(a, b, rel_tol=0, abs_tol=bound) for a, b in zip(one[1], other[1], strict=True))
    return one[0] == other[0] and near and (other[2] is None or one[2] == other[2])


def some_witnesses(program):
    rows = witnesses(program)
    return rows[:: max(1, len(rows) // WITNESSES)].tolist()


def check_by_running(program, target, files, found, run):
    """What was found of a mutant holds when it is run."""
    if set(found) == {"proved"}:
        rows = rounded(some_witnesses(program), files)
        said = run(rows)
        assert said is None or all(map(alike, expected(program, rows), said)), "proved equal, and differs when run"
        return
    for _, example in (each for each in found if isinstance(each, tuple)):
        rows = rounded([example.row], files)
        said = run(rows)
        assert said is None or not alike(expected(program, rows)[0], said[0]), (example, "differs in the proof alone")


def agreed_by_z3(program, target, files):
    """What is proved equal, another prover calls equal too (labels, on raw floating point)."""
    pytest.importorskip("z3")
    for reading in read(target, files):
        assert rows_that_differ(as_reading(program), reading) is False


def verdict(found):
    for kind in ("unread", "names", "undecided"):
        if kind in found:
            return kind
    return "proved" if set(found) == {"proved"} else "different"


@pytest.mark.parametrize("target", ["python", "onnx"])
def test_a_slip_is_refused_or_shown_or_makes_no_difference(target):
    choose = random.Random(4)
    edits = {"python": python_edits, "onnx": onnx_edits}[target]
    second_opinions = count("GBFL_MUTANTS_BY_Z3", 8)
    seen = dict.fromkeys(("unread", "names", "undecided", "proved", "different"), 0)
    for _ in range(count("GBFL_MUTANTS", 100)):
        program, artifact = random_artifact(choose, target)
        files, what = edits.mutated(choose, artifact.files)
        found = findings(program, target, files)
        seen[verdict(found)] += 1
        if verdict(found) not in ("proved", "different"):
            continue

        def run(rows, program=program, files=files):
            return said_by_python(files, rows) if target == "python" else said_by_onnx(files, rows, program.features)

        if verdict(found) == "proved" and second_opinions:
            second_opinions -= 1
            agreed_by_z3(program, target, files)
        try:
            check_by_running(program, target, files, found, run)
        except AssertionError as error:
            raise AssertionError(f"{what}: {error}") from error
    assert seen["different"], seen
    assert not seen["undecided"], seen


@needs_a_compiler
def test_a_slip_in_c_is_refused_or_shown_or_makes_no_difference(tmp_path):
    choose = random.Random(5)
    seen = dict.fromkeys(("unread", "names", "undecided", "proved", "different"), 0)
    to_run, second_opinions = count("GBFL_MUTANTS_BUILT", 15), count("GBFL_MUTANTS_BY_Z3", 4)
    for number in range(count("GBFL_MUTANTS", 100)):
        program, artifact = random_artifact(choose, "c")
        files, what = c_edits.mutated(choose, artifact.files)
        found = findings(program, "c", files)
        seen[verdict(found)] += 1
        if verdict(found) in ("proved", "different") and to_run:
            to_run -= 1
            folder = tmp_path / str(number)
            folder.mkdir()
            _check_c_by_running(program, files, found, folder, what)
            if verdict(found) == "proved" and second_opinions:
                second_opinions -= 1
                agreed_by_z3(program, "c", files)
    assert seen["different"], seen
    assert not seen["undecided"], seen


def _check_c_by_running(program, files, found, folder, what):
    rows = some_witnesses(program) + [example.row for _, example in (each for each in found if isinstance(each, tuple))]
    rows = rounded(rows, files)
    said = said_by_c(files, rows, program, folder)
    if said is None:
        return  # it does not build, so it answers nothing
    wanted = expected(program, rows)
    winners = [program.classes.index(label) for label, _, _ in wanted]
    details = [detail for _, _, detail in wanted]
    right = {
        function: [a == b for a, b in zip(answers, winners if function.startswith("predict") else details, strict=True)]
        for function, answers in said.items()
    }
    if set(found) == {"proved"}:
        assert all(map(all, right.values())), f"{what}: proved equal, and differs when run"
    for reading, example in (each for each in found if isinstance(each, tuple)):
        row = rounded([example.row], files)[0]
        at = len(rows) - 1 - rows[::-1].index(row) if not any(map(math.isnan, row)) else None
        places = [place.removeprefix("model_") for place in reading.place.split(", ")]
        if at is None or set(places) == {"predict_proba"}:
            continue
        functions = {"explain": "detail", "score": "detail"}
        told = [right[functions.get(place, place)][at] for place in places if functions.get(place, place) in right]
        probabilities_only = example.source.label == example.target.label and (
            example.target.leaf in (None, example.source.leaf)
            and example.target.scores in (None, example.source.scores)
        )
        assert not all(told) or probabilities_only, f"{what}: said to differ, and does not when run"
