"""Rule sets: label, probabilities, scores and reason must all use the same points per class."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql.arithmetic import joined_of, points_of, weighted_sum
from gbfl_compile.checking.strict.sql.values import (
    Behind,
    Contest,
    DoubtfulValue,
    Number,
    Points,
    Share,
    Top,
    Value,
    Weight,
)
from gbfl_compile.ir.nodes import Band

Winner = Callable[[Value], int]
Terms = tuple[int, frozenset[tuple[int, int]]]
"""A sum, as far as two sums are the same."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The sums of the classes, the scale of the probabilities, and the text of each rule."""

    sums: tuple[Points, ...]
    scale: int | None
    words: tuple[tuple[int, str], ...] | None
    constants: tuple[float, ...] | None
    """Probabilities that are written out, the same for every row."""
    bands: tuple[tuple[Band, ...], ...] = ()
    """Probabilities by the lead of the class that wins."""


NOTHING = Points(0, {}, 0, wide=True)


def rule_set(
    classes: int,
    winner: Winner,
    label: Value,
    probabilities: Sequence[Value],
    scores: Sequence[Value],
    reason: Value | None,
) -> Rules:
    """The points behind the answers, or Unread where the answers are not made of the same points."""
    by_label = _sums_of_label(classes, winner, label)
    sums = tuple(points_of(score) for score in scores) or by_label
    if sums is None:
        sums = _constant(classes, winner(label))
    elif by_label is not None and not _same_contest(sums, by_label):
        raise Unread("the label is decided by other points than the scores")
    elif by_label is None and classes > 1 and winner(label) != _first_at_top(sums):
        raise Unread("the label is not the class with most points")
    words = None if reason is None else joined_of(reason).parts
    varies = classes > 1 and any(points.terms for points in sums)
    if any(isinstance(share, DoubtfulValue) or (varies and isinstance(share, Number)) for share in probabilities):
        return Rules(sums, None, words, None, _bands(probabilities, sums))
    scale = _scale(probabilities, sums)
    written = tuple(share.value for share in probabilities if isinstance(share, Number))
    return Rules(sums, scale, words, written if probabilities and scale is None else None)


def _constant(classes: int, winner: int) -> tuple[Points, ...]:
    """Points for a label that is always the same, where the text does not show the true ones."""
    one = Points(1, {}, 1, wide=True)
    return tuple(one if index == winner else NOTHING for index in range(classes))


def _first_at_top(sums: Sequence[Points]) -> int:
    if any(points.terms for points in sums):
        raise Unread("the label is always the same, and the scores are not")
    biases = [points.bias for points in sums]
    return biases.index(max(biases))


def _less(one: Points, other: Points) -> Points:
    return weighted_sum(_wide(one), _wide(other), -1)


def _wide(points: Points) -> Points:
    """For sums of our own, which no engine computes."""
    return Points(points.bias, points.terms, 0, wide=True)


def _terms(points: Points) -> Terms:
    return points.bias, frozenset(points.terms.items())


def _same_contest(one: Sequence[Points], other: Sequence[Points]) -> bool:
    """Whether the sums differ by the same for all classes."""
    return all(_terms(_less(one[index], one[0])) == _terms(_less(other[index], other[0])) for index in range(len(one)))


def _sums_of_label(classes: int, winner: Winner, label: Value) -> tuple[Points, ...] | None:
    """The sums a label is decided by, up to a sum that all classes share; None where it is always the same."""
    if not isinstance(label, DoubtfulValue):
        winner(label)
        return None
    ends = [winner(end) for _, end in label.whens] + [winner(label.otherwise)]
    contests = [parts for parts, _ in label.whens]
    if classes == 2 and ends == [1, 0] and len(contests[0]) == 1 and contests[0][0].sign == ">":
        left, right = contests[0][0].left, contests[0][0].right
        if isinstance(right, Points):
            return right, left
    if ends != list(range(classes)):
        raise Unread("the label is not the first class with most points")
    if all(len(parts) == 1 and isinstance(parts[0].right, Top) for parts in contests):
        return _against_top(classes, contests)
    return _in_pairs(contests)


def _against_top(classes: int, contests: Sequence[Sequence[Contest]]) -> tuple[Points, ...]:
    """`WHEN points_0 = top THEN class 0 WHEN points_1 = top …`."""
    tops = {tuple(map(_terms, parts[0].right.sums)) for parts in contests if isinstance(parts[0].right, Top)}
    top = contests[0][0].right
    if len(tops) != 1 or not isinstance(top, Top) or len(top.sums) != classes:
        raise Unread("the label is compared with the greatest of other sums than one for each class")
    for index, (contest,) in enumerate(contests):
        if contest.sign != "=" or _terms(contest.left) != _terms(top.sums[index]):
            raise Unread(f"class {index} is not won where its own points are the greatest")
    return top.sums


def _in_pairs(contests: Sequence[Sequence[Contest]]) -> tuple[Points, ...]:
    """`WHEN ahead of 1 >= 0 AND ahead of 2 >= 0 THEN class 0 …`: each class against all after it.

    The last class gets no points; the points of another are the one difference that explains all of its own.
    """
    sums: list[Points] = [NOTHING]
    for parts in reversed(contests):
        ahead = []
        for part in parts:
            if part.sign != ">=" or not isinstance(part.right, Points) or _terms(part.right) != (0, frozenset()):
                raise Unread("a class is won by something other than being ahead of each later one")
            ahead.append(part.left)
        wanted = Counter(map(_terms, ahead))
        for points in ahead:
            if Counter(_terms(_less(points, other)) for other in sums) == wanted:
                sums.insert(0, points)
                break
        else:
            raise Unread("a class is won by something other than being ahead of each later one")
    return tuple(sums)


