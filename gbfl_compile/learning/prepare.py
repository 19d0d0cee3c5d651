"""Checks and prepares what a fit takes: parameters, rows, the black box (which may be trained here) and the classes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from gbfl_compile.errors import BadInput, did_you_mean
from gbfl_compile.learning.black_box import BlackBox, Ints, Matrix
from gbfl_compile.learning.explain import Explainer, Explanations, infer_kinds
from gbfl_compile.learning.explain.greedy import Greedy, explain_greedily
from gbfl_compile.learning.explain.macem import Macem, explain_by_macem
from gbfl_compile.learning.explain.nearest import Nearest, explain_by_nearest
from gbfl_compile.learning.explain.spheres import Spheres, explain_by_spheres
from gbfl_compile.learning.explain.table_values import TableValues, repair
from gbfl_compile.learning.fit import HEADS, TREE_MODES, Recipe
from gbfl_compile.learning.heads.tree import MAX_DEPTH

if TYPE_CHECKING:
    from gbfl_compile.ir.kinds import Columns
    from gbfl_compile.learning.black_box.load import Kind

NEIGHBOURS = 10


def check_parameters(model: Any) -> None:
    """Refuse impossible parameters of a classifier, by name."""
    methods_of(model.explainer)
    choices = {"head": HEADS, "mode": TREE_MODES, "fit_on": ("triplets", "x"), "labels": ("black_box", "true")}
    for name, allowed in choices.items():
        if getattr(model, name) not in allowed:
            raise BadInput(f"{name}={getattr(model, name)!r} is not one of {', '.join(allowed)}")
    if model.max_depth != "cv" and not (_is_whole(model.max_depth) and 1 <= model.max_depth <= MAX_DEPTH):
        raise BadInput(f"max_depth={model.max_depth!r}: a readable tree is 1 to {MAX_DEPTH} levels deep, or 'cv'")
    for name in ("max_clauses", "max_atoms", "min_samples_leaf"):
        if name == "min_samples_leaf" and model.min_samples_leaf is None:
            continue
        if not _is_whole(getattr(model, name)) or getattr(model, name) < 1:
            raise BadInput(f"{name}={getattr(model, name)!r}: a whole number, at least 1")
    if model.points is not None and (not _is_whole(model.points) or model.points < 1):
        raise BadInput(f"points={model.points!r}: a whole number, at least 1, or None for points of 2**-10 logit")
    if model.n_jobs is not None and (not _is_whole(model.n_jobs) or model.n_jobs == 0):
        raise BadInput(f"n_jobs={model.n_jobs!r}: a whole number but 0 (-1 is all processors), or None")
    if model.extra_rows is not None and (not _is_whole(model.extra_rows) or model.extra_rows < 0):
        raise BadInput(f"extra_rows={model.extra_rows!r}: a whole number, or None")
    if not isinstance(model.kappa, Real):
        raise BadInput(f"kappa={model.kappa!r}: a margin in probability, 0 <= kappa < 1")
    if not isinstance(model.C, int | float | Real) or not 0 < float(model.C) < float("inf"):
        raise BadInput(f"C={model.C!r}: a positive number")
    _check_role_weights(model.role_weights)
    check_random_state(model.random_state)


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _check_role_weights(role_weights: Any) -> None:
    try:
        weights = [float(weight) for weight in role_weights]
    except (TypeError, ValueError):
        weights = []
    if len(weights) != 3 or not all(0 <= weight < float("inf") for weight in weights) or weights[0] <= 0:
        raise BadInput(f"role_weights={role_weights!r}: three weights for x, PP and PN, the first above 0")


def recipe_of(model: Any) -> Recipe:
    """The recipe that a classifier's parameters describe."""
    weights = tuple(float(weight) for weight in model.role_weights)
    return Recipe(
        head=model.head,
        grid=model.grid,
        grid_points=model.grid_points,
        skip=model.skip,
        mode=model.mode,
        single_bounds=model.single_bounds,
        role_weights=(weights[0], 0.0, 0.0) if model.fit_on == "x" else (weights[0], weights[1], weights[2]),
        max_depth=model.max_depth,
        min_samples_leaf=model.min_samples_leaf,
        max_clauses=model.max_clauses,
        max_atoms=model.max_atoms,
        ridge=1.0 / model.C,
        points=model.points,
    )


