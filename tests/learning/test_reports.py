"""What a fitted classifier tells: its rules as a table, why a row got its class, how good it is, what a search tried.

Outcome figures equal those of scikit-learn, for two classes and for more.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, confusion_matrix, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import clause_column
from gbfl_compile.learning.classifier import GBFLClassifier
from gbfl_compile.learning.reports import calibration_by_chance, calibration_error, outcome_figures
from tests.counts import FULL_ONLY

IRIS = load_iris(as_frame=True)
X, Y = IRIS.data, IRIS.target_names[IRIS.target]
BOX = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)


@pytest.fixture(scope="module", params=["tree", "rules", "rule_list"])
def model(request):
    return GBFLClassifier(BOX, head=request.param, max_clauses=6, extra_rows=0).fit(X, Y)


def test_the_rule_table_counts_what_it_says(model):
    table = model.rules_
    assert len(table) == len(model.clauses_)
    for line, clause in zip(table.to_dict("records"), model.clauses_, strict=True):
        holds = clause_column(clause, X.to_numpy())
        assert line["support"] == holds.sum()
        shares = [line[f"precision_{label}"] for label in model.classes_]
        expected = [(BOX.predict(X)[holds] == label).mean() if holds.any() else 0 for label in model.classes_]
        assert shares == pytest.approx(expected)
        assert all(0 <= row < 150 for row in line["sources"])
    weights = table.filter(like="weight")
    assert len(weights.columns) == (3 if model.head == "rules" else 1)
    if model.head == "tree":
        assert weights["weight"].sum() == pytest.approx(1)


def test_a_mined_clause_names_the_rows_it_was_mined_from():
    tree = GBFLClassifier(BOX, head="tree", mode="faithful", single_bounds=False).fit(X, Y)
    origin = dict(zip(tree.mined_.clauses, tree.mined_.sources, strict=True))
    assert [origin[clause] for clause in tree.clauses_] == tree.rules_["sources"].tolist()


def test_a_row_shows_its_class_why_and_what_would_change_it(model):
    lines = model.explain(X.iloc[:30])
    assert lines["label"].tolist() == model.predict(X.iloc[:30]).tolist()
    assert lines["black_box"].tolist() == BOX.predict(X.iloc[:30]).tolist()
    assert all(isinstance(because, tuple) for because in lines["because"])
    e = model.explain_points(X.iloc[:30])
    for i in range(30):
        if e.has_pn[i]:
            changed = X.iloc[[i]].copy()
            for name, value in lines["pn"][i].items():
                changed[name] = value
            assert BOX.predict(changed)[0] == lines["pn_label"][i] != lines["black_box"][i]
        else:
            assert lines["pn"][i] is None
        sufficient = pd.DataFrame([dict(zip(X.columns, model.base_, strict=True)) | lines["pp"][i]])
        assert BOX.predict(sufficient)[0] == lines["black_box"][i]


def test_the_score_report_has_every_figure_with_its_count(model):
    report = model.score_report(X, Y)
    first = ["accuracy", "black_box_accuracy", "base_rate", "fidelity", "c_tb_all", "c_tb", "c_pp", "c_pn"]
    assert report.index.tolist()[: len(first)] == first
    assert report.loc["accuracy", "percent"] == pytest.approx(100 * model.score(X, Y))
    counted = report[report["right"].notna()]
    assert (counted["right"] <= counted["of"]).all()
    assert report.loc["c_tb", "of"] == model.consistency_.with_pn


def test_the_path_of_a_rule_set_can_be_chosen_from():
    path = GBFLClassifier(BOX, head="rules", max_clauses=5, extra_rows=0).fit(X, Y).path_
    assert path.columns.tolist() == ["clauses", "c_tb", "c_tb_all", "fidelity", "accuracy"]
    assert path["c_tb_all"].iloc[-1] > path["c_tb_all"].iloc[0]


@pytest.mark.parametrize("head", [pytest.param("tree", marks=FULL_ONLY), "rules"])
def test_a_search_keeps_the_most_consistent_recipe(head, capsys):
    few = slice(None, None, 3)
    model = GBFLClassifier(BOX, head=head, max_clauses=3, extra_rows=0, search=True, verbose=1).fit(X[few], Y[few])
    assert model.search_["c_tb"].is_monotonic_decreasing
    assert set(model.search_["kappa"]) == {0.2, 0.5, 0.8}
    assert capsys.readouterr().err.count("search ") == len(model.search_) >= 9
    assert model.score(X, Y) > 0.85


def test_earlier_explanations_are_used_and_others_refused():
    class Counting:
        classes_ = BOX.classes_
        rows = 0

        def predict_proba(self, rows):
            self.rows += len(rows)
            return BOX.predict_proba(pd.DataFrame(np.asarray(rows), columns=X.columns))

    explained = GBFLClassifier(BOX, head="tree").fit(X, Y).methods_
    counting = Counting()
    model = GBFLClassifier(counting, head="tree", extra_rows=0).fit(X, Y, explanations=explained)
    assert counting.rows < 50  # a few rows to see what it answers; explaining takes thousands
    assert model.head_ == GBFLClassifier(BOX, head="tree", extra_rows=0).fit(X, Y).head_
    with pytest.raises(BadInput, match="other rows than X"):
        GBFLClassifier(BOX, head="tree").fit(X.iloc[:100], Y[:100], explanations=explained)


def test_macem_explains_too():
    model = GBFLClassifier(BOX, head="tree", explainer="macem", max_changes=2, random_state=0).fit(X.iloc[::5], Y[::5])
    assert model.explanations_.has_pp.all()
    assert model.score(X, Y) > 0.6


def test_limits_on_explanations_reach_the_explainer():
    settings = {"immutable": ["petal length (cm)"], "directions": {"petal width (cm)": "up"}, "max_queries": 20_000}
    model = GBFLClassifier(BOX, **{"head": "tree", **settings}).fit(X, Y)
    e = model.explanations_
    assert (e.pn[:, 2] == e.x[:, 2]).all()
    assert (e.pn[:, 3] >= e.x[:, 3]).all()
    assert e.queries <= 20_000
    e = GBFLClassifier(BOX, head="tree", kinds={"sepal width (cm)": "integer"}).fit(X.round(), Y).explanations_
    assert (e.pn[:, 1] == e.pn[:, 1].round()).all()


def test_a_fit_that_was_stopped_continues(tmp_path):
    class Stopping:
        classes_ = BOX.classes_
        left = 5000

        def predict_proba(self, rows):
            self.left -= len(rows)
            if self.left < 0:
                raise ConnectionError("the model's server went away")
            return BOX.predict_proba(pd.DataFrame(np.asarray(rows), columns=X.columns))

    many, labels = pd.concat([X] * 8), np.tile(Y, 8)
    stopping = Stopping()
    with pytest.raises(BadInput, match="went away"):
        GBFLClassifier(stopping, head="tree", checkpoint=tmp_path / "kept").fit(many, labels)
    stopping.left = 10**9
    resumed = GBFLClassifier(stopping, head="tree", checkpoint=tmp_path / "kept").fit(many, labels)
    assert resumed.head_ == GBFLClassifier(BOX, head="tree").fit(many, labels).head_


def test_it_works_in_a_pipeline_and_a_grid_search():
    pipeline = make_pipeline(StandardScaler(), GBFLClassifier(head="tree", random_state=0))
    grid = {"gbflclassifier__max_depth": [1, 3]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X.to_numpy(), Y)
    assert search.best_params_ == {"gbflclassifier__max_depth": 3}
    assert search.score(X.to_numpy(), Y) > 0.85


def test_arrow_and_polars_tables_are_taken_with_their_names():
    import pyarrow as pa

    from_pandas = GBFLClassifier(BOX, head="tree").fit(X, Y)
    table = pa.Table.from_pandas(X)
    from_arrow = GBFLClassifier(BOX, head="tree").fit(table, Y)
    assert from_arrow.feature_names_in_.tolist() == X.columns.tolist()
    assert from_arrow.head_ == from_pandas.head_
    assert from_pandas.predict(table).tolist() == from_pandas.predict(X).tolist()


def test_polars_frames_are_taken_with_their_names():
    polars = pytest.importorskip("polars", reason="polars is not installed")
    frame = polars.DataFrame({name: X[name].to_numpy() for name in X.columns})
    model = GBFLClassifier(BOX, head="tree").fit(frame, Y)
    assert model.feature_names_in_.tolist() == X.columns.tolist()
    assert model.predict(frame).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("classes", [2, 3])
def test_accuracy_area_and_confusion_are_those_of_scikit_learn(classes):
    rows = classes > IRIS.target if classes == 3 else IRIS.target > 0
    x, y = X[rows], IRIS.target[rows].to_numpy()
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


def test_rates_that_are_the_same_for_every_row_rank_none_before_another():
    """Rates come from the rows of other folds: where one row of a class is left out, its rate is lower."""
    rng = np.random.default_rng(0)
    x, y = pd.DataFrame({"a": rng.normal(size=75)}), (np.arange(75) == 40).astype(int)
    model = GBFLClassifier(lambda rows: np.full(len(rows), 0.1), extra_rows=0).fit(x, y)
    model.calibrate(x, y)
    assert len(set(model.out_of_fold_[:, 1])) > 1
    assert outcome_figures(model, x, y, model.out_of_fold_)["auc"] == 0.5


def test_rows_of_one_class_have_no_area():
    box = RandomForestClassifier(5, random_state=0).fit(X, IRIS.target)
    model = GBFLClassifier(box, max_clauses=2, extra_rows=0, explainer="greedy").fit(X, IRIS.target)
    assert outcome_figures(model, X[:50], IRIS.target[:50].to_numpy())["auc"] is None


@pytest.mark.parametrize("rows", [60, 250, 3000])
def test_probabilities_that_are_exactly_right_have_the_error_that_chance_makes(rows):
    choose = np.random.default_rng(rows)
    second = choose.beta(1, 2, size=rows)
    answer = np.column_stack([1 - second, second])
    errors = [calibration_error(answer, (choose.random(rows) < second).astype(np.int64)) for _ in range(400)]
    assert np.mean(errors) == pytest.approx(calibration_by_chance(answer), rel=0.05)  # 400 draws tell it to within 2 %
    wrong = (choose.random(rows) < np.minimum(1, second + 0.3)).astype(np.int64)
    assert calibration_error(answer, wrong) > calibration_by_chance(answer) + 0.1
