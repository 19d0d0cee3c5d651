"""Does every row in a box get the same class? Decided exactly, or left open when the steps run out.

A box lists the values each feature may have; a feature it does not name may have any. The search splits boxes along
the clauses it meets, so it looks only at those the class depends on. A program is prepared for it once: every bound in
one array, so that a box is compared with all clauses together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.ir.evaluate import clause_holds
from gbfl_compile.ir.intervals import (
    ANYTHING,
    Allowed,
    Texts,
    Values,
    above,
    allowed_by,
    allows_all,
    below,
    both_allow,
    refused_by,
)
from gbfl_compile.ir.kinds import codebook, other_text, plain_value
from gbfl_compile.ir.nodes import Atom, Clause, Kind, Leaf, Program, Scorecard, Tree

Plain: TypeAlias = float | str | None
"""A value as the language compares it: a double (a date is its days), a text, or None where it is missing."""

ABSENT = Values(math.inf, -math.inf, True)
"""The missing value alone."""


def plain_row(program: Program, row: Sequence[object]) -> list[Plain]:
    """A row as the language compares it; -0.0 is 0.0."""
    values = [plain_value(program.kind(i), value, program.features[i]) for i, value in enumerate(row)]
    return [value + 0.0 if isinstance(value, float) else value for value in values]


def is_whole(kind: Kind) -> bool:
    """Whether the values of a kind are whole numbers: days, microseconds."""
    return kind in ("date", "timestamp")


def _whole(allowed: Allowed, kind: Kind) -> Allowed:
    """The range with whole ends where only whole numbers exist, so that none is left that has no value in it."""
    if not is_whole(kind) or not isinstance(allowed, Values):
        return allowed
    least, most = (
        float(end(bound)) if math.isfinite(bound) else bound
        for end, bound in ((math.ceil, allowed.least), (math.floor, allowed.most))
    )
    return Values(least + 0.0, most + 0.0, allowed.missing)


def inside_of(program: Program, atom: Atom) -> Allowed:
    """The values on which an atom holds."""
    return _whole(allowed_by(atom), program.kind(atom.feature))


def outside_of(program: Program, atom: Atom) -> tuple[Allowed, ...]:
    """The values on which an atom fails, in pieces."""
    return tuple(_whole(piece, program.kind(atom.feature)) for piece in refused_by(atom))


class OutOfSteps(Exception):
    """The search was abandoned: nothing is known."""


@dataclass(slots=True)
class Steps:
    """How much work is left. Not frozen, since it counts down; steps, not seconds, so that answers are repeatable."""

    left: int

    def take(self, count: int = 1) -> None:
        """Use up `count` steps."""
        if self.left <= 0:
            raise OutOfSteps
        self.left -= count


def other_class(prepared: PreparedProgram, box: Box, label: int, steps: Steps) -> Box | None:
    """A smaller box whose rows all get a class other than `label`; None where every row of `box` gets `label`."""
    match prepared.program.decision:
        case Tree():
            return _other_leaf(prepared, prepared.program.decision, box, label, steps)
        case Scorecard():
            card, classes = prepared.program.decision, range(len(prepared.program.classes))
            boxes = (_rival_wins(prepared, card, box, label, c, steps) for c in classes if c != label)
            return next((smaller for smaller in boxes if smaller is not None), None)
        case _:
            assert_never(prepared.program.decision)


def _other_leaf(prepared: PreparedProgram, tree: Tree, box: Box, label: int, steps: Steps) -> Box | None:
    """Walk down the tree with what can get there; a box is split only by a clause that holds on some of its rows."""
    waiting = [(0, box)]
    while waiting:
        steps.take()
        index, here = waiting.pop()
        if prepared.answers[index] == {label}:
            continue
        node = tree.nodes[index]
        if isinstance(node, Leaf):
            return here
        holds = _holds(here, prepared.ranges[node.clause])
        if holds is not None:
            waiting.append((node.then if holds else node.otherwise, here))
            continue
        inside, pieces = divide(prepared.program, here, prepared.program.clauses[node.clause])
        waiting += [(node.otherwise, piece) for piece in pieces]
        if inside is not None:
            waiting.append((node.then, inside))
    return None


def _rival_wins(
    prepared: PreparedProgram, card: Scorecard, box: Box, label: int, rival: int, steps: Steps
) -> Box | None:
    """A box in which class `rival` beats `label`: branch on the clause worth most, bound by all that could still hold.

    A rival with equally many points wins only if it comes first. Looking at one open clause is one step.
    """
    assert prepared.points is not None  # noqa: S101 - a rule set
    worth = prepared.points[:, rival] - prepared.points[:, label]
    start = card.bias[rival] - card.bias[label]
    least = 0 if rival < label else 1
    waiting = [box]
    while waiting:
        here = waiting.pop()
        always, sometimes = clauses_in(prepared, here)
        left = np.where(sometimes & ~always, worth, 0)
        steps.take(1 + int(np.count_nonzero(left)))
        lead = start + int(worth[always].sum())
        if lead + int(left[left > 0].sum()) < least:
            continue
        if lead + int(left[left < 0].sum()) >= least:
            return here
        widest = int(np.argmax(np.abs(left)))
        inside, pieces = divide(prepared.program, here, prepared.program.clauses[widest])
        inner = [] if inside is None else [inside]
        # the side that helps the rival is examined first, so it is pushed last
        waiting += [*pieces, *inner] if worth[widest] > 0 else [*inner, *pieces]
    return None


def _holds(box: Box, ranges: Sequence[tuple[int, Allowed]]) -> bool | None:
    """Whether a clause of these ranges holds on every row of the box, on none (False), or on some (None)."""
    always = True
    for feature, values in ranges:
        known = box.get(feature)
        if known is None:
            always = always and allows_all(values, ANYTHING)
        elif both_allow(known, values).empty:
            return False
        else:
            always = always and allows_all(values, known)
    return True if always else None


def divide(program: Program, box: Box, clause: Clause) -> tuple[Box | None, list[Box]]:
    """The part of a box where the clause holds, if any, and the rest of it in boxes that do not overlap."""
    here = dict(box)
    pieces: list[Box] = []
    for atom in clause.atoms:
        known = here.get(atom.feature, ANYTHING)
        for left in (both_allow(known, piece) for piece in outside_of(program, atom)):
            if not left.empty:
                pieces.append({**here, atom.feature: left})
        inside = both_allow(known, inside_of(program, atom))
        if inside.empty:
            return None, pieces
        here[atom.feature] = inside
    return here, pieces


def row_in(box: Box, like: Sequence[Plain], kinds: Sequence[Kind] = ()) -> list[Plain]:
    """The row of the box that is nearest to `like`."""
    return [
        _nearest(box.get(feature, ANYTHING), value, kinds[feature] if kinds else "number")
        for feature, value in enumerate(like)
    ]


def _nearest(allowed: Allowed, value: Plain, kind: Kind) -> Plain:
    if kind in ("category", "boolean"):
        return _nearest_text(both_allow(allowed, Texts()), value, kind)
    assert isinstance(allowed, Values)  # noqa: S101 - only categories and booleans have texts
    if not isinstance(value, float) or not allowed.has_numbers:
        return None if allowed.missing else _a_number(allowed)
    return min(max(value, allowed.least), allowed.most)


def _nearest_text(allowed: Allowed, value: Plain, kind: Kind) -> str | None:
    assert isinstance(allowed, Texts)  # noqa: S101 - what two sets allow is a set
    if isinstance(value, str) and value in allowed:
        return value
    if allowed.missing and (value is None or not (allowed.listed or allowed.negated)):
        return None
    if not allowed.negated:
        return min(allowed.listed)
    return "false" if kind == "boolean" else other_text(allowed.listed)


def _a_number(values: Values) -> float:
    """Some number in the range, a finite one if there is any."""
    finite = (v for v in (0.0, values.least, values.most) if values.least <= v <= values.most and math.isfinite(v))
    return next(finite, values.least)


def cells(program: Program) -> list[list[Allowed]]:
    """For each feature its cells: ranges of numbers, ascending, or sets of texts, that no clause can tell apart."""
    starts: list[set[float]] = [{-math.inf} for _ in program.features]
    for clause in program.clauses:
        for atom in clause.atoms:
            inside = inside_of(program, atom)
            if isinstance(inside, Values):
                starts[atom.feature].add(inside.least)
                if inside.most < math.inf:
                    starts[atom.feature].add(
                        inside.most + 1 if is_whole(program.kind(atom.feature)) else above(inside.most)
                    )
    texts = codebook(program).texts
    every: list[list[Allowed]] = []
    for feature, one in enumerate(starts):
        kind = program.kind(feature)
        every.append(_sets(texts[feature]) if kind in ("category", "boolean") else _ranges(sorted(one), kind))
    return every


def _ranges(starts: list[float], kind: Kind) -> list[Allowed]:
    following = [*starts[1:], None]
    last = [math.inf if end is None else end - 1 if is_whole(kind) else below(end) for end in following]
    return [Values(start, most, False) for start, most in zip(starts, last, strict=True)]


def _sets(texts: Sequence[str]) -> list[Allowed]:
    """Each text by itself, and any other."""
    return [*(Texts(frozenset({text}), False, False) for text in texts), Texts(frozenset(texts), True, False)]


def cell_of(ranges: Sequence[Allowed], value: Plain) -> Allowed:
    """The cell that contains a value; the missing value has its own."""
    if value is None:
        return Texts(frozenset(), False, True) if isinstance(ranges[0], Texts) else ABSENT
    return next(cell for cell in ranges if _has(cell, value))


def _has(cell: Allowed, value: float | str) -> bool:
    if isinstance(cell, Texts):
        return isinstance(value, str) and value in cell
    return not isinstance(value, str) and cell.least <= value <= cell.most


Box: TypeAlias = Mapping[int, Allowed]
"""The values each feature may have; a feature it does not name may have any."""

Truths: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The ranges of all clauses one after the other; a clause without any gets one that contains every value.

    So does an atom on a category: those are in `PreparedProgram.words`.
    """

    feature: NDArray[np.int64]
    least: NDArray[np.float64]
    most: NDArray[np.float64]
    missing: Truths
    first: NDArray[np.int64]
    """Where each clause's ranges begin."""


