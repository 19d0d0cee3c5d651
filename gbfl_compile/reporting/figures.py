"""How consistent and how accurate the rules are, from the metadata: beside the baselines, and by number of clauses.

Read from `metadata["figures"]`: `test` and `training` (as `gbfl demo` and `gbfl mine` write them), `baselines`
(name -> the same figures) and `by_clauses` (a list of {"clauses": n, "c_tb": …, "accuracy": …}), or failing that the
path that `gbfl mine` records. What is absent is left out, and the page says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gbfl_compile.ir.nodes import Program, Scorecard
from gbfl_compile.reporting.drawing import Bar, Dot, Drawing, Shape, Stroke, px, share_bar, words
from gbfl_compile.reporting.text import is_number, one_line, percent

MEASURES = (
    ("accuracy", "accuracy", "the row gets its true class"),
    ("black_box_accuracy", "the black box's accuracy", "the black box gives the row its true class"),
    ("base_rate", "base rate", "accuracy of always answering the commonest class"),
    ("fidelity", "fidelity", "the row gets the black box's class"),
    (
        "c_tb_all",
        "C_TB, all rows",
        "right at the row, its PP and its PN; without a PN, at the other two",
    ),
    ("c_tb", "C_TB, rows with a PN", "the same, over the rows that have a PN"),
    ("c_pp", "C_PP", "the pertinent positive gets the row's class"),
    ("c_pn", "C_PN", "the pertinent negative gets another class"),
    ("auc", "area under the ROC curve", "how often a row of a class is ranked above a row of another"),
    (
        "calibration",
        "gap of probabilities",
        "mean distance of a probability from the share of rows with that class",
    ),
)
"""Key, name and meaning, the most important first."""

SHARES = ("accuracy", "black_box_accuracy", "base_rate", "auc", "calibration")
"""Written as shares of 1 by `gbfl mine`; the others are per cent already."""

CURVES = (("c_tb", "C_TB", "curve0"), ("accuracy", "accuracy", "curve1"))

MOST_DOTS = 40
"""A curve with more points than this is drawn as a line with a dot at each end only."""

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 320.0, 190.0, 30.0, 8.0, 14.0, 24.0


@dataclass(frozen=True, slots=True)
class FigureLine:
    """One figure: its name and meaning, its value, and the count behind it."""

    name: str
    meaning: str
    text: str
    of: str
    bar: Bar


@dataclass(frozen=True, slots=True)
class FigureTable:
    """The figures of one set of rows or of one measure."""

    heading: str
    lines: tuple[FigureLine, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """The section on figures; `missing` says why a part is empty."""

    tables: tuple[FigureTable, ...]
    baselines: tuple[FigureTable, ...]
    curve: Drawing | None
    missing: tuple[str, ...]
    explains: bool
    """Whether there are figures on PPs and PNs, which the page then explains."""


def figures(program: Program) -> Figures:
    """What the metadata says about the rules' consistency and accuracy."""
    form = program.metadata.get("figures")
    known: Mapping[str, Any] = form if isinstance(form, Mapping) else {}
    parts = (("test", "on held-out rows"), ("training", "on the training rows"))
    tables = [FigureTable(heading, tuple(_lines(known.get(part)))) for part, heading in parts]
    tables[1:1] = _by_method(known.get("test"))
    baselines = tuple(_beside_baselines(known))
    mining = program.metadata.get("mining")
    curve = _curve(known.get("by_clauses") or (mining.get("path") if isinstance(mining, Mapping) else None))
    missing = []
    if not any(table.lines for table in tables):
        missing.append("The program's metadata has no figures on consistency or accuracy.")
    if not baselines:
        missing.append("There are no baselines to compare with: none were fitted when the rules were mined.")
    if curve is None and isinstance(program.decision, Scorecard):
        missing.append("How the figures grow with the number of clauses was not recorded when the rules were made.")
    shown = tuple(table for table in tables if table.lines)
    explains = any(line.name.startswith("C_") for table in shown for line in table.lines)
    return Figures(shown, baselines, curve, tuple(missing), explains)


def _lines(form: Any) -> Iterator[FigureLine]:
    if not isinstance(form, Mapping):
        return
    for key, name, meaning in MEASURES:
        if (value := in_percent(form, key)) is not None:
            right, of = form.get(f"{key}_right"), form.get(f"{key}_of")
            counted = f"{right:,} of {of:,}" if isinstance(right, int) and isinstance(of, int) else ""
            yield FigureLine(name, meaning, percent(value), counted, share_bar(value / 100, "rows-bar"))


