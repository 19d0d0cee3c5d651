"""The three baselines of the paper: CART of depth <= 5 on raw features, fitted three ways.

    StandardTree    on the data and its labels
    DistilledTree   on the data and the black box's classes
    AugmentedTree   on the data, its PPs and its PNs, each with the black box's class

All have the interface of GBFLClassifier, and `lower` turns each into a program that agrees on every double.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from gbfl_compile.errors import BadInput
from gbfl_compile.learning.black_box import Ints, Matrix, as_black_box, classes_of
from gbfl_compile.learning.consistency import Consistency, consistency
from gbfl_compile.learning.explain import Explainer, Explanations, domain_of, infer_kinds
from gbfl_compile.learning.explain.greedy import Greedy, explain_greedily
from gbfl_compile.learning.heads.tree import MAX_DEPTH as MAX_DEPTH
from gbfl_compile.learning.prepare import check_same_rows, default_black_box, shared_classes
from gbfl_compile.learning.tables import as_frame

FOLDS = 10


# scikit-learn ships no types, so its bases are Any to mypy
class _RawTree(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What the three share: how they answer. Each is fitted in its own way."""

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row; missing and infinite values are allowed and follow the tree."""
        winner = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[winner])

    def predict_proba(self, X: Any) -> Matrix:
        """One probability per class, in the order of `classes_`."""
        check_is_fitted(self)
        x = validate_data(self, as_frame(X), reset=False, dtype=np.float64, ensure_all_finite=False)
        return _probabilities(self, x)


class _BlackBoxTree(_RawTree):
    """A baseline with a black box: it can explain new rows and measure its consistency on them."""

    def __init__(
        self,
        black_box: Any = None,
        *,
        max_depth: int | str = "cv",
        min_samples_leaf: int = 1,
        explainer: str | Explainer = "greedy",
        kappa: float = 0.5,
        max_changes: int | None = 5,
        base: Any = None,
        bounds: Any = None,
        random_state: Any = None,
    ) -> None:
        self.black_box = black_box
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.explainer = explainer
        self.kappa = kappa
        self.max_changes = max_changes
        self.base = base
        self.bounds = bounds
        self.random_state = random_state

    def explain_points(self, X: Any) -> Explanations:
        """The PP and PN of new rows, under the same black box, base and bounds."""
        check_is_fitted(self)
        x = validate_data(self, as_frame(X), reset=False, dtype=np.float64)
        explanations: Explanations = _explainer(self)(self.black_box_, x, self.domain_)
        return explanations

    def local_consistency(self, X: Any) -> Consistency:
        """How this model agrees with the black box on rows, their PPs and their PNs."""
        e = self.explain_points(X)
        on_x, on_pp, on_pn = (_probabilities(self, points).argmax(axis=1) for points in (e.x, e.pp, e.pn))
        return consistency(e.label, on_x, on_pp, on_pn, e.has_pp, e.has_pn)


class StandardTree(_RawTree):
    """CART on the data and its true labels. It knows no black box.

    Parameters
    ----------
    max_depth : 1 to 5, or "cv": the depth that gets most held-out rows right, the shallowest of equals
    min_samples_leaf : for the tree
    random_state : for ties in the tree (None always breaks them the same way)

    """

    def __init__(self, *, max_depth: int | str = "cv", min_samples_leaf: int = 1, random_state: Any = None) -> None:
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.random_state = random_state

    def fit(self, X: Any, y: Any, explanations: Explanations | None = None) -> StandardTree:
        """Fit the tree. `explanations` is accepted for the interface alone: this baseline uses none."""
        x, target = validate_data(self, as_frame(X), y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(target)
        self.classes_, own = np.unique(target, return_inverse=True)
        self.x_ = x
        _fit_tree(self, x, own.astype(np.int64), np.arange(len(x)))
        return self


class DistilledTree(_BlackBoxTree):
    """CART on the data and the black box's class of each row (distillation, model compression).

    Parameters
    ----------
    black_box : an object with `predict_proba`, a callable, or None for a small neural network fitted to (X, y)
    max_depth, min_samples_leaf, random_state : as for StandardTree
    explainer, kappa, max_changes, base, bounds : for `local_consistency` only; see GBFLClassifier

    """

    def fit(self, X: Any, y: Any = None, explanations: Explanations | None = None) -> DistilledTree:
        """Fit the tree; y may be left out when a black box is given. `explanations` of X save asking it again."""
        x = _prepare(self, X, y)
        label = classes_of(self.black_box_, x) if explanations is None else check_same_rows(explanations, x).label
        _fit_tree(self, x, label, np.arange(len(x)))
        return self


class AugmentedTree(_BlackBoxTree):
    """CART on the data, its PPs and its PNs, each point with the black box's class of that point.

    Parameters
    ----------
    black_box : an object with `predict_proba`, a callable, or None for a small neural network fitted to (X, y)
    max_depth, min_samples_leaf, random_state : as for StandardTree; a row's PP and PN share its fold
    explainer, kappa, max_changes, base, bounds : how PPs and PNs are found; see GBFLClassifier

    """

    def fit(self, X: Any, y: Any = None, explanations: Explanations | None = None) -> AugmentedTree:
        """Explain the rows of X, or take their `explanations`, and fit the tree to all points."""
        x = _prepare(self, X, y)
        if explanations is None:
            explanations = _explainer(self)(self.black_box_, x, self.domain_)
        e = self.explanations_ = check_same_rows(explanations, x)
        row = np.arange(len(x))
        points = np.concatenate((x, e.pp[e.has_pp], e.pn[e.has_pn]))
        label = np.concatenate((e.label, e.label[e.has_pp], e.pn_label[e.has_pn]))
        _fit_tree(self, points, label, np.concatenate((row, row[e.has_pp], row[e.has_pn])))
        return self


def _prepare(model: _BlackBoxTree, X: Any, y: Any) -> Matrix:
    """The training rows, once the domain, the black box and the classes are known."""
    target = None
    if y is not None:
        x, target = validate_data(model, as_frame(X), y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(target)
    elif model.black_box is not None:
        x = validate_data(model, as_frame(X), dtype=np.float64, ensure_min_samples=2)
    else:
        name = type(model).__name__
        raise BadInput(f"{name} requires y to be passed, but the target y is None: only with a black box may it be")
    names = getattr(model, "feature_names_in_", None)
    model.domain_ = domain_of(x, base=model.base, bounds=model.bounds, features=names, kinds=infer_kinds(x))
    # without a black box there is a y: it was required above
    black_box = default_black_box(x, target, model.random_state) if model.black_box is None else model.black_box  # type: ignore[arg-type]
    model.black_box_ = as_black_box(black_box, x, features=names)
    model.classes_ = shared_classes(model.black_box_, target)
    model.x_ = x
    return np.asarray(x)


def _explainer(model: Any) -> Explainer:
    if callable(model.explainer):
        explainer: Explainer = model.explainer
        return explainer
    if model.explainer != "greedy":
        raise BadInput(f"explainer={model.explainer!r} is neither 'greedy' nor a callable")
    return partial(explain_greedily, settings=Greedy(kappa=model.kappa, max_moved=model.max_changes))


def _fit_tree(model: _RawTree, x: Matrix, label: Ints, row: Ints) -> None:
    """Fit `model.tree_` to labelled points; `row` says which training row each belongs to."""
    allowed = range(1, MAX_DEPTH + 1)
    if model.max_depth != "cv" and model.max_depth not in allowed:
        raise BadInput(f"max_depth={model.max_depth!r}: a readable tree is 1 to {MAX_DEPTH} levels deep, or 'cv'")
    # with None the order in which equal splits are tried, and so the tree, would be random
    seed = 0 if model.random_state is None else model.random_state
    settings = {"min_samples_leaf": model.min_samples_leaf, "random_state": seed}
    depth = model.max_depth
    model.max_depth_ = best_depth(x, label, row, settings) if depth == "cv" else int(depth)
    model.tree_ = DecisionTreeClassifier(max_depth=model.max_depth_, **settings).fit(_float32(x), label)


def best_depth(x: Matrix, label: Ints, row: Ints, settings: dict[str, Any]) -> int:
    """The depth from 1 to 5 that gets most held-out points right, the shallowest of equals.

    One tree per fold serves all depths: a shallower one is the same tree cut off. Points of one training row
    stay in one fold.
    """
    fold = deal_folds(label[np.unique(row, return_index=True)[1]])[row]
    right = np.zeros(MAX_DEPTH + 1)
    for held_out in range(int(fold.max()) + 1):
        out = fold == held_out
        tree = DecisionTreeClassifier(max_depth=MAX_DEPTH, **settings).fit(_float32(x[~out]), label[~out])
        right += _right_by_depth(tree, _float32(x[out]), label[out])
    return 1 + int(right[1:].argmax())


def deal_folds(label: Ints, folds: int = FOLDS, seed: int = 0) -> Ints:
    """A fold for each row, classes dealt evenly; fewer folds where the smallest class has fewer rows, at least two.

    >>> deal_folds(np.array([0, 0, 0, 0, 1, 1]), seed=0).tolist()
    [1, 0, 1, 0, 0, 1]
    """
    smallest = int(np.unique(label, return_counts=True)[1].min())
    count = max(2, min(folds, smallest))
    order = np.lexsort((np.random.default_rng(seed).permutation(len(label)), label))
    fold = np.empty(len(label), dtype=np.int64)
    fold[order] = np.arange(len(label)) % count
    return fold


def _right_by_depth(tree: DecisionTreeClassifier, x: NDArray[np.float32], label: Ints) -> Matrix:
    """How many rows the tree gets right when cut off at depth 0, 1, .."""
    arrays = tree.tree_
    own = tree.classes_[arrays.value[:, 0, :].argmax(axis=1)]
    right, at, each = np.zeros(MAX_DEPTH + 1), np.zeros(len(x), dtype=np.int64), np.arange(len(x))
    for depth in range(MAX_DEPTH + 1):
        right[depth] = (own[at] == label).sum()
        left = x[each, np.maximum(arrays.feature[at], 0)] <= arrays.threshold[at]
        below = np.where(left, arrays.children_left[at], arrays.children_right[at])
        at = np.where(below < 0, at, below)
    return right


def _float32(x: Matrix) -> NDArray[np.float32]:
    """The cast scikit-learn makes; values that are too large become infinite and are allowed."""
    with np.errstate(over="ignore"):
        return x.astype(np.float32)


def _probabilities(model: _RawTree, x: Matrix) -> Matrix:
    answer = np.zeros((len(x), len(model.classes_)))
    # the estimator's predict refuses infinities and, where it was fitted without any, missing values; its tree does not
    answer[:, model.tree_.classes_] = model.tree_.tree_.predict(_float32(x))
    return answer