@dataclass(frozen=True, slots=True)
class PreparedProgram:
    """A program with everything the searches need, computed once."""

    program: Program
    ranges: tuple[tuple[tuple[int, Allowed], ...], ...]
    """For each clause its (feature, values)."""
    words: tuple[tuple[int, int, Texts], ...]
    """(clause, feature, texts) of each atom on a category or a boolean."""
    bounds: Bounds
    points: NDArray[np.int64] | None
    """`[clauses, classes]` of a rule set."""
    answers: tuple[frozenset[int], ...]
    """For each node of a tree the classes of the leaves below it."""

    @property
    def width(self) -> int:
        """How many features a row has."""
        return len(self.program.features)


def prepare(program: Program) -> PreparedProgram:
    """Compute what the searches need, once per program."""
    ranges = tuple(
        tuple((atom.feature, inside_of(program, atom)) for atom in clause.atoms) for clause in program.clauses
    )
    words = tuple(
        (number, feature, texts)
        for number, clause in enumerate(ranges)
        for feature, texts in clause
        if isinstance(texts, Texts)
    )
    card = program.decision if isinstance(program.decision, Scorecard) else None
    points = None if card is None else np.array(card.points, dtype=np.int64).reshape(len(ranges), len(program.classes))
    answers = _answers(program.decision) if isinstance(program.decision, Tree) else ()
    return PreparedProgram(program, ranges, words, _bounds(ranges), points, answers)