def _by_method(test: Any) -> Iterator[FigureTable]:
    """C_TB over all rows under each explanation method, where the metadata has more than one."""
    methods = test.get("methods") if isinstance(test, Mapping) else None
    if isinstance(methods, Mapping) and len(methods) > 1:
        lines = []
        for name, form in methods.items():
            if isinstance(form, Mapping) and (value := in_percent(form, "c_tb_all")) is not None:
                note = "the rules were fitted to these" if form.get("fitted") else "the rules were not fitted to these"
                right, of = form.get("c_tb_all_right"), form.get("c_tb_all_of")
                counted = f"{right:,} of {of:,}" if isinstance(right, int) and isinstance(of, int) else ""
                bar = share_bar(value / 100, "rows-bar")
                lines.append(FigureLine(one_line(str(name), 40), note, percent(value), counted, bar))
        yield FigureTable("C_TB over all rows, by the method that found PPs and PNs", tuple(lines))


def in_percent(form: Mapping[str, Any], key: str) -> float | None:
    """A figure in per cent."""
    value = form.get(key)
    if not is_number(value):
        return None
    assert isinstance(value, int | float)  # noqa: S101 - is_number said so
    shared = key in SHARES and 0 <= value <= 1
    return float(100 * value if shared else value)


def _beside_baselines(known: Mapping[str, Any]) -> Iterator[FigureTable]:
    """One table per measure: these rules first, then each baseline, so that bars can be compared."""
    ours, baselines = known.get("test"), known.get("baselines")
    if not isinstance(ours, Mapping) or not isinstance(baselines, Mapping):
        return
    models = [("these rules", ours)]
    others = [(one_line(name, 60), form) for name, form in baselines.items() if isinstance(form, Mapping)]
    models += sorted(others, key=lambda model: -(in_percent(model[1], "c_tb") or 0.0))
    for key, name, _ in MEASURES:
        values = [(model, in_percent(form, key)) for model, form in models]
        if sum(value is not None for _, value in values) > 1:
            lines = (
                FigureLine(model, "", percent(value), "", share_bar(value / 100, role))
                for (model, value), role in zip(values, ("ours-bar", *("rows-bar",) * len(values)), strict=False)
                if value is not None
            )
            yield FigureTable(name, tuple(lines))


def _curve(form: Any) -> Drawing | None:
    if not isinstance(form, Sequence) or isinstance(form, str):
        return None
    points = [entry for entry in form if isinstance(entry, Mapping) and is_number(entry.get("clauses"))]
    points.sort(key=lambda entry: entry["clauses"])
    drawn = [
        (name, role, [(float(p["clauses"]), value) for p in points if (value := in_percent(p, key)) is not None])
        for key, name, role in CURVES
    ]
    drawn = [(name, role, line) for name, role, line in drawn if len(line) > 1]
    if not drawn:
        return None
    most = max(at for _, _, line in drawn for at, _ in line)
    ends = "; ".join(f"{name} from {line[0][1]:.1f} % to {line[-1][1]:.1f} %" for name, _, line in drawn)
    shapes = [*_axes(most), *(shape for curve in drawn for shape in _curve_shapes(*curve, most))]
    title = "Consistency and accuracy against the number of clauses"
    return Drawing("curve", px(WIDTH), px(HEIGHT), title, f"Up to {most:g} clauses: {ends}.", tuple(shapes))


def _x(clauses: float, most: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * min(max(clauses / max(most, 1.0), 0.0), 1.0)


def _y(value: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - min(max(value, 0.0), 100.0) / 100)


def _axes(most: float) -> Iterator[Shape]:
    for level in (0, 50, 100):
        yield Stroke(f"M{px(LEFT)} {px(_y(level))}H{px(WIDTH - RIGHT)}", "guide" if level else "axis")
        yield words(LEFT - 5, _y(level) + 4, f"{level}", "small", "end")
    yield words(LEFT, HEIGHT - 8, "0", "small", "middle")
    yield words((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "clauses", "small", "middle")
    yield words(WIDTH - RIGHT, HEIGHT - 8, f"{most:g}", "small", "end")


def _curve_shapes(name: str, role: str, line: list[tuple[float, float]], most: float) -> Iterator[Shape]:
    path = "L".join(f"{px(_x(at, most))} {px(_y(value))}" for at, value in line)
    yield Stroke(f"M{path}", role, "2")
    for at, value in line if len(line) <= MOST_DOTS else line[:1] + line[-1:]:
        yield Dot(px(_x(at, most)), px(_y(value)), role)
    # the key goes into the corner that a rising curve leaves free
    level = _y(0) - (22 if role == "curve0" else 8)
    yield Stroke(f"M{px(WIDTH - 100)} {px(level - 4)}h22", role, "2")
    yield words(WIDTH - 74, level, name, "strong")
