"""Which groups of rows a program treats differently from all other rows: by values of words, by quarters of numbers.

Counted on held-out rows. A difference is kept with an interval that is widened for the number of comparisons, so that
chance among many groups is not taken for one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.ir.batch import Matrix, evaluate_many
from gbfl_compile.ir.kinds import Codebook
from gbfl_compile.ir.nodes import Interval, OneOf, Program
from gbfl_compile.ir.text import atom_text

FEWEST_ROWS = 20
"""Smaller groups, and groups that leave fewer others, are not compared."""
MOST_VALUES = 12
"""Values of a word or of a whole number that are compared one by one, the commonest ones."""
MOST_KEPT = 12
ERROR_RATE = 0.05
"""The chance that any interval at all misses the true difference, over all comparisons."""

Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Value:
    """The rows in which a feature has one value, or none."""

    feature: int
    value: float | None


Group: TypeAlias = Value | OneOf | Interval


def compare_groups(program: Program, x: Matrix, y: NDArray[Any], book: Codebook | None = None) -> dict[str, Any]:
    """The groups whose answers or errors differ most from those of all other rows, as JSON.

    `x` and `y` are rows that nothing was fitted to, and their true classes; a `book` has the codes of the words.
    """
    labels = evaluate_many(program, x, book).labels.tolist()
    answered = np.array([program.classes.index(label) for label in labels], dtype=np.int64)
    places = {label: place for place, label in enumerate(program.classes)}
    true = np.array([places.get(label, -1) for label in y.tolist()], dtype=np.int64)
    groups = [
        (group, rows)
        for feature in range(len(program.features))
        for group, rows in _groups(program, feature, x[:, feature], book)
        if FEWEST_ROWS <= rows.sum() <= len(x) - FEWEST_ROWS
    ]
    z = NormalDist().inv_cdf(1 - ERROR_RATE / (2 * max(1, len(groups)) * (len(program.classes) + 1)))
    forms = [(group, _form(program, group, rows, answered, true, z)) for group, rows in groups]
    forms.sort(key=lambda each: -_most_surely(each[1]))
    kept = [(group, form) for group, form in forms if _most_surely(form) > 0][:MOST_KEPT]
    groups_kept = [{"group": _text(program, group), **form} for group, form in kept]
    return {"rows": len(x), "compared": len(groups), "groups": groups_kept}


def _groups(program: Program, feature: int, column: Matrix, book: Codebook | None) -> Iterator[tuple[Group, Mask]]:
    """Each group of a feature, and which rows are in it."""
    kind = program.kind(feature)
    missing = np.isnan(column)
    if missing.any():
        yield Value(feature, None), missing
    known = column[~missing]
    values, counts = np.unique(known, return_counts=True)
    commonest = [float(values[place]) for place in np.argsort(-counts, kind="stable")[:MOST_VALUES]]
    if kind == "category":
        for code in commonest:
            texts = book.texts[feature] if book is not None else ()
            if 1 <= code <= len(texts):
                yield OneOf(feature, (texts[int(code) - 1],), False, False), column == code
    elif kind == "boolean" or (len(values) <= MOST_VALUES and kind == "number"):
        for value in commonest:
            yield Value(feature, value), column == value
    elif len(values) > 1:
        cuts = np.unique(np.quantile(known, (0.25, 0.5, 0.75), method="lower"))
        for low, high in zip([None, *cuts.tolist()], [*cuts.tolist(), None], strict=True):
            inside = ~missing if low is None else column >= low
            inside = inside if high is None else inside & (column < high)
            yield Interval(feature, low, high), inside


def _text(program: Program, group: Group) -> str:
    """A group in words."""
    if not isinstance(group, Value):
        return atom_text(group, program.features, program.kinds)
    name, value = program.features[group.feature], group.value
    if value is None:
        return f"{name} is missing"
    if program.kind(group.feature) == "boolean":
        return f"{name} is {'true' if value else 'false'}"
    return f"{name} is {value:g}"


def _form(
    program: Program, group: Group, rows: Mask, answered: NDArray[Any], true: NDArray[Any], z: float
) -> dict[str, Any]:
    """One group beside all other rows: the class whose share differs most, and the errors."""
    shares = [_difference(answered == place, rows, z) for place in range(len(program.classes))]
    rarity = [int((answered != place).sum()) for place in range(len(shares))]  # of two classes, the rarer answer
    place = max(range(len(shares)), key=lambda each: (len(shares) > 2 and _surely(shares[each]["gap"]), rarity[each]))
    tested = {atom.feature for clause in program.clauses for atom in clause.atoms}
    return {
        "feature": program.features[group.feature],
        "tested": group.feature in tested,
        "rows": int(rows.sum()),
        "class": place,
        "answers": shares[place],
        "true": [int((true[each] == place).sum()) for each in (rows, ~rows)],
        "errors": _difference(answered != true, rows, z),
    }


def _difference(hits: Mask, rows: Mask, z: float) -> dict[str, Any]:
    """Counts in the group and among all others, and an interval of the difference of their shares (Newcombe's)."""
    counts = [int(hits[each].sum()) for each in (rows, ~rows)]
    totals = [int(each.sum()) for each in (rows, ~rows)]
    first, second = (count / total for count, total in zip(counts, totals, strict=True))
    (low, high), (other_low, other_high) = (
        score_interval(count, total, z) for count, total in zip(counts, totals, strict=True)
    )
    gap = first - second
    below = math.hypot(first - low, other_high - second)
    above = math.hypot(high - first, second - other_low)
    return {"counts": counts, "of": totals, "gap": [round(gap - below, 4), round(gap + above, 4)]}


def score_interval(count: int, total: int, z: float) -> tuple[float, float]:
    """Wilson's interval of a share.

    >>> tuple(round(end, 3) for end in score_interval(8, 10, 1.96))
    (0.49, 0.943)
    """
    share, square = count / total, z * z
    middle = (share + square / (2 * total)) / (1 + square / total)
    half = z / (1 + square / total) * math.sqrt(share * (1 - share) / total + square / (4 * total * total))
    return max(0.0, middle - half), min(1.0, middle + half)


def _most_surely(form: dict[str, Any]) -> float:
    """By which a group differs at the least, in its answers or its errors."""
    return max(_surely(form["answers"]["gap"]), _surely(form["errors"]["gap"]))


def _surely(gap: Sequence[float]) -> float:
    """How far a difference is from none at the least, by its interval; not positive where it may be none."""
    return max(gap[0], -gap[1])
