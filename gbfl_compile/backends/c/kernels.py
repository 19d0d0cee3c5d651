"""The batch kernels, the choice between them, and what their templates need.

    ifelse   the code of one row, row after row
    select   bottom-up selects without branches, a block of rows at a time
    bits     rule sets only: bins and bit masks

All give the same answers; tests compare them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, assert_never

from gbfl_compile.backends.c.expressions import (
    MANY_ROWS,
    CodedAtom,
    Codes,
    Real,
    Rule,
    always_holds,
    bounds,
    condition,
    integer,
    literal,
    never_holds,
    rows_of,
    rules_of,
    used_features,
)
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.intervals import above, float32_at_or_above
from gbfl_compile.ir.nodes import Interval, Leaf, Program, Scorecard, Split, Tree, leaf_numbers

WORDS = 4
"""Words per group: 256 clauses, one AVX2 register."""


@dataclass(frozen=True, slots=True)
class Tables:
    """Bins are numbered through all used features; each feature's last one is for missing values."""

    features: tuple[int, ...]
    cuts: tuple[tuple[float, ...], ...]
    """For each feature the values at which a new bin begins, ascending; infinity where only infinity is beyond."""
    first_bin: tuple[int, ...]
    masks: tuple[tuple[tuple[int, ...], ...], ...]
    """Group, bin, word."""
    sums: tuple[tuple[int, ...], ...]
    """Bin, class: the points of the clauses of one atom that hold there."""
    points: tuple[tuple[int, ...], ...]
    """Bit, class."""
    bias: tuple[int, ...]

    @property
    def bins(self) -> int:
        """Bins of all features together."""
        return len(self.sums)


def tables(program: Program, card: Scorecard, real: Real) -> Tables:
    """The tables of a rule set."""
    features = used_features(program)
    by_feature = cut_points(program, real)
    cuts = tuple(by_feature[feature] for feature in features)
    first_bin = tuple(sum(len(c) + 2 for c in cuts[:u]) for u in range(len(features)))
    bins = sum(len(c) + 2 for c in cuts)
    rules = rules_of(program)
    bias = list(card.bias)
    sums = [[0] * len(program.classes) for _ in range(bins)]
    bits = []
    for rule, points in zip(rules, card.points, strict=True):
        if not any(points) or any(map(never_holds, rule)):
            continue
        atoms = tuple(atom for atom in rule if not always_holds(atom))
        if not atoms:
            bias = [b + p for b, p in zip(bias, points, strict=True)]
        elif len(atoms) == 1:
            u = features.index(atoms[0].feature)
            for number in _holding(atoms[0], cuts[u], real):
                row = sums[first_bin[u] + number]
                row[:] = [s + p for s, p in zip(row, points, strict=True)]
        else:
            bits.append((atoms, points))
    masks = _masks([atoms for atoms, _ in bits], features, cuts, first_bin, bins, real)
    return Tables(
        features, cuts, first_bin, masks, tuple(tuple(row) for row in sums), tuple(p for _, p in bits), tuple(bias)
    )


