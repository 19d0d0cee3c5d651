"""Observed rates: labels stay, probabilities are the observed rates, and the program emits the same as predict_proba."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.learning.calibration import FEWEST_ROWS
from gbfl_compile.learning.classifier import GBFLClassifier
from gbfl_compile.lowering import lower
from gbfl_compile.passes import optimise


def noisy_rows(rows, seed):
    """Two features; the first one's sign decides the class, and one row in three is of the other class."""
    choose = np.random.default_rng(seed)
    x = choose.normal(size=(rows, 2))
    return x, ((x[:, 0] > 0) ^ (choose.random(rows) < 1 / 3)).astype(int)


@pytest.fixture(scope="module", params=("rules", "tree", "rule_list"))
def fitted(request):
    x, y = noisy_rows(300, 0)
    box = HistGradientBoostingClassifier(max_iter=80, min_samples_leaf=2).fit(x, y)  # learns the noise by heart
    return lambda: GBFLClassifier(box, head=request.param, max_clauses=8, max_depth=3, extra_rows=0).fit(x, y)


def test_calibration_changes_no_label_and_brings_probabilities_to_what_is_observed(fitted):
    before, after = fitted(), fitted().calibrate(*noisy_rows(8000, 1))
    x, y = noisy_rows(8000, 2)
    assert after.predict(x).tolist() == before.predict(x).tolist()
    won = after.predict(x)
    sure = after.predict_proba(x)[np.arange(len(x)), won]
    assert abs(sure.mean() - (won == y).mean()) < 0.03  # 8,000 rows tell a rate to within 0.02
    assert after.probabilities_["emitted"] == "observed"
    rates = after.probabilities_["by_class"]
    assert sum(rate["rows"] for rate in rates) == 8000


def test_the_program_emits_what_predict_proba_says(fitted):
    model = fitted().calibrate(*noisy_rows(500, 1))
    x, _ = noisy_rows(300, 3)
    program = optimise(lower(model))
    assert program.has_exact_probabilities
    assert (evaluate_many(program, x).probabilities == model.predict_proba(x)).all()


def test_a_larger_lead_is_never_less_probable(fitted):
    decision = fitted().calibrate(*noisy_rows(1000, 1)).head_.decision
    for c, own in enumerate(getattr(decision, "bands", ())):
        rates = [band.probabilities[c] for band in own]
        assert rates == sorted(rates)


def test_too_few_rows_leave_everything_as_it_is_and_say_so(fitted):
    before, after = fitted(), fitted().calibrate(*noisy_rows(FEWEST_ROWS - 1, 1))
    assert after.head_.decision == before.head_.decision
    assert after.probabilities_["emitted"] == "score"
    assert str(FEWEST_ROWS) in after.probabilities_["why"]


def test_a_class_that_is_never_answered_has_a_rate_too():
    x, y = noisy_rows(300, 0)
    model = GBFLClassifier(lambda rows: np.tile([0.9, 0.1], (len(rows), 1)), max_clauses=2, extra_rows=0).fit(x, y)
    model.calibrate(*noisy_rows(200, 1))
    probabilities = lower(model).decision.bands[1][0].probabilities
    assert sum(probabilities) == pytest.approx(1.0)
