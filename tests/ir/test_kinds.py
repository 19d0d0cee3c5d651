"""Words, booleans and dates mean exactly what the language says, in every form a program has."""

import datetime
from dataclasses import replace

import numpy as np
import pandas
import pytest
from hypothesis import given, settings

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.json import digest, from_json, to_json
from gbfl_compile.ir.kinds import codebook, decode_rows, encode_row
from gbfl_compile.ir.nodes import TRUE, Clause, Interval, OneOf, Program, leaf, split
from gbfl_compile.ir.text import atom_text
from gbfl_compile.ir.validate import validate
from gbfl_compile.passes import PASSES, optimise
from tests.programs import programs_of_kinds, programs_of_kinds_with_rows

YES_NO = split(0, leaf(0.0, 1.0), leaf(1.0, 0.0))


def holds(atom, kind, value):
    """Whether an atom on the one feature of a program holds for a value."""
    kinds = () if kind == "number" else (kind,)
    program = validate(Program(("x",), (False, True), (Clause((atom,)),), YES_NO, kinds=kinds))
    return evaluate(program, [value]).label


@pytest.mark.parametrize("other", ["A", "a ", " a", "\u00e1", "a\u0301", "", "b"])
def test_texts_are_equal_when_their_code_points_are(other):
    assert holds(OneOf(0, ("a",)), "category", "a") is True
    assert holds(OneOf(0, ("a",)), "category", other) is False
    assert holds(OneOf(0, ("a",), negated=True), "category", other) is True


@pytest.mark.parametrize("if_missing", [False, True])
@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("missing", [None, float("nan"), pandas.NA, pandas.NaT])
def test_a_missing_word_is_decided_by_the_atom_alone(negated, if_missing, missing):
    for kind, values in (("category", ("a",)), ("category", ()), ("boolean", (TRUE,))):
        assert holds(OneOf(0, values, negated, if_missing), kind, missing) is if_missing


def test_the_empty_text_is_a_value():
    assert holds(OneOf(0, ("",)), "category", "") is True
    assert holds(OneOf(0, (), negated=True), "category", "") is True


def test_a_boolean_is_true_or_false_and_may_be_one_or_zero():
    for value, expected in ((True, True), (False, False), (1, True), (0.0, False), (np.bool_(True), True)):
        assert holds(OneOf(0, (TRUE,)), "boolean", value) is expected
        assert holds(OneOf(0, (TRUE,), negated=True), "boolean", value) is not expected


def test_dates_are_compared_by_day():
    march = Interval(0, 19783.0)  # 2024-03-01
    assert holds(march, "date", datetime.date(2024, 3, 1)) is True
    assert holds(march, "date", datetime.date(2024, 2, 29)) is False


def test_timestamps_are_compared_in_utc_to_the_microsecond():
    noon = Interval(0, 43_200_000_000.0)
    hour = datetime.timezone(datetime.timedelta(hours=1))
    assert holds(noon, "timestamp", datetime.datetime(1970, 1, 1, 12)) is True
    assert holds(noon, "timestamp", datetime.datetime(1970, 1, 1, 11, 59, 59, 999_999)) is False
    assert holds(noon, "timestamp", datetime.datetime(1970, 1, 1, 12, 59, tzinfo=hour)) is False
    assert holds(noon, "timestamp", datetime.datetime(1970, 1, 1, 13, 0, tzinfo=hour)) is True


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("category", 1),
        ("category", True),
        ("category", b"a"),
        ("boolean", "true"),
        ("boolean", 2),
        ("date", "2024-03-01"),
        ("date", datetime.datetime(2024, 3, 1)),
        ("timestamp", datetime.date(2024, 3, 1)),
        ("timestamp", 0),
    ],
)
def test_a_value_of_another_kind_is_refused_by_name(kind, value):
    atom = OneOf(0, (), negated=True) if kind in ("category", "boolean") else Interval(0)
    with pytest.raises(BadInput, match=f"'x' is a {kind}"):
        holds(atom, kind, value)


