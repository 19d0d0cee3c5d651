"""A mined program with its figures, as text and as JSON; counts of its answers; which groups it treats differently.

Groups are values of words and quarters of numbers, each counted on held-out rows beside all other rows. A difference
is kept with an interval that is widened for the number of comparisons, so that chance among many groups is not mistaken
for one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.ir.batch import Matrix, clause_column, evaluate_many
from gbfl_compile.ir.json import digest
from gbfl_compile.ir.kinds import Codebook
from gbfl_compile.ir.nodes import Interval, OneOf, Program
from gbfl_compile.ir.text import atom_text, printable, probability_lines, readable, unseen_text
from gbfl_compile.learning.consistency import Consistency, Triplets
from gbfl_compile.lowering import histogram

OUTCOMES = (
    "accuracy",
    "black_box_accuracy",
    "base_rate",
    "auc",
    "black_box_auc",
    "calibration",
    "calibration_by_chance",
    "black_box_calibration",
    "brier",
    "confusion",
)


@dataclass(frozen=True, slots=True)
class MiningResult:
    """A program, and how it did on rows it was not learned from."""

    program: Program
    triplets: Triplets
    """The held-out rows with their explanations."""
    consistency: Consistency
    accuracy: float
    black_box_accuracy: float
    compared_rows: int
    compared_different: int
    """On how many of `compared_rows` the program answers differently from the fitted classifier."""
    queries: int
    """Rows that were sent to the black box; fewer where an interrupted run had already explained some."""
    seconds: float = 0.0
    """What it took, from the black box to the figures; training the black box included."""

    @property
    def figures(self) -> Mapping[str, Any]:
        """Accuracy and consistency on the held-out rows, of the program and of the baselines."""
        figures: Mapping[str, Any] = self.program.metadata["figures"]
        return figures

    @property
    def summary(self) -> str:
        """The rules, and how good they are on the rows held out."""
        return "\n".join(_lines(self))

    def __repr__(self) -> str:
        right, own = 100 * self.accuracy, 100 * self.black_box_accuracy
        return f"MiningResult({self.program!r}, accuracy {right:.1f} %, black box {own:.1f} %)"

    def as_json(self, out: Path | None = None, triplets: Path | None = None) -> dict[str, Any]:
        """The stable form scripts read; `out` and `triplets` are the files that were written."""
        mining = self.program.metadata["mining"]
        return {
            "program": digest(self.program),
            "out": None if out is None else str(out),
            "triplets": None if triplets is None else str(triplets),
            "features": list(self.program.features),
            "classes": list(self.program.classes),
            "clauses": len(self.program.clauses),
            "data": mining["data"],
            "rows": mining["rows"],
            "black_box": mining["black_box"],
            "head": mining["head"],
            "seed": mining["seed"],
            "probabilities": self.program.metadata["probabilities"],
            "test": {
                **{name: self.figures["test"][name] for name in OUTCOMES},
                "consistency": self.consistency.as_dict(),
                "methods": self.figures["test"]["methods"],
            },
            "classifier": {"rows": self.compared_rows, "different": self.compared_different},
            "cost": {"queries": self.queries},
        }


LEGEND = (
    "agreement with explanations of the black box, on the same rows",
    "  PP: the part of a row that suffices for its answer, by the black box",
    "  PN: the row with a small change, to which the black box gives another class",
    "  C_PP, C_PN: how often the rules agree with that; C_TB: with both and the row",
)


def _lines(mined: MiningResult) -> list[str]:
    mining = mined.program.metadata["mining"]
    counts = mining["rows"]
    first, explained = (
        [f"  {what:<27} {_percent(value):>7}  {of}".rstrip() for what, value, of in figures(mined)]
        for figures in (_first_figures, _figures_of_explanations)
    )
    cost = cost_text(mined)
    unseen = unseen_text(mined.program, mining["clause_support"])
    return [
        readable(mined.program),
        *([] if unseen is None else [unseen]),
        *_never_answered(mined.program),
        "",
        f"{printable(mining['data']['name'])}: {counts['training']} rows to learn from, {counts['test']} held out, "
        f"seed {mining['seed']}",
        "on the rows held out",
        *first,
        *_confusion_lines(mined),
        *LEGEND,
        *explained,
        *_baseline_lines(mined.figures.get("baselines", {})),
        *probability_lines(mined.program),
        f"program against classifier: {mined.compared_different} different of {mined.compared_rows} rows",
        cost,
        f"digest {digest(mined.program)}",
    ]


def _never_answered(program: Program) -> list[str]:
    """Classes that no training row gets: rules that always say the same look good where the others are rare."""
    counts = program.metadata["mining"]["label_counts"]
    never = [printable(str(label)) for label, rows in zip(program.classes, counts, strict=True) if not rows]
    if len(program.classes) - len(never) == 1:
        return [
            "these rules give every training row the same class, so they decide nothing; the",
            "black box may do no better: compare it with the commonest class, below",
        ]
    return [f"no training row gets the class {name}" for name in never[:MOST_SHOWN]]


def cost_text(mined: MiningResult) -> str:
    """What mining cost, in questions to the black box and in seconds."""
    counts = mined.program.metadata["mining"]["rows"]
    each = mined.queries / (counts["training"] + counts["test"])
    queries = f"the black box was queried with {mined.queries:,} rows, {each:,.0f} per row"
    return f"cost: {queries}; {mined.seconds:.1f} s in all"


def _first_figures(mined: MiningResult) -> Iterator[tuple[str, float | None, str]]:
    """What people need first."""
    c, test = mined.consistency, mined.figures["test"]
    beside = f"black box {100 * mined.black_box_accuracy:.1f} %, commonest class {100 * test['base_rate']:.1f} %"
    yield "accuracy", 100 * mined.accuracy, beside
    yield "same class as the black box", c.fidelity, f"{c.fidelity_right} of {c.rows}"
    for name, key in (("area under the ROC curve", "auc"), ("mean gap of probabilities", "calibration")):
        own = test[f"black_box_{key}"]
        value = None if test[key] is None else 100 * test[key]
        chance = f", by chance alone {100 * test['calibration_by_chance']:.1f} %" if key == "calibration" else ""
        yield name, value, "" if own is None else f"black box {100 * own:.1f} %{chance}"


def _figures_of_explanations(mined: MiningResult) -> Iterator[tuple[str, float | None, str]]:
    c, test = mined.consistency, mined.figures["test"]
    yield "C_TB, all rows", c.c_tb_all, f"{c.c_tb_all_right} of {c.rows}"
    yield "C_TB, rows with a PN", c.c_tb, f"{c.c_tb_right} of {c.with_pn}"
    yield "C_PP", c.c_pp, f"{c.c_pp_right} of {c.with_pp}"
    yield "C_PN", c.c_pn, f"{c.c_pn_right} of {c.with_pn}"
    for name, form in list(test["methods"].items())[1:]:
        fitted = "" if form["fitted"] else ", not fitted to this method"
        yield (
            f"C_TB by {name}, all rows",
            form["c_tb_all"],
            f"{form['c_tb_all_right']} of {form['c_tb_all_of']}{fitted}",
        )


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} %"


MOST_SHOWN = 10
"""Classes up to which the confusion matrix is printed; the JSON always has it."""


def _confusion_lines(mined: MiningResult) -> list[str]:
    counts, classes = mined.figures["test"]["confusion"], [printable(str(each)) for each in mined.program.classes]
    if len(classes) > MOST_SHOWN:
        return []
    width = max(len("true class"), *(len(name) for name in classes))
    cells = [max(len(name), 6) for name in classes]
    head = " ".join(f"{name:>{cell}}" for name, cell in zip(classes, cells, strict=True))
    lines = [f"  {'true class':<{width}}  {head}  <- answer"]
    for name, row in zip(classes, counts, strict=True):
        lines.append(f"  {name:<{width}}  " + " ".join(f"{n:>{cell}}" for n, cell in zip(row, cells, strict=True)))
    return lines


def _baseline_lines(baselines: dict[str, Any]) -> list[str]:
    """What plain trees reach on the same rows and explanations."""
    if not baselines:
        return []
    width = max(len(name) for name in baselines)
    lines = [f"beside{'':<{width - 4}} {'C_TB, all rows':>14}  {'accuracy':>8}"]
    for name, form in baselines.items():
        c_tb = _percent(form["c_tb_all"])
        accuracy = f"{100 * form['accuracy']:.1f} %"
        lines.append(f"  {name:<{width}} {c_tb:>14}  {accuracy:>8}")
    return lines


BINS = 10


def distributions(
    program: Program, x: Matrix, y: NDArray[Any], y_test: NDArray[Any], book: Codebook | None = None
) -> dict[str, Any]:
    """Counts over training rows, classes in the program's order and clauses in the program's numbering.

    A `book` has the codes of the rows' words.
    """
    answers = evaluate_many(program, x, book)
    counts: dict[str, Any] = {
        "class_counts": {"training": _counts(program, y.tolist()), "test": _counts(program, y_test.tolist())},
        "label_counts": _counts(program, answers.labels.tolist()),
        "probabilities": [share_histogram(answers.probabilities[:, c]) for c in range(len(program.classes))],
        "whole_numbers": [name for name, whole in zip(program.features, _are_whole(program, x), strict=True) if whole],
        "clause_support": [int(clause_column(clause, x, book).sum()) for clause in program.clauses],
    }
    if answers.scores is not None:
        scores = answers.scores.astype(np.float64)
        counts["scores"] = [histogram(scores[:, c]) for c in range(len(program.classes))]
    return counts


def share_histogram(shares: Matrix) -> dict[str, Any]:
    """Counts of probabilities in ten equal bins; each includes its lower end, the last one 1 as well."""
    edges = [tenth / BINS for tenth in range(BINS + 1)]
    counts = np.bincount(np.searchsorted(edges[1:-1], shares, side="right"), minlength=BINS)
    return {"edges": edges, "counts": counts.tolist()}


def _are_whole(program: Program, x: Matrix) -> list[bool]:
    """Whether each column holds whole numbers only, missing values aside: a change to 1.3 is then impossible."""
    whole = ((x == np.rint(x)) | np.isnan(x)).all(axis=0).tolist()
    return [each and program.kind(feature) == "number" for feature, each in enumerate(whole)]


def _counts(program: Program, labels: list[Any]) -> list[int]:
    return [sum(label == one for one in labels) for label in program.classes]


FEWEST_ROWS = 20
"""Smaller groups, and groups that leave fewer others, are not compared."""
MOST_VALUES = 12
"""Values of a word or of a whole number that are compared one by one, the commonest ones."""
MOST_KEPT = 12
ERROR_RATE = 0.05
"""The chance that any interval at all misses the true difference, over all comparisons."""

Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Value:
    """The rows in which a feature has one value, or none."""

    feature: int
    value: float | None


Group: TypeAlias = Value | OneOf | Interval


def compare_groups(program: Program, x: Matrix, y: NDArray[Any], book: Codebook | None = None) -> dict[str, Any]:
    """The groups whose answers or errors differ most from those of all other rows, as JSON.

    `x` and `y` are rows that nothing was fitted to, and their true classes; a `book` has the codes of the words.
    """
    labels = evaluate_many(program, x, book).labels.tolist()
    answered = np.array([program.classes.index(label) for label in labels], dtype=np.int64)
    places = {label: place for place, label in enumerate(program.classes)}
    true = np.array([places.get(label, -1) for label in y.tolist()], dtype=np.int64)
    groups = [
        (group, rows)
        for feature in range(len(program.features))
        for group, rows in _groups(program, feature, x[:, feature], book)
        if FEWEST_ROWS <= rows.sum() <= len(x) - FEWEST_ROWS
    ]
    z = NormalDist().inv_cdf(1 - ERROR_RATE / (2 * max(1, len(groups)) * (len(program.classes) + 1)))
    forms = [(group, _form(program, group, rows, answered, true, z)) for group, rows in groups]
    forms.sort(key=lambda each: -_most_surely(each[1]))
    kept = [(group, form) for group, form in forms if _most_surely(form) > 0][:MOST_KEPT]
    groups_kept = [{"group": _text(program, group), **form} for group, form in kept]
    return {"rows": len(x), "compared": len(groups), "groups": groups_kept}


def _groups(program: Program, feature: int, column: Matrix, book: Codebook | None) -> Iterator[tuple[Group, Mask]]:
    """Each group of a feature, and which rows are in it."""
    kind = program.kind(feature)
    missing = np.isnan(column)
    if missing.any():
        yield Value(feature, None), missing
    known = column[~missing]
    values, counts = np.unique(known, return_counts=True)
    commonest = [float(values[place]) for place in np.argsort(-counts, kind="stable")[:MOST_VALUES]]
    if kind == "category":
        for code in commonest:
            texts = book.texts[feature] if book is not None else ()
            if 1 <= code <= len(texts):
                yield OneOf(feature, (texts[int(code) - 1],), False, False), column == code
    elif kind == "boolean" or (len(values) <= MOST_VALUES and kind == "number"):
        for value in commonest:
            yield Value(feature, value), column == value
    elif len(values) > 1:
        cuts = np.unique(np.quantile(known, (0.25, 0.5, 0.75), method="lower"))
        for low, high in zip([None, *cuts.tolist()], [*cuts.tolist(), None], strict=True):
            inside = ~missing if low is None else column >= low
            inside = inside if high is None else inside & (column < high)
            yield Interval(feature, low, high), inside


def _text(program: Program, group: Group) -> str:
    """A group in words."""
    if not isinstance(group, Value):
        return atom_text(group, program.features, program.kinds)
    name, value = program.features[group.feature], group.value
    if value is None:
        return f"{name} is missing"
    if program.kind(group.feature) == "boolean":
        return f"{name} is {'true' if value else 'false'}"
    return f"{name} is {value:g}"


def _form(
    program: Program, group: Group, rows: Mask, answered: NDArray[Any], true: NDArray[Any], z: float
) -> dict[str, Any]:
    """One group beside all other rows: the class whose share differs most, and the errors."""
    shares = [_difference(answered == place, rows, z) for place in range(len(program.classes))]
    rarity = [int((answered != place).sum()) for place in range(len(shares))]  # of two classes, the rarer answer
    place = max(range(len(shares)), key=lambda each: (len(shares) > 2 and _surely(shares[each]["gap"]), rarity[each]))
    tested = {atom.feature for clause in program.clauses for atom in clause.atoms}
    return {
        "feature": program.features[group.feature],
        "tested": group.feature in tested,
        "rows": int(rows.sum()),
        "class": place,
        "answers": shares[place],
        "true": [int((true[each] == place).sum()) for each in (rows, ~rows)],
        "errors": _difference(answered != true, rows, z),
    }


def _difference(hits: Mask, rows: Mask, z: float) -> dict[str, Any]:
    """Counts in the group and among all others, and an interval of the difference of their shares (Newcombe's)."""
    counts = [int(hits[each].sum()) for each in (rows, ~rows)]
    totals = [int(each.sum()) for each in (rows, ~rows)]
    first, second = (count / total for count, total in zip(counts, totals, strict=True))
    (low, high), (other_low, other_high) = (
        score_interval(count, total, z) for count, total in zip(counts, totals, strict=True)
    )
    gap = first - second
    below = math.hypot(first - low, other_high - second)
    above = math.hypot(high - first, second - other_low)
    return {"counts": counts, "of": totals, "gap": [round(gap - below, 4), round(gap + above, 4)]}


def score_interval(count: int, total: int, z: float) -> tuple[float, float]:
    """Wilson's interval of a share.

    >>> tuple(round(end, 3) for end in score_interval(8, 10, 1.96))
    (0.49, 0.943)
    """
    share, square = count / total, z * z
    middle = (share + square / (2 * total)) / (1 + square / total)
    half = z / (1 + square / total) * math.sqrt(share * (1 - share) / total + square / (4 * total * total))
    return max(0.0, middle - half), min(1.0, middle + half)


def _most_surely(form: dict[str, Any]) -> float:
    """The least by which a group differs, in its answers or in its errors."""
    return max(_surely(form["answers"]["gap"]), _surely(form["errors"]["gap"]))


def _surely(gap: Sequence[float]) -> float:
    """The distance of a difference's interval from zero; not positive if the interval contains zero."""
    return max(gap[0], -gap[1])
