"""A raw-feature tree means the same as a program: on every double, not only on those that are float32s too."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

from gbfl_compile.checking.witnesses import witnesses
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Interval, Leaf
from gbfl_compile.lowering import folded_threshold, lower
from gbfl_compile.passes import optimise

FLOAT32_MAX = float(np.finfo(np.float32).max)
OVERFLOW = 2.0**128 - 2.0**103
"""The least double that rounds to an infinite float32."""

EDGES = [
    *(0.0, -0.0, 5e-324, -5e-324, 1e-310, -1e-310, 2.0**-149, -(2.0**-149), 2.0**-150, -(2.0**-150), 2.0**-126),
    *(1.0, 1 + 2.0**-24, 1 + 2.0**-23, 1 + 3 * 2.0**-24, np.nextafter(1.0, 2), np.nextafter(1.0, 0), 0.1, -0.1),
    *(FLOAT32_MAX, -FLOAT32_MAX, np.nextafter(FLOAT32_MAX, np.inf), OVERFLOW, -OVERFLOW, np.nextafter(OVERFLOW, 0)),
    *(1e300, -1e300, np.inf, -np.inf),
]


def as_float32(values):
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype=np.float64).astype(np.float32)


def neighbours(value):
    """A threshold, the float32s about it, the half-way points between those, and the doubles beside each."""
    with np.errstate(over="ignore", invalid="ignore"):
        here = np.float32(value)
        down, up = np.nextafter(here, np.float32(-np.inf)), np.nextafter(here, np.float32(np.inf))
        near = [
            value,
            *(float(v) for v in (here, down, up)),
            (float(here) + float(up)) / 2,
            (float(here) + float(down)) / 2,
        ]
    found = [v for n in near if not np.isnan(n) for v in (np.nextafter(n, -np.inf), n, np.nextafter(n, np.inf))]
    return [float(v) for v in found]


@pytest.mark.parametrize("threshold", EDGES)
def test_the_folded_threshold_is_the_largest_double_on_the_left(threshold):
    border = folded_threshold(float(threshold))
    if border is None:
        assert threshold == np.inf
        return
    assert float(as_float32(border)) <= threshold
    assert not float(as_float32(np.nextafter(border, np.inf))) <= threshold


def test_the_folded_threshold_splits_random_doubles_as_scikit_learn_does():
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**64, 500, dtype=np.uint64).view(np.float64)
    thresholds = np.concatenate(
        [bits[np.isfinite(bits)], rng.normal(size=300), rng.normal(size=100).astype(np.float32)]
    )
    for threshold in thresholds.tolist():
        border = folded_threshold(threshold)
        values = np.array([*neighbours(threshold), *neighbours(border), *EDGES])
        # a Python float beside float32s would be rounded to one of them: scikit-learn compares as doubles
        assert ((values <= border) == (as_float32(values) <= np.float64(threshold))).all()


def test_a_threshold_that_is_not_a_number_is_refused():
    with pytest.raises(BadInput, match="NaN"):
        folded_threshold(np.nan)


def random_data(seed, missing):
    """Columns of every kind: float32s and doubles between them, whole numbers, tiny and huge ones."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(400, 6)) * [1, 1e-3, 1, 1e-42, 1e36, 1]
    x[:, 1] = x[:, 1].astype(np.float32)
    x[:, 2] = rng.integers(-3, 4, 400)
    x[:, 5] = 1 + rng.integers(0, 8, 400) * 2.0**-23
    if missing:
        x[rng.random(x.shape) < 0.15] = np.nan
        x[:, 5] = np.where(rng.random(400) < 0.5, np.nan, 1.0)  # splits on missing alone: the threshold is infinite
    score = np.nan_to_num(x[:, 0], nan=1.0) + np.nan_to_num(x[:, 2]) + np.isnan(x[:, 5])
    return x, np.digitize(score + rng.normal(size=400) * 0.3, [-1.0, 1.0])


def boundary_rows(fitted, rng):
    """For every split rows with its threshold's neighbours, the other features drawn from all such values."""
    splits = [(int(f), float(t)) for f, t in zip(fitted.tree_.feature, fitted.tree_.threshold, strict=True) if f >= 0]
    pools = [[0.0, -0.0, np.nan, *EDGES] for _ in range(fitted.n_features_in_)]
    for feature, threshold in splits:
        pools[feature] += neighbours(threshold)
    rows = [[rng.choice(pool) for pool in pools] for _ in range(300)]
    for feature, threshold in splits:
        for value in (*neighbours(threshold), np.nan):
            row = [rng.choice(pool) for pool in pools]
            row[feature] = value
            rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_the_program_is_the_tree_on_every_witness_tie_and_neighbour(seed, missing):
    x, y = random_data(seed, missing)
    labels = np.array(["low", "middle", "high"])[y]
    kind = ExtraTreeClassifier if seed == 7 and not missing else DecisionTreeClassifier
    fitted = kind(max_depth=2 + seed, random_state=seed).fit(x, labels)
    program = lower(fitted)
    for form in (program, optimise(program), optimise(program, np.nan_to_num(x))):
        rows = np.concatenate([witnesses(form), boundary_rows(fitted, np.random.default_rng(seed)), x])
        answers = evaluate_many(form, rows)
        wanted = fitted.tree_.predict(as_float32(rows))
        assert (answers.probabilities == wanted).all()
        assert (answers.labels == fitted.classes_[wanted.argmax(axis=1)]).all()
        assert evaluate(form, rows[-1].tolist()).probabilities == tuple(wanted[-1])


