"""The sections on the features: where rules cut each, over its training rows as a histogram, one strip per interval;
what happens at a cut and where a value is missing, and how each target computes it.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gbfl_compile.backends.sql.dialect import Dialect
from gbfl_compile.backends.sql.engines import DIALECTS
from gbfl_compile.ir.evaluate import atom_holds, evaluate
from gbfl_compile.ir.intervals import above, below
from gbfl_compile.ir.kinds import codebook
from gbfl_compile.ir.nodes import Atom, Interval, Kind, OneOf, Program
from gbfl_compile.ir.text import atom_text, bound_text, label_text, printable, value_text
from gbfl_compile.reporting.drawing import Drawing, Shape, Stroke, box, px, words
from gbfl_compile.reporting.text import count, distinct, is_number, shorten

WIDTH, LABEL, HEIGHT, STRIP = 320.0, 34.0, 46.0, 12.0
"""Width of a figure and of its column of clause numbers; height of the histogram and of one strip."""

MOST_STRIPS, MOST_FIGURES, MOST_DRAWN, SHOWN_FIGURES = 30, 60, 800, 6
"""Limits: strips per figure, figures, strips in all figures, figures shown unfolded."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of training rows between edges."""

    edges: tuple[float, ...]
    counts: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class FeatureFigure:
    """One feature: its full name, the facts about it, and the picture."""

    name: str
    facts: str
    drawing: Drawing


@dataclass(frozen=True, slots=True)
class FeatureSection:
    """The section on the features: figures, most used first, and the features that no rule tests."""

    figures: tuple[FeatureFigure, ...]
    with_histograms: bool
    unused: str
    left_out: str


def feature_section(program: Program) -> FeatureSection:
    """A figure for each feature that a clause tests."""
    atoms_of: dict[int, list[tuple[int, Atom]]] = {}
    for number, clause in enumerate(program.clauses):
        for atom in clause.atoms:
            atoms_of.setdefault(atom.feature, []).append((number, atom))
    order = sorted(atoms_of, key=lambda feature: (-len(atoms_of[feature]), feature))
    sums = itertools.accumulate(min(len(atoms_of[feature]), MOST_STRIPS) for feature in order)
    features = order[: min(MOST_FIGURES, sum(total <= MOST_DRAWN for total in sums))]
    histograms = {feature: histogram_of(program, feature) for feature in features}
    figures = tuple(_figure(program, feature, atoms_of[feature], histograms[feature]) for feature in features)
    left = len(order) - len(figures)
    return FeatureSection(
        figures=figures,
        with_histograms=any(histogram is not None for histogram in histograms.values()),
        unused=_unused_text(program, atoms_of),
        left_out=f"{count(left, 'feature')} with fewer clauses are not drawn." if left else "",
    )


def _unused_text(program: Program, used: Mapping[int, Any]) -> str:
    names = distinct(program.features)
    unused = [names[feature] for feature in range(len(names)) if feature not in used]
    if not unused:
        return "Every feature is tested by some rule."
    listed = ", ".join(unused[:30]) + (f" and {len(unused) - 30:,} more" if len(unused) > 30 else "")
    return f"Never tested ({len(unused):,} of {len(names):,}): {listed}."


def histogram_of(program: Program, feature: int) -> Histogram | None:
    """The feature's histogram in the metadata, by name or by position; None for one that makes no sense."""
    form: Any = None
    by_name, training = program.metadata.get("histograms"), program.metadata.get("training")
    if isinstance(by_name, Mapping):
        form = by_name.get(program.features[feature])
    if form is None and isinstance(training, Mapping):
        listed = training.get("histograms")
        if isinstance(listed, Sequence) and not isinstance(listed, str) and len(listed) == len(program.features):
            form = listed[feature]
        elif isinstance(listed, Mapping):
            form = listed.get(program.features[feature])
    return _histogram(form)


def _histogram(form: Any) -> Histogram | None:
    if not isinstance(form, Mapping):
        return None
    edges, counts = form.get("edges"), form.get("counts")
    if not isinstance(edges, list | tuple) or not isinstance(counts, list | tuple) or len(edges) != len(counts) + 1:
        return None
    if not counts or not all(map(is_number, (*edges, *counts))) or any(a >= b for a, b in itertools.pairwise(edges)):
        return None
    return Histogram(tuple(map(float, edges)), tuple(max(0.0, float(rows)) for rows in counts))


