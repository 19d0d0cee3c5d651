"""One fit in a separate process, so that its peak memory is its own: prints seconds, megabytes and queries as JSON."""

import json
import resource
import sys
import time

from sklearn.datasets import make_classification
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gbfl_compile.learning.classifier import GBFLClassifier


def main(head: str, rows: int) -> None:
    """Explain, mine and fit `rows` rows of 20 features, black box: the appendix's network for Magic."""
    x, y = make_classification(rows, 20, n_informative=10, n_redundant=4, random_state=0)
    few = slice(0, 5000)
    network = MLPClassifier((40, 25, 10), max_iter=30, early_stopping=True, random_state=0)
    black_box = make_pipeline(StandardScaler(), network).fit(x[few], y[few])
    began = time.perf_counter()
    model = GBFLClassifier(black_box, head=head, grid_points=30, skip=3).fit(x, y)
    form = {
        "seconds": time.perf_counter() - began,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "queries_a_row": model.explanations_.queries / rows,
        "c_tb": model.consistency_.c_tb,
    }
    sys.stdout.write(json.dumps(form))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
