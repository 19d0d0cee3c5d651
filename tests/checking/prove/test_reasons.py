"""The story an artifact tells is its source's: which clauses held, not only which class won."""

import pytest

from gbfl_compile.backends import emit
from gbfl_compile.checking.artifact import read
from gbfl_compile.checking.prove import prove
from gbfl_compile.checking.prove.findings import ProvedEqual
from gbfl_compile.checking.prove.reasons import WrongReason, prove_reasons
from tests.backends.c.programs import CARD, TREE

EDITS = [
    (TREE, "python", {}, "model.py", "(-1, 0, True),", "(-1, 1, True),"),
    (TREE, "python", {}, "model.py", "(-1, 0, True),", "(-1, 0, False),"),
    (TREE, "c", {}, "model.c", "0, 1, 0, 5, 4", "0, 0, 0, 5, 4"),
    (TREE, "c", {}, "model.c", "0, -1, 1, -1, -1", "1, -1, 1, -1, -1"),
]


@pytest.mark.parametrize(("program", "target", "options", "name", "old", "new"), EDITS)
def test_another_story_is_seen_where_every_answer_is_right(program, target, options, name, old, new):
    files = dict(emit(program, target, "model", options).files)
    (whole,) = (reading for reading in read(target, files) if prove_reasons(program, reading) is not None)
    assert prove_reasons(program, whole) == ProvedEqual()
    assert old.encode() in files[name]
    files[name] = files[name].replace(old.encode(), new.encode(), 1)
    findings = [prove_reasons(program, reading) for reading in read(target, files)]
    assert all(prove(program, reading).answer == "proved" for reading in read(target, files))
    assert any(isinstance(finding, WrongReason) for finding in findings)


@pytest.mark.parametrize("target", ["python", "c", "onnx"])
def test_the_rules_of_a_rule_set_are_reported_as_they_are(target):
    options = {"reason": "yes"} if target == "onnx" else {}
    readings = read(target, emit(CARD, target, "model", options).files)
    findings = [prove_reasons(CARD, reading) for reading in readings]
    assert ProvedEqual() in findings
    assert all(finding in (ProvedEqual(), None) for finding in findings)


def test_rules_in_another_order_are_noticed():
    files = emit(CARD, "c").files
    swapped = (
        files["model.c"].replace(b"|= 0x1u", b"|= 0x4u").replace(b"|= 0x2u", b"|= 0x1u").replace(b"|= 0x4u", b"|= 0x2u")
    )
    points = swapped.replace(b"    { 0, 3 },\n    { 0, -1 }", b"    { 0, -1 },\n    { 0, 3 }")
    readings = read("c", {**files, "model.c": points})
    assert all(prove(CARD, reading).answer == "proved" for reading in readings)
    assert any(isinstance(prove_reasons(CARD, reading), WrongReason) for reading in readings)