def _figure(
    program: Program, feature: int, atoms: list[tuple[int, Atom]], histogram: Histogram | None
) -> FeatureFigure:
    name = printable(program.features[feature])
    more = f"; the first {MOST_STRIPS} are drawn" if len(atoms) > MOST_STRIPS else ""
    facts = f"in {count(len(atoms), 'clause')}{more}"
    if (missing := sum(atom.if_missing for _, atom in atoms)) > 0:
        facts += f"; a missing value satisfies {missing}"
    sets = [(number, atom) for number, atom in atoms if isinstance(atom, OneOf)]
    if sets:
        return text_figure(program, feature, sets, FeatureFacts(name, facts))
    intervals = [(number, atom) for number, atom in atoms if isinstance(atom, Interval)]
    low, high = _range(intervals, histogram)
    top = HEIGHT if histogram is not None else 4.0
    shapes: list[Shape] = [] if histogram is None else list(_bars(histogram, low, high))
    shapes.append(Stroke(f"M{px(LABEL)} {px(top)}H{px(WIDTH)}", "axis"))
    places = [top + 5 + STRIP * place for place in range(min(len(atoms), MOST_STRIPS))]
    shapes.append(Stroke("".join(f"M{px(LABEL)} {px(y + 5.5)}H{px(WIDTH)}" for y in places), "guide"))
    for y, (number, atom) in zip(places, intervals, strict=False):
        shapes += _strip(number, atom, y, low, high)
    bottom = top + 5 + STRIP * len(places) + 12
    ends = [bound_text(end, program.kind(feature)) for end in (low, high)]
    shapes.append(words(LABEL, bottom, ends[0], "small"))
    shapes.append(words(WIDTH, bottom, ends[1], "small", "end"))
    title = f"{name}: the intervals of {count(min(len(atoms), MOST_STRIPS), 'clause')}"
    over = "over the training rows" if histogram is not None else "over the range of the cuts"
    text = f"Strips {over}, from {ends[0]} to {ends[1]}. The rules say the same in words."
    return FeatureFigure(name, facts, Drawing(f"f{feature}", px(WIDTH), px(bottom + 4), title, text, tuple(shapes)))


def _range(atoms: list[tuple[int, Interval]], histogram: Histogram | None) -> tuple[float, float]:
    """What the figure spans: the histogram and every cut. Without a histogram, a margin shows the open ends."""
    cuts = [cut for _, atom in atoms for cut in (atom.lo, atom.hi) if cut is not None]
    if histogram is not None:
        return min(histogram.edges[0], *cuts, histogram.edges[-1]), max(histogram.edges[-1], *cuts, histogram.edges[0])
    if not cuts:
        return 0.0, 1.0
    low, high = min(cuts), max(cuts)
    margin = (high / 2 - low / 2) / 4 or max(abs(low), 1.0) / 2
    most = 1.7e308
    return max(low - margin, -most), min(high + margin, most)


def _at(value: float, low: float, high: float) -> float:
    """The x coordinate of a value. Computed on halves, so that a range of all doubles does not overflow."""
    whole = high / 2 - low / 2
    share = (value / 2 - low / 2) / whole if whole > 0 else 0.5
    return LABEL + (WIDTH - LABEL) * min(max(share, 0.0), 1.0)


def _bars(histogram: Histogram, low: float, high: float) -> Iterator[Shape]:
    """A bar's area is its share of the rows, so bins may have any width."""
    places = [_at(edge, low, high) for edge in histogram.edges]
    dense = [rows / max(b - a, 0.25) for rows, (a, b) in zip(histogram.counts, itertools.pairwise(places), strict=True)]
    most = max(dense)
    for density, (a, b) in zip(dense, itertools.pairwise(places), strict=True):
        if density > 0 and math.isfinite(density):
            height = max(1.0, (HEIGHT - 4) * density / most)
            yield box(a, HEIGHT - height, max(0.5, b - a - 0.4), height, "rows")


