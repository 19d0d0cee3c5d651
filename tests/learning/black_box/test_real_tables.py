"""A black box is queried with the table it was trained on: its own column names, types, words and gaps."""

import importlib
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from gbfl_compile.errors import BadInput
from gbfl_compile.learning.black_box import OriginalTable, as_black_box, probabilities
from gbfl_compile.learning.prepare import shared_classes, train_black_box
from gbfl_compile.mining import mine
from gbfl_compile.tables.kinds import encode_table
from gbfl_compile.tables.values import as_table, palettes_of

WORDS = ["job", "house"]
NUMBERS = ["income", "late"]


def people(rows=300, seed=0):
    """Words, one of which is `?`, whole numbers and numbers with gaps."""
    draw = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "income": np.where(draw.random(rows) < 0.1, np.nan, np.round(draw.gamma(4, 8000, rows), 2)),
            "job": draw.choice(["clerk", "cook", "driver", "?"], rows),
            "house": draw.choice(["own", "rent", "none"], rows),
            "late": draw.integers(0, 6, rows),
        }
    )
    points = 1 * (table.income.fillna(20000) > 30000) + 1 * (table.house == "own") - 1 * (table.job == "?")
    return table, np.where(points - (table.late > 3) + draw.normal(0, 0.3, rows) > 0.4, "no", "yes")


def answers_through_codes(model, table):
    """What the black box answers when the table becomes codes and a table again."""
    x, columns, facts = encode_table(table, tuple(table.columns), "t")
    original = OriginalTable(columns, palettes_of(table, facts))
    box = as_black_box(model, x, features=columns.features, table=original)
    return probabilities(box, x)


def library(name):
    """A library of models; the extra `models` installs it."""
    return pytest.importorskip(name, reason=f"{name} is not installed: pip install 'gbfl-compile[models]'")


def one_hot(table, y):
    words = ColumnTransformer([("words", OneHotEncoder(), WORDS), ("numbers", SimpleImputer(), NUMBERS)])
    return make_pipeline(words, LogisticRegression(max_iter=2000)).fit(table, y), table


def forest_on_some_columns(table, y):
    words = ColumnTransformer([("words", OrdinalEncoder(), ["job"]), ("late", "passthrough", ["late"])])
    return make_pipeline(words, RandomForestClassifier(10, random_state=0)).fit(table[["late", "job"]], y), table


def as_categories(table):
    return table.assign(**{name: table[name].astype("category") for name in WORDS})


def boosting(table, y):
    table = as_categories(table)
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", max_iter=20, random_state=0)
    return model.fit(table, y), table


def lightgbm(table, y):
    table = as_categories(table)
    return library("lightgbm").LGBMClassifier(n_estimators=20, n_jobs=1, verbose=-1).fit(table, y), table


def xgboost(table, y):
    table = as_categories(table)
    model = library("xgboost").XGBClassifier(n_estimators=20, n_jobs=1, enable_categorical=True)
    return model.fit(table, (y == "yes").astype(int)), table


def catboost(table, y):
    model = library("catboost").CatBoostClassifier(
        iterations=20, thread_count=1, verbose=False, allow_writing_files=False, cat_features=WORDS
    )
    return model.fit(table, y), table


MODELS = (one_hot, forest_on_some_columns, boosting, lightgbm, xgboost, catboost)


@pytest.mark.parametrize("build", MODELS, ids=lambda build: build.__name__)
def test_the_table_of_codes_gets_the_answers_of_the_table_itself(build):
    table, y = people()
    model, own = build(table, y)
    columns = getattr(model, "feature_names_in_", own.columns)
    direct = np.asarray(model.predict_proba(own[list(columns)]))
    assert np.array_equal(answers_through_codes(model, own), direct)


@pytest.mark.parametrize("build", MODELS, ids=lambda build: build.__name__)
def test_a_model_is_mined_from_a_file_of_the_same_table(build, tmp_path):
    table, y = people()
    model, _ = build(table, y)
    labels = (y == "yes").astype(int) if build is xgboost else y
    table.assign(target=labels).to_csv(tmp_path / "t.csv", index=False)
    mined = mine(tmp_path / "t.csv", "target", black_box=model, clauses=4, baselines=False, note=str)
    assert mined.compared_different == 0
    assert mined.consistency.fidelity > 70