def test_ordinary_rows_agree_with_the_trees_own_predict():
    x, y = random_data(0, missing=True)
    fitted = DecisionTreeClassifier(max_depth=5, random_state=0).fit(x, y)
    assert (evaluate_many(lower(fitted), x).labels == fitted.predict(x)).all()
    assert (evaluate_many(lower(fitted), x).probabilities == fitted.predict_proba(x)).all()


def test_a_split_on_missing_alone_has_no_bound():
    x = np.array([[1.0], [1.0], [np.nan], [np.nan]])
    fitted = DecisionTreeClassifier(random_state=0).fit(x, [0, 0, 1, 1])
    if fitted.tree_.node_count == 1:
        pytest.skip("this scikit-learn does not split on missing alone")
    program = lower(fitted)
    (atom,) = program.clauses[0].atoms
    assert atom == Interval(0, None, None, closed="right", if_missing=False)


def test_leaves_count_training_rows_and_names_are_kept():
    import pandas as pd

    x, y = random_data(3, missing=False)
    frame = pd.DataFrame(x, columns=list("abcdef"))
    program = lower(DecisionTreeClassifier(max_depth=3, random_state=0).fit(frame, y))
    assert program.features == tuple("abcdef")
    assert sum(node.rows for node in program.decision.nodes if isinstance(node, Leaf)) == 400
    assert lower(DecisionTreeClassifier(max_depth=3).fit(x, y)).features == ("x0", "x1", "x2", "x3", "x4", "x5")


@pytest.mark.parametrize(
    "settings",
    [
        {"class_weight": "balanced"},
        {"criterion": "entropy", "max_leaf_nodes": 7},
        {"ccp_alpha": 0.01},
        {"monotonic_cst": [1, 0, 0, 0, 0, 0]},
    ],
    ids=str,
)
def test_trees_grown_in_other_ways_are_lowered_too(settings):
    x, y = random_data(5, missing=False)
    fitted = DecisionTreeClassifier(random_state=0, **settings).fit(x, y > 1)
    answers = evaluate_many(lower(fitted), x)
    assert (answers.probabilities == fitted.predict_proba(x)).all()
    assert (answers.labels == fitted.predict(x)).all()


def test_a_tree_that_met_one_class_is_one_leaf():
    program = lower(DecisionTreeClassifier().fit([[1.0], [2.0]], ["only", "only"]))
    assert program.classes == ("only",)
    assert program.decision.nodes == (Leaf((1.0,), 2),)


def test_what_cannot_be_expressed_is_refused():
    x, y = random_data(1, missing=False)
    with pytest.raises(BadInput, match="2 outputs"):
        lower(DecisionTreeClassifier(max_depth=2).fit(x, np.column_stack([y, y])))
    with pytest.raises(BadInput, match="DecisionTreeRegressor"):
        lower(DecisionTreeRegressor(max_depth=2).fit(x, y))
    with pytest.raises(BadInput, match="call fit first"):
        lower(DecisionTreeClassifier())


class Planted:
    """A fitted tree that says something else about its nodes."""

    def __init__(self, tree, change):
        self._tree, self._change = tree, change

    def __getattr__(self, name):
        return getattr(self._tree, name)

    def __getstate__(self):
        return self._change(dict(self._tree.__getstate__()))


def with_field(name, kind):
    def change(state):
        old = state["nodes"]
        fields = [(field, old.dtype[field]) for field in old.dtype.names if field != name]
        nodes = np.zeros(len(old), dtype=[*fields, (name, kind)])
        return state | {"nodes": nodes}

    return change


def without_field(name):
    def change(state):
        old = state["nodes"]
        return state | {"nodes": old[[field for field in old.dtype.names if field != name]]}

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_field("categorical_bitset", "u8"), "categorical_bitset"),
        (with_field("split_kind", "i1"), "split_kind"),
        (with_field("threshold", "u8"), "threshold"),  # a set of categories in the place of a number
        (with_field("feature", "f8"), "feature"),
        (lambda state: state | {"categories": {}}, "categories"),
        (without_field("missing_go_to_left"), "newer scikit-learn"),
    ],
)
def test_a_tree_with_nodes_of_an_unknown_kind_is_refused(change, message):
    x = np.random.default_rng(0).normal(size=(40, 3))
    model = DecisionTreeClassifier(random_state=0).fit(x, x[:, 0] > 0)
    model.tree_ = Planted(model.tree_, change)
    with pytest.raises(BadInput, match=message):
        lower(model)


def test_a_model_with_categories_is_refused():
    x = np.random.default_rng(0).normal(size=(40, 3))
    model = DecisionTreeClassifier(random_state=0).fit(x, x[:, 0] > 0)
    lower(model)
    model.categorical_features = [0]
    with pytest.raises(BadInput, match="categorical_features"):
        lower(model)
