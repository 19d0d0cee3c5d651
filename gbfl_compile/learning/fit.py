"""How explanations become a transparent model: grid, clauses, and one of the heads fitted on them; and the best recipe.

Recipes (N, Delta, depth, C and kappa) are searched by cross-validation for the most consistent on held-out rows. Every
candidate is measured on the same triplets, those of the user's kappa: another kappa gives other points, and figures on
different points do not compare.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.nodes import Clause, Program
from gbfl_compile.learning.black_box import Ints, Matrix
from gbfl_compile.learning.clauses import grid_of
from gbfl_compile.learning.clauses.mine import MODES, MinedClauses, Mode, mine, single_bounds
from gbfl_compile.learning.consistency import consistency
from gbfl_compile.learning.explain import Domain, Explanations, concatenate, some_rows
from gbfl_compile.learning.heads import Grid, Head, deal_rows, fitting_points, triplet_rows, triplets_side_by_side
from gbfl_compile.learning.heads.box_search import SearchSettings, cut_grid, explained_cuts
from gbfl_compile.learning.heads.joint_tree import TreeSettings, fit_joint_tree
from gbfl_compile.learning.heads.rule_list import fit_rule_list
from gbfl_compile.learning.heads.rules import PathPoint, RuleSettings, fit_rules, weigh_rule
from gbfl_compile.learning.heads.simplify import FINE, one_rule, round_thresholds
from gbfl_compile.learning.heads.tree import MAX_DEPTH, fit_tree
from gbfl_compile.learning.heads.weights import SEARCHED_ROWS, fit_to_all_rows, searched_rows
from gbfl_compile.learning.heads.word_search import explained_word_cuts, word_grid

HeadKind: TypeAlias = Literal["tree", "rules", "rule_list"]
HEADS: tuple[str, ...] = get_args(HeadKind)
TreeMode: TypeAlias = Literal["joint"] | Mode
"""A tree fitted to whole triplets, or one of the paper's: CART over clauses mined from single rows."""
TREE_MODES: tuple[TreeMode, ...] = ("joint", *MODES)
ENOUGH_ROWS: Mapping[HeadKind, int] = {"tree": 5_000, "rules": 10_000, "rule_list": 20_000}
"""A head that searches its own clauses does so on this many rows; more of them change little and take long."""
OTHER_METHODS = 0.25
"""How much an explanation by the second and later methods counts on a table with words, beside 1 by the first: in full
they cost agreement with the first and add none with themselves. On numbers all count 1."""
CHOOSING_ROWS, FEWEST_CHOOSING, HELD_OUT = 3_000, 40, 4
"""Rows that choose the number of clauses: at most, at least, and one in how many is held out."""
WITH_WORDS = 3
"""The most conditions of a clause with small points on a table with words."""
LEAF_ROWS, ROWS_PER_LEAF = 5, 30
"""A leaf holds this many of the user's rows; of a small table, one in this many of them."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides which model is fitted to explanations."""

    head: HeadKind
    grid: Any
    grid_points: int
    skip: int
    mode: TreeMode
    single_bounds: bool
    role_weights: tuple[float, float, float]
    """How much x, PP and PN count."""
    max_depth: int | str
    min_samples_leaf: int | None
    max_clauses: int
    max_atoms: int
    ridge: float
    points: int | None
    methods: int = 1
    """How many methods explained each row: so often it is among the rows to fit."""


