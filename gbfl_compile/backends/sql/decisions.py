"""Trees as CASE expressions, nested where the tree branches and flat along its rule lists; rule sets as sums of points.

The points of a rule set are integers in balanced sums, the label is decided on the sums, probabilities by bands or exp:

gbfl_points   the points of each class: 3 for this rule, -1 for that one
gbfl_top      the most points, where there are three classes or more
gbfl_weights  exp of the distance to it, where probabilities are needed
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias, assert_never

from gbfl_compile.backends.sql.conditions import clause_fails, clause_holds
from gbfl_compile.backends.sql.dialect import Dialect
from gbfl_compile.backends.sql.options import Output
from gbfl_compile.backends.sql.points import (
    REASON,
    cast,
    held_rules_text,
    join_terms,
    points_name,
    points_stages,
    terms,
    varying_classes,
)
from gbfl_compile.backends.sql.text import Item, Stage, identifier, item, label, literal, string, whole
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import card_probabilities, winner
from gbfl_compile.ir.nodes import Leaf, Program, Scorecard, Tree, deep_splits, leaf_numbers
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


CLAMP = 700.0
"""PostgreSQL raises where exp overflows or underflows; e^-700 vanishes beside 1."""

TOP = "gbfl_top"
LARGEST_EXPRESSION = 20_000
"""Terms of an expression that repeats every rule for each pair of classes."""


def rule_stages(
    dialect: Dialect, program: Program, card: Scorecard, names: Mapping[int, str], outputs: Sequence[Output]
) -> list[Stage]:
    """The stages from the features to the outputs."""
    kinds = {output.kind for output in outputs}
    classes = len(program.classes)
    varying = varying_classes(card)
    with_reason = "reason" in kinds and bool(program.clauses)
    if not varying and not with_reason:
        return [Stage("gbfl_scored", tuple(_constant(dialect, program, card, output) for output in outputs))]
    stages = points_stages(dialect, program, card, names, with_reason)
    points = tuple(points_name(c) for c in varying) + ((REASON,) if with_reason else ())
    sums = {c: identifier(dialect, points_name(c)) if c in varying else str(card.bias[c]) for c in range(classes)}
    if classes > 2 and varying:
        stages.append(Stage("gbfl_best", (item(TOP, f"{dialect.greatest}({', '.join(sums.values())})"),), points, True))
        points = (*points, TOP)
        if "probabilities" in kinds and not card.bands:
            weights = tuple(item(_weight(c), _exp(dialect, card, sums[c], identifier(dialect, TOP))) for c in sums)
            stages.append(Stage("gbfl_weighed", weights, points, True))
    answers = (
        _answer(dialect, program, card, sums, output)
        if varying or output.kind == "reason"
        else _constant(dialect, program, card, output)
        for output in outputs
    )
    return [*stages, Stage("gbfl_scored", tuple(answers))]


def _constant(dialect: Dialect, program: Program, card: Scorecard, output: Output) -> Item:
    """The output where no rule gives points: the same for every row."""
    match output.kind:
        case "label":
            return item(output.name, label(dialect, program.classes[winner(card.bias)]))
        case "probabilities":
            return item(output.name, literal(dialect, card_probabilities(card, card.bias)[output.index]))
        case "score":
            return item(output.name, f"CAST({whole(dialect, card.bias[output.index])} AS {dialect.bigint})")
        case "reason":
            return item(output.name, "''")
        case "leaf":
            raise BadInput("a rule set has no leaf")
        case _:
            assert_never(output.kind)


def _weight(index: int) -> str:
    return f"gbfl_weight_{index}"


def _answer(dialect: Dialect, program: Program, card: Scorecard, sums: Mapping[int, str], output: Output) -> Item:
    match output.kind:
        case "label":
            return item(output.name, *_label_lines(dialect, program, sums))
        case "probabilities":
            if card.bands:
                return item(output.name, *_band_lines(dialect, card, output.index, partial(_lead, card, sums)))
            return item(output.name, _probability(dialect, card, sums, output.index))
        case "score":
            constant = f"CAST({sums[output.index]} AS {dialect.bigint})"
            return item(output.name, constant if sums[output.index].lstrip("-").isdigit() else sums[output.index])
        case "reason":
            return item(output.name, identifier(dialect, REASON))
        case "leaf":
            raise BadInput("a rule set has no leaf")


def _label_lines(dialect: Dialect, program: Program, sums: Mapping[int, str]) -> list[str]:
    """The class with the most points; the first of equal ones."""
    labels = [label(dialect, value) for value in program.classes]
    match len(labels):
        case 1:
            return labels
        case 2:
            return [f"CASE WHEN {sums[1]} > {sums[0]} THEN {labels[1]} ELSE {labels[0]} END"]
        case _:
            top = identifier(dialect, TOP)
            whens = [f"  WHEN {sums[c]} = {top} THEN {labels[c]}" for c in range(len(labels) - 1)]
            return ["CASE", *whens, f"  ELSE {labels[-1]}", "END"]


def _lead(card: Scorecard, sums: Mapping[int, str], first: int, second: int) -> str | int:
    """The points by which one class is ahead of another; a number where neither gets points from any rule."""
    if not {first, second} & set(varying_classes(card)):
        return card.bias[first] - card.bias[second]
    return sums[first] if sums[second] == "0" else f"{sums[first]} - {sums[second]}"


Lead: TypeAlias = Callable[[int, int], str | int]


def _band_lines(dialect: Dialect, card: Scorecard, index: int, lead: Lead) -> list[str]:
    """The constant of the winner's band: a class wins by `least` where it is that far ahead of each other class."""
    classes = range(len(card.bias))
    size = sum(map(len, card.bands)) * (len(classes) - 1) * len(classes)
    if size > LARGEST_EXPRESSION:
        raise BadInput(f"bands of {len(classes)} classes make {size} comparisons: use outputs=label,score")
    if all(isinstance(lead(0, other), int) for other in classes[1:]):  # the same lead on every row
        return [literal(dialect, card_probabilities(card, card.bias)[index])]
    lines = ["CASE"]
    for c, own in enumerate(card.bands):
        for place in reversed(range(len(own))):
            below = own[place - 1] if place else card.bands[-1][0]
            if (place or c == classes[-1]) and own[place].probabilities[index] == below.probabilities[index]:
                continue  # it goes on as below, or as what is left over
            needs = {other: max(own[place].least, int(other < c)) for other in classes if other != c}
            ahead = {other: lead(c, other) for other in needs}
            if any(isinstance(ahead[other], int) and int(ahead[other]) < least for other, least in needs.items()):
                continue  # no row gets there
            parts = [f"{ahead[o]} >= {whole(dialect, n)}" for o, n in needs.items() if isinstance(ahead[o], str)]
            when = f"  WHEN {' AND '.join(parts)} THEN "
            if not lines[-1].startswith(when):  # else the band above begins where this one does
                lines.append(f"{when}{literal(dialect, own[place].probabilities[index])}")
    otherwise = literal(dialect, card.bands[-1][0].probabilities[index])
    return [*lines, f"  ELSE {otherwise}", "END"] if len(lines) > 1 else [otherwise]


