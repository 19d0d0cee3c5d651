"""How fitted models do on held-out rows: the rules, and the paper's three baselines on the same explanations."""

from __future__ import annotations

from typing import Any

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gbfl_compile.ir.batch import Matrix
from gbfl_compile.learning.baselines import MAX_DEPTH, AugmentedTree, DistilledTree, StandardTree
from gbfl_compile.learning.consistency import Consistency, consistency_on
from gbfl_compile.learning.explain.explanations import Explanations
from gbfl_compile.learning.explain.triplets import Triplets


def held_out_figures(model: Any, triplets: Triplets, y: NDArray[Any]) -> tuple[float, Consistency]:
    """A fitted model's accuracy on held-out rows with the true classes `y`, and its consistency with the black box."""
    columns = list(triplets.features)

    def predict(rows: Matrix) -> NDArray[Any]:
        return np.asarray(model.predict(pd.DataFrame(rows, columns=columns)))

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
) -> dict[str, dict[str, Any]]:
    """Name -> accuracy and consistency on the held-out rows, in the form of the rules' figures; by `jobs` threads.

    Each baseline is a CART tree of depth 5, the deepest that people still read. `gbfl paper` chooses the depth by
    cross-validation, which takes ten times as long.
    """
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
