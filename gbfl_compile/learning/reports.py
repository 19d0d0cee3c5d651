"""Reports on a fitted model: its rules as tables, why a row got its class, and how models do on held-out rows.

Figures of held-out rows are outcomes, consistency by method, and baselines on the same explanations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.tree import DecisionTreeClassifier

from gbfl_compile.ir.batch import clause_column
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.kinds import Codebook, Columns, EncodedTable, Value, decode_rows, decode_value
from gbfl_compile.ir.nodes import Clause, Leaf, Program, Scorecard, Split, Tree, leaf_numbers, paths
from gbfl_compile.ir.text import clause_text
from gbfl_compile.learning.baselines import MAX_DEPTH, AugmentedTree, DistilledTree, StandardTree
from gbfl_compile.learning.black_box import Ints, Matrix, probabilities
from gbfl_compile.learning.calibration import folds
from gbfl_compile.learning.clauses.mine import MinedClauses
from gbfl_compile.learning.consistency import Consistency, Triplets, consistency_on
from gbfl_compile.learning.explain import Explanations, concatenate, triplets_of
from gbfl_compile.learning.explain.table_values import differ
from gbfl_compile.learning.prepare import class_indices, foreign_method, shared_classes
from gbfl_compile.learning.tables import OnPreparedRows, preparation_of


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


def as_input(rows: Matrix, features: Sequence[str], columns: Columns | None = None) -> Any:
    """Rows as a model takes them: a DataFrame, or an encoded table where the rows hold codes of words."""
    return pd.DataFrame(rows, columns=list(features)) if columns is None else EncodedTable(columns, rows)


def held_out_figures(
    model: Any, triplets: Triplets, y: NDArray[Any], columns: Columns | None = None
) -> tuple[float, Consistency]:
    """A fitted model's accuracy on held-out rows with the true classes `y`, and its consistency with the black box."""
    right = model.predict(as_input(triplets.x, triplets.features, columns)) == y
    return float(right.mean()), _agreement(model, triplets, columns)


FOREIGN_ROWS = 300
"""Held-out rows that are explained by a method the model was not fitted on."""
BINS = 10


def outcome_figures(model: Any, X: Any, y: NDArray[Any], answer: Matrix | None = None) -> dict[str, Any]:
    """What the outcome says of a fitted model and of its black box: shares of 1, and counts.

    `answer` are the probabilities to measure, where they are not the model's own: rates that were observed on
    these same rows would be measured as better than they are, so each row has those of the rows in other `folds`.

    The base rate is the accuracy of always answering the commonest class. `confusion` counts rows by true class and
    by answer, in the order of `classes_`. The area under the ROC curve is the mean over the classes that occur, each
    against the others; rows of different folds are not compared, because the rate of a class is lower where more of its
    rows were left out. Calibration is the mean gap between a probability and the share of rows that have the class,
    in ten bins of equally many rows; `calibration_by_chance` is what it would be on average if every probability were
    exactly right. The Brier score is the mean squared error of the probabilities.
    """
    classes = np.asarray(model.classes_)
    truth = class_indices(y, classes)
    fold = np.zeros_like(truth) if answer is None else folds(truth, len(classes))
    answer = model.predict_proba(X) if answer is None else answer
    predicted = class_indices(model.predict(X), classes)
    own = probabilities(model.black_box_, model.encoded_rows(X))
    count = np.bincount(truth, minlength=len(classes))
    confusion = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(confusion, (truth, predicted), 1)
    return {
        "accuracy": float((predicted == truth).mean()),
        "black_box_accuracy": float((own.argmax(axis=1) == truth).mean()),
        "base_rate": float(count.max() / len(truth)),
        "auc": _auc(answer, truth, fold),
        "black_box_auc": _auc(own, truth, np.zeros_like(truth)),
        "calibration": calibration_error(answer, truth),
        "calibration_by_chance": calibration_by_chance(answer),
        "black_box_calibration": calibration_error(own, truth),
        "brier": float(((answer - np.eye(len(classes))[truth]) ** 2).sum(axis=1).mean() / 2),
        "confusion": confusion.tolist(),
    }


