"""What each function of an emitted C file decides: a tree as steps, a rule set as points, row by row and in batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import TypeAlias

from gbfl_compile.checking.reading.conditions import Value, all_of, choice, decision_of
from gbfl_compile.checking.reading.nodes import (
    Condition,
    Outcome,
    PointDecision,
    Step,
    StepDecision,
    Test,
    Unread,
    bands_by_class,
    leaf_outcome,
    scale_of,
    way_to,
)
from gbfl_compile.checking.strict.c.contents import (
    check_columns,
    check_each_class,
    check_kernel_columns,
    check_rows,
    check_shape,
    starts,
)
from gbfl_compile.checking.strict.c.template import Contents
from gbfl_compile.ir.intervals import Values, below
from gbfl_compile.ir.nodes import Band

TreePlace = tuple[tuple[str, ...], StepDecision]
TREE_ONE_ROW = ("predict", "predict_proba", "explain")


def tree_places(batch: str, contents: Contents) -> list[TreePlace]:
    """The functions of a tree, grouped by equal result, and what they decide."""
    leaves, classes = contents["leaves"], contents["classes"]
    outcomes = _outcomes(contents)
    reasons = _reasons(contents)

    def by_leaf(leaf: int) -> Outcome:
        return outcomes[_below(leaf, leaves, "leaf")]

    def by_class(winner: int) -> Outcome:
        return Outcome(_below(winner, classes, "class"))

    def explain(leaf: int) -> Outcome:
        return replace(by_leaf(leaf), held=reasons[leaf])

    whole = decision_of(contents["leaf_of"], explain)
    match batch:
        case "select":
            check_columns(contents)
            ways: Mapping[str, tuple[str, Callable[[int], Outcome]]]
            ways = {"class": ("predict", by_class), "leaf": ("leaf", by_leaf)}
            kernels = [
                ((f"{verb}_rows", f"{verb}_columns"), decision_of(_answer(kind, contents), outcome))
                for kind, (verb, outcome) in ways.items()
            ]
            return [(TREE_ONE_ROW, whole), *kernels]
        case "row by row":
            check_rows(contents)
            return [((*TREE_ONE_ROW, "predict_rows", "predict_columns", "leaf_rows", "leaf_columns"), whole)]
        case _:
            return [(TREE_ONE_ROW, whole)]


def _below(number: int, count: int, what: str) -> int:
    if number >= count:
        raise Unread(f"{what} {number} is returned, there are {count}")
    return number


def _outcomes(contents: Contents) -> list[Outcome]:
    leaves, classes = contents["leaves"], contents["classes"]
    check_shape(contents, "leaf_class", "leaves")
    check_shape(contents, "leaf_probabilities", "leaves", "classes")
    rows = zip(contents["leaf_class"], contents["leaf_probabilities"], strict=True)
    if leaves < 1:
        raise Unread("a tree without leaves")
    return [leaf_outcome(f"leaf {leaf}", winner, row, classes, leaf) for leaf, (winner, row) in enumerate(rows)]


def _reasons(contents: Contents) -> list[tuple[int, ...]]:
    """The rules that held on the way to each leaf, by the tables that lead back from it."""
    check_shape(contents, "leaf_node", "leaves")
    check_shape(contents, "node_above", "nodes")
    check_shape(contents, "node_clause", "nodes")
    above, clause_at, nodes = contents["node_above"], contents["node_clause"], contents["nodes"]
    if min(above) < 0 or max(above) >= 2 * nodes or above[0] != 0:
        raise Unread("node_above leads to a node that is not there")
    if not all(0 <= node < nodes for node in contents["leaf_node"]):
        raise Unread("leaf_node leads to a node that is not there")
    steps: list[Step] = [(-1, 0, False)]
    steps += [(code // 2, clause_at[code // 2] if code % 2 else 0, code % 2 == 1) for code in above[1:]]
    clauses = max(1, contents["clauses"])
    ways = (way_to(steps, node, clauses) for node in contents["leaf_node"])
    return [tuple(sorted({clause for clause, held in way if held})) for way in ways]


def _answer(kind: str, contents: Contents) -> Value:
    """The number that a kernel leaves for a row: each step chooses between numbers and steps before it."""
    check_kernel_columns(kind, contents, [step["holds"] for step in contents[f"{kind}_steps"]])
    values: dict[str, Value] = {}

    def value(node: int | str) -> Value:
        if isinstance(node, int):
            return node
        if node not in values:
            raise Unread(f"{kind}_block uses {node} before it exists")
        return values[node]

    for step in contents[f"{kind}_steps"]:
        name = f"n{step['step']}"
        if name in values:
            raise Unread(f"{kind}_block has {name} twice")
        values[name] = choice(step["holds"], value(step["then"]), value(step["otherwise"]))
    return value(contents[f"{kind}_answer"])


RulesPlace = tuple[tuple[str, ...], PointDecision]
RULES_ONE_ROW = ("score", "predict", "predict_proba", "explain")
BATCH = ("predict_rows", "predict_columns", "score_rows", "score_columns")


def rule_set_places(batch: str, contents: Contents) -> list[RulesPlace]:
    """The functions of a rule set, grouped by equal result, and what they add up."""
    if contents["leaves"] != 0:
        raise Unread("a rule set that has leaves")
    whole = within_64_bits(_one_row(contents))
    match batch:
        case "row by row":
            check_rows(contents)
            return [((*RULES_ONE_ROW, *BATCH), whole)]
        case "select" | "bits":
            check_columns(contents)
            scored = _select_scored(contents) if batch == "select" else bits_scored(contents)
            batched = within_64_bits(replace(scored, scale=whole.scale, bands=whole.bands))
            return [(RULES_ONE_ROW, whole), (BATCH, batched)]
        case _:
            return [(RULES_ONE_ROW, whole)]


def within_64_bits(scored: PointDecision) -> PointDecision:
    """The points, refused where a row's sum could exceed 64 bits."""
    most = 2**62 if scored.bands else 2**63  # bands need differences of points
    for c, start in enumerate(scored.bias):
        if abs(start) + sum(abs(points[c]) for _, points in scored.terms) >= most:
            raise Unread("the points may add up past 64 bits")
    return scored


