"""How fitted models do on held-out rows: the rules, and the paper's three baselines on the same explanations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.columns import Columns, EncodedTable
from gbfl_compile.learning.baselines import MAX_DEPTH, AugmentedTree, DistilledTree, StandardTree
from gbfl_compile.learning.black_box.on_codes import OnPreparedRows, preparation_of
from gbfl_compile.learning.consistency import Consistency, consistency_on
from gbfl_compile.learning.explain.explanations import Explanations
from gbfl_compile.learning.explain.triplets import Triplets
from gbfl_compile.learning.prepare import shared_classes


def as_input(rows: Matrix, features: Sequence[str], columns: Columns | None = None) -> Any:
    """Rows as a model takes them: a DataFrame, or an encoded table where the rows hold codes of words."""
    return pd.DataFrame(rows, columns=list(features)) if columns is None else EncodedTable(columns, rows)


def held_out_figures(
    model: Any, triplets: Triplets, y: NDArray[Any], columns: Columns | None = None
) -> tuple[float, Consistency]:
    """A fitted model's accuracy on held-out rows with the true classes `y`, and its consistency with the black box."""

    def predict(rows: Matrix) -> NDArray[Any]:
        return np.asarray(model.predict(as_input(rows, triplets.features, columns)))

    return float((predict(triplets.x) == y).mean()), consistency_on(triplets, predict)


def baseline_figures(
    black_box: Any,
    explanations: Explanations,
    y: NDArray[Any],
    triplets: Triplets,
    y_test: NDArray[Any],
    *,
    seed: int,
    jobs: int,
    columns: Columns | None = None,
) -> dict[str, dict[str, Any]]:
    """Name -> accuracy and consistency on the held-out rows, in the form of the rules' figures; by `jobs` threads.

    Each baseline is a CART tree of depth 5, the deepest that people still read. `gbfl paper` chooses the depth by
    cross-validation, which takes ten times as long. Where the table has words, the trees see one column per word.
    """
    if columns is not None:
        classes = shared_classes(black_box, y)
        return _figures_on_words(classes, explanations, y, triplets, y_test, columns, seed)
    settings: dict[str, Any] = {"max_depth": MAX_DEPTH, "random_state": seed}
    models: dict[str, Any] = {
        f"tree on the data, depth {MAX_DEPTH}": StandardTree(**settings),
        f"tree on the black box's answers, depth {MAX_DEPTH}": DistilledTree(black_box, **settings),
        f"tree on data, PPs and PNs, depth {MAX_DEPTH}": AugmentedTree(black_box, **settings),
    }
    frame = pd.DataFrame(explanations.x, columns=list(triplets.features))
    # threads, even if another backend explains rows: a tree grows without holding up the others; the last takes longest
    fit = joblib.Parallel(n_jobs=jobs, require="sharedmem")
    fit(joblib.delayed(model.fit)(frame, y, explanations=explanations) for model in reversed(models.values()))
    figures = {name: held_out_figures(model, triplets, y_test) for name, model in models.items()}
    return {name: {"accuracy": right, **consistency.as_dict()} for name, (right, consistency) in figures.items()}


def _figures_on_words(
    classes: NDArray[Any],
    e: Explanations,
    y: NDArray[Any],
    triplets: Triplets,
    y_test: NDArray[Any],
    columns: Columns,
    seed: int,
) -> dict[str, dict[str, Any]]:
    """The same baselines on one column per word, gaps filled and marked."""
    preparation = preparation_of(e.x, columns)
    own, other = classes[e.label], classes[e.pn_label]
    points = np.concatenate((e.x, e.pp[e.has_pp], e.pn[e.has_pn]))
    fits = {
        f"tree on the data, depth {MAX_DEPTH}": (e.x, y),
        f"tree on the black box's answers, depth {MAX_DEPTH}": (e.x, own),
        f"tree on data, PPs and PNs, depth {MAX_DEPTH}": (
            points,
            np.concatenate((own, own[e.has_pp], other[e.has_pn])),
        ),
    }
    figures = {}
    for name, (rows, labels) in fits.items():
        tree = DecisionTreeClassifier(max_depth=MAX_DEPTH, random_state=seed).fit(preparation.rows(rows), labels)
        model = OnPreparedRows(tree, preparation)
        right, consistency = held_out_figures(model, triplets, y_test, columns)
        figures[name] = {"accuracy": right, **consistency.as_dict()}
    return figures
