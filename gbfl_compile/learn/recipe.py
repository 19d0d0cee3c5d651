"""How explanations become a transparent model: grid, clauses, and one of the heads fitted on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from gbfl_compile.ir.nodes import Clause
from gbfl_compile.learn.black_box import Ints, Matrix
from gbfl_compile.learn.clauses import Mined, Mode, mine, single_bounds
from gbfl_compile.learn.explanations import Domain, Explanations, concatenate, some_rows
from gbfl_compile.learn.grid import grid_of
from gbfl_compile.learn.heads.box_search import SearchSettings
from gbfl_compile.learn.heads.cuts import explained_cuts
from gbfl_compile.learn.heads.head import Head
from gbfl_compile.learn.heads.on_all_rows import fitted_to_all
from gbfl_compile.learn.heads.rule_list import fit_rule_list
from gbfl_compile.learn.heads.rules import PathPoint, RuleSettings, fit_rules
from gbfl_compile.learn.heads.tree import fit_tree
from gbfl_compile.learn.heads.triplet_rows import triplet_rows
from gbfl_compile.learn.searched_rows import SEARCHED_ROWS, searched_rows
from gbfl_compile.learn.training import fitting_points

HeadKind: TypeAlias = Literal["tree", "rules", "rule_list"]
HEADS: tuple[str, ...] = get_args(HeadKind)


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides what is fitted to given explanations."""

    head: HeadKind
    grid: Any
    grid_points: int
    skip: int
    mode: Mode
    single_bounds: bool
    role_weights: tuple[float, float, float]
    """How much x, PP and PN count."""
    max_depth: int | str
    min_samples_leaf: int
    max_clauses: int
    max_atoms: int
    ridge: float


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fitted head and what it was made of."""

    head: Head
    mined: Mined | None
    """The clauses mined from the explanations; None for heads that search their own on the explanations' cuts."""
    grid: tuple[Matrix, ...] | None
    path: tuple[PathPoint, ...]


def fit_head(
    recipe: Recipe,
    e: Explanations,
    own: Ints,
    domain: Domain,
    n_classes: int,
    *,
    truth: Ints | None = None,
    extra: Explanations | None = None,
) -> Fitted:
    """Fit one head. `own` labels x in the fit; `truth`, where known, only measures; `extra` rows help a rule set.

    Beyond SEARCHED_ROWS rows the head is searched on some, and its numbers are fitted to all.
    """
    clauses = _mined(recipe, e, domain) if recipe.head == "tree" else None
    if len(e.x) <= SEARCHED_ROWS:
        return _searched(recipe, clauses, e, own, domain, n_classes, truth, extra, None)
    rows, weight = searched_rows(e.label, SEARCHED_ROWS)
    some = None if truth is None else truth[rows]
    fitted = _searched(recipe, clauses, some_rows(e, rows), own[rows], domain, n_classes, some, extra, weight)
    head = fitted_to_all(fitted.head, e, own, n_classes, recipe.role_weights, _rule_settings(recipe))
    return replace(fitted, head=head)


def _mined(recipe: Recipe, e: Explanations, domain: Domain) -> tuple[Mined, tuple[Matrix, ...]]:
    grid = grid_of(e.x, domain.lower, domain.upper, recipe.grid_points, recipe.grid)
    return mine(e, domain, grid, recipe.skip, recipe.mode), grid


def _rule_settings(recipe: Recipe) -> RuleSettings:
    return RuleSettings(search=SearchSettings(max_atoms=recipe.max_atoms, ridge=recipe.ridge))


def _searched(
    recipe: Recipe,
    clauses: tuple[Mined, tuple[Matrix, ...]] | None,
    e: Explanations,
    own: Ints,
    domain: Domain,
    n_classes: int,
    truth: Ints | None,
    extra: Explanations | None,
    row_weight: Matrix | None,
) -> Fitted:
    """The head that these rows lead to."""
    settings = _rule_settings(recipe)
    if recipe.head == "rules":
        rows = triplet_rows(e, own, n_classes, recipe.role_weights, truth, extra, row_weight)
        cuts = explained_cuts(e if extra is None else concatenate([e, extra]), domain.base, settings.cuts)
        (found,) = fit_rules(rows, cuts, (recipe.max_clauses,), settings)
        return Fitted(found.head, None, None, found.path)
    points = fitting_points(e, own, recipe.role_weights, n_classes, row_weight)
    if clauses is None:
        cuts = explained_cuts(e, domain.base, settings.cuts)
        return Fitted(fit_rule_list(points, cuts, recipe.max_clauses, settings.search), None, None, ())
    mined, grid = clauses
    candidates = _candidates(mined, recipe.single_bounds)
    return Fitted(fit_tree(candidates, points, recipe.max_depth, recipe.min_samples_leaf), mined, grid, ())


def _candidates(mined: Mined, singles: bool) -> tuple[Clause, ...]:
    """The clauses the tree may ask: those mined, and each of their bounds on its own."""
    if not singles:
        return mined.clauses
    already = set(mined.clauses)
    return mined.clauses + tuple(clause for clause in single_bounds(mined.clauses) if clause not in already)
