"""What we measure beside the paper's table: other explainers, why its ranking differs, its logistic regression."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from gbfl_compile.ir.batch import clause_column, evaluate_many
from gbfl_compile.ir.nodes import Clause, Program, Scorecard
from gbfl_compile.learning.baselines import AugmentedTree, DistilledTree, StandardTree
from gbfl_compile.learning.black_box import Matrix, as_black_box
from gbfl_compile.learning.classifier import GBFLClassifier
from gbfl_compile.learning.consistency import Triplets, consistency_on
from gbfl_compile.learning.explain import domain_of, triplets_of
from gbfl_compile.learning.explain.greedy import Greedy, explain_greedily
from gbfl_compile.learning.explain.macem import Macem, explain_by_macem
from gbfl_compile.paper.datasets import Dataset, Split

STUDIED = ("wdbc",)
"""The sets on which the paper's ranking is looked for: MACEM takes minutes on the others."""
SETTINGS = (("greedy", "median", 0.5), ("greedy", "minimum", 0.1), ("macem", "median", 0.5), ("macem", "minimum", 0.1))
"""Explainer, base and kappa."""
MOST = 10
SHARES = tuple(share / 20 for share in range(8, 21))


@dataclass(frozen=True, slots=True)
class RoundedRules:
    """A rule set with other points, as a model."""

    program: Program

    def predict(self, rows: Matrix) -> NDArray[Any]:
        """The class of each row."""
        return np.asarray(evaluate_many(self.program, np.asarray(rows, dtype=np.float64)).labels)


def round_points(program: Program, triplets: Triplets, most: int = MOST) -> RoundedRules:
    """The rule set with whole points within +-most, by the scale most consistent on the training triplets."""
    card = program.decision
    assert isinstance(card, Scorecard)  # noqa: S101 - rule sets alone are rounded
    points, bias = np.array(card.points, dtype=np.float64), np.array(card.bias, dtype=np.float64)
    spread = points - points[:, :1]  # only differences between classes decide
    bias = bias - bias[0]
    largest = max(1.0, float(np.abs(spread).max(initial=0.0)))
    best, right = RoundedRules(program), -1
    for share in SHARES:
        factor = most / share / largest
        rounded = np.clip(np.rint(spread * factor), -most, most).astype(int)
        start = tuple(np.rint(bias * factor).astype(int).tolist())
        trial = RoundedRules(
            replace(program, decision=Scorecard(start, tuple(tuple(row) for row in rounded.tolist())), metadata={})
        )
        now = consistency_on(triplets, trial.predict).c_tb_all_right
        if now > right:
            best, right = trial, now
    return best


@dataclass(frozen=True, slots=True)
class ClauseRegression:
    """L1 logistic regression on the truth of mined clauses, the model behind the paper's listing for Sky."""

    clauses: tuple[Clause, ...]
    regression: Any

    def predict(self, rows: Matrix) -> NDArray[Any]:
        """The class of each row."""
        return np.asarray(self.regression.predict(_columns(self.clauses, np.asarray(rows, dtype=np.float64))))

    @property
    def weights(self) -> Matrix:
        """The largest weight of each clause over the classes."""
        return np.asarray(np.max([np.abs(each.coef_[0]) for each in self.regression.estimators_], axis=0))


def _columns(clauses: tuple[Clause, ...], rows: Matrix) -> Matrix:
    return np.column_stack([clause_column(clause, rows) for clause in clauses]).astype(np.float64)


def fit_regression(clauses: tuple[Clause, ...], x: Matrix, y: NDArray[Any]) -> ClauseRegression:
    """Fitted to x and its true labels, as the paper fits."""
    one = LogisticRegression(C=1.0, l1_ratio=1.0, solver="liblinear", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the listing needs the largest weights, not the last digit
        return ClauseRegression(clauses, OneVsRestClassifier(one).fit(_columns(clauses, x), y))


def foreign_figures(models: Mapping[str, Any], methods: Mapping[str, Triplets]) -> dict[str, dict[str, float | None]]:
    """Model -> method -> C_TB over all rows."""
    return {
        name: {method: consistency_on(triplets, model.predict).c_tb_all for method, triplets in methods.items()}
        for name, model in models.items()
    }


def ranking_study(dataset: Dataset, split: Split, network: Any, seed: int) -> list[dict[str, Any]]:
    """The paper's four models under other explainers, bases and margins, Augmentation also with other labels of PNs."""
    box = as_black_box(network, split.x)
    lines = []
    for explainer, base, kappa in SETTINGS:
        domain = domain_of(split.x, base=split.x.min(axis=0) if base == "minimum" else None)

        explain: Any = (
            partial(explain_greedily, settings=Greedy(kappa=kappa))
            if explainer == "greedy"
            else partial(explain_by_macem, settings=Macem(kappa=kappa, seed=seed))
        )
        training, test = (explain(box, rows, domain) for rows in (split.x, split.x_test))
        triplets = triplets_of(test, network.classes_)
        mislabelled = replace(training, pn_label=training.label)
        x, y = split.x, split.y
        mined = GBFLClassifier(
            network,
            head="tree",
            mode="faithful",
            grid_points=dataset.grid_points,
            skip=dataset.skip,
            single_bounds=False,
            fit_on="x",
            labels="true",
            max_depth="cv",
            kinds=(),
            base=domain.base,
        )
        relabelled = AugmentedTree(network, random_state=seed).fit(x, y, explanations=mislabelled)
        models: dict[str, Any] = {
            "standard": StandardTree(random_state=seed).fit(x, y),
            "distillation": DistilledTree(network, random_state=seed).fit(x, y, explanations=training),
            "augmentation": AugmentedTree(network, random_state=seed).fit(x, y, explanations=training),
            "augmentation, original labels": relabelled,
            "gbfl-faithful": mined.fit(x, y, explanations=training),
        }
        c_tb = {name: consistency_on(triplets, model.predict).c_tb for name, model in models.items()}
        lines.append({"explainer": explainer, "base": base, "kappa": kappa, "c_tb": c_tb})
    return lines
