"""A lowered program agrees with its classifier on every assignment of its clauses."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from gbfl_compile.checking.witnesses import witnesses
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.json import from_json, to_json
from gbfl_compile.ir.nodes import Leaf, Scorecard
from gbfl_compile.learning.classifier import GBFLClassifier
from gbfl_compile.lowering import histogram, lower
from gbfl_compile.passes import optimise

CASES = {
    "iris, a forest, names": (load_iris(as_frame=True), RandomForestClassifier(20, random_state=0), {}),
    "breast cancer, logistic": (load_breast_cancer(), LogisticRegression(max_iter=10000), {"fit_on": "x"}),
    "literal mode": (
        load_iris(as_frame=True),
        LogisticRegression(max_iter=1000),
        {"mode": "literal", "single_bounds": False},
    ),
    "default black box": (load_iris(as_frame=True), None, {"max_depth": 3}),
    "a rule set, three classes": (load_iris(as_frame=True), LogisticRegression(max_iter=1000), {"head": "rules"}),
    "a rule set, two classes": (load_breast_cancer(), LogisticRegression(max_iter=10000), {"head": "rules"}),
    "a rule list": (load_iris(as_frame=True), LogisticRegression(max_iter=1000), {"head": "rule_list"}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_program_is_the_classifier_on_every_witness_and_row(case):
    data, black_box, settings = CASES[case]
    x, y = data.data, np.asarray(data.target_names)[data.target]
    if black_box is not None:
        black_box.fit(x, y)
    model = GBFLClassifier(black_box, random_state=0, **{"head": "tree", **settings}).fit(x, y)
    for program in (lower(model), optimise(lower(model), np.asarray(x, dtype=float))):
        rows = np.concatenate([witnesses(program), np.asarray(x, dtype=float)])
        answers = evaluate_many(program, rows)
        table = pd.DataFrame(rows, columns=x.columns) if hasattr(x, "columns") else rows
        assert (model.predict(table) == answers.labels).all()
        assert (model.predict_proba(table) == answers.probabilities).all()
        assert evaluate(program, rows[0].tolist()).label == answers.labels[0]


def test_labels_stay_what_they_are():
    x, y = make_classification(200, random_state=0)
    for labels in (
        y,
        y.astype(bool),
        y.astype(float),
        np.array(["no", "yes"])[y],
        np.array(["no", "yes"], dtype=object)[y],
    ):
        model = GBFLClassifier(LogisticRegression().fit(x, labels), head="tree", max_depth=2).fit(x, labels)
        program = lower(model)
        assert program.classes == tuple(np.unique(labels).tolist())
        assert {type(label) for label in program.classes} == {type(labels.tolist()[0])}


def test_a_program_knows_where_it_came_from():
    data = load_iris(as_frame=True)
    black_box = LogisticRegression(max_iter=1000).fit(data.data, data.target)
    model = GBFLClassifier(black_box, head="tree", max_depth=2, random_state=7).fit(data.data, data.target)
    program = lower(model, {"test": {"accuracy": 0.5}})
    metadata = from_json(to_json(program)).metadata
    assert metadata["parameters"]["random_state"] == 7
    assert metadata["black_box"]["kind"].endswith("LogisticRegression")
    assert metadata["black_box"]["fingerprint"].startswith("joblib-sha1:")
    assert metadata["training"]["rows"] == 150
    assert len(metadata["training"]["histograms"]) == 4
    assert metadata["figures"]["test"] == {"accuracy": 0.5}
    assert metadata["figures"]["training"]["fidelity_of"] == 150
    again = lower(
        GBFLClassifier(black_box, head="tree", max_depth=2, random_state=7).fit(data.data, data.target)
    ).metadata
    assert again["training"] == metadata["training"]
    assert again["black_box"] == metadata["black_box"]


def test_leaf_counts_are_training_rows():
    data = load_iris(as_frame=True)
    model = GBFLClassifier(LogisticRegression(max_iter=1000).fit(data.data, data.target), head="tree").fit(
        data.data, data.target
    )
    for program in (lower(model), optimise(lower(model))):
        assert sum(node.rows for node in program.decision.nodes if isinstance(node, Leaf)) == 150


def test_a_rule_set_is_a_scorecard_of_at_most_its_budget():
    data = load_iris(as_frame=True)
    black_box = LogisticRegression(max_iter=1000).fit(data.data, data.target)
    program = lower(GBFLClassifier(black_box, head="rules", max_clauses=7).fit(data.data, data.target))
    assert isinstance(program.decision, Scorecard)
    assert 1 <= len(program.clauses) <= 7


def test_a_classifier_that_is_not_fitted_is_refused():
    with pytest.raises(BadInput, match="call fit first"):
        lower(GBFLClassifier(head="tree"))


def test_what_is_not_a_rule_model_is_refused_by_name():
    with pytest.raises(BadInput, match="LogisticRegression cannot be lowered"):
        lower(LogisticRegression())


def test_a_histogram_counts_every_value_once():
    for values in (
        np.arange(100.0),
        np.zeros(5),
        np.array([1.0, 1.0, 2.0]),
        np.array([np.nan, 1.0]),
        np.array([np.nan]),
    ):
        found = histogram(values)
        assert sum(found["counts"]) + found["missing"] == len(values)
        assert found["edges"] == sorted(found["edges"])
