"""Everything emitted is read back and proved equal, with every option; so are the same rules written differently."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbfl_compile.backends import emit
from gbfl_compile.checking.artifact import READERS, prove_artifact, read
from gbfl_compile.checking.prove import prove
from gbfl_compile.checking.prove.findings import ProvedEqual
from gbfl_compile.checking.prove.reasons import prove_reasons
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.json import digest
from gbfl_compile.ir.nodes import Scorecard
from tests.checking.reader_artifacts import KINDS, OPTIONS, findings, random_artifact
from tests.checking.respelling import random_program
from tests.checking.strict.c import slips as c_edits
from tests.checking.strict.onnx import edits as onnx_edits
from tests.checking.strict.python import edits as python_edits
from tests.counts import count
from tests.programs import programs

EDITS = {"python": python_edits, "c": c_edits, "onnx": onnx_edits}
TARGETS = tuple(EDITS)
SQL_OPTIONS = [
    {"outputs": outputs, "form": form, "table": "data"}
    for outputs in ("label", "label,probabilities", "label,reason", "label,probabilities,reason")
    for form in ("select", "view")
]


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=count("GBFL_READ_PROGRAMS", 40))
@given(data=st.data())
def test_what_is_emitted_is_read_back_and_proved(target, data):
    program = data.draw(programs())
    options = data.draw(st.sampled_from(OPTIONS[target]))
    try:
        artifact = emit(program, target, "model", options)
    except BadInput:
        return
    for reading in read(target, artifact.files):
        assert reading.digest == digest(program)
        assert reading.dtype == options.get("dtype", "float64")
        assert prove(program, reading).answer == "proved", reading.place
        assert isinstance(prove_reasons(program, reading), ProvedEqual | None)


@pytest.mark.parametrize("target", [*TARGETS, "sql:sqlite", "sql:duckdb"])
def test_random_programs_are_proved(target):
    """Trees, rule lists and rule sets of up to a dozen rules, in every option: GBFL_PROGRAMS=500 for more of them."""
    choose = random.Random(f"programs for {target}")
    wanted, answers = count("GBFL_PROGRAMS", 60), Counter()
    while answers.total() < wanted:
        kind = KINDS[answers.total() % len(KINDS)]
        program = random_program(choose, kind, choose.randint(1, 6), choose.randint(1, 12))
        options = choose.choice(OPTIONS.get(target) or SQL_OPTIONS)
        try:
            artifact = emit(program, target, "model", options)
        except BadInput:  # an option that this program cannot have
            continue
        proof = prove_artifact(program, target, artifact.files, options=artifact.options)
        answers[proof.answer] += 1
        assert proof.answer == "proved", (options, proof.reason)


@pytest.mark.parametrize("target", TARGETS)
def test_every_option_has_been_read(target):
    """Each combination of options at least once, with a tree and with a rule set, where the target takes it."""
    choose = random.Random(1)
    for options in OPTIONS[target]:
        for _ in range(1 if target == "c" else 3):
            program, artifact = random_artifact(choose, target, options)
            found = findings(program, target, artifact.files)
            assert set(found) == {"proved"}, (options, found)


@pytest.mark.parametrize("target", [target for target in TARGETS if target != "c"])  # C has tests of its own
def test_the_same_rules_said_otherwise_are_read_and_proved(target):
    choose = random.Random(2)
    for number in range(count("GBFL_RESPELLINGS", 60)):
        program, artifact = random_artifact(choose, target)
        files = EDITS[target].respelled(choose, artifact.files)
        assert set(findings(program, target, files)) == {"proved"}, (number, _why(target, files), files)


def _why(target, files):
    try:
        return [reading.place for reading in read(target, files)]
    except Unread as error:
        return str(error)


def test_every_way_of_answering_has_a_reading():
    choose = random.Random(3)
    for kernel in ("ifelse", "select", "bits"):
        program, artifact = random_artifact(choose, "c", {"kernel": kernel})
        places = {place for reading in read("c", artifact.files) for place in reading.place.split(", ")}
        scored = isinstance(program.decision, Scorecard)
        verbs = ("predict", "score") if scored else ("predict", "leaf")
        single = {"model_predict", "model_predict_proba", "model_explain"} | ({"model_score"} if scored else set())
        assert places == single | {f"model_{verb}_{way}" for verb in verbs for way in ("rows", "columns")}


def test_readers_are_the_second_opinion():
    """A reader that shared code with a backend would share its mistakes."""
    import ast
    from pathlib import Path

    import gbfl_compile.checking

    room = Path(gbfl_compile.checking.__file__).parent
    paths = [path for folder in ("strict", "general", "reading") for path in (room / folder).rglob("*.py")]
    assert {"choices.py", "lexer.py", "comparisons.py"} & {path.name for path in paths}
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert not name.startswith("gbfl_compile.backends"), path.name


def test_a_target_without_a_reader_is_refused_by_name():
    with pytest.raises(BadInput, match=f"there is one for {', '.join(READERS)}"):
        read("cobol", {})
