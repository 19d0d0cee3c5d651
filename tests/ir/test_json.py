"""Programs survive JSON bit for bit, and nothing but a program gets in."""

import contextlib
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.json import digest, from_json, load, metadata_digest, to_json
from gbfl_compile.ir.nodes import Band, Clause, Interval, Leaf, Program, Scorecard, Split, Tree, leaf, split
from tests.programs import programs

SMALL = Program(
    ("age", "income"),
    ("no", "yes"),
    (Clause((Interval(0, 0.1, 65.0), Interval(1, 1e5))),),
    split(0, leaf(0.25, 0.75, rows=3), leaf(1.0, 0.0)),
    {"seed": 7, "figures": {"accuracy": 0.1}},
)


def rows_of(program):
    return [node.rows for node in program.decision.nodes if isinstance(node, Leaf)]


@settings(max_examples=300, deadline=None)
@given(programs(("tree", "scorecard", "banded")))
def test_json_round_trips_bit_for_bit(program):
    text = to_json(program)
    back = from_json(text)
    assert back == program
    assert [type(label) for label in back.classes] == [type(label) for label in program.classes]
    assert to_json(back) == text
    assert digest(back) == digest(program)


def test_metadata_round_trips():
    assert from_json(to_json(SMALL)).metadata == SMALL.metadata


def test_the_digest_is_of_meaning_alone():
    respelled = replace(
        SMALL,
        clauses=(Clause((Interval(1, 1e5, closed="both"), Interval(0, 0.1, 65.0))),),
        decision=split(0, leaf(0.25, 0.75, rows=9), leaf(1.0, 0.0)),
        metadata={"seed": 8},
    )
    assert digest(respelled) == digest(SMALL)
    assert metadata_digest(respelled) != metadata_digest(SMALL)


EVEN = (0.5, 0.5)
CARD = Scorecard((0, 0), ((0, 1),), 3)
BANDED = replace(CARD, bands=((Band(0, EVEN), Band(1, (1.0, 0.0))), (Band(0, EVEN),)))

CHANGED = {
    "a feature's name": replace(SMALL, features=("age", "Income")),
    "a class's name": replace(SMALL, classes=("no", "Yes")),
    "a class's type": (replace(SMALL, classes=(0, 1)), replace(SMALL, classes=(False, True))),
    "one ulp": replace(SMALL, clauses=(Clause((Interval(0, 0.10000000000000002, 65.0), Interval(1, 1e5))),)),
    "an open end": replace(SMALL, clauses=(Clause((Interval(0, 0.1, 65.0, "both"), Interval(1, 1e5))),)),
    "a missing value": replace(SMALL, clauses=(Clause((Interval(0, 0.1, 65.0, "left", True), Interval(1, 1e5))),)),
    "a probability": replace(SMALL, decision=split(0, leaf(0.5, 0.5), leaf(1.0, 0.0))),
    "swapped leaves": replace(SMALL, decision=split(0, leaf(1.0, 0.0), leaf(0.25, 0.75))),
    "a rule set's points": (
        replace(SMALL, decision=Scorecard((0, 0), ((0, 1),), 3)),
        replace(SMALL, decision=Scorecard((0, 0), ((0, 2),), 3)),
    ),
    "the class that a leaf answers": replace(
        SMALL, decision=split(0, Tree((Leaf((0.25, 0.75), answer=0),)), leaf(1.0, 0.0))
    ),
    "bands or none": (replace(SMALL, decision=CARD), replace(SMALL, decision=BANDED)),
    "the edge of a band": (
        replace(SMALL, decision=BANDED),
        replace(SMALL, decision=replace(BANDED, bands=((Band(0, EVEN), Band(2, (1.0, 0.0))), (Band(0, EVEN),)))),
    ),
    "a band's probability": (
        replace(SMALL, decision=BANDED),
        replace(SMALL, decision=replace(BANDED, bands=((Band(0, EVEN), Band(1, (0.75, 0.25))), (Band(0, EVEN),)))),
    ),
    "a rule set's scale": (
        replace(SMALL, decision=Scorecard((0, 0), ((0, 1),), 3)),
        replace(SMALL, decision=Scorecard((0, 0), ((0, 1),), 2)),
    ),
}


@pytest.mark.parametrize("what", CHANGED)
def test_a_change_of_meaning_changes_the_digest(what):
    changed = CHANGED[what]
    before, after = changed if isinstance(changed, tuple) else (SMALL, changed)
    assert digest(before) != digest(after)


def test_an_open_bound_is_left_out_and_a_threshold_is_written_in_hex_and_decimal():
    form = json.loads(to_json(SMALL))
    income = form["clauses"][0][1]
    assert "hi" not in income
    assert income["lo"] == {"hex": (1e5).hex(), "decimal": "100000.0"}


def edited(**changes):
    return json.dumps({**json.loads(to_json(SMALL)), **changes})


def without(key):
    form = json.loads(to_json(SMALL))
    del form[key]
    return json.dumps(form)


def clause_with(**changes):
    form = json.loads(to_json(SMALL))
    form["clauses"][0][0].update(changes)
    return json.dumps(form)


