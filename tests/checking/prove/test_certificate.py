"""A certificate convinces a checker that shares no code with the prover, and a tampered one does not."""

import ast
import copy
import json
import math
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbfl_compile.checking.prove import certificate_verifier, prove
from gbfl_compile.checking.prove.certificate import certificate
from gbfl_compile.checking.prove.certificate_verifier import verify
from gbfl_compile.checking.reading.from_program import as_reading
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.json import digest, to_json
from gbfl_compile.ir.nodes import Clause, Interval, Leaf, OneOf, Program, Scorecard, Split, Tree
from tests.checking.respelling import mutated, random_program, respelled
from tests.counts import shorten
from tests.word_programs import CHURN, SLIPS, with_one_edit, with_slip, word_programs

PROGRAM = Program(
    ("a", "b"),
    ("no", "yes"),
    (Clause((Interval(0, 1.0, 2.0), Interval(1, None, 5.0, "right", True))), Clause((Interval(1, 3.0),))),
    Tree((Split(0, 1, 2), Leaf((0.25, 0.75)), Split(1, 3, 4), Leaf((1.0, 0.0)), Leaf((0.0, 1.0)))),
)


FILES = {"model.py": b"text", "more/model.h": b"other text"}


def checked(program, form):
    return verify(json.loads(to_json(program)), form)


def test_what_is_proved_can_be_certified_and_what_is_not_cannot():
    choose = random.Random(2)
    for number in range(150):
        program = random_program(choose, ("tree", "list")[number % 2])
        reading = respelled(choose, program) if number % 3 else mutated(choose, program)
        if prove(program, reading).findings["labels"] == prove(program, as_reading(program)).labels:
            form = json.loads(certificate(program, reading, FILES))
            boxes = sum("step" in entry for entry in form["boxes"])
            assert checked(program, form) == boxes
        else:
            with pytest.raises(BadInput, match="not the program"):
                certificate(program, reading, FILES)


def test_a_leaf_that_answers_another_class_than_its_most_probable_one_is_certified_for_its_answer():
    nodes = (Split(0, 1, 2), Leaf((0.6, 0.4), answer=1), Leaf((0.9, 0.1)))
    own = replace(PROGRAM, decision=Tree(nodes))
    likeliest = replace(PROGRAM, decision=Tree((nodes[0], Leaf((0.6, 0.4)), nodes[2])))
    form = json.loads(certificate(own, as_reading(own), FILES))
    assert {step["winner"] for step in form["reading"] if "winner" in step} == {0, 1}
    assert checked(own, form) > 1
    with pytest.raises(BadInput, match="not the program"):
        certificate(own, as_reading(likeliest), FILES)
    forged = json.loads(certificate(likeliest, as_reading(likeliest), FILES)) | {"program": digest(own)}
    with pytest.raises(ValueError, match="do not agree"):
        checked(own, forged)


@settings(max_examples=shorten(150), deadline=None)
@given(data=st.data())
def test_words_and_dates_are_certified_where_they_are_proved_and_nowhere_else(data):
    program = data.draw(word_programs(decisions=("tree",)))
    other = data.draw(with_one_edit(program))
    form = json.loads(certificate(program, as_reading(program), FILES))
    assert checked(program, form) == sum("step" in entry for entry in form["boxes"])
    proof = prove(program, as_reading(other))
    if proof.findings["labels"] == prove(program, as_reading(program)).labels:
        assert checked(program, json.loads(certificate(program, as_reading(other), FILES))) > 0
    else:
        with pytest.raises(BadInput, match="not the program"):
            certificate(program, as_reading(other), FILES)


@pytest.mark.parametrize("slip", SLIPS)
def test_a_certificate_of_other_words_is_not_one_of_the_program(slip):
    wrong = with_slip(slip)
    form = json.loads(certificate(wrong, as_reading(wrong), FILES))
    assert checked(wrong, form) > 1
    with pytest.raises(ValueError, match=r"do not agree|ends elsewhere|not all rows"):
        checked(CHURN, form | {"program": digest(CHURN)})


