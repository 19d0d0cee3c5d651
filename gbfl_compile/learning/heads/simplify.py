"""A fitted head made simpler where it stays about as good: one conjunction in its place, and rounder thresholds.

`income > 30000 AND member` alone replaces a longer model that is hardly better; it is searched on finer cuts than a
model of many clauses, because it has no other clause to correct it. `age < 29.8731` becomes `age < 30`: the fewest
digits that leave as many training triplets right. A tree's leaves keep their rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, assert_never

import numpy as np

from gbfl_compile.ir.batch import clause_column, evaluate_many
from gbfl_compile.ir.kinds import Codebook, Columns
from gbfl_compile.ir.nodes import Atom, Clause, Decision, Interval, Leaf, Program, Scorecard, Split, Tree
from gbfl_compile.learning.black_box import Bools, Ints, Matrix
from gbfl_compile.learning.heads import (
    Conjunction,
    Grid,
    Head,
    Triplets,
    clause_from,
    count_bounds,
    holds_on,
    leaf_of,
    promising,
    sum_of_pull,
    without_a_bound,
)
from gbfl_compile.learning.heads.box_search import SearchSettings

Side: TypeAlias = Literal["lo", "hi"]

FINE = 256
"""Cuts per feature and role."""
NEARLY = 0.005
"""A single conjunction may lose this share of the triplets that a longer model has right."""


def one_rule(
    head: Head, triplets: Triplets, grid: Grid, settings: SearchSettings, least_rows: int, book: Codebook | None
) -> Head | None:
    """A tree of one question, where it is shorter than a fitted model and about as good; None elsewhere.

    Each side has at least `least_rows` of the user's own rows.
    """
    box = _best_rule(triplets, grid, settings, least_rows) if head.clauses else None
    if box is None or not _is_longer(head, grid, box):
        return None
    features = tuple(map(str, range(triplets.x.shape[1])))
    fitted = Program(features, tuple(range(triplets.n_classes)), head.clauses, head.decision)
    answers = evaluate_many(fitted, triplets.x, book).labels.astype(np.int64)
    return _as_tree(triplets, grid, box) if _is_enough(triplets, grid, box, answers) else None


def _best_rule(triplets: Triplets, grid: Grid, settings: SearchSettings, least_rows: int) -> Conjunction | None:
    """The conjunction that, alone, makes most triplets of two classes right; the shortest of equals."""
    if triplets.n_classes != 2:
        return None
    pull = (np.where(triplets.goal == 1, 1.0, -1.0) * triplets.counts * triplets.exists)[:, None]
    best: tuple[float, Conjunction] | None = None
    for sign in (1.0, -1.0):
        boxes = promising(grid, sign * pull, np.zeros_like(pull), settings, sum_of_pull)
        for box in list(boxes)[: settings.shortlist]:
            worth = _worth(triplets, grid, box, least_rows)
            if best is None or worth > best[0]:
                best = worth, box
    if best is None or best[0] < 0.0:
        return None
    worth, box = best
    while True:
        shorter = {other: _worth(triplets, grid, other, least_rows) for other in without_a_bound(grid, box)}
        other = max(shorter, key=lambda each: shorter[each], default=box)
        if other == box or shorter[other] < worth:
            return box
        box = other


def _worth(triplets: Triplets, grid: Grid, box: Conjunction, least_rows: int) -> float:
    """The weight of the triplets it makes right, either way round; -1 where a side has too few of the user's rows."""
    holds = holds_on(grid, box)
    rows = int(holds[triplets.own].sum())
    if not least_rows <= rows <= int(triplets.own.sum()) - least_rows:
        return -1.0
    return _right_weight(triplets, np.where(holds, *_sides(triplets, holds)))


def _sides(triplets: Triplets, holds: Bools) -> tuple[int, int]:
    """The classes where it holds and where it does not."""
    mass = np.bincount(2 * holds + triplets.goal, triplets.counts * triplets.exists, 4)
    inside = int(mass[3] * (mass[0] + mass[1]) > mass[1] * (mass[2] + mass[3]))
    return inside, 1 - inside


def _right_weight(triplets: Triplets, answers: Ints) -> float:
    """The weight of the triplets whose x, PP and PN all get a right answer."""
    right = ((answers == triplets.label) ^ triplets.avoids) | ~triplets.exists
    return float(triplets.weight[right.reshape(-1, 3).all(axis=1)].sum())


def _is_enough(triplets: Triplets, grid: Grid, box: Conjunction, answers: Ints) -> bool:
    """Whether the conjunction is about as good on triplets, and as good on own rows, as a model with these answers."""
    holds = holds_on(grid, box)
    alone = np.where(holds, *_sides(triplets, holds))
    own = triplets.own
    wrong, others = (int((each[own] != triplets.label[own]).sum()) for each in (alone, answers))
    least = _right_weight(triplets, answers) - NEARLY * float(triplets.weight.sum())
    return wrong <= others and _right_weight(triplets, alone) >= least