def score_lines(model: Any, X: Any, y: Any) -> dict[str, tuple[float | None, int | None, int]]:
    """Name -> per cent, count and of how many, as `score_report` shows them."""
    truth = np.asarray(y)
    outcome, rows = outcome_figures(model, X, truth), len(truth)
    triplets = {name: triplets_of(model.explain_points(X, name), model.classes_) for name in model.methods_}
    methods = consistency_by_method(model, triplets, model.columns_)
    lines: dict[str, tuple[float | None, int | None, int]] = {}
    for name in ("accuracy", "black_box_accuracy", "base_rate"):
        lines[name] = (100.0 * outcome[name], round(outcome[name] * rows), rows)
    first = next(iter(methods.values()))
    for name in ("fidelity", "c_tb_all", "c_tb", "c_pp", "c_pn"):
        lines[name] = (first[name], first[f"{name}_right"], first[f"{name}_of"])
    for name in ("auc", "black_box_auc", "calibration", "black_box_calibration"):
        lines[name] = (None if outcome[name] is None else 100.0 * outcome[name], None, rows)
    for name, form in methods.items():
        note = "" if form["fitted"] else " (not fitted on)"
        lines[f"c_tb_all, {name}{note}"] = (form["c_tb_all"], form["c_tb_all_right"], form["c_tb_all_of"])
    classes = np.asarray(model.classes_).tolist()
    for true_class, counts in zip(classes, outcome["confusion"], strict=True):
        for answer, count in zip(classes, counts, strict=True):
            of = sum(counts)
            lines[f"of class {true_class}, answered {answer}"] = (100.0 * count / of if of else None, count, of)
    return lines


def _auc(answer: Matrix, truth: Ints, fold: Ints) -> float | None:
    """Over pairs of rows in one fold; None where there are none. Of equal probabilities half counts."""
    areas = []
    for c in range(answer.shape[1]):
        ahead, pairs = 0.0, 0
        for number in np.unique(fold):
            positive, rank = (truth == c)[fold == number], rankdata(answer[fold == number, c])
            here = int(positive.sum())
            ahead += float(rank[positive].sum()) - here * (here + 1) / 2
            pairs += here * (len(positive) - here)
        if pairs:
            areas.append(ahead / pairs)
    return float(np.mean(areas)) if areas else None


def calibration_error(answer: Matrix, truth: NDArray[np.int64]) -> float:
    """The mean over rows and classes; with two classes, both have the same value."""
    gaps = [abs(float((answer[some, c] - (truth[some] == c)).sum())) for c, some in _bins(answer)]
    return sum(gaps) / answer.size


def calibration_by_chance(answer: Matrix) -> float:
    """The error on average if all probabilities are exactly right: the mean size of a normal deviation in each bin."""
    variances = [float((answer[some, c] * (1.0 - answer[some, c])).sum()) for c, some in _bins(answer)]
    return float(np.sqrt(2.0 / np.pi * np.array(variances)).sum()) / answer.size


def _bins(answer: Matrix) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """For each class the rows in ten bins of equally many, by its probability."""
    for c in range(answer.shape[1]):
        order = np.argsort(answer[:, c], kind="stable")
        for some in np.array_split(order, min(BINS, len(order))):
            yield c, some


def consistency_by_method(
    model: Any, by_method: Mapping[str, Triplets], columns: Columns | None
) -> dict[str, dict[str, Any]]:
    """Method -> consistency on held-out rows, also by one method that the model was not fitted on.

    That one explains at most FOREIGN_ROWS of the rows, because only this figure depends on it.
    """
    first = next(iter(by_method.values()))
    figures = {
        name: {"fitted": True, **_agreement(model, triplets, columns).as_dict()} for name, triplets in by_method.items()
    }
    foreign = foreign_method(model.explainer)
    if foreign == "macem" and columns is not None:
        return figures
    rows = as_input(first.x[:FOREIGN_ROWS], first.features, columns)
    triplets = triplets_of(model.explain_points(rows, foreign), model.classes_)
    figures[foreign] = {"fitted": False, **_agreement(model, triplets, columns).as_dict()}
    return figures


