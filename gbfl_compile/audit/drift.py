"""Drift of a scored table from the training data, by the histograms that a program carries; no training row is needed.

The population stability index (PSI) of two distributions over the same bins is the sum over bins of
(now - then) * ln(now / then), `now` and `then` being the shares of rows in the bin. A share below FLOOR, an empty
bin's too, counts as FLOOR, so that the sum stays finite; shares are not scaled again after that. Bins are the ones in
the metadata with the two outer ones open, and one more for values that are missing or infinite. A feature that was
constant in training has bins below, at and above its value. By convention a PSI under 0.1 is called stable, under
0.25 moderate, from there on large; that is a habit of the trade and no test of significance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gbfl_compile.audit.drift_counts import (
    Counts,
    DriftCounts,
    add_to_drift,
    at,
    feature_histograms,
    nothing_counted,
    score_histograms,
)
from gbfl_compile.audit.labels import class_finder
from gbfl_compile.audit.scored_answers import Answerer, answered, asked_only
from gbfl_compile.audit.scored_source import Source, labels_held, source_batches, told_where, wanted_of
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Leaf, Program, Tree

FLOOR = 1e-4
STABLE, MODERATE = 0.1, 0.25


def drift(
    program: Program,
    source: Source,
    label_column: str | None = None,
    columns: Mapping[str, str] | None = None,
    *,
    schema: str = "",
) -> dict[str, Any]:
    """How labels, scores, clause support and features of a table lie against training. JSON; what is absent is said."""
    by = Answerer(asked_only(program))
    wanted = wanted_of(program, by.program.features, source, label_column, columns, schema, every_feature=True)
    counts = nothing_counted(program)
    class_number = class_finder(program.classes, labels_held(source))
    try:
        for batch in source_batches(source, wanted, schema):
            of_distinct = np.array([class_number(value) for value in batch.labels.distinct], dtype=np.int64)
            deployed = of_distinct[batch.labels.codes]
            add_to_drift(counts, program, batch, answered(by, batch), deployed)
    except BadInput as error:
        raise told_where(source, error) from None
    return drift_summary(program, counts)


def population_stability_index(then: Sequence[float], now: Sequence[float]) -> float:
    """The PSI of two lists of counts over the same bins.

    >>> round(population_stability_index([50, 50], [60, 40]), 4)
    0.0405
    """
    before, after = (np.maximum(np.asarray(each, dtype=np.float64) / max(1, sum(each)), FLOOR) for each in (then, now))
    return float(((after - before) * np.log(after / before)).sum())


def level(psi: float) -> str:
    """What the trade calls a PSI of this size."""
    return "stable" if psi < STABLE else "moderate" if psi < MODERATE else "large"


def drift_summary(program: Program, counts: DriftCounts) -> dict[str, Any]:
    """The counts beside those of training."""
    return {
        "rows": counts.rows,
        "psi_floor": FLOOR,
        "labels": _labels(program, counts),
        "scores": _scores(program, counts),
        "clauses": _clauses(program, counts),
        "features": _features(program, counts),
        "not_compared": _absent(program),
    }


def _absent(program: Program) -> list[str]:
    """What the metadata lacks, in words."""
    lacking = []
    if feature_histograms(program) is None:
        lacking.append("features: the metadata has no training.histograms, or not one a feature")
    if _counts_at(program, "label_counts", len(program.classes)) is None:
        lacking.append("labels: the metadata has no mining.label_counts")
    if isinstance(program.decision, Tree):
        lacking += [] if _probability_counts(program) else ["scores: the metadata has no mining.probabilities"]
    elif score_histograms(program) is None:
        lacking.append("scores: the metadata has no mining.scores")
    if _counts_at(program, "clause_support", len(program.clauses)) is None:
        lacking.append("clauses: the metadata has no mining.clause_support")
    return [f"{each}; programs made by `gbfl mine` have it" for each in lacking]


def _counts_at(program: Program, key: str, length: int) -> list[int] | None:
    found = at(program.metadata, "mining", key)
    fits = isinstance(found, Sequence) and len(found) == length and all(type(each) is int for each in found)
    return [*found] if fits else None


def _compared(then: Sequence[float], now: Sequence[float]) -> dict[str, Any]:
    psi = population_stability_index(then, now)
    return {"psi": psi, "level": level(psi)}


def _labels(program: Program, counts: DriftCounts) -> dict[str, Any]:
    *known, unknown = counts.labels.tolist()
    form: dict[str, Any] = {"classes": list(program.classes), "rows": known, "no_class": unknown}
    then = _counts_at(program, "label_counts", len(program.classes))
    if then is not None and counts.rows:
        form |= {"training_rows": then, **_compared([*then, 0], [*known, unknown])}
    return form


def _scores(program: Program, counts: DriftCounts) -> list[dict[str, Any]]:
    """A row a class: points of a rule set in the training bins, a tree's probabilities in tenths."""
    if isinstance(program.decision, Tree):
        return _tree_scores(program, program.decision, counts)
    histograms = score_histograms(program) or ()
    return [
        {"class": label, "edges": form["edges"], **_against(form, now, counts.rows)}
        for label, form, now in zip(program.classes, histograms, counts.scores, strict=False)
    ]


