"""The models that benchmarks run: a tree on raw features, trees over clauses, rule sets of three sizes."""

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split
from gbfl_compile.lowering import raw_tree

FEATURES = 20
NAMES = tuple(f"f{i}" for i in range(FEATURES))
TRAINING_ROWS = 50_000


def data(rows):
    """Normal rows of 20 features and labels that a tree of depth 5 can half learn."""
    values = np.random.default_rng(0).normal(size=(rows, FEATURES))
    return values, ((values[:, :6] ** 2).sum(axis=1) + values[:, 7] * values[:, 8] > 6).astype(np.int64)


def fitted_tree(rows, labels):
    """A scikit-learn tree of depth 5, and the same tree as a program."""
    model = DecisionTreeClassifier(max_depth=5, random_state=0).fit(rows[:TRAINING_ROWS], labels[:TRAINING_ROWS])
    return model, Program(NAMES[: rows.shape[1]], (0, 1), *raw_tree(model, 2))


def clauses(count, atoms, seed, grid=30):
    """Clauses of half-open intervals between quantiles of a normal feature, as a miner's grid makes them."""
    rng = np.random.default_rng(seed)
    points = np.quantile(rng.normal(size=10_000), np.linspace(0.02, 0.98, grid)).tolist()

    def interval(feature):
        lo, hi = sorted(rng.choice(grid, 2, replace=False))
        return Interval(int(feature), points[lo], points[hi])

    return tuple(
        Clause(tuple(interval(f) for f in sorted(rng.choice(FEATURES, atoms, replace=False)))) for _ in range(count)
    )


def clause_tree(atoms):
    """A full tree of depth 5 over 31 clauses."""

    def grow(first, depth):
        if depth == 0:
            return leaf(0.75, 0.25) if first % 2 else leaf(0.25, 0.75)
        return split(first, grow(2 * first + 1, depth - 1), grow(2 * first + 2, depth - 1))

    return Program(NAMES, (0, 1), clauses(31, atoms, 1), grow(0, 5))


def rule_set(count):
    """A weighted rule set of `count` clauses of 3 intervals."""
    points = np.random.default_rng(2).integers(-500, 500, count).tolist()
    return Program(NAMES, (0, 1), clauses(count, 3, 3), Scorecard((0, 7), tuple((0, p) for p in points), 8))
