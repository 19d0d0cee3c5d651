"""Readers given broken artifacts: they refuse or read, and never do anything else; nothing of an artifact is run.

What is read is decided, and what is proved in spite of what was done to it answers as its source when it is run.

GBFL_CORRUPTIONS=100000 pytest tests/checking/test_corrupted.py -s     so many in all; prints the counts
"""

import random
import re
import sys
import time
from collections import Counter

import pytest

from gbfl_compile.backends import emit
from gbfl_compile.checking.artifact import prove_readings, read, read_artifact
from gbfl_compile.checking.reading.nodes import Reading, Unread
from gbfl_compile.checking.run import differing_rows
from gbfl_compile.checking.witnesses import witnesses
from gbfl_compile.databases import scratch
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.batch import evaluate_many
from tests.backends.c.programs import needs_a_compiler
from tests.checking.mutants import Mutant, loaded, report
from tests.checking.reader_artifacts import KINDS, random_artifact
from tests.checking.respelling import random_program
from tests.checking.test_mutated import as_given
from tests.counts import count
from tests.fuzz.mutations import broken_bytes

SHARE = {"python": 0.3, "onnx": 0.3, "c": 0.2, "sql:sqlite": 0.1, "sql:duckdb": 0.1}
"""Of all corrupted artifacts."""

MOST_RUN = count("GBFL_CORRUPTIONS_RUN", 300)
"""So many a target are run, of those that are proved."""

SLOWEST = 20.0
"""Seconds for one of these small artifacts, on a machine that has other things to do."""


def sound_artifact(choose, target):
    """A random program and the files of its artifact."""
    if not target.startswith("sql:"):
        program, artifact = random_artifact(choose, target)
        return program, dict(artifact.files)
    while True:
        program = random_program(choose, choose.choice(KINDS))
        try:
            return program, dict(emit(program, target, "model", {}).files)
        except BadInput:
            continue


@pytest.mark.parametrize("target", [pytest.param(t, marks=needs_a_compiler) if t == "c" else t for t in SHARE])
def test_a_broken_artifact_is_refused_or_decided_and_nothing_else(target, tmp_path):
    choose = random.Random(6)
    database = scratch(target.removeprefix("sql:")) if target.startswith("sql:") else None
    seen = Counter()
    for number in range(int(count("GBFL_CORRUPTIONS", 1_500) * SHARE[target])):
        if number % 50 == 0:
            artifacts = [sound_artifact(choose, target) for _ in range(3)]
        program, files = choose.choice(artifacts)
        name = choose.choice([*files, *(name for name in files if name.startswith("model."))])
        sound, files = files, {**files, name: broken_bytes(choose, files[name])}
        began = time.monotonic()
        try:
            readings = read_artifact(target, files, program).readings
        except Unread:
            seen["unread"] += 1
        else:
            assert all(isinstance(reading, Reading) for reading in readings)
            proof = prove_readings(program, readings)
            seen[proof.answer] += 1
            assert proof.answer != "undecided", proof
            can_run = outputs_in_order(files) == outputs_in_order(sound)  # they are run by place and read by name
            if proof.answer == "proved" and can_run and seen["proved"] <= MOST_RUN:
                (tmp_path / str(number)).mkdir()
                assert_answers_as_its_source(program, target, files, tmp_path / str(number), database)
        assert time.monotonic() - began < SLOWEST
    report(f"{target}: {dict(seen)}")
    assert seen["proved"], "every artifact was refused: the test breaks too much to say anything"


def outputs_in_order(files):
    """In SQL: the names of the output columns as they appear."""
    return re.findall(rb'AS ["`](label|leaf|p_\w+|score_\w+)["`]', files.get("model.sql", b""))


def assert_answers_as_its_source(program, target, files, folder, database):
    """Run for real, if its engine still takes it."""
    predictor = loaded(Mutant(program, target, files, "", files.get("model.sql", b"")), folder, database)
    if predictor is None:
        return
    rows = witnesses(program)
    rows = rows[:: max(1, len(rows) // 100)]
    rows = as_given(rows, predictor)
    expected = evaluate_many(program, rows)
    for way in (predictor.answer, *predictor.other_ways.values()):
        try:
            assert not differing_rows(program.has_exact_probabilities, expected, way(rows)).any(), files
        except CannotRun:
            return
        except BadInput as error:  # its header says something else than its text, and nobody could run that
            assert not any(w in str(error) for w in ("disagree", "differently", "functions say")), files  # noqa: PT017
            return


ARMED = """
import sys
class Trap:
    def __class_getitem__(cls, item): raise SystemExit(99)
sys.exit(98)
"""


def test_nothing_of_a_module_is_run(capsys):
    """Not its top level, not its decorators, not its defaults."""
    _, artifact = random_artifact(random.Random(7), "python")
    source = artifact.files["model.py"].decode()
    before = set(sys.modules)
    for hostile in (
        f"{ARMED}\n{source}",
        source.replace("def predict(row):", "@print\ndef predict(row):"),
        source.replace("def predict(row):", "def predict(row=print('run')):"),
        source.replace("CLASSES = (", "CLASSES = (print('run'),"),
        source.replace("def predict(row):", "def predict(row: print('run')):"),
        source + "\nprint('run')\n",
        source.replace("import math as _math", "import antigravity as _math"),
    ):
        assert hostile != source
        with pytest.raises(Unread):
            read("python", {"model.py": hostile.encode()})
    assert capsys.readouterr().out == ""
    assert not {"antigravity"} & (set(sys.modules) - before)


@pytest.mark.parametrize("target", ["python", "c", "onnx"])
def test_nothing_and_too_much_are_refused(target):
    for files in ({}, {"model.py": b""}, {"model.onnx": b""}, {"model.c": b""}, {"a": b"", "b": b""}):
        with pytest.raises(Unread):
            read(target, files)
    with pytest.raises(Unread, match="bytes"):
        read(target, {"model.py": bytes(65 * 2**20)})
