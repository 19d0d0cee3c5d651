"""Are two sums of points equal on every row? Decided exactly, by what each sum does at each cut.

A sum of points over conjunctions is written as one list of `(atoms, points)`; equal conjunctions cancel at once. What
is left is zero everywhere if and only if, feature by feature, it is zero below the first cut and nothing changes at
any cut nor for the missing value: the canonical polynomial over `x >= t`, taken apart one feature at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from gbfl_compile.checking.prove.cells import Atoms, Cells, join
from gbfl_compile.checking.prove.findings import Budget
from gbfl_compile.checking.prove.solve import is_or, take_apart
from gbfl_compile.checking.reading.nodes import Condition, PointDecision
from gbfl_compile.ir.nodes import Band

Points: TypeAlias = tuple[int, ...]
Sum: TypeAlias = dict[Atoms, Points]
"""Points for each conjunction that holds; `()` always holds. Conjunctions with zeros only are left out."""


def sum_of(cells: Cells, clock: Budget, scored: PointDecision) -> Sum:
    """A rule set's points, an `or` or a `not` written as sums and differences of conjunctions."""
    total: Sum = {}
    _add(total, (), scored.bias)
    for condition, points in scored.terms:
        for atoms, times in _expand(cells, clock, condition).items():
            _add(total, atoms, tuple(times * p for p in points))
    return total


def minus(a: Sum, b: Sum) -> Sum:
    """The first sum without the second."""
    left = dict(a)
    for atoms, points in b.items():
        _add(left, atoms, tuple(-p for p in points))
    return left


def combine(total: Sum, table: Iterable[tuple[int, ...]]) -> Sum:
    """Each class's points replaced by combinations of them: one row of factors for each new column."""
    rows = tuple(table)
    sums: Sum = {}
    for atoms, points in total.items():
        _add(sums, atoms, tuple(sum(f * p for f, p in zip(row, points, strict=True)) for row in rows))
    return sums


def against_first(classes: int) -> list[tuple[int, ...]]:
    """The factors that give each class's points less the first class's: all that labels and probabilities see."""
    return [(-1, *(1 if c == other else 0 for other in range(1, classes))) for c in range(1, classes)]


def _add(total: Sum, atoms: Atoms, points: Points) -> None:
    have = total.get(atoms)
    if have is not None:
        points = tuple(p + q for p, q in zip(have, points, strict=True))
    if any(points):
        total[atoms] = points
    elif have is not None:
        del total[atoms]


def _expand(cells: Cells, clock: Budget, condition: Condition, positive: bool = True) -> dict[Atoms, int]:
    """A condition as a whole-number combination of conjunctions: 1 where it holds, 0 where it does not."""
    clock.check()
    if is_or(condition, positive):
        return _opposite(_expand(cells, clock, condition, not positive))
    atoms, others = take_apart(cells, condition, positive)
    product = {} if atoms is None else {atoms: 1}
    for part, sign in others:
        product = _times(product, _expand(cells, clock, part, sign), clock)
    return product


def _opposite(terms: Mapping[Atoms, int]) -> dict[Atoms, int]:
    opposite = {atoms: -times for atoms, times in terms.items()}
    opposite[()] = opposite.get((), 0) + 1
    return {atoms: times for atoms, times in opposite.items() if times}


def _times(a: Mapping[Atoms, int], b: Mapping[Atoms, int], clock: Budget) -> dict[Atoms, int]:
    product: dict[Atoms, int] = {}
    for left, m in a.items():
        clock.check()
        for right, n in b.items():
            atoms = join(left, right)
            if atoms is not None:
                product[atoms] = product.get(atoms, 0) + m * n
    return {atoms: times for atoms, times in product.items() if times}


def nonzero_row(cells: Cells, clock: Budget, total: Sum) -> dict[int, int] | None:
    """One cell per feature (cell 0 if not named) where the sum is not zero, or None: it is zero everywhere."""
    clock.check()
    if not total:
        return None
    feature = _busiest(total)
    if feature is None:
        return {}
    for cell, part in _changes(cells, feature, total):
        row = nonzero_row(cells, clock, part)
        if row is not None:
            return {**row, feature: 1 << cell}
    return None


Bands: TypeAlias = tuple[tuple[Band, ...], ...]


def unequal_leads(a: Bands, b: Bands, largest: int) -> Iterator[tuple[int, int, int]]:
    """Where two tables of bands differ: a class, and the leads from least to most at which it wins, up to `largest`."""
    for c, (own, others) in enumerate(zip(a, b, strict=True)):
        edges = sorted({band.least for band in (*own, *others) if band.least <= largest})
        for least, following in zip(edges, [*edges[1:], largest + 1], strict=True):
            if _rates_at(own, least) != _rates_at(others, least):
                yield c, least, following - 1


def _rates_at(bands: tuple[Band, ...], lead: int) -> tuple[float, ...]:
    return next(band.probabilities for band in reversed(bands) if lead >= band.least)


def largest_lead(scored: PointDecision) -> int:
    """No class is further ahead of another than this, on any row."""
    return sum(max(row) - min(row) for row in (scored.bias, *(points for _, points in scored.terms)))


def won_by(scored: PointDecision, c: int, lead: int) -> PointDecision:
    """Points by which class `c` wins just where it wins with at least this lead; the other classes as they were.

    All points count double and the lead is taken off in odd numbers, so that class `c` ties with no other.
    """
    terms = tuple((condition, tuple(2 * p for p in points)) for condition, points in scored.terms)
    bias = [2 * start for start in scored.bias]
    bias[c] -= 2 * lead - 1 if lead else 0
    return PointDecision(tuple(bias), terms)


def _busiest(total: Sum) -> int | None:
    """The feature that most conjunctions test; None where none is left."""
    counts: dict[int, int] = {}
    for atoms in total:
        for feature, _ in atoms:
            counts[feature] = counts.get(feature, 0) + 1
    return max(counts, key=lambda feature: (counts[feature], -feature)) if counts else None


def _changes(cells: Cells, feature: int, total: Sum) -> list[tuple[int, Sum]]:
    """The sum with `feature` in cell 0, then what is added at each cut, upwards, and what changes for missing.

    Each is a sum without the feature. If all before one are zero, that one is the sum's value in its cell.
    """
    last = len(cells.starts[feature]) + 1
    changes: dict[int, Sum] = {}
    for atoms, points in total.items():
        mask = next((m for f, m in atoms if f == feature), None)
        rest = atoms if mask is None else tuple(atom for atom in atoms if atom[0] != feature)
        numbers, first = (-1, 1) if mask is None else (mask & ~(1 << last), mask & 1)
        if first:
            _add(changes.setdefault(0, {}), rest, points)
        if mask is None:
            continue
        edges = (numbers ^ (numbers << 1 | first)) & ~(1 << last)
        while edges:
            cell = (edges & -edges).bit_length() - 1
            edges &= edges - 1
            rises = numbers >> cell & 1
            _add(changes.setdefault(cell, {}), rest, points if rises else tuple(-p for p in points))
        if (mask >> last & 1) != first:
            _add(changes.setdefault(last, {}), rest, tuple(-p for p in points) if first else points)
    return sorted(changes.items())
