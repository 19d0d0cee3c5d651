"""Turns a fitted model into a program, and records where it came from: versions, parameters, fingerprints; no rows.

scikit-learn's trees on raw features become rules too. scikit-learn rounds a value to float32 and compares that with a
float64 threshold. A rule compares the double itself, so it needs another number: the largest double that still rounds
to a float32 at or below the threshold.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.kinds import Codebook, Columns
from gbfl_compile.ir.nodes import Clause, Decision, Interval, Kind, Leaf, Program, Split, Tree, preorder
from gbfl_compile.ir.validate import validate
from gbfl_compile.learning.baselines import AugmentedTree, DistilledTree, StandardTree
from gbfl_compile.learning.classifier import GBFLClassifier
from gbfl_compile.learning.tables import OnCommonCodes, OnPreparedRows
from gbfl_compile.version import GENERATOR

LEAF = -1
"""scikit-learn's mark for no child."""

STATE = {"max_depth", "node_count", "nodes", "values"}
"""What scikit-learn keeps about a tree."""

NODE_FIELDS = {
    "left_child": "i",
    "right_child": "i",
    "feature": "i",
    "threshold": "f",
    "impurity": "f",
    "n_node_samples": "i",
    "weighted_n_node_samples": "f",
    "missing_go_to_left": "u",
}
"""What scikit-learn keeps about a node, with the kind of number: a node is a leaf or `x <= threshold`."""


def folded_threshold(threshold: float) -> float | None:
    """The double w for which `x <= w` says what `float32(x) <= threshold` says; None where every number does.

    Half way between two neighbouring float32s a double rounds to the even one, so the border is that point
    or the double just below it.

    >>> folded_threshold(0.5)
    0.5000000298023224
    """
    if np.isnan(threshold):
        raise BadInput("a threshold of the tree is NaN: nothing can be compared with it")
    if threshold == np.inf:
        return None
    with np.errstate(over="ignore"):  # beyond the float32s lies infinity, as it does for scikit-learn
        least = np.float32(threshold)
        if float(least) > threshold:
            least = np.nextafter(least, np.float32(-np.inf))
        next_ = np.nextafter(least, np.float32(np.inf))
        border = _half_way(float(least), float(next_))
        if float(np.float32(border)) > threshold:
            border = float(np.nextafter(border, -np.inf))
    return border


def _half_way(least: float, next_: float) -> float:
    """The middle of two neighbouring float32s, exact; infinity takes the place of the next float32, at 2**128."""
    beyond = 2.0**128
    return max(least, -beyond) / 2 + min(next_, beyond) / 2


def raw_tree(fitted: Any, classes: int, known: Any = None) -> tuple[tuple[Clause, ...], Tree]:
    """The clauses and the tree of a fitted DecisionTreeClassifier: one clause `x <= w` for each different split.

    `known` says which of `classes` the tree's own classes are; left out, they are the same ones. Where a value
    is missing the clause answers as the tree would go, so right stays `otherwise` and left `then`.
    """
    refuse_unknown_nodes(fitted)
    arrays = fitted.tree_
    known = np.arange(classes) if known is None else known
    clauses: dict[Clause, int] = {}
    nodes: list[Split | Leaf] = []
    for index in range(arrays.node_count):
        left, right = int(arrays.children_left[index]), int(arrays.children_right[index])
        if left == LEAF:
            probabilities = _probabilities(arrays.value[index, 0], known, classes)
            nodes.append(Leaf(probabilities, int(arrays.n_node_samples[index])))
        else:
            clause = Clause((_atom(arrays, index),))
            nodes.append(Split(clauses.setdefault(clause, len(clauses)), left, right))
    return tuple(clauses), preorder(nodes)


def refuse_unknown_nodes(fitted: Any) -> None:
    """Refuse a tree whose nodes may mean more than `x <= threshold`, such as splits on categories."""
    state = fitted.tree_.__getstate__()
    dtype = state["nodes"].dtype
    fields = {name: dtype[name].kind for name in dtype.names}
    unknown = [*sorted(state.keys() - STATE), *sorted(name for name in fields if fields[name] != NODE_FIELDS.get(name))]
    lacking = sorted(NODE_FIELDS.keys() - fields.keys())
    categories = [name for name, value in vars(fitted).items() if "categor" in name and value is not None]
    for what in (*unknown, *categories):
        raise BadInput(
            f"the tree has {what!r}, which this version does not know: use numeric splits, or an older scikit-learn"
        )
    for what in lacking:
        raise BadInput(f"the tree's nodes have no {what!r}: fit it with a newer scikit-learn")


