"""What all explainers share: their settings, how a margin is measured, and the query budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from gbfl_compile.errors import BadInput
from gbfl_compile.learning.black_box.ask import BlackBox, Bools, Ints, Matrix, probabilities
from gbfl_compile.learning.explain.domain import Domain, check_domain
from gbfl_compile.learning.explain.explanations import Explanations
from gbfl_compile.learning.explain.table_values import differ

WINS = 1e-9
"""A class wins by at least this much: less is a tie that rounding on another machine may turn around."""


@dataclass(frozen=True, slots=True)
class ExplainerSettings:
    """What every explainer should reach; the Domain says what it may do to each feature."""

    kappa: float = 0.5
    """The margin to reach, in probability."""
    max_restored: int | None = None
    """k of equation 1: how many features of a PP may differ from the base; None is no limit."""
    max_moved: int | None = 5
    """k of equation 2: how many features of a PN may differ from x; None is no limit."""
    max_queries: int | None = None
    """How many rows the black box may be asked in all. Rows are explained in order, each completely, as long as
    one more is sure to fit; `Explanations.not_reached` counts the others."""
    seed: int = 0
    """For explainers that draw at random; `greedy` does not."""

    def dearest(self, domain: Domain) -> int:
        """The most rows the black box is asked about to explain one row, not counting the row itself."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Side:
    """One side, PP or PN, of some rows: the point, whether it is one, its margin and its class."""

    point: Matrix
    holds: Bools
    margin: Matrix
    label: Ints


Find: TypeAlias = Callable[[Matrix, Ints, Matrix], tuple[Side, Side]]
"""Rows, their classes and their margins -> their PPs and PNs."""


def explain_rows(
    black_box: BlackBox, x: Matrix, domain: Domain, settings: ExplainerSettings, find: Find
) -> Explanations:
    """A PP and a PN for each row by `find`, which asks about at most `settings.dearest` rows to explain one.

    With a budget rows are explained in blocks that are sure to fit. A row is explained when what the rows before it
    left covers the dearest one, so which rows are reached depends on neither blocks nor units.
    """
    _check(x, domain, settings)
    before = black_box.queries
    answer = probabilities(black_box, x)
    label: Ints = answer.argmax(axis=1)
    margin_x, _ = margins(answer, label)
    pp, pn, pn_label = x.copy(), x.copy(), label.copy()
    pp_margin, pn_margin = margin_x.copy(), -margin_x
    has_pp, has_pn = np.zeros(len(x), dtype=bool), np.zeros(len(x), dtype=bool)
    reached = 0
    while reached < len(x):
        rows = len(x) - reached
        if settings.max_queries is not None:
            rows = min(rows, (settings.max_queries - (black_box.queries - before)) // settings.dearest(domain))
        if rows < 1:
            break
        block = slice(reached, reached + rows)
        positive, negative = find(x[block], label[block], margin_x[block])
        for side, has, point, margin in ((positive, has_pp, pp, pp_margin), (negative, has_pn, pn, pn_margin)):
            has[block] = side.holds
            point[block][side.holds] = side.point[side.holds]
            margin[block][side.holds] = side.margin[side.holds]
        pn_label[block][negative.holds] = negative.label[negative.holds]
        reached += rows
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
        pp_is_base=has_pp & ~differ(pp, np.broadcast_to(domain.base, pp.shape)).any(axis=1),
        queries=black_box.queries - before,
        features=domain.features,
        not_reached=len(x) - reached,
    )


def margins(answer: Matrix, label: Ints) -> tuple[Matrix, Matrix]:
    """C(y) - max of the others, as a difference of probabilities and as a log ratio.

    The difference says by how much a class wins. The ratio guides the search: where the black box is certain,
    every difference rounds to the same 1.0 and the ratio still differs.
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


def changes_allowed(limit: int | None, width: int) -> int:
    """How many features may change: the limit, where there is one."""
    if limit is not None and limit < 1:
        raise BadInput(f"a limit of {limit} changed features finds nothing: give 1 or more, or None")
    return width if limit is None else min(limit, width)


def widths(domain: Domain) -> Matrix:
    """The width of each feature's range, to compare moves by; 1 for a constant."""
    width = domain.upper - domain.lower
    return np.where(width > 0, width, 1.0)


def _check(x: Matrix, domain: Domain, settings: ExplainerSettings) -> None:
    if x.ndim != 2 or x.shape[1] != len(domain.base):
        raise BadInput(f"rows of shape {x.shape} for a domain of {len(domain.base)} features")
    check_domain(domain)
    wrong = ~np.isfinite(x) if domain.table is None else np.isinf(x)
    if wrong.any():
        row, feature = np.argwhere(wrong)[0]
        raise BadInput(f"row {row}, feature {domain.features[feature]}: only finite values can be explained")
    if not 0 <= settings.kappa < 1:
        raise BadInput(f"kappa {settings.kappa} is not a margin in probability: 0 <= kappa < 1")
    most = settings.max_queries
    if most is not None and most < len(x):
        raise BadInput(f"max_queries {most} does not even cover the classes of the {len(x)} rows: give more, or None")
