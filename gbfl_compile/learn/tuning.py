"""Looks for the recipe that is most consistent on held-out rows: N, Delta, depth, C and kappa by cross-validation.

Every candidate is measured on the same triplets, those found with the kappa that was asked for, because another
kappa gives other points and figures on them do not compare.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gbfl_compile.consistency import consistency
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.nodes import Program
from gbfl_compile.learn.black_box import Ints, Matrix
from gbfl_compile.learn.explanations import Domain, Explanations, some_rows
from gbfl_compile.learn.heads.head import Head, folds
from gbfl_compile.learn.recipe import Recipe, fit_head

KAPPAS = (0.2, 0.5, 0.8)
FOLDS = 3

CANDIDATES: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "tree": {"grid_points": (10, 20, 30), "skip": (2, 3, 4), "max_depth": ("cv",)},
    "rules": {"ridge": (0.3, 1.0, 3.0), "max_atoms": (2, 3, 4)},
    "rule_list": {"max_atoms": (2, 3, 4)},
}
"""What is tried for each head."""


@dataclass(frozen=True, slots=True)
class Tried:
    """One candidate and how consistent it was on held-out rows, in per cent."""

    kappa: float
    changes: Mapping[str, Any]
    c_tb: float


def tried_recipes(
    recipe: Recipe,
    explained: Mapping[float, Explanations],
    kappa: float,
    own: Ints,
    domain: Domain,
    n_classes: int,
    tell: Callable[[str], None],
) -> list[Tried]:
    """Every candidate measured, best first; `explained` has the explanations of the same rows for each kappa."""
    names = CANDIDATES[recipe.head]
    variants = [dict(zip(names, values, strict=True)) for values in itertools.product(*names.values())]
    found = []
    for number, (trial, changes) in enumerate(itertools.product(explained, variants), start=1):
        candidate = replace(recipe, **changes)
        score = _held_out(candidate, explained[trial], explained[kappa], own, domain, n_classes)
        found.append(Tried(trial, changes, score))
        tell(f"search {number}/{len(explained) * len(variants)}: kappa {trial}, {changes}: C_TB {score:.1f} %")
    return sorted(found, key=lambda tried: -tried.c_tb)


def _held_out(
    recipe: Recipe, given: Explanations, measured: Explanations, own: Ints, domain: Domain, n_classes: int
) -> float:
    right = 0
    for train, test in _splits(len(given.x)):
        fitted = fit_head(recipe, some_rows(given, train), own[train], domain, n_classes)
        right += consistent_rows(fitted.head, some_rows(measured, test), domain.features, n_classes)
    return 100.0 * right / len(given.x)


def _splits(rows: int) -> Iterator[tuple[Ints, Ints]]:
    everything = np.arange(rows)
    for part in folds(everything, FOLDS):
        yield np.setdiff1d(everything, part), part


def consistent_rows(head: Head, e: Explanations, features: tuple[str, ...], n_classes: int) -> int:
    """On how many rows the head agrees with the black box whole."""
    on_x, on_pp, on_pn = (head_classes(head, points, features, n_classes) for points in (e.x, e.pp, e.pn))
    return consistency(e.label, on_x, on_pp, on_pn, e.has_pp, e.has_pn).c_tb_all_right


def head_classes(head: Head, x: Matrix, features: tuple[str, ...], n_classes: int) -> Ints:
    """The class index a head gives each row."""
    program = Program(features, tuple(range(n_classes)), head.clauses, head.decision)
    return evaluate_many(program, x).labels.astype(np.int64)
