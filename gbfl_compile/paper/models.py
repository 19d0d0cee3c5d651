"""One unit of the experiment: on one set and one seed, every model fitted to the same explanations and measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

from gbfl_compile.consistency import consistency_on
from gbfl_compile.datasets import Dataset
from gbfl_compile.learn.baselines import AugmentedTree, DistilledTree, StandardTree, dealt
from gbfl_compile.learn.black_box import as_black_box
from gbfl_compile.learn.classifier import GBFLClassifier
from gbfl_compile.learn.explanations import Explanations, concatenate, domain_of, some_rows, triplets_of
from gbfl_compile.learn.greedy import Greedy, explain_greedily
from gbfl_compile.lowering import lower
from gbfl_compile.paper.listing import listing
from gbfl_compile.paper.mining import mining
from gbfl_compile.paper.protocol import KAPPA, Split, network_of, split_of
from gbfl_compile.passes.drop_unused_clauses import drop_unused_clauses

MODELS = (
    "standard",
    "distillation",
    "augmentation",
    "gbfl-literal",
    "gbfl-faithful",
    "ours-32",
    "ours-100",
    "ours",
    "black-box",
)
BESIDE = ("augmentation-more", "ours-32-plain")
"""Two more where ours makes up rows to be explained: Augmentation given the same rows, and ours without them."""
BUDGETS: Mapping[str, int] = {"ours-32": 32, "ours-100": 100, "ours without a budget": 200}
"""What `ours` chooses from. Growth has to end somewhere: without a budget it ends at 200 clauses."""
MINED = ("gbfl-literal", "gbfl-faithful")
"""Whose clauses are mined from single rows."""
LISTED = ("gbfl-faithful", "ours-32")
"""Whose top clauses are printed."""

Fitting: TypeAlias = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class _Scene:
    """What all models of a unit share."""

    dataset: Dataset
    split: Split
    network: Any
    training: Explanations
    test: Explanations
    seed: int


def run_unit(dataset: Dataset, seed: int, rows: int) -> dict[str, Any]:
    """Everything measured on one set with one seed, as JSON."""
    # one thread: a unit has a core to itself, and sums come out the same however many units run beside it
    with threadpool_limits(1):
        begun = time.perf_counter()
        scene = _explained(dataset, seed, rows)
        explained = time.perf_counter() - begun
        found = _fitted_and_measured(scene)
    return {
        "set": dataset.name,
        "seed": seed,
        **found,
        "explanations": {"train": scene.training.counts(), "test": scene.test.counts()},
        "seconds": {"explain": explained, "whole": time.perf_counter() - begun},
    }


def _explained(dataset: Dataset, seed: int, rows: int) -> _Scene:
    split = split_of(dataset, rows, seed)
    network = network_of(dataset, split, seed)
    black_box, domain = as_black_box(network, split.x), domain_of(split.x)
    training, test = (
        explain_greedily(black_box, points, domain, Greedy(kappa=KAPPA)) for points in (split.x, split.x_test)
    )
    return _Scene(dataset, split, network, training, test, seed)


def _fitted_and_measured(scene: _Scene) -> dict[str, Any]:
    models: dict[str, dict[str, Any]] = {}
    listings: dict[str, list[str]] = {}
    mined: dict[str, dict[str, Any]] = {}
    extra = None
    for name, fit in _fittings(scene).items():
        fitted, models[name] = _timed(scene, fit)
        if name in LISTED:
            listings[name] = listing(lower(fitted), scene.training, scene.dataset.features)
        if name in MINED:
            mined[name] = mining(fitted.mined_, scene.training)
        if name == "ours-32":
            extra = fitted.extra_explanations_
    begun = time.perf_counter()
    chosen = _chosen(scene)
    models["ours"] = dict(models[chosen]) if chosen in models else _timed(scene, _fitting(scene, BUDGETS[chosen]))[1]
    models["ours"]["seconds"] = time.perf_counter() - begun
    models["black-box"] = _measured(scene, scene.network)
    for name, fit in ({} if extra is None else _fittings_beside(scene, extra)).items():
        models[name] = _timed(scene, fit)[1]
    return {"models": models, "listings": listings, "mining": mined, "chosen": chosen}


def _timed(scene: _Scene, fit: Fitting) -> tuple[Any, dict[str, Any]]:
    begun = time.perf_counter()
    fitted = fit()
    seconds = time.perf_counter() - begun
    return fitted, {**_measured(scene, fitted), "seconds": seconds}


def _fitting(scene: _Scene, clauses: int) -> Fitting:
    return lambda: _ours(scene, clauses).fit(scene.split.x, scene.split.y, explanations=scene.training)


def _fittings_beside(scene: _Scene, extra: Explanations) -> dict[str, Fitting]:
    more = concatenate([scene.training, extra])
    plain = _ours(scene, BUDGETS["ours-32"]).set_params(extra_rows=0)
    return {
        "augmentation-more": lambda: AugmentedTree(scene.network, random_state=scene.seed).fit(
            more.x, explanations=more
        ),
        "ours-32-plain": lambda: plain.fit(scene.split.x, scene.split.y, explanations=scene.training),
    }


def _fittings(scene: _Scene) -> dict[str, Fitting]:
    x, y = scene.split.x, scene.split.y
    e, network, seed = scene.training, scene.network, scene.seed
    return {
        "standard": lambda: StandardTree(random_state=seed).fit(x, y),
        "distillation": lambda: DistilledTree(network, random_state=seed).fit(x, y, explanations=e),
        "augmentation": lambda: AugmentedTree(network, random_state=seed).fit(x, y, explanations=e),
        "gbfl-literal": lambda: _papers(scene, "literal").fit(x, y, explanations=e),
        "gbfl-faithful": lambda: _papers(scene, "faithful").fit(x, y, explanations=e),
        "ours-32": _fitting(scene, BUDGETS["ours-32"]),
        "ours-100": _fitting(scene, BUDGETS["ours-100"]),
    }


def _papers(scene: _Scene, mode: Any) -> GBFLClassifier:
    """The paper's own model: a tree on clauses alone, fitted to x and its true labels."""
    return GBFLClassifier(
        scene.network,
        head="tree",
        mode=mode,
        grid="kde",
        grid_points=scene.dataset.grid_points,
        skip=scene.dataset.skip,
        single_bounds=False,
        fit_on="x",
        labels="true",
        max_depth="cv",
    )


