"""scikit-learn's trees on raw features as rules: its cast to float32 is folded into every threshold.

scikit-learn rounds a value to float32 and compares that with a float64 threshold. A rule compares the double
itself, so it needs another number: the largest double that still rounds to a float32 at or below the threshold.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Clause, Interval, Leaf, Split, Tree, preorder

LEAF = -1
"""scikit-learn's mark for no child."""

STATE = {"max_depth", "node_count", "nodes", "values"}
"""What scikit-learn keeps about a tree."""

NODE_FIELDS = {
    "left_child": "i",
    "right_child": "i",
    "feature": "i",
    "threshold": "f",
    "impurity": "f",
    "n_node_samples": "i",
    "weighted_n_node_samples": "f",
    "missing_go_to_left": "u",
}
"""What scikit-learn keeps about a node, with the kind of number: a node is a leaf or `x <= threshold`."""


def folded_threshold(threshold: float) -> float | None:
    """The double w for which `x <= w` says what `float32(x) <= threshold` says; None where every number does.

    Half way between two neighbouring float32s a double rounds to the even one, so the border is that point
    or the double just below it.

    >>> folded_threshold(0.5)
    0.5000000298023224
    """
    if np.isnan(threshold):
        raise BadInput("a threshold of the tree is NaN: nothing can be compared with it")
    if threshold == np.inf:
        return None
    with np.errstate(over="ignore"):  # beyond the float32s lies infinity, as it does for scikit-learn
        least = np.float32(threshold)
        if float(least) > threshold:
            least = np.nextafter(least, np.float32(-np.inf))
        next_ = np.nextafter(least, np.float32(np.inf))
        border = _half_way(float(least), float(next_))
        if float(np.float32(border)) > threshold:
            border = float(np.nextafter(border, -np.inf))
    return border


def _half_way(least: float, next_: float) -> float:
    """The middle of two neighbouring float32s, exact; infinity takes the place of the next float32, at 2**128."""
    beyond = 2.0**128
    return max(least, -beyond) / 2 + min(next_, beyond) / 2


def raw_tree(fitted: Any, classes: int, known: Any = None) -> tuple[tuple[Clause, ...], Tree]:
    """The clauses and the tree of a fitted DecisionTreeClassifier: one clause `x <= w` for each different split.

    `known` says which of `classes` the tree's own classes are; left out, they are the same ones. Where a value
    is missing the clause answers as the tree would go, so right stays `otherwise` and left `then`.
    """
    refuse_unknown_nodes(fitted)
    arrays = fitted.tree_
    known = np.arange(classes) if known is None else known
    clauses: dict[Clause, int] = {}
    nodes: list[Split | Leaf] = []
    for index in range(arrays.node_count):
        left, right = int(arrays.children_left[index]), int(arrays.children_right[index])
        if left == LEAF:
            probabilities = _probabilities(arrays.value[index, 0], known, classes)
            nodes.append(Leaf(probabilities, int(arrays.n_node_samples[index])))
        else:
            clause = Clause((_atom(arrays, index),))
            nodes.append(Split(clauses.setdefault(clause, len(clauses)), left, right))
    return tuple(clauses), preorder(nodes)


def refuse_unknown_nodes(fitted: Any) -> None:
    """Refuse a tree whose nodes may mean more than `x <= threshold`, such as splits on categories."""
    state = fitted.tree_.__getstate__()
    dtype = state["nodes"].dtype
    fields = {name: dtype[name].kind for name in dtype.names}
    unknown = [*sorted(state.keys() - STATE), *sorted(name for name in fields if fields[name] != NODE_FIELDS.get(name))]
    lacking = sorted(NODE_FIELDS.keys() - fields.keys())
    categories = [name for name, value in vars(fitted).items() if "categor" in name and value is not None]
    for what in (*unknown, *categories):
        raise BadInput(
            f"the tree has {what!r}, which this version does not know: use numeric splits, or an older scikit-learn"
        )
    for what in lacking:
        raise BadInput(f"the tree's nodes have no {what!r}: fit it with a newer scikit-learn")


def _atom(arrays: Any, index: int) -> Interval:
    most = folded_threshold(float(arrays.threshold[index]))
    missing = bool(arrays.missing_go_to_left[index])
    return Interval(int(arrays.feature[index]), None, most, closed="right", if_missing=missing)


def _probabilities(shares: Any, known: Any, classes: int) -> tuple[float, ...]:
    """One probability per class; a class that no fitted row had is unknown to the tree and gets 0."""
    probabilities = np.zeros(classes)
    probabilities[known] = shares
    return tuple(probabilities.tolist())