def _bands(shares: Sequence[Value], sums: Sequence[Points]) -> tuple[tuple[Band, ...], ...]:
    """The bands of each class, from a column of constants per class, each by its own leads."""
    ahead = [[_terms(_less(one, other)) for other in sums] for one in sums]
    columns = [_constants_by_lead(share, ahead) for share in shares]
    bands = []
    for c in range(len(sums)):
        leads = sorted({lead for column in columns for lead in column[c]})
        own = (Band(lead, tuple(_constant_at(column[c], lead) for column in columns)) for lead in leads)
        bands.append(tuple(own))
    return tuple(bands)


def _constant_at(steps: Mapping[int, float], lead: int) -> float:
    return steps[max(least for least in steps if least <= lead)]


def _constants_by_lead(share: Value, ahead: Sequence[Sequence[Terms]]) -> list[dict[int, float]]:
    """For each class that wins, the constant from each lead on; what no WHEN tests is left to the ELSE."""
    if isinstance(share, Number):
        return [{0: _share(share)} for _ in ahead]
    if not isinstance(share, DoubtfulValue):
        raise Unread("a probability by something other than the lead of the class that wins")
    steps: list[dict[int, float]] = [{} for _ in ahead]
    for contests, end in share.whens:
        c, lead = _won_by(contests, ahead)
        if lead >= min(steps[c], default=math.inf):
            raise Unread("a band that comes after one that has it already")
        steps[c][lead] = _share(end)
    for own in steps:
        own.setdefault(0, _share(share.otherwise))
    return steps


def _share(end: Value) -> float:
    if not isinstance(end, Number) or not math.isfinite(end.value):
        raise Unread("a probability that is not a double")
    return end.value


def _won_by(contests: Sequence[Contest], ahead: Sequence[Sequence[Terms]]) -> tuple[int, int]:
    """The class that wins, and its least lead, where the contests are all won.

    A class wins by `lead` where it has that many points more than each other class, and against a lower class one at
    least. A contest between sums that are apart by the same on every row may be left out if it is won.
    """
    parts: Counter[tuple[Terms, int]] = Counter()
    for contest in contests:
        if contest.sign != ">=" or not isinstance(contest.right, Points) or contest.right.terms:
            raise Unread("a band by something other than points against a number")
        parts[_terms(contest.left), contest.right.bias] += 1
    most = max(least for _, least in parts)
    if most < 0:
        raise Unread("a band for a class that does not win")
    for c, others in enumerate(ahead):
        for lead in (most, 0):
            needs = [(terms, max(lead, int(o < c))) for o, terms in enumerate(others) if o != c]
            left_out = Counter(needs) - parts
            if not parts - Counter(needs) and all(not terms and bias >= n for ((bias, terms), n) in left_out):
                return c, lead
    raise Unread("a band that is not the lead of the class that wins")


def _scale(shares: Sequence[Value], sums: Sequence[Points]) -> int | None:
    """The scale of probabilities that are the softmax of the sums; None where there are none, or constants."""
    if not shares:
        return None
    if len(sums) == 1 and shares[0] == Number(1.0):
        return 0
    if all(isinstance(share, Number) for share in shares) and not any(points.terms for points in sums):
        return None
    scales: set[int] = set()
    for index, share in enumerate(shares):
        if not isinstance(share, Share):
            raise Unread(f"the probability of class {index} is not a weight over a sum of weights")
        found = _against_itself(index, share, sums) if share.part is None else _of_weights(index, share, sums)
        scales.update(found)
    if len(scales) != 1:
        raise Unread("the probabilities do not give a point the same worth")
    return scales.pop()


def _against_itself(index: int, share: Share, sums: Sequence[Points]) -> set[int]:
    """`1 / (1 + EXP(other - own) + …)`."""
    weights = [part for part in share.of.parts if part is not None]
    wanted = Counter(_terms(_less(other, sums[index])) for place, other in enumerate(sums) if place != index)
    found = Counter(_terms(part.of) for part in weights if isinstance(part.of, Points))
    if len(share.of.parts) - len(weights) != 1 or found != wanted or len(weights) != len(sums) - 1:
        raise Unread(f"the probability of class {index} is not made of the points")
    return {part.scale for part in weights}


def _of_weights(index: int, share: Share, sums: Sequence[Points]) -> set[int]:
    """`weight / (weight_0 + weight_1 + …)`, each weight against the greatest sum."""
    weights = [part for part in share.of.parts if part is not None]
    if share.part is None or len(weights) != len(share.of.parts) or len(weights) != len(sums):
        raise Unread(f"the probability of class {index} is not over one weight for each class")
    own = [_against_greatest(part, sums) for part in weights]
    tops = {top for _, top in own}
    if len(tops) != 1 or Counter(points for points, _ in own) != Counter(next(iter(tops))):
        raise Unread(f"the probability of class {index} is not over the weight of each class")
    if _against_greatest(share.part, sums)[0] != next(iter(tops))[index]:
        raise Unread(f"the probability of class {index} is that of another class")
    return {share.part.scale, *(part.scale for part in weights)}


def _against_greatest(weight: Weight, sums: Sequence[Points]) -> tuple[Terms, tuple[Terms, ...]]:
    """The sum of a weight, and the sums it is taken against the greatest of: one for each class, in order."""
    behind = weight.of
    if not isinstance(behind, Behind) or len(behind.top.sums) != len(sums):
        raise Unread("a weight that is not taken against the greatest of the points")
    if not _same_contest(behind.top.sums, sums):
        raise Unread("a weight that is taken against the greatest of other points")
    return _terms(behind.points), tuple(map(_terms, behind.top.sums))
