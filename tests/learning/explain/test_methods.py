"""Nearest-unlike and growing-spheres explanations keep their promises, and several methods work as one explainer."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from sklearn.ensemble import HistGradientBoostingClassifier

from gbfl_compile import GBFLClassifier
from gbfl_compile.errors import BadInput
from gbfl_compile.learning.black_box import as_black_box
from gbfl_compile.learning.explain import domain_of, infer_kinds
from gbfl_compile.learning.explain.nearest import Nearest, explain_by_nearest, with_examples
from gbfl_compile.learning.explain.search import WINS
from gbfl_compile.learning.explain.spheres import Spheres, explain_by_spheres
from tests.learning.explain.explaining import assert_on_its_kind, margins, problems

FEW = Spheres(samples=10, radii=(0.05, 0.2, 0.8))
METHODS = pytest.mark.parametrize(
    ("explain", "how"), [(explain_by_nearest, Nearest(pn_bisections=3)), (explain_by_spheres, FEW)]
)


@METHODS
@settings(max_examples=60)
@given(problem=problems())
def test_every_pp_and_pn_has_its_class_and_is_a_row_that_the_domain_allows(explain, how, problem):
    train, domain, x, answer = problem
    box = as_black_box(answer, train)
    e = explain(box, x, with_examples(domain, box, train), how)
    assert (margins(answer, e.pp, e.label)[e.has_pp] >= min(WINS, margins(answer, x, e.label).min())).all()
    assert (margins(answer, e.pn, e.label)[e.has_pn] <= -WINS).all()
    assert np.array_equal(e.pn_label[e.has_pn], answer(e.pn[e.has_pn]).argmax(axis=1))
    assert e.queries <= len(x) * (1 + how.dearest(domain))
    for j in range(x.shape[1]):
        pn, own = e.pn[e.has_pn, j], x[e.has_pn, j]
        moved = pn != own
        assert ((domain.lower[j] <= pn) & (pn <= domain.upper[j]))[moved].all()
        restored = e.pp[e.has_pp, j]
        between = np.sort(np.stack((np.full(len(restored), domain.base[j]), x[e.has_pp, j])), axis=0)
        assert ((between[0] <= restored) & (restored <= between[1])).all()
        if domain.kinds:
            assert_on_its_kind(pn[moved], domain.kinds[j])
            assert_on_its_kind(restored[restored != x[e.has_pp, j]], domain.kinds[j])
        if j in domain.immutable:
            assert not moved.any()
        way = domain.directions[j] if domain.directions else "both"
        assert way != "up" or (pn >= own).all()
        assert way != "down" or (pn <= own).all()


@METHODS
@settings(max_examples=20)
@given(problem=problems())
def test_a_row_is_explained_the_same_alone_and_in_small_blocks(explain, how, problem):
    train, domain, x, answer = problem
    domain = with_examples(domain, as_black_box(answer, train), train)
    whole = explain(as_black_box(answer, train), x, domain, how)
    small = explain(as_black_box(answer, train, block_rows=7), x, domain, how)
    alone = explain(as_black_box(answer, train), x[-1:], domain, how)
    for name in ("pp", "pn", "has_pp", "has_pn"):
        assert np.array_equal(getattr(whole, name), getattr(small, name))
        assert np.array_equal(getattr(whole, name)[-1:], getattr(alone, name))


def test_nothing_more_of_a_nearest_unlike_pn_can_be_undone():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 4))

    def answer(rows):
        high = 1 / (1 + np.exp(-5 * (rows[:, 0] + rows[:, 1])))
        return np.column_stack((1 - high, high))

    box = as_black_box(answer, x)
    e = explain_by_nearest(box, x, with_examples(domain_of(x), box, x))
    assert e.has_pn.all()
    for j in range(4):
        changed = e.pn[:, j] != x[:, j]
        back = e.pn.copy()
        back[:, j] = x[:, j]
        assert (answer(back).argmax(axis=1) == e.label)[changed].all()
    assert (e.pn[:, 2:] == x[:, 2:]).all()  # what the black box does not look at is undone first


def test_nearest_without_training_rows_is_refused():
    x = np.eye(4)
    with pytest.raises(BadInput, match="has no training rows to choose from: with_examples adds them"):
        explain_by_nearest(as_black_box(lambda rows: np.tile([0.6, 0.4], (len(rows), 1)), x), x, domain_of(x))


def test_whole_numbers_and_few_values_are_kinds():
    rng = np.random.default_rng(0)
    x = np.column_stack(
        (rng.normal(size=200), rng.integers(0, 50, 200), rng.choice([1.0, 2.0, 5.0], 200), np.full(200, 3.0))
    )
    assert infer_kinds(x) == ("float", "integer", (1.0, 2.0, 5.0), "integer")
    assert infer_kinds(x[:8]) == ("float", "integer", "integer", "integer")  # too few rows to call values common


@pytest.fixture(scope="module")
def coded():
    rng = np.random.default_rng(1)
    n = 300
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "grade": rng.choice([1, 2, 5, 9], n),
            "member": rng.integers(0, 2, n),
            "income": rng.normal(30, 8, n),
        }
    )
    y = (frame["income"] + 4 * frame["member"] - frame["grade"] + 0.1 * frame["age"] > 34).astype(int)
    return frame, y, HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(frame, y)


@pytest.mark.parametrize("method", ["greedy", "nearest", "macem", "spheres"])
def test_no_explanation_of_a_table_with_whole_numbers_and_codes_is_impossible(coded, method):
    frame, y, box = coded
    model = GBFLClassifier(box, explainer=method, max_clauses=2, extra_rows=50).fit(frame[:120], y[:120])
    for e in (model.explanations_, model.extra_explanations_, model.explain_points(frame[120:200])):
        for points in (e.x, e.pp, e.pn):
            assert (points[:, 0] == np.rint(points[:, 0])).all()
            assert np.isin(points[:, 1], [1, 2, 5, 9]).all()
            assert np.isin(points[:, 2], [0, 1]).all()


def test_a_mixture_is_fitted_to_the_triplets_of_each_method_and_counts_rows_once(coded, tmp_path):
    frame, y, box = coded
    settings = {"max_clauses": 4, "extra_rows": 0, "random_state": 0}
    mixture = GBFLClassifier(box, explainer="greedy+nearest", checkpoint=tmp_path / "parts", **settings).fit(frame, y)
    assert list(mixture.methods_) == ["greedy", "nearest"]
    assert sorted(path.name for path in (tmp_path / "parts").iterdir()) == ["greedy", "nearest"]
    for name, e in mixture.methods_.items():
        alone = GBFLClassifier(box, explainer=name, **settings).fit(frame, y)
        assert np.array_equal(alone.explanations_.pn, e.pn)
        again = GBFLClassifier(box, explainer="greedy+nearest", **settings).fit(frame, y, explanations=mixture.methods_)
        assert again.head_ == mixture.head_
    assert mixture.rules_["support"].max() <= len(frame)
    assert all(row < len(frame) for rows in mixture.rules_["sources"] for row in rows)
    assert GBFLClassifier().explainer == "greedy+nearest"


@pytest.mark.parametrize("explainer", ["", "gready", "greedy+greedy", "greedy+", 3])
def test_an_unknown_or_repeated_method_is_refused_by_name(coded, explainer):
    frame, y, box = coded
    with pytest.raises(BadInput, match="is neither one of greedy, nearest, macem, spheres"):
        GBFLClassifier(box, explainer=explainer).fit(frame, y)


def test_the_score_report_shows_each_method_and_one_the_model_was_not_fitted_on(coded):
    frame, y, box = coded
    model = GBFLClassifier(box, max_clauses=3, extra_rows=0).fit(frame[:150], y[:150])
    report = model.score_report(frame[150:], y[150:])
    names = report.index.tolist()
    assert names[:5] == ["accuracy", "black_box_accuracy", "base_rate", "fidelity", "c_tb_all"]
    assert names[-7:-4] == ["c_tb_all, greedy", "c_tb_all, nearest", "c_tb_all, spheres (not fitted on)"]
    assert report.loc["c_tb_all, greedy", "percent"] == report.loc["c_tb_all", "percent"]
    for name in ("nearest", "spheres"):
        line = f"c_tb_all, {name}" + (" (not fitted on)" if name == "spheres" else "")
        assert report.loc[line, "percent"] == model.local_consistency(frame[150:], name).c_tb_all
    counts = model.confusion(frame[150:], y[150:])
    assert counts.to_numpy().sum() == 150
    assert np.trace(counts.to_numpy()) == report.loc["accuracy", "right"]
    answers = [f"of class {true_class}, answered {answer}" for true_class in (0, 1) for answer in (0, 1)]
    assert names[-4:] == answers
    assert report.loc[answers, "right"].tolist() == counts.to_numpy().ravel().tolist()