def _atom(arrays: Any, index: int) -> Interval:
    most = folded_threshold(float(arrays.threshold[index]))
    missing = bool(arrays.missing_go_to_left[index])
    return Interval(int(arrays.feature[index]), None, most, closed="right", if_missing=missing)


def _probabilities(shares: Any, known: Any, classes: int) -> tuple[float, ...]:
    """One probability per class; a class that no fitted row had is unknown to the tree and gets 0."""
    probabilities = np.zeros(classes)
    probabilities[known] = shares
    return tuple(probabilities.tolist())


def lower(model: Any, figures: Mapping[str, Any] | None = None) -> Program:
    """The program that agrees with a fitted model on every row.

    A model is a GBFLClassifier, one of the baselines, or any fitted DecisionTreeClassifier of scikit-learn.
    `figures` are JSON to keep in the metadata beside what is known about the fit: test accuracy, for example.
    """
    clauses: tuple[Clause, ...]
    decision: Decision
    match model:
        case GBFLClassifier():
            head = _require_fitted(model).head_
            clauses, decision = head.clauses, head.decision
        case StandardTree() | DistilledTree() | AugmentedTree():
            fitted = _require_fitted(model).tree_
            clauses, decision = raw_tree(fitted, len(model.classes_), fitted.classes_)
        case DecisionTreeClassifier():
            clauses, decision = raw_tree(_one_output(_require_fitted(model)), len(model.classes_))
        case _:
            raise BadInput(
                f"a {type(model).__name__} cannot be lowered: give a GBFLClassifier, a baseline of "
                "learning.baselines, or a DecisionTreeClassifier"
            )
    columns = _columns(model)
    kinds = () if columns is None else columns.program_kinds
    program = Program(feature_names(model), tuple(model.classes_.tolist()), clauses, decision, kinds=kinds)
    counted = _with_row_counts(program, _training_rows(model), None if columns is None else columns.book)
    return validate(replace(counted, metadata=provenance(model, figures or {})))


def feature_names(model: Any) -> tuple[str, ...]:
    """The names the model was fitted with, or x0, x1, .."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return tuple(f"x{index}" for index in range(model.n_features_in_))
    return tuple(str(name) for name in names)


def _columns(model: Any) -> Columns | None:
    """What the codes in the training rows mean, where the table had words or gaps."""
    columns: Columns | None = getattr(model, "columns_", None)
    return columns


def _require_fitted(model: Any) -> Any:
    if not hasattr(model, "tree_") and not hasattr(model, "head_"):
        raise BadInput("the classifier is not fitted: call fit first")
    return model


def _one_output(model: Any) -> Any:
    if model.n_outputs_ != 1:
        raise BadInput(f"the tree has {model.n_outputs_} outputs and a program has one: fit a tree for each")
    return model


def _training_rows(model: Any) -> Any:
    """The rows a model was trained on, where it still has them."""
    return model.explanations_.x if hasattr(model, "explanations_") else getattr(model, "x_", None)


def _with_row_counts(program: Program, rows: Any, book: Codebook | None = None) -> Program:
    """The program with the number of training rows that end in each leaf, for readers."""
    if rows is None or not isinstance(program.decision, Tree):
        return program
    leaves = np.asarray(evaluate_many(program, rows, book).leaves)
    counts = iter(np.bincount(leaves, minlength=len(program.decision.nodes)).tolist())
    nodes = (replace(node, rows=next(counts)) if isinstance(node, Leaf) else node for node in program.decision.nodes)
    return replace(program, decision=Tree(tuple(nodes)))


HISTOGRAM_BINS = 10
NOT_RECORDED = {"black_box", "checkpoint", "n_jobs", "black_box_timeout", "verbose"}
"""Parameters that do not change what is learned, or are recorded elsewhere: the same model gets the same metadata."""


def provenance(model: Any, figures: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a program lowered from `model`: what is known of it. A tree from elsewhere says little."""
    import pandas
    import scipy
    import sklearn

    facts: dict[str, Any] = {
        "generator": GENERATOR,
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
            "pandas": pandas.__version__,
        },
        "model": _kind(model),
        "parameters": {
            name: _as_json(value)
            for name, value in sorted(model.get_params(deep=False).items())
            if name not in NOT_RECORDED
        },
    }
    if hasattr(model, "black_box_"):
        black_box = model.black_box_.model
        trained = black_box.model if isinstance(black_box, OnPreparedRows | OnCommonCodes) else black_box
        facts["black_box"] = {"kind": _kind(trained), "fingerprint": _fingerprint(black_box)}
    if hasattr(model, "probabilities_"):
        facts["probabilities"] = dict(model.probabilities_)
    if (rows := _training_rows(model)) is not None:
        facts["training"] = {
            "rows": len(rows),
            "fingerprint": data_fingerprint(rows, feature_names(model)),
            "histograms": histograms(rows, _columns(model)),
        }
    known = dict(figures)
    if hasattr(model, "explanations_"):
        facts["explanations"] = model.explanations_.counts()
    if hasattr(model, "consistency_"):
        known = {"training": model.consistency_.as_dict(), **known}
    return {**facts, "figures": known}


