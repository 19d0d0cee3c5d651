"""`python -m tests.bench.heads FOLDER`: the heads beside Augmentation with the same explanations, on test rows.

    python -m tests.bench.heads FOLDER [--seeds 31,32,33] [--rows 1000] [--models tree|rules|all] [--keep FILE] [TABLE ...]

FOLDER has the paper's six sets as .csv.gz. Black boxes: an MLP and boosting. All models have the default explanations of
the same rows and the same made-up rows; C_TB is over all test rows, by greedy, by nearest, and for rule sets by growing
spheres, which nothing is fitted to. The further tables were named before any result was seen: iris, wine, digits, diabetes
progression above its median, and the generators hastie, moons, circles, gaussian quantiles, friedman1 above its median,
and two blobs of 10 features. p is of a paired t test, two-sided: on the same splits, over seeds and black boxes. --keep
continues from what an earlier run measured.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from scipy.stats import ttest_rel
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from gbfl_compile.ir.nodes import Interval, Leaf, Split, Tree
from gbfl_compile.learning.baselines import AugmentedTree
from gbfl_compile.learning.classifier import GBFLClassifier
from gbfl_compile.learning.consistency import consistency_on
from gbfl_compile.learning.explain import concatenate, some_rows, triplets_of
from gbfl_compile.paper.datasets import Dataset, load_dataset, network_of, split_of

SETS = ("wdbc", "diabetes", "waveform", "magic", "skyserver", "credit_card")
FURTHER = ("iris", "wine", "digits", "progression", "hastie", "moons", "circles", "quantiles", "friedman1", "blobs")
KINDS = ("mlp", "gbm")
AUGMENTED = "augmentation"
MODELS = {
    "tree": {AUGMENTED: {}, "tree": {"head": "tree"}},
    "rules": {
        "rules-16": {"max_clauses": 16},
        "rules-16 fine": {"max_clauses": 16, "points": None},
        "rules-32": {},
        "rules-32 greedy": {"explainer": "greedy"},
    },
    "all": {},
}
MODELS["all"] = {**MODELS["tree"], **MODELS["rules"], "rule list": {"head": "rule_list"}}
FIGURES = ("greedy", "nearest", "spheres", "fidelity", "accuracy", "conditions", "fewest", "seconds")


def further_table(name, rows):
    """One of the tables that nothing was tuned on."""
    match name:
        case "iris" | "wine" | "digits":
            return getattr(datasets, f"load_{name}")(return_X_y=True)
        case "progression":
            x, y = datasets.load_diabetes(return_X_y=True)
            return x, (y > np.median(y)).astype(int)
        case "hastie":
            return datasets.make_hastie_10_2(rows, random_state=0)
        case "moons":
            return datasets.make_moons(rows, noise=0.3, random_state=0)
        case "circles":
            return datasets.make_circles(rows, noise=0.1, factor=0.5, random_state=0)
        case "quantiles":
            return datasets.make_gaussian_quantiles(n_samples=rows, n_features=6, n_classes=3, random_state=0)
        case "friedman1":
            x, y = datasets.make_friedman1(rows, random_state=0)
            return x, (y > np.median(y)).astype(int)
        case _:
            return datasets.make_blobs(rows, 10, centers=2, cluster_std=4.0, random_state=0)


def table_of(name, folder, rows=2000):
    """One of the paper's sets, or a further table with the settings of a small network."""
    if name in SETS:
        return load_dataset(name, folder)
    x, y = further_table(name, rows)
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
    """The rows of the table in the leaf that has fewest; of our trees alone."""
    if isinstance(model, AugmentedTree) or not isinstance(model.head_.decision, Tree):
        return None
    leaves = sum(isinstance(node, Leaf) for node in model.head_.decision.nodes)
    return int(np.bincount(model.answers(x).leaves, minlength=leaves).min())


def measure(name, kind, seed, options):
    """Model -> figures, all from the same explanations."""
    table = table_of(name, options.folder, options.rows)
    split = split_of(table, options.rows, seed)
    boosting = HistGradientBoostingClassifier(random_state=seed)
    box = network_of(table, split, seed) if kind == "mlp" else boosting.fit(split.x, split.y)
    first = GBFLClassifier(box, head="tree", random_state=seed).fit(split.x, split.y)
    extra = first.extra_explanations_
    stack = concatenate([*first.methods_.values(), *([] if extra is None else [extra])])
    methods = ("greedy", "nearest", *(() if options.models == "tree" else ("spheres",)))
    triplets = {each: triplets_of(first.explain_points(split.x_test, each), first.classes_) for each in methods}
    figures = {}
    for model, how in MODELS[options.models].items():
        start = time.process_time()
        if model == AUGMENTED:
            fitted = AugmentedTree(box, max_depth=5, random_state=seed).fit(stack.x, explanations=stack)
        elif model == "tree":
            fitted = first
        else:
            fitted = fit_again(first, box, split, {"random_state": seed} | how)
        seconds = time.process_time() - start
        agreement = {each: consistency_on(triplets[each], fitted.predict) for each in methods}
        figures[model] = {
            **{each: agreement[each].c_tb_all if each in agreement else None for each in FIGURES[:3]},
            "fidelity": agreement["greedy"].fidelity,
            "accuracy": 100.0 * float((fitted.predict(split.x_test) == split.y_test).mean()),
            "conditions": conditions(fitted),
            "fewest": fewest_rows(fitted, split.x),
            "seconds": seconds,
        }
    return figures


