"""Searches for the recipe most consistent on held-out rows: N, Delta, depth, C and kappa by cross-validation.

Every candidate is measured on the same triplets, those of the user's kappa: another kappa gives other points, and
figures on different points do not compare.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.nodes import Program
from gbfl_compile.learning.black_box.ask import Ints, Matrix
from gbfl_compile.learning.consistency import consistency
from gbfl_compile.learning.explain.explanations import Domain, Explanations, some_rows
from gbfl_compile.learning.fit import Recipe, fit_head
from gbfl_compile.learning.heads.points import Head, deal_rows

KAPPAS = (0.2, 0.5, 0.8)
FOLDS = 3

CANDIDATES: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "tree": {"max_depth": (3, 4, 5), "max_atoms": (2, 3, 4)},
    "mined tree": {"grid_points": (10, 20, 30), "skip": (2, 3, 4), "max_depth": ("cv",)},
    "rules": {"ridge": (0.3, 1.0, 3.0), "max_atoms": (2, 3, 4)},
    "rule_list": {"max_atoms": (2, 3, 4)},
}
"""The settings to try for each head; the paper's trees are over mined clauses."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One candidate and how consistent it was on held-out rows, in per cent."""

    kappa: float
    changes: Mapping[str, Any]
    c_tb: float


def try_recipes(
    recipe: Recipe,
    by_kappa: Mapping[float, Explanations],
    kappa: float,
    own: Ints,
    domain: Domain,
    n_classes: int,
    tell: Callable[[str], None],
    n_rows: int,
) -> list[Trial]:
    """Every candidate measured, best first; `by_kappa` has the explanations of the same rows for each kappa.

    Explanations by several methods come one after the other, `n_rows` each.
    """
    names = CANDIDATES["mined tree" if recipe.head == "tree" and recipe.mode != "joint" else recipe.head]
    variants = [dict(zip(names, values, strict=True)) for values in itertools.product(*names.values())]
    trials = []
    for number, (other_kappa, changes) in enumerate(itertools.product(by_kappa, variants), start=1):
        candidate = replace(recipe, **changes)
        score = _held_out_consistency(candidate, by_kappa[other_kappa], by_kappa[kappa], own, domain, n_classes, n_rows)
        trials.append(Trial(other_kappa, changes, score))
        tell(f"search {number}/{len(by_kappa) * len(variants)}: kappa {other_kappa}, {changes}: C_TB {score:.1f} %")
    return sorted(trials, key=lambda trial: -trial.c_tb)


def _held_out_consistency(
    recipe: Recipe,
    fit_to: Explanations,
    measure_on: Explanations,
    own: Ints,
    domain: Domain,
    n_classes: int,
    n_rows: int,
) -> float:
    right = 0
    for train, test in _splits(len(fit_to.x), n_rows):
        fitted = fit_head(recipe, some_rows(fit_to, train), own[train], domain, n_classes)
        right += consistent_rows(fitted.head, some_rows(measure_on, test), domain.features, n_classes)
    return 100.0 * right / len(fit_to.x)


def _splits(explained: int, n_rows: int) -> Iterator[tuple[Ints, Ints]]:
    """A row stays in one fold with all its explanations."""
    row = np.arange(explained) % n_rows
    for fold in deal_rows(row, FOLDS):
        held_out = np.isin(row, fold)
        yield np.flatnonzero(~held_out), np.flatnonzero(held_out)


def consistent_rows(head: Head, e: Explanations, features: tuple[str, ...], n_classes: int) -> int:
    """How many rows the head agrees with the black box on, at x, PP and PN."""
    on_x, on_pp, on_pn = (head_classes(head, points, features, n_classes) for points in (e.x, e.pp, e.pn))
    return consistency(e.label, on_x, on_pp, on_pn, e.has_pp, e.has_pn).c_tb_all_right


def head_classes(head: Head, x: Matrix, features: tuple[str, ...], n_classes: int) -> Ints:
    """The class index a head gives each row."""
    program = Program(features, tuple(range(n_classes)), head.clauses, head.decision)
    return evaluate_many(program, x).labels.astype(np.int64)
