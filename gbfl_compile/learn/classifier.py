"""GBFLClassifier: a transparent model built from a black box's contrastive explanations (Algorithm 3)."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from gbfl_compile.consistency import Consistency, consistency
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Clause
from gbfl_compile.learn.black_box import BlackBox, Ints, Matrix, as_black_box
from gbfl_compile.learn.clauses import MODES, Mined, Mode, mine, single_bounds
from gbfl_compile.learn.explanations import Explainer, Explanations, domain_of
from gbfl_compile.learn.greedy import Greedy, explain_greedily
from gbfl_compile.learn.grid import GRIDS, GridKind, grid_of
from gbfl_compile.learn.matrix import clause_matrix

MAX_DEPTH = 5
"""The paper's limit: a deeper tree is no longer read."""

MOST_CELLS = 2**27
"""The tree is fitted on at most this many cells (scikit-learn copies them to 4 bytes each: 512 MB)."""


# scikit-learn ships no types, so its bases are Any to mypy
class GBFLClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A tree of depth <= 5 over clauses mined from a black box's explanations.

    The black box is any object with `predict_proba`, or a callable from rows to probabilities; it is used
    as it is, never fitted. With None a small neural network is fitted to (X, y) first.

    Parameters
    ----------
    black_box : object, callable or None
    explainer : "greedy", or a callable (black_box, x, domain) -> Explanations
    kappa : the margin, in probability, that a PP and a PN should reach
    max_changes : how many features a PN may change
    grid : "kde" or "uniform"
    grid_points : points a feature, bounds included (the paper's N + 1)
    skip : grid points a clause reaches beyond its row (the paper's Delta)
    mode : "faithful" (the resolutions) or "literal" (Algorithm 1 to the letter)
    fit_on : "triplets" (x, PP and PN, each with the black box's class) or "x" (the paper's)
    labels : "black_box" or "true": what x is labelled in the fit; PP and PN have no true label
    single_bounds : whether each bound of a clause is a candidate of its own
    max_depth, min_samples_leaf : of the tree
    base, bounds : base values and (lower, upper); the median and the training range where None
    random_state : for the default black box and the tree's ties (which None leaves fixed)

    """

    def __init__(
        self,
        black_box: Any = None,
        *,
        explainer: str | Explainer = "greedy",
        kappa: float = 0.5,
        max_changes: int | None = 5,
        grid: GridKind = "kde",
        grid_points: int = 10,
        skip: int = 4,
        mode: Mode = "faithful",
        fit_on: str = "triplets",
        labels: str = "black_box",
        single_bounds: bool = True,
        max_depth: int = 5,
        min_samples_leaf: int = 1,
        base: Any = None,
        bounds: Any = None,
        random_state: Any = None,
    ) -> None:
        self.black_box = black_box
        self.explainer = explainer
        self.kappa = kappa
        self.max_changes = max_changes
        self.grid = grid
        self.grid_points = grid_points
        self.skip = skip
        self.mode = mode
        self.fit_on = fit_on
        self.labels = labels
        self.single_bounds = single_bounds
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.base = base
        self.bounds = bounds
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> GBFLClassifier:
        """Explain the rows of X, mine their clauses, fit the tree.

        y may be left out when a black box is given and labels="black_box".
        """
        _check_options(self)
        x, y = _checked_training(self, X, y)
        names = getattr(self, "feature_names_in_", None)
        self.domain_ = domain_of(x, base=self.base, bounds=self.bounds, features=names)
        self.base_ = self.domain_.base
        self.bounds_ = (self.domain_.lower, self.domain_.upper)
        model = _default_black_box(x, y, self.random_state) if self.black_box is None else self.black_box
        self.black_box_ = as_black_box(model, x, features=names)
        self.classes_ = _classes(self.black_box_, y)
        self.explainer_ = _explainer(self)
        self.explanations_: Explanations = self.explainer_(self.black_box_, x, self.domain_)
        self.grid_ = grid_of(x, *self.bounds_, self.grid_points, self.grid)
        self.mined_ = mine(self.explanations_, self.domain_, self.grid_, self.skip, self.mode)
        rows, target = _fitting_rows(self, y)
        self.clauses_, self.n_clauses_left_out_ = _candidates(self.mined_, self.single_bounds, len(rows))
        self.tree_ = DecisionTreeClassifier(
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
            # None leaves the order in which equal splits are tried, and so the rules, to chance
            random_state=0 if self.random_state is None else self.random_state,
        ).fit(_columns(self.clauses_, rows), target)
        self.consistency_ = _measured(self, self.explanations_)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row; missing values are allowed and answer False in every clause that asks them."""
        winner = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[winner])

    def predict_proba(self, X: Any) -> Matrix:
        """One probability a class, in the order of `classes_`."""
        check_is_fitted(self)
        x = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False)
        return _tree_probabilities(self, x)

    def explain_points(self, X: Any) -> Explanations:
        """The PP and PN of new rows, under the same black box, base and bounds."""
        check_is_fitted(self)
        x = validate_data(self, X, reset=False, dtype=np.float64)
        found: Explanations = self.explainer_(self.black_box_, x, self.domain_)
        return found

    def local_consistency(self, X: Any) -> Consistency:
        """How this model agrees with the black box on rows, their PPs and their PNs."""
        return _measured(self, self.explain_points(X))