def fit_again(first, box, split, how):
    """Another model from the explanations of the first, those of made-up rows among them."""
    names = ("greedy",) if how.get("explainer") == "greedy" else tuple(first.methods_)
    model, extra = GBFLClassifier(box, **how), first.extra_explanations_
    if extra is not None and how.get("head") != "rule_list":
        count = len(extra.x) // len(first.methods_)
        known = concatenate(
            [some_rows(extra, np.arange(place * count, (place + 1) * count)) for place in range(len(names))]
        )
        model._extra_explanations = lambda x, methods: known  # asked once, for all models
    return model.fit(split.x, split.y, explanations={each: first.methods_[each] for each in names})


def main():
    """A line per set, black box, seed and model; the means; one line per requirement."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("tables", nargs="*", default=[*SETS, *FURTHER])
    parser.add_argument("--seeds", default="31,32,33")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--models", choices=list(MODELS), default="all")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_intermixed_args()
    runs = {}
    if options.keep is not None and options.keep.exists():
        runs = {tuple(key): figures for key, figures in map(json.loads, options.keep.read_text().splitlines())}
    wanted = [(t, k, int(s)) for s in options.seeds.split(",") for t in options.tables for k in KINDS]
    say("set           black box seed  model           " + "  ".join(f"{figure:>10}" for figure in FIGURES))
    with threadpool_limits(1):
        for key in wanted:
            if key not in runs:
                runs[key] = measure(*key, options)
                if options.keep is not None:
                    with options.keep.open("a") as file:
                        file.write(json.dumps([key, runs[key]]) + "\n")
            for model, figures in runs[key].items():
                say(f"{key[0]:13} {key[1]:9} {key[2]:4}  {model:15} " + "  ".join(map(cell, figures.values())))
    for tables, title in ((SETS, "the six sets"), (FURTHER, "the further tables")):
        some = {key: runs[key] for key in wanted if key[0] in tables}
        for line in (*means(some, title), *requirements(some)) if some else ():
            say(line)


def say(line):
    print(line, flush=True)  # noqa: T201 - a command


def cell(value):
    return " " * 10 if value is None else f"{value:10.1f}"


def column(runs, model, figure, kind=None):
    """One figure of one model, run by run."""
    values = [each[model][figure] for key, each in runs.items() if kind in (None, key[1]) and model in each]
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def means(runs, title):
    say(f"\nmeans over {title}, {len(runs)} runs")
    for kind in KINDS:
        for model in next(iter(runs.values())):
            values = [column(runs, model, figure, kind) for figure in FIGURES]
            cells = [cell(None if np.isnan(each).any() else each.mean()) for each in values]
            yield f"mean          {kind:14}  {model:15} " + "  ".join(cells)


def p_of(ours, theirs):
    return float(ttest_rel(ours, theirs).pvalue) if len(ours) > 1 and (ours != theirs).any() else 1.0


def requirements(runs):
    """What was promised beside what was measured."""
    models = next(iter(runs.values()))
    if "tree" in models:
        yield from against_augmentation(runs)
    if "rules-16 fine" in models:
        for model, most in (("rules-16", 46), ("rules-32", 92)):
            yield f"{model}: at most {column(runs, model, 'conditions').max():.0f} conditions (at most {most})"
        for kind in KINDS:
            small, fine = (column(runs, model, "greedy", kind) for model in ("rules-16", "rules-16 fine"))
            yield f"rules-16, {kind}: points within 10 {(small - fine).mean():+.1f} C_TB beside fine points (-0.5 or more)"
            mixed, greedy = (column(runs, model, "greedy", kind) for model in ("rules-32", "rules-32 greedy"))
            foreign = [column(runs, model, "spheres", kind).mean() for model in ("rules-32", "rules-32 greedy")]
            yield (
                f"rules-32, {kind}: {foreign[0]:.1f} by growing spheres (at least 58; fitted to greedy alone "
                f"{foreign[1]:.1f}), {(mixed - greedy).mean():+.1f} by greedy (-2 or more)"
            )


def against_augmentation(runs):
    """The tree beside Augmentation: C_TB, p per table, accuracy, size, leaves."""
    for kind, least in (("mlp", 8), ("gbm", 6)):
        ours, theirs = (column(runs, model, "greedy", kind) for model in ("tree", AUGMENTED))
        accuracy = [column(runs, model, "accuracy", kind).mean() for model in ("tree", AUGMENTED)]
        yield (
            f"tree, {kind}: {(ours - theirs).mean():+.1f} C_TB beside Augmentation (at least +{least}), p {p_of(ours, theirs):.1g}; "
            f"accuracy {accuracy[0]:.1f} beside {accuracy[1]:.1f}"
        )
    better = []
    for table in dict.fromkeys(key[0] for key in runs):
        parts = []
        for kind in (None, *KINDS):
            some = {key: each for key, each in runs.items() if key[0] == table}
            ours, theirs = (column(some, model, "greedy", kind) for model in ("tree", AUGMENTED))
            p, gain = p_of(ours, theirs), (ours - theirs).mean()
            parts.append(f"{kind or 'both'} {gain:+.1f} (p {p:.2g})")
            if kind is None:
                better.append(p < 0.05 and gain > 0)
        yield f"tree, {table}: " + ", ".join(parts)
    size, fewest = column(runs, "tree", "conditions").max(), column(runs, "tree", "fewest").min()
    yield f"tree: better with p < .05 on {sum(better)} of {len(better)} tables"
    yield f"tree: at most {size:.0f} conditions (at most 30), at least {fewest:.0f} rows of the table in every leaf"


if __name__ == "__main__":
    main()
