"""What the rules stand beside: the paper's three baseline trees, on the same rows and the same explanations.

Each is a CART tree of depth 5, the deepest that is still read. `gbfl paper` chooses the depth by cross-validation, and
takes ten times as long for it.
"""

from __future__ import annotations

from typing import Any

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gbfl_compile.consistency import consistency_on
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.learn.baselines import MAX_DEPTH, AugmentedTree, DistilledTree, StandardTree
from gbfl_compile.learn.explanations import Explanations
from gbfl_compile.mining.rows import Split
from gbfl_compile.triplets import Triplets


def baseline_figures(
    black_box: Any, split: Split, explanations: Explanations, triplets: Triplets, seed: int, jobs: int
) -> dict[str, dict[str, Any]]:
    """Name -> accuracy and consistency on the held-out rows, as the rules' own figures are told; by `jobs` threads."""
    settings: dict[str, Any] = {"max_depth": MAX_DEPTH, "random_state": seed}
    models: dict[str, Any] = {
        f"tree on the data, depth {MAX_DEPTH}": StandardTree(**settings),
        f"tree on the black box's answers, depth {MAX_DEPTH}": DistilledTree(black_box, **settings),
        f"tree on data, PPs and PNs, depth {MAX_DEPTH}": AugmentedTree(black_box, **settings),
    }
    columns = list(triplets.features)

    def figures(model: Any) -> dict[str, Any]:
        model.fit(pd.DataFrame(split.x, columns=columns), split.y, explanations=explanations)

        def predict(rows: Matrix) -> NDArray[Any]:
            return np.asarray(model.predict(pd.DataFrame(rows, columns=columns)))

        accuracy = float((predict(split.x_test) == split.y_test).mean())
        return {"accuracy": accuracy, **consistency_on(triplets, predict).as_dict()}

    # threads, whatever backend explains rows: a tree grows without holding up the others; the last takes longest
    longest_first = list(reversed(models.items()))
    found = joblib.Parallel(n_jobs=jobs, require="sharedmem")(
        joblib.delayed(figures)(model) for _, model in longest_first
    )
    by_name = {name: told for (name, _), told in zip(longest_first, found, strict=True)}
    return {name: by_name[name] for name in models}
