"""Group `python`: the emitted module against the definition, its batch form and scikit-learn, on breast cancer data."""

import numpy as np
from sklearn.datasets import load_breast_cancer

from gbfl_compile.backends import emit
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.learning.classifier import GBFLClassifier
from gbfl_compile.lowering import lower
from gbfl_compile.passes import optimise
from tests.bench.timing import Timing, race


def run() -> list[Timing]:
    """A fitted tree, one row at a time and in a batch of 100,000."""
    data = load_breast_cancer(as_frame=True)
    x, y = data.data, np.asarray(data.target_names, dtype=str)[data.target]
    model = GBFLClassifier(head="tree", random_state=0).fit(x, y)
    program = optimise(lower(model), np.asarray(x))
    module: dict = {}
    exec(emit(program, "python").files["model.py"].decode(), module)
    few = np.asarray(x)[:200].tolist()
    many = np.tile(np.asarray(x), (240, 1))[:100_000]
    one_by_one = {
        "emitted module": (lambda: [module["predict"](row) for row in few], len(few)),
        "evaluate": (lambda: [evaluate(program, row) for row in few], len(few)),
        "scikit-learn": (lambda: [model.predict_proba(x.iloc[i : i + 1]) for i in range(20)], 20),
    }
    batch = {
        "evaluate_many": (lambda: evaluate_many(program, many), len(many)),
        "emitted module": (lambda: module["predict_many"](few), len(few)),
    }
    return race("python", "one row per call", one_by_one) + race("python", "a batch", batch)
