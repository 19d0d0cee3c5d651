"""Any model is a black box: it is queried in blocks, its answers are checked and its queries counted."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gbfl_compile.errors import BadInput
from gbfl_compile.learning.black_box import as_black_box, classes_of, probabilities

ROWS = np.random.default_rng(0).normal(size=(200, 3))
LABELS = np.where(ROWS[:, 0] + ROWS[:, 1] > 0, "yes", "no")


def sigmoid(rows):
    return 1 / (1 + np.exp(-rows[:, 0]))


def test_an_object_with_predict_proba_keeps_its_own_labels():
    model = LogisticRegression().fit(ROWS, LABELS)
    box = as_black_box(model, ROWS)
    assert box.classes.tolist() == ["no", "yes"]
    assert np.array_equal(probabilities(box, ROWS), model.predict_proba(ROWS))
    assert np.array_equal(box.classes[classes_of(box, ROWS)], model.predict(ROWS))


def test_a_callable_of_one_number_per_row_is_p_of_class_one():
    box = as_black_box(sigmoid, ROWS)
    assert box.classes.tolist() == [0, 1]
    answer = probabilities(box, ROWS)
    assert np.array_equal(answer[:, 1], sigmoid(ROWS))
    assert np.array_equal(answer[:, 0], 1 - sigmoid(ROWS))


def test_queries_counts_rows_and_blocks_are_large():
    sizes = []

    def watched(rows):
        sizes.append(len(rows))
        return sigmoid(rows)

    box = as_black_box(watched, ROWS, block_rows=64)
    probabilities(box, ROWS)
    assert sizes == [8, 8, 64, 64, 64, 8]
    assert box.queries == sum(sizes)


def test_a_model_fitted_on_a_frame_is_called_with_its_own_columns_and_no_warning():
    frame = pd.DataFrame(ROWS, columns=["a", "b", "c"])
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame[["c", "a", "b"]], LABELS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        box = as_black_box(model, ROWS, features=["a", "b", "c"])
        answer = probabilities(box, ROWS)
    # a frame's columns lie otherwise in memory, and older matrix products round by that
    assert np.allclose(answer, model.predict_proba(frame[["c", "a", "b"]]), rtol=0, atol=1e-12)
    with pytest.raises(BadInput, match="column 'c'"):
        as_black_box(model, ROWS, features=["a", "b", "z"])


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda rows: np.full((len(rows), 2), np.nan), "nan"),
        (lambda rows: np.full((len(rows), 2), np.inf), "inf"),
        (lambda rows: rows * 100, "from 0 to 1"),
        (lambda rows: np.ones((len(rows), 1)), r"shape \(8, 1\) for 8 rows"),
        (lambda rows: np.ones((len(rows) + 1, 2)), r"shape \(9, 2\) for 8 rows"),
        (lambda rows: [["a", "b"]] * len(rows), "not numbers"),
        (lambda rows: None, "black box answered"),
    ],
)
def test_an_answer_that_is_not_probabilities_is_refused_by_what_came_back(answer, says):
    with pytest.raises(BadInput, match=says):
        as_black_box(answer, ROWS)


def test_a_changing_number_of_classes_is_refused():
    box = as_black_box(lambda rows: np.full((len(rows), 2 if len(rows) <= 8 else 3), 0.3), ROWS)
    with pytest.raises(BadInput, match="3 classes where it answered 2"):
        probabilities(box, ROWS)


def test_what_cannot_be_queried_is_refused():
    with pytest.raises(BadInput, match="no predict_proba and is not callable"):
        as_black_box(42, ROWS)
    with pytest.raises(BadInput, match="fitted on 3 features, the data has 2"):
        as_black_box(LogisticRegression().fit(ROWS, LABELS), ROWS[:, :2])
    with pytest.raises(BadInput, match="at least one sample row"):
        as_black_box(sigmoid, ROWS[:0])
    with pytest.raises(BadInput, match="for a black box of 3 features"):
        probabilities(as_black_box(sigmoid, ROWS), ROWS[:, :2])


def test_a_black_box_that_answers_differently_each_time_is_refused_with_what_to_do():
    rng = np.random.default_rng(0)
    with pytest.raises(BadInput, match=r"differently each time: .*then.*switch dropout or sampling off"):
        as_black_box(lambda rows: np.clip(sigmoid(rows) + 0.01 * rng.normal(size=len(rows)), 0, 1), ROWS)


def test_a_black_box_whose_answer_depends_on_neighbouring_rows_is_refused():
    with pytest.raises(BadInput, match="depend on the rows asked beside it"):
        as_black_box(lambda rows: sigmoid(rows - rows[0]), ROWS)


def test_rounding_is_not_another_answer():
    rng = np.random.default_rng(0)
    taken = as_black_box(lambda rows: sigmoid(rows) * (1 - 1e-9 * rng.random(len(rows))), ROWS)
    assert taken is not None


def test_a_black_box_that_fails_half_way_is_named_with_its_reason_and_its_cause_is_kept():
    answered = []

    def failing(rows):
        answered.append(len(rows))
        if len(answered) == 4:
            raise ConnectionError("line went dead")
        return sigmoid(rows)

    box = as_black_box(failing, ROWS, block_rows=50)
    with pytest.raises(BadInput, match="failed on a block of 50 rows, 66 rows into its answers: ConnectionError: line"):
        probabilities(box, ROWS)
    with pytest.raises(BadInput) as caught:
        as_black_box(lambda rows: 1 / 0, ROWS)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_nan_half_way_is_refused_too():
    box = as_black_box(lambda rows: np.where(np.arange(len(rows)) == 99, np.nan, sigmoid(rows)), ROWS)
    with pytest.raises(BadInput, match="on row 99 of a block"):
        probabilities(box, ROWS)
