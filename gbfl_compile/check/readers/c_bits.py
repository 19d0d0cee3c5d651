"""The kernel of bins and bit masks, read from its tables: a rule holds where every feature's bin leaves it standing.

A value's bin is the number of cuts at or below it, one past the last where it is missing. In each bin a word of bits
says which rules stand; the rules that stand in the bins of all features hold. Bins also have points of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from gbfl_compile.check.readers.c_artifact import Artifact, hole, recognise, take_table
from gbfl_compile.check.readers.c_bits_forms import BIN_POINTS, bits_text
from gbfl_compile.check.readers.c_expressions import Setting
from gbfl_compile.check.readers.c_forms import known
from gbfl_compile.check.readers.c_match import attempt, same_within
from gbfl_compile.check.readers.c_rules import followed
from gbfl_compile.check.readers.c_source import line_of, refuse
from gbfl_compile.check.readers.c_values import Place, Unclear
from gbfl_compile.check.readers.choices import FALL
from gbfl_compile.check.readers.conditions import FALSE, TRUE, all_of
from gbfl_compile.check.reading import Condition, Scored, Test, Unread
from gbfl_compile.ir.regions import Values, below

FEATURE = "struct {uint32_t first_cut; uint32_t cut_count; uint32_t first_bin;}"
GROUP = 256
"""Bits in a group: four words of 64."""


@dataclass(frozen=True, slots=True)
class Bins:
    """One column: where its bins begin among all bins, and the values in each."""

    first: int
    values: tuple[Values, ...]


def bits_scored(artifact: Artifact) -> Callable[[tuple[int | None, ...]], Scored]:
    """The kernel as a scorecard, for the features that its columns are."""
    classes = artifact.constant("CLASSES")
    masked = artifact.has("bin_masks")
    recognise(artifact, bits_text(artifact.real, classes, masked))
    numbers = artifact.found.numbers
    used = numbers["used"]
    if not 0 < used <= numbers["slots"]:  # with no column at all every bit would stand
        raise Unread(f"a kernel of {used} columns where there is room for {numbers['slots']}")
    cuts = take_table(artifact, "cuts", [artifact.real], [None])
    features = take_table(artifact, "bin_features", [FEATURE], [numbers["slots"]])
    points = take_table(artifact, "bin_points", ["int64_t"], [None, classes])
    columns = [_bins(cuts, feature, len(points)) for feature in features[:used]]
    counted = _counted_classes(artifact)
    bias = _bias(artifact, classes)
    worth = [tuple(row[c] if c in counted else 0 for c in range(classes)) for row in points]
    masks, bit_points = _masks(artifact, numbers.get("groups", 0), len(points), classes) if masked else ((), ())

    @cache
    def scored(slots: tuple[int | None, ...]) -> Scored:
        asked = [_slot(artifact, slots, u) for u in range(used)]
        by_bins = [term for u, bins in enumerate(columns) for term in _bin_terms(asked[u], bins, worth)]
        by_bits = list(_bit_terms(asked, columns, masks, bit_points))
        return Scored(bias, (*by_bins, *by_bits))

    return scored


def _slot(artifact: Artifact, slots: Sequence[int | None], place: int) -> int:
    feature = slots[place]
    if feature is None:
        raise Unread(f"{artifact.name}_sums_block reads column {place}, where nothing was put")
    return feature


def _bins(cuts: Sequence[float], feature: tuple[int, int, int], bins: int) -> Bins:
    """The values of each bin: from a cut to just below the next; the last is for missing values."""
    first_cut, count, first_bin = feature
    own = cuts[first_cut : first_cut + count]
    if len(own) != count or first_bin + count + 2 > bins:
        raise Unread("bins or cuts that are not in their tables")
    if list(own) != sorted(own):
        raise Unread("cuts that are not in ascending order")
    edges = [-math.inf, *own]
    tops = [below(cut) if cut > -math.inf else math.nan for cut in own]
    values = [Values(least, most, False) for least, most in zip(edges, [*tops, math.inf], strict=True)]
    return Bins(first_bin, (*values, Values(math.inf, -math.inf, True)))


def _counted_classes(artifact: Artifact) -> set[int]:
    """The classes for which a bin's own points are added."""
    found = hole(artifact, "bin_points")
    (form,) = known(BIN_POINTS)["P_one"]
    classes: set[int] = set()
    for node in found.nodes:
        into = attempt(artifact.found)
        into.numbers.pop("class", None)
        fits = same_within(form.body.block_items[0], node, tuple(found.called.items()), into)
        if (
            not fits
            or into.numbers["class"] in classes
            or not 0 <= into.numbers["class"] < artifact.constant("CLASSES")
        ):
            refuse(line_of(node), "is not a sum of the points of a bin")
        classes.add(into.numbers["class"])
    return classes


