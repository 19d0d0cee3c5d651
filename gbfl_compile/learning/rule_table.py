"""Rules as tables: what each clause covers, its precision and its weight, and why a row got its class."""

from __future__ import annotations

from typing import Any, assert_never

import numpy as np
import pandas as pd

from gbfl_compile.ir.batch import clause_column
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.kinds import Codebook, Columns, Value, decode_rows, decode_value
from gbfl_compile.ir.nodes import Clause, Leaf, Program, Scorecard, Split, Tree, leaf_numbers, paths
from gbfl_compile.ir.text import clause_text
from gbfl_compile.learning.black_box.ask import Ints, Matrix
from gbfl_compile.learning.clauses.mine import MinedClauses
from gbfl_compile.learning.explain.explanations import Explanations
from gbfl_compile.learning.explain.table_values import differ


def rule_table(
    program: Program, e: Explanations, mined: MinedClauses | None, book: Codebook | None = None
) -> pd.DataFrame:
    """One line per clause: its text, support, precision per class, weight, and its source rows.

    Support is the number of training rows it holds on, precision the share of those that the black box gives a
    class. The sources of a mined clause are the rows it was mined from; those of a searched clause are the rows whose
    explanation it matches, holding at x and at the PP and not at the PN. A `book` has the codes of the rows' words.
    """
    origin = dict(zip(mined.clauses, mined.sources, strict=True)) if mined is not None else {}
    weights = _weights(program, e, book)
    lines = []
    for number, clause in enumerate(program.clauses):
        holds = clause_column(clause, e.x, book)
        classes = np.bincount(e.label[holds], minlength=len(program.classes)) / max(1, int(holds.sum()))
        lines.append(
            {
                "clause": clause_text(clause, program.features, program.kinds),
                "support": int(holds.sum()),
                **{f"precision_{label}": share for label, share in zip(program.classes, classes.tolist(), strict=True)},
                **weights[number],
                "sources": origin.get(clause) or _matching_rows(clause, e, book),
            }
        )
    return pd.DataFrame(lines)


def _weights(program: Program, e: Explanations, book: Codebook | None) -> list[dict[str, float]]:
    match program.decision:
        case Scorecard(_, points, scale):
            columns = [f"weight_{label}" for label in program.classes]
            return [
                dict(zip(columns, np.ldexp(np.array(row, dtype=float), -scale).tolist(), strict=True)) for row in points
            ]
        case Tree():
            return [{"weight": share} for share in _importances(program, program.decision, e, book).tolist()]
        case _:
            assert_never(program.decision)


def _importances(program: Program, tree: Tree, e: Explanations, book: Codebook | None) -> Matrix:
    """How well each clause separates the black box's classes on x: the Gini gains of its splits, adding up to 1."""
    gains = np.zeros(len(program.clauses))
    at: dict[int, Ints] = {0: np.arange(len(e.x))}
    for index, node in enumerate(tree.nodes):
        here = at.pop(index)
        if isinstance(node, Split):
            holds = clause_column(program.clauses[node.clause], e.x[here], book)
            at[node.then], at[node.otherwise] = here[holds], here[~holds]
            below = _impurity(e.label[here[holds]]) + _impurity(e.label[here[~holds]])
            gains[node.clause] += _impurity(e.label[here]) - below
    return np.asarray(gains / gains.sum()) if gains.sum() > 0 else gains


def _impurity(labels: Ints) -> float:
    counts = np.bincount(labels)
    return float(len(labels) - np.square(counts).sum() / len(labels)) if len(labels) else 0.0


def _matching_rows(clause: Clause, e: Explanations, book: Codebook | None) -> tuple[int, ...]:
    matches = clause_column(clause, e.x, book) & (clause_column(clause, e.pp, book) | ~e.has_pp)
    matches &= ~clause_column(clause, e.pn, book) & e.has_pn
    return tuple(np.flatnonzero(matches).tolist())


def reasons(program: Program, x: Matrix, columns: Columns | None = None) -> list[tuple[str, ...]]:
    """Why each row got its class: the answers on its path through a tree, or the clauses that held and their points.

    `columns` says what the codes in x mean where there are words.
    """
    rows: list[list[Value]] = x.tolist() if columns is None else decode_rows(program, x.tolist(), columns.book)
    texts = [clause_text(clause, program.features, program.kinds) for clause in program.clauses]
    match program.decision:
        case Tree():
            by_leaf = _path_texts(program.decision, texts)
            return [by_leaf[evaluate(program, row).leaf or 0] for row in rows]
        case Scorecard(_, points, _):
            return [_row_reasons(program, points, texts, row) for row in rows]
        case _:
            assert_never(program.decision)


def _path_texts(tree: Tree, texts: list[str]) -> dict[int, tuple[str, ...]]:
    clause_of = {index: node.clause for index, node in enumerate(tree.nodes) if isinstance(node, Split)}
    numbers, steps = leaf_numbers(tree), paths(tree)
    return {
        numbers[index]: tuple(
            texts[clause_of[split]] if held else f"not ({texts[clause_of[split]]})" for split, held in steps[index]
        )
        for index, node in enumerate(tree.nodes)
        if isinstance(node, Leaf)
    }


def _row_reasons(
    program: Program, points: tuple[tuple[int, ...], ...], texts: list[str], row: list[Value]
) -> tuple[str, ...]:
    """The clauses that held, those that count most for the winning class first."""
    answer = evaluate(program, row)
    best = program.classes.index(answer.label)

    def for_winner(clause: int) -> int:
        """By how much the clause puts the winner ahead of the best of the others."""
        others = [worth for c, worth in enumerate(points[clause]) if c != best]
        return points[clause][best] - max(others, default=0)

    return tuple(f"{for_winner(i):+d}: {texts[i]}" for i in sorted(answer.held, key=lambda i: -for_winner(i)))


def changes(
    start: Matrix, end: Matrix, features: tuple[str, ...], columns: Columns | None = None
) -> list[dict[str, Any]]:
    """For each row the features that differ, with their new values as the user has them."""

    def value(j: int, number: float) -> Any:
        return float(number) if columns is None else decode_value(columns.kinds[j], number, columns.book.texts[j])

    return [
        {features[j]: value(j, float(after[j])) for j in np.flatnonzero(differ(before, after)).tolist()}
        for before, after in zip(start, end, strict=True)
    ]