def data_fingerprint(rows: Any, features: tuple[str, ...]) -> str:
    """SHA-256 of the names and the float64 values, row by row, little-endian."""
    values = np.ascontiguousarray(rows, dtype="<f8")
    names = "\0".join(features).encode("utf-8", "surrogatepass")
    seen = hashlib.sha256(names + b"\0\0" + str(values.shape).encode())
    seen.update(values.data)
    return seen.hexdigest()


def histograms(rows: Any, columns: Columns | None) -> list[dict[str, Any]]:
    """The histogram of each column; of words, how often each occurs."""
    if columns is None:
        return [histogram(rows[:, feature]) for feature in range(rows.shape[1])]
    return [
        {"edges": [], **_word_counts(rows[:, feature], columns.book.texts[feature], kind)}
        if kind in ("category", "boolean")
        else histogram(rows[:, feature])
        for feature, kind in enumerate(columns.kinds)
    ]


def _word_counts(codes: Any, texts: tuple[str, ...], kind: Kind) -> dict[str, Any]:
    missing = np.isnan(codes)
    counts = np.bincount(codes[~missing].astype(np.int64), minlength=len(texts) + 1).tolist()
    names = ("false", "true") if kind == "boolean" else ("", *texts)  # no training row has code 0
    values = dict(zip(names, counts, strict=False))
    return {"counts": [], "missing": int(missing.sum()), "values": {t: n for t, n in values.items() if n}}


def histogram(values: Any) -> dict[str, Any]:
    """Counts between quantiles of a column: enough to see later data drift away, too little to see a row."""
    numbers = values[np.isfinite(values)]
    if len(numbers) == 0:
        return {"edges": [], "counts": [], "missing": len(values)}
    edges = np.unique(np.quantile(numbers, np.linspace(0, 1, HISTOGRAM_BINS + 1)))
    counts = np.bincount(np.searchsorted(edges[1:-1], numbers, side="right"), minlength=max(1, len(edges) - 1))
    return {"edges": edges.tolist(), "counts": counts.tolist(), "missing": len(values) - len(numbers)}


def _kind(thing: Any) -> str:
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{named.__module__}.{named.__qualname__}"


def _fingerprint(model: Any) -> str | None:
    """A hash of a model's own arrays and settings. A plain function has none: its name says nothing of its answers."""
    if not hasattr(model, "predict_proba"):
        return None
    import joblib

    try:
        return f"joblib-sha1:{joblib.hash(model, hash_name='sha1')}"
    except Exception:  # what cannot be pickled has no fingerprint
        return None


def _as_json(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    if value is None or type(value) in (str, int, bool):
        return value
    if isinstance(value, float):
        return float(value) if np.isfinite(value) else str(value)
    return _kind(value)
