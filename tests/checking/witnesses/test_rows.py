"""Constants that only the artifact has, and every kind of NaN, are run: artifacts that act on them are caught."""

import math
import struct

import numpy as np
import pytest

from gbfl_compile.backends import emit
from gbfl_compile.backends.base import Predictor
from gbfl_compile.backends.python import load
from gbfl_compile.checking.run import compare, expectation
from gbfl_compile.checking.strict.python import read_python
from gbfl_compile.checking.witnesses import NEGATIVE_NAN, PAYLOAD_NAN, artifact_constants, rows_to_run
from gbfl_compile.ir.batch import Answers, evaluate_many, label_array
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split

CLAUSES = (Clause((Interval(0, 3.5, 20.0),)), Clause((Interval(1, None, 0.25),)))
TREE = Program(
    ("a", "b", "c"), ("yes", "no"), CLAUSES, split(0, split(1, leaf(1.0, 0.0), leaf(0.2, 0.8)), leaf(0.0, 1.0))
)
CARD = Program(("a", "b", "c"), (0, 1), CLAUSES, Scorecard((0, 1), ((0, 3), (0, -2))))


def bits(value):
    return struct.pack("<d", value)


def planted(program, condition, tmp_path):
    """The emitted module with one condition under which it answers another class."""
    text = emit(program, "python").files["model.py"].decode("utf-8")
    wrong = text.replace(
        "def predict(row):",
        f"def predict(row):\n    x = _values(row)\n    if {condition}:\n        return CLASSES[-1 - CLASSES.index(_right(row))]\n    return _right(row)\n\ndef _right(row):",
    )
    assert wrong != text
    path = tmp_path / "model.py"
    path.write_text(wrong, encoding="utf-8")
    return load(path), {"model.py": path.read_bytes()}


@pytest.mark.parametrize("program", [TREE, CARD], ids=["tree", "rule set"])
@pytest.mark.parametrize(
    "condition",
    [
        "x[0] == 12345.5",
        "x[2] == -7e-3",
        "x[1] == float.fromhex('0x1.91p+9')",
        "x[1] == 3.5",  # a bound of another feature
        "99 < x[2] < 99.00000000000004",  # only the neighbour of a constant is in it
        "x[0] == 4 and x[1] < 0.25",
    ],
)
def test_an_artifact_that_acts_on_a_constant_of_its_own_is_caught(program, condition, tmp_path):
    predictor, files = planted(program, condition, tmp_path)
    assert compare(expectation(program), predictor).verdict == "equal"  # the program's own witnesses do not see it
    assert compare(expectation(program), predictor, artifact_constants(files)).verdict == "different"


def test_with_very_many_constants_each_is_still_tried_in_each_feature():
    constants = [float(number) for number in range(1000, 4000)]
    rows = rows_to_run(TREE, extra_constants=constants).rows
    assert all(set(constants) <= set(column.tolist()) for column in rows.T)


def test_constants_that_are_not_tried_are_named():
    assert rows_to_run(TREE, extra_constants=[float(n) for n in range(10_007)]).given_up[-1].startswith("7 constants")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("x >= -1_000.5e-1", {100.05, -100.05}),
        ("a1 + b.2", set()),
        ("f(.5, 0x10, 0x1p-1, 3UL)", {0.5, 16.0, 3.0}),
        ("1e999", set()),
    ],
)
def test_literals_of_a_text(text, numbers):
    assert artifact_constants({"model": text.encode()}) == numbers


def test_a_binary_file_has_no_literals_and_a_reading_has_its_bounds():
    files = emit(TREE, "python").files
    assert artifact_constants({"model": b"12 \0"}) == set()
    assert {3.5, 20.0} <= artifact_constants({}, read_python(files))


def answering(program, wrong_where, dtype="float64"):
    """A predictor that answers another class on rows of one kind."""

    def answer(rows):
        right = evaluate_many(program, rows)
        labels = [
            program.classes[1 - program.classes.index(label)] if wrong_where(row) else label
            for label, row in zip(right.labels, rows.tolist(), strict=True)
        ]
        return Answers(label_array(tuple(labels)), right.probabilities, right.leaves, right.scores)

    return Predictor("python", "test", "", program.features, program.classes, answer, dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("feature", [0, 1, 2])
@pytest.mark.parametrize(
    "value",
    [
        NEGATIVE_NAN,
        PAYLOAD_NAN,
        math.nan,
        -0.0,
        2.0**-149,
        -(2.0**-149),
        math.inf,
        -math.inf,
        (2.0 - 2.0**-23) * 2.0**127,
    ],
)
def test_an_engine_with_its_own_idea_of_one_value_is_caught(dtype, feature, value):
    held = float(np.float32(value)) if dtype == "float32" else value
    if dtype == "float64" and abs(value) in (2.0**-149, (2.0 - 2.0**-23) * 2.0**127):
        held = math.copysign(5e-324 if abs(value) < 1 else 1.7976931348623157e308, value)
    predictor = answering(TREE, lambda row: bits(row[feature]) == bits(held), dtype)
    assert compare(expectation(TREE), predictor).verdict == "different"


def test_the_users_rows_are_the_last_ones_in_every_form():
    own = np.array([[1.0, math.inf, 3.0], [0.1, -math.inf, 0.5]])
    for dtype in ("float64", "float32"):
        rows = rows_to_run(TREE, [own], dtype, extra_constants=[77.0]).rows
        assert rows[-2:].tolist() == (own.astype(dtype)).astype(float).tolist()
    assert np.abs(rows_to_run(TREE, [own], holds_infinity=False).rows[-2:, 1]).tolist() == [np.finfo(float).max] * 2
