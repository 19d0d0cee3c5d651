"""The batch kernels and the choice between them.

    ifelse   the code of one row, row after row
    select   bottom-up selects without branches, a block of rows at a time
    bits     rule sets only: bins and bit masks (c_tables)

All give the same answers; a test holds them to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias, assert_never

from gbfl_compile.backends.c_conditions import MANY_ROWS, condition, used_features
from gbfl_compile.backends.c_numbers import Real, integer
from gbfl_compile.backends.c_tables import WORDS, cut_points
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import winner
from gbfl_compile.ir.nodes import Leaf, Program, Scorecard, Split, Tree
from gbfl_compile.ir.trees import leaf_numbers

Kernel: TypeAlias = Literal["ifelse", "select", "bits"]

# The cost model: nanoseconds a row, fitted by hand to one noisy trial on such shapes as tests/bench/group_c.py has.
COMPARE_IN_SELECT = 0.1
NODE_IN_SELECT = 0.1
SPILLS_DOUBLE_SELECT = 1000
"""Comparisons after which a select kernel costs twice as much each: its values no longer fit in registers."""
LEVEL_IN_IFELSE = 4.6
"""A step down a tree that a branch predictor cannot guess."""
COMPARE_IN_IFELSE = 0.85
COMPARE_IN_RULES = 2.0
CUT_IN_BITS = 0.14
HALVING_IN_BITS = 10.0
"""Where a feature has so many cuts that its bins are found by halving."""
FEATURE_IN_BITS = 4.0
"""For each group of 256 clauses."""
ROW_IN_BITS = 10.0

MOST_CLASSES, MOST_COLUMNS = 64, 256
"""Past these a block of rows takes too much stack for the kernels that work on blocks."""


def choose(program: Program, wanted: str, real: Real) -> Kernel:
    """The kernel asked for, or for `auto` the one the cost model expects to be quickest."""
    costs = kernel_costs(program, real)
    if not used_features(program):  # every row gets the same answer: there is nothing to choose
        return "ifelse"
    if wanted == "auto":
        return min(costs, key=lambda kernel: costs[kernel])
    for kernel in costs:
        if kernel == wanted:
            return kernel
    raise BadInput(f"target c: kernel={wanted!r} cannot run this program: use {' or '.join(costs)}")


def kernel_costs(program: Program, real: Real) -> dict[Kernel, float]:
    """What the cost model expects of each kernel that can run the program."""
    expected = _all_costs(program, real)
    if len(program.classes) > MOST_CLASSES or len(used_features(program)) > MOST_COLUMNS:
        return {"ifelse": expected["ifelse"]}
    return expected


def _all_costs(program: Program, real: Real) -> dict[Kernel, float]:
    compared = [len([b for a in c.atoms for b in (a.lo, a.hi) if b is not None]) for c in program.clauses]
    match program.decision:
        case Tree(nodes):
            splits = [node for node in nodes if isinstance(node, Split)]
            asked = sum(compared[node.clause] for node in splits)
            steps = _mean_depth(program.decision)
            per_step = asked / len(splits) if splits else 0.0
            return {
                "select": _select_cost(asked, len(splits)),
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


def _select_cost(compared: int, nodes: int) -> float:
    return (COMPARE_IN_SELECT * compared + NODE_IN_SELECT * nodes) * (1 + compared / SPILLS_DOUBLE_SELECT)


def _mean_depth(tree: Tree) -> float:
    """Steps to a leaf when each side of a split is as likely."""
    share = [0.0] * len(tree.nodes)
    share[0] = 1.0
    for index, node in enumerate(tree.nodes):
        if isinstance(node, Split):
            share[node.then] = share[node.otherwise] = share[index] / 2
    return sum(share[index] for index, node in enumerate(tree.nodes) if isinstance(node, Split))


def select_tree(program: Program, tree: Tree, real: Real, answer: Literal["leaf", "class"]) -> list[str]:
    """Statements from the leaves up to the root's answer; a split whose sides agree is left out.

    A select is spelled with masks: gcc moves the sides of `?:` behind a branch, and there it may not
    vectorise a comparison (it could trap). The answer of a double kernel stays in 64 bits, as the masks are, and is
    narrowed in a loop of its own: gcc would otherwise do every mask twice over to fill 32-bit lanes.
    """
    number = leaf_numbers(tree)
    lane = "int64_t" if real == "double" else "int32_t"
    value: dict[int, str] = {}
    lines = []
    for index in reversed(range(len(tree.nodes))):
        node = tree.nodes[index]
        if isinstance(node, Leaf):
            value[index] = str(number[index] if answer == "leaf" else winner(node.probabilities))
            continue
        then, otherwise = value.pop(node.then), value.pop(node.otherwise)
        if then == otherwise:
            value[index] = then
            continue
        asked = condition(program.clauses[node.clause], real, MANY_ROWS)
        lines.append(f"const {lane} n{index} = {otherwise} ^ (({then} ^ {otherwise}) & -({lane})({asked}));")
        value[index] = f"n{index}"
    return [*lines, f"found[i] = {value[0]};" if narrows(real) else f"out[i] = {value[0]};"]


def narrows(real: Real) -> bool:
    """Whether a tree's select kernel works in lanes wider than the answers it leaves."""
    return real == "double"


def select_card(program: Program, card: Scorecard, real: Real) -> Iterator[str]:
    """Statements that leave the sum of class c in sums[c][i]."""
    for c, start in enumerate(card.bias):
        yield f"int64_t s{c} = {integer(start)};"
    for number, (clause, points) in enumerate(zip(program.clauses, card.points, strict=True)):
        if not any(points):
            continue
        yield f"const int64_t h{number} = -(int64_t)({condition(clause, real, MANY_ROWS)});"
        for c, worth in enumerate(points):
            if worth != 0:
                yield f"s{c} += {integer(worth)} & h{number};"
    for c in range(len(card.bias)):
        yield f"sums[{c}][i] = s{c};"
