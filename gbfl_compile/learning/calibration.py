"""Observed rates: a model's probabilities measured on rows the black box never saw. Labels stay as they are.

A leaf gives the share of each class among the rows that ended in it, drawn towards the rows with the same answer. A
rule set gives constants by how far the winner is ahead: about ten bands of equal counts, each rate drawn towards a
logistic curve through the leads, and none lower than that of a smaller lead. For two classes it is one curve through
the lead of the second over the first; for more there is one for each class that wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from gbfl_compile.ir.batch import Answers, score_probabilities
from gbfl_compile.ir.nodes import Band, Decision, Leaf, Scorecard, Tree

Probabilities: TypeAlias = Literal["observed", "score"]
"""What the probabilities of a program are: rates observed on unseen rows, or made of the rules' own scores."""

FEWEST_ROWS = 40
"""With fewer unseen rows than this a rate says little: probabilities stay what the model makes of them."""

BANDS = 10
WORTH = 20.0
"""Rows that those with the same answer count for, beside the rows in a leaf."""
CURVE_WORTH = 50.0
"""Rows that the curve counts for, beside the rows in a band."""
FOLDS = 10

FEWEST_IN_A_BAND = 10
DIGITS = 4

Ints = NDArray[np.int64]
Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ClassRate:
    """How often a class was right where it was answered, and what the black box says it is there on average."""

    rows: int
    observed: float | None
    black_box: float | None


NOT_OBSERVED: Mapping[str, Any] = {"emitted": "score", "why": "no unseen rows were given: see calibrate"}


@dataclass(frozen=True, slots=True)
class Calibration:
    """A decision with observed rates, or as it was where there are too few rows."""

    decision: Decision
    facts: Mapping[str, Any]
    """The note on its probabilities."""
    out_of_fold: Matrix
    """The probabilities of the rows it was observed on, each by rates of the others: as good as those of new rows."""


def calibrate_decision(decision: Decision, answers: Answers, truth: Ints, own: Matrix) -> Calibration:
    """The decision calibrated on rows with these answers and true classes; `own` are the black box's probabilities."""
    if len(truth) < FEWEST_ROWS:
        why = f"{len(truth)} rows to observe on, at least {FEWEST_ROWS} are needed"
        return Calibration(decision, {"emitted": "score", "why": why}, answers.probabilities)
    rates = class_rates(answers.labels.astype(np.int64), truth, own)
    facts = {"emitted": "observed", "rows": len(truth), "by_class": [asdict(each) for each in rates]}
    classes = own.shape[1]
    return Calibration(
        observed_rates(decision, answers, truth, classes), facts, _out_of_fold(decision, answers, truth, classes)
    )


def folds(truth: Ints, classes: int) -> Ints:
    """The part of each row: as many rows of each class in every part, as far as they go."""
    fold = np.empty(len(truth), dtype=np.int64)
    for c in range(classes):
        fold[truth == c] = np.arange(int((truth == c).sum())) % FOLDS
    return fold


def _out_of_fold(decision: Decision, answers: Answers, truth: Ints, classes: int) -> Matrix:
    fold = folds(truth, classes)
    probabilities: Matrix = np.empty((len(truth), classes))
    for number in np.unique(fold):
        here, others = fold == number, np.flatnonzero(fold != number)
        rated = observed_rates(decision, _some(answers, others), truth[others], classes)
        match rated:
            case Tree():
                assert answers.leaves is not None  # noqa: S101 - a tree has leaves
                leaves = np.array([node.probabilities for node in rated.nodes if isinstance(node, Leaf)])
                probabilities[here] = leaves[answers.leaves[here]]
            case Scorecard():
                assert answers.scores is not None  # noqa: S101 - a rule set has scores
                probabilities[here] = score_probabilities(rated, answers.scores[here])
            case _:
                assert_never(rated)
    return probabilities


def _some(answers: Answers, rows: Ints) -> Answers:
    leaves, scores = (None if each is None else each[rows] for each in (answers.leaves, answers.scores))
    return replace(
        answers, labels=answers.labels[rows], probabilities=answers.probabilities[rows], leaves=leaves, scores=scores
    )


def observed_rates(decision: Decision, answers: Answers, truth: Ints, classes: int) -> Decision:
    """The decision with rates observed on some rows: `answers` are its own there, labels as class numbers."""
    won = answers.labels.astype(np.int64)
    match decision:
        case Tree():
            assert answers.leaves is not None  # noqa: S101 - a tree has leaves
            return _observed_leaves(decision, answers.leaves, won, truth, classes)
        case Scorecard():
            assert answers.scores is not None  # noqa: S101 - a rule set has scores
            return _observed_bands(decision, answers.scores, won, truth, classes)
        case _:
            assert_never(decision)


def class_rates(won: Ints, truth: Ints, own: Matrix) -> list[ClassRate]:
    """For each class: observed and by the black box, on the rows where it was answered."""
    rates = []
    for c in range(own.shape[1]):
        here = won == c
        if here.any():
            rates.append(ClassRate(int(here.sum()), float((truth[here] == c).mean()), float(own[here, c].mean())))
        else:
            rates.append(ClassRate(0, None, None))
    return rates