def _one_row(contents: Contents) -> PointDecision:
    clauses = contents["clauses"]
    held: dict[int, Condition] = {}
    for each in contents["rules"]:
        word, bit = each["word"], each["bit"].bit_length() - 1
        number = 32 * word + bit
        if bit not in range(32) or each["bit"] != 1 << bit or number >= clauses or number in held:
            raise Unread(f"held[{word}] |= {each['bit']:#x}: not the bit of a rule of its own")
        held[number] = each["holds"]
    if len(held) != clauses:
        raise Unread(f"{len(held)} of {clauses} rules are tested")
    if contents["point_rows"] != max(1, clauses):
        raise Unread(f"points for {contents['point_rows']} rules, there are {clauses}")
    check_shape(contents, "rule_points", "point_rows", "classes")
    _check_type(contents["points_type"], contents["rule_points"])
    conditions = tuple(held[number] for number in range(clauses))
    terms = tuple(zip(conditions, contents["rule_points"], strict=False))
    if "bands" not in contents:
        return PointDecision(starts(contents, "bias"), terms, scale_of(contents["worth"]), held=conditions)
    return PointDecision(starts(contents, "bias"), terms, held=conditions, bands=_bands(contents))


def _bands(contents: Contents) -> tuple[tuple[Band, ...], ...]:
    """The bands of each class, from where those of one end and those of the next begin."""
    classes, count = contents["classes"], contents["bands"]
    if contents["band_ends"] != classes + 1:
        raise Unread(f"band_begin has {contents['band_ends']} places for {classes} classes")
    check_shape(contents, "band_begin", "band_ends")
    check_shape(contents, "band_least", "bands")
    check_shape(contents, "band_rates", "bands", "classes")
    begin = contents["band_begin"]
    if begin[0] != 0 or begin[-1] != count or any(a >= b for a, b in pairwise(begin)):
        raise Unread("band_begin does not divide the bands among the classes")
    pairs = tuple(zip(contents["band_least"], contents["band_rates"], strict=True))
    return bands_by_class(tuple(pairs[a:b] for a, b in pairwise(begin)), classes)


def _check_type(kind: str, table: Sequence[Sequence[int]]) -> None:
    largest = 2 ** (int(kind[3:-2]) - 1)
    if not all(-largest <= points < largest for row in table for points in row):
        raise Unread(f"points that {kind} does not hold")


def _select_scored(contents: Contents) -> PointDecision:
    """The points that the select kernel adds up for a row."""
    conditions = [each["holds"] for each in contents["sums_rules"]]
    check_kernel_columns("sums", contents, conditions)
    bias = starts(contents, "starts")
    check_each_class(contents, "ends")
    if len({each["rule"] for each in contents["sums_rules"]}) != len(conditions):
        raise Unread("sums_block has a rule twice")
    terms = []
    for each in contents["sums_rules"]:
        points = [0] * contents["classes"]
        for worth in each["worth"]:
            if worth["rule"] != each["rule"] or worth["class"] >= contents["classes"]:
                raise Unread(f"sums_block: s{worth['class']} gets points of h{worth['rule']} out of place")
            points[worth["class"]] += worth["points"]
        terms.append((each["holds"], tuple(points)))
    return PointDecision(bias, tuple(terms))


GROUP = 256
"""Bits in a group: four words of 64."""