def word_changes(form):
    """Every certificate one slip in a text or a set away from this one."""
    for place, entry in enumerate(form["boxes"]):
        yield lambda it, place=place: it["boxes"].pop(place)
        if "text" in entry:
            yield lambda it, place=place: it["boxes"][place]["in"].clear()
            yield lambda it, place=place: it["boxes"][place].update({"missing": 1})
            padded = [text + " " for text in entry["in"]]
            yield lambda it, place=place, padded=padded: it["boxes"][place].update({"in": padded})
            yield lambda it, place=place: it["boxes"][place].update({"text": 0})
    for number, step in enumerate(form["reading"]):
        for part, test in enumerate(step.get("if", {}).get("all", ())):
            for key in ("negated", "missing"):
                if key in test:
                    yield lambda it, number=number, part=part, key=key: it["reading"][number]["if"]["all"][part].update(
                        {key: not it["reading"][number]["if"]["all"][part][key]}
                    )
            if "texts" in test:
                yield lambda it, number=number, part=part: it["reading"][number]["if"]["all"][part]["texts"].append("A")


def test_every_slip_in_texts_is_caught():
    program = replace(CHURN, clauses=(*CHURN.clauses[:2], Clause((OneOf(1, ("a",), negated=True),))))
    good = json.loads(certificate(program, as_reading(program), FILES))
    assert checked(program, good) > 5
    tried = 0
    for change in word_changes(good):
        bad = copy.deepcopy(good)
        change(bad)
        with pytest.raises((ValueError, KeyError)):
            checked(program, bad)
        tried += 1
    assert tried > 30


def test_a_test_of_texts_on_a_number_is_refused():
    good = json.loads(certificate(CHURN, as_reading(CHURN), FILES))
    for step in good["reading"]:
        for test in step.get("if", {}).get("all", ()):
            if "texts" in test:
                test["feature"] = 0
    with pytest.raises(ValueError, match="does not fit the kind"):
        checked(CHURN, good)


def changes(form):
    """Every certificate one slip away from this one."""
    places = range(len(form["boxes"]))
    for place in places:
        entry = form["boxes"][place]
        yield lambda boxes, place=place: boxes.pop(place)
        yield lambda boxes, place=place: boxes.insert(place, boxes[place])
        for key, value in entry.items():
            if key == "at":
                near = math.nextafter(float.fromhex(value), math.inf).hex()
                yield lambda boxes, place=place, near=near: boxes[place].update(at=near)
            else:
                yield lambda boxes, place=place, key=key, value=value: boxes[place].update({key: value + 1})


def test_every_slip_in_the_boxes_is_caught():
    good = json.loads(certificate(PROGRAM, as_reading(PROGRAM), FILES))
    assert checked(PROGRAM, good) > 4
    tried = 0
    for change in changes(good):
        bad = copy.deepcopy(good)
        change(bad["boxes"])
        with pytest.raises((ValueError, KeyError, IndexError)):
            checked(PROGRAM, bad)
        tried += 1
    assert tried > 30


def numbers_in(form, path=()):
    """Where in a JSON form numbers and hexadecimal numbers stand."""
    if isinstance(form, dict):
        for key, value in form.items():
            yield from numbers_in(value, (*path, key))
    elif isinstance(form, list):
        for index, value in enumerate(form):
            yield from numbers_in(value, (*path, index))
    elif isinstance(form, str | int) and not isinstance(form, bool) and form not in ("inf", "-inf"):
        yield path, form


def test_every_slip_in_the_reading_is_caught():
    good = json.loads(certificate(PROGRAM, as_reading(PROGRAM), FILES))
    tried = 0
    for path, value in numbers_in(good["reading"]):
        bad = copy.deepcopy(good)
        at = bad["reading"]
        for key in path[:-1]:
            at = at[key]
        changed = value + 1 if isinstance(value, int) else math.nextafter(float.fromhex(value), math.inf).hex()
        at[path[-1]] = changed
        with pytest.raises((ValueError, KeyError, IndexError)):
            checked(PROGRAM, bad)
        tried += 1
    assert tried > 15


ODD = (None, "x", 1, 0, True, False, 1.0, [], {}, "nan")


def all_paths(form, path=()):
    yield path, form
    pairs = form.items() if isinstance(form, dict) else enumerate(form) if isinstance(form, list) else ()
    for key, value in pairs:
        yield from all_paths(value, (*path, key))