@dataclass(frozen=True, slots=True)
class FittedHead:
    """A fitted head and what it was built from."""

    head: Head
    mined: MinedClauses | None
    """The clauses mined from the explanations; None for heads that search clauses on the explanations' cuts."""
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
) -> FittedHead:
    """Fit one head. `own` labels x in the fit; `truth`, where known, only measures; `extra` rows help it.

    With more rows than enough the head is searched on some of them, and its numbers are fitted to all.
    """
    mined = _mine(recipe, e, domain) if recipe.head == "tree" and recipe.mode != "joint" else None
    most = SEARCHED_ROWS if mined is not None else min(SEARCHED_ROWS, ENOUGH_ROWS[recipe.head])
    row = np.arange(len(e.x)) % -(-len(e.x) // recipe.methods)  # however many methods explained it
    weight = _method_weights(len(e.x), recipe, domain)
    if len(e.x) <= most:
        return _search(recipe, mined, e, own, row, domain, n_classes, truth, extra, weight)
    rows, represents = searched_rows(e.label, most)
    some, labels, some_truth = some_rows(e, rows), own[rows], None if truth is None else truth[rows]
    some_weight = represents * weight[rows]
    fitted = _search(recipe, mined, some, labels, row[rows], domain, n_classes, some_truth, extra, some_weight)
    book = None if domain.table is None else domain.table.columns.book
    ridge = recipe.ridge if recipe.points is None else None
    head = fit_to_all_rows(fitted.head, e, own, n_classes, recipe.role_weights, weight, ridge, book)
    return replace(fitted, head=head)


def _method_weights(explained: int, recipe: Recipe, domain: Domain) -> Matrix:
    """What explanations count that several methods gave of the same rows, one method after the other."""
    others = 1.0 if domain.table is None else OTHER_METHODS
    return np.where(np.arange(explained) * recipe.methods < explained, 1.0, others)


def _mine(recipe: Recipe, e: Explanations, domain: Domain) -> MinedClauses:
    if recipe.mode == "joint" or domain.table is not None:
        raise BadInput(f"mode={recipe.mode!r} mines clauses of numbers, and this table has words: use mode='joint'")
    grid = grid_of(e.x, domain.lower, domain.upper, recipe.grid_points, recipe.grid)
    return mine(e, domain, grid, recipe.skip, recipe.mode)


def _rule_settings(recipe: Recipe, domain: Domain) -> RuleSettings:
    if domain.table is None or recipe.points is None or recipe.head != "rules":
        atoms, clauses = recipe.max_atoms, recipe.max_clauses
    else:
        atoms, clauses = min(WITH_WORDS, recipe.max_atoms), 0
    search = SearchSettings(max_atoms=atoms, ridge=recipe.ridge)
    # on tables with words triplets counted as wholes gained nothing
    return RuleSettings(search=search, points=recipe.points, max_clauses=clauses, whole=domain.table is None)


def _search(
    recipe: Recipe,
    mined: MinedClauses | None,
    e: Explanations,
    own: Ints,
    row: Ints,
    domain: Domain,
    n_classes: int,
    truth: Ints | None,
    extra: Explanations | None,
    own_weight: Matrix,
) -> FittedHead:
    """The head that fits these rows; a single conjunction where that is about as good."""
    settings = _rule_settings(recipe, domain)
    columns = None if domain.table is None else domain.table.columns
    book = None if columns is None else columns.book
    row_weight = own_weight
    if extra is not None:
        row_weight = np.concatenate((own_weight, _method_weights(len(extra.x), recipe, domain)))
    triplets = triplets_side_by_side(e, own, n_classes, recipe.role_weights, extra, row_weight)
    explained = e if extra is None else concatenate([e, extra])
    path: tuple[PathPoint, ...] = ()
    least, rows = 0, None
    if recipe.head == "rules":
        rows = triplet_rows(e, own, n_classes, recipe.role_weights, truth, extra, row_weight)
        mine = np.bincount(rows.x[: rows.measured], minlength=len(rows.points)) / recipe.methods
        grid = _grid(rows.points, mine, explained, domain, settings)
        (rule_set,) = fit_rules(
            rows, grid, (_enough_clauses(recipe, e, row, domain, n_classes, extra, row_weight),), settings
        )
        head, path = rule_set.head, rule_set.path
    elif recipe.head == "tree" and mined is None:
        grid = _grid(triplets.x, triplets.own / recipe.methods, explained, domain, settings)
        tree = _tree_settings(recipe, len(e.x))
        head, least = fit_joint_tree(triplets, grid, tree), tree.least_rows
    else:
        points = fitting_points(e, own, row, recipe.role_weights, n_classes, own_weight)
        if mined is not None:
            candidates = _candidates(mined, recipe.single_bounds)
            leaf = recipe.min_samples_leaf or 1
            return FittedHead(fit_tree(candidates, points, recipe.max_depth, leaf), mined, ())
        is_own = np.arange(len(points.x)) < len(e.x)
        grid = _grid(points.x, is_own / recipe.methods, e, domain, settings)
        head, least = fit_rule_list(points, is_own, grid, recipe.max_clauses, settings.search), 1
    fine = _grid(triplets.x, triplets.own / recipe.methods, explained, domain, replace(settings, cuts=FINE))
    alone = one_rule(head, triplets, fine, settings.search, max(1, least), book)
    if alone is not None and rows is not None:
        rule_set = weigh_rule(alone.clauses[0], rows, settings, book)
        head, path = rule_set.head, (*path[:1], *rule_set.path)
    elif alone is not None:
        head = alone
    return FittedHead(round_thresholds(head, triplets, least, columns, _whole_features(domain)), None, path)


def _whole_features(domain: Domain) -> tuple[bool, ...]:
    """Which features have whole numbers only."""
    if domain.table is not None:
        return domain.table.columns.whole
    return tuple(kind == "integer" or (kind != "float" and kind == tuple(np.rint(kind))) for kind in domain.kinds)


def _enough_clauses(
    recipe: Recipe,
    e: Explanations,
    row: Ints,
    domain: Domain,
    n_classes: int,
    extra: Explanations | None,
    row_weight: Matrix,
) -> int:
    """How many clauses make most held-out rows right, the fewest of those numbers; all where the last gained too."""
    if len(row) < FEWEST_CHOOSING or recipe.max_clauses < 2:
        return recipe.max_clauses
    step = -(-(int(row.max()) + 1) // CHOOSING_ROWS)
    is_held_out = row // step % HELD_OUT == 0
    held_out, others = (np.flatnonzero((row % step == 0) & side) for side in (is_held_out, ~is_held_out))
    fitted = some_rows(e, others)
    if extra is not None:
        made_up = np.arange(0, len(extra.x), 2)
        fitted, others = concatenate([fitted, some_rows(extra, made_up)]), np.concatenate((others, len(e.x) + made_up))
    settings = replace(_rule_settings(recipe, domain), swaps=0, points=None, whole=False)
    unseen = some_rows(e, held_out)
    # rows without weight are measured and not fitted
    weight = np.concatenate((np.zeros(len(held_out)), row_weight[others]))
    rows = triplet_rows(unseen, unseen.label, n_classes, recipe.role_weights, None, fitted, weight)
    mine = np.bincount(rows.x, minlength=len(rows.points)).astype(np.float64)
    (grown,) = fit_rules(rows, _grid(rows.points, mine, fitted, domain, settings), (recipe.max_clauses,), settings)
    shares = np.array([point.c_tb_all for point in grown.path], dtype=np.float64)
    best = int(shares.argmax())
    return recipe.max_clauses if best == len(shares) - 1 else best


def _tree_settings(recipe: Recipe, rows: int) -> TreeSettings:
    least = recipe.min_samples_leaf or max(1, min(LEAF_ROWS, rows // recipe.methods // ROWS_PER_LEAF))
    return TreeSettings(
        max_depth=MAX_DEPTH if recipe.max_depth == "cv" else int(recipe.max_depth),
        least_rows=least * recipe.methods,
        max_atoms=recipe.max_atoms,
    )


def _grid(points: Matrix, own: Matrix, e: Explanations, domain: Domain, settings: RuleSettings) -> Grid:
    """The points on the cuts and words of these explanations; `own` counts the user's rows at each."""
    if domain.table is None:
        return cut_grid(points, explained_cuts(e, domain.base, settings.cuts))
    columns = domain.table.columns
    return word_grid(points, own, columns, explained_word_cuts(e, domain.base, columns, settings.cuts))


def _candidates(mined: MinedClauses, singles: bool) -> tuple[Clause, ...]:
    """The clauses that the tree may test: those mined, and each of their single bounds."""
    if not singles:
        return mined.clauses
    known = set(mined.clauses)
    return mined.clauses + tuple(clause for clause in single_bounds(mined.clauses) if clause not in known)


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