Term: TypeAlias = tuple[Condition, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Column:
    """A feature, the values at which its bins begin (the first is minus infinity), and the place of its bins."""

    feature: int
    edges: tuple[float, ...]
    first_bin: int

    @property
    def bins(self) -> slice:
        """Its bins among all bins; the last one is for a missing value."""
        return slice(self.first_bin, self.first_bin + len(self.edges) + 1)


def bits_scored(contents: Contents) -> PointDecision:
    """The kernel as points per rule and points per range of values."""
    columns = _columns(contents)
    bias = starts(contents, "starts")
    summed_classes = [each["class"] for each in contents["bin_sums"]]
    if len(set(summed_classes)) != len(summed_classes) or not set(summed_classes) <= set(range(contents["classes"])):
        raise Unread("the points of a bin are added twice, or for a class that is not there")
    check_shape(contents, "bin_points", "bins", "classes")
    points = contents["bin_points"]
    if len(summed_classes) < contents["classes"]:
        points = [tuple(p if c in summed_classes else 0 for c, p in enumerate(row)) for row in points]
    terms = [term for column in columns for term in _bin_terms(column, points[column.bins])]
    if "bin_masks" in contents:
        for key in ("before", "added", "after"):
            check_each_class(contents, key)
        check_shape(contents, "bin_masks", "groups", "bins", 4)
        check_shape(contents, "bit_points", "bits", "classes")
        terms += _bit_terms(columns, contents["bin_masks"], contents["bit_points"])
    return PointDecision(bias, tuple(terms))


def _columns(contents: Contents) -> list[Column]:
    """The columns of a block, each with bins of its own that are in their tables."""
    check_shape(contents, "cut_table", "cuts")
    check_shape(contents, "bin_features", "slots", 3)
    if contents["used"] != contents["slots"]:
        raise Unread(f"{contents['used']} of {contents['slots']} columns are read")
    columns = []
    for slot, (first_cut, cut_count, first_bin) in zip(contents["gathered"], contents["bin_features"], strict=True):
        cuts = contents["cut_table"][first_cut : first_cut + cut_count]
        if first_cut + cut_count > contents["cuts"] or first_bin + cut_count + 2 > contents["bins"]:
            raise Unread("bins or cuts that are not in their tables")
        edges = (-math.inf, *(cut + 0.0 for cut in cuts))
        if any(low >= high for low, high in pairwise(edges)):
            raise Unread("cuts that are not in ascending order")
        columns.append(Column(slot["feature"], edges, first_bin))
    return columns


def _bin_terms(column: Column, points: Sequence[tuple[int, ...]]) -> Iterator[Term]:
    """A term for each number of points, with the bins that have them."""
    runs: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    first = 0
    for worth, same in groupby(points):
        end = first + len(list(same))
        runs.setdefault(worth, []).append((first, end))
        first = end
    for worth, own in runs.items():
        if any(worth):
            yield _within(column, own), worth


def _within(column: Column, runs: Sequence[tuple[int, int]]) -> Condition:
    """The value is in one of these runs of bins, given in ascending order."""
    missing = len(column.edges)
    pieces: list[Values] = []
    for first, end in runs:
        if first < missing:
            most = below(column.edges[end]) if end < missing else math.inf
            pieces.append(Values(column.edges[first], most, missing=False))
        if end > missing:
            pieces.append(Values(math.inf, -math.inf, missing=True))
    return Test(column.feature, tuple(pieces))


def _bit_terms(
    columns: Sequence[Column], masks: Sequence[Sequence[Sequence[int]]], points: Sequence[tuple[int, ...]]
) -> Iterator[Term]:
    """A term for each bit that some row leaves set."""
    for group, rows in enumerate(masks):
        words = [a | b << 64 | c << 128 | d << 192 for a, b, c, d in rows]
        parts: list[list[Condition]] = [[] for _ in range(GROUP)]
        possible = (1 << GROUP) - 1
        for column in columns:
            own = words[column.bins]
            for bit, runs in _bit_runs(own).items():
                parts[bit].append(_within(column, runs))
            possible &= _any(own)
        for bit in range(GROUP):
            if not possible >> bit & 1:
                continue
            if group * GROUP + bit >= len(points):
                raise Unread(f"bit {group * GROUP + bit} belongs to no rule")
            yield all_of(parts[bit]), points[group * GROUP + bit]


def _any(words: Sequence[int]) -> int:
    union = 0
    for word in words:
        union |= word
    return union


def _bit_runs(words: Sequence[int]) -> dict[int, list[tuple[int, int]]]:
    """For each bit that is set in some words and not in all, the runs of words in which it is."""
    since: dict[int, int] = {}
    runs: dict[int, list[tuple[int, int]]] = {}
    for number, (before, word) in enumerate(pairwise([0, *words, 0])):
        change = before ^ word
        while change:
            bit = change.bit_length() - 1
            change ^= 1 << bit
            if bit in since:
                runs.setdefault(bit, []).append((since.pop(bit), number))
            else:
                since[bit] = number
    return {bit: own for bit, own in runs.items() if own != [(0, len(words))]}
