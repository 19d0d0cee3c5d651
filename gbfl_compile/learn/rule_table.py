"""Rules as tables: what each clause covers, how right it is and what it counts, and why a row got its class."""

from __future__ import annotations

from typing import Any, assert_never

import numpy as np
import pandas as pd

from gbfl_compile.ir.batch import clause_column
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Clause, Leaf, Program, Scorecard, Split, Tree
from gbfl_compile.ir.readable import clause_text
from gbfl_compile.ir.trees import leaf_numbers, paths
from gbfl_compile.learn.black_box import Ints, Matrix
from gbfl_compile.learn.clauses import Mined
from gbfl_compile.learn.explanations import Explanations


def rule_table(program: Program, e: Explanations, mined: Mined | None) -> pd.DataFrame:
    """One line a clause: its text, support, precision a class, weight, and the rows whose explanations it comes from.

    Support is the number of training rows it holds on, precision the share of those that the black box gives a
    class. A mined clause comes from the rows it was mined from; one that was searched comes from the rows whose
    explanation it tells, holding at x and at the PP and not at the PN.
    """
    origin = dict(zip(mined.clauses, mined.sources, strict=True)) if mined is not None else {}
    weights = _weights(program, e)
    lines = []
    for number, clause in enumerate(program.clauses):
        holds = clause_column(clause, e.x)
        classes = np.bincount(e.label[holds], minlength=len(program.classes)) / max(1, int(holds.sum()))
        lines.append(
            {
                "clause": clause_text(clause, program.features),
                "support": int(holds.sum()),
                **{f"precision_{label}": share for label, share in zip(program.classes, classes.tolist(), strict=True)},
                **weights[number],
                "sources": origin.get(clause) or _rows_told(clause, e),
            }
        )
    return pd.DataFrame(lines)


def _weights(program: Program, e: Explanations) -> list[dict[str, float]]:
    match program.decision:
        case Scorecard(_, points, scale):
            named = [f"weight_{label}" for label in program.classes]
            return [
                dict(zip(named, np.ldexp(np.array(row, dtype=float), -scale).tolist(), strict=True)) for row in points
            ]
        case Tree():
            return [{"weight": share} for share in _importances(program, program.decision, e).tolist()]
        case _:
            assert_never(program.decision)


def _importances(program: Program, tree: Tree, e: Explanations) -> Matrix:
    """How much of the black box's classes on x each clause sorts out: the Gini gains of its splits, adding up to 1."""
    gains = np.zeros(len(program.clauses))
    at: dict[int, Ints] = {0: np.arange(len(e.x))}
    for index, node in enumerate(tree.nodes):
        here = at.pop(index)
        if isinstance(node, Split):
            holds = clause_column(program.clauses[node.clause], e.x[here])
            at[node.then], at[node.otherwise] = here[holds], here[~holds]
            parts = _impurity(e.label[here[holds]]) + _impurity(e.label[here[~holds]])
            gains[node.clause] += _impurity(e.label[here]) - parts
    return np.asarray(gains / gains.sum()) if gains.sum() > 0 else gains


def _impurity(labels: Ints) -> float:
    counts = np.bincount(labels)
    return float(len(labels) - np.square(counts).sum() / len(labels)) if len(labels) else 0.0


def _rows_told(clause: Clause, e: Explanations) -> tuple[int, ...]:
    told = clause_column(clause, e.x) & (clause_column(clause, e.pp) | ~e.has_pp)
    told &= ~clause_column(clause, e.pn) & e.has_pn
    return tuple(np.flatnonzero(told).tolist())


def reasons(program: Program, x: Matrix) -> list[tuple[str, ...]]:
    """Why each row got its class: the answers on its way through a tree, or the clauses that held and their worth."""
    texts = [clause_text(clause, program.features) for clause in program.clauses]
    match program.decision:
        case Tree():
            ways = _ways(program.decision, texts)
            return [ways[evaluate(program, row).leaf or 0] for row in x.tolist()]
        case Scorecard(_, points, _):
            return [_told(program, points, texts, row) for row in x.tolist()]
        case _:
            assert_never(program.decision)


def _ways(tree: Tree, texts: list[str]) -> dict[int, tuple[str, ...]]:
    clause_of = {index: node.clause for index, node in enumerate(tree.nodes) if isinstance(node, Split)}
    numbers, steps = leaf_numbers(tree), paths(tree)
    return {
        numbers[index]: tuple(
            texts[clause_of[split]] if held else f"not ({texts[clause_of[split]]})" for split, held in steps[index]
        )
        for index, node in enumerate(tree.nodes)
        if isinstance(node, Leaf)
    }


def _told(program: Program, points: tuple[tuple[int, ...], ...], texts: list[str], row: list[float]) -> tuple[str, ...]:
    """The clauses that held, those that speak most for the winning class first."""
    answer = evaluate(program, row)
    best = program.classes.index(answer.label)

    def for_winner(clause: int) -> int:
        """By how much the clause puts the winner ahead of the best of the others."""
        others = [worth for c, worth in enumerate(points[clause]) if c != best]
        return points[clause][best] - max(others, default=0)

    return tuple(f"{for_winner(i):+d}: {texts[i]}" for i in sorted(answer.held, key=lambda i: -for_winner(i)))


def changes(given: Matrix, changed: Matrix, features: tuple[str, ...]) -> list[dict[str, Any]]:
    """For each row the features that differ, with their new values."""
    return [
        {features[j]: float(after[j]) for j in np.flatnonzero(before != after)}
        for before, after in zip(given, changed, strict=True)
    ]