REFUSED = {
    "not JSON": ("{", "not JSON"),
    "empty": ("", "not JSON"),
    "not an object": ("[1, 2]", "not a rule program"),
    "another thing's JSON": ('{"name": "x"}', "no 'schema' key"),
    "another schema": (edited(schema=3), "schema 3: this version reads the schemas 1 and 2"),
    "schema 2 without kinds": (edited(schema=2), "the key 'kinds' is missing"),
    "a schema that only equals 1": (edited(schema=True), "schema True"),
    "unknown key": (edited(extra=1), "unknown key 'extra'"),
    "missing key": (without("classes"), "the key 'classes' is missing"),
    "a key twice": ('{"schema": 1, "schema": 1}', "the key 'schema' appears twice"),
    "NaN": ('{"schema": NaN}', "NaN is not JSON"),
    "Infinity": (to_json(SMALL).replace("0.1}", "Infinity}"), "Infinity is not JSON"),
    "deeply nested": ("[" * 100_000, "nested too deeply|not JSON"),
    "features not a list": (edited(features="age"), "features: expected a list, found str"),
    "clauses not lists": (edited(clauses=[{}]), "clause 0: expected a list"),
    "atom not an object": (edited(clauses=[[3]]), "clause 0: expected an object, found int"),
    "unknown key in an atom": (clause_with(low=1), "clause 0: unknown key 'low'"),
    "a number bare": (clause_with(lo=0.1), "clause 0: lo: expected an object, found float"),
    "hex and decimal disagree": (clause_with(lo={"hex": "0x1p0", "decimal": "2.0"}), "decimal says 2.0"),
    "no number at all": (clause_with(lo={"hex": "zz", "decimal": "1"}), "not a number in hexadecimal"),
    "hex not text": (clause_with(lo={"hex": 1, "decimal": 1}), "not a number in hexadecimal"),
    "NaN in hex": (clause_with(lo={"hex": "nan", "decimal": "nan"}), "lo is NaN"),
    "infinite hex": (clause_with(lo={"hex": "inf", "decimal": "inf"}), "leave an open bound out"),
    "feature a list": (clause_with(feature=[0]), r"unknown feature \[0\]"),
    "decision unknown": (edited(decision={"kind": "forest"}), "unknown kind 'forest'"),
    "decision not an object": (edited(decision=3), "decision: expected an object"),
    "node of nothing": (edited(decision={"kind": "tree", "nodes": [{}]}), "node 0: the key 'clause' is missing"),
    "node with both": (
        edited(decision={"kind": "tree", "nodes": [{"probabilities": [], "clause": 0}]}),
        "node 0: unknown key 'clause'",
    ),
    "an answer of nothing": (
        edited(decision={"kind": "tree", "nodes": [{"probabilities": [], "answer": None}]}),
        "node 0: answer is null",
    ),
    "no bands at all": (
        edited(decision={"kind": "scorecard", "scale": 0, "bias": [0, 0], "points": [[0, 1]], "bands": []}),
        "bands: the list is empty",
    ),
    "a band of nothing": (
        edited(decision={"kind": "scorecard", "scale": 0, "bias": [0, 0], "points": [[0, 1]], "bands": [[{}]]}),
        "bands: the key 'least' is missing",
    ),
    "metadata not an object": (edited(metadata=[]), "metadata: expected an object"),
    "changed contents": (edited(features=["age", "wage"]), "the file was changed"),
    "changed metadata": (edited(metadata={"seed": 8}), "metadata_digest.*the file was changed"),
    "a number of a million digits": ('{"schema": ' + "9" * 1_000_000 + "}", "not JSON"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_a_program_is_refused_in_one_line(what):
    text, message = REFUSED[what]
    with pytest.raises(BadInput, match=message) as caught:
        from_json(text)
    assert "\n" not in str(caught.value)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_damaged_file_is_a_clear_error_or_the_same_program(data):
    text = to_json(SMALL)
    at = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.sampled_from('{}[],:"0123456789abcnfx\\ -'))
    damaged = text[:at] + letter + text[at + 1 :]
    with contextlib.suppress(BadInput):
        assert from_json(damaged) == SMALL


def test_load_names_the_file(tmp_path):
    for name, content, message in (
        ("absent.json", None, "No such file"),
        ("bytes.json", b"\xff\xfe", "not UTF-8"),
        ("text.json", b"hello", "not JSON"),
    ):
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(BadInput, match=f"{name}: .*{message}"):
            load(path)


def test_load_reads_what_was_written(tmp_path):
    path = tmp_path / "p.json"
    path.write_text(to_json(SMALL))
    assert load(path) == SMALL
    assert rows_of(load(path)) == [3, None]


def test_an_oversized_file_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(300 * 2**20)
    with pytest.raises(BadInput, match="at most"):
        load(path)


def test_a_long_rule_list_round_trips():
    nodes = []
    for rule in range(3000):
        nodes += [Split(0, 2 * rule + 1, 2 * rule + 2), Leaf((1.0, 0.0))]
    program = replace(SMALL, decision=Tree((*nodes, Leaf((0.0, 1.0)))))
    assert from_json(to_json(program)) == program
