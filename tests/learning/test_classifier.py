"""GBFLClassifier: a scikit-learn classifier whose rules come from explanations alone."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Program, paths
from gbfl_compile.learning.classifier import GBFLClassifier
from gbfl_compile.learning.explain import Explanations
from tests.counts import FULL

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
MODEL = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, NAMES)

REASONS = {
    "check_estimators_nan_inf": "predict takes missing values on purpose (a missing value answers False in "
    "the clause that asks it); that fit refuses them is tested below",
}


ESTIMATORS = [
    GBFLClassifier(head="tree"),
    GBFLClassifier(head="rules", max_clauses=5, extra_rows=0),
    GBFLClassifier(head="rule_list"),
]


@parametrize_with_checks(
    ESTIMATORS if FULL else ESTIMATORS[:1],
    expected_failed_checks=lambda estimator: REASONS,
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def fitted():
    return GBFLClassifier(MODEL, head="tree").fit(X, NAMES)


def test_it_learns_a_readable_tree_in_the_original_labels(fitted):
    assert fitted.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert max(len(steps) for steps in paths(fitted.head_.decision).values()) <= 5
    assert fitted.score(X, NAMES) > 0.85
    assert set(fitted.predict(X)) <= set(NAMES)
    assert fitted.predict_proba(X).shape == (150, 3)


def test_the_users_black_box_is_used_unchanged(fitted):
    before = pickle.dumps(MODEL)
    GBFLClassifier(MODEL, head="tree").fit(X, NAMES)
    assert pickle.dumps(MODEL) == before
    assert fitted.black_box_.model is MODEL


def test_a_missing_value_at_predict_answers_false_and_at_fit_is_refused(fitted):
    x = X.copy()
    x[:, 2] = np.nan
    program = Program(("a", "b", "c", "d"), (0, 1, 2), fitted.head_.clauses, fitted.head_.decision)
    assert fitted.predict_proba(x).tolist() == [list(evaluate(program, row).probabilities) for row in x.tolist()]
    with pytest.raises(ValueError, match="NaN"):
        GBFLClassifier(MODEL, head="tree").fit(x, NAMES)
    with pytest.raises(ValueError, match="NaN"):
        GBFLClassifier(head="tree").fit(x, NAMES)
    with pytest.raises(ValueError, match="infinity"):
        GBFLClassifier(head="tree").fit(np.where(np.isnan(x), np.inf, x), NAMES)


def test_resolution_13_consistency_has_both_counts(fitted):
    measured = fitted.local_consistency(X)
    assert measured == fitted.consistency_
    assert measured.rows == 150
    assert 0 < measured.with_pn <= 150
    assert measured.c_tb_right <= measured.c_tb_all_right


def test_resolution_14_the_trees_labels_are_the_black_boxs_or_the_true_ones():
    wrong = NAMES.copy()
    wrong[::2] = "setosa"
    ours = GBFLClassifier(MODEL, head="tree", fit_on="x").fit(X, NAMES)
    same = GBFLClassifier(MODEL, head="tree", fit_on="x").fit(X, wrong)
    assert np.array_equal(ours.predict(X), same.predict(X))
    true = GBFLClassifier(MODEL, head="tree", fit_on="x", labels="true").fit(X, wrong)
    assert (true.predict(X) == wrong).mean() > (ours.predict(X) == wrong).mean()


def test_fitting_to_triplets_is_more_consistent_than_fitting_to_x(fitted):
    on_x = GBFLClassifier(MODEL, head="tree", mode="faithful", fit_on="x", single_bounds=False).fit(X, NAMES)
    assert fitted.consistency_.c_tb > on_x.consistency_.c_tb


def test_a_callable_is_a_black_box_and_its_columns_are_the_sorted_labels():
    def answer(rows):
        return MODEL.predict_proba(rows)

    model = GBFLClassifier(answer, head="tree").fit(X, NAMES)
    assert np.array_equal(model.predict(X), GBFLClassifier(MODEL, head="tree").fit(X, NAMES).predict(X))
    unnamed = GBFLClassifier(answer, head="tree").fit(X)
    assert unnamed.classes_.tolist() == [0, 1, 2]
    with pytest.raises(BadInput, match="y has only 2"):
        GBFLClassifier(answer, head="tree").fit(X[:100], NAMES[:100])


def test_y_may_be_left_out_when_nothing_needs_it():
    assert np.array_equal(
        GBFLClassifier(MODEL, head="tree").fit(X).predict(X),
        GBFLClassifier(MODEL, head="tree").fit(X, NAMES).predict(X),
    )
    for needs_y in (GBFLClassifier(head="tree"), GBFLClassifier(MODEL, head="tree", labels="true")):
        with pytest.raises(ValueError, match="requires y"):
            needs_y.fit(X)


def test_a_black_box_may_know_more_classes_than_y_but_not_fewer():
    part = GBFLClassifier(MODEL, head="tree").fit(X[:100], NAMES[:100])
    assert part.classes_.tolist() == MODEL.classes_.tolist()
    assert part.predict_proba(X).shape == (150, 3)
    two = LogisticRegression().fit(X[:100], NAMES[:100])
    with pytest.raises(BadInput, match="'virginica' that the black box does not"):
        GBFLClassifier(two, head="tree").fit(X, NAMES)


def test_a_frame_gives_its_names_to_the_explanations_and_to_the_black_box():
    frame = pd.DataFrame(X, columns=["sl", "sw", "pl", "pw"])
    box = LogisticRegression(max_iter=500).fit(frame, NAMES)
    model = GBFLClassifier(box, head="tree").fit(frame, NAMES)
    assert model.feature_names_in_.tolist() == ["sl", "sw", "pl", "pw"]
    assert model.explanations_.features == ("sl", "sw", "pl", "pw")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["sw", "sl", "pl", "pw"]])


def test_a_constant_black_box_gives_one_leaf():
    model = GBFLClassifier(lambda rows: np.full(len(rows), 0.9), head="tree").fit(X[:100], Y[:100])
    assert set(model.predict(X)) == {1}
    assert model.consistency_.c_tb is None
    assert model.consistency_.c_tb_all == 100


def test_a_forest_with_its_plateaus_is_explained_too():
    forest = RandomForestClassifier(20, random_state=0).fit(X, NAMES)
    model = GBFLClassifier(forest, head="tree").fit(X, NAMES)
    assert (model.predict(X) == forest.predict(X)).mean() > 0.85


def test_two_fits_are_equal_and_a_fitted_model_can_be_pickled():
    model = GBFLClassifier(head="tree", random_state=3).fit(X, NAMES)
    again = clone(model).fit(X, NAMES)
    assert model.clauses_ == again.clauses_
    assert np.array_equal(model.predict_proba(X), again.predict_proba(X))
    back = pickle.loads(pickle.dumps(model))
    assert np.array_equal(back.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(back.explain_points(X).pn, model.explain_points(X).pn)


def test_a_users_own_explainer_is_used():
    sizes = []

    def nothing_found(black_box, x, domain):
        sizes.append(len(x))
        label = MODEL.predict_proba(x).argmax(axis=1)
        none, flat = np.zeros(len(x), dtype=bool), np.zeros(len(x))
        return Explanations(x, x, x, none, none, label, label, flat, flat, none, 0, domain.features)

    model = GBFLClassifier(MODEL, head="tree", mode="faithful", explainer=nothing_found).fit(X, NAMES)
    assert sizes == [150]
    assert model.clauses_ == ()
    # the joint tree has rows to fit even where nothing is explained
    joint = GBFLClassifier(MODEL, head="tree", explainer=nothing_found, extra_rows=0).fit(X, NAMES)
    assert sizes == [150, 150]
    assert joint.score(X, MODEL.predict(X)) > 0.9


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_depth": 6}, "max_depth=6: a readable tree is 1 to 5 levels"),
        ({"max_depth": 0}, "max_depth=0"),
        ({"max_depth": "deep"}, "max_depth='deep'"),
        ({"grid": "spline", "mode": "faithful"}, "spline"),
        ({"head": "forest"}, "head='forest' is not one of tree, rules, rule_list"),
        ({"max_clauses": 0}, "max_clauses=0: a whole number, at least 1"),
        ({"C": 0}, "C=0"),
        ({"C": None}, "C=None"),
        ({"max_clauses": 2.5}, "max_clauses=2.5"),
        ({"extra_rows": -1}, "extra_rows=-1"),
        ({"kappa": "x"}, "kappa='x'"),
        ({"role_weights": (1, float("nan"), 1)}, "role_weights="),
        ({"role_weights": (0, 1, 1)}, "role_weights="),
        ({"mode": "loose"}, "mode='loose'"),
        ({"min_samples_leaf": 0}, "min_samples_leaf=0"),
        ({"fit_on": "y"}, "fit_on='y'"),
        ({"labels": "mine"}, "labels='mine'"),
        ({"explainer": "lime"}, "explainer='lime'"),
        ({"kappa": 2}, "kappa 2"),
        ({"bounds": (9, 0)}, "is above upper bound"),
    ],
)
def test_impossible_options_are_refused_by_name(options, says):
    with pytest.raises(BadInput, match=says):
        GBFLClassifier(MODEL, **{"head": "tree", **options}).fit(X, NAMES)


def test_the_demo_data_reaches_the_first_trials_consistency():
    x, y = load_breast_cancer(return_X_y=True)
    # shuffled, because the file is not: its last 169 rows are 77 % benign, the others 57 %, and a model
    # fitted to the others measures 41 % there
    train, test, y_train, y_test = train_test_split(x, y, random_state=0, stratify=y)
    model = GBFLClassifier(head="tree", random_state=0).fit(train, y_train)
    # the first trial had 71 % with its own split and network; 55 leaves room for another of each
    assert model.local_consistency(test).c_tb > 55
    assert model.score(test, y_test) > 0.8


DATA = Path(__file__).parents[3] / "shared" / "data"


@pytest.mark.skipif(not (DATA / "magic.csv.gz").exists(), reason="the paper's data sets are not beside this checkout")
def test_magic_is_explained_almost_everywhere():
    frame = pd.read_csv(DATA / "magic.csv.gz").sample(1500, random_state=0)
    y = frame.pop("class")
    model = GBFLClassifier(head="tree", extra_rows=0, random_state=0).fit(frame, y)
    counts = model.explanations_.counts()
    assert counts["pp_found"] == 1500
    assert counts["pn_found"] > 1100
    assert counts["queries"] < 150 * 1500
