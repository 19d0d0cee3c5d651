"""What every head takes and returns, and the search for conjunctions that they share, on numbers or with words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never, cast

import numpy as np

from gbfl_compile.ir.nodes import Clause, Decision, Leaf
from gbfl_compile.learning.black_box import Bools, Ints, Matrix
from gbfl_compile.learning.explain import Explanations, concatenate
from gbfl_compile.learning.heads.box_search import (
    Box,
    CutGrid,
    Gain,
    SearchSettings,
    box_holds,
    clause_of,
    newton_gain,
    promising_boxes,
)
from gbfl_compile.learning.heads.word_search import (
    WordBox,
    WordGrid,
    promising_word_boxes,
    word_box_holds,
    word_clause_of,
)


@dataclass(frozen=True, slots=True)
class Head:
    """A fitted transparent model: clauses, and a tree or a scorecard over them."""

    clauses: tuple[Clause, ...]
    decision: Decision


@dataclass(frozen=True, slots=True)
class Points:
    """Points to fit: their values, class and weight, and the training row each belongs to."""

    x: Matrix
    label: Ints
    weight: Matrix
    row: Ints
    """x, PP and PN of one training row stay together in cross-validation."""
    n_classes: int


@dataclass(frozen=True, slots=True)
class TripletRows:
    """Each distinct point once, with the weights of the classes it should and should not get; which belong together."""

    points: Matrix
    target: Matrix
    """[points, classes]: the weight with which a point should get each class."""
    avoid: Matrix
    """[points, classes]: the weight with which a point should not get a class (a PN, three classes or more)."""
    x: Ints
    """Which point is the x of each triplet; `pp` and `pn` likewise."""
    pp: Ints
    pn: Ints
    has_pp: Bools
    has_pn: Bools
    label: Ints
    """The black box's class of x."""
    own: Ints
    """The class that x should get."""
    roles: tuple[float, float, float]
    """How much x, PP and PN count."""
    truth: Ints | None
    """The true class of x where it is known, to measure accuracy by."""
    weight: Matrix
    """How much each triplet counts."""
    measured: int
    """How many of the triplets, from the first, are the user's own rows; the others are made-up rows."""


@dataclass(frozen=True, slots=True)
class Triplets:
    """x, PP and PN of each row side by side: point 3 t is the x of triplet t, then its PP, then its PN."""

    x: Matrix
    exists: Bools
    """Whether there is such a PP or PN, and it counts."""
    label: Ints
    """The class the point should get; for a PN the one it should not get."""
    avoids: Bools
    """Whether the point is a PN."""
    goal: Ints
    """The black box's class of the point, or for x the class that it should get."""
    counts: Matrix
    """How much each point counts."""
    weight: Matrix
    """How much each triplet counts."""
    own: Bools
    """Whether the point is one of the user's own rows."""
    n_classes: int


def triplets_side_by_side(
    e: Explanations,
    own: Ints,
    n_classes: int,
    role_weights: tuple[float, float, float],
    extra: Explanations | None = None,
    row_weight: Matrix | None = None,
) -> Triplets:
    """The triplets of the user's rows, x with the label `own`, and of made-up rows.

    A `row_weight` says how many rows each row represents, made-up ones too.
    """
    rows = len(e.x)
    if extra is not None:
        e, own = concatenate([e, extra]), np.concatenate((own, extra.label))
    count = len(e.x)
    weight = np.ones(count) if row_weight is None else row_weight
    exists = np.column_stack([np.ones(count, dtype=bool), e.has_pp, e.has_pn])
    roles = np.asarray(role_weights)
    mine = np.zeros((count, 3), dtype=bool)
    mine[:rows, 0] = True
    return Triplets(
        x=np.stack((e.x, e.pp, e.pn), axis=1).reshape(3 * count, -1),
        exists=(exists & (roles > 0)).ravel(),
        label=np.column_stack((own, e.label, e.label)).ravel(),
        avoids=np.tile([False, False, True], count),
        goal=np.column_stack((own, e.label, e.pn_label)).ravel(),
        counts=(weight[:, None] * roles).ravel(),
        weight=weight,
        own=mine.ravel(),
        n_classes=n_classes,
    )


