"""The paper's baselines: scikit-learn classifiers on raw features, lowered without a difference."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from gbfl_compile.checking.witnesses import witnesses
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.nodes import Leaf
from gbfl_compile.learning.baselines import AugmentedTree, DistilledTree, StandardTree, best_depth, deal_folds
from gbfl_compile.learning.explain import domain_of
from gbfl_compile.lowering import lower
from gbfl_compile.passes import optimise
from tests.counts import FULL

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
MODEL = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, NAMES)

REASONS = {
    "check_estimators_nan_inf": "predict takes missing and infinite values on purpose (the tree routes them, and a "
    "lowered program agrees); that fit refuses them is tested below",
}


ESTIMATORS = [DistilledTree(), StandardTree(), AugmentedTree()]


@parametrize_with_checks(ESTIMATORS if FULL else ESTIMATORS[:1], expected_failed_checks=lambda estimator: REASONS)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def fitted_baselines(x=X, y=NAMES, model=MODEL, **settings):
    standard = StandardTree(**settings).fit(x, y)
    return standard, DistilledTree(model, **settings).fit(x, y), AugmentedTree(model, **settings).fit(x, y)


def test_all_answer_in_the_original_labels_with_at_most_32_leaves():
    for model in fitted_baselines():
        assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
        assert model.score(X, NAMES) > 0.85
        assert model.predict_proba(X).shape == (150, 3)
        assert model.tree_.get_n_leaves() <= 32
        assert 1 <= model.max_depth_ <= 5


def test_each_is_fitted_to_what_its_name_says():
    standard, distilled, augmented = fitted_baselines(max_depth=5, random_state=1)
    tree = DecisionTreeClassifier(max_depth=5, random_state=1)
    assert (standard.predict_proba(X) == clone(tree).fit(X, NAMES).predict_proba(X)).all()
    assert (distilled.predict_proba(X) == clone(tree).fit(X, MODEL.predict(X)).predict_proba(X)).all()
    e = augmented.explanations_
    points = np.concatenate([X, e.pp[e.has_pp], e.pn[e.has_pn]])
    assert (augmented.predict_proba(X) == clone(tree).fit(points, MODEL.predict(points)).predict_proba(X)).all()


def test_one_set_of_explanations_serves_all():
    _, distilled, augmented = fitted_baselines()
    e = augmented.explanations_
    again = AugmentedTree(MODEL).fit(X, NAMES, explanations=e)
    assert again.black_box_.queries < len(X)  # it is only checked, not asked about the rows
    assert (again.predict_proba(X) == augmented.predict_proba(X)).all()
    assert (DistilledTree(MODEL).fit(X, explanations=e).predict_proba(X) == distilled.predict_proba(X)).all()
    assert (StandardTree().fit(X, NAMES, explanations=e).predict(X) == StandardTree().fit(X, NAMES).predict(X)).all()
    assert augmented.black_box_.queries > len(X)
    with pytest.raises(BadInput, match="other rows"):
        AugmentedTree(MODEL).fit(X[::-1], NAMES[::-1], explanations=e)


def test_consistency_is_measured_and_augmentation_helps_it():
    _, distilled, augmented = fitted_baselines()
    measured = augmented.local_consistency(X)
    assert measured.rows == 150
    assert measured.c_tb > distilled.local_consistency(X).c_tb
    assert augmented.explain_points(X).has_pn.sum() == measured.with_pn


@pytest.mark.parametrize("seed", range(3))
def test_the_program_is_the_baseline_on_every_witness_missing_and_infinite_ones_too(seed):
    x, y = make_classification(200, 6, n_informative=4, n_classes=3, random_state=seed)
    black_box = LogisticRegression().fit(x, y)
    for model in fitted_baselines(x, y, black_box, random_state=seed):
        program = lower(model)
        assert sum(node.rows for node in program.decision.nodes if isinstance(node, Leaf)) == 200
        for form in (program, optimise(program, x)):
            rows = np.concatenate([witnesses(form), x])
            answers = evaluate_many(form, rows)
            assert np.isnan(rows).any()
            assert np.isinf(rows).any()
            assert (answers.labels == model.predict(rows)).all()
            assert (answers.probabilities == model.predict_proba(rows)).all()


def test_a_program_says_which_baseline_it_was():
    standard, _, augmented = fitted_baselines(pd.DataFrame(X, columns=list("abcd")))
    metadata = lower(augmented, {"test": {"accuracy": 0.5}}).metadata
    assert metadata["model"].endswith("AugmentedTree")
    assert metadata["explanations"]["rows"] == metadata["training"]["rows"] == 150
    assert metadata["black_box"]["fingerprint"].startswith("joblib-sha1:")
    assert metadata["figures"] == {"test": {"accuracy": 0.5}}
    metadata = lower(standard).metadata
    assert "black_box" not in metadata
    assert metadata["training"]["rows"] == 150
    assert lower(standard).features == ("a", "b", "c", "d")


def test_names_pickles_clones_pipelines_and_searches():
    frame = pd.DataFrame(X, columns=list("abcd"))
    for model in fitted_baselines(frame):
        assert model.feature_names_in_.tolist() == list("abcd")
        assert (pickle.loads(pickle.dumps(model)).predict(frame) == model.predict(frame)).all()
        assert clone(model).get_params()["max_depth"] == "cv"
    search = GridSearchCV(make_pipeline(StandardScaler(), StandardTree()), {"standardtree__max_depth": [1, 3]}, cv=3)
    assert search.fit(X, NAMES).best_params_ == {"standardtree__max_depth": 3}


def test_arrow_tables_are_accepted():
    arrow = pytest.importorskip("pyarrow")
    frame = pd.DataFrame(X, columns=list("abcd"))
    for model in (StandardTree(), AugmentedTree(MODEL)):
        model.fit(arrow.Table.from_pandas(frame), NAMES)
        assert model.feature_names_in_.tolist() == list("abcd")
        assert (model.predict(arrow.Table.from_pandas(frame)) == model.predict(frame)).all()


def test_training_rows_must_be_whole_and_depth_readable():
    broken = X.copy()
    broken[0, 0] = np.nan
    for model in (StandardTree(), DistilledTree(MODEL), AugmentedTree(MODEL)):
        with pytest.raises(ValueError, match="NaN"):
            model.fit(broken, NAMES)
        with pytest.raises(BadInput, match="1 to 5 levels"):
            model.set_params(max_depth=6).fit(X, NAMES)
    with pytest.raises(BadInput, match="target y is None"):
        AugmentedTree().fit(X)
    with pytest.raises(BadInput, match="neither 'greedy'"):
        AugmentedTree(MODEL, explainer="lime").fit(X, NAMES)


def test_the_depth_is_chosen_by_cross_validation():
    x, y = make_classification(400, 8, n_informative=5, random_state=0)
    settings = {"random_state": 0}
    fold = deal_folds(y)
    parts = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(10)]
    scores = [
        cross_val_score(DecisionTreeClassifier(max_depth=d, **settings), x, y, cv=parts).mean() for d in range(1, 6)
    ]
    assert best_depth(x, y, np.arange(400), settings) == 1 + int(np.argmax(scores))


def test_folds_are_dealt_evenly_and_fewer_where_a_class_is_small():
    label = np.array([0] * 95 + [1] * 5)
    assert np.bincount(deal_folds(label)[:95]).tolist() == [19] * 5
    assert np.bincount(deal_folds(label)[95:]).tolist() == [1] * 5
    assert set(deal_folds(np.array([0, 0, 0, 1]))) == {0, 1}


def test_explaining_uses_the_training_medians_and_range():
    augmented = AugmentedTree(MODEL).fit(X, NAMES)
    assert (augmented.domain_.base == domain_of(X).base).all()
