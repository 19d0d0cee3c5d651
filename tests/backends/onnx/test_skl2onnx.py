"""A scikit-learn pipeline with our classifier in it converts as any other, and our part of it is exact."""

import datetime
import math

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gbfl_compile.backends.onnx.skl2onnx import OPTIONS, announce_outputs, convert, register_converters
from gbfl_compile.checking.witnesses import witnesses
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.intervals import narrow
from gbfl_compile.ir.nodes import TRUE, Clause, Interval, OneOf, Program, Scorecard
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
def test_our_node_is_exact_on_its_input(fitted, dtype):
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
def test_zipmap_gives_one_dictionary_per_row(fitted, dtype):
    labels, dictionaries = session(fitted, dtype).run(None, {"X": X.astype(dtype)})
    assert set(dictionaries[0]) == set(fitted.classes_)
    assert labels.tolist() == [max(row, key=row.get) for row in dictionaries]


def test_zipmap_columns_gives_one_output_per_class(fitted):
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


WORDS = Program(
    ("income", "contract", "smoker", "opened", "job"),
    ("no", "yes"),
    (
        Clause((Interval(0, 1000.0), OneOf(1, ("Month-to-month", "two year")))),
        Clause((OneOf(2, (TRUE,)), Interval(3, None, 19783.0))),
        Clause((OneOf(1, ("a", "á"), negated=True), OneOf(4, ("",), if_missing=True))),
    ),
    Scorecard((0, 1), ((0, 5), (3, 0), (4, 0)), 1),
    kinds=("number", "category", "boolean", "date", "category"),
)
"""A rule set over all kinds that one node can hold."""


class Words(StandardTree):
    """A fitted model whose rules are WORDS, whatever it was fitted to."""

    classes_ = np.array(["no", "yes"])


@pytest.fixture
def words(monkeypatch):
    import gbfl_compile.lowering

    skl2onnx.update_registered_converter(Words, "GbflWords", announce_outputs, convert, options=OPTIONS)
    monkeypatch.setattr(gbfl_compile.lowering, "lower", lambda model: WORDS)
    return Words()


def columns_of(names=WORDS.features, number=None):
    types = skl2onnx.common.data_types
    number = types.DoubleTensorType if number is None else number
    of_kind = {"number": number, "category": types.StringTensorType, "boolean": types.BooleanTensorType}
    pairs = zip(WORDS.features, WORDS.kinds, strict=True)
    made = {name: of_kind.get(kind, types.Int64TensorType)([None, 1]) for name, kind in pairs}
    return [(name, made[name]) for name in names]


def fed(rows):
    """Columns as ONNX Runtime takes them, which has no missing text."""
    whole = [np.float64, object, bool, np.int64, object]
    columns = zip(zip(*rows, strict=True), whole, strict=True)
    arrays = [np.array(column, dtype=kind).reshape(-1, 1) for column, kind in columns]
    return dict(zip(WORDS.features, arrays, strict=True))


TEXTS = ("Month-to-month", "month-to-month", "two year", "two year ", "a", "A", "a ", "á", "a\u0301", "", "?")


def rows_of_words():
    return [
        [income, contract, smoker, day, job]
        for income in (999.0, 1000.0, math.nan)
        for contract in TEXTS
        for smoker in (True, False)
        for day in (19782, 19783)
        for job in ("", "x", "?")
    ]


def expected(rows, missing):
    day = datetime.date(1970, 1, 1)
    read = [
        [
            r[0],
            None if r[1] == missing else r[1],
            r[2],
            day + datetime.timedelta(r[3]),
            None if r[4] == missing else r[4],
        ]
        for r in rows
    ]
    return [evaluate(WORDS, row) for row in read]


@pytest.mark.parametrize("missing", [None, "?", ""])
@pytest.mark.parametrize("order", [1, -1])
def test_words_booleans_and_dates_go_in_by_their_columns(words, missing, order):
    options = {"zipmap": False} | ({} if missing is None else {"missing": missing})
    made = skl2onnx.to_onnx(words, initial_types=columns_of(WORDS.features[::order]), options={id(words): options})
    run = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    rows = rows_of_words()
    labels, probabilities = run.run(None, fed(rows))
    answers = expected(rows, missing)
    assert labels.tolist() == [answer.label for answer in answers]
    assert np.abs(probabilities - np.array([answer.probabilities for answer in answers])).max() <= 1e-12


def test_a_table_that_was_learned_from_converts_with_its_words():
    from tests.mining.test_words import loans

    table = loans(300)
    table["job"] = table["job"].replace("?", None)
    model = GBFLClassifier(max_clauses=4, extra_rows=0, random_state=0)
    features = table.drop(columns="default")
    model.fit(features, table.default)
    types = skl2onnx.common.data_types
    kinds = {"category": types.StringTensorType}
    program = lower(model)
    initial = [
        (name, kinds.get(kind, types.DoubleTensorType)([None, 1]))
        for name, kind in zip(program.features, program.kinds, strict=True)
    ]
    options = {id(model): {"zipmap": False, "missing": "(missing)"}}
    made = skl2onnx.to_onnx(make_pipeline(model), initial_types=initial, options=options)
    run = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    feed = {}
    for name, kind in zip(program.features, program.kinds, strict=True):
        if kind == "category":
            feed[name] = features[name].fillna("(missing)").to_numpy(dtype=object).reshape(-1, 1)
        elif kind == "date":
            days = [(value - datetime.date(1970, 1, 1)).days for value in features[name]]
            feed[name] = np.array(days, dtype=float).reshape(-1, 1)
        else:
            feed[name] = features[name].to_numpy(dtype=float).reshape(-1, 1)
    assert run.run(["label"], feed)[0].tolist() == model.predict(features).tolist()


def test_inputs_that_do_not_fit_the_kinds_are_refused(words):
    wrong = [*columns_of()[:1], ("contract", columns_of()[0][1]), *columns_of()[2:]]
    with pytest.raises(BadInput, match="'contract' is a category: its input 'contract' must be text"):
        skl2onnx.to_onnx(words, initial_types=wrong, options={"zipmap": False})
    with pytest.raises(BadInput, match="needs one input"):
        skl2onnx.to_onnx(words, initial_types=columns_of()[:2], options={"zipmap": False})


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