def _as_tree(triplets: Triplets, grid: Grid, box: Conjunction) -> Head:
    """The conjunction as a tree of one question, with the classes of all points in its two leaves."""
    holds = holds_on(grid, box)
    inside, outside = _sides(triplets, holds)

    def mass(here: Bools) -> Matrix:
        return np.bincount(triplets.goal[here], triplets.counts[here], 2).astype(np.float64)

    leaves = leaf_of(mass(holds & triplets.exists), inside), leaf_of(mass(~holds & triplets.exists), outside)
    return Head((clause_from(grid, box),), Tree((Split(0, 1, 2), *leaves)))


def _is_longer(head: Head, grid: Grid, box: Conjunction) -> bool:
    """Whether a model has more to read than the conjunction."""
    sides = [
        max(1, (atom.lo is not None) + (atom.hi is not None)) if isinstance(atom, Interval) else 1
        for clause in head.clauses
        for atom in clause.atoms
    ]
    return len(head.clauses) > 1 or sum(sides) > count_bounds(grid, box)


MOST_DIGITS = 6
"""A threshold that needs more significant digits than this is left as it is."""


def round_thresholds(
    head: Head,
    triplets: Triplets,
    least_rows: int = 0,
    columns: Columns | None = None,
    whole: Sequence[bool] = (),
) -> Head:
    """The head with rounder thresholds and fewer different ones, where no fewer triplets are right.

    Leaves keep `least_rows` of the user's rows, and a clause that holds on some of them but not on all still does.
    Between the whole numbers of a feature that is `whole` a threshold is a whole number, which changes nothing there.
    """
    if not head.clauses:
        return head
    book = None if columns is None else columns.book
    points = np.asfortranarray(triplets.x)  # an atom reads one column: its values lie together then
    clauses = [_on_whole_numbers(clause, whole) for clause in head.clauses]
    holds = np.stack([clause_column(clause, points, book) for clause in clauses])
    right = _right(head.decision, holds, triplets, np.arange(len(points)))
    for number, place, side in 2 * list(_bounds(clauses, columns)):
        for candidate in _rounder(clauses, number, place, side):
            column = clause_column(candidate, points, book)
            changed = np.flatnonzero(column != holds[number])
            before = holds[number].copy()
            holds[number] = column
            there = _right(head.decision, holds, triplets, changed)
            if (
                _change_in_triplets(right, there, changed, triplets) >= 0.0
                and (not changed.size or _fewest_rows(head.decision, holds, triplets) >= least_rows)
                and (_divides(column, triplets) or not _divides(before, triplets))
                and _may_be_equal(head.decision, clauses, number, candidate)
            ):
                right[changed] = there
                clauses[number] = candidate
                break
            holds[number] = before
    return _merge_clauses(Head(tuple(clauses), head.decision))


def _bounds(clauses: Sequence[Clause], columns: Columns | None) -> Iterator[tuple[int, int, Side]]:
    """Every threshold on a number, not on a date: its clause, its atom, its side."""
    for number, clause in enumerate(clauses):
        for place, atom in enumerate(clause.atoms):
            if isinstance(atom, Interval) and (columns is None or columns.kinds[atom.feature] == "number"):
                for side, value in (("lo", atom.lo), ("hi", atom.hi)):
                    if value is not None and np.isfinite(value):
                        yield number, place, "lo" if side == "lo" else "hi"


def _rounder(clauses: Sequence[Clause], number: int, place: int, side: Side) -> Iterator[Clause]:
    """The clause with fewer digits in one threshold, fewest first; of as many, one that another clause has first."""
    clause = clauses[number]
    atom = clause.atoms[place]
    assert isinstance(atom, Interval)  # noqa: S101 - only intervals are listed
    value = atom.lo if side == "lo" else atom.hi
    assert value is not None  # noqa: S101 - only thresholds are listed
    others = _neighbours(clauses, atom.feature, value)
    for digits in range(1, MOST_DIGITS):
        rounded = float(f"{value:.{digits}g}") + 0.0
        others_as_short = [each for each in others if float(f"{each:.{digits}g}") == each]
        for candidate in dict.fromkeys((*others_as_short, rounded)):
            other = replace(atom, lo=candidate) if side == "lo" else replace(atom, hi=candidate)
            if candidate == value or (other.lo is not None and other.hi is not None and other.lo >= other.hi):
                continue
            yield Clause((*clause.atoms[:place], other, *clause.atoms[place + 1 :]))
        others = [each for each in others if each not in others_as_short]
        if rounded == value:
            return


