"""A group's results as a Markdown table and a plot of bars, for docs/bench/."""

import platform
from collections.abc import Iterator
from html import escape
from math import log10
from pathlib import Path

from tests.bench.timing import Timing

WIDTH, NAMES, BAR, HEAD, UNIT = 900, 330, 20, 40, 120
"""Pixels of a plot: all of it, the names, a bar, a heading, a factor of ten."""


def write_record(folder: Path, group: str, found: list[Timing]) -> None:
    """GROUP.md and GROUP.svg."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{group}.md").write_text("\n".join(markdown(group, found)) + "\n", encoding="utf-8")
    (folder / f"{group}.svg").write_text("\n".join(svg(found)) + "\n", encoding="utf-8")


def by_shape(found: list[Timing]) -> Iterator[tuple[str, list[Timing]]]:
    for shape in dict.fromkeys(timed.shape for timed in found):
        yield shape, sorted((t for t in found if t.shape == shape), key=lambda timed: timed.nanoseconds)


def markdown(group: str, found: list[Timing]) -> Iterator[str]:
    """One table a shape: the reference of ratios is its plain read, or else the quickest."""
    yield f"# Benchmarks, group `{group}`"
    yield ""
    yield f"Made by `python -m tests.bench {group} --record`: all contenders of a table in one run, rounds interleaved,"
    yield f"medians of CPU time unless a heading says wall clock. {platform.machine()}, Python {platform.python_version()}."
    yield "Nanoseconds move with the machine; the ratios are what to read."
    yield ""
    yield f"![bars on a logarithmic scale]({group}.svg)"
    for shape, rows in by_shape(found):
        reference = next((t for t in rows if "plain read" in t.who), rows[0])
        yield from ("", f"## {shape}", "", f"| who | ns an item | times {reference.who} |", "|---|---|---|")
        for t in rows:
            yield f"| {t.who} | {t.nanoseconds:,.1f} | {t.nanoseconds / reference.nanoseconds:.2f} |"


def svg(found: list[Timing]) -> Iterator[str]:
    """Bars from a tenth of the quickest contender, a decade each `UNIT` pixels; ours are darker."""
    shapes = list(by_shape(found))
    height = sum(HEAD + BAR * len(rows) for _, rows in shapes) + 10
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">'
    yield f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>'
    y = 0
    for shape, rows in shapes:
        yield f'<text x="8" y="{y + HEAD - 12}" font-weight="bold">{escape(shape)}, ns an item (logarithmic)</text>'
        y += HEAD
        for t in rows:
            length = min(WIDTH - NAMES - 90, UNIT * (1 + log10(t.nanoseconds / rows[0].nanoseconds)))
            colour = "#1b5e8c" if t.who.startswith("gbfl") else "#9aa7b0" if "read" not in t.who else "#c98b2b"
            yield f'<text x="{NAMES - 8}" y="{y + 14}" text-anchor="end">{escape(t.who)}</text>'
            yield f'<rect x="{NAMES}" y="{y + 3}" width="{length:.0f}" height="{BAR - 6}" fill="{colour}"/>'
            yield f'<text x="{NAMES + length + 6:.0f}" y="{y + 14}">{t.nanoseconds:,.1f}</text>'
            y += BAR
    yield "</svg>"