def _tree_scores(program: Program, tree: Tree, counts: DriftCounts) -> list[dict[str, Any]]:
    leaves = [node.probabilities for node in tree.nodes if isinstance(node, Leaf)]
    edges = [tenth / 10 for tenth in range(11)]
    then = _probability_counts(program)
    rows = []
    for number, label in enumerate(program.classes):
        bins = np.searchsorted(edges[1:-1], [probabilities[number] for probabilities in leaves], side="right")
        now = np.bincount(bins, weights=counts.leaves, minlength=10).astype(np.int64).tolist()
        form: dict[str, Any] = {"class": label, "edges": edges, "rows": now}
        if then and counts.rows:
            form |= {"training_rows": then[number], **_compared(then[number], now)}
        rows.append(form)
    return rows


def _probability_counts(program: Program) -> list[list[int]] | None:
    found = at(program.metadata, "mining", "probabilities")
    if not isinstance(found, Sequence) or len(found) != len(program.classes):
        return None
    listed = [at(form, "counts") for form in found]
    return listed if all(isinstance(each, list) and len(each) == 10 for each in listed) else None


def _clauses(program: Program, counts: DriftCounts) -> list[dict[str, Any]]:
    """How many rows each clause holds on, numbered as in the program."""
    then = _counts_at(program, "clause_support", len(program.clauses))
    trained = at(program.metadata, "mining", "rows", "training") or at(program.metadata, "training", "rows")
    rows = []
    for number, held in enumerate(counts.clauses.tolist()):
        form: dict[str, Any] = {"clause": number, "rows": held}
        if then is not None and trained and counts.rows:
            misses = [trained - then[number], counts.rows - held]
            form |= {"training_rows": then[number], **_compared([then[number], misses[0]], [held, misses[1]])}
        rows.append(form)
    return rows


def _features(program: Program, counts: DriftCounts) -> dict[str, Any]:
    """Each feature that was counted: its PSI, and the shares missing and outside of the training range."""
    histograms = feature_histograms(program) or ()
    return {
        name: _against(histograms[program.features.index(name)], now, counts.rows)
        for name, now in counts.features.items()
    }


def _against(form: Mapping[str, Any], counted: Counts, rows: int) -> dict[str, Any]:
    """Bins now and in training. Outside of the training range counts to the outer bins, but for a constant."""
    *now, below, above, missing = counted.tolist()
    then, constant = list(form["counts"]), len(form["edges"]) == 1
    now = [below, *now, above] if constant else [now[0] + below, *now[1:]]
    then = [0, *then, 0] if constant else then
    if not constant:
        now[-1] += above
    now, then = [*now, missing], [*then, form.get("missing", 0)]
    shares = {"missing_share": missing / max(1, rows), "outside_share": (below + above) / max(1, rows)}
    told = {"rows": now, "training_rows": then, **shares}
    return told | _compared(then, now) if rows else told
