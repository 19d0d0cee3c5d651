"""The job of `gbfl mine`: train or take a black box, explain, fit, lower, measure on rows held out.

Explained rows are kept in a folder chunk by chunk, so that whatever stops the job, the same job goes on from there
and ends in the same program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from gbfl_compile.black_boxes import Given
from gbfl_compile.consistency import Consistency, consistency_on
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import Matrix, evaluate_many
from gbfl_compile.ir.nodes import Program
from gbfl_compile.learn.black_box import BlackBox, as_black_box, classes_of
from gbfl_compile.learn.chunks import explain_in_chunks
from gbfl_compile.learn.classifier import FEW_ROWS, GBFLClassifier
from gbfl_compile.learn.explanations import Domain, Explanations, domain_of, triplets_of
from gbfl_compile.learn.options import check_parameters, explainer_of
from gbfl_compile.learn.recipe import HeadKind
from gbfl_compile.learn.threads import Started
from gbfl_compile.learn.training import shared_classes
from gbfl_compile.learn.units import rows_in_a_unit, units_of
from gbfl_compile.lowering import lower
from gbfl_compile.mining.baseline_figures import baseline_figures
from gbfl_compile.mining.distributions import distributions
from gbfl_compile.mining.memory import jobs_within
from gbfl_compile.mining.rows import Split
from gbfl_compile.passes import optimise
from gbfl_compile.triplets import Triplets

BLOCK_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Order:
    """What is wanted of the miner."""

    head: HeadKind = "rules"
    clauses: int = 32
    depth: int = 5
    explainer: str = "greedy"
    seed: int = 0
    jobs: int = 1
    """Worker processes that explain side by side, and threads that fit. The program does not depend on it."""
    black_box_timeout: float | None = None
    """Seconds in which the black box must answer a block of rows; None waits for ever."""
    memory: int | None = None
    """Bytes that all processes together may take; None is no limit. The program does not depend on it."""
    codes: tuple[str, ...] = ()
    """Features whose values are codes: explanations use no others."""
    immutable: tuple[str, ...] = ()
    """Features a pertinent negative may not change."""
    baselines: bool = True
    """Whether the three baseline trees are fitted too, for the figures to stand beside."""


@dataclass(frozen=True, slots=True)
class Mined:
    """A program, and how it did on rows it was not learned from."""

    program: Program
    triplets: Triplets
    """The held-out rows with their explanations."""
    consistency: Consistency
    accuracy: float
    black_box_accuracy: float
    compared_rows: int
    compared_different: int
    """On how many of `compared_rows` the program answers otherwise than the fitted classifier."""


Tell = Callable[[str], None]


def steps(split: Split) -> int:
    """How often `mine` tells where it is, at most."""
    return sum(len(units_of(len(x), rows_in_a_unit(len(x)))) for x in (split.x, split.x_test)) + 4


def mine(
    split: Split,
    features: tuple[str, ...],
    black_box: Callable[[], Given],
    order: Order,
    kept_in: Path,
    tell: Tell = lambda _: None,
    about: dict[str, Any] | None = None,
) -> Mined:
    """The program mined from `split`, explanations kept below the folder `kept_in`.

    `about` goes into the metadata beside what is measured here.
    """
    with threadpool_limits(1):  # of each process: several threads would change last bits
        tell("the black box")
        given = black_box()
        jobs = order.jobs if order.memory is None else jobs_within(order.memory, split, order.jobs)
        asked = as_black_box(given.model, split.x, features=features, time_limit=order.black_box_timeout)
        model = _model(order, asked, split, features)
        domain = domain_of(split.x, features=features, immutable=order.immutable, kinds=model.kinds)
        explain = partial(_explained, model, asked, domain, jobs=jobs, kept_in=kept_in, tell=tell)
        explanations = explain(split.x, part="training")
        tell(f"fitting {order.head}")
        frame = pd.DataFrame(split.x, columns=list(features))
        fit = partial(model.fit, frame, split.y, explanations=explanations)
        # on few rows the fit itself asks the black box, which need not bear two that ask at once
        fitting = Started(fit, "fitting") if jobs > 1 and len(split.x) >= FEW_ROWS else None
        if fitting is None:
            fit()
        held_out = explain(split.x_test, part="test", at_once=None if fitting is None else jobs - 1)
        baselines = {}
        if order.baselines:
            tell("fitting the baselines")
            triplets = triplets_of(held_out, shared_classes(asked, split.y))
            baselines = baseline_figures(asked, split, explanations, triplets, order.seed, jobs)
        if fitting is not None:
            fitting.answer()
        tell("lowering, simplifying, measuring")
        return _measured(model, split, given, held_out, order, baselines, about or {})


def _model(order: Order, asked: BlackBox, split: Split, features: tuple[str, ...]) -> GBFLClassifier:
    for what, names in (("--codes", order.codes), ("--immutable", order.immutable)):
        if unknown := [name for name in names if name not in features]:
            raise BadInput(f"{what} {unknown[0]}: there is no feature of that name")
    kinds = {name: tuple(np.unique(split.x[:, features.index(name)]).tolist()) for name in order.codes}
    model = GBFLClassifier(
        asked,
        head=order.head,
        explainer=order.explainer,
        max_clauses=order.clauses,
        max_depth=order.depth,
        immutable=order.immutable,
        kinds=kinds,
        random_state=order.seed,
    )
    check_parameters(model)
    return model


def _explained(
    model: GBFLClassifier,
    asked: BlackBox,
    domain: Domain,
    rows: Matrix,
    *,
    part: str,
    jobs: int,
    kept_in: Path,
    tell: Tell,
    at_once: int | None = None,
) -> Explanations:
    """Rows explained unit by unit; units that are there already are read."""
    return explain_in_chunks(
        explainer_of(model, model.kappa),
        asked,
        rows,
        domain,
        folder=kept_in / part,
        n_jobs=jobs,
        at_once=at_once,
        tell=lambda: tell(f"explaining {len(rows)} {part} rows"),
    )


def _measured(
    model: GBFLClassifier,
    split: Split,
    given: Given,
    held_out: Explanations,
    order: Order,
    baselines: dict[str, Any],
    about: dict[str, Any],
) -> Mined:
    columns = list(model.feature_names_in_)

    def predict(rows: Matrix) -> NDArray[Any]:
        return np.asarray(model.predict(pd.DataFrame(rows, columns=columns)))

    triplets = triplets_of(held_out, model.classes_)
    measured = consistency_on(triplets, predict)
    accuracy = float((predict(split.x_test) == split.y_test).mean())
    own = np.asarray(model.classes_)[classes_of(model.black_box_, split.x_test)]
    own_accuracy = float((own == split.y_test).mean())
    figures: dict[str, Any] = {"test": {"accuracy": accuracy, "black_box_accuracy": own_accuracy, **measured.as_dict()}}
    if baselines:
        figures["baselines"] = baselines
    program = optimise(lower(model, figures), split.x)
    mining = {
        **about,
        "seed": order.seed,
        "black_box": given.as_json(),
        "head": order.head,
        "explainer": order.explainer,
        "rows": {"training": len(split.x), "test": len(split.x_test)},
        "path": model.path_.to_dict("records"),
        **distributions(program, split.x, split.y, split.y_test),
    }
    program = replace(program, metadata={**program.metadata, "mining": mining})
    compared = (split.x, triplets.x, triplets.pp, triplets.pn)
    different = sum(_different(program, model, rows) for rows in compared)
    return Mined(program, triplets, measured, accuracy, own_accuracy, sum(map(len, compared)), different)


def _different(program: Program, model: GBFLClassifier, rows: Matrix) -> int:
    """On how many rows the program answers otherwise than the classifier, a block at a time."""
    found = 0
    for begin in range(0, len(rows), BLOCK_ROWS):
        block = rows[begin : begin + BLOCK_ROWS]
        answers, frame = evaluate_many(program, block), pd.DataFrame(block, columns=list(model.feature_names_in_))
        labels, probabilities = model.predict(frame), model.predict_proba(frame)
        found += int(((labels != answers.labels) | (probabilities != answers.probabilities).any(axis=1)).sum())
    return found
