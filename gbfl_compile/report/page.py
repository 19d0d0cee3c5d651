"""The whole report: every section from the program and what was given with it, then one template, all text escaped.

The same input gives the same bytes: nothing here looks at a clock, a path or the machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from gbfl_compile.backends import BACKENDS
from gbfl_compile.ir.digest import digest, metadata_digest
from gbfl_compile.ir.nodes import Program, Tree
from gbfl_compile.ir.trees import is_rule_list
from gbfl_compile.report.audit import Audit, audit
from gbfl_compile.report.behaviour import behaviour
from gbfl_compile.report.figures import figures
from gbfl_compile.report.row import points_of, row_reasons
from gbfl_compile.report.rules import SHOWN, rules
from gbfl_compile.report.strips import SHOWN_FIGURES, strips
from gbfl_compile.report.verdict import Banner, TargetLine, banner, target_lines
from gbfl_compile.report.wording import class_names, shortened, told
from gbfl_compile.resources import folder
from gbfl_compile.version import GENERATOR

if TYPE_CHECKING:
    from gbfl_compile.triplets import Triplets

MOST_TOLD = 40
"""Parts of the metadata, and lines of a part."""

PLACED = ("figures", "histograms", "reasons")
"""What of the metadata has a place of its own on the page; all else is told as it is."""

LONG = ("histograms", "path", "probabilities", "scores", "clause_support", "whole_numbers")
"""Parts that are for machines, or drawn elsewhere."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a report is told beside the program; all of it may be absent, and absent is said."""

    verdict: Mapping[str, Any] | None = None
    audit: Mapping[str, Any] | None = None
    row: Sequence[float] | None = None
    triplets: Triplets | None = None
    row_number: int = 0
    """Which of the triplets is told about, where no row is given."""
    sizes: Sequence[Mapping[str, Any]] = field(default=())
    """Bytes of C builds, as `gbfl sizes --json` gives them."""


def report(program: Program, given: Given | None = None) -> str:
    """The report as one HTML document without scripts, pictures or fonts from elsewhere."""
    given = given or Given()
    source = digest(program)
    lines = None if given.verdict is None else target_lines(given.verdict, source)
    targets = BACKENDS if not lines else [line.target for line in lines]
    audited = audit(given.audit, source)
    points, note = points_of(given.row, given.triplets, given.row_number)
    text: str = _template().render(
        title=_title(program),
        generator=GENERATOR,
        facts=_facts(program),
        digest=source,
        metadata_digest=metadata_digest(program),
        banner=_banner(lines, audited),
        lines=lines,
        audit=audited,
        rules=rules(program),
        shown=SHOWN,
        strips=strips(program),
        shown_figures=SHOWN_FIGURES,
        row=row_reasons(program, points, note),
        figures=figures(program),
        behaviour=behaviour(program, targets),
        sizes=[_size_line(size) for size in given.sizes],
        origin=_origin(program),
    )
    return text


def _banner(lines: tuple[TargetLine, ...] | None, audited: Audit | None) -> Banner:
    """What was checked and what is deployed, in one banner: a difference in either is the headline."""
    checked = banner(lines)
    if audited is None or (checked.standing == "different" and audited.standing != "different"):
        return checked
    if lines is None:
        return Banner(audited.standing, audited.headline, "Compiled artifacts: no verdict was given.")
    if audited.standing == "different" and checked.standing != "different":
        return Banner("different", audited.headline, f"Compiled artifacts: {checked.headline}. {checked.detail}")
    return replace(checked, detail=f"{checked.detail} {audited.headline}.")


def _title(program: Program) -> str:
    """The data it was mined from, or what it tells apart."""
    mining = program.metadata.get("mining")
    data = mining.get("data") if isinstance(mining, Mapping) else None
    for home in (program.metadata, data if isinstance(data, Mapping) else {}):
        if isinstance(found := home.get("name"), str) and found.strip():
            return told(found, 80)
    return " / ".join(shortened(label, 24) for label in class_names(program.classes)[:4])


def _facts(program: Program) -> list[tuple[str, str]]:
    training = program.metadata.get("training")
    rows = training.get("rows") if isinstance(training, Mapping) else None
    found = [
        ("form", _form(program)),
        ("clauses", f"{len(program.clauses):,}"),
        ("features", f"{len(program.features):,}"),
        ("classes", f"{len(program.classes):,}"),
    ]
    return [*found, ("training rows", f"{rows:,}")] if isinstance(rows, int) else found


def _form(program: Program) -> str:
    if not isinstance(program.decision, Tree):
        return "rule set"
    return "rule list" if is_rule_list(program.decision) else "tree"


def _size_line(size: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    parts = (size.get(part) for part in ("text", "data", "bss", "stack"))
    return told(size.get("built_with", "–"), 120), tuple(f"{n:,}" if isinstance(n, int) else "–" for n in parts)


def _origin(program: Program) -> list[tuple[str, list[tuple[str, str]]]]:
    """Where the program came from, part by part, as the metadata tells it."""
    parts = []
    for key, value in sorted(program.metadata.items()):
        if key in PLACED:
            continue
        pairs = value.items() if isinstance(value, Mapping) else [("", value)]
        kept = [(told(name, 60), told(item, 240)) for name, item in pairs if name not in LONG]
        parts.append((told(key, 60), kept[:MOST_TOLD]))
    return parts[:MOST_TOLD]


@cache
def _template() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(folder("templates") / "report", encoding="utf-8"),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        newline_sequence="\n",
    )
    return environment.get_template("page.html.jinja")
