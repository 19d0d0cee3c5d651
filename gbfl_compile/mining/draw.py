"""Which rows of a table are used, where it has more than are wanted: drawn by seed while their classes go by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.errors import BadInput

Places: TypeAlias = NDArray[np.int64]

OF_EACH_CLASS = 2
"""So many are used of each class at least: one to learn from, one to measure on."""
FOLLOWED_CLASSES = 1000
"""A column of more values holds no classes, and whoever takes it for such refuses it: not all are followed here."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Places of rows, from 0 and in order, among so many."""

    places: Places
    of: int


def draw(classes: Iterable[NDArray[Any]], most: int, seed: int) -> Drawn:
    """At most `most` rows, and two of each class among them, of a table whose classes come in blocks of any size.

    Every row is given a number at random, in the order of rows, and those with the smallest are drawn: what is drawn
    does not depend on the blocks, and memory not on the rows.
    """
    random, total = np.random.default_rng(seed), 0
    smallest, firsts = _Smallest(most), dict[Any, _Smallest]()
    for block in classes:
        lots, places = random.random(len(block)), np.arange(total, total + len(block))
        total += len(block)
        smallest.add(lots, places)
        for label, own in _by_class(block):
            if label in firsts or len(firsts) < FOLLOWED_CLASSES:
                firsts.setdefault(label, _Smallest(OF_EACH_CLASS)).add(lots[own], places[own])
    firm = np.concatenate([first.places() for first in firsts.values()]) if firsts else np.empty(0, dtype=np.int64)
    if len(firm) > most:
        raise BadInput(f"--rows {most}: too few for two rows of each of the {len(firsts)} classes")
    others = smallest.places()
    others = others[~np.isin(others, firm)][: most - len(firm)]
    return Drawn(np.sort(np.concatenate((firm, others))), total)


class _Smallest:
    """The rows with the smallest numbers so far."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lots: NDArray[np.float64] = np.empty(0)
        self._places: Places = np.empty(0, dtype=np.int64)

    def add(self, lots: NDArray[np.float64], places: Places) -> None:
        if len(self._lots) == self._most:  # most rows of a long table are none of these
            low = lots < self._lots[-1]
            lots, places = lots[low], places[low]
        if len(lots) == 0:
            return
        lots, places = np.concatenate((self._lots, lots)), np.concatenate((self._places, places))
        order = np.argsort(lots, kind="stable")[: self._most]
        self._lots, self._places = lots[order], places[order]

    def places(self) -> Places:
        """By their numbers."""
        return self._places


def _by_class(block: NDArray[Any]) -> Iterable[tuple[Any, NDArray[np.intp]]]:
    """Each class in a block, and where it stands there; what is missing is one class more, None."""
    import pandas as pd

    codes, labels = pd.factorize(block, use_na_sentinel=False)
    if not 0 < len(labels) <= FOLLOWED_CLASSES:
        return ()
    names = [None if pd.isna(label) else label for label in labels.tolist()]
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(names)))
    return zip(names, np.split(order, ends[:-1]), strict=True)