def _agreement(model: Any, triplets: Triplets, columns: Columns | None) -> Consistency:
    def predict(rows: Matrix) -> NDArray[Any]:
        return np.asarray(model.predict(as_input(rows, triplets.features, columns)))

    return consistency_on(triplets, predict)


def baseline_figures(
    black_box: Any,
    by_method: Mapping[str, Explanations],
    y: NDArray[Any],
    triplets: Triplets,
    y_test: NDArray[Any],
    *,
    seed: int,
    jobs: int,
    columns: Columns | None = None,
) -> dict[str, dict[str, Any]]:
    """Name -> accuracy and consistency on the held-out rows, in the form of the rules' figures; by `jobs` threads.

    Each baseline is a CART tree of depth 5, the deepest that people still read. `gbfl paper` chooses the depth by
    cross-validation, which takes ten times as long. Where the table has words, the trees see one column per word. The
    third has the explanations of every method, as the rules have.
    """
    explanations, stack = next(iter(by_method.values())), concatenate(list(by_method.values()))
    if columns is not None:
        classes = shared_classes(black_box, y)
        return _figures_on_words(classes, stack, y, triplets, y_test, columns, seed)
    settings: dict[str, Any] = {"max_depth": MAX_DEPTH, "random_state": seed}
    models: dict[str, Any] = {
        f"tree on the data, depth {MAX_DEPTH}": StandardTree(**settings),
        f"tree on the black box's answers, depth {MAX_DEPTH}": DistilledTree(black_box, **settings),
        f"tree on data, PPs and PNs, depth {MAX_DEPTH}": AugmentedTree(black_box, **settings),
    }
    # threads, even if another backend explains rows: a tree grows without holding up the others; the last takes longest
    fit = joblib.Parallel(n_jobs=jobs, require="sharedmem")
    data = [(explanations, y), (explanations, y), (stack, np.tile(y, len(by_method)))]
    fit(
        joblib.delayed(model.fit)(pd.DataFrame(e.x, columns=list(triplets.features)), labels, explanations=e)
        for model, (e, labels) in reversed(list(zip(models.values(), data, strict=True)))
    )
    figures = {name: held_out_figures(model, triplets, y_test) for name, model in models.items()}
    return {name: {"accuracy": right, **consistency.as_dict()} for name, (right, consistency) in figures.items()}


def _figures_on_words(
    classes: NDArray[Any],
    e: Explanations,
    y: NDArray[Any],
    triplets: Triplets,
    y_test: NDArray[Any],
    columns: Columns,
    seed: int,
) -> dict[str, dict[str, Any]]:
    """The same baselines on one column per word, gaps filled and marked."""
    preparation = preparation_of(e.x, columns)
    own, other, rows_in = classes[e.label], classes[e.pn_label], slice(len(y))
    points = np.concatenate((e.x, e.pp[e.has_pp], e.pn[e.has_pn]))
    fits = {
        f"tree on the data, depth {MAX_DEPTH}": (e.x[rows_in], y),
        f"tree on the black box's answers, depth {MAX_DEPTH}": (e.x[rows_in], own[rows_in]),
        f"tree on data, PPs and PNs, depth {MAX_DEPTH}": (
            points,
            np.concatenate((own, own[e.has_pp], other[e.has_pn])),
        ),
    }
    figures = {}
    for name, (rows, labels) in fits.items():
        tree = DecisionTreeClassifier(max_depth=MAX_DEPTH, random_state=seed).fit(preparation.rows(rows), labels)
        model = OnPreparedRows(tree, preparation)
        right, consistency = held_out_figures(model, triplets, y_test, columns)
        figures[name] = {"accuracy": right, **consistency.as_dict()}
    return figures
