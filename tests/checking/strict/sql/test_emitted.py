"""Every artifact that is emitted for an engine that is run here is in the strict form, read and proved as it answers.

GBFL_STRICT_PROGRAMS=200 python -m pytest tests/checking/strict/sql tries 200 random programs per dialect; 12 otherwise.
"""

import os
import random
from dataclasses import replace

import pytest

from gbfl_compile.backends import emit
from gbfl_compile.checking.artifact import prove_readings
from gbfl_compile.checking.reading.evaluate import run_reading
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql import ExpectedText, expected_of, read_strict, read_strict_files
from gbfl_compile.checking.strict.sql.lexis import NEVER_RUN
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split
from tests.backends.sql.programs import EACH, HOSTILE, REASONED, hostile_program
from tests.checking.respelling import random_program
from tests.checking.strict.sql.cases import FORMS, RUN, SMALL, everything, rows_of, strict, text_of, verdict

PROGRAMS = int(os.environ.get("GBFL_STRICT_PROGRAMS", "12"))

POINTS = Program(
    ("a", "b"),
    (1, 2, 3),
    tuple(Clause((Interval(i % 2, float(i), i + 0.5),)) for i in range(6)),
    Scorecard((2**33, -5, 7), tuple((i * 2**32, -i, 3) for i in range(6)), 3),
)
TRUTHS = Program(
    ("a",),
    (False, True),
    (Clause((Interval(0, 0.1),)), Clause((Interval(0, None, 1e-300, if_missing=True),))),
    split(0, leaf(0.1, 0.9), split(1, leaf(0.7, 0.3), leaf(1.0, 0.0))),
)
NUMBERS = Program(
    ("a",),
    (-1.5, 2.25, 1e10),
    (Clause((Interval(0, 0.1),)), Clause((Interval(0, -3.0, 1e300, if_missing=True),))),
    split(0, leaf(0.1, 0.9, 0.0), split(1, leaf(0.7, 0.3, 0.0), leaf(0.0, 0.0, 1.0))),
)
NO_POINTS = Program(SMALL.features, SMALL.classes, SMALL.clauses, Scorecard((0, 0), ((0, 0),)))
ONE_CLASS = Program(SMALL.features, ("only",), SMALL.clauses, Scorecard((1,), ((2,),)))


def long_list(leaves=40):
    tree = leaf(1.0, 0.0)
    for number in range(leaves):
        tree = split(number, leaf((number % 7) / 10, 1 - (number % 7) / 10), tree)
    clauses = tuple(Clause((Interval(i % 2, i * 0.1, i * 0.1 + 0.07),)) for i in range(leaves))
    return Program(("a", "b"), ("n", "y"), clauses, tree)


FIXED = {
    **EACH,
    **{f"{name}, with reasons": program for name, program in REASONED.items()},
    "64-bit points": POINTS,
    "truth values": TRUTHS,
    "numbers as labels": NUMBERS,
    "no points": NO_POINTS,
    "one class": ONE_CLASS,
    "a long list": long_list(),
    "hostile names": hostile_program(),
}


def emitted(program, dialect, options):
    """The text, or None where the emitter says that it cannot be written."""
    try:
        return text_of(program, dialect, **options)
    except BadInput:
        return None


@pytest.mark.parametrize("dialect", RUN)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("program", FIXED.values(), ids=FIXED)
def test_every_form_of_every_program_is_proved(dialect, form, program):
    for outputs in ("label", everything(program)):
        options = {"form": form, "outputs": outputs}
        text = emitted(program, dialect, options)
        if text is not None:
            assert prove_readings(program, strict(program, text, dialect, **options), 10.0).answer == "proved", text


def random_options(choose, program):
    options = {"form": choose.choice(FORMS), "outputs": choose.choice(("label", everything(program)))}
    extras = {"key": "id", "types": "double", "schema": "sales", "table": "people", "view": "scored"}
    options |= {name: value for name, value in extras.items() if choose.random() < 0.3}
    if choose.random() < 0.3:
        options[f"column.{program.features[0]}"] = "another column"
    return options


