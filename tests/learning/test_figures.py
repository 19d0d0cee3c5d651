"""Outcome figures equal those of scikit-learn, for two classes and for more."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import brier_score_loss, confusion_matrix, roc_auc_score

from gbfl_compile import GBFLClassifier
from gbfl_compile.learning.figures import calibration_by_chance, calibration_error, outcome_figures

X, Y = load_iris(return_X_y=True, as_frame=True)


@pytest.mark.parametrize("classes", [2, 3])
def test_accuracy_area_and_confusion_are_those_of_scikit_learn(classes):
    rows = classes > Y if classes == 3 else Y > 0
    x, y = X[rows], Y[rows].to_numpy()
    box = RandomForestClassifier(20, max_depth=3, random_state=0).fit(x[::2], y[::2])
    model = GBFLClassifier(box, max_clauses=3, extra_rows=0, explainer="greedy").fit(x[::2], y[::2])
    figures = outcome_figures(model, x, y)
    answer = model.predict_proba(x)
    assert figures["accuracy"] == model.score(x, y)
    assert figures["black_box_accuracy"] == box.score(x, y)
    assert figures["base_rate"] == np.bincount(y).max() / len(y)
    assert figures["confusion"] == confusion_matrix(y, model.predict(x)).tolist()
    if classes == 3:
        assert figures["auc"] == pytest.approx(roc_auc_score(y, answer, multi_class="ovr"))
    else:
        assert figures["auc"] == pytest.approx(roc_auc_score(y, answer[:, 1]))
        assert figures["brier"] == pytest.approx(brier_score_loss(y, answer[:, 1], pos_label=2))
    assert 0 <= figures["calibration"] <= 1


def test_rows_of_one_class_have_no_area():
    box = RandomForestClassifier(5, random_state=0).fit(X, Y)
    model = GBFLClassifier(box, max_clauses=2, extra_rows=0, explainer="greedy").fit(X, Y)
    assert outcome_figures(model, X[:50], Y[:50].to_numpy())["auc"] is None


@pytest.mark.parametrize("rows", [60, 250, 3000])
def test_probabilities_that_are_exactly_right_have_the_error_that_chance_makes(rows):
    choose = np.random.default_rng(rows)
    second = choose.beta(1, 2, size=rows)
    answer = np.column_stack([1 - second, second])
    errors = [calibration_error(answer, (choose.random(rows) < second).astype(np.int64)) for _ in range(400)]
    assert np.mean(errors) == pytest.approx(calibration_by_chance(answer), rel=0.05)  # 400 draws tell it to within 2 %
    wrong = (choose.random(rows) < np.minimum(1, second + 0.3)).astype(np.int64)
    assert calibration_error(answer, wrong) > calibration_by_chance(answer) + 0.1