def _bias(artifact: Artifact, classes: int) -> tuple[int, ...]:
    found = hole(artifact, "sums_bias")
    here, sums = Place(frozenset({"i"})), found.called["sums"]
    cells: dict[Any, Any] = {(sums, c, here): Unclear() for c in range(classes)}
    setting = Setting(artifact.name, artifact.real, artifact.constants, types={sums: "int64_t"})
    value, after = followed(setting, found, {found.called["i"]: here, **cells})
    bias = [after[cell] for cell in cells]
    if value is not FALL or not all(isinstance(start, int) for start in bias):
        raise Unread(f"{artifact.name}_sums_block does not start with whole points")
    return tuple(start for start in bias if isinstance(start, int))


def _masks(artifact: Artifact, groups: int, bins: int, classes: int) -> tuple[Any, Any]:
    masks = take_table(artifact, "bin_masks", ["uint64_t"], [groups, bins, 4])
    words = tuple(tuple(sum(word << (64 * w) for w, word in enumerate(row)) for row in group) for group in masks)
    return words, take_table(artifact, "bit_points", ["int64_t"], [None, classes])


def _bin_terms(feature: int, bins: Bins, worth: Sequence[tuple[int, ...]]) -> list[tuple[Condition, tuple[int, ...]]]:
    """A term for each bin that has points; bins side by side with the same points are one term."""
    found: list[tuple[Condition, tuple[int, ...]]] = []
    rows = worth[bins.first : bins.first + len(bins.values)]
    for points in dict.fromkeys(row for row in rows if any(row)):
        inside = [holds for holds, row in zip(bins.values, rows, strict=True) if row == points]
        found.append((_within(feature, inside), points))
    return found


def _within(feature: int, pieces: Sequence[Values]) -> Condition:
    """The value is in one of the pieces, which are in ascending order; neighbours are joined."""
    joined: list[Values] = []
    for piece in pieces:
        if not piece.has_numbers and not piece.missing:
            continue
        if joined and piece.has_numbers and joined[-1].most == below(piece.least):
            joined[-1] = Values(joined[-1].least, piece.most, False)
        else:
            joined.append(piece)
    return Test(feature, tuple(joined)) if joined else FALSE


def _bit_terms(
    asked: Sequence[int], columns: Sequence[Bins], masks: Sequence[Sequence[int]], points: Sequence[tuple[int, ...]]
) -> list[tuple[Condition, tuple[int, ...]]]:
    terms = []
    for group, words in enumerate(masks):
        for bit in range(GROUP):
            condition = _standing(asked, columns, words, bit)
            if condition == FALSE:
                continue
            number = group * GROUP + bit
            if number >= len(points):
                raise Unread(f"bit {number} stands for no rule")
            terms.append((condition, points[number]))
    return terms


def _standing(asked: Sequence[int], columns: Sequence[Bins], words: Sequence[int], bit: int) -> Condition:
    """When every column's bin leaves the bit standing."""
    parts: list[Condition] = []
    for feature, bins in zip(asked, columns, strict=True):
        stands = [words[bins.first + k] >> bit & 1 for k in range(len(bins.values))]
        if not any(stands):
            return FALSE
        inside = [values for values, holds in zip(bins.values, stands, strict=True) if holds]
        parts.append(TRUE if all(stands) else _within(feature, inside))
    return all_of(parts)