def leaf_of(mass: Matrix, label: int) -> Leaf:
    """A leaf that answers `label`, with the shares of its points' classes; where another has most, they trade shares.

    What makes most triplets right need not be the class of most points, and scikit-learn expects it to be.
    """
    shares = mass / mass.sum()
    top = int(shares.argmax())
    shares[label], shares[top] = shares[top], shares[label]
    shares[:label] = np.minimum(shares[:label], np.nextafter(shares[label], 0.0))  # of equals the first would win
    return Leaf(tuple(shares.tolist()))


def fitting_points(
    e: Explanations,
    own: Ints,
    row: Ints,
    role_weights: tuple[float, float, float],
    n_classes: int,
    row_weight: Matrix | None = None,
) -> Points:
    """x, PP and PN as points to fit: x with the label `own`, PP and PN with the black box's class of each.

    `row` names the training row that each explanation is of: explanations by several methods stay together. A
    `row_weight` says how many rows each row represents.
    """
    weight = np.ones(len(row)) if row_weight is None else row_weight
    roles = (
        (e.x, own, row, weight, role_weights[0]),
        (e.pp[e.has_pp], e.label[e.has_pp], row[e.has_pp], weight[e.has_pp], role_weights[1]),
        (e.pn[e.has_pn], e.pn_label[e.has_pn], row[e.has_pn], weight[e.has_pn], role_weights[2]),
    )
    counting = [role for role in roles if role[4] > 0]
    return Points(
        x=np.concatenate([role[0] for role in counting]),
        label=np.concatenate([role[1] for role in counting]),
        weight=np.concatenate([role[4] * role[3] for role in counting]),
        row=np.concatenate([role[2] for role in counting]),
        n_classes=n_classes,
    )


def triplet_rows(
    e: Explanations,
    own: Ints,
    n_classes: int,
    role_weights: tuple[float, float, float] = (1.0, 1.0, 1.0),
    truth: Ints | None = None,
    extra: Explanations | None = None,
    row_weight: Matrix | None = None,
) -> TripletRows:
    """Stack x, PP and PN. x should get class `own`, its PP the black box's class, its PN any other.

    A `row_weight` says how many rows each row represents, made-up ones too.
    """
    measured = len(e.x)
    if extra is not None:
        e, own = concatenate([e, extra]), np.concatenate((own, extra.label))
    multiplicity = np.ones(len(e.x)) if row_weight is None else row_weight
    stacked = np.vstack((e.x, e.pp, e.pn))
    missing = np.isnan(stacked)
    if missing.any():  # NaN equals nothing, itself included
        points, place = np.unique(np.where(missing, -np.inf, stacked), axis=0, return_inverse=True)
        points[np.isinf(points)] = np.nan
    else:
        points, place = np.unique(stacked, axis=0, return_inverse=True)
    at_x, at_pp, at_pn = np.split(place.ravel(), 3)
    target, avoid = np.zeros((len(points), n_classes)), np.zeros((len(points), n_classes))
    marks = (e.has_pp, e.has_pn, e.label, own, role_weights, truth)
    rows = TripletRows(points, target, avoid, at_x, at_pp, at_pn, *marks, multiplicity, measured)
    return with_counts(rows, *(weight * multiplicity for weight in role_weights))


def with_counts(rows: TripletRows, on_x: Matrix, on_pp: Matrix, on_pn: Matrix) -> TripletRows:
    """The rows, each triplet's x, PP and PN counting this much."""
    target, avoid = np.zeros_like(rows.target), np.zeros_like(rows.avoid)
    np.add.at(target, (rows.x, rows.own), on_x)
    np.add.at(target, (rows.pp, rows.label), np.where(rows.has_pp, on_pp, 0.0))
    on_pn = np.where(rows.has_pn, on_pn, 0.0)
    if target.shape[1] == 2:
        np.add.at(target, (rows.pn, 1 - rows.label), on_pn)
    else:
        np.add.at(avoid, (rows.pn, rows.label), on_pn)
    return replace(rows, target=target, avoid=avoid)


