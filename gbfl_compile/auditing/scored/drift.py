"""Drift of a scored table from the training data, by the histograms that a program carries; no training row is needed.

The population stability index (PSI) of two distributions over the same bins is the sum over bins of
(now - then) * ln(now / then), `now` and `then` being the shares of rows in the bin. A share below FLOOR, an empty
bin's too, counts as FLOOR, so that the sum stays finite; shares are not scaled again after that. Bins are the ones in
the metadata with the two outer ones open, and one more for values that are missing or infinite. A feature that was
constant in training has bins below, at and above its value. By convention a PSI under 0.1 is called stable, under
0.25 moderate, from there on large; that is a habit of the trade and no test of significance.

Beside it are the two-sample Kolmogorov-Smirnov test over the same bins (values within a bin are tied, so it is careful)
and for each class the change of its share with its 99.9 % interval. `drift_alarms` says what is enough to fail a build.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.auditing.answers import UNKNOWN, class_finder
from gbfl_compile.auditing.scored.compare import Answerer, BatchAnswers, answer_batch, matrix, with_used_features
from gbfl_compile.auditing.scored.source import Batch, Source, columns_to_read, labels_held, name_source, source_batches
from gbfl_compile.auditing.scored.values import RowEncoder, row_encoder
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import clause_column
from gbfl_compile.ir.nodes import Kind, Leaf, Program, Scorecard, Tree

Counts: TypeAlias = NDArray[np.int64]


@dataclass(slots=True)
class DriftCounts:
    """What was counted so far: numbers of rows, bin by bin."""

    rows: int
    labels: Counts
    """One per class, and one more for labels that are not a class."""
    leaves: Counts
    """Of a tree."""
    scores: list[Counts]
    """Of a rule set: for each class, the bins of the training scores."""
    clauses: Counts
    features: dict[str, Counts]
    """For each feature with a histogram: its bins, then below its range, above it, and missing."""


def nothing_counted(program: Program) -> DriftCounts:
    """The counts to begin with: all zero."""
    leaves = sum(isinstance(node, Leaf) for node in program.decision.nodes) if isinstance(program.decision, Tree) else 0
    return DriftCounts(
        rows=0,
        labels=np.zeros(len(program.classes) + 1, dtype=np.int64),
        leaves=np.zeros(leaves, dtype=np.int64),
        scores=[np.zeros(_bins(form) + 3, dtype=np.int64) for form in score_histograms(program) or ()],
        clauses=np.zeros(len(program.clauses), dtype=np.int64),
        features={},
    )


def add_to_drift(
    counts: DriftCounts,
    program: Program,
    batch: Batch,
    answers: BatchAnswers,
    deployed: NDArray[np.int64],
    encoder: RowEncoder | None = None,
) -> None:
    """Count one batch; `deployed` holds the class number of each stored label."""
    counts.rows += batch.count
    known = np.where(deployed == UNKNOWN, len(program.classes), deployed)
    counts.labels += np.bincount(known, minlength=len(counts.labels))
    if isinstance(program.decision, Tree):
        counts.leaves += np.bincount(answers.decided, minlength=len(counts.leaves))
    for number, form in enumerate(score_histograms(program) or ()):
        counts.scores[number] += _bin_counts(form, answers.decided[:, number].astype(np.float64))
    names = getattr(batch.table, "column_names", None)  # Arrow: `columns` there are the columns themselves
    there = batch.table.columns if names is None else names
    features = tuple(name for name in there if name in program.features)  # probabilities may be beside them
    rows = np.full((batch.count, len(program.features)), np.nan)
    present = [program.features.index(feature) for feature in features]
    rows[:, present] = matrix(batch, features)
    book = None if encoder is None else encoder.book(program.features)
    for number, clause in enumerate(program.clauses):
        counts.clauses[number] += int(clause_column(clause, rows, book).sum())
    histograms = feature_histograms(program) or ()
    for place, form in enumerate(histograms):
        name = program.features[place]
        if place not in present or not (form["edges"] or form.get("values")):
            continue
        if book is not None and form.get("values"):
            counted = _word_counts(form["values"], rows[:, place], program.kind(place), book.texts[place])
        else:
            counted = _bin_counts(form, rows[:, place])
        counts.features[name] = counts.features.get(name, 0) + counted


def _word_counts(values: Mapping[str, Any], codes: NDArray[np.float64], kind: Kind, texts: tuple[str, ...]) -> Counts:
    """Rows with each text of training, with none of these (twice: nothing is below the range), and missing."""
    missing = np.isnan(codes)
    by_code = np.bincount(codes[~missing].astype(np.int64), minlength=len(texts) + 1)
    named = (
        {"false": by_code[0], "true": by_code[1]} if kind == "boolean" else dict(zip(texts, by_code[1:], strict=True))
    )
    known = [int(named.get(text, 0)) for text in values]
    return np.array([*known, int(by_code.sum()) - sum(known), 0, int(missing.sum())], dtype=np.int64)


def feature_histograms(program: Program) -> Sequence[Mapping[str, Any]] | None:
    """One histogram per feature from the metadata, or None where they are absent or do not fit."""
    histograms = at(program.metadata, "training", "histograms")
    return (
        histograms if _is_list_of(histograms, len(program.features)) and all(map(_is_histogram, histograms)) else None
    )


def score_histograms(program: Program) -> Sequence[Mapping[str, Any]] | None:
    """One histogram per class of a rule set's training scores."""
    histograms = at(program.metadata, "mining", "scores")
    fits = _is_list_of(histograms, len(program.classes)) and all(
        _is_histogram(form) and form["edges"] for form in histograms
    )
    return histograms if isinstance(program.decision, Scorecard) and fits else None


