"""Witnesses alone, run natively: of the slips that really differ, how many they tell. What a proof must trust is theirs.

GBFL_MUTANTS=2000 pytest tests/check/test_kill_rate.py -s     prints the counts
"""

import math
import random
import sys

import pytest

from gbfl_compile.backends import backend, emit
from gbfl_compile.check.artifact_proof import prove_artifact
from gbfl_compile.check.equivalence import compare, expectation
from gbfl_compile.errors import BadInput, CannotRun
from tests.check import onnx_edits, python_edits, sql_edits
from tests.check.reader_artifacts import count, findings, random_artifact
from tests.check.test_readers_mutated import verdict
from tests.check.test_readers_sql import random_program

TOLD = {"python": 0.995, "sql:sqlite": 0.995, "onnx": 0.9}
"""The least share told. In float32 graphs an interval may hold no float32 at all, and no row is made for a slip there."""
MUTANTS = count("GBFL_MUTANTS", 60)


def asks_for_missing(row):
    return any(math.isnan(value) for value in row)


@pytest.mark.parametrize("target", ["python", "onnx"])
def test_witnesses_alone_tell_nearly_every_slip(target, tmp_path):
    choose = random.Random(11)
    edits = {"python": python_edits, "onnx": onnx_edits}[target]
    different = missed = missed_missing = 0
    for number in range(MUTANTS):
        program, artifact = random_artifact(choose, target)
        files, _ = edits.mutated(choose, artifact.files)
        found = findings(program, target, files)
        if verdict(found) != "different":
            continue
        path = tmp_path / f"{number}{backend(target).extension}"
        path.write_bytes(next(iter(files.values())))
        try:
            ran = compare(expectation(program), backend(target).load(path))
        except (BadInput, CannotRun):
            continue
        different += 1
        if ran.verdict == "equal":
            missed += 1
            missed_missing += any(asks_for_missing(each[1].row) for each in found if isinstance(each, tuple))
    report(target, different, missed, missed_missing)


def test_witnesses_alone_tell_nearly_every_slip_in_sqlite(tmp_path):
    choose = random.Random(12)
    different = missed = missed_missing = tried = 0
    while tried < MUTANTS:
        program = random_program(choose, choose.choice(("tree", "list", "scorecard")))
        try:
            text = emit(program, "sql:sqlite", "m", {}).files["m.sql"].decode()
        except BadInput:
            continue
        slipped = sql_edits.mutated(choose, text, "sqlite")
        if slipped is None:
            continue
        tried += 1
        proof = prove_artifact(program, "sql:sqlite", {"m.sql": slipped.encode()})
        if proof.answer != "counterexample":
            continue
        (tmp_path / "m.sql").write_text(slipped, encoding="utf-8")
        try:
            ran = compare(expectation(program), backend("sql:sqlite").load(tmp_path / "m.sql"))
        except (BadInput, CannotRun):
            continue
        different += 1
        if ran.verdict == "equal":
            missed += 1
            missed_missing += asks_for_missing(proof.counterexample.row)
    report("sql:sqlite", different, missed, missed_missing)


def report(target, different, missed, missed_missing):
    sys.stderr.write(
        f"{target}: {different} slips differ, witnesses missed {missed}, {missed_missing} of them by NULL\n"
    )
    assert different > MUTANTS // 10
    assert missed_missing == 0
    assert missed <= (1 - TOLD[target]) * different + (1 if different < 200 else 0)
