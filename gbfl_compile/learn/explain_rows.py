"""What all explainers share: what is wanted of them, how a margin is measured, and the query budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from gbfl_compile.errors import BadInput
from gbfl_compile.learn.black_box import BlackBox, Bools, Ints, Matrix, probabilities
from gbfl_compile.learn.explain_domain import Domain, check_domain
from gbfl_compile.learn.explanations import Explanations

WINS = 1e-9
"""A class wins by at least this much: less is a tie that rounding on another machine may turn."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted of any explainer; what it may do to each feature is in the Domain."""

    kappa: float = 0.5
    """The margin wanted, in probability."""
    max_restored: int | None = None
    """k of equation 1: how many features of a PP may differ from the base; None is no limit."""
    max_moved: int | None = 5
    """k of equation 2: how many features of a PN may differ from x; None is no limit."""
    max_queries: int | None = None
    """How many rows the black box may be asked in all. Rows are explained in order, each whole, while one
    more is sure to fit; those after that are not reached, and `Explanations.not_reached` counts them."""
    seed: int = 0
    """For explainers that draw; `greedy` does not."""

    def dearest(self, domain: Domain) -> int:
        """The most rows the black box is asked to explain one row, its own class left aside."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Found:
    """One side, PP or PN, of some rows: the point, whether it is one, its margin and its class."""

    point: Matrix
    holds: Bools
    margin: Matrix
    label: Ints


Find: TypeAlias = Callable[[Matrix, Ints, Matrix], tuple[Found, Found]]
"""Rows, their classes and their margins -> their PPs and PNs."""


def explain_rows(black_box: BlackBox, x: Matrix, domain: Domain, wanted: Wanted, find: Find) -> Explanations:
    """A PP and a PN for each row by `find`, which asks at most `wanted.dearest` rows to explain one.

    With a budget rows go in blocks that are sure to fit. A row is explained when what those before it left
    covers the dearest one, so which rows are reached depends neither on the blocks nor on chunks.
    """
    _check(x, domain, wanted)
    before = black_box.queries
    answer = probabilities(black_box, x)
    label: Ints = answer.argmax(axis=1)
    margin_x, _ = margins(answer, label)
    pp, pn, pn_label = x.copy(), x.copy(), label.copy()
    pp_margin, pn_margin = margin_x.copy(), -margin_x
    has_pp, has_pn = np.zeros(len(x), dtype=bool), np.zeros(len(x), dtype=bool)
    reached = 0
    while reached < len(x):
        block = len(x) - reached
        if wanted.max_queries is not None:
            block = min(block, (wanted.max_queries - (black_box.queries - before)) // wanted.dearest(domain))
        if block < 1:
            break
        part = slice(reached, reached + block)
        positive, negative = find(x[part], label[part], margin_x[part])
        for found, has, point, margin in ((positive, has_pp, pp, pp_margin), (negative, has_pn, pn, pn_margin)):
            has[part] = found.holds
            point[part][found.holds] = found.point[found.holds]
            margin[part][found.holds] = found.margin[found.holds]
        pn_label[part][negative.holds] = negative.label[negative.holds]
        reached += block
    return Explanations(
        x=x,
        pp=pp,
        pn=pn,
        has_pp=has_pp,
        has_pn=has_pn,
        label=label,
        pn_label=pn_label,
        pp_margin=pp_margin,
        pn_margin=pn_margin,
        pp_is_base=has_pp & (pp == domain.base).all(axis=1),
        queries=black_box.queries - before,
        features=domain.features,
        not_reached=len(x) - reached,
    )


def margins(answer: Matrix, label: Ints) -> tuple[Matrix, Matrix]:
    """C(y) - max of the others, as a difference of probabilities and as a log ratio.

    The difference says how far a class holds. The ratio guides the search: where the black box is sure
    of itself every difference rounds to the same 1.0, and the ratio still points the way.
    """
    rows = np.arange(len(answer))
    own = answer[rows, label]
    others = answer.copy()
    others[rows, label] = -np.inf
    other = others.max(axis=1)
    difference = own - other
    tiny = np.finfo(np.float64).tiny
    ratio = np.log(np.maximum(own, tiny)) - np.log(np.maximum(other, tiny))
    lost_tie = (difference == 0) & (others.argmax(axis=1) < label)
    return np.where(lost_tie, -tiny, difference), ratio


def at_most(given: int | None, width: int) -> int:
    """How many features may change: the limit given, where there is one."""
    if given is not None and given < 1:
        raise BadInput(f"a limit of {given} changed features finds nothing: give 1 or more, or None")
    return width if given is None else min(given, width)


def widths(domain: Domain) -> Matrix:
    """How wide each feature's range is, to compare moves by; 1 for a constant."""
    width = domain.upper - domain.lower
    return np.where(width > 0, width, 1.0)


def _check(x: Matrix, domain: Domain, wanted: Wanted) -> None:
    if x.ndim != 2 or x.shape[1] != len(domain.base):
        raise BadInput(f"rows of shape {x.shape} for a domain of {len(domain.base)} features")
    check_domain(domain)
    if not np.isfinite(x).all():
        row, feature = np.argwhere(~np.isfinite(x))[0]
        raise BadInput(f"row {row}, feature {domain.features[feature]}: only finite values can be explained")
    if not 0 <= wanted.kappa < 1:
        raise BadInput(f"kappa {wanted.kappa} is not a margin in probability: 0 <= kappa < 1")
    if wanted.max_queries is not None and wanted.max_queries < len(x):
        raise BadInput(
            f"max_queries {wanted.max_queries} does not even cover the classes of the {len(x)} rows: give more, or None"
        )