METHODS = ("greedy", "nearest", "macem", "spheres")
"""The explanation methods by name; `explainer=` takes one, or several joined by "+"."""
USUAL_METHODS = "greedy+nearest"
"""The default of `explainer=`."""


def methods_of(explainer: Any) -> tuple[str, ...]:
    """The names of the methods that `explainer=` asks for; a user's own has one name, whatever it is.

    >>> methods_of("greedy+nearest")
    ('greedy', 'nearest')
    """
    if callable(explainer):
        return ("own",)
    names = tuple(name.strip() for name in explainer.split("+")) if isinstance(explainer, str) else ()
    if not names or len(set(names)) < len(names) or not set(names) <= set(METHODS):
        unknown = next((name for name in names if name not in METHODS), "")
        raise BadInput(
            f"explainer={explainer!r} is neither one of {', '.join(METHODS)}, nor several of them such as "
            f"{USUAL_METHODS!r}, nor a callable{did_you_mean(unknown, METHODS)}"
        )
    return names


def foreign_method(explainer: Any) -> str:
    """A method to measure by that a model was not fitted on: growing spheres, unless it was fitted on those."""
    return next(name for name in ("spheres", "greedy", "nearest", "macem") if name not in methods_of(explainer))


def explainers_of(model: Any, kappa: float) -> dict[str, Explainer]:
    """Name -> explainer, for each method that a classifier's parameters ask for, with this margin."""
    if callable(model.explainer):
        return {"own": model.explainer}  # trusted to be an Explainer
    names = methods_of(model.explainer)
    most = None if model.max_queries is None else model.max_queries // len(names)
    return {name: explainer_by_name(name, model, kappa, most) for name in names}


def explainer_by_name(name: str, model: Any, kappa: float, most: int | None = None) -> Explainer:
    """One method with a classifier's parameters; `most` limits its queries."""
    k, seed = model.max_changes, seed_of(model.random_state)
    match name:
        case "greedy":
            return partial(explain_greedily, settings=Greedy(kappa=kappa, max_moved=k, max_queries=most))
        case "nearest":
            return partial(explain_by_nearest, settings=Nearest(kappa=kappa, max_queries=most))
        case "macem":
            return partial(explain_by_macem, settings=Macem(kappa=kappa, max_moved=k, max_queries=most, seed=seed))
        case "spheres":
            return partial(explain_by_spheres, settings=Spheres(kappa=kappa, max_queries=most, seed=seed))
        case _:
            raise BadInput(f"explainer={name!r} is not one of {', '.join(METHODS)}")


def seed_of(random_state: Any) -> int:
    """The random state where it is a number, else 0, so that two fits are equal."""
    return int(random_state) if isinstance(random_state, Integral) else 0


def kinds_of(model: Any, x: Matrix, features: Any) -> Any:
    """The kind of each feature: as the user says, otherwise inferred from the rows."""
    if not isinstance(model.kinds, str | Mapping):
        return model.kinds
    if isinstance(model.kinds, str) and model.kinds != "infer":
        raise BadInput(f"kinds={model.kinds!r}: 'infer', one kind per feature, or a mapping by feature")
    names = [f"x{j}" for j in range(x.shape[1])] if features is None else [str(name) for name in features]
    wishes: Mapping[Any, Any] = {} if isinstance(model.kinds, str) else model.kinds
    kinds = {name: kind for name, kind in zip(names, infer_kinds(x), strict=True) if name not in wishes}
    places = {names[int(key)] for key in wishes if isinstance(key, Integral) and 0 <= int(key) < len(names)}
    return {name: kind for name, kind in kinds.items() if name not in places} | dict(wishes)