@pytest.mark.parametrize("program", [PROGRAM, CHURN])
def test_what_is_of_another_type_has_no_meaning_to_be_guessed(program):
    """`"missing": "x"` is true to some and neither true nor false to others."""
    good = json.loads(certificate(program, as_reading(program), FILES))
    checked(program, good)
    refused = 0
    for path, value in all_paths(good["reading"], ("reading",)):
        for odd in ODD:
            if type(odd) is type(value) or (odd is None and path[-1] in ("probabilities", "leaf")):
                continue
            bad = copy.deepcopy(good)
            at = bad
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = odd
            with pytest.raises(ValueError, match=r"."):
                verify(json.loads(to_json(program)), bad)
            refused += 1
    assert refused > 300


@pytest.mark.parametrize("key", ["if", "not", "feature", "texts", "winner", "more"])
def test_a_test_or_a_step_with_two_meanings_is_refused(key):
    good = json.loads(certificate(CHURN, as_reading(CHURN), FILES))
    for path, value in all_paths(good["reading"], ("reading",)):
        if not isinstance(value, dict) or key in value:
            continue
        bad = copy.deepcopy(good)
        at = bad
        for each in path:
            at = at[each]
        at[key] = 0
        with pytest.raises(ValueError, match=r"a step that is none|a test that is none|not a certificate"):
            verify(json.loads(to_json(CHURN)), bad)


def test_a_key_that_is_there_twice_is_refused():
    with pytest.raises(ValueError, match="twice"):
        certificate_verifier.parse(b'{"claims": ["winner"], "claims": []}')


def test_a_certificate_of_another_program_is_refused():
    other = Program(PROGRAM.features, PROGRAM.classes, PROGRAM.clauses[::-1], PROGRAM.decision)
    with pytest.raises(ValueError, match="another program"):
        checked(other, json.loads(certificate(PROGRAM, as_reading(PROGRAM), FILES)))


def test_other_rules_under_the_approved_digest_are_refused():
    """A program file with other rules and the approved digest, and a certificate of those rules that names it too."""
    other = replace(PROGRAM, clauses=(PROGRAM.clauses[0], Clause((Interval(1, 99.5),))))
    forged = json.loads(to_json(other)) | {"digest": digest(PROGRAM)}
    form = json.loads(certificate(other, as_reading(other), FILES)) | {"program": digest(PROGRAM)}
    assert verify(json.loads(to_json(other)), form | {"program": digest(other)}) > 4  # honestly named, it holds
    with pytest.raises(ValueError, match="not the digest of its rules"):
        verify(forged, form)


def test_the_verifier_computes_the_digest_that_programs_have():
    choose = random.Random(5)
    for number in range(100):
        program = random_program(choose, ("tree", "list")[number % 2])
        assert certificate_verifier._digest(json.loads(to_json(program))) == digest(program)
    assert certificate_verifier._digest(json.loads(to_json(CHURN))) == digest(CHURN)
    for classes in ((True, False), (1, 2), ("é", "\U0001f600"), (0.5, 1e17)):
        program = replace(PROGRAM, classes=classes, features=("ä", "b\n"))
        assert certificate_verifier._digest(json.loads(to_json(program))) == digest(program)


def placed(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (FILES | {"model.py": b"Text"}, "model.py: its bytes are not"),
        (FILES | {"more/extra.h": b""}, "the artifact has"),
        ({"model.py": b"text"}, "the artifact has"),
        ({}, "the artifact has"),
    ],
)
def test_another_artifact_is_refused(files, message, tmp_path):
    form = json.loads(certificate(PROGRAM, as_reading(PROGRAM), FILES))
    with pytest.raises(ValueError, match=message):
        verify(json.loads(to_json(PROGRAM)), form, placed(tmp_path, files))


def test_the_artifact_of_the_certificate_is_accepted_as_a_folder_and_as_its_only_file(tmp_path):
    program = json.loads(to_json(PROGRAM))
    form = json.loads(certificate(PROGRAM, as_reading(PROGRAM), FILES))
    assert verify(program, form, placed(tmp_path / "many", FILES)) > 4
    only = {"model.py": b"text"}
    form = json.loads(certificate(PROGRAM, as_reading(PROGRAM), only))
    assert verify(program, form, placed(tmp_path / "one", only) / "model.py") > 4


def test_a_linked_folder_in_the_artifact_is_not_passed_over(tmp_path):
    """Python would import it rather than the module."""
    form = json.loads(certificate(PROGRAM, as_reading(PROGRAM), FILES))
    folder = placed(tmp_path / "artifact", FILES)
    (tmp_path / "elsewhere").mkdir()
    (folder / "model").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="the artifact has"):
        verify(json.loads(to_json(PROGRAM)), form, folder)


