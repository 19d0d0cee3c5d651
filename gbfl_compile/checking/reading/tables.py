"""The tables around the rules, checked as far as a reading needs: shapes, kinds, and places that exist."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from gbfl_compile.checking.reading.nodes import Outcome, Unread
from gbfl_compile.ir.nodes import Band, Label
from gbfl_compile.ir.validate import LARGEST_SCALE

Step: TypeAlias = tuple[int, int, bool]
"""The step before (negative is the start), the clause asked, and whether it held."""


def one_file(files: Mapping[str, bytes], ending: str) -> tuple[str, bytes]:
    """The one file of an artifact that is one file."""
    if len(files) != 1:
        raise Unread(f"{len(files)} files: the artifact is one {ending} file")
    ((name, content),) = files.items()
    if not name.endswith(ending):
        raise Unread(f"{name}: is not a {ending} file")
    return name, content


def feature_names(value: object) -> tuple[str, ...]:
    """Feature names: texts, at least one, no two alike."""
    if not isinstance(value, tuple | list) or not value or not all(isinstance(name, str) for name in value):
        raise Unread("the features are not a row of names")
    if len(set(value)) != len(value):
        raise Unread("two features have the same name")
    return tuple(value)


def class_labels(value: object) -> tuple[Label, ...]:
    """Class labels: of one kind, at least one, no two alike."""
    if not isinstance(value, tuple | list) or not value:
        raise Unread("the classes are not a row of labels")
    kinds = {type(label) for label in value}
    if len(kinds) != 1 or not kinds <= {str, int, float, bool} or len(set(value)) != len(value):
        raise Unread("the classes are not different labels of one kind")
    if any(isinstance(label, float) and not math.isfinite(label) for label in value):
        raise Unread("a class label is not a number")
    return tuple(value)


def leaf_outcome(where: str, winner: object, probabilities: object, classes: int, leaf: int) -> Outcome:
    """What a leaf answers, from its row of a table."""
    if type(winner) is not int or not 0 <= winner < classes:
        raise Unread(f"{where}: {winner!r} is no class, there are {classes}")
    if not isinstance(probabilities, tuple) or len(probabilities) != classes:
        raise Unread(f"{where}: not one probability for each of {classes} classes")
    if not all(isinstance(p, int | float) and not isinstance(p, bool) for p in probabilities):
        raise Unread(f"{where}: a probability is not a number")
    return Outcome(winner, tuple(_as_double(where, p) for p in probabilities), leaf)


def _as_double(where: str, number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        raise Unread(f"{where}: a probability is no double") from None


def way_to(steps: Sequence[Step], last: int, clauses: int) -> tuple[tuple[int, bool], ...]:
    """Each clause asked on the way to a leaf and whether it held, first to last; steps must lead back to the start."""
    way = []
    while last >= 0:
        if last >= len(steps):
            raise Unread(f"step {last} is not there")
        before, clause, holds = steps[last]
        if before >= last or not 0 <= clause < clauses:
            raise Unread(f"step {last} leads on to step {before} and asks clause {clause}")
        way.append((clause, holds))
        last = before
    return tuple(reversed(way))


def reasons_by_clause(value: object, clauses: int) -> tuple[tuple[int, str], ...]:
    """The user's reasons, (clause, text), from texts by the clause's number."""
    if not isinstance(value, dict) or not all(isinstance(text, str) and text for text in value.values()):
        raise Unread("the reasons are not one text per clause")
    if beyond := [clause for clause in value if type(clause) is not int or not 0 <= clause < clauses]:
        raise Unread(f"a reason for clause {beyond[0]!r}, there are {clauses}")
    return tuple(sorted(value.items()))


def rows_of_points(value: object, where: str, classes: int) -> tuple[tuple[int, ...], ...]:
    """Rows of whole numbers, one per class."""
    if not isinstance(value, tuple) or not all(isinstance(row, tuple) and len(row) == classes for row in value):
        raise Unread(f"{where}: not one row of {classes} numbers after another")
    if not all(type(worth) is int for row in value for worth in row):
        raise Unread(f"{where}: points are whole numbers")
    return value


def bands_by_class(value: object, classes: int) -> tuple[tuple[Band, ...], ...]:
    """For each class its bands, from pairs of a least lead, ascending from 0, and one probability per class."""
    if not isinstance(value, tuple) or len(value) != classes or classes < 2:
        raise Unread(f"the bands are not those of {classes} classes")
    bands = []
    for c, own in enumerate(value):
        where = f"the bands of class {c}"
        if not isinstance(own, tuple) or not own or not all(isinstance(b, tuple) and len(b) == 2 for b in own):
            raise Unread(f"{where}: not pairs of a lead and probabilities")
        leads = [least for least, _ in own]
        if any(type(least) is not int for least in leads) or leads[0] != 0 or leads != sorted(set(leads)):
            raise Unread(f"{where}: they do not ascend from 0 in whole points")
        rates = [leaf_outcome(where, 0, probabilities, classes, 0).probabilities for _, probabilities in own]
        bands.append(tuple(Band(least, each) for least, each in zip(leads, rates, strict=True) if each is not None))
    return tuple(bands)


def scale_of(worth: float) -> int:
    """The scale of points that are worth so much of a logit each: 2**-scale."""
    mantissa, exponent = math.frexp(worth)
    if mantissa != 0.5:
        raise Unread(f"a point is worth {worth!r}, which is no power of two")
    return known_scale(1 - exponent)


def known_scale(scale: object) -> int:
    """A scale that a rule program can have."""
    if type(scale) is not int or not 0 <= scale <= LARGEST_SCALE:
        raise Unread(f"points of scale {scale!r}: it goes from 0 to {LARGEST_SCALE}")
    return scale
