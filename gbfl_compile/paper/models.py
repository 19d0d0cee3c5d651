"""One set and one seed of the experiment: every model fitted to the same explanations and measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

from gbfl_compile.ir.batch import clause_column
from gbfl_compile.ir.kinds import intervals_in
from gbfl_compile.ir.nodes import Clause, Interval, Program
from gbfl_compile.ir.text import printable
from gbfl_compile.learning.baselines import AugmentedTree, DistilledTree, StandardTree
from gbfl_compile.learning.black_box import as_black_box
from gbfl_compile.learning.classifier import GBFLClassifier
from gbfl_compile.learning.clauses.mine import MinedClauses
from gbfl_compile.learning.consistency import consistency_on
from gbfl_compile.learning.explain import (
    Explanations,
    concatenate,
    domain_of,
    infer_kinds,
    some_rows,
    triplets_of,
)
from gbfl_compile.learning.explain.greedy import Greedy, explain_greedily
from gbfl_compile.learning.explain.nearest import Nearest, explain_by_nearest, with_examples
from gbfl_compile.learning.explain.spheres import Spheres, explain_by_spheres
from gbfl_compile.learning.reports import rule_table
from gbfl_compile.lowering import lower
from gbfl_compile.paper.datasets import KAPPA, Dataset, Split, network_of, split_of
from gbfl_compile.paper.study import (
    STUDIED,
    RoundedRules,
    fit_regression,
    foreign_figures,
    ranking_study,
    round_points,
)
from gbfl_compile.passes import drop_unused_clauses

TOP = 5


def listing(program: Program, training: Explanations, features: Sequence[str], top: int = TOP) -> list[str]:
    """The `top` clauses of a program, most important first.

    In a tree importance is the Gini gain of a clause's splits; in a rule set how far its points set the classes
    apart, times the spread of the clause itself over the training rows (one that always holds decides nothing).
    """
    used = drop_unused_clauses(program)
    if not used.clauses:
        return []
    importance = _importance(rule_table(used, training, None), len(training.x))
    ranked = np.argsort(-importance, kind="stable")[:top]
    return [clause_line(used.clauses[index], features) for index in ranked.tolist()]


def _importance(table: Any, rows: int) -> Any:
    if "weight" in table:
        return table["weight"].to_numpy()
    weights = table.filter(regex="^weight_").to_numpy()
    share = table["support"].to_numpy() / rows
    return (weights.max(axis=1) - weights.min(axis=1)) * np.sqrt(share * (1 - share))


def clause_line(clause: Clause, features: Sequence[str]) -> str:
    """One clause in the paper's form; unlike there, an open bound is written as one.

    >>> clause_line(Clause((Interval(0, 17.29, 36.04), Interval(1, None, 0.28))), ("radius", "concavity"))
    '36.04 > radius >= 17.29 & 0.28 > concavity'
    """
    return " & ".join(_atom(atom, printable(features[atom.feature])) for atom in intervals_in(clause)) or "always"


def _atom(atom: Interval, name: str) -> str:
    upper = "" if atom.hi is None else f"{atom.hi:.5g} {'>=' if atom.hi_closed else '>'} "
    lower = "" if atom.lo is None else f" {'>=' if atom.lo_closed else '>'} {atom.lo:.5g}"
    return f"{upper}{name}{lower}"


def mining(mined: MinedClauses, training: Explanations) -> dict[str, Any]:
    """Counts of clauses, their atoms and the training rows they hold on, and how their own rows fare.

    Of the rows that gave a clause: how often it is true at x, true at the PP, false at the PN. A row whose clause has
    no bound, or whose bounds cross, gave none.
    """
    at_x = at_pp = off_pn = with_pn = rows = holds_on = 0
    for clause, sources in zip(mined.clauses, mined.sources, strict=True):
        own = np.array(sources, dtype=np.int64)
        own_with_pn = own[training.has_pn[own]]
        on_x = clause_column(clause, training.x)
        rows += len(own)
        with_pn += len(own_with_pn)
        holds_on += int(on_x.sum())
        at_x += int(on_x[own].sum())
        at_pp += int(clause_column(clause, training.pp[own]).sum())
        off_pn += int((~clause_column(clause, training.pn[own_with_pn])).sum())
    return {
        "clauses": len(mined.clauses),
        "atoms": sum(len(clause.atoms) for clause in mined.clauses),
        "holds_on": holds_on,
        "rows": len(training.x),
        "rows_with_a_clause": rows,
        "true_at_x": at_x,
        "true_at_pp": at_pp,
        "false_at_pn": off_pn,
        "false_at_pn_of": with_pn,
        "off_grid": mined.off_grid,
    }


MODELS = (
    "standard",
    "distillation",
    "augmentation",
    "gbfl-literal",
    "gbfl-faithful",
    "tree",
    "ours-32",
    "ours-32-points",
    "ours-100",
    "black-box",
)
BESIDE = ("augmentation-more", "ours-32-plain")
"""Two more models where ours uses made-up rows: Augmentation with the same rows, and ours without them."""
BUDGETS: Mapping[str, int] = {"ours-32": 32, "ours-100": 100}
FOREIGN_ROWS = 300
"""Test rows that are explained by methods other than greedy."""
FOREIGN = ("standard", "distillation", "augmentation", "gbfl-faithful", "tree", "ours-32", "ours-32-points", "ours-100")
"""Models that are measured under foreign explainers, beside those of BESIDE and ours fitted to greedy alone."""
MINED = ("gbfl-literal", "gbfl-faithful")
"""Models whose clauses are mined from single rows."""
LISTED = ("gbfl-faithful", "ours-32")
"""Models whose top clauses are printed."""

Fitting: TypeAlias = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class _Scene:
    """What all models of one set and seed share."""

    dataset: Dataset
    split: Split
    network: Any
    training: Explanations
    """By the greedy method, for the paper's own models and baselines."""
    methods: dict[str, Explanations]
    """By each default method, for ours."""
    test: Explanations
    others: dict[str, Explanations]
    """Some test rows by other methods."""
    seed: int


