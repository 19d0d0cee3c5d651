"""`python -m tests.bench.heads FOLDER [SEEDS]`: the heads beside Augmentation with the same made-up rows, on test rows.

FOLDER has the paper's six sets as .csv.gz. At most 2,000 rows each, an MLP and boosting as black boxes, fresh seeds. The further
tables were named before any result was seen: iris, wine, digits, diabetes progression above its median, and the generators hastie,
moons, circles, gaussian quantiles, friedman1 above its median, and two blobs of 10 features.
"""

import sys
import time
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from gbfl_compile.ir.nodes import Interval, Leaf, Split, Tree
from gbfl_compile.learning.baselines import AugmentedTree
from gbfl_compile.learning.classifier import GBFLClassifier
from gbfl_compile.learning.consistency import consistency_on
from gbfl_compile.learning.explain.explanations import concatenate, triplets_of
from gbfl_compile.paper.datasets import Dataset, load_dataset, network_of, split_of

ROWS = 2000
SETS = ("wdbc", "diabetes", "waveform", "magic", "skyserver", "credit_card")
HEADER = "set                black box seed  model           C_TB all  fidelity  accuracy  conditions  fewest rows  seconds\n"


def further_tables():
    """Ten tables that nothing was tuned on, by name."""
    progression, friedman = datasets.load_diabetes(return_X_y=True), datasets.make_friedman1(ROWS, random_state=0)
    return {
        "iris": datasets.load_iris(return_X_y=True),
        "wine": datasets.load_wine(return_X_y=True),
        "digits": datasets.load_digits(return_X_y=True),
        "progression": (progression[0], (progression[1] > np.median(progression[1])).astype(int)),
        "hastie": datasets.make_hastie_10_2(ROWS, random_state=0),
        "moons": datasets.make_moons(ROWS, noise=0.3, random_state=0),
        "circles": datasets.make_circles(ROWS, noise=0.1, factor=0.5, random_state=0),
        "quantiles": datasets.make_gaussian_quantiles(n_samples=ROWS, n_features=6, n_classes=3, random_state=0),
        "friedman1": (friedman[0], (friedman[1] > np.median(friedman[1])).astype(int)),
        "blobs": datasets.make_blobs(ROWS, 10, centers=2, cluster_std=4.0, random_state=0),
    }


def table_of(name, folder):
    """One of the paper's sets, or a further table with the settings of a small network."""
    if name in SETS:
        return load_dataset(name, folder)
    x, y = further_tables()[name]
    return Dataset(name, x, y, tuple(f"f{j}" for j in range(x.shape[1])), 10, 4, (40, 20), "scikit-learn")


def conditions(model):
    """The conditions a reader sees: each bound, as often as it is asked."""
    if isinstance(model, AugmentedTree):
        return int(model.tree_.tree_.node_count - model.tree_.get_n_leaves())
    head = model.head_
    questions = (
        [head.clauses[node.clause] for node in head.decision.nodes if isinstance(node, Split)]
        if isinstance(head.decision, Tree)
        else head.clauses
    )
    atoms = [atom for clause in questions for atom in clause.atoms]
    return sum(max(1, (a.lo is not None) + (a.hi is not None)) if isinstance(a, Interval) else 1 for a in atoms)


def fewest_rows(model, x):
    """The rows of the table in the leaf that has fewest; of a tree alone."""
    if isinstance(model, AugmentedTree) or not isinstance(model.head_.decision, Tree):
        return None
    leaves = sum(isinstance(node, Leaf) for node in model.head_.decision.nodes)
    return int(np.bincount(model._answers(x).leaves, minlength=leaves).min())


def measure(name, kind, seed, folder):
    """One line per model, all from the same explanations."""
    table = table_of(name, folder)
    split = split_of(table, ROWS, seed)
    box = (
        network_of(table, split, seed)
        if kind == "mlp"
        else HistGradientBoostingClassifier(random_state=seed).fit(split.x, split.y)
    )
    common = {"explainer": "greedy", "random_state": seed}
    tree = GBFLClassifier(box, head="tree", **common).fit(split.x, split.y)
    e, extra = tree.explanations_, tree.extra_explanations_
    triplets = triplets_of(tree.explain_points(split.x_test), tree.classes_)
    more = e if extra is None else concatenate([e, extra])
    fits = {
        "augmentation": lambda: AugmentedTree(box, max_depth=5, random_state=seed).fit(more.x, explanations=more),
        "tree": lambda: tree,
        "rules-16": lambda: GBFLClassifier(box, max_clauses=16, **common).fit(split.x, split.y, explanations=e),
        "rules-16 fine": lambda: GBFLClassifier(box, max_clauses=16, points=None, **common).fit(
            split.x, split.y, explanations=e
        ),
        "rules-32": lambda: GBFLClassifier(box, **common).fit(split.x, split.y, explanations=e),
        "rule list": lambda: GBFLClassifier(box, head="rule_list", **common).fit(split.x, split.y, explanations=e),
    }
    for model, fit in fits.items():
        start = time.perf_counter()
        fitted = fit()
        seconds = time.perf_counter() - start
        agreement = consistency_on(triplets, fitted.predict)
        accuracy = 100.0 * float((fitted.predict(split.x_test) == split.y_test).mean())
        figures = (agreement.c_tb_all, agreement.fidelity, accuracy, conditions(fitted))
        yield model, figures, fewest_rows(fitted, split.x), seconds


def main(folder, seeds, names):
    """A line per set, black box, seed and model; then the means per black box and model."""
    sys.stdout.write(HEADER)
    means = {}
    with threadpool_limits(1):
        for name in names or (*SETS, *further_tables()):
            for kind in ("mlp", "gbm"):
                for seed in seeds:
                    for model, figures, fewest, seconds in measure(name, kind, seed, folder):
                        means.setdefault((kind, model), []).append(figures)
                        line = f"{figures[0]:8.1f}  {figures[1]:8.1f}  {figures[2]:8.1f}  {figures[3]:10d}"
                        rows = "" if fewest is None else fewest
                        sys.stdout.write(
                            f"{name:18} {kind:9} {seed:4}  {model:14}  {line}  {rows:>11}  {seconds:7.1f}\n"
                        )
                        sys.stdout.flush()
    for (kind, model), figures in means.items():
        c_tb, fidelity, accuracy, size = np.mean(figures, axis=0)
        line = f"{c_tb:8.1f}  {fidelity:8.1f}  {accuracy:8.1f}  {size:10.1f}"
        sys.stdout.write(f"mean               {kind:9}       {model:14}  {line}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(seed) for seed in sys.argv[2].split(",")] if len(sys.argv) > 2 else [11], sys.argv[3:])