def _ours(scene: _Scene, clauses: int) -> GBFLClassifier:
    return GBFLClassifier(scene.network, head="rules", max_clauses=clauses, random_state=scene.seed)


def _chosen(scene: _Scene) -> str:
    """The budget most consistent on a held-out quarter of the training rows, the smallest of equals."""
    held_out = dealt(scene.training.label, folds=4, seed=scene.seed) == 0
    inside, outside = (some_rows(scene.training, np.flatnonzero(part)) for part in (~held_out, held_out))
    triplets = triplets_of(outside, scene.network.classes_)
    right = {}
    for name, clauses in BUDGETS.items():
        model = _ours(scene, clauses).fit(inside.x, explanations=inside)
        right[name] = consistency_on(triplets, model.predict).c_tb_all_right
    return max(right, key=lambda name: right[name])


def _measured(scene: _Scene, model: Any) -> dict[str, Any]:
    """Consistency, accuracy and size of one model, percentages on the test rows."""
    found = consistency_on(triplets_of(scene.test, scene.network.classes_), model.predict)
    right = int((model.predict(scene.split.x_test) == scene.split.y_test).sum())
    return {
        **found.as_dict(),
        "accuracy": 100.0 * right / len(scene.split.y_test),
        "clauses": rules_in(model),
    }


def rules_in(model: Any) -> int | None:
    """How many rules there are to read: leaves of a raw-feature tree, else the different clauses that are asked."""
    if isinstance(model, StandardTree | DistilledTree | AugmentedTree):
        return int(model.tree_.get_n_leaves())
    if isinstance(model, GBFLClassifier):
        return len(drop_unused_clauses(lower(model)).clauses)
    return None