def _neighbours(clauses: Sequence[Clause], feature: int, value: float) -> list[float]:
    """The next thresholds below and above that clauses have on a feature, the nearer first."""
    atoms = (atom for clause in clauses for atom in clause.atoms)
    every = {
        bound
        for atom in atoms
        if isinstance(atom, Interval) and atom.feature == feature
        for bound in (atom.lo, atom.hi)
        if bound is not None
    }
    nearest = [max((each for each in every if each < value), default=None)]
    nearest.append(min((each for each in every if each > value), default=None))
    return sorted((each for each in nearest if each is not None), key=lambda each: (abs(each - value), each))


def _divides(column: Bools, triplets: Triplets) -> bool:
    """Whether a clause holds on some rows of the user's own and not on others."""
    own = column[triplets.own]
    return bool(own.any() and not own.all())


def _may_be_equal(decision: Decision, clauses: Sequence[Clause], number: int, candidate: Clause) -> bool:
    """Whether the clause may become this one: equal clauses are merged, and points stay within the largest."""
    if isinstance(decision, Tree) or candidate not in clauses:
        return True
    both = [decision.points[at] for at in (number, clauses.index(candidate))]
    most = max(abs(worth) for points in decision.points for worth in points)
    return all(abs(sum(worths)) <= most for worths in zip(*both, strict=True))


def _merge_clauses(head: Head) -> Head:
    """Equal clauses as one: a tree asks the first, a rule set adds their points."""
    clauses = list(dict.fromkeys(head.clauses))
    number = [clauses.index(clause) for clause in head.clauses]
    match head.decision:
        case Tree(nodes):
            same = (n if isinstance(n, Leaf) else replace(n, clause=number[n.clause]) for n in nodes)
            return Head(tuple(clauses), Tree(tuple(same)))
        case Scorecard(bias, points):
            sums = np.zeros((len(clauses), len(bias)), dtype=np.int64)
            np.add.at(sums, number, np.array(points, dtype=np.int64))
            worth = {clause: tuple(line) for clause, line in zip(clauses, sums.tolist(), strict=True) if any(line)}
            return Head(tuple(worth), replace(head.decision, points=tuple(worth.values())))
        case _:
            assert_never(head.decision)


def _on_whole_numbers(clause: Clause, whole: Sequence[bool]) -> Clause:
    """`age >= 30` in place of `age >= 29.5`, which says the same of whole numbers."""
    return Clause(tuple(_upwards(atom) if whole and whole[atom.feature] else atom for atom in clause.atoms))


def _upwards(atom: Atom) -> Atom:
    if not isinstance(atom, Interval):
        return atom
    lo, hi = (None if bound is None else float(np.ceil(bound)) + 0.0 for bound in (atom.lo, atom.hi))
    return atom if lo is not None and lo == hi else replace(atom, lo=lo, hi=hi)


def _right(decision: Decision, holds: Bools, triplets: Triplets, at: Ints) -> Bools:
    """Which of some points get the right class."""
    answer = _answers(decision, holds[:, at])
    same = answer == triplets.label[at]
    return np.asarray((same ^ triplets.avoids[at]) | ~triplets.exists[at])


def _answers(decision: Decision, holds: Bools) -> Ints:
    match decision:
        case Scorecard(bias, points):
            scores = np.array(points, dtype=np.float64).T @ holds + np.array(bias, dtype=np.float64)[:, None]
            return np.asarray(scores.argmax(axis=0))
        case Tree():
            answer = np.zeros(holds.shape[1], dtype=np.int64)
            for here, leaf in _leaves(decision, holds):
                answer[here] = leaf.winner
            return answer
        case _:
            assert_never(decision)


def _leaves(tree: Tree, holds: Bools) -> Iterator[tuple[Ints, Leaf]]:
    """Each leaf and the points that end in it."""
    at = {0: np.arange(holds.shape[1])}
    for index, node in enumerate(tree.nodes):
        here = at.pop(index)
        if isinstance(node, Leaf):
            yield here, node
            continue
        there = holds[node.clause, here]
        at[node.then], at[node.otherwise] = here[there], here[~there]


def _change_in_triplets(before: Bools, there: Bools, changed: Ints, triplets: Triplets) -> float:
    """The weight of triplets that become right as a whole, less that of those that no longer are."""
    touched = np.unique(changed // 3)
    after = before.reshape(-1, 3)[touched].copy()
    after[np.searchsorted(touched, changed // 3), changed % 3] = there
    whole, was = after.all(axis=1), before.reshape(-1, 3)[touched].all(axis=1)
    return float(triplets.weight[touched][whole].sum() - triplets.weight[touched][was].sum())


def _fewest_rows(decision: Decision, holds: Bools, triplets: Triplets) -> int:
    if isinstance(decision, Scorecard):
        return int(triplets.own.sum())
    return min(len(here) for here, _ in _leaves(decision, holds[:, triplets.own]))