def at(form: Any, *path: str) -> Any:
    for key in path:
        form = form.get(key) if isinstance(form, Mapping) else None
    return form


def _is_list_of(value: Any, length: int) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and len(value) == length


def _is_histogram(form: Any) -> bool:
    """Metadata may come from anywhere: what is used here must have the shape that `provenance.histogram` makes."""
    edges, counts = at(form, "edges"), at(form, "counts")
    if not isinstance(edges, Sequence) or not isinstance(counts, Sequence) or isinstance(edges, str):
        return False
    words = form.get("values", {})
    if not isinstance(words, Mapping) or not all(isinstance(each, int) for each in words.values()):
        return False
    numbers = all(isinstance(each, int | float) for each in (*edges, *counts))
    rising = numbers and all(a < b for a, b in pairwise(edges))
    return rising and len(counts) == (max(1, len(edges) - 1) if edges else 0)


def _bins(form: Mapping[str, Any]) -> int:
    return len(form["counts"])


def _bin_counts(form: Mapping[str, Any], values: NDArray[np.float64]) -> Counts:
    """Rows in each bin, below the range, above it, and missing; a bin holds its lower edge, the last both."""
    edges = form["edges"]
    numbers = values[np.isfinite(values)]
    below, above = int((numbers < edges[0]).sum()), int((numbers > edges[-1]).sum())
    inside = numbers[(numbers >= edges[0]) & (numbers <= edges[-1])]
    counts = np.bincount(np.searchsorted(edges[1:-1], inside, side="right"), minlength=_bins(form))
    return np.array([*counts, below, above, len(values) - len(numbers)], dtype=np.int64)


FLOOR = 1e-4
STABLE, MODERATE = 0.1, 0.25
CONFIDENCE_WIDTH = 3.2905267314919255
"""Standard errors on each side of a 99.9 % interval."""

P_VALUE, LEAST_DISTANCE, LEAST_SHARE_CHANGE = 0.001, 0.1, 0.05
"""An alarm needs a change that is not chance and that is large enough to matter: a million rows make any change
significant."""


def drift(
    program: Program,
    source: Source,
    label_column: str | None = None,
    columns: Mapping[str, str] | None = None,
    *,
    schema: str = "",
) -> dict[str, Any]:
    """Labels, scores, clause support and features of a table against training, as JSON; missing parts are named."""
    encoder = row_encoder(program)
    by = Answerer(with_used_features(program), encoder=encoder)
    choice = columns_to_read(
        program, by.program.features, source, label_column, columns, schema, every_feature=True, encoder=encoder
    )
    counts = nothing_counted(program)
    class_number = class_finder(program.classes, labels_held(source))
    try:
        for batch in source_batches(source, choice, schema, encoder):
            of_distinct = np.array([class_number(value) for value in batch.labels.distinct], dtype=np.int64)
            deployed = of_distinct[batch.labels.codes]
            add_to_drift(counts, program, batch, answer_batch(by, batch), deployed, encoder)
    except BadInput as error:
        raise name_source(source, error) from None
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


def kolmogorov_smirnov(then: Sequence[float], now: Sequence[float]) -> tuple[float, float]:
    """The largest distance of two distributions over the same bins, and its p-value (asymptotic).

    >>> kolmogorov_smirnov([50, 50], [50, 50])
    (0.0, 1.0)
    """
    before, after = (np.asarray(each, dtype=np.float64) for each in (then, now))
    if not before.sum() or not after.sum():
        return 0.0, 1.0
    shares = np.cumsum(before) / before.sum(), np.cumsum(after) / after.sum()
    distance = float(np.abs(shares[0] - shares[1]).max())
    size = math.sqrt(before.sum() * after.sum() / (before.sum() + after.sum()))
    scaled = (size + 0.12 + 0.11 / size) * distance
    terms = (2 * (-1) ** (k - 1) * math.exp(-2 * k * k * scaled * scaled) for k in range(1, 101))
    return distance, min(1.0, max(0.0, sum(terms))) if scaled > 0.2 else 1.0


