"""Artifacts with one condition on words edited, in every target: refused, refuted, or equal, and then z3 says so too."""

import random
import re
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gbfl_compile.backends import backend, emit
from gbfl_compile.checking.artifact import prove_artifact
from gbfl_compile.checking.run import compare, expectation
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.validate import validate
from tests.checking.prove.second_opinion import programs_differ
from tests.counts import FULL, count
from tests.word_programs import CHURN, with_one_edit, word_programs

pytest.importorskip("z3")

EDITS = count("GBFL_WORD_EDITS", 2000 if FULL else 80)
ENGINES = ("sqlite", "duckdb", "postgres", "mariadb", "clickhouse", "spark", "datafusion")
TARGETS = ("python", "c", "js", "onnx", *(f"sql:{engine}" for engine in ENGINES))


def edited_pairs(most):
    """Programs on words, and each with one condition edited: texts dropped, added, re-cased, padded, bounds moved."""
    pairs = []

    @settings(
        max_examples=most,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def collect(data):
        program = data.draw(word_programs())
        other = data.draw(with_one_edit(program))
        try:
            pairs.append((validate(program), validate(other)))
        except BadInput:  # an edit that makes no program
            return

    collect()
    return pairs


def test_an_edited_artifact_is_proved_only_where_z3_finds_no_row():
    answers, proved = Counter(), Counter()
    for program, other in edited_pairs(EDITS):
        is_different = programs_differ(program, other)
        assert is_different is not None
        for target in TARGETS:
            try:
                files = emit(other, target).files
            except BadInput:  # what this engine cannot hold
                continue
            answer = prove_artifact(program, target, files).answer
            assert not (is_different and answer == "proved"), (target, program, other)
            answers[target] += 1
            proved[target] += answer == "proved"
    assert min(answers.values()) >= EDITS // 3, answers
    assert all(0 < proved[target] < answers[target] for target in TARGETS), (proved, answers)


WORDS = ("Month-to-month", "two year")


def other_word(choose, text):
    """A text somebody may have typed instead."""
    ways = (
        str.upper,
        str.lower,
        str.swapcase,
        lambda t: t + " ",
        lambda t: " " + t,
        lambda t: t[:-1],
        lambda t: t + "s",
    )
    return choose.choice([word for word in (way(text) for way in ways) if word != text])


@pytest.mark.parametrize("target", [target for target in TARGETS if target != "onnx"])
def test_a_word_edited_in_the_text_is_never_proved_unless_nothing_changes(target, tmp_path):
    artifact = emit(CHURN, target)
    main = next(name for name in artifact.files if name.endswith(backend(target).extension))
    text = artifact.files[main].decode("utf-8")
    places = [match for word in WORDS for match in re.finditer(re.escape(word), text)]
    choose, tried, ran = random.Random(5), set(), 0
    for number in range(min(EDITS, 400)):
        match = choose.choice(places)
        changed = text[: match.start()] + other_word(choose, match.group()) + text[match.end() :]
        if changed in tried:
            continue
        tried.add(changed)
        files = {**artifact.files, main: changed.encode("utf-8")}
        if prove_artifact(CHURN, target, files).answer != "proved":
            continue
        if target.startswith("sql:"):
            assert text[: match.start()].rpartition("\n")[2].startswith("--"), changed
        elif (ran := ran + 1) <= MOST_RUN:  # a comment, then: it answers as before
            folder = tmp_path / str(number)
            folder.mkdir()
            for name, content in files.items():
                (folder / name).write_bytes(content)
            assert answers_as_before(target, folder / main), changed
    assert len(tried) >= 5


MOST_RUN = 3


def answers_as_before(target, path):
    try:
        return compare(expectation(CHURN), backend(target).load(path)).verdict == "equal"
    except CannotRun as error:
        pytest.skip(str(error))
