"""Trees as CASE expressions, nested where the tree branches and flat along its rule lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from gbfl_compile.backends.sql.conditions import clause_fails, clause_holds
from gbfl_compile.backends.sql.dialect import Dialect
from gbfl_compile.backends.sql.options import Output
from gbfl_compile.backends.sql.text import Item, Stage, identifier, item, label, literal, string
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Leaf, Program, Tree, deep_splits, leaf_numbers
from gbfl_compile.ir.text import leaf_reasons

DEEP = 6
"""From this many nested CASEs on, the deeper side of a split continues the list of WHENs instead."""

FEW_LEAVES = 32
"""Up to this many leaves, one CASE per output is faster than a stage for the leaf, where look-ups are CASEs too."""

FAN = 4
"""A look-up by leaf number branches four ways at each level."""

LEAF = "gbfl_leaf"


def tree_stages(
    dialect: Dialect, program: Program, tree: Tree, columns: Mapping[int, str], outputs: Sequence[Output]
) -> list[Stage]:
    """The stages to the outputs: the outputs directly, or the leaf once and then the outputs by its number."""
    leaves = [node for node in tree.nodes if isinstance(node, Leaf)]
    if len(outputs) == 1 or len(leaves) == 1 or (len(leaves) <= FEW_LEAVES and not dialect.lists):
        return [Stage("gbfl_scored", tuple(tree_items(dialect, program, tree, columns, outputs)))]
    numbers = [str(number) for number in range(len(leaves))]
    reached = Stage(
        "gbfl_reached", (Item(LEAF, tuple(case_lines(dialect, program, tree, columns, numbers))),), (), True
    )
    items = tuple(
        Item(output.name, tuple(_lookup_lines(dialect, values)))
        for output, values in _values(dialect, program, tree, outputs)
    )
    return [reached, Stage("gbfl_scored", items)]


def tree_items(
    dialect: Dialect, program: Program, tree: Tree, columns: Mapping[int, str], outputs: Sequence[Output]
) -> Iterator[Item]:
    """Each output as its own CASE."""
    for output, values in _values(dialect, program, tree, outputs):
        yield item(output.name, *case_lines(dialect, program, tree, columns, values))


def _values(
    dialect: Dialect, program: Program, tree: Tree, outputs: Sequence[Output]
) -> Iterator[tuple[Output, list[str]]]:
    """Each output with its value at every leaf, in the order of the leaves."""
    leaves = [node for node in tree.nodes if isinstance(node, Leaf)]
    for output in outputs:
        match output.kind:
            case "label":
                yield output, [label(dialect, program.classes[leaf.winner]) for leaf in leaves]
            case "probabilities":
                yield output, [literal(dialect, leaf.probabilities[output.index]) for leaf in leaves]
            case "leaf":
                yield output, [str(number) for number in range(len(leaves))]
            case "reason":
                yield output, [string(dialect, text) for text in leaf_reasons(program, tree)]
            case "score":
                raise BadInput("a tree has no score")


def case_lines(
    dialect: Dialect, program: Program, tree: Tree, columns: Mapping[int, str], values: Sequence[str]
) -> list[str]:
    """The tree as a CASE that picks one of `values`, by the number of the leaf reached."""
    inverted = deep_splits(tree, DEEP)
    number = leaf_numbers(tree)
    _refuse_too_deep(dialect, tree, inverted)

    def lines_from(index: int, indent: str) -> list[str]:
        if index in number:
            return [f"{indent}{values[number[index]]}"]
        lines = [f"{indent}CASE"]
        while index not in number:
            condition, first, index = _step(index)
            if first in number:
                lines.append(f"{indent}  WHEN {condition} THEN {values[number[first]]}")
            else:
                lines += [f"{indent}  WHEN {condition} THEN", *lines_from(first, f"{indent}    ")]
        return [*lines, f"{indent}  ELSE {values[number[index]]}", f"{indent}END"]

    def _step(index: int) -> tuple[str, int, int]:
        node = tree.nodes[index]
        assert not isinstance(node, Leaf)  # noqa: S101 - called for splits only
        condition: Callable[..., str] = clause_fails if index in inverted else clause_holds
        first, second = (node.otherwise, node.then) if index in inverted else (node.then, node.otherwise)
        return condition(dialect, program.clauses[node.clause], columns, program.kinds), first, second

    return lines_from(0, "")


def _refuse_too_deep(dialect: Dialect, tree: Tree, inverted: set[int]) -> None:
    """Compute the heights and lengths of the CASEs before any text is written."""
    height, length = [0] * len(tree.nodes), [0] * len(tree.nodes)
    for index in reversed(range(len(tree.nodes))):
        node = tree.nodes[index]
        if isinstance(node, Leaf):
            continue
        first, second = (node.otherwise, node.then) if index in inverted else (node.then, node.otherwise)
        height[index] = max(height[first] + 1, height[second])
        length[index] = length[second] + 1
    if height[0] > dialect.nesting:
        raise BadInput(
            f"the tree needs {height[0]} nested CASEs, {dialect.engine} takes {dialect.nesting}: fit fewer leaves"
        )
    if max(length) > dialect.whens:
        raise BadInput(
            f"a CASE of {max(length)} WHENs: {dialect.engine} takes {dialect.whens}, fit a shorter rule list"
        )


def _lookup_lines(dialect: Dialect, values: Sequence[str]) -> list[str]:
    """One of `values` by the leaf's number: an index into a constant list, or a balanced CASE."""
    leaf = identifier(dialect, LEAF)
    if len(set(values)) == 1:
        return [values[0]]
    if dialect.lists:
        return [f"[{', '.join(values)}][{leaf} + 1]"]
    ends = [number + 1 for number, value in enumerate(values) if value != (*values, None)[number + 1]]

    def lines_for(runs: Sequence[int], indent: str) -> list[str]:
        if len(runs) == 1:
            return [f"{indent}{values[runs[0] - 1]}"]
        size = -(-len(runs) // FAN)
        parts = [runs[start : start + size] for start in range(0, len(runs), size)]
        lines = [f"{indent}CASE"]
        for part in parts[:-1]:
            lines += [f"{indent}  WHEN {leaf} < {part[-1]} THEN", *lines_for(part, f"{indent}    ")]
        return [*lines, f"{indent}  ELSE", *lines_for(parts[-1], f"{indent}    "), f"{indent}END"]

    return lines_for(ends, "")
