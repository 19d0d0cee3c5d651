"""The ONNX target answers what the program answers where features are words, booleans, dates and timestamps."""

import datetime as dt
import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from gbfl_compile.backends import emit
from gbfl_compile.checking.artifact import prove_artifact
from gbfl_compile.checking.run import PROBABILITY_BOUND, compare, expectation
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Clause, Interval, OneOf, Program, Scorecard, leaf, split
from tests.word_programs import word_programs, word_programs_with_rows

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
from onnx.reference import ReferenceEvaluator  # noqa: E402 - only where onnx is installed

from gbfl_compile.backends.onnx import open_model  # noqa: E402

KINDS = ("number", "category", "boolean", "date", "timestamp")
TREE = Program(
    ("income", "contract", "smoker", "opened", "seen"),
    ("no", "yes"),
    (
        Clause((Interval(0, 1000.0, None), OneOf(1, ("Month-to-month", "two year")))),
        Clause((OneOf(2, ("true",)), Interval(3, None, 19783.0))),
        Clause((OneOf(1, ("a", "b"), negated=True, if_missing=True), OneOf(2, ("true",), negated=True))),
        Clause((Interval(4, 0.0, 1.7e15, if_missing=True), OneOf(1, (), negated=True))),
    ),
    split(
        0, split(1, leaf(0.2, 0.8), leaf(0.7, 0.3)), split(2, leaf(1.0, 0.0), split(3, leaf(0.4, 0.6), leaf(0.5, 0.5)))
    ),
    kinds=KINDS,
)
CARD = Program(
    TREE.features, TREE.classes, TREE.clauses, Scorecard((0, -2), ((0, 3), (0, -1), (1, 0), (0, 2)), 1), kinds=KINDS
)
VARIANTS = (("logic", "tensor", "yes"), ("logic", "columns", "no"), ("tree", "tensor", "no"), ("tree", "columns", "no"))


def loaded(files):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(files["model.onnx"])
        return open_model(path)


def variants(program, **more):
    """The program in each lowering it can have, with each kind of input."""
    for lowering, inputs, reason in VARIANTS:
        if reason == "yes" and not program.clauses:
            reason = "no"
        try:
            yield emit(
                program, "onnx", options={"lowering": lowering, "inputs": inputs, "reason": reason, **more}
            ).files
        except BadInput as error:
            message = str(error)
            assert "as a TreeEnsemble" in message or "name of two inputs" in message


def assert_same(program, answers, rows):
    expected = [evaluate(program, row) for row in rows]
    assert answers.labels.tolist() == [answer.label for answer in expected]
    shares = np.array([answer.probabilities for answer in expected])
    bound = PROBABILITY_BOUND if isinstance(program.decision, Scorecard) else 0.0
    assert np.abs(answers.probabilities - shares).max(initial=0.0) <= bound
    if answers.scores is not None:
        assert answers.scores.tolist() == [list(answer.scores) for answer in expected]
    if answers.leaves is not None:
        assert answers.leaves.tolist() == [answer.leaf for answer in expected]


@settings(max_examples=200, deadline=None)
@given(word_programs_with_rows())
def test_models_answer_as_the_program_does(case):
    program, rows = case
    for files in variants(program):
        model = onnx.load_from_string(files["model.onnx"])
        onnx.checker.check_model(model, full_check=True)
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        predictor = loaded(files)
        assert predictor.kinds == program.kinds
        assert_same(program, predictor.answer_rows(rows), rows)


@settings(max_examples=100, deadline=None)
@given(word_programs_with_rows(kinds=("number", "category", "boolean", "date")))
def test_float32_models_answer_float32_rows_as_the_program_does(case):
    program, rows = case
    with np.errstate(over="ignore"):
        rows = [[float(np.float32(value)) if type(value) is float else value for value in row] for row in rows]
    for files in variants(program, dtype="float32"):
        assert_same(program, loaded(files).answer_rows(rows), rows)


@settings(max_examples=100, deadline=None)
@given(word_programs())
def test_what_is_emitted_is_proved_and_runs_equal(program):
    for files in variants(program):
        proof = prove_artifact(program, "onnx", files)
        assert (proof.answer, proof.reason) == ("proved", None)
        verdict = compare(expectation(program), loaded(files), proof.constants())
        assert (verdict.verdict, verdict.reason) == ("equal", None)


@settings(max_examples=40, deadline=None)
@given(word_programs(kinds=("number", "category", "boolean", "date")))
def test_what_is_emitted_in_float32_is_proved_and_runs_equal(program):
    for files in variants(program, dtype="float32"):
        assert prove_artifact(program, "onnx", files).answer == "proved"
        verdict = compare(expectation(program), loaded(files))
        assert (verdict.verdict, verdict.reason) == ("equal", None)