def share_changes(then: Sequence[int], now: Sequence[int]) -> list[dict[str, float]]:
    """For each class its share in training and now, and the change with its 99.9 % interval."""
    changes = []
    for before, after in zip(then, now, strict=True):
        old, new = before / max(1, sum(then)), after / max(1, sum(now))
        error = math.sqrt(old * (1 - old) / max(1, sum(then)) + new * (1 - new) / max(1, sum(now)))
        width = CONFIDENCE_WIDTH * error
        changes.append({"then": old, "now": new, "least": new - old - width, "most": new - old + width})
    return changes


def drift_alarms(summary: Mapping[str, Any]) -> list[str]:
    """What has drifted enough to fail a build, in words."""
    alarms = []
    labels = summary["labels"]
    for name, change in zip(labels["classes"], labels.get("shares", ()), strict=False):
        moved = change["now"] - change["then"]
        if abs(moved) >= LEAST_SHARE_CHANGE and not change["least"] <= 0.0 <= change["most"]:
            interval = f"{100 * change['least']:+.1f} to {100 * change['most']:+.1f} points"
            alarms.append(
                f"class {name!r}: {100 * change['then']:.1f} % in training, {100 * change['now']:.1f} % now "
                f"({interval} at 99.9 %)"
            )
    for name, form in summary["features"].items():
        if form.get("psi", 0.0) >= MODERATE:
            alarms.append(f"{name}: population stability index {form['psi']:.2f}, {MODERATE} or more is large")
        elif form.get("ks", 0.0) >= LEAST_DISTANCE and form["ks_p"] < P_VALUE:
            alarms.append(f"{name}: Kolmogorov-Smirnov distance {form['ks']:.2f}, p {form['ks_p']:.1g}")
    return alarms


def drift_summary(program: Program, counts: DriftCounts) -> dict[str, Any]:
    """The counts beside those of training."""
    summary = {
        "rows": counts.rows,
        "psi_floor": FLOOR,
        "labels": _labels(program, counts),
        "scores": _scores(program, counts),
        "clauses": _clauses(program, counts),
        "features": _features(program, counts),
        "not_compared": _absent(program),
    }
    return {**summary, "alarms": drift_alarms(summary)}


def _absent(program: Program) -> list[str]:
    """What the metadata lacks, in words."""
    lacking = []
    if feature_histograms(program) is None:
        lacking.append("features: the metadata has no training.histograms, or not one per feature")
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
    counts = at(program.metadata, "mining", key)
    fits = isinstance(counts, Sequence) and len(counts) == length and all(type(each) is int for each in counts)
    return [*counts] if fits else None


def _comparison(then: Sequence[float], now: Sequence[float]) -> dict[str, Any]:
    psi = population_stability_index(then, now)
    return {"psi": psi, "level": level(psi)}


def _labels(program: Program, counts: DriftCounts) -> dict[str, Any]:
    *known, unknown = counts.labels.tolist()
    form: dict[str, Any] = {"classes": list(program.classes), "rows": known, "no_class": unknown}
    then = _counts_at(program, "label_counts", len(program.classes))
    if then is not None and counts.rows:
        form |= {"training_rows": then, **_comparison([*then, 0], [*known, unknown])}
        form["shares"] = share_changes(then, known)
    return form


def _scores(program: Program, counts: DriftCounts) -> list[dict[str, Any]]:
    """One row per class: points of a rule set in the training bins, a tree's probabilities in tenths."""
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
            form |= {"training_rows": then[number], **_comparison(then[number], now)}
        rows.append(form)
    return rows


def _probability_counts(program: Program) -> list[list[int]] | None:
    histograms = at(program.metadata, "mining", "probabilities")
    if not isinstance(histograms, Sequence) or len(histograms) != len(program.classes):
        return None
    listed = [at(form, "counts") for form in histograms]
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
            form |= {"training_rows": then[number], **_comparison([then[number], misses[0]], [held, misses[1]])}
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
    if not form["edges"]:
        return _words_against(form, counted, rows)
    *now, below, above, missing = counted.tolist()
    then, constant = list(form["counts"]), len(form["edges"]) == 1
    now = [below, *now, above] if constant else [now[0] + below, *now[1:]]
    then = [0, *then, 0] if constant else then
    if not constant:
        now[-1] += above
    now, then = [*now, missing], [*then, form.get("missing", 0)]
    shares = {"missing_share": missing / max(1, rows), "outside_share": (below + above) / max(1, rows)}
    summary = {"rows": now, "training_rows": then, **shares}
    if not rows:
        return summary
    distance, p_value = kolmogorov_smirnov(then, now)
    return summary | _comparison(then, now) | {"ks": distance, "ks_p": p_value}


def _words_against(form: Mapping[str, Any], counted: Counts, rows: int) -> dict[str, Any]:
    """Rows with each text of training, with any other, and missing. Texts have no order, so there is no KS test."""
    *now, other, _, missing = counted.tolist()
    shares = {"missing_share": missing / max(1, rows), "outside_share": other / max(1, rows)}
    then = [*form["values"].values(), 0, form.get("missing", 0)]
    summary = {"values": list(form["values"]), "rows": [*now, other, missing], "training_rows": then, **shares}
    return summary | _comparison(then, summary["rows"]) if rows else summary