def _strip(number: int, atom: Interval, y: float, low: float, high: float) -> Iterator[Shape]:
    start = LABEL if atom.lo is None else _at(atom.lo, low, high)
    end = WIDTH if atom.hi is None else _at(atom.hi, low, high)
    yield words(LABEL - 6, y + 9, f"C{number}", "small", "end")
    yield box(min(start, WIDTH - 1.5), y + 2, max(1.5, end - start), 7, "interval")


MOST_SLOTS = 24
"""Texts of one category that have a column of their own in its figure."""


@dataclass(frozen=True, slots=True)
class FeatureFacts:
    """The name of a feature and the text about it."""

    name: str
    facts: str


def text_figure(program: Program, feature: int, atoms: list[tuple[int, OneOf]], about: FeatureFacts) -> FeatureFigure:
    """A column for each text that a rule lists and one for any other, numbered; a strip marks those that hold."""
    texts = codebook(program).texts[feature]
    slots: list[str | None] = [*texts[:MOST_SLOTS], None]
    width = (WIDTH - LABEL) / len(slots)
    places = [9.0 + STRIP * place for place in range(min(len(atoms), MOST_STRIPS))]
    shapes: list[Shape] = [Stroke(f"M{px(LABEL)} {px(4.0)}H{px(WIDTH)}", "axis")]
    shapes.append(Stroke("".join(f"M{px(LABEL)} {px(y + 5.5)}H{px(WIDTH)}" for y in places), "guide"))
    for y, (number, atom) in zip(places, atoms, strict=False):
        shapes.append(words(LABEL - 6, y + 9, f"C{number}", "small", "end"))
        held = [place for place, text in enumerate(slots) if (text in atom.values) != atom.negated]
        shapes += [box(LABEL + width * place + 1, y + 2, max(1.5, width - 2), 7, "interval") for place in held]
    bottom = 9.0 + STRIP * len(places) + 12
    for place in range(len(slots)):
        shapes.append(words(LABEL + width * (place + 0.5), bottom, str(place + 1), "small", "middle"))
    names = _slot_names(program, feature, texts)
    key = ", ".join(f"{place + 1} {name}" for place, name in enumerate(names))
    title = f"{about.name}: the values of {count(min(len(atoms), MOST_STRIPS), 'clause')}"
    text = f"Strips over the values: {key}. The rules say the same in words."
    drawing = Drawing(f"f{feature}", px(WIDTH), px(bottom + 4), title, text, tuple(shapes))
    return FeatureFigure(about.name, f"{about.facts}; {key}", drawing)


def _slot_names(program: Program, feature: int, texts: Sequence[str]) -> list[str]:
    if program.kind(feature) == "boolean":
        return ["true", "false"]
    left = len(texts) - MOST_SLOTS
    other = "any other" if left <= 0 else f"any other ({left:,} more are listed in rules)"
    return [*(shorten(value_text(text)) for text in texts[:MOST_SLOTS]), other]


ENDS = {
    "left": "lo ≤ x < hi",
    "right": "lo < x ≤ hi",
    "both": "lo ≤ x ≤ hi",
    "neither": "lo < x < hi",
}

TEXTS_ARE_EXACT = (
    "Texts are equal only when they are the same, character by character: capitals, accents and blanks count, "
    "and an empty text is not a missing one."
)

_COMPARISONS = "NaN fails every comparison, so only an interval that a missing value satisfies tests for it"

PLAIN_TARGETS = {
    "python": ("None and NaN", _COMPARISONS),
    "c": ("NaN", _COMPARISONS),
    "js": ("null, undefined and NaN", _COMPARISONS),
    "onnx": ("NaN", "tested with IsNaN, or the tree's node says which way a missing value goes"),
}

NAN_IN_SQL = {
    "null": ("NULL", "it has no NaN; a comparison with NULL is unknown, and WHEN takes unknown for false"),
    "greatest": (
        "NULL and NaN",
        "it sorts NaN above every number, so an interval without an upper end excludes NaN explicitly",
    ),
    "total": (
        "NULL and NaN",
        "it sorts NaN above or below every number, by its sign, so an interval without an end excludes NaN explicitly",
    ),
    "ieee": (
        "NULL and NaN",
        "NaN fails every comparison; where a missing value satisfies an interval, both are tested for",
    ),
}


