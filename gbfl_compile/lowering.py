"""Fitted models become programs here: the one place that knows scikit-learn's arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.nodes import Leaf, Program, Split, Tree
from gbfl_compile.ir.trees import preorder
from gbfl_compile.ir.validate import validate
from gbfl_compile.learn.classifier import GBFLClassifier
from gbfl_compile.provenance import provenance


def lower(model: GBFLClassifier, figures: Mapping[str, Any] | None = None) -> Program:
    """The program that agrees with a fitted classifier on every assignment of its clauses.

    `figures` are JSON to keep in the metadata beside what is known of the fit: test accuracy, say.
    """
    if not hasattr(model, "tree_"):
        raise BadInput("the classifier is not fitted: call fit first")
    program = Program(
        features=tuple(model.domain_.features),
        classes=tuple(model.classes_.tolist()),
        clauses=model.clauses_,
        decision=_tree(model.tree_, len(model.classes_)),
        metadata=provenance(model, figures or {}),
    )
    return _with_row_counts(validate(program), model.explanations_.x)


def _tree(fitted: Any, classes: int) -> Tree:
    """scikit-learn's node arrays as nodes. A clause is a 0/1 column split at 0.5, so right is where it holds."""
    arrays = fitted.tree_
    nodes: list[Split | Leaf] = []
    for index in range(arrays.node_count):
        if arrays.children_left[index] < 0:
            nodes.append(Leaf(_probabilities(arrays.value[index, 0], fitted.classes_, classes)))
        else:
            then, otherwise = int(arrays.children_right[index]), int(arrays.children_left[index])
            nodes.append(Split(int(arrays.feature[index]), then, otherwise))
    return preorder(nodes)


def _probabilities(found: Any, known: Any, classes: int) -> tuple[float, ...]:
    """One probability a class; a class that no fitted row had is unknown to the tree and gets 0."""
    probabilities = np.zeros(classes)
    probabilities[known] = found
    return tuple(probabilities.tolist())


def _with_row_counts(program: Program, rows: Any) -> Program:
    """The program with the number of training rows that end in each leaf, for readers."""
    if not isinstance(program.decision, Tree):
        return program
    leaves = np.asarray(evaluate_many(program, rows).leaves)
    counts = iter(np.bincount(leaves, minlength=len(program.decision.nodes)).tolist())
    nodes = (replace(node, rows=next(counts)) if isinstance(node, Leaf) else node for node in program.decision.nodes)
    return replace(program, decision=Tree(tuple(nodes)))
