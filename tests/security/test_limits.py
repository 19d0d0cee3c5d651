"""Programs and tables past every limit: refused at once and with a reason, whatever size they declare.

An alarm ends a test that would wait: seconds are not a measure of anything here but of a loop without end.
"""

import json
import re
import signal
from pathlib import Path

import pytest

from gbfl_compile.errors import LONGEST_MESSAGE, BadInput
from gbfl_compile.ir import json as json_form
from gbfl_compile.ir import validate
from gbfl_compile.ir.json import digest, from_bytes, from_json, metadata_digest, to_json
from gbfl_compile.ir.nodes import Clause, Interval, Leaf, Program, Scorecard, Split, Tree
from gbfl_compile.tables.read import read_table
from tests.security.attacks import program_of

PATIENCE = 120
"""Seconds, on a machine that has other things to do."""

PROGRAM = program_of("asked")
SOUND = to_json(PROGRAM)


@pytest.fixture(autouse=True)
def patience():
    def give_up(number, frame):
        pytest.fail(f"not refused within {PATIENCE} seconds")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def with_(**parts):
    return json.dumps({**json.loads(SOUND), **parts})


HUGE = "1" + "0" * 5000
LARGE = "1" + "0" * 4000

TEXTS = {
    "nothing": ("", "not JSON"),
    "a BOM": ("\ufeff" + SOUND, "BOM"),
    "two documents": (SOUND + SOUND, "Extra data"),
    "cut off": (SOUND[:-10], "not JSON"),
    "deep lists": ("[" * 200_000, "nested too deeply"),
    "deep objects": ('{"a":' * 200_000, "nested too deeply"),
    "deep within": (
        SOUND.replace('"metadata": {}', '"metadata": ' + '{"a":' * 900 + "1" + "}" * 900),
        "levels deep|too deeply",
    ),
    "a key twice": (SOUND.replace('"schema": 1', '"schema": 1, "schema": 1'), "appears twice"),
    "a key twice among many": ("{" + ",".join(f'"{n}":0' for n in range(300_000)) + ',"299999":0}', "appears twice"),
    "NaN": (SOUND.replace('"schema": 1', '"schema": NaN'), "NaN is not JSON"),
    "Infinity": (SOUND.replace('"schema": 1', '"schema": -Infinity'), "Infinity is not JSON"),
    "a number of 5,000 digits": (SOUND.replace('"schema": 1', f'"schema": {HUGE}'), "not JSON"),
    "a number of 4,000 digits": (
        SOUND.replace('"schema": 1', f'"schema": {LARGE}'),
        "this version reads the schemas 1 and 2",
    ),
    "a label of 4,000 digits": (
        re.sub(r'"classes": .*', f'"classes": [{LARGE}, 1],', SOUND),
        "not a number of 64 bits",
    ),
    "a float out of range": (SOUND.replace('"schema": 1', '"schema": 1e999'), "schema"),
    "another schema": (SOUND.replace('"schema": 1', '"schema": true'), "schema"),
    "an unknown key": (SOUND.replace('"schema"', '"code": "import os", "schema"'), "unknown key 'code'"),
    "a NUL": (with_(features=["a\0", "b"]), "NUL"),
    "a lone surrogate": (with_(features=["a\ud800", "b"]), "lone surrogate"),
    "a name of a million letters": (with_(features=["a" * 10**6, "b"]), "the name has 1000000 characters"),
    "an unknown key of a million letters": (with_(**{"k" * 10**6: 1}), "unknown key"),
    "a number of a million letters": (SOUND.replace('"0.5"', f'"{"5" * 10**6}"', 1), "more than 400 characters"),
    "a text for a list": (with_(features="ab"), "expected a list"),
    "a long key over many values": (with_(metadata={"k" * 10**6: [0] * 300_000}), "metadata_digest"),
    "too many values": ("[" + "0," * (json_form.MOST_VALUES + 1) + "0]", "more than 25000000 values"),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_what_is_not_a_program_is_refused_with_the_reason(kind):
    text, reason = TEXTS[kind]
    with pytest.raises(BadInput, match=reason) as refusal:
        from_json(text)
    assert len(str(refusal.value)) <= LONGEST_MESSAGE


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "latin-1"])
def test_another_encoding_is_refused(encoding):
    with pytest.raises(BadInput, match=r"UTF-8|not JSON|BOM"):
        from_bytes(SOUND.replace("asked", "größe").encode(encoding))


def of(**parts):
    """The program with some of it replaced."""
    whole = {name: getattr(PROGRAM, name) for name in ("features", "classes", "clauses", "decision", "metadata")}
    return Program(**{**whole, **parts})