@dataclass(frozen=True, slots=True)
class TargetBehaviour:
    """What counts as missing in one target, and how it is recognised."""

    target: str
    missing: str
    how: str
    never_run: bool = False
    """Whether no engine of this kind has ever run the emitted code."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The section on cuts and missing values."""

    ends: tuple[tuple[str, str], ...]
    missing: str
    all_missing: str
    example: str
    example_lines: tuple[tuple[str, str, str], ...]
    """(what, the double, whether the interval holds there)."""
    targets: tuple[TargetBehaviour, ...]
    never_run: tuple[TargetBehaviour, ...]


def behaviour(program: Program, targets: Iterable[str]) -> Behaviour:
    """The facts, computed from the program itself; `targets` are those of the verdict, or all known ones."""
    atoms = [atom for clause in program.clauses for atom in clause.atoms]
    intervals = [atom for atom in atoms if isinstance(atom, Interval)]
    closed = Counter(atom.closed for atom in intervals if atom.lo is not None or atom.hi is not None)
    holding = sum(atom.if_missing for atom in atoms)
    noun = "interval" if len(intervals) == len(atoms) else "condition"
    missing = f"A missing value fails every one of the {count(len(atoms), noun)}."
    if holding:
        missing = f"A missing value satisfies {holding:,} of {count(len(atoms), noun)} and fails the others."
    if "category" in program.kinds:
        missing += f" {TEXTS_ARE_EXACT}"
    nothing = evaluate(program, [None] * len(program.features))
    example = _example(intervals)
    known = [each for name in targets if (each := target_behaviour(name)) is not None]
    return Behaviour(
        ends=tuple((ENDS[end], f"{number:,}") for end, number in sorted(closed.items())),
        missing=missing if atoms else "The program tests no feature.",
        all_missing=f"A row with every value missing gets the class {label_text(nothing.label)}.",
        example="" if example is None else atom_text(example, distinct(program.features), program.kinds),
        example_lines=() if example is None else _example_lines(example, program.kind(example.feature)),
        targets=tuple(each for each in known if not each.never_run),
        never_run=tuple(each for each in known if each.never_run),
    )


def _example(atoms: list[Interval]) -> Interval | None:
    """The interval that occurs in most clauses: its cut is the one to look at."""
    bounded = Counter(atom for atom in atoms if atom.lo is not None or atom.hi is not None)
    return bounded.most_common(1)[0][0] if bounded else None


def _example_lines(atom: Interval, kind: Kind) -> tuple[tuple[str, str, str], ...]:
    cut = atom.lo if atom.lo is not None else atom.hi
    assert cut is not None  # noqa: S101 - an example has a bound
    match kind:
        case "date" | "timestamp":
            unit = "day" if kind == "date" else "microsecond"
            values = ((f"the {unit} before", cut - 1), ("the cut itself", cut), (f"the {unit} after", cut + 1))
        case _:
            values = (
                ("the next double below", below(cut)),
                ("the cut itself", cut),
                ("the next double above", above(cut)),
            )
    lines = [
        (what, _exact_text(value, kind), "holds" if atom_holds(atom, value) else "does not hold")
        for what, value in values
    ]
    return (*lines, ("missing", "", "holds" if atom.if_missing else "does not hold"))


def _exact_text(value: float, kind: Kind) -> str:
    return repr(value) if kind == "number" else bound_text(value, kind)


def target_behaviour(target: str) -> TargetBehaviour | None:
    """What counts as missing in a target, by its name or its folder's (`sql-duckdb`); None for an unknown target."""
    if target in PLAIN_TARGETS:
        return TargetBehaviour(target, *PLAIN_TARGETS[target])
    dialect: Dialect | None = DIALECTS.get(target.removeprefix("sql:").removeprefix("sql-"))
    if dialect is None or not target.startswith("sql"):
        return None
    missing, how = NAN_IN_SQL[dialect.missing]
    never = "" if dialect.not_run is None else f". {dialect.not_run}"
    return TargetBehaviour(target, missing, f"{dialect.engine}: {how}{never}", dialect.not_run is not None)