def _bounds(ranges: Sequence[tuple[tuple[int, Allowed], ...]]) -> Bounds:
    listed = [clause or ((0, ANYTHING),) for clause in ranges]
    flat = [(f, values if isinstance(values, Values) else ANYTHING) for clause in listed for f, values in clause]
    starts = np.cumsum([0, *(len(clause) for clause in listed)])[:-1]
    return Bounds(
        np.array([feature for feature, _ in flat], dtype=np.int64),
        np.array([values.least for _, values in flat], dtype=np.float64),
        np.array([values.most for _, values in flat], dtype=np.float64),
        np.array([values.missing for _, values in flat], dtype=np.bool_),
        starts.astype(np.int64),
    )


def _answers(tree: Tree) -> tuple[frozenset[int], ...]:
    below: list[frozenset[int]] = [frozenset()] * len(tree.nodes)
    for index in reversed(range(len(tree.nodes))):  # children come after their parents
        node = tree.nodes[index]
        below[index] = frozenset({node.winner}) if isinstance(node, Leaf) else below[node.then] | below[node.otherwise]
    return tuple(below)


def clauses_in(prepared: PreparedProgram, box: Box) -> tuple[Truths, Truths]:
    """For each clause whether it holds on every row of a box, and whether on some."""
    least, most = np.full(prepared.width, -np.inf), np.full(prepared.width, np.inf)
    missing = np.ones(prepared.width, dtype=np.bool_)
    for feature, values in box.items():
        if isinstance(values, Texts):
            continue
        least[feature], most[feature], missing[feature] = values.least, values.most, values.missing
    bounds = prepared.bounds
    if not len(bounds.first):
        return np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=np.bool_)
    low, high, may_miss = least[bounds.feature], most[bounds.feature], missing[bounds.feature]
    numbers = (low > high) | ((low >= bounds.least) & (high <= bounds.most))
    every = numbers & (~may_miss | bounds.missing)
    some = (np.maximum(low, bounds.least) <= np.minimum(high, bounds.most)) | (may_miss & bounds.missing)
    always, sometimes = np.logical_and.reduceat(every, bounds.first), np.logical_and.reduceat(some, bounds.first)
    for clause, feature, texts in prepared.words:
        known = box.get(feature, ANYTHING)
        always[clause] &= allows_all(texts, known)
        sometimes[clause] &= not both_allow(texts, known).empty
    return always, sometimes


def class_of(prepared: PreparedProgram, row: Sequence[Plain]) -> int:
    """The class of a row; None is missing. All clauses of a rule set are evaluated at once."""
    card = prepared.program.decision
    if isinstance(card, Tree):
        return _leaf_class(prepared.program, card, row)
    assert prepared.points is not None  # noqa: S101 - a rule set
    values = {feature: _only(value, prepared.program.kind(feature)) for feature, value in enumerate(row)}
    holds, _ = clauses_in(prepared, values)
    scores = np.array(card.bias, dtype=np.int64) + prepared.points[holds].sum(axis=0)
    return int(np.argmax(scores))  # the first of equal ones


def _leaf_class(program: Program, tree: Tree, row: Sequence[Plain]) -> int:
    index = 0
    while not isinstance(node := tree.nodes[index], Leaf):
        index = node.then if clause_holds(program.clauses[node.clause], row) else node.otherwise
    return node.winner


def _only(value: Plain, kind: Kind) -> Allowed:
    """One value as a range or a set."""
    if isinstance(value, str):
        return Texts(frozenset({value}), False, False)
    if value is None or value != value:
        return Texts(frozenset(), False, True) if kind in ("category", "boolean") else ABSENT
    return Values(value + 0.0, value + 0.0, False)
