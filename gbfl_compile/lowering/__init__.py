"""Fitted models become programs here; `sklearn_trees` is the one place that knows scikit-learn's arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.nodes import Clause, Decision, Leaf, Program, Tree
from gbfl_compile.ir.validate import validate
from gbfl_compile.learning.baselines import AugmentedTree, DistilledTree, StandardTree
from gbfl_compile.learning.classifier import GBFLClassifier
from gbfl_compile.lowering.provenance import provenance
from gbfl_compile.lowering.sklearn_trees import raw_tree


def lower(model: Any, figures: Mapping[str, Any] | None = None) -> Program:
    """The program that agrees with a fitted model on every row.

    A model is a GBFLClassifier, one of the baselines, or any fitted DecisionTreeClassifier of scikit-learn.
    `figures` are JSON to keep in the metadata beside what is known about the fit: test accuracy, for example.
    """
    clauses: tuple[Clause, ...]
    decision: Decision
    match model:
        case GBFLClassifier():
            head = _require_fitted(model).head_
            clauses, decision = head.clauses, head.decision
        case StandardTree() | DistilledTree() | AugmentedTree():
            fitted = _require_fitted(model).tree_
            clauses, decision = raw_tree(fitted, len(model.classes_), fitted.classes_)
        case DecisionTreeClassifier():
            clauses, decision = raw_tree(_one_output(_require_fitted(model)), len(model.classes_))
        case _:
            raise BadInput(
                f"a {type(model).__name__} cannot be lowered: give a GBFLClassifier, a baseline of "
                "learning.baselines, or a DecisionTreeClassifier"
            )
    program = Program(
        features=feature_names(model),
        classes=tuple(model.classes_.tolist()),
        clauses=clauses,
        decision=decision,
        metadata=provenance(model, figures or {}),
    )
    return _with_row_counts(validate(program), _training_rows(model))


def feature_names(model: Any) -> tuple[str, ...]:
    """The names the model was fitted with, or x0, x1, .."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return tuple(f"x{index}" for index in range(model.n_features_in_))
    return tuple(str(name) for name in names)


def _require_fitted(model: Any) -> Any:
    if not hasattr(model, "tree_") and not hasattr(model, "head_"):
        raise BadInput("the classifier is not fitted: call fit first")
    return model


def _one_output(model: Any) -> Any:
    if model.n_outputs_ != 1:
        raise BadInput(f"the tree has {model.n_outputs_} outputs and a program has one: fit a tree for each")
    return model


def _training_rows(model: Any) -> Any:
    """The rows a model was trained on, where it still has them."""
    if isinstance(model, GBFLClassifier):
        return model.explanations_.x
    return getattr(model, "x_", None)


def _with_row_counts(program: Program, rows: Any) -> Program:
    """The program with the number of training rows that end in each leaf, for readers."""
    if rows is None or not isinstance(program.decision, Tree):
        return program
    leaves = np.asarray(evaluate_many(program, rows).leaves)
    counts = iter(np.bincount(leaves, minlength=len(program.decision.nodes)).tolist())
    nodes = (replace(node, rows=next(counts)) if isinstance(node, Leaf) else node for node in program.decision.nodes)
    return replace(program, decision=Tree(tuple(nodes)))
