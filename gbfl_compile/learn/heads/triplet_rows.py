"""Triplets as the rules head wants them: each distinct point once, with the classes it should and should not get."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gbfl_compile.learn.black_box import Bools, Ints, Matrix
from gbfl_compile.learn.explanations import Explanations, concatenate


@dataclass(frozen=True, slots=True)
class TripletRows:
    """Points with the weights of the classes they should and should not have, and where each triplet's points are."""

    points: Matrix
    wanted: Matrix
    """[points, classes]: the weight with which a point should be of each class."""
    unwanted: Matrix
    """[points, classes]: the weight with which a point should not be of a class (a PN, three classes or more)."""
    x: Ints
    """Which point is the x of each triplet; `pp` and `pn` likewise."""
    pp: Ints
    pn: Ints
    has_pp: Bools
    has_pn: Bools
    label: Ints
    """The black box's class of x."""
    truth: Ints | None
    """The true class of x where it is known, to measure accuracy by."""
    measured: int
    """How many of the triplets, from the first, are the user's own rows; the others were made up to be explained."""


def triplet_rows(
    e: Explanations,
    own: Ints,
    n_classes: int,
    role_weights: tuple[float, float, float] = (1.0, 1.0, 1.0),
    truth: Ints | None = None,
    extra: Explanations | None = None,
    row_weight: Matrix | None = None,
) -> TripletRows:
    """Stack x, PP and PN. x should be of class `own`, its PP of the black box's class, its PN of any other.

    A row with a `row_weight` stands for so many; extra rows for one each.
    """
    measured = len(e.x)
    stands_for = np.ones(measured) if row_weight is None else row_weight
    if extra is not None:
        e, own = concatenate([e, extra]), np.concatenate((own, extra.label))
        stands_for = np.concatenate((stands_for, np.ones(len(extra.x))))
    stacked = np.vstack((e.x, e.pp, e.pn))
    points, place = np.unique(stacked, axis=0, return_inverse=True)
    at_x, at_pp, at_pn = np.split(place.ravel(), 3)
    wanted, unwanted = np.zeros((len(points), n_classes)), np.zeros((len(points), n_classes))
    np.add.at(wanted, (at_x, own), role_weights[0] * stands_for)
    np.add.at(wanted, (at_pp, e.label), np.where(e.has_pp, role_weights[1] * stands_for, 0.0))
    not_weight = np.where(e.has_pn, role_weights[2] * stands_for, 0.0)
    if n_classes == 2:
        np.add.at(wanted, (at_pn, 1 - e.label), not_weight)
    else:
        np.add.at(unwanted, (at_pn, e.label), not_weight)
    return TripletRows(points, wanted, unwanted, at_x, at_pp, at_pn, e.has_pp, e.has_pn, e.label, truth, measured)