def named(count):
    return tuple(f"f{number}" for number in range(count))


def in_a_row(splits):
    nodes = [node for n in range(splits) for node in (Split(0, 2 * n + 1, 2 * n + 2), Leaf((1.0, 0.0)))]
    return Tree((*nodes, Leaf((0.0, 1.0))))


ONE = (Clause((Interval(0, 0.5),)),)
COUNTS = {
    "MOST_FEATURES": (10, lambda n: of(features=named(n)), "features"),
    "MOST_CLASSES": (
        10,
        lambda n: of(classes=named(n), clauses=(), decision=Scorecard((0,) * n, (), 0)),
        "classes",
    ),
    "MOST_CLAUSES": (10, lambda n: of(clauses=ONE * n, decision=in_a_row(1)), "clauses"),
    "MOST_NODES": (11, lambda n: of(clauses=ONE, decision=in_a_row(n // 2)), "nodes"),
    "LONGEST_NAME": (10, lambda n: of(features=("a" * n, "plain")), "characters"),
    "LARGEST_SCALE": (10, lambda n: of(decision=Scorecard((0, 0), ((0, 1), (1, 0)), n)), "scale"),
}


@pytest.mark.parametrize("limit", COUNTS)
def test_one_more_than_the_most_is_refused(limit, monkeypatch):
    """At a small limit: the large one is in the documents."""
    most, made, reason = COUNTS[limit]
    monkeypatch.setattr(validate, limit, most)
    step = 2 if limit == "MOST_NODES" else 1
    assert from_json(to_json(made(most))) == made(most)
    form = json.loads(SOUND)
    too_much = made(most + step)
    with monkeypatch.context() as lifted:
        lifted.setattr(validate, limit, 10**6)
        text = to_json(too_much)
    assert form["schema"] == json.loads(text)["schema"]
    with pytest.raises(BadInput, match=reason):
        from_json(text)


def test_a_program_that_was_changed_is_refused_by_its_digest():
    other = of(classes=("yes", "maybe"))
    assert digest(other) != digest(PROGRAM)
    with pytest.raises(BadInput, match="the file was changed"):
        from_json(SOUND.replace('"no"', '"maybe"'))
    named = of(metadata={"name": "x"})
    assert metadata_digest(named) != metadata_digest(PROGRAM)
    with pytest.raises(BadInput, match="the file was changed"):
        from_json(SOUND.replace('"metadata": {}', '"metadata": {"name": "x"}'))


TABLES = {
    "nothing": (b"", "is empty"),
    "a column twice": (b"a,a\n1,2\n", "appears 2 times"),
    "a column twice among many": (",".join([*named(90_000), "f0"]).encode() + b"\n", "appears 2 times"),
    "too many columns": (",".join(named(100_001)).encode() + b"\n", "at most 100000"),
    "a name of a million letters": (b"a" * 10**6 + b",b\n1,2\n", "field limit"),
    "more fields than names": (b"a,b\n1,2,3\n", "more fields"),
    "no UTF-8": (b"a,b\n\xff\xfe,1\n\xff,2\n", "cannot be read"),
    "an open quote": (b'a,"b\n1,2\n' * 3, "cannot be read|unclear"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), "cannot be read"),
}


@pytest.mark.parametrize("kind", TABLES)
def test_what_is_not_a_table_is_refused_with_the_reason(kind, tmp_path):
    content, reason = TABLES[kind]
    (tmp_path / "table.csv").write_bytes(content)
    with pytest.raises(BadInput, match=reason) as refusal:
        read_table(tmp_path / "table.csv")
    assert len(str(refusal.value)) <= LONGEST_MESSAGE


def test_a_header_line_without_end_is_not_taken_into_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("gbfl_compile.tables.read.LONGEST_LINE", 1000)
    (tmp_path / "table.csv").write_bytes(b"a," * 1000)
    with pytest.raises(BadInput, match="1000 characters or more"):
        read_table(tmp_path / "table.csv")


DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "limits.md"


def test_the_limits_in_the_documents_are_those_of_the_code():
    import importlib

    listed = re.findall(
        r"^\|[^|]*\| ([0-9,]+) ([^|]*)\| `([a-z_.]+)\.([A-Z_]+)` \|", DOCUMENT.read_text(), re.MULTILINE
    )
    assert len(listed) >= 20
    for number, unit, module, constant in listed:
        value = getattr(importlib.import_module(f"gbfl_compile.{module}"), constant)
        factor = 2**20 if unit.strip().startswith("MiB") else 2**30 if unit.strip().startswith("GiB") else 1
        assert int(number.replace(",", "")) * factor == value, (module, constant)