def _check_options(model: GBFLClassifier) -> None:
    choices = {"grid": GRIDS, "mode": MODES, "fit_on": ("triplets", "x"), "labels": ("black_box", "true")}
    for name, allowed in choices.items():
        if getattr(model, name) not in allowed:
            raise BadInput(f"{name}={getattr(model, name)!r} is none of {', '.join(allowed)}")
    if not 1 <= model.max_depth <= MAX_DEPTH:
        raise BadInput(f"max_depth={model.max_depth!r}: a readable tree is 1 to {MAX_DEPTH} levels deep")


def _checked_training(model: GBFLClassifier, X: Any, y: Any) -> tuple[Matrix, NDArray[Any] | None]:
    if y is None and model.black_box is not None and model.labels == "black_box":
        return validate_data(model, X, dtype=np.float64, ensure_min_samples=2), None
    if y is None:
        raise BadInput(
            "GBFLClassifier requires y to be passed, but the target y is None: "
            "only with a black box and labels='black_box' can it be left out"
        )
    x, target = validate_data(model, X, y, dtype=np.float64, ensure_min_samples=2)
    check_classification_targets(target)
    return x, target


def _default_black_box(x: Matrix, y: NDArray[Any] | None, random_state: Any) -> Pipeline:
    """A small neural network: full-batch on small data, where stochastic steps are too few to arrive."""
    if len(np.unique(y)) < 2:  # type: ignore[arg-type]  # y was required above
        raise BadInput("y has only one class: there is nothing to tell apart")
    small = len(x) < 2000
    network = MLPClassifier(
        (40, 20),
        solver="lbfgs" if small else "adam",
        alpha=1.0 if small else 1e-4,
        max_iter=300,
        early_stopping=not small,
        random_state=random_state,
    )
    # one thread: the steps are small, and on a busy machine threads that wait for each other took 40 times as long
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        # stopping before it has converged is no defect in a model that is only to be explained
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make_pipeline(StandardScaler(), network).fit(x, y)


def _classes(black_box: BlackBox, y: NDArray[Any] | None) -> NDArray[Any]:
    """The labels of the model: the black box's own, or y's where the black box names none."""
    if y is None:
        return black_box.classes
    seen = np.unique(y)
    if not black_box.names_classes:
        if len(seen) > len(black_box.classes):
            raise BadInput(f"y has {len(seen)} classes and the black box answers {len(black_box.classes)}")
        if len(seen) < len(black_box.classes):
            return black_box.classes if np.isin(seen, black_box.classes).all() else _refuse_unnamed(black_box, seen)
        return seen
    unknown = [label for label in seen.tolist() if label not in black_box.classes.tolist()]
    if unknown:
        raise BadInput(f"y has a class {unknown[0]!r} that the black box does not: {black_box.classes.tolist()}")
    return black_box.classes


def _refuse_unnamed(black_box: BlackBox, seen: NDArray[Any]) -> NDArray[Any]:
    raise BadInput(
        f"the black box answers {len(black_box.classes)} classes without names and y has only {len(seen)}: "
        "give it a classes_ attribute, or rows of every class"
    )


def _explainer(model: GBFLClassifier) -> Explainer:
    if callable(model.explainer):
        return model.explainer
    if model.explainer != "greedy":
        raise BadInput(f"explainer={model.explainer!r} is neither 'greedy' nor a callable")
    return partial(explain_greedily, settings=Greedy(kappa=model.kappa, max_moved=model.max_changes))


def _fitting_rows(model: GBFLClassifier, y: NDArray[Any] | None) -> tuple[Matrix, Ints]:
    """The rows the tree is fitted on and their classes, as indices into `classes_`."""
    e = model.explanations_
    own = e.label
    if model.labels == "true":
        place = {label: index for index, label in enumerate(model.classes_.tolist())}
        own = np.array([place[label] for label in np.asarray(y).tolist()], dtype=np.int64)
    if model.fit_on == "x":
        return e.x, own
    rows = np.concatenate((e.x, e.pp[e.has_pp], e.pn[e.has_pn]))
    return rows, np.concatenate((own, e.label[e.has_pp], e.pn_label[e.has_pn]))


def _candidates(mined: Mined, singles: bool, rows: int) -> tuple[tuple[Clause, ...], int]:
    """The clauses the tree may use, and how many had to be left out to bound its memory.

    Clauses that fewest rows gave are left out first; single bounds stay, being few and widely true.
    """
    mined_already = set(mined.clauses)
    extra = tuple(c for c in single_bounds(mined.clauses) if c not in mined_already) if singles else ()
    room = max(1, MOST_CELLS // rows - len(extra))
    if len(mined.clauses) <= room:
        return mined.clauses + extra, 0
    support = np.array([len(rows) for rows in mined.sources])
    kept = np.sort(np.argsort(-support, kind="stable")[:room])
    return tuple(mined.clauses[i] for i in kept.tolist()) + extra, len(mined.clauses) - room


def _columns(clauses: tuple[Clause, ...], x: Matrix) -> NDArray[np.bool_]:
    """The clause matrix; one column of False where there is no clause, for a tree needs something to look at."""
    return clause_matrix(clauses, x) if clauses else np.zeros((len(x), 1), dtype=bool)


def _tree_probabilities(model: GBFLClassifier, x: Matrix) -> Matrix:
    answer = np.zeros((len(x), len(model.classes_)))
    # a class that no fitted row had is unknown to the tree
    answer[:, model.tree_.classes_] = model.tree_.predict_proba(_columns(model.clauses_, x))
    return answer


def _measured(model: GBFLClassifier, e: Explanations) -> Consistency:
    on_x, on_pp, on_pn = (_tree_probabilities(model, points).argmax(axis=1) for points in (e.x, e.pp, e.pn))
    return consistency(e.label, on_x, on_pp, on_pn, e.has_pp, e.has_pn)
