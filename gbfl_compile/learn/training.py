"""What a fit is given, checked and made ready: the black box, the classes, the points with their labels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from gbfl_compile.errors import BadInput
from gbfl_compile.learn.black_box import BlackBox, Ints, Matrix
from gbfl_compile.learn.explanations import Explanations
from gbfl_compile.learn.heads.head import Points


def default_black_box(x: Matrix, y: NDArray[Any], random_state: Any) -> Pipeline:
    """A small neural network: full-batch on small data, where stochastic steps are too few to arrive."""
    if len(np.unique(y)) < 2:
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


def shared_classes(black_box: BlackBox, y: NDArray[Any] | None) -> NDArray[Any]:
    """The labels of the model: the black box's own, or y's where the black box names none."""
    if y is None:
        return black_box.classes
    seen = np.unique(y)
    if not black_box.names_classes:
        return _named_by(black_box, seen)
    unknown = [label for label in seen.tolist() if label not in black_box.classes.tolist()]
    if unknown:
        raise BadInput(f"y has a class {unknown[0]!r} that the black box does not: {black_box.classes.tolist()}")
    return black_box.classes


def _named_by(black_box: BlackBox, seen: NDArray[Any]) -> NDArray[Any]:
    """Names for a black box that has none: y's labels in order, where their number says which is which."""
    count = len(black_box.classes)
    if len(seen) == count:
        return seen
    if len(seen) > count:
        raise BadInput(f"y has {len(seen)} classes and the black box answers {count}")
    if np.isin(seen, black_box.classes).all():
        return black_box.classes
    raise BadInput(
        f"the black box answers {count} classes without names and y has only {len(seen)}: "
        "give it a classes_ attribute, or rows of every class"
    )


def class_indices(y: NDArray[Any], classes: NDArray[Any]) -> Ints:
    """Labels as indices into `classes`."""
    place = {label: index for index, label in enumerate(classes.tolist())}
    return np.array([place[label] for label in y.tolist()], dtype=np.int64)


def fitting_points(
    e: Explanations,
    own: Ints,
    role_weights: tuple[float, float, float],
    n_classes: int,
    row_weight: Matrix | None = None,
) -> Points:
    """x, PP and PN as points to fit: x with the label `own`, PP and PN with the black box's class of each.

    A row with a `row_weight` stands for so many.
    """
    rows = np.arange(len(e.x))
    stands_for = np.ones(len(rows)) if row_weight is None else row_weight
    parts = (
        (e.x, own, rows, role_weights[0]),
        (e.pp[e.has_pp], e.label[e.has_pp], rows[e.has_pp], role_weights[1]),
        (e.pn[e.has_pn], e.pn_label[e.has_pn], rows[e.has_pn], role_weights[2]),
    )
    kept = [part for part in parts if part[3] > 0]
    return Points(
        x=np.concatenate([part[0] for part in kept]),
        label=np.concatenate([part[1] for part in kept]),
        weight=np.concatenate([part[3] * stands_for[part[2]] for part in kept]),
        row=np.concatenate([part[2] for part in kept]),
        n_classes=n_classes,
    )