WRONG = {
    "a set on a number": (("number", "category"), OneOf(0, ("a",)), "'x' is a number: ask it with an Interval"),
    "an interval on words": (("category", "number"), Interval(0, 1.0), "'x' is a category: ask it with a OneOf"),
    "texts in another order": (("category", "number"), OneOf(0, ("b", "a")), "in the order of code points"),
    "a text twice": (("category", "number"), OneOf(0, ("a", "a")), "list each value once"),
    "NUL": (("category", "number"), OneOf(0, ("a\0",)), "NUL character"),
    "a lone surrogate": (("category", "number"), OneOf(0, ("\ud800",)), "lone surrogate"),
    "a long text": (("category", "number"), OneOf(0, ("a" * 1001,)), "1001 characters"),
    "false of a boolean": (("boolean", "number"), OneOf(0, ("false",)), "negate it for false"),
    "half a day": (("date", "number"), Interval(0, 0.5), "is not a date"),
    "past the calendar": (("date", "number"), Interval(0, 1e9), "is not a date"),
    "half a microsecond": (("timestamp", "number"), Interval(0, 0.5), "is not a timestamp"),
    "an unknown kind": (("colour", "number"), Interval(0, 1.0), "'colour' is none of number"),
    "too few kinds": (("category",), OneOf(0, ("a",)), "1 kinds for 2 features"),
    "only numbers": (("number", "number"), Interval(0, 1.0), "leave kinds out"),
}


@pytest.mark.parametrize("name", WRONG)
def test_illegal_atoms_and_kinds_are_refused(name):
    kinds, atom, words = WRONG[name]
    with pytest.raises(BadInput, match=words):
        validate(Program(("x", "y"), (False, True), (Clause((atom,)),), YES_NO, kinds=kinds))


def test_atoms_as_people_read_them():
    say = {
        ("category", OneOf(0, ("Month-to-month",))): "x is Month-to-month",
        ("category", OneOf(0, ("a", "b"))): "x in {a, b}",
        ("category", OneOf(0, ("a", "b"), negated=True)): "x not in {a, b}",
        ("category", OneOf(0, ("",), negated=True)): 'x is not ""',
        ("category", OneOf(0, ("a, b", 'say "hi"'))): 'x in {"a, b", "say \\"hi\\""}',
        ("category", OneOf(0, ("a",), if_missing=True)): "(x is a OR x is missing)",
        ("category", OneOf(0, (), negated=True)): "x is present",
        ("category", OneOf(0, (), if_missing=True)): "x is missing",
        ("category", OneOf(0, (), negated=True, if_missing=True)): "always",
        ("category", OneOf(0, ())): "never",
        ("boolean", OneOf(0, (TRUE,))): "x",
        ("boolean", OneOf(0, (TRUE,), negated=True)): "not x",
        ("date", Interval(0, 19783.0)): "x >= 2024-03-01",
        ("date", Interval(0, 0.0, 1.0)): "1970-01-01 <= x < 1970-01-02",
        ("timestamp", Interval(0, None, 1.0)): "x < 1970-01-01 00:00:00.000001",
    }
    assert {(kind, atom): atom_text(atom, ("x",), (kind,)) for kind, atom in say} == say


@settings(max_examples=300, deadline=None)
@given(programs_of_kinds_with_rows())
def test_the_batch_form_says_the_same(case):
    program, rows = case
    encoded = np.array([encode_row(program, row) for row in rows])
    many = evaluate_many(program, encoded)
    for index, row in enumerate(rows):
        one = evaluate(program, row)
        assert many.labels[index] == one.label
        assert many.leaves is None or many.leaves[index] == one.leaf
        assert many.scores is None or tuple(many.scores[index]) == one.scores
        assert evaluate(program, decode_rows(program, encoded[[index]].tolist(), codebook(program))[0]) == one


@settings(max_examples=200, deadline=None)
@given(programs_of_kinds())
def test_a_program_survives_its_json(program):
    text = to_json(program)
    assert '"schema": 2' in text
    again = from_json(text)
    assert again == program
    assert digest(again) == digest(program)


def test_the_kind_of_a_feature_is_part_of_its_digest():
    program = Program(("x",), (False, True), (Clause((OneOf(0, (TRUE,)),)),), YES_NO, kinds=("boolean",))
    assert digest(program) != digest(replace(program, kinds=("category",)))


@pytest.mark.parametrize("run", [*PASSES, optimise], ids=lambda run: run.__name__)
@settings(max_examples=200, deadline=None)
@given(case=programs_of_kinds_with_rows())
def test_a_pass_is_harmless(run, case):
    program, rows = case
    after = validate(run(program))
    for row in rows:
        before, now = evaluate(program, row), evaluate(after, row)
        assert (now.label, now.probabilities, now.scores) == (before.label, before.probabilities, before.scores)


def test_a_text_that_cannot_come_is_not_written():
    outer, inner = Clause((OneOf(0, ("a", "b")),)), Clause((OneOf(0, ("b", "c")),))
    tree = split(0, split(1, leaf(1.0, 0.0), leaf(0.5, 0.5)), leaf(0.0, 1.0))
    after = optimise(Program(("x",), ("p", "q"), (outer, inner), tree, kinds=("category",)))
    assert after.clauses == (outer, Clause((OneOf(0, ("b",)),)))
