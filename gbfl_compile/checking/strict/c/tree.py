"""What was found of a decision tree, as decisions: one row at a time, and by its select kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from gbfl_compile.checking.reading.choices import Value, choice, decision_of
from gbfl_compile.checking.reading.nodes import Outcome, StepDecision, Unread
from gbfl_compile.checking.reading.tables import Step, leaf_outcome, way_to
from gbfl_compile.checking.strict.c.contents import check_columns, check_kernel_columns, check_rows, check_shape
from gbfl_compile.checking.strict.c.template import Contents

Place = tuple[tuple[str, ...], StepDecision]
ONE_ROW = ("predict", "predict_proba", "explain")


def tree_places(batch: str, contents: Contents) -> list[Place]:
    """The functions of a tree, those that come to the same together, and what they decide."""
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
            return [(ONE_ROW, whole), *kernels]
        case "row by row":
            check_rows(contents)
            return [((*ONE_ROW, "predict_rows", "predict_columns", "leaf_rows", "leaf_columns"), whole)]
        case _:
            return [(ONE_ROW, whole)]


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
            raise Unread(f"{kind}_block asks {node} before it is there")
        return values[node]

    for step in contents[f"{kind}_steps"]:
        name = f"n{step['step']}"
        if name in values:
            raise Unread(f"{kind}_block has {name} twice")
        values[name] = choice(step["holds"], value(step["then"]), value(step["otherwise"]))
    return value(contents[f"{kind}_answer"])