def by_method(
    explanations: Explanations | Mapping[str, Explanations], x: Matrix, method: str
) -> dict[str, Explanations]:
    """The explanations under their methods' names, once they are seen to be of these rows."""
    several = {method: explanations} if isinstance(explanations, Explanations) else dict(explanations)
    if not several:
        raise BadInput("explanations= names no method")
    return {name: check_same_rows(each, x) for name, each in several.items()}


def check_same_rows(explanations: Explanations, x: Matrix) -> Explanations:
    """The explanations themselves; refused where they explain other rows."""
    if not np.array_equal(explanations.x, x, equal_nan=True):
        raise BadInput("explanations= holds other rows than X: explain these rows in this order, or leave it out")
    return explanations


def rows_between(x: Matrix, count: int, seed: int) -> Matrix:
    """`count` made-up rows, each between a row and one of its nearest; whole numbers and codes are those of either row.

    The black box can be queried with any point, so few rows need not mean few explanations.
    """
    random = np.random.default_rng(seed)
    x = np.ascontiguousarray(x)  # sums over columns depend on how they lie in memory
    spread = x.std(axis=0)
    scaled = x / np.where(spread > 0, spread, 1.0)
    search = NearestNeighbors(n_neighbors=min(NEIGHBOURS + 1, len(x))).fit(scaled)
    near = search.kneighbors(scaled, return_distance=False)
    start = random.integers(len(x), size=count)
    goal = near[start, random.integers(min(1, near.shape[1] - 1), near.shape[1], size=count)]
    way = random.random((count, 1))
    between = np.clip(x[start] + way * (x[goal] - x[start]), x.min(axis=0), x.max(axis=0))
    whole = np.array([kind != "float" for kind in infer_kinds(x)])
    return np.where(whole, np.where(way < 0.5, x[start], x[goal]), between)


def rows_between_words(x: Matrix, table: TableValues, count: int, seed: int) -> Matrix:
    """`count` made-up rows of a table with words, each between a row and one of its nearest.

    Words, whole numbers and missing values are those of either row; pairs of words that never meet are taken back.
    """
    random = np.random.default_rng(seed)
    space = _metric(x, table)
    search = NearestNeighbors(n_neighbors=min(NEIGHBOURS + 1, len(x))).fit(space)
    near = search.kneighbors(space, return_distance=False)
    start = random.integers(len(x), size=count)
    goal = near[start, random.integers(min(1, near.shape[1] - 1), near.shape[1], size=count)]
    way = random.random((count, 1))
    rows = np.where(random.random((count, x.shape[1])) < way, x[goal], x[start])
    between = x[start] + way * (x[goal] - x[start])
    rows = np.where((table.steps == 0) & ~np.isnan(between), between, rows)
    repair(table, rows, x[start])
    return rows


def _metric(x: Matrix, table: TableValues) -> Matrix:
    """The rows where distance is how much they differ: numbers by their spread, words and gaps by a constant."""
    parts = []
    for j, kind in enumerate(table.columns.kinds):
        here, missing = x[:, j], np.isnan(x[:, j])
        if kind in ("category", "boolean"):
            codes = np.where(missing, -1, here)
            parts += [0.5 * (codes == code) for code in np.unique(codes)]
            continue
        values = here[~missing]
        low, middle, high = np.quantile(values, (0.05, 0.5, 0.95)) if len(values) else (0.0, 0.0, 0.0)
        parts += [np.where(missing, 0.0, (here - middle) / (2 * (high - low or 1.0))), 0.5 * missing]
    return np.column_stack(parts)