def _probability(dialect: Dialect, card: Scorecard, sums: Mapping[int, str], index: int) -> str:
    match len(sums):
        case 1:
            return literal(dialect, 1.0)
        case 2:
            return _logistic(dialect, [_exp(dialect, card, sums[1 - index], sums[index])])
        case classes:
            weights = [identifier(dialect, _weight(c)) for c in range(classes)]
            return f"{weights[index]} / {' '.join(join_terms(dialect, weights))}"


def _logistic(dialect: Dialect, others: Sequence[str]) -> str:
    one = literal(dialect, 1.0)
    return f"{one} / {' '.join(join_terms(dialect, [one, *others]))}"


def _exp(dialect: Dialect, card: Scorecard, points: str, against: str) -> str:
    """exp of a difference of points, in logits."""
    difference = f"CAST({points} - {against} AS {dialect.double})"
    logits = f"{difference} * {literal(dialect, math.ldexp(1.0, -card.scale))}" if card.scale else difference
    low, high = literal(dialect, -CLAMP), literal(dialect, CLAMP)
    return f"EXP({dialect.greatest}({dialect.least}({logits}, {high}), {low}))"


def rule_expressions(
    dialect: Dialect, program: Program, card: Scorecard, columns: Mapping[int, str], outputs: Sequence[Output]
) -> list[Item]:
    """Each output as one expression without stages, which compares sums of differences of points."""
    classes = len(program.classes)
    pairs = classes * (classes - 1) // 2
    if any(output.kind == "probabilities" for output in outputs):
        pairs = max(pairs, sum(map(len, card.bands)) * (classes - 1))
    if pairs * max(1, len(program.clauses)) > LARGEST_EXPRESSION:
        raise BadInput(
            f"one expression would repeat {len(program.clauses)} rules {pairs} times, "
            f"once per pair of the {classes} classes or band: use form=select, which adds them up once"
        )
    clause_conditions = [clause_holds(dialect, clause, columns, program.kinds) for clause in program.clauses]

    def ahead(first: int, second: int) -> str:
        """The points by which `first` is ahead of `second`."""
        points = tuple((row[first] - row[second],) for row in card.points)
        bias = card.bias[first] - card.bias[second]
        added = terms(dialect, Scorecard((bias,), points), 0, range(len(clause_conditions)), clause_conditions)
        return " ".join(join_terms(dialect, [whole(dialect, bias), *added]))

    def ahead_or_constant(first: int, second: int) -> str | int:
        varies = any(row[first] != row[second] for row in card.points)
        return ahead(first, second) if varies else card.bias[first] - card.bias[second]

    def lines(output: Output) -> list[str]:
        if not varying_classes(card) and output.kind != "reason":
            return list(_constant(dialect, program, card, output).lines)
        c = output.index
        match output.kind:
            case "label":
                return _paired_label_lines(dialect, program, ahead)
            case "probabilities" if card.bands:
                return _band_lines(dialect, card, c, ahead_or_constant)
            case "probabilities":
                others = [_exp(dialect, card, ahead(other, c), "0") for other in range(classes) if other != c]
                return [_logistic(dialect, others)] if others else [literal(dialect, 1.0)]
            case "score":
                added = terms(dialect, card, c, range(len(clause_conditions)), clause_conditions)
                return cast(join_terms(dialect, [whole(dialect, card.bias[c]), *added]), dialect.bigint)
            case "reason":
                return held_rules_text(dialect, program, clause_conditions)
            case "leaf":
                raise BadInput("a rule set has no leaf")

    return [Item(output.name, tuple(lines(output))) for output in outputs]


def _paired_label_lines(dialect: Dialect, program: Program, ahead: Callable[[int, int], str]) -> list[str]:
    labels = [label(dialect, value) for value in program.classes]
    classes = len(labels)
    if classes == 1:
        return labels
    lines = ["CASE"]
    for c in range(classes - 1):
        beats = " AND ".join(f"{ahead(c, other)} >= 0" for other in range(c + 1, classes))
        lines.append(f"  WHEN {beats} THEN {labels[c]}")
    return [*lines, f"  ELSE {labels[-1]}", "END"]
