"""A scikit-learn pipeline with our classifier in it converts as any other, and our part of it is exact."""

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gbfl_compile.backends.onnx.skl2onnx import register_converters
from gbfl_compile.checking.witnesses import witnesses
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.float32 import narrow
from gbfl_compile.learning.baselines import StandardTree
from gbfl_compile.learning.classifier import GBFLClassifier
from gbfl_compile.lowering import lower

onnxruntime = pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]


@pytest.fixture(scope="module", autouse=True)
def converters():
    register_converters()
    register_converters()  # again, which must change nothing


@pytest.fixture(scope="module", params=["tree", "rules"])
def fitted(request):
    scaled = StandardScaler().fit_transform(X)
    black_box = LogisticRegression(max_iter=500).fit(scaled, NAMES)
    return GBFLClassifier(black_box, head=request.param, max_clauses=6, extra_rows=0, random_state=0).fit(scaled, NAMES)


@pytest.fixture(scope="module")
def pipeline(fitted):
    return make_pipeline(SimpleImputer().fit(X), StandardScaler().fit(X), fitted)


def session(model, dtype, options=None):
    made = skl2onnx.to_onnx(model, X[:1].astype(dtype), options=options)
    return onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])


def test_the_whole_pipeline_converts(pipeline):
    made = session(pipeline, np.float32, {"zipmap": False})
    holes = X.astype(np.float32)
    holes[::7, 1] = np.nan
    labels, probabilities = made.run(None, {"X": holes})
    assert [output.name for output in made.get_outputs()] == ["label", "probabilities"]
    assert (labels == pipeline.predict(holes)).mean() > 0.98  # float32 steps before ours may move a row over a cut
    assert probabilities.dtype == np.float32
    assert probabilities.shape == (len(X), 3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_our_node_is_exact_on_what_it_is_given(fitted, dtype):
    program = lower(fitted)
    with np.errstate(over="ignore"):
        rows = witnesses(narrow(program) if dtype is np.float32 else program).astype(dtype)
    made = session(fitted, dtype, {GBFLClassifier: {"zipmap": False}})
    labels, probabilities = made.run(None, {"X": rows})
    expected = evaluate_many(program, rows.astype(np.float64))
    assert labels.tolist() == expected.labels.tolist()
    # a float32 pipeline rounds each probability once
    assert np.abs(probabilities - expected.probabilities).max() <= (1e-12 if dtype is np.float64 else 1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exactness_starts_where_our_input_does(fitted, dtype):
    """The scaler's own output, rounded as it may be, is the row that we answer for."""
    scaler = StandardScaler().fit(X)
    scaled = session(scaler, dtype).run(None, {"X": X.astype(dtype)})[0]
    labels = session(make_pipeline(scaler, fitted), dtype, {"zipmap": False}).run(["label"], {"X": X.astype(dtype)})[0]
    assert scaled.dtype == dtype
    assert labels.tolist() == evaluate_many(lower(fitted), scaled.astype(np.float64)).labels.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zipmap_gives_a_dictionary_a_row(fitted, dtype):
    labels, dictionaries = session(fitted, dtype).run(None, {"X": X.astype(dtype)})
    assert set(dictionaries[0]) == set(fitted.classes_)
    assert labels.tolist() == [max(row, key=row.get) for row in dictionaries]


def test_zipmap_columns_gives_an_output_a_class(fitted):
    made = session(fitted, np.float64, {GBFLClassifier: {"zipmap": "columns"}})
    assert len(made.run(None, {"X": X})) == 1 + len(fitted.classes_)


def test_raw_scores_are_the_logits_of_a_rule_set(fitted):
    options = {GBFLClassifier: {"zipmap": False, "raw_scores": True}}
    if fitted.head == "tree":
        with pytest.raises(BadInput, match="raw_scores: a tree has no scores"):
            session(fitted, np.float64, options)
        return
    program = lower(fitted)
    scores = session(fitted, np.float64, options).run(None, {"X": X})[1]
    assert (scores == evaluate_many(program, X).scores * 2.0**-program.decision.scale).all()


def test_whole_number_labels_stay_numbers():
    model = GBFLClassifier(LogisticRegression(max_iter=1000).fit(X, Y), head="tree", random_state=0).fit(X, Y)
    labels = session(model, np.float64, {"zipmap": False}).run(["label"], {"X": X})[0]
    assert labels.dtype == np.int64
    assert labels.tolist() == model.predict(X).tolist()


def test_columns_prepared_apart_come_together(fitted):
    steps = make_column_transformer((StandardScaler(), [0, 1]), (StandardScaler(), [2, 3])).fit(X)
    made = session(make_pipeline(steps, fitted), np.float64, {"zipmap": False})
    labels = made.run(["label"], {"X": X})[0]
    assert labels.tolist() == fitted.predict(steps.transform(X)).tolist()


def test_a_baseline_converts_too():
    model = StandardTree(max_depth=3).fit(X, NAMES)
    labels = session(model, np.float64, {"zipmap": False}).run(["label"], {"X": X})[0]
    assert labels.tolist() == model.predict(X).tolist()


def test_nothing_is_registered_by_importing():
    import subprocess
    import sys

    code = (
        "import gbfl_compile.backends.onnx.skl2onnx, sys; assert not {'skl2onnx', 'onnx', 'sklearn'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_skl2onnx_it_says_which_extra_brings_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "skl2onnx", None)
    with pytest.raises(CannotRun, match=r"pip install .*\[onnx\]'$"):
        register_converters()