def _prior(won: Ints, truth: Ints, c: int, classes: int) -> Matrix:
    """The shares of the classes where class `c` was answered, one row of each class added."""
    base = np.bincount(truth, minlength=classes) + 1.0
    counts = np.bincount(truth[won == c], minlength=classes) + base / base.sum()
    shares: Matrix = counts / counts.sum()
    return shares


def _observed_leaves(tree: Tree, leaves: Ints, won: Ints, truth: Ints, classes: int) -> Tree:
    nodes: list[Any] = []
    number = 0
    for node in tree.nodes:
        if not isinstance(node, Leaf):
            nodes.append(node)
            continue
        counts = np.bincount(truth[leaves == number], minlength=classes)
        shares = (counts + WORTH * _prior(won, truth, node.winner, classes)) / (counts.sum() + WORTH)
        rated = replace(node, probabilities=_round_shares(shares, node.winner), answer=None)
        nodes.append(rated if rated.winner == node.winner else replace(rated, answer=node.winner))
        number += 1
    return Tree(tuple(nodes))


def _observed_bands(card: Scorecard, scores: Ints, won: Ints, truth: Ints, classes: int) -> Scorecard:
    if classes < 2:
        return card
    ordered = np.sort(scores, axis=1)
    lead = ordered[:, -1] - ordered[:, -2]
    curves = _curves(lead, won, truth, classes)
    bands = []
    for c in range(classes):
        here = won == c
        prior = _prior(won, truth, c, classes)
        rest = np.delete(prior, c) / np.delete(prior, c).sum()
        own: list[Band] = []
        curve = np.full(int(here.sum()), prior[c]) if curves is None else curves[here]
        for least, rate in _rates_by_lead(lead[here], truth[here] == c, curve, float(prior[c]), len(lead)):
            shares = _round_shares(np.insert(rest * (1.0 - rate), c, rate), c)
            if not own or own[-1].probabilities != shares:
                own.append(Band(least, shares))
        bands.append(tuple(own))
    return replace(card, bands=tuple(bands))


def _rates_by_lead(
    lead: Ints, right: NDArray[np.bool_], curve: Matrix, prior: float, rows: int
) -> list[tuple[int, float]]:
    """(least lead, how often it was right), ascending in both."""
    if not len(lead):
        return [(0, prior)]
    many = max(1, min(round(BANDS * len(lead) / rows), len(lead) // FEWEST_IN_A_BAND))
    cuts = np.unique(np.quantile(lead, np.arange(1, many) / many, method="higher"))
    edges = [0, *(int(cut) for cut in cuts if cut > lead.min())]
    place = np.searchsorted(edges, lead, side="right") - 1
    counts = np.bincount(place, minlength=len(edges)).astype(np.float64)
    hits = np.bincount(place, weights=right, minlength=len(edges))
    expected = np.bincount(place, weights=curve, minlength=len(edges)) / np.maximum(counts, 1.0)
    rates = _ascending((hits + CURVE_WORTH * expected) / (counts + CURVE_WORTH), counts)
    return list(zip(edges, rates.tolist(), strict=True))


def _curves(lead: Ints, won: Ints, truth: Ints, classes: int) -> Matrix | None:
    """For each row the chance that its answer is right, by logistic curves; None where no curve says anything."""
    width = max(1.0, float(lead.std()))
    if classes == 2:
        second = _curve(np.where(won == 1, lead, -lead) / width, truth == 1)
        return None if second is None else np.where(won == 1, second, 1.0 - second)
    chances: Matrix = np.empty(len(lead))
    for c in range(classes):
        here = won == c
        curve = _curve(lead[here] / width, truth[here] == c)
        chances[here] = _prior(won, truth, c, classes)[c] if curve is None else curve
    return chances


def _curve(place: Matrix, right: NDArray[np.bool_]) -> Matrix | None:
    if right.all() or not right.any():
        return None
    chances: Matrix = LogisticRegression().fit(place[:, None], right).predict_proba(place[:, None])[:, 1]
    return chances


def _ascending(rates: Matrix, weights: Matrix) -> Matrix:
    """Rates that never fall, nearest to these: neighbours that would are pooled."""
    blocks: list[list[float]] = []
    for rate, weight in zip(rates.tolist(), weights.tolist(), strict=True):
        blocks.append([rate, max(weight, 1e-9), 1.0])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            value, mass, count = blocks.pop()
            before = blocks[-1]
            before[0] = (before[0] * before[1] + value * mass) / (before[1] + mass)
            before[1] += mass
            before[2] += count
    return np.concatenate([np.full(int(count), value) for value, _, count in blocks])


def _round_shares(shares: Matrix, c: int) -> tuple[float, ...]:
    """Shares of few digits that add up to 1, the one of class `c` exact to its digits."""
    short = [round(float(share), DIGITS) for share in shares]
    others = [place for place in range(len(short)) if place != c]
    if others:
        largest = max(others, key=lambda place: short[place])
        rest = round(1.0 - sum(short[place] for place in range(len(short)) if place != largest), DIGITS)
        short[largest] = max(0.0, rest)
    return tuple(share + 0.0 for share in short)
