"""Black boxes that answer at once, so that what is timed is our own work: `gbfl mine --black-box tests.bench.quick_boxes:..`"""

import numpy as np

FEATURES = 20

_draw = np.random.default_rng(0)
SLOPES = _draw.normal(size=FEATURES)
LAYERS = [_draw.normal(size=shape) / np.sqrt(shape[0]) for shape in ((FEATURES, 100), (100, 100), (100, 1))]


def quick(rows):
    """A bent line: P(class 1)."""
    return 1 / (1 + np.exp(-np.tanh(rows) @ SLOPES))


def network(rows):
    """A network of two layers of a hundred, its weights drawn: P(class 1)."""
    values = rows
    for weights in LAYERS[:-1]:
        values = np.maximum(values @ weights, 0)
    return 1 / (1 + np.exp(-4 * (values @ LAYERS[-1])[:, 0]))


def table(rows):
    """Rows to mine, drawn, with the class that `quick` finds likelier."""
    x = np.random.default_rng(1).normal(size=(rows, FEATURES))
    return x, (quick(x) > 0.5).astype(np.int64)