def measure_models(dataset: Dataset, seed: int, rows: int) -> dict[str, Any]:
    """Everything measured on one set with one seed, as JSON."""
    # one thread: each run has a core to itself, and sums come out the same however many run beside it
    with threadpool_limits(1):
        begun = time.perf_counter()
        scene = _explain(dataset, seed, rows)
        explain_seconds = time.perf_counter() - begun
        results = _fit_and_measure(scene)
    return {
        "set": dataset.name,
        "seed": seed,
        **results,
        "explanations": {"train": scene.training.counts(), "test": scene.test.counts()},
        "seconds": {"explain": explain_seconds, "whole": time.perf_counter() - begun},
    }


def _explain(dataset: Dataset, seed: int, rows: int) -> _Scene:
    split = split_of(dataset, rows, seed)
    network = network_of(dataset, split, seed)
    black_box = as_black_box(network, split.x)
    domain = with_examples(domain_of(split.x, kinds=infer_kinds(split.x)), black_box, split.x)
    training, test = (
        explain_greedily(black_box, points, domain, Greedy(kappa=KAPPA)) for points in (split.x, split.x_test)
    )
    nearest, some = Nearest(kappa=KAPPA), split.x_test[:FOREIGN_ROWS]
    methods = {"greedy": training, "nearest": explain_by_nearest(black_box, split.x, domain, nearest)}
    others = {
        "nearest": explain_by_nearest(black_box, some, domain, nearest),
        "spheres": explain_by_spheres(black_box, some, domain, Spheres(kappa=KAPPA, seed=seed)),
    }
    return _Scene(dataset, split, network, training, methods, test, others, seed)


def _fit_and_measure(scene: _Scene) -> dict[str, Any]:
    models: dict[str, dict[str, Any]] = {}
    listings: dict[str, list[str]] = {}
    mining_counts: dict[str, dict[str, Any]] = {}
    fitted: dict[str, Any] = {}
    for name, fit in _fittings(scene, fitted).items():
        fitted[name], models[name] = _fit_and_time(scene, fit)
        if name in LISTED:
            listings[name] = listing(lower(fitted[name]), scene.training, scene.dataset.features)
        if name in MINED:
            mining_counts[name] = mining(fitted[name].mined_, scene.training)
    extra = fitted["ours-32"].extra_explanations_
    models["black-box"] = _measure(scene, scene.network)
    beside = {} if extra is None else _fittings_beside(scene, extra)
    beside["ours-32-greedy"] = lambda: _ours(scene, BUDGETS["ours-32"]).fit(
        scene.split.x, scene.split.y, explanations={"greedy": scene.training}
    )
    for name, fit in beside.items():
        fitted[name], models[name] = _fit_and_time(scene, fit)
    measured = {name: model for name, model in fitted.items() if name in FOREIGN or name in beside}
    methods = {"greedy": some_rows(scene.test, np.arange(min(FOREIGN_ROWS, len(scene.test.x)))), **scene.others}
    triplets = {method: triplets_of(e, scene.network.classes_) for method, e in methods.items()}
    return {
        "models": models,
        "listings": listings,
        "mining": mining_counts,
        "foreign": foreign_figures(measured, triplets),
        "ranking": ranking_study(scene.dataset, scene.split, scene.network, scene.seed)
        if scene.dataset.name in STUDIED
        else [],
        "regression": _regression(scene, fitted["gbfl-faithful"].mined_.clauses)
        if scene.dataset.name == "skyserver"
        else None,
    }