def test_a_skops_file_and_a_callable_of_a_module_are_called_with_the_table(tmp_path, monkeypatch):
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    table, y = people()
    model, _ = one_hot(table, y)
    skops.dump(model, tmp_path / "model.skops")
    (tmp_path / "box_of_people.py").write_text(
        "import skops.io\nMODEL = skops.io.load('model.skops', trusted=skops.io.get_untrusted_types(file='model.skops'))\n"
        "def ask(table):\n    assert list(table.columns) == ['income', 'job', 'house', 'late']\n"
        "    return MODEL.predict_proba(table)[:, 1]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    types = skops.get_untrusted_types(file=tmp_path / "model.skops")
    data = table.assign(target=y)
    by_file = mine(data, "target", black_box="model.skops", trust_types=types, clauses=4, baselines=False, note=str)
    by_name = mine(data, "target", black_box="box_of_people:ask", clauses=4, baselines=False, note=str)
    sys.modules.pop("box_of_people", None)
    assert by_file.program.clauses == by_name.program.clauses
    assert by_file.program.decision == by_name.program.decision


def graph_of(model, table, path):
    """The pipeline as an ONNX graph with one input per column."""
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    kinds = importlib.import_module("skl2onnx.common.data_types")
    inputs = [
        (name, kinds.StringTensorType([None, 1]) if name in WORDS else kinds.FloatTensorType([None, 1]))
        for name in table.columns
    ]
    options = {id(model): {"zipmap": False}}
    path.write_bytes(skl2onnx.convert_sklearn(model, initial_types=inputs, options=options).SerializeToString())


def without_gaps(rows=300):
    table, y = people(rows)
    return table.assign(income=table.income.fillna(20000.0)), y


def test_an_onnx_graph_of_texts_and_numbers_is_called_with_both(tmp_path):
    table, y = without_gaps()
    words = ColumnTransformer([("words", OneHotEncoder(), WORDS), ("numbers", "passthrough", NUMBERS)])
    model = make_pipeline(words, LogisticRegression(max_iter=2000)).fit(table, y)
    graph_of(model, table, tmp_path / "model.onnx")
    mined = mine(table.assign(target=y), "target", black_box=str(tmp_path / "model.onnx"), clauses=4, note=str)
    direct = mine(table.assign(target=y), "target", black_box=model, clauses=4, note=str)
    assert mined.program.classes == ("no", "yes")
    assert mined.black_box_accuracy == direct.black_box_accuracy


def test_an_onnx_graph_has_no_spelling_for_a_missing_text_and_says_so(tmp_path):
    table, y = without_gaps()
    words = ColumnTransformer([("words", OneHotEncoder(handle_unknown="ignore"), WORDS), ("n", "passthrough", NUMBERS)])
    graph_of(make_pipeline(words, LogisticRegression(max_iter=2000)).fit(table, y), table, tmp_path / "model.onnx")
    gaps = table.assign(job=table.job.where(table.job != "?"), target=y)
    with pytest.raises(BadInput, match="its input 'job' is a text, and ONNX has no missing text"):
        mine(gaps, "target", black_box=str(tmp_path / "model.onnx"), clauses=4, note=str)


@pytest.mark.parametrize(
    ("own", "labels"),
    [
        (np.array([0, 1]), np.array(["0", "1"])),
        (np.array(["0", "1"]), np.array([0, 1])),
        (np.array([False, True]), np.array(["False", "True"])),
        (np.array([False, True]), np.array([0, 1])),
    ],
)
def test_labels_that_differ_by_type_alone_are_matched(own, labels):
    model = type("Model", (), {"classes_": own, "predict_proba": lambda self, x: np.tile([0.4, 0.6], (len(x), 1))})()
    box = as_black_box(model, np.zeros((5, 1)))
    assert shared_classes(box, labels[[0, 1, 1]]).tolist() == labels.tolist()


@pytest.mark.parametrize("labels", [np.array(["no", "yes"]), np.array([1, 2]), np.array(["0.0", "1.0"])])
def test_labels_that_do_not_match_are_refused_before_any_row_is_explained(labels):
    calls = []

    def answer(self, x):
        calls.append(len(x))
        return np.tile([0.4, 0.6], (len(x), 1))

    model = type("Model", (), {"classes_": np.array([0, 1]), "predict_proba": answer})()
    table, _ = people()
    with pytest.raises(BadInput, match="that the black box does not"):
        mine(table.assign(target=np.resize(labels, len(table))), "target", black_box=model, note=str)
    assert sum(calls) <= 24, "only to see what it answers"


def as_written(rows=200):
    """Numbers, truth values and days, all of them texts, and one written in a way of its own."""
    draw = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "code": draw.choice(["0", "1", "2.0", "?"], rows),
            "flag": draw.choice(["true", "False"], rows),
            "day": draw.choice(["2024-03-01", "2024-03-09"], rows),
            "word": draw.choice(["a", "b"], rows),
        }
    )
    return table, np.where((table.code == "2.0") ^ (table.flag == "true"), "no", "yes")


def test_a_model_of_texts_is_called_with_the_texts_themselves():
    table, y = as_written()
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), RandomForestClassifier(10, random_state=0))
    model.fit(table, y)
    assert (answers_through_codes(model, table) == model.predict_proba(table)).all()


def test_a_model_of_numbers_is_called_with_numbers_where_the_table_has_texts():
    table, _ = as_written()

    def by_code(rows):
        return np.where(rows.code.fillna(0.0) > 1.0, 0.9, 0.2)

    assert set(answers_through_codes(by_code, table)[:, 1]) == {0.9, 0.2}


def test_a_column_of_categories_stays_one_whatever_it_holds():
    table = pd.DataFrame({"k": pd.Categorical([1, 2, None, 1]), "b": pd.Categorical([True, False, True, None])})
    x, columns, facts = encode_table(table, ("k", "b"), "t")
    assert columns.kinds == ("category", "boolean")
    pd.testing.assert_frame_equal(as_table(columns, palettes_of(table, facts), x), table)


@pytest.mark.parametrize("words", [True, False], ids=["words", "numbers"])
@pytest.mark.parametrize(("kind", "rows"), [("gbm", 10_500), ("mlp", 2_400), ("forest", 600)])
def test_a_class_of_a_single_training_row_is_no_error(kind, rows, words):
    """A fit that stops early holds out rows of every class, and cannot where there is one row."""
    table, y = people(rows)
    y = np.where(np.arange(rows) == 7, "rare", y)
    table = table if words else pd.DataFrame({"late": table.late, "more": 1.5 * table.late})
    x, columns, _ = encode_table(table, tuple(table.columns), "t")
    model = train_black_box(kind, x, y, 0, columns if words else None)
    assert set(model.predict_proba(x).argmax(1)) <= {0, 1, 2}
    assert model.predict_proba(x).shape == (rows, len(model.classes_)) == (rows, 3)