def test_a_certificate_without_an_artifact_covers_none(tmp_path):
    form = json.loads(certificate(PROGRAM, as_reading(PROGRAM), FILES))
    del form["artifact"]
    with pytest.raises(ValueError, match="not a certificate"):
        verify(json.loads(to_json(PROGRAM)), form, placed(tmp_path, FILES))


def test_a_rule_set_has_no_certificate():
    card = Program(("a",), (0, 1), (Clause((Interval(0, 1.0),)),), Scorecard((0, 0), ((0, 1),)))
    with pytest.raises(BadInput, match="rule set"):
        certificate(card, as_reading(card), FILES)


def test_the_verifier_runs_on_its_own_and_imports_the_standard_library_only(tmp_path):
    path = Path(certificate_verifier.__file__)
    imports = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Import | ast.ImportFrom)]  # fmt: skip
    assert {alias.name for node in imports for alias in node.names} == {"hashlib", "json", "math", "sys", "Path", "Any"}
    (tmp_path / "program.json").write_text(to_json(PROGRAM))
    (tmp_path / "certificate.json").write_text(certificate(PROGRAM, as_reading(PROGRAM), FILES))
    alone = [sys.executable, "-I", "-S", str(path), "program.json", "certificate.json"]
    run = subprocess.run(alone, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "equal on every row" in run.stdout


NUMBER = {"winner": 1, "probabilities": None, "leaf": None}
BELOW_TWO = math.nextafter(2.0, 0.0).hex()


def in_one_to_two(feature, missing):
    return {"feature": feature, "in": [["0x1p+0", BELOW_TWO]], "missing": missing}


def test_a_split_that_takes_the_range_of_another_feature_covers_nothing():
    """It said yes where 1 <= a < 2 unless 1 <= b < 2, the program says no: an entry with two meanings hid that."""
    program = Program(
        ("a", "b"), (0, 1), (Clause((Interval(0, 3.0),)),), Tree((Split(0, 1, 2), Leaf((0.0, 1.0)), Leaf((1.0, 0.0))))
    )
    large = {"feature": 0, "in": [["0x1.8p+1", "inf"]], "missing": False}
    other = {"all": [in_one_to_two(0, False), {"not": in_one_to_two(1, True)}]}
    reading = [
        {"if": large, "then": 1, "otherwise": 2},
        NUMBER,
        {"if": other, "then": 3, "otherwise": 4},
        NUMBER,
        {**NUMBER, "winner": 0},
    ]
    yes, no = {"leaf": 0, "step": 1}, {"leaf": 1, "step": 4}
    stolen, at_three, at_one, at_two = {"missing": 0, "cut": 1}, "0x1.8p+1", "0x1p+0", "0x1p+1"
    honestly = [{"missing": 0}, no, {"cut": 0, "at": at_three}, no, yes]
    boxes = [
        *({"missing": 1}, *honestly),
        *({"cut": 1, "at": at_one}, stolen, no, no),
        *({"cut": 1, "at": at_two}, *honestly),
        *(stolen, no, {"cut": 0, "at": at_three}, no, yes),
    ]
    form = json.loads(certificate(program, as_reading(program), FILES))
    with pytest.raises(ValueError, match="an entry that is none"):
        checked(program, {**form, "claims": ["winner"], "reading": reading, "boxes": boxes})


def test_a_certificate_of_nested_boxes_without_end_is_refused_before_it_fills_the_memory():
    form = json.loads(certificate(PROGRAM, as_reading(PROGRAM), FILES))
    with pytest.raises(ValueError, match="a split of the feature 2"):
        checked(PROGRAM, {**form, "boxes": [{"missing": feature} for feature in range(100_000)]})


@pytest.mark.parametrize("text", ["", "[]", "1", "{", "[" * 100_000, '{"program": 1}', '{"boxes": [[]]}'])
def test_what_is_not_a_certificate_is_refused_on_one_line(text, tmp_path):
    (tmp_path / "program.json").write_text(to_json(PROGRAM))
    (tmp_path / "certificate.json").write_text(text)
    command = [sys.executable, certificate_verifier.__file__, "program.json", "certificate.json"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 1
    assert run.stderr.startswith("NOT VERIFIED: ")
    assert run.stderr.count("\n") == 1