def _masks(
    clauses: list[Rule],
    features: tuple[int, ...],
    cuts: tuple[tuple[float, ...], ...],
    first_bin: tuple[int, ...],
    bins: int,
    real: Real,
) -> tuple[tuple[tuple[int, ...], ...], ...]:
    groups = -(-len(clauses) // (64 * WORDS))
    masks = [[[(1 << 64) - 1] * WORDS for _ in range(bins)] for _ in range(groups)]
    for bit, atoms in enumerate(clauses):
        group, word, clear = bit // (64 * WORDS), bit // 64 % WORDS, ~(1 << bit % 64)
        for atom in atoms:
            u = features.index(atom.feature)
            holding = set(_holding(atom, cuts[u], real))
            for number in range(len(cuts[u]) + 2):
                if number not in holding:
                    masks[group][first_bin[u] + number][word] &= clear
    for bit in range(len(clauses), groups * 64 * WORDS):  # unused bits never hold
        for row in masks[-1]:
            row[bit // 64 % WORDS] &= ~(1 << bit % 64)
    return tuple(tuple(tuple(row) for row in group) for group in masks)


def cut_points(program: Program, real: Real) -> dict[int, tuple[float, ...]]:
    """For each feature used, where some atom on it changes, as the first value on the upper side."""
    edges: dict[int, set[float]] = {}
    for rule in rules_of(program):
        for atom in rule:
            edges.setdefault(atom.feature, set()).update(_changes(atom, real))
    return {feature: tuple(sorted(cuts)) for feature, cuts in edges.items()}


def _changes(atom: CodedAtom, real: Real) -> set[float]:
    """Where an atom changes: at the bounds of an interval, at a code and right after it."""
    if isinstance(atom, Codes):
        return {edge for code in atom.codes for edge in (code, _after(code, real))}
    return {edge for edge in _edges(atom, real) if edge is not None}


def _edges(atom: Interval, real: Real) -> tuple[float | None, float | None]:
    """The first value inside and the first value beyond, None where there is no such bound."""
    least = most = None
    for bound in bounds(atom, real):
        match bound.comparison:
            case ">=":
                least = bound.value
            case ">":
                least = _after(bound.value, real)
            case "<":
                most = bound.value
            case "<=":
                most = _after(bound.value, real)
    return least, most


def _after(value: float, real: Real) -> float:
    """The next value of the type."""
    return above(value) if real == "double" else float32_at_or_above(above(value)) + 0.0


def _holding(atom: CodedAtom, cuts: tuple[float, ...], real: Real) -> list[int]:
    """The bins on which an atom holds: bin k has the values from cuts[k - 1] to below cuts[k], the last the missing."""
    if isinstance(atom, Codes):
        listed = {bisect_left(cuts, code) + 1 for code in atom.codes}
        numbers = [number for number in range(len(cuts) + 1) if (number in listed) != atom.negated]
    else:
        least, most = _edges(atom, real)
        first = 0 if least is None else bisect_left(cuts, least) + 1
        last = len(cuts) if most is None else bisect_left(cuts, most)
        numbers = list(range(first, last + 1))
    return [*numbers, len(cuts) + 1] if atom.if_missing else numbers


Kernel: TypeAlias = Literal["ifelse", "select", "bits"]

# The cost model: nanoseconds per row, fitted by hand to one noisy trial on the shapes of tests/bench/group_c.py.
COMPARE_IN_SELECT = 0.1
NODE_IN_SELECT = 0.1
SPILLS_DOUBLE_SELECT = 1000
"""Comparisons after which a select kernel costs twice as much each: its values no longer fit in registers."""
LEVEL_IN_IFELSE = 4.6
"""A mispredicted step down a tree."""
COMPARE_IN_IFELSE = 0.85
COMPARE_IN_RULES = 2.0
CUT_IN_BITS = 0.14
HALVING_IN_BITS = 10.0
"""Where a feature has many cuts and its bins are found by bisection."""
FEATURE_IN_BITS = 4.0
"""For each group of 256 clauses."""
ROW_IN_BITS = 10.0

MOST_CLASSES, MOST_COLUMNS = 64, 256
"""Beyond these a block of rows needs too much stack."""


def choose(program: Program, option: str, real: Real) -> Kernel:
    """The kernel an option names, or for `auto` the one the cost model expects to be fastest."""
    costs = kernel_costs(program, real)
    if not used_features(program):  # every row gets the same answer
        return "ifelse"
    if option == "auto":
        return min(costs, key=lambda kernel: costs[kernel])
    for kernel in costs:
        if kernel == option:
            return kernel
    raise BadInput(f"target c: kernel={option!r} cannot run this program: use {' or '.join(costs)}")


def kernel_costs(program: Program, real: Real) -> dict[Kernel, float]:
    """The expected cost of each kernel that can run the program."""
    expected = _all_costs(program, real)
    if len(program.classes) > MOST_CLASSES or len(used_features(program)) > MOST_COLUMNS:
        return {"ifelse": expected["ifelse"]}
    return expected


def _all_costs(program: Program, real: Real) -> dict[Kernel, float]:
    compared = [sum(map(_comparisons, rule)) for rule in rules_of(program)]
    match program.decision:
        case Tree(nodes):
            splits = [node for node in nodes if isinstance(node, Split)]
            comparisons = sum(compared[node.clause] for node in splits)
            steps = _mean_depth(program.decision)
            per_step = comparisons / len(splits) if splits else 0.0
            return {
                "select": _select_cost(comparisons, len(splits)),
                "ifelse": steps * (LEVEL_IN_IFELSE + COMPARE_IN_IFELSE * (per_step - 1)),
            }
        case Scorecard():
            total = sum(compared)
            features = used_features(program)
            groups = -(-sum(len(clause.atoms) > 1 for clause in program.clauses) // (64 * WORDS))
            cuts = cut_points(program, real)
            finding = (CUT_IN_BITS * len(cuts[f]) for f in features)
            bins = sum(min(HALVING_IN_BITS, cost) for cost in finding)
            return {
                "select": _select_cost(total, len(compared)),
                "ifelse": COMPARE_IN_RULES * total,
                "bits": ROW_IN_BITS + bins + FEATURE_IN_BITS * len(features) * max(1, groups),
            }
        case _:
            assert_never(program.decision)


def _comparisons(atom: CodedAtom) -> int:
    return len(atom.codes) if isinstance(atom, Codes) else (atom.lo is not None) + (atom.hi is not None)


def _select_cost(compared: int, nodes: int) -> float:
    return (COMPARE_IN_SELECT * compared + NODE_IN_SELECT * nodes) * (1 + compared / SPILLS_DOUBLE_SELECT)


def _mean_depth(tree: Tree) -> float:
    """Steps to a leaf if both sides of each split are equally likely."""
    share = [0.0] * len(tree.nodes)
    share[0] = 1.0
    for index, node in enumerate(tree.nodes):
        if isinstance(node, Split):
            share[node.then] = share[node.otherwise] = share[index] / 2
    return sum(share[index] for index, node in enumerate(tree.nodes) if isinstance(node, Split))


def select_tree(program: Program, tree: Tree, real: Real, answer: Literal["leaf", "class"]) -> list[str]:
    """Statements from the leaves up to the root's answer; a split whose sides agree is left out.

    A select is spelled with masks: gcc moves the sides of `?:` behind a branch, and there it may not
    vectorise a comparison (it could trap). The answer of a double kernel stays in 64 bits, like the masks, and is
    narrowed in a separate loop: gcc would otherwise compute every mask twice to fill 32-bit lanes.
    """
    number = leaf_numbers(tree)
    lane = "int64_t" if real == "double" else "int32_t"
    rules = rules_of(program)
    value: dict[int, str] = {}
    lines = []
    for index in reversed(range(len(tree.nodes))):
        node = tree.nodes[index]
        if isinstance(node, Leaf):
            value[index] = str(number[index] if answer == "leaf" else node.winner)
            continue
        then, otherwise = value.pop(node.then), value.pop(node.otherwise)
        if then == otherwise:
            value[index] = then
            continue
        held = condition(rules[node.clause], real, MANY_ROWS)
        lines.append(f"const {lane} n{index} = {otherwise} ^ (({then} ^ {otherwise}) & -({lane})({held}));")
        value[index] = f"n{index}"
    return [*lines, f"found[i] = {value[0]};" if narrows(real) else f"out[i] = {value[0]};"]


def narrows(real: Real) -> bool:
    """Whether a tree's select kernel works in lanes wider than its answers."""
    return real == "double"


def select_card(program: Program, card: Scorecard, real: Real) -> Iterator[str]:
    """Statements that leave the sum of class c in sums[c][i]."""
    for c, start in enumerate(card.bias):
        yield f"int64_t s{c} = {integer(start)};"
    for number, (rule, points) in enumerate(zip(rules_of(program), card.points, strict=True)):
        if not any(points):
            continue
        yield f"const int64_t h{number} = -(int64_t)({condition(rule, real, MANY_ROWS)});"
        for c, worth in enumerate(points):
            if worth != 0:
                yield f"s{c} += {integer(worth)} & h{number};"
    for c in range(len(card.bias)):
        yield f"sums[{c}][i] = s{c};"


COUNTED_CUTS = 64
"""Up to this many cuts a value's bin is found by counting, beyond that by bisection."""

CACHE_LINE = 64
MOST_FETCHED_LINES = 8
"""A row spread over more cache lines than this is not prefetched."""


def batch_values(program: Program, real: Real, kernel: Kernel) -> dict[str, Any]:
    """The values of `templates/c/batch.c.jinja`, for the chosen kernel."""
    costs = ", ".join(f"{other} {cost:.0f}" for other, cost in kernel_costs(program, real).items())
    ahead = _fetched_ahead(used_features(program), real)
    values: dict[str, Any] = {"kernel": kernel, "costs": costs, "fetched_ahead": ahead}
    match program.decision:
        case Tree():
            values["verbs"] = [("predict", "class"), ("leaf", "leaf")]
            if kernel == "select":
                bodies = {
                    "class": ("Classes", select_tree(program, program.decision, real, "class")),
                    "leaf": ("Leaves", select_tree(program, program.decision, real, "leaf")),
                }
                values["kernels"] = [
                    _kernel(program, f"{kind}_block", what, lines, "int32_t *out", narrows(real))
                    for kind, (what, lines) in bodies.items()
                ]
        case Scorecard():
            values["verbs"] = [("predict", "sums"), ("score", "sums")]
            if kernel == "select":
                lines = list(select_card(program, program.decision, real))
                values["kernels"] = [
                    _kernel(program, "sums_block", "Sums of points", lines, "int64_t (*sums)[GBFL_BLOCK]")
                ]
            elif kernel == "bits":
                values["bits"] = _bits_values(tables(program, program.decision, real), real)
        case _:
            assert_never(program.decision)
    return values


def _fetched_ahead(used: Sequence[int], real: Real) -> list[int]:
    """The offsets of the cache lines of a row that a gather reads; none if there are many."""
    lines = sorted({feature * (8 if real == "double" else 4) // CACHE_LINE * CACHE_LINE for feature in used})
    return lines if len(lines) <= MOST_FETCHED_LINES else []


def _kernel(
    program: Program, function: str, what: str, lines: list[str], out: str, narrows: bool = False
) -> dict[str, Any]:
    slots = {feature: slot for slot, feature in enumerate(used_features(program))}
    used = sorted({int(number) for line in lines for number in re.findall(r"\bx(\d+)\b", line)})
    return {
        "function": function,
        "what": what,
        "lines": lines,
        "out": out,
        "narrows": narrows,
        "variables": [(feature, slots[feature]) for feature in used],
    }


def _bits_values(bit_tables: Tables, real: Real) -> dict[str, Any]:
    cuts = [_cut(value, real) for cuts in bit_tables.cuts for value in cuts] or ["0"]
    first_cuts = [sum(len(c) for c in bit_tables.cuts[:u]) for u in range(len(bit_tables.cuts))]
    features = zip(first_cuts, bit_tables.cuts, bit_tables.first_bin, strict=True)
    return {
        "cuts": cuts,
        "cut_rows": rows_of(cuts, 4),
        "features": [f"{first}u, {len(c)}u, {b}u" for first, c, b in features] or ["0u, 0u, 0u"],
        "bins": max(1, bit_tables.bins),
        "sums": [", ".join(integer(p) for p in row) for row in bit_tables.sums] or ["0"],
        "has_sums": [any(row[c] for row in bit_tables.sums) for c in range(len(bit_tables.bias))],
        "groups": [[", ".join(f"0x{word:016x}u" for word in row) for row in group] for group in bit_tables.masks],
        "points": [", ".join(integer(p) for p in row) for row in bit_tables.points],
        "bias": [integer(b) for b in bit_tables.bias],
        "lane": "int64_t" if real == "double" else "int32_t",
        "most_counted": COUNTED_CUTS,
    }


def _cut(value: float, real: Real) -> str:
    if abs(value) != float("inf"):
        return literal(value, real)
    return "GBFL_INFINITY" if value > 0 else "-GBFL_INFINITY"
