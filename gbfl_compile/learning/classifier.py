"""GBFLClassifier: a transparent model built from a black box's contrastive explanations (Algorithm 3)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from gbfl_compile.ir.batch import Answers, evaluate_many
from gbfl_compile.ir.nodes import Clause, Program
from gbfl_compile.learning.black_box import Ints, Matrix, as_black_box, probabilities
from gbfl_compile.learning.calibration import NOT_OBSERVED, calibrate_decision
from gbfl_compile.learning.clauses.mine import with_rows_below
from gbfl_compile.learning.consistency import Consistency, consistency
from gbfl_compile.learning.explain import (
    Domain,
    Explainer,
    Explanations,
    concatenate,
)
from gbfl_compile.learning.explain.nearest import with_examples
from gbfl_compile.learning.explain.parallel import explain_by_methods
from gbfl_compile.learning.fit import KAPPAS, HeadKind, Recipe, TreeMode, fit_head, try_recipes
from gbfl_compile.learning.prepare import (
    USUAL_METHODS,
    by_method,
    check_parameters,
    class_indices,
    default_black_box,
    explainer_by_name,
    explainers_of,
    methods_of,
    recipe_of,
    rows_between,
    rows_between_words,
    seed_of,
    shared_classes,
)
from gbfl_compile.learning.reports import changes, reasons, rule_table
from gbfl_compile.learning.tables import as_frame, domain_for, table_rows, take_table, training_table, validate_training

FEW_ROWS = 2000
"""With fewer training rows than this, a large model learns them by heart."""


# scikit-learn ships no types, so its bases are Any to mypy
class GBFLClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Rules over clauses built from a black box's explanations: a tree, a weighted rule set or a rule list.

    The black box is any object with `predict_proba`, or a callable from rows to probabilities; it is never
    fitted. With None a small neural network is fitted to (X, y) first.

    Parameters
    ----------
    black_box : object, callable or None
    head : "rules" (a weighted rule set), "tree" (of depth 5 or less) or "rule_list" (IF, ELSE IF, .. ELSE). The tree
        is quickest to read, the rule set most consistent.
    explainer : "greedy", "nearest", "macem", "spheres", several joined by "+" (the model is then fitted to the
        explanations of each), or a callable (black_box, x, domain) -> Explanations
    kappa : the margin, in probability, that a PP and a PN should reach
    max_changes : how many features a PN of "greedy" or "macem" may change; the others undo all changes they can
    max_queries : how many rows the black box may be queried with to explain the training rows; None is no limit
    immutable, directions, kinds : features a PN may not change, those it may only move "up" or "down", and those
        kept on their values ("integer", or a tuple of codes); by name or place. "infer", and a mapping for the features
        it leaves out, take whole numbers for integers and few values for codes; () allows any number anywhere. Where
        X is a table with words, dates or missing values, `kinds` maps names to "number", "category", "boolean",
        "date" or "timestamp"
    checkpoint : a folder that keeps explained rows, so that a fit that was stopped continues from there
    n_jobs : how many workers of joblib's current backend explain side by side; no answer depends on it. None is one,
        or what joblib.parallel_config says
    black_box_timeout : seconds in which the black box must answer a block of rows; None waits for ever
    mode : which tree: "joint" is fitted so that x, PP and PN come out right together; the paper's are CART over clauses
        mined from single rows, "faithful" (with resolutions where the paper leaves room) or "literal" (Algorithm 1 to
        the letter)
    grid, grid_points, skip, single_bounds : for the clauses of the paper's trees. The grid's kind and its points per
        feature, bounds included (the paper's N + 1); how many grid points a clause reaches beyond its row (the paper's
        Delta); whether each single bound of a clause is a candidate as well
    max_depth : for the tree; "cv" lets held-out rows choose for the paper's trees, and is 5 for "joint"
    min_samples_leaf : how many rows of X every leaf of the joint tree holds at least; None is 5, or one in 30 rows of a
        small table. For the paper's trees how many points, and None is 1
    max_clauses : how many clauses a rule set or rule list may have; held-out rows may choose fewer for a rule set
    max_atoms : how many bounds each clause may have, except those of the paper's trees; at most 3 in a rule set with
        small points on a table with words
    points : the most points a clause of a rule set gives or takes (5, 10, 100); bounds that do not matter are dropped
        then. None rounds its weights to points of 2**-10 logit and drops nothing
    C : inverse strength of the L2 penalty on a rule set's weights
    fit_on : "triplets" (x, PP and PN, each with the black box's class) or "x" (the paper's)
    labels : "black_box" or "true": the label of x in the fit; PP and PN have no true label
    role_weights : how much x, PP and PN count in a fit on triplets
    extra_rows : how many made-up rows between training rows are explained too; None is 2,000 for a rule set or a joint
        tree where there are fewer training rows than that
    search : whether N, Delta, depth, C and kappa are chosen by cross-validation on the training rows
    base, bounds : base values and (lower, upper); the median and the training range where None; numbers alone
    verbose : 1 reports the search on standard error
    random_state : for the default black box

    """

    def __init__(
        self,
        black_box: Any = None,
        *,
        head: HeadKind = "rules",
        explainer: str | Explainer = USUAL_METHODS,
        kappa: float = 0.5,
        max_changes: int | None = 5,
        max_queries: int | None = None,
        immutable: Any = (),
        directions: Any = (),
        kinds: Any = "infer",
        checkpoint: Any = None,
        n_jobs: int | None = None,
        black_box_timeout: float | None = None,
        grid: Any = "kde",
        grid_points: int = 10,
        skip: int = 4,
        mode: TreeMode = "joint",
        single_bounds: bool = True,
        max_depth: int | str = 5,
        min_samples_leaf: int | None = None,
        max_clauses: int = 32,
        max_atoms: int = 4,
        points: int | None = 10,
        C: float = 1.0,
        fit_on: str = "triplets",
        labels: str = "black_box",
        role_weights: tuple[float, float, float] = (1.0, 1.0, 1.0),
        extra_rows: int | None = None,
        search: bool = False,
        base: Any = None,
        bounds: Any = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.black_box = black_box
        self.head = head
        self.explainer = explainer
        self.kappa = kappa
        self.max_changes = max_changes
        self.max_queries = max_queries
        self.immutable = immutable
        self.directions = directions
        self.kinds = kinds
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.black_box_timeout = black_box_timeout
        self.grid = grid
        self.grid_points = grid_points
        self.skip = skip
        self.mode = mode
        self.single_bounds = single_bounds
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.max_clauses = max_clauses
        self.max_atoms = max_atoms
        self.points = points
        self.C = C
        self.fit_on = fit_on
        self.labels = labels
        self.role_weights = role_weights
        self.extra_rows = extra_rows
        self.search = search
        self.base = base
        self.bounds = bounds
        self.verbose = verbose
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any = None, *, explanations: Explanations | Mapping[str, Explanations] | None = None
    ) -> GBFLClassifier:
        """Explain the rows of X, build clauses from the explanations, fit the head.

        y may be left out when a black box is given and labels="black_box". `explanations` of these rows, by one method
        or by several under their names, save asking the black box again.
        """
        check_parameters(self)
        x, y = self._take_rows(X, y)
        known = None if explanations is None else by_method(explanations, x, methods_of(self.explainer)[0])
        label = None if known is None else next(iter(known.values())).label
        self.domain_: Domain = with_examples(self.domain_, self.black_box_, x, label)
        self.base_ = self.domain_.base
        self.classes_ = shared_classes(self.black_box_, y)
        self.explainers_ = explainers_of(self, self.kappa)
        self.methods_ = known or self._training_explanations(x, self.explainers_, self.checkpoint)
        self.explanations_ = next(iter(self.methods_.values()))
        truth = None if y is None else class_indices(y, self.classes_)
        own = truth if self.labels == "true" and truth is not None else self.explanations_.label
        recipe, fit_to = recipe_of(self), self.methods_
        if self.search:
            recipe, fit_to = self._search_recipe(recipe, x, own)
        self.extra_explanations_ = self._extra_explanations(x, tuple(fit_to))
        fitted = fit_head(
            replace(recipe, methods=len(fit_to)),
            concatenate(list(fit_to.values())),
            np.tile(own, len(fit_to)),
            self.domain_,
            len(self.classes_),
            truth=None if truth is None else np.tile(truth, len(fit_to)),
            extra=self.extra_explanations_,
        )
        self.head_ = fitted.head
        self.mined_ = None if fitted.mined is None else with_rows_below(fitted.mined, len(x))
        self.probabilities_ = NOT_OBSERVED
        self.path_ = pd.DataFrame([asdict(point) for point in fitted.path])
        self.consistency_ = self._measure(self.explanations_)
        return self

    def calibrate(self, X: Any, y: Any) -> GBFLClassifier:
        """Make probabilities rates observed on rows the black box never saw (40 at least), as `gbfl mine` does with the
        rows it holds out; no label changes. `fit` does not: on rows that the black box learned from, rates flatter.
        """
        rows = self._rows(X)
        truth = class_indices(np.asarray(y), self.classes_)
        own, answers = probabilities(self.black_box_, rows), self.answers(rows)
        calibrated = calibrate_decision(self.head_.decision, answers, truth, own)
        self.probabilities_, self.out_of_fold_ = calibrated.facts, calibrated.out_of_fold
        self.head_ = replace(self.head_, decision=calibrated.decision)
        return self

    def _take_rows(self, X: Any, y: Any) -> tuple[Matrix, NDArray[Any] | None]:
        """The training rows as doubles, once the columns, the domain and the black box are known."""
        table = training_table(self, X)
        self.columns_ = None if table is None else table.columns
        if table is not None:
            return take_table(self, table, X, y)
        x, y = validate_training(self, X, y)
        names = getattr(self, "feature_names_in_", None)
        self.domain_ = domain_for(self, x, names, None)
        # without a black box there is a y: it was required above
        model = default_black_box(x, y, self.random_state) if self.black_box is None else self.black_box
        self.black_box_ = as_black_box(model, x, features=names, time_limit=self.black_box_timeout)
        return x, y

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row; missing values are allowed, and no clause that asks for them holds."""
        winners = self.answers(self._rows(X)).labels.astype(np.int64)
        return np.asarray(self.classes_[winners])

    def predict_proba(self, X: Any) -> Matrix:
        """One probability per class, in the order of `classes_`."""
        return self.answers(self._rows(X)).probabilities

    def explain_points(self, X: Any, method: str | None = None) -> Explanations:
        """The PP and PN of new rows, under the same black box, base and bounds; by the first method, or by another."""
        check_is_fitted(self)
        if self.columns_ is not None:
            return self._explain(self._rows(X), method)
        return self._explain(validate_data(self, as_frame(X), reset=False, dtype=np.float64), method)

    def local_consistency(self, X: Any, method: str | None = None) -> Consistency:
        """How this model agrees with the black box on rows, their PPs and their PNs."""
        return self._measure(self.explain_points(X, method))

    @property
    def clauses_(self) -> tuple[Clause, ...]:
        """The clauses of the model."""
        return self.head_.clauses

    @property
    def rules_(self) -> pd.DataFrame:
        """One line per clause: text, support, precision per class, weight, and the rows it was derived from."""
        book = None if self.columns_ is None else self.columns_.book
        return rule_table(self._program(tuple(self.classes_.tolist())), self.explanations_, self.mined_, book)

    def explain(self, X: Any) -> pd.DataFrame:
        """One line per row: its class and why, what is sufficient for it (PP), what would change the black box (PN)."""
        e = self.explain_points(X)
        features = self.domain_.features
        base = np.broadcast_to(self.base_, e.x.shape)
        pp, pn = (changes(*sides, features, self.columns_) for sides in ((base, e.pp), (e.x, e.pn)))
        return pd.DataFrame(
            {
                "label": self.classes_[self.answers(e.x).labels.astype(np.int64)],
                "because": reasons(self._program(tuple(self.classes_.tolist())), e.x, self.columns_),
                "black_box": self.classes_[e.label],
                "pp": [point if exists else None for point, exists in zip(pp, e.has_pp, strict=True)],
                "pn": [point if exists else None for point, exists in zip(pn, e.has_pn, strict=True)],
                "pn_label": [
                    self.classes_[c] if exists else None for c, exists in zip(e.pn_label, e.has_pn, strict=True)
                ],
            }
        )

    def score_report(self, X: Any, y: Any) -> pd.DataFrame:
        """How the model does on rows, each figure in per cent with its count, the most important first.

        Accuracy comes with the black box's and the base rate (always answering the commonest class). C_TB under each
        method, and under one that the model was not fitted on (on at most 300 of the rows), comes at the end.
        """
        from gbfl_compile.learning.reports import score_lines  # it takes a classifier, and imports its parts

        return pd.DataFrame.from_dict(score_lines(self, X, y), orient="index", columns=["percent", "right", "of"])

    def confusion(self, X: Any, y: Any) -> pd.DataFrame:
        """How many rows of each true class (lines) get each answer (columns)."""
        truth, answer = class_indices(np.asarray(y), self.classes_), self.answers(self._rows(X)).labels
        counts = np.zeros((len(self.classes_), len(self.classes_)), dtype=np.int64)
        np.add.at(counts, (truth, answer.astype(np.int64)), 1)
        labels = pd.Index(self.classes_, name="true class")
        return pd.DataFrame(counts, index=labels, columns=pd.Index(self.classes_, name="answer"))

    def encoded_rows(self, X: Any) -> Matrix:
        """The rows as the black box's codes and numbers."""
        return self._rows(X)

    def __sklearn_is_fitted__(self) -> bool:
        # clauses_ and rules_ are properties, so attributes with a trailing underscore are no sign of a fit
        return hasattr(self, "head_")

    def _rows(self, X: Any) -> Matrix:
        check_is_fitted(self)
        if self.columns_ is not None:
            return table_rows(self.columns_, X)
        # infinities are ordinary values to a rule, NaN is missing: nothing is refused here
        rows: Matrix = validate_data(self, as_frame(X), reset=False, dtype=np.float64, ensure_all_finite=False)
        return rows

    def _program(self, classes: tuple[Any, ...]) -> Program:
        kinds = () if self.columns_ is None else self.columns_.program_kinds
        return Program(self.domain_.features, classes, self.head_.clauses, self.head_.decision, kinds=kinds)

    def answers(self, x: Matrix) -> Answers:
        """The head's answers, labels as class indices."""
        book = None if self.columns_ is None else self.columns_.book
        return evaluate_many(self._program(tuple(range(len(self.classes_)))), x, book)

    def _explain(self, x: Matrix, method: str | None = None) -> Explanations:
        """A few rows in one call, by one thread: threads change last bits."""
        name = next(iter(self.explainers_)) if method is None else method
        explainer: Any = self.explainers_.get(name) or explainer_by_name(name, self, self.kappa)
        with threadpool_limits(1):
            explanations: Explanations = explainer(self.black_box_, x, self.domain_)
        return explanations

    def _training_explanations(
        self, x: Matrix, explainers: Mapping[str, Explainer], folder: Any = None
    ) -> dict[str, Explanations]:
        if callable(self.explainer) and folder is None and effective_n_jobs(self.n_jobs) == 1:
            return {name: self._explain(x) for name in explainers}  # a user's explainer may look at all rows at once
        return explain_by_methods(explainers, self.black_box_, x, self.domain_, folder=folder, n_jobs=self.n_jobs)

    def _extra_explanations(self, x: Matrix, methods: tuple[str, ...]) -> Explanations | None:
        """Explanations of made-up rows between the training rows, where there is little data."""
        count = self.extra_rows
        if count is None:
            takes_them = self.head == "rules" or (self.head == "tree" and self.mode == "joint")
            count = FEW_ROWS if takes_them and self.fit_on == "triplets" and len(x) < FEW_ROWS else 0
        if count == 0:
            return None
        seed, table = seed_of(self.random_state), self.domain_.table
        rows = rows_between(x, count, seed) if table is None else rows_between_words(x, table, count, seed)
        return concatenate([self._explain(rows, method) for method in methods])

    def _measure(self, e: Explanations) -> Consistency:
        on_x, on_pp, on_pn = (self.answers(points).labels for points in (e.x, e.pp, e.pn))
        return consistency(e.label, on_x, on_pp, on_pn, e.has_pp, e.has_pn)

    def _search_recipe(self, recipe: Recipe, x: Matrix, own: Ints) -> tuple[Recipe, dict[str, Explanations]]:
        """The recipe most consistent on held-out rows, and the explanations to fit it to."""
        kappas = {self.kappa: None} if callable(self.explainer) else dict.fromkeys((self.kappa, *KAPPAS))
        by_kappa = {
            kappa: self.methods_ if kappa == self.kappa else self._training_explanations(x, explainers_of(self, kappa))
            for kappa in kappas
        }
        stacks = {kappa: concatenate(list(methods.values())) for kappa, methods in by_kappa.items()}
        own = np.tile(own, len(self.methods_))
        trials = try_recipes(
            replace(recipe, methods=len(self.methods_)),
            stacks,
            self.kappa,
            own,
            self.domain_,
            len(self.classes_),
            self._report,
            n_rows=len(x),
        )
        self.search_ = pd.DataFrame([{"kappa": t.kappa, **t.changes, "c_tb": t.c_tb} for t in trials])
        return replace(recipe, **trials[0].changes), by_kappa[trials[0].kappa]

    def _report(self, line: str) -> None:
        if self.verbose:
            sys.stderr.write(f"{line}\n")