@pytest.mark.parametrize("program", [TREE, CARD], ids=["tree", "scorecard"])
def test_the_inputs_are_documented_and_another_implementation_takes_them(program):
    """Fed by hand as the metadata says, in onnx's own evaluator: no loader of ours is needed."""
    model = onnx.load_from_string(emit(program, "onnx", options={"lowering": "logic"}).files["model.onnx"])
    fields = {prop.key: json.loads(prop.value) for prop in model.metadata_props}
    assert fields["gbfl.kinds"] == list(KINDS)
    assert fields["gbfl.columns"] == {
        "input": ["income", "smoker", "opened", "seen"],
        "texts": ["contract"],
        "texts_missing": ["contract"],
    }
    rows = [
        [2000.0, "two year", True, dt.date(2020, 1, 1), None],
        [None, "None", False, None, dt.datetime(2020, 1, 1)],
        [1.0, None, None, dt.date(1960, 1, 1), None],
        [1e9, "", True, None, None],
    ]
    days = [None if row[3] is None else (row[3] - dt.date(1970, 1, 1)).days for row in rows]
    micros = [
        None if row[4] is None else (row[4] - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1) for row in rows
    ]
    numbers = [[row[0], row[2], day, micro] for row, day, micro in zip(rows, days, micros, strict=True)]
    feed = {
        "input": np.array(numbers, dtype=np.float64),
        "texts": np.array([[row[1] or ""] for row in rows], dtype=object),
        "texts_missing": np.array([[row[1] is None] for row in rows]),
    }
    labels = [evaluate(program, row).label for row in rows]
    for engine in (ReferenceEvaluator(model), onnxruntime.InferenceSession(model.SerializeToString())):
        assert engine.run(["label"], feed)[0].tolist() == labels


def test_by_columns_each_feature_has_its_own_input():
    model = onnx.load_from_string(emit(TREE, "onnx", options={"inputs": "columns"}).files["model.onnx"])
    names = [each.name for each in model.graph.input]
    assert names == ["income", "contract", "contract is missing", "smoker", "opened", "seen"]


def test_text_under_a_missing_flag_does_not_matter():
    session = onnxruntime.InferenceSession(emit(TREE, "onnx").files["model.onnx"])
    answers = []
    for text in ("", "a", "two year", "anything"):
        feed = {"input": np.full((1, 4), np.nan), "texts": np.array([[text]], dtype=object)}
        answers.append(session.run(["probabilities"], {**feed, "texts_missing": np.array([[True]])})[0].tolist())
    assert answers == [[list(evaluate(TREE, [None] * 5).probabilities)]] * 4


def test_timestamps_in_float32_are_refused():
    with pytest.raises(BadInput, match="'seen' is a timestamp, and float32 cannot hold its microseconds"):
        emit(TREE, "onnx", options={"dtype": "float32"})


def test_two_inputs_of_one_name_are_refused():
    program = Program(
        ("a", "a is missing"),
        ("no", "yes"),
        (Clause((OneOf(0, ("x",)),)),),
        split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
        kinds=("category", "number"),
    )
    with pytest.raises(
        BadInput, match="'a is missing' is the name of two inputs: rename the column or use inputs=tensor"
    ):
        emit(program, "onnx", options={"inputs": "columns"})
    assert emit(program, "onnx").files


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ([1.0, 7, True, None, None], "'contract' is a category"),
        ([1.0, "a", "yes", None, None], "'smoker' is a boolean"),
        ([1.0, "a", True, 3.0, None], "'opened' is a date"),
        ([1.0, "\ud800", True, None, None], "lone surrogate"),
        ([1.0, "a", True], "a row of 3 values"),
    ],
)
def test_values_of_another_kind_are_refused_by_name(row, reason):
    with pytest.raises(BadInput, match=reason):
        loaded(emit(TREE, "onnx").files).answer_rows([row])


def test_a_matrix_of_numbers_is_not_a_row_of_texts():
    with pytest.raises(BadInput, match="takes texts"):
        loaded(emit(TREE, "onnx").files).answer(np.zeros((1, 5)))


def test_no_rows_are_not_answers():
    for files in variants(TREE):
        assert loaded(files).answer_rows([]).labels.tolist() == []


def test_ten_thousand_texts_in_one_set():
    texts = tuple(sorted(f"text {number}" for number in range(10_000)))
    program = Program(
        ("word",),
        ("no", "yes"),
        (Clause((OneOf(0, texts),)), Clause((OneOf(0, texts[::2], negated=True),))),
        split(0, split(1, leaf(0.0, 1.0), leaf(1.0, 0.0)), leaf(0.5, 0.5)),
        kinds=("category",),
    )
    rows = [[text] for text in (*texts[:50], "text", "", None)]
    for files in variants(program):
        assert_same(program, loaded(files).answer_rows(rows), rows)