def deal_rows(rows: Ints, most: int, seed: int = 0) -> list[Ints]:
    """Training rows dealt into at most `most` folds, whole triplets together; the same every time."""
    distinct = np.unique(rows)
    count = min(most, len(distinct))
    order = np.random.default_rng(seed).permutation(distinct)
    return [np.sort(fold) for fold in np.array_split(order, count)] if count >= 2 else []


Grid: TypeAlias = CutGrid | WordGrid
Conjunction: TypeAlias = Box | WordBox
"""A conjunction on a grid; it means nothing on another."""


def promising(
    grid: Grid, pull: Matrix, bend: Matrix, settings: SearchSettings, gain: Gain = newton_gain
) -> dict[Conjunction, float]:
    """Conjunctions with the greatest gains, best first, and those gains."""
    match grid:
        case CutGrid():
            return cast("dict[Conjunction, float]", promising_boxes(grid, pull, bend, settings, gain))
        case WordGrid():
            return cast("dict[Conjunction, float]", promising_word_boxes(grid, pull, bend, settings, gain))
        case _:
            assert_never(grid)


def holds_on(grid: Grid, box: Conjunction) -> Bools:
    """On which points the conjunction holds."""
    match grid:
        case CutGrid():
            return box_holds(grid, cast("Box", box))
        case WordGrid():
            return word_box_holds(grid, cast("WordBox", box))
        case _:
            assert_never(grid)


def clause_from(grid: Grid, box: Conjunction) -> Clause:
    """The conjunction in the rule language."""
    match grid:
        case CutGrid():
            return clause_of(grid, cast("Box", box))
        case WordGrid():
            return word_clause_of(grid, cast("WordBox", box))
        case _:
            assert_never(grid)


def sum_of_pull(pull: Matrix, bend: Matrix, total_bend: float, ridge: float) -> Matrix:
    """The gain if each point counts for or against a conjunction, and the curvature is left out."""
    return pull


def part_of(grid: Grid, at: Ints | Bools) -> Grid:
    """The grid with some of its points."""
    match grid:
        case CutGrid():
            return grid.part(at)
        case WordGrid():
            return replace(grid, codes=grid.codes[:, at], own=grid.own[at])
        case _:
            assert_never(grid)


def count_bounds(grid: Grid, box: Conjunction) -> int:
    """The conditions a reader sees: each bound of an interval, and each set of words."""
    return sum(max(1, lower + upper) for _, lower, upper in _sides(grid, box))


def without_a_bound(grid: Grid, box: Conjunction) -> Iterator[Conjunction]:
    """The conjunctions with one condition less; the empty one is not among them."""
    for place, (_, lower, upper) in enumerate(_sides(grid, box)):
        if lower and upper:
            for without_upper in (False, True):
                yield cast("Conjunction", (*box[:place], _open(grid, box, place, without_upper), *box[place + 1 :]))
        elif len(box) > 1:
            yield cast("Conjunction", (*box[:place], *box[place + 1 :]))


def _sides(grid: Grid, box: Conjunction) -> Iterator[tuple[int, bool, bool]]:
    """For each atom its feature, and whether it is an interval with a lower and an upper bound."""
    match grid:
        case CutGrid():
            for feature, first, beyond in cast("Box", box):
                yield feature, first > 0, beyond < grid.n_bins
        case WordGrid():
            for feature, mask in cast("WordBox", box):
                is_interval = grid.cuts[feature] is not None
                yield feature, is_interval and not mask[0], is_interval and not mask[-2]
        case _:
            assert_never(grid)


def _open(grid: Grid, box: Conjunction, place: int, without_upper: bool) -> tuple[int, int, int] | tuple[int, bytes]:
    """One atom, an interval, without its upper or its lower bound."""
    match grid:
        case CutGrid():
            feature, first, beyond = cast("Box", box)[place]
            return (feature, first, grid.n_bins) if without_upper else (feature, 0, beyond)
        case WordGrid():
            feature, mask = cast("WordBox", box)[place]
            inside = np.frombuffer(mask[:-1], dtype=np.uint8)
            wider = np.maximum.accumulate(inside if without_upper else inside[::-1])
            return feature, (wider if without_upper else wider[::-1]).tobytes() + mask[-1:]
        case _:
            assert_never(grid)