def with_hostile_names(choose, program):
    features = tuple(choose.sample(HOSTILE, len(program.features)))
    classes = tuple(choose.sample(HOSTILE, len(program.classes)))
    return replace(program, features=features, classes=classes)


@pytest.mark.parametrize("dialect", RUN)
def test_random_programs_are_proved_and_read_as_they_answer(dialect):
    choose = random.Random(dialect)
    proved = 0
    for _ in range(PROGRAMS * 4):
        program = random_program(choose, choose.choice(("tree", "list", "scorecard", "banded")))
        if choose.random() < 0.4:
            program = with_hostile_names(choose, program)
        options = random_options(choose, program)
        text = emitted(program, dialect, options)
        if text is None:
            continue
        (reading,) = strict(program, text, dialect, **options)
        assert prove_readings(program, (reading,), 10.0).answer == "proved", text
        for row in rows_of(program, choose, 20).tolist():
            assert run_reading(reading, row).label == evaluate(program, row).label, text
        proved += 1
    assert proved >= PROGRAMS * 2


def test_the_files_of_a_dbt_model_are_read_together():
    options = {"form": "dbt", "table": "data", "schema": "raw"}
    files = dict(emit(SMALL, "sql:duckdb", options=options).files)
    (reading,) = read_strict_files("duckdb", files, SMALL, options)
    assert reading.place == "label, p_no, p_yes"
    with pytest.raises(Unread, match=r"schema\.yml"):
        read_strict_files("duckdb", {**files, "schema.yml": b"version: 2\nhooks: yes\n"}, SMALL, options)
    with pytest.raises(Unread, match="UTF-8"):
        read_strict_files("duckdb", {"model.sql": b"\xff"}, SMALL, options)


@pytest.mark.parametrize("dialect", NEVER_RUN)
def test_a_dialect_that_is_never_run_is_never_read(dialect):
    with pytest.raises(Unread, match="never run here"):
        strict(SMALL, text_of(SMALL, dialect), dialect)


def test_an_unknown_dialect_is_unread():
    with pytest.raises(Unread, match="no engine is called 'access'"):
        read_strict("SELECT 1", "access", expected_of(SMALL, {}))


@pytest.mark.parametrize(
    "other",
    [
        {"table": "people"},
        {"schema": "sales"},
        {"key": "id"},
        {"outputs": "label,probabilities,leaf"},
        {"outputs": "label,leaf,probabilities"},
        {"column.age": "years"},
        {"form": "view"},
        {"form": "dbt"},
        {"form": "expression"},
    ],
    ids=str,
)
def test_what_the_caller_expects_decides_and_not_the_header(other):
    text = text_of(SMALL, "duckdb", outputs="label,probabilities")
    assert verdict(SMALL, text, "duckdb", outputs="label,probabilities") == "proved"
    assert verdict(SMALL, text, "duckdb", **{"outputs": "label,probabilities", **other}) == "unread"


def test_swapped_columns_are_refuted_whatever_the_header_says():
    options = {"column.age": "income", "column.income": "age"}
    text = text_of(SMALL, "sqlite", **options)
    expected = ExpectedText(SMALL.features, SMALL.classes, ((0, "age"), (1, "income")), (("label", "label"),))
    with pytest.raises(Unread):
        read_strict(text, "sqlite", expected)
    labels = text_of(SMALL, "sqlite", outputs="label", **options)
    assert prove_readings(SMALL, read_strict(labels, "sqlite", expected), 5.0).answer == "counterexample"


def test_a_column_that_is_not_known_to_be_double_must_be_cast():
    text = text_of(SMALL, "duckdb", types="double")
    assert verdict(SMALL, text, "duckdb", types="double") == "proved"
    assert verdict(SMALL, text, "duckdb") == "unread"