def _regression(scene: _Scene, clauses: tuple[Clause, ...]) -> dict[str, Any]:
    """The paper's L1 logistic regression on its clauses, its figures and its five heaviest clauses."""
    fitted, figures = _fit_and_time(scene, lambda: fit_regression(clauses, scene.split.x, scene.split.y))
    heaviest = np.argsort(-fitted.weights, kind="stable")[:TOP]
    lines = [clause_line(clauses[index], scene.dataset.features) for index in heaviest.tolist()]
    return {**figures, "clauses": int((fitted.weights > 0).sum()), "listing": lines}


def _fit_and_time(scene: _Scene, fit: Fitting) -> tuple[Any, dict[str, Any]]:
    begun = time.perf_counter()
    fitted = fit()
    seconds = time.perf_counter() - begun
    return fitted, {**_measure(scene, fitted), "seconds": seconds}


def _fitting(scene: _Scene, clauses: int) -> Fitting:
    return lambda: _ours(scene, clauses).fit(scene.split.x, scene.split.y, explanations=scene.methods)


def _fittings_beside(scene: _Scene, extra: Explanations) -> dict[str, Fitting]:
    more = concatenate([*scene.methods.values(), extra])
    plain = _ours(scene, BUDGETS["ours-32"]).set_params(extra_rows=0)
    return {
        "augmentation-more": lambda: AugmentedTree(scene.network, random_state=scene.seed).fit(
            more.x, explanations=more
        ),
        "ours-32-plain": lambda: plain.fit(scene.split.x, scene.split.y, explanations=scene.methods),
    }


def _fittings(scene: _Scene, fitted: Mapping[str, Any]) -> dict[str, Fitting]:
    """Each model by name; rounded points take the rule set that is among `fitted` by then."""
    x, y = scene.split.x, scene.split.y
    e, network, seed = scene.training, scene.network, scene.seed
    stack = concatenate(list(scene.methods.values()))
    return {
        "standard": lambda: StandardTree(random_state=seed).fit(x, y),
        "distillation": lambda: DistilledTree(network, random_state=seed).fit(x, y, explanations=e),
        "augmentation": lambda: AugmentedTree(network, random_state=seed).fit(x, y, explanations=e),
        "gbfl-literal": lambda: _papers(scene, "literal").fit(x, y, explanations=e),
        "gbfl-faithful": lambda: _papers(scene, "faithful").fit(x, y, explanations=e),
        "tree": lambda: GBFLClassifier(network, head="tree", random_state=seed).fit(x, y, explanations=scene.methods),
        "ours-32": _fitting(scene, BUDGETS["ours-32"]),
        "ours-32-points": lambda: round_points(lower(fitted["ours-32"]), triplets_of(stack, network.classes_)),
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


def _measure(scene: _Scene, model: Any) -> dict[str, Any]:
    """Consistency, accuracy and size of one model, percentages on the test rows."""
    agreement = consistency_on(triplets_of(scene.test, scene.network.classes_), model.predict)
    right = int((model.predict(scene.split.x_test) == scene.split.y_test).sum())
    return {
        **agreement.as_dict(),
        "accuracy": 100.0 * right / len(scene.split.y_test),
        "clauses": rules_in(model),
    }


def rules_in(model: Any) -> int | None:
    """The number of rules to read: leaves of a raw-feature tree, else the distinct clauses in use."""
    if isinstance(model, StandardTree | DistilledTree | AugmentedTree):
        return int(model.tree_.get_n_leaves())
    if isinstance(model, RoundedRules):
        return len(drop_unused_clauses(model.program).clauses)
    if isinstance(model, GBFLClassifier):
        return len(drop_unused_clauses(lower(model)).clauses)
    return None