def default_black_box(x: Matrix, y: NDArray[Any], random_state: Any) -> Pipeline:
    """A small neural network; full-batch on small data, where stochastic steps are too few to converge."""
    if len(np.unique(y)) < 2:
        raise BadInput("y has only one class: there is nothing to distinguish")
    small = len(x) < 2000
    network = MLPClassifier(
        (40, 20),
        solver="lbfgs" if small else "adam",
        alpha=1.0 if small else 1e-4,
        max_iter=300,
        early_stopping=not small and can_hold_out(y),
        random_state=random_state,
    )
    # one thread: the steps are small, and on a busy machine threads that wait for each other took 40 times as long
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        # stopping before convergence is not a defect in a model that is only to be explained
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make_pipeline(StandardScaler(), network).fit(x, y)


def can_hold_out(y: NDArray[Any]) -> bool:
    """Whether a tenth of the rows can be held out by class, to stop a fit early: not where a class has a single row."""
    counts = np.unique(y, return_counts=True)[1]
    return bool(counts.min() >= 2 and len(y) // 10 >= len(counts))


def shared_classes(black_box: BlackBox, y: NDArray[Any] | None) -> NDArray[Any]:
    """The labels of the model: the black box's own, or y's where the black box names none."""
    if y is None:
        return black_box.classes
    labels = np.unique(y)
    if not black_box.names_classes:
        return _class_names(black_box, labels)
    unknown = [label for label in labels.tolist() if label not in black_box.classes.tolist()]
    if unknown and (same := _same_but_for_type(black_box.classes, labels)) is not None:
        return same
    if unknown:
        raise BadInput(f"y has a class {unknown[0]!r} that the black box does not: {black_box.classes.tolist()}")
    return black_box.classes


def _same_but_for_type(classes: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any] | None:
    """The labels of y in the order of the black box's, where both are written alike: 0 and 1 against "0" and "1"."""
    by_text = {str(label): label for label in labels.tolist()}
    texts = [str(label) for label in classes.tolist()]
    if len(set(texts)) < len(texts) or set(texts) != set(by_text):
        return None
    return np.array([by_text[text] for text in texts])


def _class_names(black_box: BlackBox, labels: NDArray[Any]) -> NDArray[Any]:
    """Names for a black box that has none: y's labels in order, where there are as many as classes."""
    count = len(black_box.classes)
    if len(labels) == count:
        return labels
    if len(labels) > count:
        raise BadInput(f"y has {len(labels)} classes and the black box answers {count}")
    if np.isin(labels, black_box.classes).all():
        return black_box.classes
    raise BadInput(
        f"the black box answers {count} classes without names and y has only {len(labels)}: "
        "give it a classes_ attribute, or rows of every class"
    )


def class_indices(y: NDArray[Any], classes: NDArray[Any]) -> Ints:
    """Labels as indices into `classes`."""
    place = {label: index for index, label in enumerate(classes.tolist())}
    return np.array([place[label] for label in y.tolist()], dtype=np.int64)


def train_black_box(kind: Kind, x: Any, y: Any, seed: int, columns: Columns | None) -> Any:
    """A black box fitted by scikit-learn with one thread: the same one for the same seed.

    `columns` says what the codes in x mean where the table has words or gaps; such a black box is queried with codes.
    """
    with threadpool_limits(1):
        if columns is not None:
            from gbfl_compile.learning.tables import train_on_codes

            return train_on_codes(kind, x, y, columns, seed)
        return _train_on_numbers(kind, x, y, seed)


def _train_on_numbers(kind: Kind, x: Any, y: Any, seed: int) -> Any:
    match kind:
        case "mlp":
            return default_black_box(x, y, seed)
        case "gbm":
            from sklearn.ensemble import HistGradientBoostingClassifier

            boosting = HistGradientBoostingClassifier(
                max_leaf_nodes=15,
                learning_rate=0.05,
                early_stopping="auto" if can_hold_out(y) else False,
                random_state=seed,
            )
            return boosting.fit(x, y)
        case "forest":
            from sklearn.ensemble import RandomForestClassifier

            # one job: trees that add up their votes in parallel do so in another order each time
            return RandomForestClassifier(100, min_samples_leaf=3, random_state=seed, n_jobs=1).fit(x, y)
        case _:
            assert_never(kind)
